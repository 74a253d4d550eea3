//! The state of a block while it is executed: what was read, what has changed, and what it was before.
//!
//! Hash maps are looked into here and never walked; what changed is kept in lists and sorted once, when the
//! block is over. Accounts are in a list too, and their map says where: it stays small, and growing is cheap.
#![allow(clippy::disallowed_types, reason = "looked into, never walked")]

mod balances;
mod calendar;

pub(crate) use balances::Balances;
pub(crate) use calendar::CalendarDamage;

use crate::{error::StateFault, told::Told};
use alloy_primitives::{
    Address, B256, Bytes, KECCAK256_EMPTY, U256,
    map::{AddressMap, Entry, HashMap},
};
use almanac_primitives::{
    Account, ScheduleId, StateChange, StateDiff, StateKey, StateRead,
    addresses::{BLOCK_HASH_HISTORY, BURN},
    genesis,
    params::BLOCK_HASH_HISTORY_LEN,
    state::{Meta, decode_slot, encode_slot},
};
use almanac_schedule::calendar::Entry as CalendarEntry;
use revm::{
    Database,
    state::{AccountInfo, Bytecode, EvmState},
};
use std::{
    collections::BTreeMap,
    hash::{Hash, Hasher},
};

/// A block's view of the state: the parent's state under everything the block has done so far.
pub struct BlockState<'a> {
    parent: &'a dyn StateRead,
    accounts: Vec<CachedAccount>,
    account_places: AddressMap<usize>,
    slots: HashMap<SlotKey, CachedSlot>,
    codes: HashMap<B256, Bytecode>,
    changed_accounts: Vec<(Address, usize)>,
    changed_slots: Vec<SlotKey>,
    new_codes: Vec<B256>,
    /// Bodies of schedules that this block created. A creation that was reverted leaves one behind, which no head
    /// leads to; another schedule that gets its id replaces it.
    new_bodies: BTreeMap<ScheduleId, Bytes>,
    /// Entries of the calendar that no record stands behind.
    stray_entries: Vec<CalendarEntry>,
    /// Whether this is a developer's chain, once somebody has asked.
    is_developer: Option<bool>,
    /// What doors told of schedules in the transaction that runs.
    pub(crate) told: Told,
}

struct CachedAccount {
    /// As stored by the parent; becomes the old value of the diff.
    stored: Option<Bytes>,
    info: Option<AccountInfo>,
    is_changed: bool,
}

/// Names a slot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct SlotKey {
    address: Address,
    slot: U256,
}

/// Word by word: storage-heavy blocks spend much of their time here, and hashing byte by byte is slower.
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
            is_developer: None,
            told: Told::default(),
        }
    }

    /// The body of a schedule.
    pub(crate) fn body(&self, id: ScheduleId) -> Result<Option<Bytes>, StateFault> {
        match self.new_bodies.get(&id) {
            Some(body) => Ok(Some(body.clone())),
            None => Ok(self.parent.read(StateKey::Body(id))?),
        }
    }

    /// Keeps the body of a new schedule, for as long as there is a head.
    pub(crate) fn keep_body(&mut self, id: ScheduleId, body: Bytes) {
        self.new_bodies.insert(id, body);
    }

    /// Takes an entry out of the calendar that no record stands behind.
    pub(crate) fn drop_stray(&mut self, entry: CalendarEntry) {
        self.stray_entries.push(entry);
    }

    /// The state that the block started from.
    pub(crate) fn parent(&self) -> &'a dyn StateRead {
        self.parent
    }

    /// Whether this is a developer's chain. Anyone may call the address of the developer's door, and nobody pays for
    /// the answer: it is read once.
    pub(crate) fn is_developer(&mut self) -> Result<bool, StateFault> {
        match self.is_developer {
            Some(known) => Ok(known),
            None => Ok(*self.is_developer.insert(is_developer(self.parent)?)),
        }
    }

    /// Where in the list an account is. It is read when it is first asked for.
    fn account_place(&mut self, address: Address) -> Result<usize, StateFault> {
        match self.account_places.entry(address) {
            Entry::Occupied(place) => Ok(*place.get()),
            Entry::Vacant(place) => {
                let stored = self.parent.read(StateKey::Account(address))?;
                let info = stored.as_deref().map(|bytes| decode_account(address, bytes)).transpose()?;
                self.accounts.push(CachedAccount { stored, info, is_changed: false });
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

    /// An account with its code, as it is before what comes next.
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

    /// Keeps code that is not known yet: of a new contract, or an EIP-7702 delegation of an old account.
    fn keep_code(&mut self, info: &AccountInfo) {
        let Some(code) = info.code.as_ref().filter(|_| info.code_hash != KECCAK256_EMPTY) else { return };
        // Code that an account had before was read through `code_by_hash`, so it is here already.
        if let Entry::Vacant(entry) = self.codes.entry(info.code_hash) {
            entry.insert(code.clone());
            self.new_codes.push(info.code_hash);
        }
    }

    /// Everything that changed since the parent, with the old values; and why the calendar could not follow the
    /// records, if it could not.
    pub(crate) fn into_diff(mut self) -> Result<(StateDiff, Option<CalendarDamage>), StateFault> {
        let (mut changes, damage) = self.schedule_changes()?;
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
                new: cached.info.as_ref().map(encode_account),
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

/// Code as the EVM takes it. A genesis file or an edit can hold what no transaction could deploy: a delegation
/// that is none is plain code.
pub(crate) fn bytecode(code: Bytes) -> Bytecode {
    Bytecode::new_raw_checked(code.clone()).unwrap_or_else(|_| Bytecode::new_legacy(code))
}

/// Whether the state is that of a developer's chain: its genesis says so, and no block can change that.
pub(crate) fn is_developer(state: &dyn StateRead) -> Result<bool, StateFault> {
    let key = StateKey::Meta(Meta::Genesis);
    let stored = state.read(key)?;
    stored
        .map_or(Ok(false), |meta| genesis::is_developer(&meta))
        .map_err(|error| StateFault::Corrupt { key, error })
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

    /// EIP-2935 keeps recent hashes in state, so BLOCKHASH needs nothing beside it.
    fn block_hash(&mut self, number: u64) -> Result<B256, StateFault> {
        let slot = U256::from(number % BLOCK_HASH_HISTORY_LEN);
        Ok(self.slot(BLOCK_HASH_HISTORY, slot)?.value.into())
    }
}
