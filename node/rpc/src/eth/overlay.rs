//! A state with other values laid over it: overrides, and what calls before would have changed.

use crate::error;
use alloy_primitives::{Address, Bytes, KECCAK256_EMPTY, U256, keccak256};
use alloy_rpc_types_eth::state::{AccountOverride, StateOverride};
use almanac_primitives::{
    Account, StateDiff, StateKey, StateRead, StateReadError, params::CODE_BYTES_MAX, state::encode_slot,
};
use jsonrpsee::core::RpcResult;
use std::collections::{BTreeMap, BTreeSet};

/// Slots that one request may override.
const SLOTS_MAX: usize = 10_000;

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

    /// Lays what a request wants over it.
    pub(super) fn override_state(&mut self, overrides: StateOverride) -> RpcResult<()> {
        let slots: usize = overrides.values().map(slot_count).sum();
        if slots > SLOTS_MAX {
            return Err(error::limit(format!("{slots} overridden slots are above the limit of {SLOTS_MAX}")));
        }
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
            self.values.retain(|key, _| !matches!(key, StateKey::Slot(owner, _) if *owner == address));
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
