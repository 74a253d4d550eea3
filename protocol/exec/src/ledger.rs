//! The ledger as the chain itself uses it: through the EVM's journal, without gas.

use crate::{
    error::{BlockError, StateFault},
    machine::EvmContext,
};
use alloy_primitives::{Address, Bytes, U256};
use almanac_primitives::{
    ScheduleId, Wei,
    addresses::{BURN, LEDGER},
};
use almanac_schedule::{Failure, Ledger, record::Broken};
use revm::context::{ContextTr, JournalTr};
use std::{convert::Infallible, fmt::Display};

/// The ledger for the prologue and for the start and end of runs.
pub(crate) struct SystemLedger<'c, 'a> {
    context: &'c mut EvmContext<'a>,
}

impl<'c, 'a> SystemLedger<'c, 'a> {
    pub(crate) fn new(context: &'c mut EvmContext<'a>) -> Self {
        Self { context }
    }
}

impl SystemLedger<'_, '_> {
    /// What an account has.
    pub(crate) fn balance(&mut self, account: Address) -> Result<Wei, StateFault> {
        Ok(Wei(self.context.journal_mut().load_account(account)?.data.info.balance))
    }
}

impl Ledger for SystemLedger<'_, '_> {
    type Error = StateFault;

    fn load(&mut self, slot: U256) -> Result<U256, StateFault> {
        Ok(self.context.journal_mut().sload(LEDGER, slot)?.data)
    }

    fn store(&mut self, slot: U256, value: U256) -> Result<(), StateFault> {
        let journal = self.context.journal_mut();
        journal.sstore(LEDGER, slot, value)?;
        journal.touch_account(LEDGER);
        Ok(())
    }

    fn body(&mut self, id: ScheduleId) -> Result<Option<Bytes>, StateFault> {
        self.context.journaled_state.database.body(id)
    }

    fn keep_body(&mut self, id: ScheduleId, body: Bytes) -> Result<(), StateFault> {
        self.context.journaled_state.database.keep_body(id, body);
        Ok(())
    }

    fn burn(&mut self, amount: Wei) -> Result<(), StateFault> {
        self.credit(BURN, amount)
    }

    fn credit(&mut self, to: Address, amount: Wei) -> Result<(), StateFault> {
        match self.context.journal_mut().transfer(LEDGER, to, amount.0)? {
            None => Ok(()),
            Some(_) => Err(StateFault::LedgerShort { amount }),
        }
    }

    fn take_back(&mut self, from: Address, amount: Wei) -> Result<(), StateFault> {
        match self.context.journal_mut().transfer(from, LEDGER, amount.0)? {
            None => Ok(()),
            Some(_) => Err(StateFault::LedgerShort { amount }),
        }
    }

    fn move_entry(&mut self) -> Result<(), StateFault> {
        Ok(())
    }

    fn prepay(&mut self, _: u64) -> Result<(), StateFault> {
        Ok(())
    }
}

/// Why the chain's own operation on a schedule failed.
#[derive(Debug)]
pub(crate) enum ScheduleFault {
    /// A fault that affects the schedule: it is quarantined, and the block continues.
    Broken(Broken),
    /// The block cannot continue.
    Block(BlockError),
}

impl ScheduleFault {
    /// Why a schedule is quarantined. What does not concern it alone is the block's error.
    pub(crate) fn reason(self) -> Result<Box<dyn Display>, BlockError> {
        match self {
            Self::Block(BlockError::Fault(fault)) => Ok(fault),
            Self::Block(error) => Err(error),
            Self::Broken(broken) => Ok(Box::new(broken)),
        }
    }
}

impl From<StateFault> for ScheduleFault {
    fn from(fault: StateFault) -> Self {
        match fault {
            StateFault::LedgerShort { amount } => Self::Broken(Broken::Unpaid { amount }),
            fault => Self::Block(fault.into()),
        }
    }
}

impl From<BlockError> for ScheduleFault {
    fn from(error: BlockError) -> Self {
        Self::Block(error)
    }
}

impl From<Failure<Infallible, StateFault>> for ScheduleFault {
    fn from(failure: Failure<Infallible, StateFault>) -> Self {
        match failure {
            Failure::Refused(never) => match never {},
            Failure::Broken(broken) => Self::Broken(broken),
            Failure::Ledger(fault) => fault.into(),
        }
    }
}
