//! The sequencer: waits for a reason to build a block, builds it, and notifies sinks.

use super::{BlockId, Mode, SoloConfig, controls::Command, repeated::Unanswered, time::Time};
use crate::{
    admission::SharedPool,
    application::{Application, ApplicationError, MadeBlock, Proposal, Tip},
    clock::Clock,
    deadline::{Deadline, More},
    engine::{EngineError, Sink},
    snapshots::Snapshots,
};
use almanac_primitives::{ConsensusContext, RecoveredTransaction, TimestampMs};
use almanac_state::StateStore;
use std::{sync::Arc, time::Duration};
use tokio::sync::mpsc;

pub(super) struct Sequencer<S: StateStore, C> {
    pub(super) application: Arc<Application<S>>,
    pub(super) tip: Tip<S::Batch>,
    pub(super) pool: Arc<SharedPool>,
    pub(super) sinks: Vec<Arc<dyn Sink>>,
    pub(super) time: Time<C>,
    pub(super) config: SoloConfig,
    pub(super) snapshots: Snapshots<S::Batch>,
    /// The end of the current interval, in interval mode.
    pub(super) tick: Option<TimestampMs>,
    /// Whether the last block had more than one transaction.
    pub(super) is_crowded: bool,
    /// The last request, if its client does not know yet that it was carried out.
    pub(super) unanswered: Option<Unanswered>,
}

/// How long a block on demand waits for more transactions if several clients are sending: the resolution of
/// block times.
const GATHERING: Duration = Duration::from_millis(1);

/// Wait before a block that could not read a value is tried again.
const UNREAD_PAUSE: Duration = Duration::from_secs(1);

impl<S: StateStore<Batch: Send + 'static>, C: Clock> Sequencer<S, C> {
    pub(super) async fn run(&mut self, mut inbox: mpsc::Receiver<Command>) -> Result<(), EngineError> {
        self.restart_ticks();
        self.pool.wake();
        loop {
            self.time.keep();
            self.pool.set_prompt(self.config.mode == Mode::OnDemand);
            let due = self.next_due().await?;
            let deadline = due.into_iter().chain(self.tick).min();
            tokio::select! {
                biased;
                command = inbox.recv() => match command {
                    Some(Command::Stop) | None => return self.commit_held().await,
                    Some(command) => self.obey(command).await?,
                },
                () = self.sleep_until(deadline) => {
                    let made = self.make_block().await;
                    self.unless_unread(made).await?;
                    self.tick = self.tick_after(self.tick);
                }
                () = self.pool.changed(), if self.config.mode == Mode::OnDemand => {
                    self.gather().await;
                    let made = self.make_block_on_demand().await;
                    if !self.unless_unread(made).await? {
                        self.pool.wake();
                    }
                }
            }
        }
    }

    /// Whether a block was made. Waits a moment where a value could not be read: the next attempt may succeed, and
    /// the chain goes on serving what it has.
    async fn unless_unread<T>(&self, made: Result<T, EngineError>) -> Result<bool, EngineError> {
        match made {
            Err(EngineError::Application(error)) if error.is_unread() => {
                tracing::warn!("no block, another attempt follows: {error}");
                tokio::time::sleep(UNREAD_PAUSE).await;
                Ok(false)
            }
            made => made.map(|_| true),
        }
    }

    pub(super) fn tip_id(&self) -> BlockId {
        BlockId { number: self.tip.header.number, hash: self.tip.hash }
    }

    pub(super) async fn commit_released(&mut self) -> Result<(), EngineError> {
        while let Some(made) = self.snapshots.release() {
            self.application.commit(&made).await?;
        }
        Ok(())
    }

    async fn commit_held(&mut self) -> Result<(), EngineError> {
        for made in self.snapshots.release_all() {
            self.application.commit(&made).await?;
        }
        Ok(())
    }

    /// Restarts the interval: at the start, and whenever mode or clock were changed.
    pub(super) fn restart_ticks(&mut self) {
        self.tick = match self.config.mode {
            Mode::Interval(interval) => self.time.now().checked_add(interval),
            Mode::OnDemand | Mode::Manual => None,
        };
    }

    /// The next tick after one that has passed: on the same beat, skipping missed ones.
    fn tick_after(&self, tick: Option<TimestampMs>) -> Option<TimestampMs> {
        let (Mode::Interval(interval), Some(tick)) = (self.config.mode, tick) else { return None };
        let now = self.time.now();
        if now < tick {
            return Some(tick);
        }
        let next = tick.checked_add(interval)?;
        if next > now { Some(next) } else { now.checked_add(interval) }
    }

    pub(super) async fn next_due(&self) -> Result<Option<TimestampMs>, ApplicationError> {
        match self.config.mode {
            Mode::Manual => Ok(None),
            Mode::OnDemand | Mode::Interval(_) => self.application.next_due(&self.tip).await,
        }
    }

    async fn sleep_until(&self, deadline: Option<TimestampMs>) {
        match deadline {
            Some(deadline) => self.time.sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    }

    /// If several clients were sending at once, lets their transactions share a block. A single sender never
    /// waits.
    async fn gather(&self) {
        if self.is_crowded {
            tokio::time::sleep(GATHERING).await;
        }
    }

    async fn make_block_on_demand(&mut self) -> Result<(), EngineError> {
        if self.pool.lock().best().next().is_none() {
            return Ok(());
        }
        let before = self.pool.lock().len();
        self.make_block().await?;
        // Continue while blocks reduce the pool; what stays for another reason waits for a change.
        if self.pool.lock().len() < before {
            self.pool.wake();
        }
        Ok(())
    }

    /// Builds a block from the pool, at the current time.
    pub(super) async fn make_block(&mut self) -> Result<BlockId, EngineError> {
        let setting = self.time.setting();
        let timestamp = self.time.take_next().max(self.least_time());
        let made = self.propose(timestamp, self.candidates(), self.further_candidates()).await;
        if made.is_err() {
            // What was set for the next block holds for the next attempt.
            self.time.restore(setting);
        }
        let id = self.accept(made?).await?;
        self.time.keep_distance(self.tip.header.timestamp);
        Ok(id)
    }

    /// The earliest time that the next block can have.
    pub(super) fn least_time(&self) -> TimestampMs {
        TimestampMs(self.tip.header.timestamp.0.saturating_add(1))
    }

    /// Executes a block on the tip. It takes effect only when it is accepted.
    pub(super) async fn propose(
        &self,
        timestamp: TimestampMs,
        candidates: Vec<RecoveredTransaction>,
        more: More,
    ) -> Result<MadeBlock<S::Batch>, ApplicationError> {
        let proposal = Proposal {
            timestamp,
            fee_recipient: self.config.fee_recipient,
            consensus: ConsensusContext::default(),
            candidates,
            more,
            deadline: Deadline::NEVER,
        };
        self.application.propose(&self.tip, proposal).await
    }

    /// Makes an executed block the tip.
    pub(super) async fn accept(&mut self, made: MadeBlock<S::Batch>) -> Result<BlockId, EngineError> {
        if self.snapshots.is_holding() {
            self.snapshots.hold(made.clone());
            self.commit_released().await?;
        } else {
            self.application.commit(&made).await?;
        }
        for sink in &self.sinks {
            sink.finalized(&made.block, &made.output)?;
        }
        self.tip = made.tip.clone();
        self.time.reach(self.tip.header.timestamp);
        self.is_crowded = made.block.transactions.len() > 1;
        self.update_pool(&made).await?;
        Ok(self.tip_id())
    }

    pub(super) fn candidates(&self) -> Vec<RecoveredTransaction> {
        self.pool.candidates()
    }

    pub(super) fn further_candidates(&self) -> More {
        let pool = self.pool.clone();
        More::by(move |offered| pool.candidates_except(offered))
    }

    async fn update_pool(&mut self, made: &MadeBlock<S::Batch>) -> Result<(), ApplicationError> {
        let base_fee = self.application.next_environment(&self.tip).await?.base_fee;
        self.pool.on_final_block(made, base_fee);
        Ok(())
    }
}
