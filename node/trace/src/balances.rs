//! How a transaction changed balances.

use crate::{
    error::TraceError,
    tracer::{Seen, Tracer},
};
use alloy_primitives::{Address, U256};
use almanac_primitives::addresses::BURN;
use revm::{inspector::NoOpInspector, state::Account};

/// The balances that a transaction changed, by address: what its fee, its calls and its refunds come to together.
///
/// Of a run, these are the changes of its calls; what the ledger pays for it is not part of the call.
#[derive(Clone, Copy, Debug)]
pub struct BalanceChanges;

/// A balance before and after a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BalanceChange {
    /// Whose.
    pub account: Address,
    /// Before.
    pub before: U256,
    /// After.
    pub after: U256,
}

impl Tracer for BalanceChanges {
    type Inspector = NoOpInspector;
    type Trace = Vec<BalanceChange>;

    fn inspector(&self) -> NoOpInspector {
        NoOpInspector
    }

    fn trace(&self, _: NoOpInspector, seen: &Seen) -> Result<Self::Trace, TraceError> {
        // What doors burn is at an address that no state has.
        let accounts = seen.footprint.before.iter().filter(|(account, _)| **account != BURN);
        let changed = accounts.filter_map(|(account, before)| {
            let before = before.as_ref().map_or(U256::ZERO, |info| info.balance);
            let after = seen.footprint.after.get(account).map_or(before, balance_after);
            (before != after).then_some(BalanceChange { account: *account, before, after })
        });
        Ok(changed.collect())
    }
}

/// A contract that destroys itself in the transaction that created it leaves nothing (EIP-6780).
fn balance_after(account: &Account) -> U256 {
    if account.is_selfdestructed() { U256::ZERO } else { account.info.balance }
}
