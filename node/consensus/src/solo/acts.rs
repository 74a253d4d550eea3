//! Carries out a developer's requests.
//!
//! Each returns two results: the inner one goes to the client, the outer one ends the sequencer.

use super::{
    BlockId, Mode,
    controls::{Command, ControlError, Destination, Mining, Reply, Travel},
    repeated::{Journey, Repeated, Unanswered},
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
        // Only the next request can repeat the last one.
        let unanswered =
            self.unanswered.take_if(|_| !matches!(command, Command::Mode { .. } | Command::Prove { .. }));
        match command {
            Command::Mine { at, reply } => {
                let answer = unless_unread(self.mine(at).await)?;
                self.tell(reply, answer);
            }
            Command::MineMany { mining, reply } => self.mine_once(mining, unanswered, reply).await?,
            Command::Snapshot { reply } => {
                let id = self.take_snapshot();
                self.tell(reply, Ok(id));
            }
            Command::Revert { id, reply } => {
                let answer = self.go_back(id).await?;
                self.tell(reply, answer);
            }
            Command::Reset { reply } => {
                let answer = self.reset()?;
                self.tell(reply, answer);
            }
            Command::Mode { reply } => self.tell(reply, Ok(self.config.mode)),
            Command::SetMode { mode, reply } => {
                self.set_mode(mode);
                self.tell(reply, Ok(()));
            }
            Command::SetNextTimestamp { at, reply } => {
                let answer = self.set_next_timestamp(at);
                self.tell(reply, answer);
            }
            Command::Travel { to, reply } => self.travel_once(to, unanswered, reply).await?,
            Command::SetDistance { distance, reply } => {
                let answer = self.set_distance(distance);
                self.tell(reply, answer);
            }
            Command::Edit { edits, reply } => {
                let answer = unless_unread(self.edit(edits).await)?;
                self.tell(reply, answer);
            }
            Command::Govern { changes, reply } => {
                let answer = unless_unread(self.govern(changes).await)?;
                self.tell(reply, answer);
            }
            Command::SetFeeRecipient { to, reply } => {
                self.config.fee_recipient = to;
                self.tell(reply, Ok(()));
            }
            Command::Prove { keys, reply } => {
                let proven = self.application.prove(&self.tip, &keys).await.map_err(ControlError::Prove);
                self.tell(reply, proven);
            }
            Command::Stop => {}
        }
        Ok(())
    }

    fn tell<T>(&mut self, reply: Reply<T>, answer: Result<T, ControlError>) {
        let _ = self.deliver(reply, answer);
    }

    /// Sends an answer, once what it tells of outlives the process. Returns it if the client has gone; the effects
    /// stay.
    fn deliver<T>(&mut self, reply: Reply<T>, answer: Result<T, ControlError>) -> Option<T> {
        self.time.keep();
        reply.send(answer).err().and_then(Result::ok)
    }

    async fn mine(&mut self, at: Option<TimestampMs>) -> Answer<BlockId> {
        if let Some(at) = at
            && let Err(error) = self.set_next_timestamp(at)
        {
            return Ok(Err(error));
        }
        Ok(Ok(self.make_block().await?))
    }

    async fn mine_once(
        &mut self,
        mining: Mining,
        unanswered: Option<Unanswered>,
        reply: Reply<BlockId>,
    ) -> Result<(), EngineError> {
        let now = self.time.machine_now();
        let answer = match unanswered.and_then(|last| last.by_mining(mining, now)) {
            Some(last) => Ok(last),
            None => unless_unread(self.mine_all(mining).await)?,
        };
        if let Some(last) = self.deliver(reply, answer) {
            self.unanswered = Some(Unanswered::mined(mining, last, self.time.machine_now()));
        }
        Ok(())
    }

    async fn mine_all(&mut self, mining: Mining) -> Answer<BlockId> {
        let Mining { count, interval, is_led } = mining;
        let max = self.config.request_blocks_max;
        if count > max {
            return Ok(Err(ControlError::TooManyBlocks { given: count, max }));
        }
        let next = self.time.setting().next.unwrap_or_else(|| self.time.now());
        let from = next.max(self.tip.header.timestamp);
        let span = interval.unwrap_or_default().0.checked_mul(count).map(DurationMs);
        if span.and_then(|span| later(from, span)).is_none() {
            return Ok(Err(ControlError::TooLate));
        }
        for made in 0..count {
            // Unless time passes before it too, the first block keeps its normal time.
            let before = if made == 0 { is_led.then_some(from) } else { Some(self.tip.header.timestamp) };
            if let (Some(before), Some(interval)) = (before, interval.filter(|interval| interval.0 > 0)) {
                self.time.set_next(TimestampMs(before.0.saturating_add(interval.0)));
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

    async fn travel_once(
        &mut self,
        to: Destination,
        unanswered: Option<Unanswered>,
        reply: Reply<Travel>,
    ) -> Result<(), EngineError> {
        let now = self.time.machine_now();
        let answer = match unanswered.and_then(|last| last.by_travel(to, now)) {
            Some(Repeated::Done(travel)) => Ok(travel),
            Some(Repeated::GoOn(journey)) => self.travel_on(to, journey).await?,
            None => match self.plan(to) {
                Ok(journey) => self.travel_on(to, journey).await?,
                Err(error) => Err(error),
            },
        };
        if let Some(travel) = self.deliver(reply, answer) {
            self.unanswered = Some(Unanswered::travelled(to, travel, self.time.machine_now()));
        }
        Ok(())
    }

    fn plan(&self, to: Destination) -> Result<Journey, ControlError> {
        let start = self.time.now();
        let target = match to {
            Destination::After(wait) => later(start, wait).ok_or(ControlError::TooLate)?,
            Destination::At(at) => self.check_moment(at).map(|()| at)?,
        };
        Ok(Journey { start, target, offset_ms: self.time.setting().offset_ms })
    }

    /// Travels. A journey that ends early is continued by the same request.
    async fn travel_on(&mut self, to: Destination, journey: Journey) -> Answer<Travel> {
        let answer = unless_unread(self.travel(journey).await)?;
        if matches!(answer, Err(ControlError::TravelTooLong { .. } | ControlError::Unread(_))) {
            self.restart_ticks();
            self.unanswered = Some(Unanswered::unfinished(to, journey, self.time.machine_now()));
        }
        Ok(answer)
    }

    async fn travel(&mut self, journey: Journey) -> Answer<Travel> {
        let Journey { start, target, offset_ms } = journey;
        let mut travel = Travel::default();
        while let Some(due) = self.next_due().await?.filter(|due| *due <= target) {
            let made = travel.blocks.len() as u64;
            if made == self.config.request_blocks_max {
                let reached = self.tip.header.timestamp;
                return Ok(Err(ControlError::TravelTooLong { made, reached, asked: target }));
            }
            // What was due before the start is late, as on a chain that waits.
            let at = due.max(start).max(self.least_time());
            let made = self.propose(at, self.candidates(), self.further_candidates()).await?;
            travel.runs += runs_of(&made);
            travel.blocks.push(self.accept(made).await?);
        }
        // Exactly as far as requested, although the machine's clock and that of the chain have moved meanwhile.
        self.time.restore(TimeSetting { offset_ms, ..self.time.setting() });
        self.time.shift(start, target);
        self.time.reach(self.tip.header.timestamp);
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
        self.continue_from(tip, self.config.time)?;
        Ok(Ok(()))
    }

    fn continue_from(&mut self, tip: Tip<S::Batch>, time: TimeSetting) -> Result<(), SinkError> {
        for sink in &self.sinks {
            sink.reverted(tip.header.number)?;
        }
        self.tip = tip;
        self.time.restore(time);
        self.time.reach(self.tip.header.timestamp);
        self.restart_ticks();
        self.pool.wake();
        Ok(())
    }
}

/// Answers a request that could not read a value with that, instead of ending the sequencer.
#[expect(clippy::result_large_err, reason = "passed on once for each request of a developer")]
fn unless_unread<T>(answer: Answer<T>) -> Answer<T> {
    match answer {
        Err(EngineError::Application(error)) if error.is_unread() => {
            Ok(Err(ControlError::Unread(error.into())))
        }
        answer => answer,
    }
}

fn runs_of<B>(made: &MadeBlock<B>) -> u64 {
    made.output.receipts.iter().filter(|receipt| receipt.schedule_ref.is_some()).count() as u64
}
