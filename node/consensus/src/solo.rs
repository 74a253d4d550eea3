//! The solo sequencer: one process decides, on the same application that validators will run.
//!
//! It makes a block when something is in the pool (on demand), when the interval is over, or when told to by
//! hand; and, except by hand, the moment something becomes due.

use crate::{
    admission::SharedPool,
    application::{Application, ApplicationError, MadeBlock, Proposal, Tip},
    clock::Clock,
    engine::{Engine, EngineError, Sink},
    snapshots::{Point, Snapshots},
};
use alloy_primitives::{Address, BlockHash};
use almanac_exec::TransactionError;
use almanac_mempool::SenderState;
use almanac_primitives::{
    Account, ConsensusContext, DurationMs, RecoveredTransaction, StateDiff, StateKey, TimestampMs, Wei,
    params::BLOCK_TRANSACTIONS_MAX,
};
use almanac_state::StateStore;
use std::{future::Future, sync::Arc};
use tokio::sync::{mpsc, oneshot};

/// When blocks are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// As soon as the pool has something to include.
    OnDemand,
    /// Every so often, empty or not.
    Interval(DurationMs),
    /// Only by [`Solo::mine`].
    Manual,
}

/// A block's height and name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockId {
    /// Its height.
    pub number: u64,
    /// Its hash.
    pub hash: BlockHash,
}

/// How a sequencer works.
#[derive(Clone, Copy, Debug)]
pub struct SoloConfig {
    /// When blocks are made.
    pub mode: Mode,
    /// Gets the tips.
    pub fee_recipient: Address,
}

/// The handle of a running sequencer.
#[derive(Debug)]
pub struct Solo {
    commands: mpsc::Sender<Command>,
    pool: Arc<SharedPool>,
    ended: oneshot::Receiver<Result<(), EngineError>>,
}

#[derive(Debug)]
enum Command {
    Mine { timestamp: Option<TimestampMs>, reply: oneshot::Sender<BlockId> },
    Snapshot { reply: oneshot::Sender<u64> },
    Revert { id: u64, reply: oneshot::Sender<Result<BlockId, EngineError>> },
    Stop,
}

impl Solo {
    /// A sequencer that goes on from `tip`. The future is the sequencer itself and must be run by the caller;
    /// on a thread of its own, nothing else can delay blocks.
    pub fn start<S, C>(
        application: Arc<Application<S>>,
        tip: Tip<S::Batch>,
        pool: Arc<SharedPool>,
        sinks: Vec<Arc<dyn Sink>>,
        clock: C,
        config: SoloConfig,
    ) -> (Self, impl Future<Output = ()> + Send)
    where
        S: StateStore<Batch: Send + 'static> + 'static,
        C: Clock,
    {
        let (commands, inbox) = mpsc::channel(16);
        let (end, ended) = oneshot::channel();
        let snapshots = Snapshots::default();
        let mut sequencer =
            Sequencer { application, tip, pool: pool.clone(), sinks, clock, config, snapshots };
        let task = async move {
            let result = sequencer.run(inbox).await;
            // Where nobody listens any more, there is nobody to tell.
            let _ = end.send(result);
        };
        (Self { commands, pool, ended }, task)
    }

    /// Makes a block now, at the given time if there is one, and answers with its number and hash.
    pub async fn mine(&self, timestamp: Option<TimestampMs>) -> Result<BlockId, EngineError> {
        self.ask(|reply| Command::Mine { timestamp, reply }).await
    }

    /// Remembers everything as it is now, and answers with a number to go back to it by.
    ///
    /// While there is a snapshot, blocks above it are held in memory: they are lost where the process dies
    /// before it is reverted, given up or stopped.
    pub async fn snapshot(&self) -> Result<u64, EngineError> {
        self.ask(|reply| Command::Snapshot { reply }).await
    }

    /// Goes back to a snapshot: state, blocks and pool are as they were. It and all later ones are used up.
    pub async fn revert(&self, id: u64) -> Result<BlockId, EngineError> {
        self.ask(|reply| Command::Revert { id, reply }).await?
    }

    async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Result<T, EngineError> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(command(reply)).await.map_err(|_| EngineError::Stopped)?;
        answer.await.map_err(|_| EngineError::Stopped)
    }

    /// Waits until the sequencer ends by itself, which it does only when something broke.
    pub async fn ended(&mut self) -> Result<(), EngineError> {
        match (&mut self.ended).await {
            Ok(result) => result,
            Err(_) => Err(EngineError::Died { reason: "it panicked or was dropped".to_owned() }),
        }
    }
}

impl Engine for Solo {
    fn pool_changed(&self) {
        self.pool.wake();
    }

    async fn stop(mut self) -> Result<(), EngineError> {
        // A sequencer that has ended already does not hear this; why it ended is answered below.
        let _ = self.commands.send(Command::Stop).await;
        self.ended().await
    }
}

struct Sequencer<S: StateStore, C> {
    application: Arc<Application<S>>,
    tip: Tip<S::Batch>,
    pool: Arc<SharedPool>,
    sinks: Vec<Arc<dyn Sink>>,
    clock: C,
    config: SoloConfig,
    snapshots: Snapshots<S::Batch>,
}

impl<S: StateStore<Batch: Send + 'static>, C: Clock> Sequencer<S, C> {
    async fn run(&mut self, mut inbox: mpsc::Receiver<Command>) -> Result<(), EngineError> {
        let mut tick = self.first_tick();
        self.pool.wake();
        loop {
            let due = self.next_due().await?;
            let deadline = due.into_iter().chain(tick).min();
            tokio::select! {
                biased;
                command = inbox.recv() => match command {
                    Some(Command::Stop) | None => return self.commit_held().await,
                    Some(command) => self.obey(command).await?,
                },
                () = self.sleep_until(deadline) => {
                    self.make_block(None).await?;
                    tick = self.tick_after(tick);
                }
                () = self.pool.changed(), if self.config.mode == Mode::OnDemand => {
                    self.make_block_on_demand().await?;
                }
            }
        }
    }

    /// Whoever asked may have gone before the answer; what was done stands.
    async fn obey(&mut self, command: Command) -> Result<(), EngineError> {
        match command {
            Command::Mine { timestamp, reply } => drop(reply.send(self.make_block(timestamp).await?)),
            Command::Snapshot { reply } => drop(reply.send(self.take_snapshot())),
            Command::Revert { id, reply } => drop(reply.send(self.go_back(id).await?)),
            Command::Stop => {}
        }
        Ok(())
    }

    fn take_snapshot(&mut self) -> u64 {
        let pool = self.pool.lock().clone();
        self.snapshots.take(Point { tip: self.tip.clone(), pool })
    }

    /// The inner result is the asker's, the outer one ends the sequencer.
    async fn go_back(&mut self, id: u64) -> Result<Result<BlockId, EngineError>, EngineError> {
        let Some(Point { tip, pool }) = self.snapshots.go_back(id) else {
            return Ok(Err(EngineError::UnknownSnapshot { given: id }));
        };
        for sink in &self.sinks {
            sink.reverted(tip.header.number)?;
        }
        *self.pool.lock() = pool;
        self.tip = tip;
        self.commit_released().await?;
        self.pool.wake();
        Ok(Ok(BlockId { number: self.tip.header.number, hash: self.tip.hash }))
    }

    async fn commit_released(&mut self) -> Result<(), EngineError> {
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

    fn first_tick(&self) -> Option<TimestampMs> {
        match self.config.mode {
            Mode::Interval(interval) => self.clock.now().checked_add(interval),
            Mode::OnDemand | Mode::Manual => None,
        }
    }

    /// The tick after one that has passed: on the same beat, but without making up for missed ones.
    fn tick_after(&self, tick: Option<TimestampMs>) -> Option<TimestampMs> {
        let (Mode::Interval(interval), Some(tick)) = (self.config.mode, tick) else { return None };
        let now = self.clock.now();
        if now < tick {
            return Some(tick);
        }
        let next = tick.checked_add(interval)?;
        if next > now { Some(next) } else { now.checked_add(interval) }
    }

    async fn next_due(&self) -> Result<Option<TimestampMs>, ApplicationError> {
        match self.config.mode {
            Mode::Manual => Ok(None),
            Mode::OnDemand | Mode::Interval(_) => self.application.next_due(&self.tip).await,
        }
    }

    async fn sleep_until(&self, deadline: Option<TimestampMs>) {
        match deadline {
            Some(deadline) => self.clock.sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    }

    async fn make_block_on_demand(&mut self) -> Result<(), EngineError> {
        if self.pool.lock().best().next().is_none() {
            return Ok(());
        }
        let before = self.pool.lock().len();
        self.make_block(None).await?;
        // Go on while blocks empty the pool; what stays for another reason waits for a change.
        if self.pool.lock().len() < before {
            self.pool.wake();
        }
        Ok(())
    }

    async fn make_block(&mut self, timestamp: Option<TimestampMs>) -> Result<BlockId, EngineError> {
        let least = TimestampMs(self.tip.header.timestamp.0.saturating_add(1));
        let proposal = Proposal {
            timestamp: timestamp.unwrap_or_else(|| self.clock.now()).max(least),
            fee_recipient: self.config.fee_recipient,
            consensus: ConsensusContext::default(),
            candidates: self.candidates(),
        };
        let made = self.application.propose(&self.tip, proposal).await?;
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
        self.update_pool(&made).await?;
        Ok(BlockId { number: made.tip.header.number, hash: made.tip.hash })
    }

    fn candidates(&self) -> Vec<RecoveredTransaction> {
        self.pool.lock().best().take(BLOCK_TRANSACTIONS_MAX).cloned().collect()
    }

    async fn update_pool(&mut self, made: &MadeBlock<S::Batch>) -> Result<(), ApplicationError> {
        let base_fee = self.application.next_environment(&self.tip).await?.base_fee;
        let mut pool = self.pool.lock();
        pool.on_block(base_fee, changed_accounts(&made.output.diff));
        // What a full block or a low cap keeps out may come later; any other rule will not change its mind.
        for (hash, error) in &made.refused {
            if !matches!(
                error,
                TransactionError::DoesNotFit { .. }
                    | TransactionError::BlockCountFull { .. }
                    | TransactionError::FeeCapBelowBaseFee { .. }
            ) {
                pool.remove(*hash);
            }
        }
        Ok(())
    }
}

/// The accounts that a block changed, as the pool needs to know them.
fn changed_accounts(diff: &StateDiff) -> impl Iterator<Item = (Address, SenderState)> {
    diff.changes().iter().filter_map(|change| {
        let StateKey::Account(address) = change.key else { return None };
        let account = change.new.as_deref().map_or_else(Account::default, |stored| {
            Account::decode(stored).expect("execution encodes what it changes")
        });
        Some((address, SenderState { nonce: account.nonce, balance: Wei(account.balance) }))
    })
}
