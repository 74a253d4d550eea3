//! Carries out a developer's requests.
//!
//! Each returns two results: the inner one goes to the client, the outer one ends the sequencer.

use super::{
    BlockId, Mode,
    controls::{Command, ControlError, Destination, REQUEST_BLOCKS_MAX, Reply, Travel},
    sequencer::Sequencer,
    time::{TIME_MAX, TimeSetting, later},
};
use crate::{
    application::{MadeBlock, Tip},
    clock::Clock,
    engine::{EngineError, SinkError},
    snapshots::{Point, Snapshots},
};
use almanac_primitives::{DurationMs, TimestampMs};
use almanac_state::StateStore;

/// The result for the client, inside the result that can end the sequencer.
pub(super) type Answer<T> = Result<Result<T, ControlError>, EngineError>;

impl<S: StateStore<Batch: Send + 'static>, C: Clock> Sequencer<S, C> {
    pub(super) async fn obey(&mut self, command: Command) -> Result<(), EngineError> {
        match command {
            Command::Mine { at, reply } => tell(reply, self.mine(at).await?),
            Command::MineMany { count, interval, reply } => {
                tell(reply, self.mine_many(count, interval).await?);
            }
            Command::Snapshot { reply } => tell(reply, Ok(self.take_snapshot())),
            Command::Revert { id, reply } => tell(reply, self.go_back(id).await?),
            Command::Reset { reply } => tell(reply, self.reset()?),
            Command::Mode { reply } => tell(reply, Ok(self.config.mode)),
            Command::SetMode { mode, reply } => {
                self.set_mode(mode);
                tell(reply, Ok(()));
            }
            Command::SetNextTimestamp { at, reply } => tell(reply, self.set_next_timestamp(at)),
            Command::Travel { to, reply } => tell(reply, self.travel(to).await?),
            Command::SetDistance { distance, reply } => tell(reply, self.set_distance(distance)),
            Command::Edit { edits, reply } => tell(reply, self.edit(edits).await?),
            Command::Govern { changes, reply } => tell(reply, self.govern(changes).await?),
            Command::SetFeeRecipient { to, reply } => {
                self.config.fee_recipient = to;
                tell(reply, Ok(()));
            }
            Command::Prove { keys, reply } => {
                tell(reply, self.application.prove(&self.tip, &keys).await.map_err(ControlError::Prove));
            }
            Command::Stop => {}
        }
        Ok(())
    }

    async fn mine(&mut self, at: Option<TimestampMs>) -> Answer<BlockId> {
        if let Some(at) = at
            && let Err(error) = self.set_next_timestamp(at)
        {
            return Ok(Err(error));
        }
        Ok(Ok(self.make_block().await?))
    }

    async fn mine_many(&mut self, count: u64, interval: Option<DurationMs>) -> Answer<BlockId> {
        if count > REQUEST_BLOCKS_MAX {
            return Ok(Err(ControlError::TooManyBlocks { given: count }));
        }
        let last = interval.unwrap_or_default().0.checked_mul(count).map(DurationMs);
        if last.and_then(|last| later(self.time.now().max(self.tip.header.timestamp), last)).is_none() {
            return Ok(Err(ControlError::TooLate));
        }
        for made in 0..count {
            // The first block keeps its normal time.
            if let Some(next) = interval.filter(|interval| made > 0 && interval.0 > 0) {
                self.time.set_next(TimestampMs(self.tip.header.timestamp.0.saturating_add(next.0)));
            }
            self.make_block().await?;
        }
        Ok(Ok(self.tip_id()))
    }

    fn set_mode(&mut self, mode: Mode) {
        self.config.mode = mode;
        self.restart_ticks();
        self.pool.wake();
    }

    fn set_next_timestamp(&mut self, at: TimestampMs) -> Result<(), ControlError> {
        self.check_moment(at)?;
        self.time.set_next(at);
        Ok(())
    }

    /// Returns whether a distance was set before.
    fn set_distance(&mut self, distance: Option<DurationMs>) -> Result<bool, ControlError> {
        let tip = self.tip.header.timestamp;
        if distance.is_some_and(|distance| later(tip, distance).is_none()) {
            return Err(ControlError::TooLate);
        }
        Ok(self.time.set_distance(distance, tip))
    }

    fn check_moment(&self, given: TimestampMs) -> Result<(), ControlError> {
        let tip = self.tip.header.timestamp;
        if given <= tip {
            return Err(ControlError::NotAfterTip { given, tip });
        }
        if given > TIME_MAX {
            return Err(ControlError::TooLate);
        }
        Ok(())
    }

    async fn travel(&mut self, to: Destination) -> Answer<Travel> {
        let start = self.time.now();
        let target = match to {
            Destination::After(wait) => later(start, wait).ok_or(ControlError::TooLate),
            Destination::At(at) => self.check_moment(at).map(|()| at),
        };
        let target = match target {
            Ok(target) => target,
            Err(error) => return Ok(Err(error)),
        };
        let mut travel = Travel::default();
        while let Some(due) = self.next_due().await?.filter(|due| *due <= target) {
            if travel.blocks.len() as u64 == REQUEST_BLOCKS_MAX {
                let reached = self.tip.header.timestamp;
                self.time.move_to(reached);
                self.restart_ticks();
                return Ok(Err(ControlError::TravelTooLong { reached, asked: target }));
            }
            // What was due before the start is late, as on a chain that waits.
            let at = due.max(start).max(self.least_time());
            let made = self.propose(at, self.candidates()).await?;
            travel.runs += runs_of(&made);
            travel.blocks.push(self.accept(made).await?);
        }
        // Exactly as far as requested, although the machine's clock has moved in the meantime.
        self.time.shift(start, target);
        self.restart_ticks();
        travel.offset_ms = self.time.setting().offset_ms;
        Ok(Ok(travel))
    }

    fn take_snapshot(&mut self) -> u64 {
        let pool = self.pool.lock().clone();
        self.snapshots.take(Point { tip: self.tip.clone(), pool, time: self.time.setting() })
    }

    async fn go_back(&mut self, id: u64) -> Answer<BlockId> {
        let Some(height) = self.snapshots.height(id) else {
            return Ok(Err(ControlError::UnknownSnapshot { given: id }));
        };
        if !self.sinks.iter().all(|sink| sink.can_revert(height)) {
            return Ok(Err(ControlError::HistoryGone { height }));
        }
        let Point { tip, pool, time } = self.snapshots.go_back(id).expect("it was there a moment ago");
        *self.pool.lock() = pool;
        self.continue_from(tip, time)?;
        self.commit_released().await?;
        Ok(Ok(self.tip_id()))
    }

    fn reset(&mut self) -> Result<Result<(), ControlError>, SinkError> {
        if !self.sinks.iter().all(|sink| sink.can_revert(0)) {
            return Ok(Err(ControlError::HistoryGone { height: 0 }));
        }
        let Some(tip) = self.application.reset() else {
            return Ok(Err(ControlError::KeptForGood));
        };
        self.snapshots = Snapshots::default();
        self.pool.lock().clear();
        self.continue_from(tip, TimeSetting::default())?;
        Ok(Ok(()))
    }

    fn continue_from(&mut self, tip: Tip<S::Batch>, time: TimeSetting) -> Result<(), SinkError> {
        for sink in &self.sinks {
            sink.reverted(tip.header.number)?;
        }
        self.tip = tip;
        self.time.restore(time);
        self.restart_ticks();
        self.pool.wake();
        Ok(())
    }
}

/// Sends an answer. The client may have gone; the effects stay.
fn tell<T>(reply: Reply<T>, answer: Result<T, ControlError>) {
    drop(reply.send(answer));
}

fn runs_of<B>(made: &MadeBlock<B>) -> u64 {
    made.output.receipts.iter().filter(|receipt| receipt.schedule_ref.is_some()).count() as u64
}
