//! A state with changed values on top: overrides, and the effects of earlier simulated calls.

use crate::{
    bounds::{OVERRIDE_ACCOUNTS_MAX, OVERRIDE_SLOTS_MAX},
    error,
};
use alloy_primitives::{Address, Bytes, KECCAK256_EMPTY, U256, keccak256};
use alloy_rpc_types_eth::state::{AccountOverride, StateOverride};
use almanac_primitives::{
    Account, StateDiff, StateKey, StateRead, StateReadError, params::CODE_BYTES_MAX, state::encode_slot,
};
use jsonrpsee::core::RpcResult;
use std::collections::{BTreeMap, BTreeSet};

/// The state below, where nothing lies over it.
pub(crate) struct Overlay<S> {
    below: S,
    values: BTreeMap<StateKey, Option<Bytes>>,
    /// Accounts whose storage was replaced as a whole.
    wiped: BTreeSet<Address>,
}

impl<S: StateRead> Overlay<S> {
    /// The state as it is.
    pub(crate) fn new(below: S) -> Self {
        Self { below, values: BTreeMap::new(), wiped: BTreeSet::new() }
    }

    /// Lays what calls changed over it.
    pub(crate) fn apply(&mut self, diff: &StateDiff) {
        let changes = diff.changes().iter().map(|change| (change.key, change.new.clone()));
        self.values.extend(changes);
    }

    /// Lays what a request wants over it, once it is known to be [few enough](check_count).
    pub(super) fn override_state(&mut self, overrides: StateOverride) -> RpcResult<()> {
        for (address, account) in overrides {
            self.override_account(address, account)?;
        }
        Ok(())
    }

    fn override_account(&mut self, address: Address, wanted: AccountOverride) -> RpcResult<()> {
        if wanted.move_precompile_to.is_some() {
            return Err(error::invalid(
                "movePrecompileToAddress is not supported: override the code instead",
            ));
        }
        if wanted.state.is_some() && wanted.state_diff.is_some() {
            return Err(error::invalid(format!("{address} has both state and stateDiff: give one of them")));
        }
        let stored = self.read(StateKey::Account(address)).map_err(error::internal)?;
        let stored = stored.map_or_else(|| Ok(Account::default()), |bytes| Account::decode(&bytes));
        let mut account = stored.map_err(error::internal)?;
        account.balance = wanted.balance.unwrap_or(account.balance);
        account.nonce = wanted.nonce.unwrap_or(account.nonce);
        if let Some(code) = wanted.code {
            account.code_hash = self.add_code(address, code)?;
        }
        self.values.insert(StateKey::Account(address), Some(account.encode()));
        if wanted.state.is_some() {
            self.wiped.insert(address);
            // Only its own: a request may replace the storage of many accounts.
            let own = StateKey::Slot(address, U256::ZERO)..=StateKey::Slot(address, U256::MAX);
            let laid: Vec<StateKey> = self.values.range(own).map(|(key, _)| *key).collect();
            for key in laid {
                self.values.remove(&key);
            }
        }
        for (slot, value) in wanted.state.or(wanted.state_diff).into_iter().flatten() {
            let slot = U256::from_be_bytes(slot.0);
            self.values.insert(StateKey::Slot(address, slot), encode_slot(U256::from_be_bytes(value.0)));
        }
        Ok(())
    }

    fn add_code(&mut self, address: Address, code: Bytes) -> RpcResult<alloy_primitives::B256> {
        if code.len() > CODE_BYTES_MAX {
            let given = code.len();
            return Err(error::invalid(format!(
                "code of {address} has {given} bytes, at most {CODE_BYTES_MAX} fit"
            )));
        }
        if code.is_empty() {
            return Ok(KECCAK256_EMPTY);
        }
        let hash = keccak256(&code);
        self.values.insert(StateKey::Code(hash), Some(code));
        Ok(hash)
    }
}

/// An error where all that a request overrides is too much.
pub(crate) fn check_count<'a>(all: impl IntoIterator<Item = &'a StateOverride>) -> RpcResult<()> {
    let (mut accounts, mut slots) = (0usize, 0usize);
    for overrides in all {
        accounts = accounts.saturating_add(overrides.len());
        slots = overrides.values().map(slot_count).fold(slots, usize::saturating_add);
    }
    if accounts > OVERRIDE_ACCOUNTS_MAX {
        return Err(error::limit(format!(
            "{accounts} overridden accounts are above the limit of {OVERRIDE_ACCOUNTS_MAX}"
        )));
    }
    if slots > OVERRIDE_SLOTS_MAX {
        return Err(error::limit(format!(
            "{slots} overridden slots are above the limit of {OVERRIDE_SLOTS_MAX}"
        )));
    }
    Ok(())
}

fn slot_count(account: &AccountOverride) -> usize {
    account.state.as_ref().map_or(0, |slots| slots.len())
        + account.state_diff.as_ref().map_or(0, |slots| slots.len())
}

impl<S: StateRead> StateRead for Overlay<S> {
    fn read(&self, key: StateKey) -> Result<Option<Bytes>, StateReadError> {
        if let Some(value) = self.values.get(&key) {
            return Ok(value.clone());
        }
        match key {
            StateKey::Slot(owner, _) if self.wiped.contains(&owner) => Ok(None),
            key => self.below.read(key),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::B256;
    use std::time::Duration;

    struct Nothing;

    impl StateRead for Nothing {
        fn read(&self, _: StateKey) -> Result<Option<Bytes>, StateReadError> {
            Ok(None)
        }
    }

    fn address(n: usize) -> Address {
        Address::left_padding_from(&(n as u64 + 1).to_be_bytes())
    }

    fn replacing(slots: &[u64]) -> AccountOverride {
        let slot = |n: &u64| (B256::from(U256::from(*n)), B256::from(U256::ONE));
        AccountOverride { state: Some(slots.iter().map(slot).collect()), ..AccountOverride::default() }
    }

    /// What this thread has had of a processor so far: a machine with other things to do does not count.
    fn processor_time() -> Duration {
        let scheduled = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        Duration::from_nanos(scheduled.split(' ').next().unwrap().parse().unwrap())
    }

    /// Replacing the storage of one account used to look at all values of all others.
    #[test]
    fn replacing_storage_takes_time_by_the_account() {
        let many: StateOverride = (0..30_000).map(|n| (address(n), replacing(&[1]))).collect();
        let (mut overlay, begin) = (Overlay::new(Nothing), processor_time());
        overlay.override_state(many).unwrap();
        let taken = processor_time() - begin;
        println!("30,000 accounts took {taken:?}");
        assert!(taken < Duration::from_secs(5), "{taken:?}");
    }

    #[test]
    fn replaced_storage_is_what_was_given_and_nothing_else() {
        let mut overlay = Overlay::new(Nothing);
        let both = [0, 1].map(|n| (address(n), replacing(&[1, 2])));
        overlay.override_state(both.into_iter().collect()).unwrap();
        overlay.override_state([(address(0), replacing(&[2, 3]))].into_iter().collect()).unwrap();
        let has = |n: usize| {
            let slots = 0..5u64;
            let read = |slot: &u64| overlay.read(StateKey::Slot(address(n), U256::from(*slot))).unwrap();
            slots.filter(|slot| read(slot).is_some()).collect::<Vec<_>>()
        };
        assert_eq!((has(0), has(1)), (vec![2, 3], vec![1, 2]));
    }

    #[test]
    fn overrides_have_a_number() {
        let accounts = |count: usize| -> StateOverride {
            (0..count).map(|n| (address(n), AccountOverride::default())).collect()
        };
        let slots = |count: u64| -> StateOverride {
            let slots: Vec<u64> = (0..count).collect();
            [(address(0), replacing(&slots))].into_iter().collect()
        };
        let (few, most) = (accounts(1), accounts(OVERRIDE_ACCOUNTS_MAX - 1));
        check_count([&few, &most]).unwrap();
        let refused = check_count([&few, &most, &few]).unwrap_err();
        assert_eq!(refused.message(), "1001 overridden accounts are above the limit of 1000");
        let (few, most) = (slots(1), slots(OVERRIDE_SLOTS_MAX as u64 - 1));
        check_count([&few, &most]).unwrap();
        let refused = check_count([&few, &most, &few]).unwrap_err();
        assert_eq!(refused.message(), "10001 overridden slots are above the limit of 10000");
    }
}
