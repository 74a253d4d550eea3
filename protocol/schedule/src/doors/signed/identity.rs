//! Which schedule is pending for a body, payer and admin key, and how often one was spent (HEDERA-04, -11).

use crate::{
    decide::End,
    ledger::Ledger,
    record::{IDENTITY_BIT, NAME_BIT},
};
use alloy_primitives::{B256, U256};
use almanac_primitives::ScheduleId;

/// What a slot says about an identity. All zero is an empty slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// How often a schedule of this identity was executed or deleted. It never falls, so no signature counts twice.
    pub round: u32,
    /// The schedule that is pending.
    pub live: Option<ScheduleId>,
}

/// The slot of the ledger that holds it: the hash, but for its first two bits, which no other slot has so.
pub fn identity_slot(identity: B256) -> U256 {
    U256::from_be_bytes(identity.0) & !NAME_BIT | IDENTITY_BIT
}

/// Whether a slot of the ledger holds an identity.
pub fn is_identity_slot(slot: U256) -> bool {
    slot & (NAME_BIT | IDENTITY_BIT) == IDENTITY_BIT
}

impl Identity {
    /// Reads it.
    pub fn load<L: Ledger>(ledger: &mut L, identity: B256) -> Result<Self, L::Error> {
        let [id, round, is_live, _] = ledger.load(identity_slot(identity))?.into_limbs();
        Ok(Self {
            round: u32::try_from(round).unwrap_or(u32::MAX),
            live: (is_live == 1).then_some(ScheduleId(id)),
        })
    }

    /// Writes it.
    pub fn store<L: Ledger>(&self, ledger: &mut L, identity: B256) -> Result<(), L::Error> {
        let id = self.live.map_or(0, |live| live.0);
        let word = U256::from_limbs([id, self.round.into(), self.live.is_some().into(), 0]);
        ledger.store(identity_slot(identity), word)
    }
}

/// Frees an identity whose schedule has ended. Execution and deletion spend its signatures; expiry does not, or strangers
/// could void what others are collecting by creating it and waiting (HEDERA-11); an end by a switch neither. Nor does a run that nobody could pay
/// for, or strangers could by creating it with an empty purse: none of its calls was made.
pub(crate) fn leave<L: Ledger>(
    ledger: &mut L,
    identity: B256,
    end: End,
    is_unpaid: bool,
) -> Result<(), L::Error> {
    let mut left = Identity::load(ledger, identity)?;
    left.live = None;
    if !matches!(end, End::Expired | End::Shutdown) && !is_unpaid {
        left.round = left.round.saturating_add(1);
    }
    left.store(ledger, identity)
}
