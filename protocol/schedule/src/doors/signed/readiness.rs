//! Gas of judging signatures at a second. Nobody pays for that in its block, so it is booked with the run: as much room
//! as signatures may take.

use super::{SignedTerms, parties};
use crate::record::Body;
use almanac_primitives::{
    Gas,
    params::{EFFORT_GAS, SIGNED_SIGNERS_MAX},
};

/// Gas of reading the key of an account, or a signature and the record of who signed: up to three cold reads.
const LOOK_GAS: u64 = 6_300;

/// Gas of judging a schedule that needs so many accounts, whose keys have so many leaves. Each leaf may sign and call.
pub fn readiness_gas(accounts: usize, leaves: usize) -> u64 {
    LOOK_GAS.saturating_mul(accounts.saturating_add(leaves.saturating_mul(2)) as u64)
}

impl SignedTerms {
    /// Most signatures that are recorded for a schedule: where it waits for its second, as many as its room is for.
    /// `body` is the body with these terms.
    pub fn signers_max(&self, body: &Body) -> usize {
        if self.booked.is_none() {
            return SIGNED_SIGNERS_MAX;
        }
        let looks = self.room(body).0.saturating_sub(body.gas_limit.0) / LOOK_GAS;
        let looks = usize::try_from(looks).unwrap_or(usize::MAX);
        looks.saturating_sub(parties(self, body).len()).min(SIGNED_SIGNERS_MAX)
    }

    /// Gas that its block keeps for it: its run, and what was booked to judge it.
    pub fn room(&self, body: &Body) -> Gas {
        let booked = self.booked.as_ref().map_or(0, |booked| booked.effort.saturating_mul(EFFORT_GAS));
        Gas(booked.max(body.gas_limit.0))
    }
}
