//! The state of a block during its execution: what was read, what has changed, and the old values.
//!
//! Hash maps here are looked up and never iterated. Changes are kept in lists and sorted once, at the end of
//! the block. Accounts are in a list too, and a map holds their indices: it stays small, so growing it is
//! cheap.
#![allow(clippy::disallowed_types, reason = "looked into, never walked")]

mod balances;
mod calendar;
mod keys;
mod nonces;

pub(crate) use balances::Balances;
pub(crate) use calendar::CalendarDamage;

use crate::{error::StateFault, reserve::Reserve, told::Told};
use alloy_primitives::{
    Address, B256, Bytes, FixedBytes, KECCAK256_EMPTY, U256,
    map::{AddressMap, Entry, HashMap},
};
use almanac_primitives::{
    Account, ScheduleId, StateChange, StateDiff, StateKey, StateRead, TimestampMs,
    addresses::{ACCOUNTS, BLOCK_HASH_HISTORY, BURN},
    genesis,
    params::BLOCK_HASH_HISTORY_LEN,
    state::{Meta, decode_slot, encode_slot},
};
use almanac_schedule::calendar::Entry as CalendarEntry;
use nonces::Nonces;
use revm::{
    Database,
    state::{AccountInfo, Bytecode, EvmState},
};
use std::{
    collections::BTreeMap,
    hash::{Hash, Hasher},
};

/// A block's view of the state: the parent's state, overlaid with the block's changes so far.
pub struct BlockState<'a> {
    parent: &'a dyn StateRead,
    accounts: Vec<CachedAccount>,
    account_places: AddressMap<usize>,
    slots: HashMap<SlotKey, CachedSlot>,
    codes: HashMap<B256, Bytecode>,
    changed_accounts: Vec<(Address, usize)>,
    changed_slots: Vec<SlotKey>,
    new_codes: Vec<B256>,
    /// Bodies of schedules that this block created. A reverted creation leaves an orphan without a head behind;
    /// the next schedule with the same id replaces it.
    new_bodies: BTreeMap<ScheduleId, Bytes>,
    /// Entries of the calendar without a matching record.
    stray_entries: Vec<CalendarEntry>,
    /// Keys that this block gave to accounts, by the start of their hash. A reverted change leaves one behind.
    new_keys: BTreeMap<(Address, FixedBytes<20>), Bytes>,
    /// Orderless transactions of this block, and what it collects of earlier ones.
    nonces: Nonces,
    /// Whether this is a developer chain; read on demand.
    is_developer: Option<bool>,
    /// Schedule events that doors reported in the current transaction.
    pub(crate) told: Told,
    /// Gas that the current transaction has set aside.
    pub(crate) reserve: Reserve,
}

struct CachedAccount {
    /// The parent's value, which becomes the old value of the diff.
    stored: Option<Bytes>,
    info: Option<AccountInfo>,
    /// Whether it has a key record.
    is_keyed: bool,
    is_changed: bool,
}

/// Names a slot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct SlotKey {
    address: Address,
    slot: U256,
}

/// Hashes word by word: storage-heavy blocks spend much of their time here, and hashing byte by byte is slower.
impl Hash for SlotKey {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        for word in self.slot.as_limbs() {
            hasher.write_u64(*word);
        }
        let (words, rest) = self.address.as_chunks::<8>();
        for word in words {
            hasher.write_u64(u64::from_le_bytes(*word));
        }
        hasher.write_u32(u32::from_le_bytes(rest.try_into().expect("20 bytes are two words and a half")));
    }
}

struct CachedSlot {
    original: U256,
    value: U256,
    is_changed: bool,
}

impl<'a> BlockState<'a> {
    pub(crate) fn new(parent: &'a dyn StateRead) -> Self {
        Self {
            parent,
            accounts: Vec::new(),
            account_places: AddressMap::default(),
            slots: HashMap::default(),
            codes: HashMap::default(),
            changed_accounts: Vec::new(),
            changed_slots: Vec::new(),
            new_codes: Vec::new(),
            new_bodies: BTreeMap::new(),
            stray_entries: Vec::new(),
            new_keys: BTreeMap::new(),
            nonces: Nonces::default(),
            is_developer: None,
            told: Told::default(),
            reserve: Reserve::default(),
        }
    }

    /// The body of a schedule.
    pub(crate) fn body(&self, id: ScheduleId) -> Result<Option<Bytes>, StateFault> {
        match self.new_bodies.get(&id) {
            Some(body) => Ok(Some(body.clone())),
            None => Ok(self.parent.read(StateKey::Body(id))?),
        }
    }

    /// Stores the body of a new schedule. It reaches the state only if the head exists.
    pub(crate) fn keep_body(&mut self, id: ScheduleId, body: Bytes) {
        self.new_bodies.insert(id, body);
    }

    /// Removes an entry without a matching record from the calendar.
    pub(crate) fn drop_stray(&mut self, entry: CalendarEntry) {
        self.stray_entries.push(entry);
    }

    /// The state that the block started from.
    pub(crate) fn parent(&self) -> &'a dyn StateRead {
        self.parent
    }

    /// Whether this is a developer chain. Read once, because anyone may call the developer door's address
    /// without paying for this read.
    pub(crate) fn is_developer(&mut self) -> Result<bool, StateFault> {
        match self.is_developer {
            Some(known) => Ok(known),
            None => Ok(*self.is_developer.insert(is_developer(self.parent)?)),
        }
    }

    /// The index of an account in the list. Loads it on first use.
    fn account_place(&mut self, address: Address) -> Result<usize, StateFault> {
        match self.account_places.entry(address) {
            Entry::Occupied(place) => Ok(*place.get()),
            Entry::Vacant(place) => {
                let stored = self.parent.read(StateKey::Account(address))?;
                let account = stored.as_deref().map(|bytes| decode_account(address, bytes)).transpose()?;
                let (info, is_keyed) =
                    account.map_or((None, false), |(info, is_keyed)| (Some(info), is_keyed));
                self.accounts.push(CachedAccount { stored, info, is_keyed, is_changed: false });
                Ok(*place.insert(self.accounts.len() - 1))
            }
        }
    }

    fn slot(&mut self, address: Address, slot: U256) -> Result<&mut CachedSlot, StateFault> {
        match self.slots.entry(SlotKey { address, slot }) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(entry) => {
                let original = read_slot(self.parent, address, slot)?;
                Ok(entry.insert(CachedSlot { original, value: original, is_changed: false }))
            }
        }
    }

    /// An account with its code, including the block's changes so far.
    pub(crate) fn account_with_code(&mut self, address: Address) -> Result<Option<AccountInfo>, StateFault> {
        let Some(mut info) = self.basic(address)? else { return Ok(None) };
        info.code = Some(self.code_by_hash(info.code_hash)?);
        Ok(Some(info))
    }

    /// Takes over what a transaction did.
    pub(crate) fn commit(&mut self, changes: EvmState) -> Result<(), StateFault> {
        #[expect(clippy::iter_over_hash_type, reason = "each entry lands under its own key")]
        for (address, account) in changes {
            if account.is_touched() && address != BURN {
                self.commit_account(address, account)?;
            }
        }
        Ok(())
    }

    fn commit_account(&mut self, address: Address, account: revm::state::Account) -> Result<(), StateFault> {
        // EIP-6780 destroys only accounts created in the same transaction, so all their storage is in these
        // changes.
        let is_destroyed = account.is_selfdestructed();
        let is_gone = is_destroyed || account.is_empty();
        #[expect(clippy::iter_over_hash_type, reason = "each slot lands under its own key")]
        for (slot, value) in &account.storage {
            if value.is_changed() || is_destroyed {
                let value = if is_gone { U256::ZERO } else { value.present_value() };
                self.write_slot(address, *slot, value)?;
                if address == ACCOUNTS {
                    self.follow_record(*slot, value)?;
                }
            }
        }
        let info = (!is_gone).then_some(account.info);
        if let Some(info) = &info {
            self.keep_code(info);
        }
        let place = self.account_place(address)?;
        let cached = &mut self.accounts[place];
        cached.info = info;
        if !std::mem::replace(&mut cached.is_changed, true) {
            self.changed_accounts.push((address, place));
        }
        Ok(())
    }

    fn write_slot(&mut self, address: Address, slot: U256, value: U256) -> Result<(), StateFault> {
        let cached = self.slot(address, slot)?;
        cached.value = value;
        if !std::mem::replace(&mut cached.is_changed, true) {
            self.changed_slots.push(SlotKey { address, slot });
        }
        Ok(())
    }

    /// Stores new code: of a new contract, or an EIP-7702 delegation.
    fn keep_code(&mut self, info: &AccountInfo) {
        let Some(code) = info.code.as_ref().filter(|_| info.code_hash != KECCAK256_EMPTY) else { return };
        // Code that an account had before was read through `code_by_hash`, so it is in the map already.
        if let Entry::Vacant(entry) = self.codes.entry(info.code_hash) {
            entry.insert(code.clone());
            self.new_codes.push(info.code_hash);
        }
    }

    /// Everything that changed since the parent, with the old values; and why the calendar could not follow the
    /// records, if it could not.
    pub(crate) fn into_diff(
        mut self,
        now: TimestampMs,
    ) -> Result<(StateDiff, Option<CalendarDamage>), StateFault> {
        let (mut changes, damage) = self.schedule_changes()?;
        changes.extend(self.nonce_changes(now)?);
        changes.extend(self.key_changes()?);
        let more = self.changed_accounts.len() + self.changed_slots.len() + self.new_codes.len();
        changes.reserve(more);
        // The names are sorted rather than the changes, which are several times as large. The diff sorts again
        // and finds nothing to move: this is the order of its keys.
        self.changed_accounts.sort_unstable();
        self.changed_slots.sort_unstable();
        for (address, place) in self.changed_accounts {
            let cached = &mut self.accounts[place];
            changes.push(StateChange {
                key: StateKey::Account(address),
                old: cached.stored.take(),
                new: cached.info.as_ref().map(|info| encode_account(info, cached.is_keyed)),
            });
        }
        for name in self.changed_slots {
            let cached = &self.slots[&name];
            changes.push(StateChange {
                key: StateKey::Slot(name.address, name.slot),
                old: encode_slot(cached.original),
                new: encode_slot(cached.value),
            });
        }
        for hash in self.new_codes {
            let key = StateKey::Code(hash);
            let old = self.parent.read(key)?;
            changes.push(StateChange { key, old, new: Some(self.codes[&hash].original_bytes()) });
        }
        Ok((StateDiff::new(changes), damage))
    }
}

/// An account as revm takes it, and whether it has a key record.
fn decode_account(address: Address, bytes: &[u8]) -> Result<(AccountInfo, bool), StateFault> {
    let account = Account::decode(bytes)
        .map_err(|error| StateFault::Corrupt { key: StateKey::Account(address), error })?;
    // With `code: None` revm asks for the code; the default means that there is none.
    let info = AccountInfo {
        nonce: account.nonce,
        balance: account.balance,
        code_hash: account.code_hash,
        code: None,
        ..AccountInfo::default()
    };
    Ok((info, account.is_keyed))
}

fn encode_account(info: &AccountInfo, is_keyed: bool) -> Bytes {
    Account { nonce: info.nonce, balance: info.balance, code_hash: info.code_hash, is_keyed }.encode()
}

/// Code as revm takes it. A genesis file or an edit can hold code that no transaction could deploy: a malformed
/// delegation is treated as plain code.
pub(crate) fn bytecode(code: Bytes) -> Bytecode {
    Bytecode::new_raw_checked(code.clone()).unwrap_or_else(|_| Bytecode::new_legacy(code))
}

/// Whether the state is that of a developer chain: genesis sets this, and no block can change it.
pub(crate) fn is_developer(state: &dyn StateRead) -> Result<bool, StateFault> {
    let key = StateKey::Meta(Meta::Genesis);
    let stored = state.read(key)?;
    stored
        .map_or(Ok(false), |meta| genesis::is_developer(&meta))
        .map_err(|error| StateFault::Corrupt { key, error })
}

/// A slot of a state.
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
        let place = self.account_place(address)?;
        Ok(self.accounts[place].info.clone())
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
        let code = bytecode(stored);
        self.codes.insert(hash, code.clone());
        Ok(code)
    }

    fn storage(&mut self, address: Address, slot: U256) -> Result<U256, StateFault> {
        Ok(self.slot(address, slot)?.value)
    }

    /// Reads recent hashes from the state, where EIP-2935 stores them.
    fn block_hash(&mut self, number: u64) -> Result<B256, StateFault> {
        let slot = U256::from(number % BLOCK_HASH_HISTORY_LEN);
        Ok(self.slot(BLOCK_HASH_HISTORY, slot)?.value.into())
    }
}
