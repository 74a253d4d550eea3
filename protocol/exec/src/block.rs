//! The state transition. One function builds, verifies, replays and traces blocks.
//!
//! ```text
//!   parent state ──┐
//!   block input ───┤   prologue      what is due, from the parent's state
//!   transactions ──┘   runs          reserved lane, cron lane
//!                      transactions  user transactions, market lane merged in by price
//!                      runs          spare lane
//!                      epilogue      gas, fees, and everything that changed
//!                          └──→ BlockOutput
//! ```
//!
//! A proposer passes a chooser as the source of transactions; everyone else passes the block's body. Nothing
//! else differs, so a proposer cannot build a block that others would reject.

use crate::{
    choose::TransactionSource,
    environment::{BlockInput, Environment},
    epilogue,
    error::{BlockError, Fault, StateFault},
    footprint::Footprint,
    ledger::SystemLedger,
    machine::{Acted, EvmContext, Machine, Strictness},
    market::MarketRuns,
    output::{BlockOutput, Executed},
    place::Place,
    prologue, runs,
    state::{Balances, BlockState},
    transactions,
};
use almanac_primitives::{
    Gas, GasPrice, Receipt, RunTransaction, StateRead, Wei,
    ids::{ID_INDEX_MAX, ScheduleIdError},
};
use almanac_schedule::{
    Agenda, GasPool,
    calendar::Entry,
    life::{Begun, Event, LifeEvent},
};
use revm::{Inspector, inspector::NoOpInspector, state::EvmState};

/// Executes a block on the state of its parent.
pub fn execute(
    state: &dyn StateRead,
    agenda: &dyn Agenda,
    input: &BlockInput,
    source: &mut dyn TransactionSource,
) -> Result<BlockOutput, BlockError> {
    let mut observer = Observer { inspector: NoOpInspector, watch: Watch::Nothing, finished: &mut |_, _| {} };
    observe(state, agenda, input, source, &mut observer)
}

/// Executes a block with an inspector attached. The result is the same.
pub fn observe<'a, I: Inspector<EvmContext<'a>>>(
    state: &'a dyn StateRead,
    agenda: &dyn Agenda,
    input: &BlockInput,
    source: &mut dyn TransactionSource,
    observer: &mut Observer<'_, I>,
) -> Result<BlockOutput, BlockError> {
    let environment = Environment::derive(input, state)?;
    let machine =
        Machine::new(BlockState::new(state), &environment, Strictness::Block, &mut observer.inspector);
    let mut execution = Execution {
        machine,
        environment,
        watch: observer.watch,
        finished: &mut *observer.finished,
        transactions: Vec::new(),
        receipts: Vec::new(),
        cumulative_gas: Gas::ZERO,
        shared_gas_used: Gas::ZERO,
        reserved_gas_used: Gas::ZERO,
        burned: Wei::ZERO,
        events: Vec::new(),
        owed: Vec::new(),
    };

    let (due, cron) = prologue::run(&mut execution, agenda)?;
    runs::run_all(&mut execution, due.reserved)?;
    runs::run_walk(&mut execution, agenda, due.cron, cron)?;
    transactions::run(&mut execution, source, due.market)?;
    runs::run_all(&mut execution, due.spare)?;
    epilogue::run(execution)
}

/// An inspector for the execution of a block, and what it inspects.
pub struct Observer<'o, I> {
    /// Sees every step of the watched transactions.
    pub inspector: I,
    /// Which transactions it sees.
    pub watch: Watch,
    /// Called after each watched transaction, to collect what the inspector saw.
    pub finished: &'o mut dyn FnMut(Finished<'_>, &mut I),
}

/// A watched transaction that has run.
#[derive(Debug)]
pub struct Finished<'f> {
    /// Its receipt index.
    pub index: usize,
    /// Its receipt. That of a market run gets its price and the logs of its door at the end of the block.
    pub receipt: &'f Receipt,
    /// The state it touched.
    pub footprint: Footprint,
}

/// Which transactions an inspector sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    /// None: full speed.
    Nothing,
    /// The one with this receipt index.
    Only(usize),
    /// All.
    Everything,
}

/// A block being executed.
pub(crate) struct Execution<'a, 'o, I> {
    pub(crate) machine: Machine<'a, &'o mut I>,
    pub(crate) environment: Environment,
    watch: Watch,
    finished: &'o mut dyn FnMut(Finished<'_>, &mut I),
    pub(crate) transactions: Vec<Executed>,
    pub(crate) receipts: Vec<Receipt>,
    pub(crate) cumulative_gas: Gas,
    pub(crate) shared_gas_used: Gas,
    pub(crate) reserved_gas_used: Gas,
    pub(crate) burned: Wei,
    pub(crate) events: Vec<LifeEvent>,
    /// Runs whose price the end of the block decides.
    pub(crate) owed: Vec<Owed>,
}

/// A run that has ended and is not settled.
#[derive(Debug)]
pub(crate) struct Owed {
    /// Its receipt index.
    pub(crate) index: usize,
    /// How it began.
    pub(crate) begun: Begun,
    /// What the ledger holds for it.
    pub(crate) held: Wei,
    /// Gas that it set aside for runs that it triggered.
    pub(crate) aside: Gas,
}

impl<'a, I: Inspector<EvmContext<'a>>> Execution<'a, '_, I> {
    /// Receipt index of the next transaction.
    pub(crate) fn next_index(&self) -> usize {
        self.receipts.len()
    }

    /// Whether the inspector sees the next transaction.
    pub(crate) fn is_watched(&self) -> bool {
        match self.watch {
            Watch::Nothing => false,
            Watch::Only(index) => index == self.next_index(),
            Watch::Everything => true,
        }
    }

    /// Sets the receipt index of the next transaction, from which the ids of schedules it creates derive.
    pub(crate) fn name_next(&mut self) -> Result<(), BlockError> {
        let given = u32::try_from(self.next_index()).unwrap_or(u32::MAX);
        if given > ID_INDEX_MAX {
            return Err(Fault::Id(ScheduleIdError::IndexTooHigh { given }).into());
        }
        self.machine.set_place(Place { block: self.environment.number, index: given });
        Ok(())
    }

    /// Shared gas left in the block.
    pub(crate) fn shared_gas_left(&self) -> Gas {
        Gas(self.environment.gas_limit.0.saturating_sub(self.shared_gas_used.0))
    }

    /// Counts gas that a transaction used.
    pub(crate) fn use_gas(&mut self, pool: GasPool, used: Gas) {
        let total = match pool {
            GasPool::Shared => &mut self.shared_gas_used,
            GasPool::Reserved => &mut self.reserved_gas_used,
        };
        // Cannot saturate: the gas limit of each transaction and their number bound the sum.
        *total = Gas(total.0.saturating_add(used.0));
        self.cumulative_gas = Gas(self.cumulative_gas.0.saturating_add(used.0));
    }

    /// Checks that a transaction neither created nor lost money, before its changes are committed. Returns what
    /// it burned.
    pub(crate) fn weigh(&self, balances: Balances, fee: Wei) -> Result<Wei, BlockError> {
        let (before, after) = (Wei(balances.before), Wei(balances.after));
        // Cannot overflow: burned money was part of the supply.
        let fee = Wei(fee.0.wrapping_add(balances.burned));
        let gone = before.checked_sub(after);
        let is_conserved = match gone {
            // A contract that destroys itself in the transaction that created it may burn its balance
            // (EIP-6780).
            Some(gone) if balances.has_destroyed => gone >= fee,
            gone => gone == Some(fee),
        };
        if !is_conserved {
            let index = self.next_index();
            return Err(Fault::ValueNotConserved { index, before, after, burned: fee }.into());
        }
        Ok(gone.unwrap_or_default())
    }

    /// Commits changes that passed [`Self::weigh`], and adds up what they burned.
    pub(crate) fn commit(&mut self, changes: EvmState, burned: Wei) -> Result<(), BlockError> {
        self.machine.state().commit(changes)?;
        // Cannot overflow: burned money was part of the supply.
        self.burned = Wei(self.burned.0.wrapping_add(burned.0));
        Ok(())
    }

    /// Runs an operation on the ledger as the chain itself. Discards it if it fails, or if it creates or loses
    /// money.
    pub(crate) fn act<T, E: From<StateFault> + From<BlockError>>(
        &mut self,
        act: impl FnOnce(&mut SystemLedger<'_, 'a>) -> Result<T, E>,
    ) -> Result<T, E> {
        let Acted { value, balances, changes } = self.machine.act(act)?;
        let burned = self.weigh(balances, Wei::ZERO)?;
        self.commit(changes, burned)?;
        Ok(value)
    }

    /// Adds schedule events of the transaction that is recorded next.
    pub(crate) fn tell(&mut self, events: Vec<Event>) {
        let index = self.next_index();
        self.events.extend(events.into_iter().map(|event| LifeEvent { index, event }));
    }

    /// Records a finished transaction, and reports it to the observer if it was watched.
    pub(crate) fn record(
        &mut self,
        transaction: Executed,
        receipt: Receipt,
        footprint: Option<Box<Footprint>>,
    ) {
        if let Some(footprint) = footprint {
            let finished = Finished { index: self.next_index(), receipt: &receipt, footprint: *footprint };
            (self.finished)(finished, self.machine.inspector());
        }
        self.transactions.push(transaction);
        self.receipts.push(receipt);
    }
}

/// A run that was selected for this block.
#[derive(Debug)]
pub(crate) struct SelectedRun {
    pub(crate) run: RunTransaction,
    /// The calendar entry of its schedule.
    pub(crate) entry: Entry,
    /// Whether it needed signatures.
    pub(crate) is_signed: bool,
}

impl SelectedRun {
    /// What it bids per gas for its position in the block. Only the market lane sells positions.
    pub(crate) fn bid(&self) -> GasPrice {
        GasPrice(self.entry.bid().into())
    }
}

/// Runs that are due in this block, by lane.
#[derive(Debug, Default)]
pub(crate) struct DueRuns {
    pub(crate) reserved: Vec<SelectedRun>,
    pub(crate) cron: Vec<SelectedRun>,
    pub(crate) market: MarketRuns,
    pub(crate) spare: Vec<SelectedRun>,
}
