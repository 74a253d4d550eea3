//! Lanes as data: which gas a lane uses, and how much of it.

use almanac_primitives::{
    Gas, Lane,
    params::{
        CALLBACK_EFFORT_LARGEST, CALLBACK_EFFORT_LEAST, CRON_BLOCK_GAS_MAX, CRON_RUN_GAS_LARGEST,
        CRON_RUN_GAS_MIN, EFFORT_GAS, LANE_BLOCK_LOOKS_MAX, LANE_BLOCK_RUNS_MAX, LANE_LOOK_GAS,
        MARKET_LOOKS_MAX, MARKET_READY_MAX, MARKET_RUN_GAS_LARGEST, Parameters, RESERVED_BLOCK_GAS_MAX,
        SIGNED_EXPIRIES_MAX, SIGNED_RUN_GAS_LARGEST, SPARE_BLOCK_GAS_MAX, SPARE_BLOCK_LOOKS_MAX,
    },
};

/// Which gas a lane uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GasPool {
    /// The block's gas limit, which it shares with user transactions; it drives the base fee.
    Shared,
    /// Separate capacity, booked ahead, so that a booked run never competes with the mempool.
    Reserved,
}

/// Which gas this lane uses.
pub fn pool(lane: Lane) -> GasPool {
    match lane {
        Lane::Cron | Lane::Market | Lane::Signed => GasPool::Shared,
        Lane::Reserved | Lane::Spare => GasPool::Reserved,
    }
}

/// How much gas the runs of this lane may request in one block, given the gas that reserved runs requested and
/// the number of consecutive views without a block.
///
/// A proposer cannot leave due runs out, so runs that take longer than a view would halt the chain. One failed
/// view is normal when a leader is down. Each further one halves the budgets, down to the largest single run
/// (ARC21-17, FLIP330-11).
pub fn budget(lane: Lane, parameters: &Parameters, reserved_gas: Gas, failed_views: u64) -> Gas {
    let full = match lane {
        Lane::Reserved => Gas(parameters.get(RESERVED_BLOCK_GAS_MAX)),
        Lane::Cron => Gas(parameters.get(CRON_BLOCK_GAS_MAX)),
        Lane::Market => parameters.block_gas_max(),
        Lane::Spare => Gas(parameters.get(SPARE_BLOCK_GAS_MAX).saturating_sub(reserved_gas.0)),
        // Its runs use gas of what triggers them.
        Lane::Signed => Gas::ZERO,
    };
    Gas(halved(full.0, failed_views, run_gas_largest(lane).0))
}

/// Most runs that a block collects for this lane. Enough for the smallest runs to fill the lane's gas, so that
/// this count never binds before the gas does.
pub fn runs_max(lane: Lane, parameters: &Parameters) -> u64 {
    match lane {
        Lane::Reserved => booked_runs_max(parameters),
        Lane::Spare => SPARE_BLOCK_LOOKS_MAX,
        Lane::Market => parameters.get(MARKET_READY_MAX),
        Lane::Signed => 0,
        Lane::Cron => grown(parameters, LANE_BLOCK_RUNS_MAX as u64, CRON_RUN_GAS_MIN),
    }
}

/// As many of the smallest callbacks as the lane's gas holds: gas alone bounds it (FLIP330-11).
fn booked_runs_max(parameters: &Parameters) -> u64 {
    parameters.get(RESERVED_BLOCK_GAS_MAX) / (CALLBACK_EFFORT_LEAST * EFFORT_GAS)
}

/// Most due schedules that a block looks at in this lane after `failed_views` consecutive views without a
/// block, but at least `least`. Grows with the lane: blocking it with jobs that do not run must cost more as
/// filling it costs more.
pub fn looks_max(lane: Lane, parameters: &Parameters, failed_views: u64, least: u64) -> u64 {
    match lane {
        // All that is booked runs, so looks are paid for like runs; one more, to meet the one that does not fit.
        Lane::Reserved => return booked_runs_max(parameters).saturating_add(1),
        Lane::Spare => return SPARE_BLOCK_LOOKS_MAX,
        // Every one that it meets leaves the queue of those that nobody has met, so a look is paid for once.
        Lane::Market => return halved(parameters.get(MARKET_LOOKS_MAX), failed_views, least),
        // A block only ends what has expired in it.
        Lane::Signed => return halved(parameters.get(SIGNED_EXPIRIES_MAX), failed_views, least),
        Lane::Cron => {}
    }
    halved(grown(parameters, LANE_BLOCK_LOOKS_MAX as u64, LANE_LOOK_GAS), failed_views, least)
}

/// A bound that grows with the gas of the cron lane, one per `gas_each`, and is at least `floor`.
fn grown(parameters: &Parameters, floor: u64, gas_each: u64) -> u64 {
    floor.max(parameters.get(CRON_BLOCK_GAS_MAX) / gas_each)
}

/// A bound on a block's due work: halved for each consecutive failed view after the first, but at least
/// `least`.
pub fn halved(full: u64, failed_views: u64, least: u64) -> u64 {
    let halvings = u32::try_from(failed_views.saturating_sub(1)).unwrap_or(u32::MAX);
    full.checked_shr(halvings).unwrap_or(0).max(least).min(full)
}

/// The most gas that one run of this lane can request, whatever the parameters were at its admission.
fn run_gas_largest(lane: Lane) -> Gas {
    match lane {
        Lane::Cron => Gas(CRON_RUN_GAS_LARGEST),
        Lane::Reserved | Lane::Spare => Gas(CALLBACK_EFFORT_LARGEST * EFFORT_GAS),
        Lane::Market => Gas(MARKET_RUN_GAS_LARGEST),
        Lane::Signed => Gas(SIGNED_RUN_GAS_LARGEST),
    }
}

/// The most gas that a block may contain: the gas that users and lanes share, plus the separate capacity of
/// lanes.
pub fn block_gas(parameters: &Parameters) -> Gas {
    let own = Lane::ALL.into_iter().filter(|lane| pool(*lane) == GasPool::Reserved);
    let own = own.map(|lane| budget(lane, parameters, Gas::ZERO, 0).0).max().unwrap_or(0);
    Gas(parameters.block_gas_max().0.saturating_add(own))
}

/// Gas that the runs of a lane may still request in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    left: Gas,
    is_closed: bool,
}

impl Budget {
    /// An unused budget.
    pub fn new(gas: Gas) -> Self {
        Self { left: gas, is_closed: false }
    }

    /// Returns the gas of a run that did not take place, and reopens the budget: the next run in order may use
    /// it.
    pub fn give_back(&mut self, gas_limit: Gas) {
        self.left = Gas(self.left.0.saturating_add(gas_limit.0));
        self.is_closed = false;
    }

    /// Takes a run's gas limit if it fits, and stays open if it does not: what is behind may be smaller.
    pub fn take_fitting(&mut self, gas_limit: Gas) -> bool {
        let left = self.left.checked_sub(gas_limit);
        self.left = left.unwrap_or(self.left);
        left.is_some()
    }

    /// Takes a run's gas limit. If it does not fit, closes the budget: later runs must not overtake this one,
    /// however small. It stays due and is first in the next block.
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
    use almanac_primitives::params::BLOCK_GAS_MAX;

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
        assert_eq!(budget(Lane::Spare, &parameters, Gas(0), 0), Gas(spare));
        assert_eq!(budget(Lane::Spare, &parameters, Gas(spare - 1), 0), Gas(1));
        assert_eq!(budget(Lane::Spare, &parameters, Gas(spare + 1), 0), Gas(0));
    }

    /// ARC21-17, FLIP330-11.
    #[test]
    fn arc21_17_budgets_halve_with_every_failed_view_beyond_the_first() {
        let mut parameters = Parameters::default();
        parameters.load(BLOCK_GAS_MAX, 120_000_000);
        parameters.load(CRON_BLOCK_GAS_MAX, 60_000_000);
        let after = |lane, failed: &[u64]| -> Vec<u64> {
            failed.iter().map(|failed| budget(lane, &parameters, Gas::ZERO, *failed).0).collect()
        };
        let cron = [60_000_000, 60_000_000, 30_000_000, 15_000_000, 7_500_000, 5_000_000, 5_000_000];
        assert_eq!(after(Lane::Cron, &[0, 1, 2, 3, 4, 5, 6]), cron);
        let reserved = [73_500_000, 73_500_000, 36_750_000, 20_997_900, 20_997_900];
        assert_eq!(after(Lane::Reserved, &[0, 1, 2, 3, 4]), reserved);
        assert_eq!(after(Lane::Market, &[0, 1, 2, 5]), [120_000_000, 120_000_000, 60_000_000, 7_500_000]);
        assert_eq!(after(Lane::Spare, &[0, 9]), [10_500_000; 2], "one run may be as large");
    }

    /// Shifts by 64 or more, or beyond 32 bits, give the floor and not the whole.
    #[test]
    fn a_halt_of_any_length_leaves_the_largest_single_run() {
        let parameters = Parameters::default();
        for failed in [63, 64, 65, 66, 128, 129, 1 << 32, (1 << 32) + 1, u64::MAX - 1, u64::MAX] {
            let least = [(Lane::Cron, 5_000_000), (Lane::Reserved, 20_997_900), (Lane::Market, 5_000_000)];
            for (lane, least) in least {
                assert_eq!(budget(lane, &parameters, Gas::ZERO, failed), Gas(least), "{lane:?} {failed}");
            }
        }
    }

    #[test]
    fn a_halved_bound_keeps_its_least_and_never_grows() {
        assert_eq!(
            [0, 1, 2, 3, 4, 64, u64::MAX].map(|failed| halved(250, failed, 40)),
            [250, 250, 125, 62, 40, 40, 40]
        );
        assert_eq!(halved(3, 9, 40), 3, "a bound that was smaller all along");
    }

    fn with_cron_gas(gas: u64) -> Parameters {
        let mut parameters = Parameters::default();
        parameters.load(CRON_BLOCK_GAS_MAX, gas);
        parameters
    }

    #[test]
    fn runs_and_looks_grow_with_the_gas_of_the_lane() {
        let of = |gas| {
            let parameters = with_cron_gas(gas);
            (runs_max(Lane::Cron, &parameters), looks_max(Lane::Cron, &parameters, 0, 64))
        };
        assert_eq!(of(CRON_BLOCK_GAS_MAX.min), (1_000, 6_000));
        assert_eq!(of(CRON_BLOCK_GAS_MAX.default), (1_000, 6_000));
        assert_eq!((of(15_002_499).1, of(15_002_500).1), (6_000, 6_001), "both sides of the floor");
        assert_eq!((of(21_020_999).0, of(21_021_000).0), (1_000, 1_001), "both sides of the floor");
        assert_eq!(of(CRON_BLOCK_GAS_MAX.max), (2_857, 24_000));
        let largest = with_cron_gas(CRON_BLOCK_GAS_MAX.max);
        let after = |failed| looks_max(Lane::Cron, &largest, failed, 64);
        assert_eq!([1, 2, 3, 8, 9, 10, u64::MAX].map(after), [24_000, 12_000, 6_000, 187, 93, 64, 64]);
        let bounds = |lane| (runs_max(lane, &largest), looks_max(lane, &largest, 0, 64));
        assert_eq!(bounds(Lane::Market), (1_000, 5_000));
        assert_eq!(bounds(Lane::Reserved), (3_181, 3_182), "as many of the smallest as a second can book");
        assert_eq!(bounds(Lane::Spare), (100, 100));
    }

    #[test]
    fn no_budget_grows_when_views_fail() {
        let parameters = Parameters::default();
        for lane in Lane::ALL {
            for reserved in [0, 1, SPARE_BLOCK_GAS_MAX.default, u64::MAX].map(Gas) {
                let after = |failed| budget(lane, &parameters, reserved, failed);
                assert!((0..70).all(|failed| after(failed + 1) <= after(failed)), "{lane:?} {reserved:?}");
            }
        }
    }

    #[test]
    fn a_block_holds_what_lanes_with_a_door_may_use() {
        let parameters = Parameters::default();
        assert_eq!(block_gas(&parameters).0, parameters.block_gas_max().0 + RESERVED_BLOCK_GAS_MAX.default);
    }
}
