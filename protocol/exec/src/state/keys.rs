//! Key records during a block. The records are slots of the accounts contract; the keys' bytes and the flag in the
//! account follow them, as bodies of schedules follow their heads.

use super::{BlockState, SlotKey};
use crate::error::StateFault;
use alloy_primitives::{Address, Bytes, FixedBytes, U256};
use almanac_primitives::{
    StateChange, StateKey,
    addresses::ACCOUNTS,
    codec::DecodeError,
    keys::{KeyRecord, KeyTree, StoredKey, hash_start},
};
use revm::Database as _;

impl BlockState<'_> {
    /// Whether a key record replaces the key that an address derives from.
    pub(crate) fn is_keyed(&mut self, account: Address) -> Result<bool, StateFault> {
        let place = self.account_place(account)?;
        Ok(self.accounts[place].is_keyed)
    }

    /// The record of an account's key.
    pub(crate) fn key_record(&mut self, account: Address) -> Result<KeyRecord, StateFault> {
        let slot = KeyRecord::slot(account);
        let word = self.storage(ACCOUNTS, slot)?;
        decode_record(slot, word)
    }

    /// The key that a record is of.
    pub(crate) fn stored_key(&self, account: Address, stored: StoredKey) -> Result<KeyTree, StateFault> {
        let key = StateKey::AccountKey(account);
        let bytes = match self.new_keys.get(&(account, stored.hash)) {
            Some(bytes) => bytes.clone(),
            None => self.parent.read(key)?.ok_or(StateFault::Missing { key })?,
        };
        // The record has the hash: any other bytes are a fault of our own.
        let tree =
            KeyTree::decode_stored(&bytes).ok().filter(|tree| hash_start(tree.encoded()) == stored.hash);
        tree.ok_or(StateFault::Missing { key })
    }

    /// The fault of a record that does not decode.
    pub(crate) fn corrupt_record(account: Address, error: DecodeError) -> StateFault {
        StateFault::Corrupt { key: StateKey::Slot(ACCOUNTS, KeyRecord::slot(account)), error }
    }

    /// Keeps the bytes of a new key. They reach the state only if the record does.
    pub(crate) fn keep_key(&mut self, account: Address, key: &KeyTree) {
        let hash: FixedBytes<20> = hash_start(key.encoded());
        self.new_keys.insert((account, hash), key.encoded().clone());
    }

    /// Lets an account's flag follow its record.
    pub(super) fn follow_record(&mut self, slot: U256, word: U256) -> Result<(), StateFault> {
        let account = KeyRecord::account_of(slot);
        let is_keyed = decode_record(slot, word)?.key.is_some();
        let place = self.account_place(account)?;
        let cached = &mut self.accounts[place];
        cached.is_keyed = is_keyed;
        if !std::mem::replace(&mut cached.is_changed, true) {
            self.changed_accounts.push((account, place));
        }
        Ok(())
    }

    /// What becomes of the bytes of keys whose records changed.
    pub(super) fn key_changes(&mut self) -> Result<Vec<StateChange>, StateFault> {
        let changed = self.changed_slots.iter().filter(|name| name.address == ACCOUNTS);
        let changed: Vec<SlotKey> = changed.copied().collect();
        let mut changes = Vec::with_capacity(changed.len());
        for name in changed {
            let account = KeyRecord::account_of(name.slot);
            let record = decode_record(name.slot, self.slots[&name].value)?;
            let key = StateKey::AccountKey(account);
            let new: Option<Bytes> = match record.key {
                Some(stored) => Some(self.stored_key(account, stored)?.encoded().clone()),
                None => None,
            };
            changes.push(StateChange { key, old: self.parent.read(key)?, new });
        }
        Ok(changes)
    }
}

fn decode_record(slot: U256, word: U256) -> Result<KeyRecord, StateFault> {
    let key = StateKey::Slot(ACCOUNTS, slot);
    KeyRecord::from_word(word).map_err(|error| StateFault::Corrupt { key, error })
}
