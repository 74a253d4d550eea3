//! The state of a block while it is executed: what was read, what has changed, and what it was before.
//!
//! Hash maps are looked into here and never walked; what changed is kept in lists and sorted once, when the
//! block is over.
#![allow(clippy::disallowed_types, reason = "looked into, never walked")]

use crate::error::StateFault;
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, map::HashMap};
use almanac_primitives::{
    Account, StateChange, StateDiff, StateKey, StateRead,
    addresses::BLOCK_HASH_HISTORY,
    params::BLOCK_HASH_HISTORY_LEN,
    state::{decode_slot, encode_slot},
};
use revm::{
    Database,
    state::{AccountInfo, Bytecode, EvmState},
};

/// A block's view of the state: the parent's state under everything the block has done so far.
pub struct BlockState<'a> {
    parent: &'a dyn StateRead,
    accounts: HashMap<Address, CachedAccount>,
    slots: HashMap<(Address, U256), CachedSlot>,
    codes: HashMap<B256, Bytecode>,
    changed_accounts: Vec<Address>,
    changed_slots: Vec<(Address, U256)>,
    new_codes: Vec<B256>,
}

struct CachedAccount {
    /// As stored by the parent; becomes the old value of the diff.
    stored: Option<Bytes>,
    info: Option<AccountInfo>,
    is_changed: bool,
}

struct CachedSlot {
    original: U256,
    value: U256,
    is_changed: bool,
}

/// Sums of the balances that one transaction touched.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Balances {
    pub(crate) before: U256,
    pub(crate) after: U256,
    /// Whether an account was destroyed, which may burn what it held.
    pub(crate) has_destroyed: bool,
}

impl<'a> BlockState<'a> {
    pub(crate) fn new(parent: &'a dyn StateRead) -> Self {
        Self {
            parent,
            accounts: HashMap::default(),
            slots: HashMap::default(),
            codes: HashMap::default(),
            changed_accounts: Vec::new(),
            changed_slots: Vec::new(),
            new_codes: Vec::new(),
        }
    }

    /// The state that the block started from.
    pub(crate) fn parent(&self) -> &'a dyn StateRead {
        self.parent
    }

    fn account(&mut self, address: Address) -> Result<&mut CachedAccount, StateFault> {
        use alloy_primitives::map::Entry;
        match self.accounts.entry(address) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(entry) => {
                let stored = self.parent.read(StateKey::Account(address))?;
                let info = stored.as_deref().map(|bytes| decode_account(address, bytes)).transpose()?;
                Ok(entry.insert(CachedAccount { stored, info, is_changed: false }))
            }
        }
    }

    fn slot(&mut self, address: Address, slot: U256) -> Result<&mut CachedSlot, StateFault> {
        use alloy_primitives::map::Entry;
        match self.slots.entry((address, slot)) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(entry) => {
                let original = read_slot(self.parent, address, slot)?;
                Ok(entry.insert(CachedSlot { original, value: original, is_changed: false }))
            }
        }
    }

    /// Takes over what a transaction did.
    pub(crate) fn commit(&mut self, changes: EvmState) -> Result<Balances, StateFault> {
        let mut balances = Balances::default();
        #[expect(clippy::iter_over_hash_type, reason = "each entry lands under its own key; sums commute")]
        for (address, account) in changes {
            if account.is_touched() {
                self.commit_account(address, account, &mut balances)?;
            }
        }
        Ok(balances)
    }

    fn commit_account(
        &mut self,
        address: Address,
        account: revm::state::Account,
        balances: &mut Balances,
    ) -> Result<(), StateFault> {
        // EIP-6780 lets only accounts of the same transaction vanish, so all their storage is at hand here.
        let is_destroyed = account.is_selfdestructed();
        let is_gone = is_destroyed || account.is_empty();
        #[expect(clippy::iter_over_hash_type, reason = "each slot lands under its own key")]
        for (slot, value) in &account.storage {
            if value.is_changed() || is_destroyed {
                let value = if is_gone { U256::ZERO } else { value.present_value() };
                self.write_slot(address, *slot, value)?;
            }
        }
        balances.has_destroyed |= is_destroyed;
        let info = (!is_gone).then_some(account.info);
        if let Some(info) = &info {
            self.keep_code(info);
        }
        let cached = self.account(address)?;
        let balance_of = |info: &Option<AccountInfo>| info.as_ref().map_or(U256::ZERO, |info| info.balance);
        // No sum of balances exceeds the supply, which fits.
        balances.before = balances.before.wrapping_add(balance_of(&cached.info));
        balances.after = balances.after.wrapping_add(balance_of(&info));
        cached.info = info;
        if !std::mem::replace(&mut cached.is_changed, true) {
            self.changed_accounts.push(address);
        }
        Ok(())
    }

    fn write_slot(&mut self, address: Address, slot: U256, value: U256) -> Result<(), StateFault> {
        let cached = self.slot(address, slot)?;
        cached.value = value;
        if !std::mem::replace(&mut cached.is_changed, true) {
            self.changed_slots.push((address, slot));
        }
        Ok(())
    }

    /// Keeps code that is not known yet: of a new contract, or an EIP-7702 delegation of an old account.
    fn keep_code(&mut self, info: &AccountInfo) {
        let Some(code) = info.code.as_ref().filter(|_| info.code_hash != KECCAK256_EMPTY) else { return };
        // Code that an account had before was read through `code_by_hash`, so it is here already.
        if !self.codes.contains_key(&info.code_hash) {
            self.codes.insert(info.code_hash, code.clone());
            self.new_codes.push(info.code_hash);
        }
    }

    /// Everything that changed since the parent, with the old values.
    pub(crate) fn into_diff(self) -> Result<StateDiff, StateFault> {
        let capacity = self.changed_accounts.len() + self.changed_slots.len() + self.new_codes.len();
        let mut changes = Vec::with_capacity(capacity);
        for address in self.changed_accounts {
            let cached = &self.accounts[&address];
            changes.push(StateChange {
                key: StateKey::Account(address),
                old: cached.stored.clone(),
                new: cached.info.as_ref().map(encode_account),
            });
        }
        for (address, slot) in self.changed_slots {
            let cached = &self.slots[&(address, slot)];
            changes.push(StateChange {
                key: StateKey::Slot(address, slot),
                old: encode_slot(cached.original),
                new: encode_slot(cached.value),
            });
        }
        for hash in self.new_codes {
            let key = StateKey::Code(hash);
            let old = self.parent.read(key)?;
            changes.push(StateChange { key, old, new: Some(self.codes[&hash].original_bytes()) });
        }
        Ok(StateDiff::new(changes))
    }
}

fn decode_account(address: Address, bytes: &[u8]) -> Result<AccountInfo, StateFault> {
    let account = Account::decode(bytes)
        .map_err(|error| StateFault::Corrupt { key: StateKey::Account(address), error })?;
    // `code: None` makes revm ask for the code; its default claims that there is none.
    Ok(AccountInfo {
        nonce: account.nonce,
        balance: account.balance,
        code_hash: account.code_hash,
        code: None,
        ..AccountInfo::default()
    })
}

fn encode_account(info: &AccountInfo) -> Bytes {
    Account { nonce: info.nonce, balance: info.balance, code_hash: info.code_hash }.encode()
}

/// A slot as the given state has it.
pub(crate) fn read_slot(state: &dyn StateRead, address: Address, slot: U256) -> Result<U256, StateFault> {
    let key = StateKey::Slot(address, slot);
    match state.read(key)? {
        Some(stored) => decode_slot(&stored).map_err(|error| StateFault::Corrupt { key, error }),
        None => Ok(U256::ZERO),
    }
}

impl Database for BlockState<'_> {
    type Error = StateFault;

    fn basic(&mut self, address: Address) -> Result<Option<AccountInfo>, StateFault> {
        Ok(self.account(address)?.info.clone())
    }

    fn code_by_hash(&mut self, hash: B256) -> Result<Bytecode, StateFault> {
        if hash == KECCAK256_EMPTY {
            return Ok(Bytecode::default());
        }
        if let Some(code) = self.codes.get(&hash) {
            return Ok(code.clone());
        }
        let key = StateKey::Code(hash);
        let stored = self.parent.read(key)?.ok_or(StateFault::Missing { key })?;
        // A genesis file can hold what no transaction could deploy: a delegation that is none is plain code.
        let code = Bytecode::new_raw_checked(stored.clone()).unwrap_or_else(|_| Bytecode::new_legacy(stored));
        self.codes.insert(hash, code.clone());
        Ok(code)
    }

    fn storage(&mut self, address: Address, slot: U256) -> Result<U256, StateFault> {
        Ok(self.slot(address, slot)?.value)
    }

    /// EIP-2935 keeps recent hashes in state, so BLOCKHASH needs nothing beside it.
    fn block_hash(&mut self, number: u64) -> Result<B256, StateFault> {
        let slot = U256::from(number % BLOCK_HASH_HISTORY_LEN);
        Ok(self.slot(BLOCK_HASH_HISTORY, slot)?.value.into())
    }
}
