//! Where records and money are kept, as the life of a schedule sees it.
//!
//! Two places implement it: the journal of the EVM in `exec`, where a revert undoes everything and a door's caller
//! pays for each access; and [`MemoryLedger`], for tests.

use crate::record::{Broken, Record, escrow_slot, head_slot};
use alloy_primitives::{Address, Bytes, U256};
use almanac_primitives::{ScheduleId, Wei};
use std::collections::BTreeMap;

/// The ledger account: slots, bodies, and a balance that covers every escrow.
pub trait Ledger {
    /// Why it cannot answer: the store failed, or whoever pays for the access cannot.
    type Error;

    /// A slot; zero where nothing was stored.
    fn load(&mut self, slot: U256) -> Result<U256, Self::Error>;

    /// Writes a slot; zero removes it.
    fn store(&mut self, slot: U256, value: U256) -> Result<(), Self::Error>;

    /// The body of a schedule.
    fn body(&mut self, id: ScheduleId) -> Result<Option<Bytes>, Self::Error>;

    /// Keeps the body of a new schedule. It goes when the schedule's head does.
    fn keep_body(&mut self, id: ScheduleId, body: Bytes) -> Result<(), Self::Error>;

    /// Pays from the ledger's balance. A credit, never a call: nobody can refuse it.
    fn credit(&mut self, to: Address, amount: Wei) -> Result<(), Self::Error>;

    /// Takes money of the ledger's balance out of the world.
    fn burn(&mut self, amount: Wei) -> Result<(), Self::Error>;

    /// Learns that the calendar will change at the end of the block, which somebody has to pay for.
    fn move_entry(&mut self) -> Result<(), Self::Error>;

    /// Takes the price of a schedule's end when the schedule is made: it may end in a block where nobody pays.
    fn prepay_ending(&mut self) -> Result<(), Self::Error>;
}

/// Why an operation of a schedule's life did not happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure<R, E> {
    /// A rule refuses it; nothing has changed.
    Refused(R),
    /// The record is not one: a fault of our own that belongs to this schedule.
    Broken(Broken),
    /// The ledger could not answer.
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

/// Writes what can have changed of a record.
pub(crate) fn save<L: Ledger>(ledger: &mut L, record: &Record) -> Result<(), L::Error> {
    ledger.store(head_slot(record.id), record.full_head().to_word())?;
    ledger.store(escrow_slot(record.id), record.escrow.0)
}

/// Takes a record away. Its body goes with it.
pub(crate) fn remove<L: Ledger>(ledger: &mut L, id: ScheduleId) -> Result<(), L::Error> {
    ledger.store(head_slot(id), U256::ZERO)?;
    ledger.store(escrow_slot(id), U256::ZERO)
}

/// A ledger in memory, with nothing to undo and nothing to pay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryLedger {
    /// Slots that are not zero.
    pub slots: BTreeMap<U256, U256>,
    /// Bodies, those of ended schedules among them.
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

    fn move_entry(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }

    fn prepay_ending(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }

    fn burn(&mut self, amount: Wei) -> Result<(), Self::Error> {
        self.burned += amount.0;
        Ok(())
    }
}
