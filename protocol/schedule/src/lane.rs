//! Lanes as data: whose gas a lane uses, and how much of it.

use almanac_primitives::{
    Gas, Lane,
    params::{CRON_BLOCK_GAS_MAX, Parameters, RESERVED_BLOCK_GAS_MAX, SPARE_BLOCK_GAS_MAX},
};

/// Whose gas a lane uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GasPool {
    /// The header's gas limit, which user transactions use too; the base fee follows it.
    Shared,
    /// Capacity of its own, booked ahead, so that a booked run never competes with the mempool.
    Reserved,
}

/// Whose gas this lane uses.
pub fn pool(lane: Lane) -> GasPool {
    match lane {
        Lane::Cron | Lane::Market => GasPool::Shared,
        Lane::Reserved | Lane::Spare => GasPool::Reserved,
    }
}

/// How much gas the runs of this lane may ask for in one block in which reserved runs asked for
/// `reserved_gas`.
pub fn budget(lane: Lane, parameters: &Parameters, reserved_gas: Gas) -> Gas {
    match lane {
        Lane::Reserved => Gas(parameters.get(RESERVED_BLOCK_GAS_MAX)),
        Lane::Cron => Gas(parameters.get(CRON_BLOCK_GAS_MAX)),
        Lane::Market => parameters.block_gas_max(),
        Lane::Spare => Gas(parameters.get(SPARE_BLOCK_GAS_MAX).saturating_sub(reserved_gas.0)),
    }
}

/// Gas that the runs of a lane may still ask for in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    left: Gas,
    is_closed: bool,
}

impl Budget {
    /// A budget of which nothing is used.
    pub fn new(gas: Gas) -> Self {
        Self { left: gas, is_closed: false }
    }

    /// Gives back what a run had taken that did not take place, and opens again: the run behind it is next in order.
    pub fn give_back(&mut self, gas_limit: Gas) {
        self.left = Gas(self.left.0.saturating_add(gas_limit.0));
        self.is_closed = false;
    }

    /// Takes a run's gas limit, or closes for good: whoever comes behind a run that does not fit must not overtake
    /// it, however small. It stays due and comes first in the next block.
    pub fn take(&mut self, gas_limit: Gas) -> bool {
        match self.left.checked_sub(gas_limit) {
            Some(left) if !self.is_closed => {
                self.left = left;
                true
            }
            _ => {
                self.is_closed = true;
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(gas: &[u64], budget: u64) -> Vec<u64> {
        let mut budget = Budget::new(Gas(budget));
        gas.iter().copied().filter(|gas| budget.take(Gas(*gas))).collect()
    }

    #[test]
    fn stops_at_the_first_that_does_not_fit() {
        assert_eq!(taken(&[40, 60], 100), [40, 60], "exactly full");
        assert_eq!(taken(&[40, 61], 100), [40], "one too much");
        assert_eq!(taken(&[40, 61, 5], 100), [40], "the small one behind it does not overtake");
        assert_eq!(taken(&[101], 100), [0u64; 0]);
        assert_eq!(taken(&[u64::MAX, u64::MAX], u64::MAX), [u64::MAX], "no wrap-around");
    }

    #[test]
    fn what_did_not_run_gives_its_room_to_the_next_in_order() {
        let mut budget = Budget::new(Gas(100));
        assert!(budget.take(Gas(60)) && !budget.take(Gas(41)) && !budget.take(Gas(40)));
        budget.give_back(Gas(60));
        assert!(
            budget.take(Gas(60)) && budget.take(Gas(40)) && !budget.take(Gas(1)),
            "no more than there was"
        );
    }

    #[test]
    fn spare_gets_what_reserved_left() {
        let parameters = Parameters::default();
        let spare = SPARE_BLOCK_GAS_MAX.default;
        assert_eq!(budget(Lane::Spare, &parameters, Gas(0)), Gas(spare));
        assert_eq!(budget(Lane::Spare, &parameters, Gas(spare - 1)), Gas(1));
        assert_eq!(budget(Lane::Spare, &parameters, Gas(spare + 1)), Gas(0));
    }
}
