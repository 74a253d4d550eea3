//! Adds up the balances that a transaction touched, so that value can be seen to be conserved.

use super::BlockState;
use crate::error::StateFault;
use alloy_primitives::{Address, U256};
use almanac_primitives::addresses::BURN;
use revm::state::EvmState;

/// Sums of the balances that one transaction touched.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Balances {
    pub(crate) before: U256,
    pub(crate) after: U256,
    /// What was burned on purpose: it is in no balance.
    pub(crate) burned: U256,
    /// Whether an account was destroyed, which may burn what it held.
    pub(crate) has_destroyed: bool,
}

impl BlockState<'_> {
    /// Adds up the balances that a transaction touched, before it and after it, and takes nothing over. Reads all that
    /// taking it over needs, so that a store which fails does so here.
    pub(crate) fn weigh(&mut self, changes: &EvmState) -> Result<Balances, StateFault> {
        let mut balances = Balances::default();
        #[expect(clippy::iter_over_hash_type, reason = "reading has no order; sums commute")]
        for (address, account) in changes {
            if account.is_touched() {
                self.weigh_account(*address, account, &mut balances)?;
            }
        }
        Ok(balances)
    }

    fn weigh_account(
        &mut self,
        address: Address,
        account: &revm::state::Account,
        balances: &mut Balances,
    ) -> Result<(), StateFault> {
        // The EVM reads no slot of an account that it creates; of any other, it has read what it changed.
        if account.is_created() {
            #[expect(
                clippy::iter_over_hash_type,
                clippy::disallowed_methods,
                reason = "reading has no order"
            )]
            for slot in account.storage.keys() {
                self.slot(address, *slot)?;
            }
        }
        // Counted, and left out when the changes are taken over.
        if address == BURN {
            balances.burned = account.info.balance;
            return Ok(());
        }
        let is_destroyed = account.is_selfdestructed();
        let after = if is_destroyed { U256::ZERO } else { account.info.balance };
        balances.has_destroyed |= is_destroyed;
        let place = self.account_place(address)?;
        let before = self.accounts[place].info.as_ref().map_or(U256::ZERO, |info| info.balance);
        // No sum of balances exceeds the supply, which fits.
        balances.before = balances.before.wrapping_add(before);
        balances.after = balances.after.wrapping_add(after);
        Ok(())
    }
}
