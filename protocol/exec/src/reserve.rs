//! Gas that a transaction sets aside for the runs that it triggers (HEDERA-12).
//!
//! A call that triggers a run pays the run's gas limit, and the end of the transaction gives it back: the run has its
//! own payer. So the transaction's gas limit has room for both, and its gas used shows only its own work. What a frame
//! set aside before it failed is given back too: nothing came of it.

use revm::interpreter::Gas;

/// What the current transaction has set aside.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reserve {
    room: u64,
    taken: u64,
}

impl Reserve {
    /// For a transaction with this gas limit that costs at least `least`.
    pub(crate) fn new(gas_limit: u64, least: u64) -> Self {
        Self { room: gas_limit.saturating_sub(least), taken: 0 }
    }

    /// Sets gas aside. Returns `false` if the transaction could then cost more than its limit: the floor of its calldata
    /// counts, whatever it spends.
    pub(crate) fn take(&mut self, gas: u64) -> bool {
        let taken = self.taken.saturating_add(gas);
        let fits = taken <= self.room;
        if fits {
            self.taken = taken;
        }
        fits
    }

    /// What was set aside.
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    /// Gives back what was set aside, before refunds are counted.
    pub(crate) fn give_back(&self, gas: &mut Gas) {
        gas.tracker_mut().erase_cost(self.taken);
    }
}
