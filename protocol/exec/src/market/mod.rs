//! The market lane: scheduled transactions that compete with user transactions by price (AIP-125).
//!
//! ```text
//!   prologue      `select`   who is ready, from the parent's state; expiries and refunds
//!   transactions  [`MarketRuns::run_above`], before each user transaction
//!   epilogue      `settle`   the price, known when the last transaction of the block is
//! ```

mod select;
mod settle;

pub(crate) use select::select;
pub(crate) use settle::settle;

use crate::{
    block::{Execution, SelectedRun},
    error::BlockError,
    ledger::ScheduleFault,
    machine::EvmContext,
    runs::{Turn, run_one},
    select::read,
};
use almanac_primitives::{Gas, GasPrice};
use almanac_schedule::{
    calendar::Entry,
    decide::{Decision, decide},
    life,
};
use revm::Inspector;
use std::collections::VecDeque;

/// The runs of the market lane that are ready in this block, the highest bid first.
#[derive(Debug, Default)]
pub(crate) struct MarketRuns {
    runs: VecDeque<SelectedRun>,
    /// Those behind them that could run too, the highest bid first. One moves up for each that takes no place after all:
    /// whoever cancels his own runs within a block keeps nobody out.
    behind: VecDeque<Entry>,
    /// Gas that they ask for.
    asked: u64,
    /// Gas that the lane may still use.
    gas_left: Gas,
    /// The lane's clock in this block, from which waiting begins.
    clock: u64,
}

impl MarketRuns {
    /// The highest bid of those that have not run.
    pub(crate) fn highest(&self) -> Option<GasPrice> {
        self.runs.front().map(SelectedRun::bid)
    }

    /// The most gas that the remaining runs may use.
    pub(crate) fn gas(&self) -> Gas {
        Gas(self.asked).min(self.gas_left)
    }

    /// Adds the next run in order.
    fn push(&mut self, selected: SelectedRun) {
        // No sum of so few limits overflows.
        self.asked += selected.run.gas_limit.0;
        self.runs.push_back(selected);
    }

    /// Takes the turn of each run that bids more than `price` (of all, if it is `None`), and returns the lowest of
    /// their bids. One that does not fit into the gas that is left waits, and cheaper ones go on: room never grows in a
    /// block, so it would not fit later either (AIP125-14). Its place, and that of one that was cancelled in this block,
    /// goes to the next behind (AIP125-10).
    pub(crate) fn run_above<'a, I: Inspector<EvmContext<'a>>>(
        &mut self,
        execution: &mut Execution<'a, '_, I>,
        price: Option<GasPrice>,
    ) -> Result<Option<GasPrice>, BlockError> {
        let mut lowest = None;
        while let Some(selected) =
            self.runs.pop_front_if(|selected| price.is_none_or(|price| selected.bid() > price))
        {
            lowest = Some(selected.bid());
            self.asked -= selected.run.gas_limit.0;
            let room = self.gas_left.min(execution.shared_gas_left());
            if selected.run.gas_limit > room {
                let (id, clock) = (selected.entry.schedule, self.clock);
                execution.act::<_, BlockError>(|ledger| Ok(life::wait(ledger, id, clock)?))?;
                self.move_up(execution)?;
                continue;
            }
            let before = execution.shared_gas_used;
            let turn = run_one(execution, selected)?;
            let used = execution.shared_gas_used.0 - before.0;
            self.gas_left = Gas(self.gas_left.0.saturating_sub(used));
            if matches!(turn, Turn::Cancelled) {
                self.move_up(execution)?;
            }
        }
        Ok(lowest)
    }

    /// Lets the next behind take a place. It bids no more than any that has one, so it comes last. One that cannot run any
    /// more is passed over, and the next block meets it again.
    fn move_up<'a, I: Inspector<EvmContext<'a>>>(
        &mut self,
        execution: &mut Execution<'a, '_, I>,
    ) -> Result<(), BlockError> {
        let moment = execution.moment();
        while let Some(entry) = self.behind.pop_front() {
            let found = execution.act(|ledger| {
                let record = read(ledger, entry)?;
                Ok((!life::is_stale(ledger, &record)?).then_some(record))
            });
            let record = match found {
                Ok(record) => record,
                Err(ScheduleFault::Block(error)) => return Err(error),
                Err(ScheduleFault::Broken(_)) => None,
            };
            let can_run = |record: &_| matches!(decide(record, moment), Decision::Run { .. });
            if let Some(record) = record.filter(can_run) {
                self.push(SelectedRun { run: record.run(moment.base_fee), entry, is_signed: false });
                break;
            }
        }
        Ok(())
    }

    /// Lets those wait that got no place in this block.
    pub(crate) fn let_others_wait<'a, I: Inspector<EvmContext<'a>>>(
        self,
        execution: &mut Execution<'a, '_, I>,
    ) -> Result<(), BlockError> {
        let clock = self.clock;
        for entry in self.behind {
            execution.act::<_, BlockError>(|ledger| Ok(life::wait(ledger, entry.schedule, clock)?))?;
        }
        Ok(())
    }
}
