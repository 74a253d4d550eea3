//! What the market lane remembers from block to block: its clock, and how far a shutdown has come.

use crate::ledger::Ledger;
use alloy_primitives::U256;
use almanac_primitives::{
    StateKey, StateRead, StateReadError,
    addresses::LEDGER,
    codec::{DecodeError, Reader},
    params::{MARKET_ENABLED, MARKET_PAUSED, MARKET_SHUTDOWN, Parameters},
    state::decode_slot,
};

/// The slot of the ledger that holds it. Slots of kind 5 are the lane's.
const SLOT: U256 = U256::from_limbs([0, 0, 5, 0]);

/// What the lane remembers. All zero is an empty slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MarketLane {
    /// Counts the blocks in which something waited and the lane was not held. Expiries are times of this clock, so
    /// neither a halt nor a pause expires anything (AIP125-11).
    pub clock: u64,
    /// How far a shutdown has come.
    pub phase: Phase,
}

/// How far a shutdown has come (AIP125-21).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// There is none.
    #[default]
    Open = 0,
    /// What was pending is being refunded.
    ShuttingDown = 1,
    /// All of it is.
    ShutDown = 2,
}

impl MarketLane {
    /// Reads it from a ledger. `Err` inside means that the slot is damaged.
    pub fn load<L: Ledger>(ledger: &mut L) -> Result<Result<Self, DecodeError>, L::Error> {
        Ok(Self::from_word(ledger.load(SLOT)?))
    }

    /// Writes it.
    pub fn store<L: Ledger>(&self, ledger: &mut L) -> Result<(), L::Error> {
        ledger.store(SLOT, self.to_word())
    }

    /// Reads it from a state.
    pub fn read(state: &dyn StateRead) -> Result<Result<Self, DecodeError>, StateReadError> {
        let stored = state.read(StateKey::Slot(LEDGER, SLOT))?;
        Ok(stored.map_or(Ok(U256::ZERO), |stored| decode_slot(&stored)).and_then(Self::from_word))
    }

    fn to_word(self) -> U256 {
        U256::from_limbs([self.clock, self.phase as u64, 0, 0])
    }

    fn from_word(word: U256) -> Result<Self, DecodeError> {
        let bytes = word.to_be_bytes::<32>();
        let mut input = Reader::new(&bytes);
        let unknown = |given| DecodeError::UnknownValue { what: "state of the market lane", given };
        if let Some(given) = input.raw("zeros", 16)?.iter().find(|byte| **byte != 0) {
            return Err(unknown((*given).into()));
        }
        let phase = match input.u64("phase")? {
            0 => Phase::Open,
            1 => Phase::ShuttingDown,
            2 => Phase::ShutDown,
            given => return Err(unknown(given)),
        };
        Ok(Self { clock: input.u64("clock")?, phase })
    }
}

/// Whether the door is paused.
pub fn is_paused(parameters: &Parameters) -> bool {
    parameters.get(MARKET_PAUSED) == 1
}

/// Whether the door refunds instead of running. A pause holds a shutdown up as well, since the lane may be unreadable.
pub fn is_shut(parameters: &Parameters) -> bool {
    parameters.get(MARKET_SHUTDOWN) == 1
}

/// What the door does for people (AIP125-20, -21, -24).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// It takes orders and runs them.
    Active,
    /// Nothing is taken or run for now.
    Paused,
    /// The feature is off.
    Disabled,
    /// What was pending is being refunded.
    ShutdownInProgress,
    /// All of it is.
    ShutdownComplete,
}

impl Service {
    /// What the parameters and the lane say.
    pub fn of(parameters: &Parameters, phase: Phase) -> Self {
        if is_shut(parameters) {
            return if phase == Phase::ShutDown { Self::ShutdownComplete } else { Self::ShutdownInProgress };
        }
        if parameters.get(MARKET_ENABLED) == 0 {
            return Self::Disabled;
        }
        if is_paused(parameters) { Self::Paused } else { Self::Active }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_lane_has_one_word() {
        for phase in [Phase::Open, Phase::ShuttingDown, Phase::ShutDown] {
            for clock in [0, 1, u64::MAX] {
                let lane = MarketLane { clock, phase };
                assert_eq!(MarketLane::from_word(lane.to_word()), Ok(lane));
            }
        }
        assert_eq!(MarketLane::from_word(U256::ZERO), Ok(MarketLane::default()));
        assert!(MarketLane::from_word(U256::from_limbs([0, 3, 0, 0])).is_err());
        assert!(MarketLane::from_word(U256::from_limbs([0, 0, 0, 1])).is_err());
    }

    proptest! {
        #[test]
        fn what_decodes_encodes_to_the_same_word(limbs: [u64; 4], plausible: bool) {
            let mut limbs = limbs;
            if plausible {
                limbs = [limbs[0], limbs[1] % 4, 0, 0];
            }
            let word = U256::from_limbs(limbs);
            if let Ok(lane) = MarketLane::from_word(word) {
                prop_assert_eq!(lane.to_word(), word);
            }
        }
    }
}
