//! Epochs: how an owner cancels all schedules of a door at once, in constant work (AIP125-22).
//!
//! A schedule remembers its owner's epoch. Raising the epoch cancels whatever has an earlier one; each is refunded when
//! a block meets it, or when somebody claims it.

use crate::{
    doors::Door,
    ledger::{Ledger, read_slot},
    record::{Record, epoch_slot},
};
use alloy_primitives::{Address, U256};
use almanac_primitives::{StateRead, StateReadError};

/// The epoch of a door's owner.
pub fn epoch<L: Ledger>(ledger: &mut L, door: Door, owner: Address) -> Result<u64, L::Error> {
    Ok(ledger.load(epoch_slot(door, owner))?.saturating_to())
}

/// Raises the epoch of a door's owner, and returns it.
pub fn raise_epoch<L: Ledger>(ledger: &mut L, door: Door, owner: Address) -> Result<u64, L::Error> {
    let next = epoch(ledger, door, owner)?.saturating_add(1);
    ledger.store(epoch_slot(door, owner), U256::from(next))?;
    Ok(next)
}

/// Whether a later epoch of its owner has cancelled a schedule.
pub fn is_stale<L: Ledger>(ledger: &mut L, record: &Record) -> Result<bool, L::Error> {
    match record.body.terms.epoch() {
        Some(born) => Ok(epoch(ledger, record.body.door(), record.body.owner)? > born),
        None => Ok(false),
    }
}

/// The same, from a state. A slot that cannot be decoded has cancelled nothing.
pub fn read_is_stale(state: &dyn StateRead, record: &Record) -> Result<bool, StateReadError> {
    let Some(born) = record.body.terms.epoch() else { return Ok(false) };
    let epoch: u64 = read_slot(state, epoch_slot(record.body.door(), record.body.owner))?.saturating_to();
    Ok(epoch > born)
}
