//! The record of an account's key: a slot of the accounts contract, named by the account's address.
//!
//! ```text
//! version │ kind │ leaves │ rotation, 8 bytes │ 0 │ first 20 bytes of the key's hash
//! ```

use super::KeyTree;
use crate::codec::DecodeError;
use alloy_primitives::{Address, FixedBytes, U256, keccak256};

const VERSION: u8 = 1;

/// What a slot holds about an account's key. An account that was never given a key has an empty slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyRecord {
    /// How often the key was changed. It never falls, so that a proof for one change serves for no other.
    pub rotation: u64,
    /// The key, unless it is the one that the address derives from.
    pub key: Option<StoredKey>,
}

/// What a record tells about a key without its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredKey {
    /// Leaves of the tree: what walking it costs.
    pub leaves: u8,
    /// The start of its hash.
    pub hash: FixedBytes<20>,
}

impl StoredKey {
    /// The record of a key.
    pub fn of(key: &KeyTree) -> Self {
        Self { leaves: key.leaf_count(), hash: hash_start(key.encoded()) }
    }
}

/// The part of a key's hash that a record has.
pub fn hash_start(encoded: &[u8]) -> FixedBytes<20> {
    FixedBytes::from_slice(&keccak256(encoded)[..20])
}

impl KeyRecord {
    /// Reads a slot.
    pub fn from_word(word: U256) -> Result<Self, DecodeError> {
        if word.is_zero() {
            return Ok(Self::default());
        }
        let bytes = word.to_be_bytes::<32>();
        let unknown = |what, given: u8| DecodeError::UnknownValue { what, given: given.into() };
        if bytes[0] != VERSION {
            return Err(DecodeError::UnknownVersion { what: "key record", given: bytes[0], known: VERSION });
        }
        let rotation = u64::from_be_bytes(bytes[3..11].try_into().expect("8 bytes"));
        let key = match bytes[1] {
            0 => None,
            1 => Some(StoredKey { leaves: bytes[2], hash: FixedBytes::from_slice(&bytes[12..]) }),
            kind => return Err(unknown("kind of key record", kind)),
        };
        let record = Self { rotation, key };
        if record.to_word() == word { Ok(record) } else { Err(unknown("padding of key record", bytes[11])) }
    }

    /// The slot's value.
    pub fn to_word(&self) -> U256 {
        if *self == Self::default() {
            return U256::ZERO;
        }
        let mut bytes = [0u8; 32];
        bytes[0] = VERSION;
        bytes[3..11].copy_from_slice(&self.rotation.to_be_bytes());
        if let Some(StoredKey { leaves, hash }) = self.key {
            bytes[1] = 1;
            bytes[2] = leaves;
            bytes[12..].copy_from_slice(hash.as_slice());
        }
        U256::from_be_bytes(bytes)
    }

    /// The slot of an account's record.
    pub fn slot(account: Address) -> U256 {
        U256::from_be_slice(account.as_slice())
    }

    /// The account whose record a slot is.
    pub fn account_of(slot: U256) -> Address {
        Address::from_word(slot.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn records_survive_storage(rotation: u64, key: Option<(u8, [u8; 20])>) {
            let key = key.map(|(leaves, hash)| StoredKey { leaves, hash: hash.into() });
            let record = KeyRecord { rotation, key };
            prop_assert_eq!(KeyRecord::from_word(record.to_word()), Ok(record));
        }

        #[test]
        fn one_record_has_one_word(bytes: [u8; 32]) {
            let mut bytes = bytes;
            bytes[0] = VERSION;
            bytes[1] %= 3;
            let word = U256::from_be_bytes(bytes);
            if let Ok(record) = KeyRecord::from_word(word) {
                prop_assert_eq!(record.to_word(), word);
            }
        }
    }
}
