//! The ledger as doors use it: through the EVM's journal, metered on their caller's gas.

use super::call::{DoorCall, DoorError, IDoor, revert};
use crate::{error::StateFault, place::Place};
use alloy_primitives::{Address, Bytes, U256};
use almanac_primitives::{
    ScheduleId, Wei,
    addresses::{BURN, LEDGER},
    ids::{ID_NTH_MAX, ScheduleIdError},
};
use almanac_schedule::Ledger;
use revm::{
    context::{ContextTr, JournalTr},
    context_interface::Cfg,
};

/// Gas per byte of a body: Ethereum's price per byte of code, which is stored the same way.
const BODY_BYTE_GAS: u64 = 200;

/// Gas of reading a body: Ethereum's price of a cold account's code, which may be longer than a body. A flat
/// price, because the length is known only after the read.
const BODY_READ_GAS: u64 = 2_600;

/// Gas per 32 bytes of a body for decoding it.
const BODY_WORD_GAS: u64 = 3;

/// Gas of a change in the calendar: it rewrites a leaf and often the branches above it.
const CALENDAR_CHANGE_GAS: u64 = 15_000;

/// Gas of a payment, and the surcharge if it creates an account: Ethereum's prices of a call with value.
const CREDIT_GAS: u64 = 9_000;
const NEW_ACCOUNT_GAS: u64 = 25_000;

/// Slot of the ledger's transient storage that counts the schedules of a transaction.
const BORN_SLOT: U256 = U256::ZERO;

impl DoorCall<'_, '_> {
    /// Moves the value of the call into the ledger.
    pub(super) fn take_escrow(&mut self) -> Result<Wei, DoorError> {
        let (door, value) = (self.address(), self.take_value());
        match self.context().journal_mut().transfer(door, LEDGER, value)? {
            None => Ok(Wei(value)),
            // Cannot happen: the EVM moved the value to the door before the call.
            Some(_) => Err(StateFault::LedgerShort { amount: Wei(value) }.into()),
        }
    }

    /// The id of the next schedule that this transaction creates. The counter is in transient storage, so it
    /// ends with the transaction, and a revert restores it.
    pub(super) fn next_id(&mut self) -> Result<ScheduleId, DoorError> {
        self.refuse_static()?;
        let Place { block, index } = self.place();
        let born = self.context().journal_mut().tload(LEDGER, BORN_SLOT);
        let nth = u16::try_from(born).unwrap_or(u16::MAX);
        let id = ScheduleId::new(block, index, nth).map_err(|error| match error {
            ScheduleIdError::TooManyInTransaction { given } => {
                revert(IDoor::TooManySchedules { given: U256::from(given), max: U256::from(ID_NTH_MAX) })
            }
            ScheduleIdError::BlockTooHigh { .. }
            | ScheduleIdError::IndexTooHigh { .. }
            | ScheduleIdError::Malformed { .. } => revert(IDoor::NoScheduleId {}),
        })?;
        self.context().journal_mut().tstore(LEDGER, BORN_SLOT, born + U256::ONE);
        Ok(id)
    }
}

impl Ledger for DoorCall<'_, '_> {
    type Error = DoorError;

    fn load(&mut self, slot: U256) -> Result<U256, DoorError> {
        self.load_word(LEDGER, slot)
    }

    fn store(&mut self, slot: U256, value: U256) -> Result<(), DoorError> {
        self.store_word(LEDGER, slot, value)
    }

    fn body(&mut self, id: ScheduleId) -> Result<Option<Bytes>, DoorError> {
        self.charge(BODY_READ_GAS)?;
        let body = self.context().journaled_state.database.body(id)?;
        let words = body.as_ref().map_or(0, |body| body.len().div_ceil(32) as u64);
        self.charge(BODY_WORD_GAS * words)?;
        Ok(body)
    }

    fn keep_body(&mut self, id: ScheduleId, body: Bytes) -> Result<(), DoorError> {
        self.refuse_static()?;
        self.charge(BODY_BYTE_GAS * body.len() as u64)?;
        self.context().journaled_state.database.keep_body(id, body);
        Ok(())
    }

    fn credit(&mut self, to: Address, amount: Wei) -> Result<(), DoorError> {
        self.refuse_static()?;
        self.charge(CREDIT_GAS)?;
        let cold_gas = self.context().cfg().gas_params().cold_account_additional_cost();
        let is_unpaid = !self.can_pay(cold_gas);
        let journal = self.context().journal_mut();
        let recipient = journal.load_account_info_skip_cold_load(to, false, is_unpaid)?;
        let (is_cold, is_new) = (recipient.is_cold, recipient.is_empty);
        self.charge(u64::from(is_cold) * cold_gas + u64::from(is_new) * NEW_ACCOUNT_GAS)?;
        match self.context().journal_mut().transfer(LEDGER, to, amount.0)? {
            None => Ok(()),
            // A fault that affects one schedule must not stop the block.
            Some(_) => Err(revert(IDoor::LedgerShort { owed: amount.0 })),
        }
    }

    /// Only runs are given money, and no door ends one.
    fn take_back(&mut self, _: Address, amount: Wei) -> Result<(), DoorError> {
        Err(StateFault::LedgerShort { amount }.into())
    }

    fn burn(&mut self, amount: Wei) -> Result<(), DoorError> {
        self.credit(BURN, amount)
    }

    fn move_entry(&mut self) -> Result<(), DoorError> {
        self.charge(CALENDAR_CHANGE_GAS)
    }

    fn prepay(&mut self, gas: u64) -> Result<(), DoorError> {
        self.charge(gas)
    }
}
