//! How a sequencer follows a developer's requests.
//!
//! Each answers with two results: the inner one is the asker's, the outer one ends the sequencer.

use super::{
    BlockId, Mode,
    controls::{Command, ControlError, Destination, REQUEST_BLOCKS_MAX, Reply, Travel},
    sequencer::Sequencer,
    time::{TIME_MAX, TimeSetting, later},
};
use crate::{
    application::{ApplicationError, MadeBlock, Tip},
    clock::Clock,
    engine::{EngineError, SinkError},
    snapshots::{Point, Snapshots},
};
use alloy_consensus::TxEip1559;
use alloy_primitives::{Bytes, TxKind, U256};
use almanac_exec::{Edit, EditError, Executed, Sender, edit_gas, environment::wanted_base_fee, recover};
use almanac_primitives::{
    DurationMs, RecoveredTransaction, TimestampMs, UserTransaction,
    addresses::{DEVELOPER, DEVELOPER_DOOR},
};
use almanac_state::{StateStore, with_reader};

/// For the asker, inside of what can end the sequencer.
type Answer<T> = Result<Result<T, ControlError>, EngineError>;

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
            Command::Edit { edits, reply } => tell(reply, self.edit(edits).await?),
            Command::SetFeeRecipient { to, reply } => {
                self.config.fee_recipient = to;
                tell(reply, Ok(()));
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
            // The first comes when it would have come anyway.
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
            // What was due before we set out is late, as it would be on a chain that waits.
            let at = due.max(start).max(self.least_time());
            let made = self.propose(at, self.candidates()).await?;
            travel.runs += runs_of(&made);
            travel.blocks.push(self.accept(made).await?);
        }
        // As far as was asked for, to the millisecond, although the machine's clock went on meanwhile.
        self.time.shift(start, target);
        self.restart_ticks();
        travel.offset_ms = self.time.setting().offset_ms;
        Ok(Ok(travel))
    }

    async fn edit(&mut self, mut edits: Vec<Edit>) -> Answer<BlockId> {
        // The block of an edit is not the one that a base fee was set for; that one is still to come.
        let wanted = with_reader(&self.tip.state, &[], |state| wanted_base_fee(state))
            .await
            .map_err(ApplicationError::from)?
            .map_err(|fault| ApplicationError::Block(fault.into()))?;
        if let Some(wanted) = wanted {
            edits.insert(0, Edit::NextBaseFee { base_fee: U256::from(wanted.0) });
        }
        let mut calls: Vec<_> = edits.into_iter().map(Edit::calldata).collect();
        while !calls.is_empty() {
            let candidates = match self.edit_transactions(&calls).await? {
                Ok(candidates) => candidates,
                Err(error) => return Ok(Err(error)),
            };
            let made = self.propose(self.least_time(), candidates).await?;
            let count = made.block.transactions.len();
            // Nothing of the block exists before it is accepted, so a failed edit leaves nothing behind.
            if let Some(error) = failed_edit(&made) {
                return Ok(Err(error.into()));
            }
            if count == 0 {
                let refused = made.refused.into_iter().next();
                let (_, error) = refused.expect("a block takes a candidate or says why not");
                return Ok(Err(error.into()));
            }
            self.accept(made).await?;
            calls.drain(..count);
        }
        // Money or a nonce may be what a pending transaction was waiting for.
        self.pool.wake();
        Ok(Ok(self.tip_id()))
    }

    /// The calls in the developer's name, at what the next block asks.
    async fn edit_transactions(&self, calls: &[Bytes]) -> Answer<Vec<RecoveredTransaction>> {
        let environment = self.application.next_environment(&self.tip).await?;
        let rules = self.application.rules(&self.tip).await?;
        let developer = with_reader(&self.tip.state, &[], |state| Sender::read(state, DEVELOPER))
            .await
            .map_err(ApplicationError::from)?
            .map_err(|fault| ApplicationError::Block(fault.into()))?;
        let made = calls.iter().zip(developer.nonce..).map(|(input, nonce)| {
            let transaction = TxEip1559 {
                chain_id: rules.chain_id,
                nonce,
                gas_limit: edit_gas(input).0,
                max_fee_per_gas: environment.base_fee.0,
                to: TxKind::Call(DEVELOPER_DOOR),
                input: input.clone(),
                ..TxEip1559::default()
            };
            let transaction = UserTransaction::impersonate(DEVELOPER, transaction.into())?;
            Ok(recover(transaction, &rules)?)
        });
        Ok(made.collect())
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

/// Whoever asked may have gone before the answer; what was done stands.
fn tell<T>(reply: Reply<T>, answer: Result<T, ControlError>) {
    drop(reply.send(answer));
}

fn runs_of<B>(made: &MadeBlock<B>) -> u64 {
    made.output.receipts.iter().filter(|receipt| receipt.schedule_ref.is_some()).count() as u64
}

/// Why the first edit of a block that failed did so.
fn failed_edit<B>(made: &MadeBlock<B>) -> Option<EditError> {
    let executed = made.output.transactions.iter().zip(&made.output.receipts);
    executed
        .filter(|(transaction, _)| matches!(transaction, Executed::User(_)))
        .find_map(|(_, receipt)| EditError::of_outcome(&receipt.outcome))
}
