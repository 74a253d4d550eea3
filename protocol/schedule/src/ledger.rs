//! The storage of records and money, as the life of a schedule uses it.
//!
//! There are two implementations: the EVM's journal in `exec`, where a revert undoes everything and the caller
//! of a door pays for each access; and [`MemoryLedger`], for tests.

use crate::{
    doors::signed,
    record::{Body, Broken, Record, escrow_slot, head_slot, name_slot},
};
use alloy_primitives::{Address, Bytes, U256};
use almanac_primitives::{
    ScheduleId, StateKey, StateRead, StateReadError, Wei, addresses::LEDGER, state::decode_slot,
};
use std::collections::BTreeMap;

/// The ledger account: slots, bodies, and a balance that covers every escrow.
pub trait Ledger {
    /// Why an access failed: the store failed, or the caller cannot pay for the access.
    type Error;

    /// Reads a slot; zero if nothing is stored.
    fn load(&mut self, slot: U256) -> Result<U256, Self::Error>;

    /// Writes a slot; zero removes it.
    fn store(&mut self, slot: U256, value: U256) -> Result<(), Self::Error>;

    /// The body of a schedule.
    fn body(&mut self, id: ScheduleId) -> Result<Option<Bytes>, Self::Error>;

    /// Stores the body of a new schedule. It is removed with the schedule's head.
    fn keep_body(&mut self, id: ScheduleId, body: Bytes) -> Result<(), Self::Error>;

    /// Pays from the ledger's balance. A credit, not a call, so the recipient cannot reject it.
    fn credit(&mut self, to: Address, amount: Wei) -> Result<(), Self::Error>;

    /// Takes money back that a run was given and did not use.
    fn take_back(&mut self, from: Address, amount: Wei) -> Result<(), Self::Error>;

    /// Burns money from the ledger's balance.
    fn burn(&mut self, amount: Wei) -> Result<(), Self::Error>;

    /// Charges for a change of the calendar, which is written at the end of the block.
    fn move_entry(&mut self) -> Result<(), Self::Error>;

    /// Charges for work that is done later, in a block where nobody pays.
    fn prepay(&mut self, gas: u64) -> Result<(), Self::Error>;
}

/// A slot of the ledger in a state. One that cannot be decoded counts as empty.
pub(crate) fn read_slot(state: &dyn StateRead, slot: U256) -> Result<U256, StateReadError> {
    let stored = state.read(StateKey::Slot(LEDGER, slot))?;
    Ok(stored.and_then(|stored| decode_slot(&stored).ok()).unwrap_or_default())
}

/// Why an operation on a schedule failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure<R, E> {
    /// A rule rejected it; nothing has changed.
    Refused(R),
    /// The record is invalid: a fault of our own that affects this schedule.
    Broken(Broken),
    /// The ledger failed.
    Ledger(E),
}

/// Loads a record.
pub fn load<L: Ledger, R>(ledger: &mut L, id: ScheduleId) -> Result<Option<Record>, Failure<R, L::Error>> {
    let head = ledger.load(head_slot(id)).map_err(Failure::Ledger)?;
    if head.is_zero() {
        return Ok(None);
    }
    let escrow = ledger.load(escrow_slot(id)).map_err(Failure::Ledger)?;
    let body = ledger.body(id).map_err(Failure::Ledger)?;
    Record::decode(id, head, escrow, body.as_ref()).map(Some).map_err(Failure::Broken)
}

/// Writes the mutable parts of a record.
pub(crate) fn save<L: Ledger>(ledger: &mut L, record: &Record) -> Result<(), L::Error> {
    ledger.store(head_slot(record.id), record.full_head().to_word())?;
    ledger.store(escrow_slot(record.id), record.escrow.0)
}

/// Removes a record, its body, its other name and its signatures. Returns how many slots of signatures it cleared.
pub(crate) fn remove<L: Ledger>(ledger: &mut L, id: ScheduleId, body: &Body) -> Result<u64, L::Error> {
    if let Some(name) = body.terms.hash_name() {
        ledger.store(name_slot(name), U256::ZERO)?;
    }
    let cleared = if body.terms.identity().is_some() { signed::remove_signers(ledger, id)? } else { 0 };
    remove_nameless(ledger, id)?;
    Ok(cleared)
}

/// Removes a record that has no other name.
pub(crate) fn remove_nameless<L: Ledger>(ledger: &mut L, id: ScheduleId) -> Result<(), L::Error> {
    ledger.store(head_slot(id), U256::ZERO)?;
    ledger.store(escrow_slot(id), U256::ZERO)
}

/// A ledger in memory, without reverts and gas.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryLedger {
    /// Non-zero slots.
    pub slots: BTreeMap<U256, U256>,
    /// Bodies, including those of ended schedules.
    pub bodies: BTreeMap<ScheduleId, Bytes>,
    /// What was paid out, by recipient.
    pub credits: BTreeMap<Address, U256>,
    /// What was burned.
    pub burned: U256,
}

impl Ledger for MemoryLedger {
    type Error = std::convert::Infallible;

    fn load(&mut self, slot: U256) -> Result<U256, Self::Error> {
        Ok(self.slots.get(&slot).copied().unwrap_or_default())
    }

    fn store(&mut self, slot: U256, value: U256) -> Result<(), Self::Error> {
        if value.is_zero() {
            self.slots.remove(&slot);
        } else {
            self.slots.insert(slot, value);
        }
        Ok(())
    }

    fn body(&mut self, id: ScheduleId) -> Result<Option<Bytes>, Self::Error> {
        Ok(self.bodies.get(&id).cloned())
    }

    fn keep_body(&mut self, id: ScheduleId, body: Bytes) -> Result<(), Self::Error> {
        self.bodies.insert(id, body);
        Ok(())
    }

    fn credit(&mut self, to: Address, amount: Wei) -> Result<(), Self::Error> {
        *self.credits.entry(to).or_default() += amount.0;
        Ok(())
    }

    fn take_back(&mut self, from: Address, amount: Wei) -> Result<(), Self::Error> {
        *self.credits.entry(from).or_default() -= amount.0;
        Ok(())
    }

    fn move_entry(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }

    fn prepay(&mut self, _: u64) -> Result<(), Self::Error> {
        Ok(())
    }

    fn burn(&mut self, amount: Wei) -> Result<(), Self::Error> {
        self.burned += amount.0;
        Ok(())
    }
}
