//! What changes about a schedule while signatures come in, in one slot.

use super::Consent;
use crate::{
    ledger::{Ledger, read_slot},
    record::{TALLY_FIELD, slot},
};
use alloy_primitives::U256;
use almanac_primitives::{ScheduleId, StateRead, StateReadError, TimestampMs};

const CREATED_NESTED: u64 = 1;
const UNPAID: u64 = 2;
/// First of the bits that mark accounts which agreed by nested calls only.
const NESTED_SHIFT: u32 = 8;

/// How far a schedule is. All zero is an empty slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Signatures that are recorded.
    pub signers: u64,
    /// Whether a nested call created it: then its creator pays from its fund.
    pub is_created_nested: bool,
    /// When it is triggered: a bit for each of its parties that agreed by a nested call only and pays from its fund.
    pub nested: u16,
    /// Whether its run was not made because somebody could not pay.
    pub is_unpaid: bool,
    /// When it ended.
    pub ended: Option<TimestampMs>,
    /// How often the key of a creator that pays had been changed when it last agreed to that.
    pub creator_rotation: u64,
}

impl Tally {
    /// Reads the tally of a schedule.
    pub fn load<L: Ledger>(ledger: &mut L, id: ScheduleId) -> Result<Self, L::Error> {
        ledger.load(slot(id, TALLY_FIELD)).map(Self::from_word)
    }

    /// The same, from a state.
    pub fn read(state: &dyn StateRead, id: ScheduleId) -> Result<Self, StateReadError> {
        read_slot(state, slot(id, TALLY_FIELD)).map(Self::from_word)
    }

    fn from_word(word: U256) -> Self {
        let [signers, flags, ended, creator_rotation] = word.into_limbs();
        Self {
            signers,
            is_created_nested: flags & CREATED_NESTED != 0,
            is_unpaid: flags & UNPAID != 0,
            nested: u16::try_from((flags >> NESTED_SHIFT) & u64::from(u16::MAX)).expect("masked to 16 bits"),
            ended: (ended > 0).then_some(TimestampMs(ended)),
            creator_rotation,
        }
    }

    /// Writes it.
    pub fn store<L: Ledger>(&self, ledger: &mut L, id: ScheduleId) -> Result<(), L::Error> {
        let flags = (u64::from(self.is_created_nested) * CREATED_NESTED)
            | (u64::from(self.is_unpaid) * UNPAID)
            | (u64::from(self.nested) << NESTED_SHIFT);
        let ended = self.ended.map_or(0, |ended| ended.0);
        ledger.store(
            slot(id, TALLY_FIELD),
            U256::from_limbs([self.signers, flags, ended, self.creator_rotation]),
        )
    }

    /// A bit for each party that agreed by nested calls only.
    pub fn nested_bits(consents: &[Consent]) -> u16 {
        let nested = consents.iter().enumerate().filter(|(_, consent)| **consent == Consent::Nested);
        nested.fold(0, |bits, (party, _)| {
            bits | u32::try_from(party).ok().and_then(|party| 1u16.checked_shl(party)).unwrap_or(0)
        })
    }

    /// Whether the party with this place agreed by a nested call only.
    pub fn is_nested(&self, party: usize) -> bool {
        party < 16 && (self.nested >> party) & 1 == 1
    }
}
