//! How state is addressed, read and changed. Execution and storage meet here and nowhere else.

use crate::{
    codec::{DecodeError, Reader, Writer},
    ids::ScheduleId,
};
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, keccak256};
use std::{
    fmt,
    hash::{Hash, Hasher},
    mem,
};

/// Names one value of the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StateKey {
    /// An account's nonce, balance and code hash.
    Account(Address),
    /// One slot of an account's storage.
    Slot(Address, U256),
    /// Contract code by its hash.
    Code(B256),
    /// The immutable part of a schedule.
    Body(ScheduleId),
    /// A node of the calendar.
    Calendar(u64),
    /// A fact about the chain itself.
    Meta(Meta),
    /// When a sender's orderless transaction with a nonce expires.
    Nonce(Address, u64),
    /// Which orderless transactions expire in a second: part 0 counts the others.
    NonceLog(u64, u64),
    /// The key of an account that has a record of one.
    AccountKey(Address),
}

/// Facts about the chain that are part of its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Meta {
    /// Chain id, start and validators: binds the state root to the genesis file.
    Genesis = 0,
    /// How far the history of orderless nonces was collected.
    NonceSweep = 1,
}

/// Word by word: every read of execution looks a key up, and bytes are slower to hash.
impl Hash for StateKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        mem::discriminant(self).hash(state);
        match self {
            Self::Account(address) => hash_words(address.as_slice(), state),
            Self::Slot(address, slot) => {
                hash_words(address.as_slice(), state);
                slot.as_limbs().iter().for_each(|limb| state.write_u64(*limb));
            }
            Self::Code(hash) => hash_words(hash.as_slice(), state),
            Self::Body(ScheduleId(number)) | Self::Calendar(number) => state.write_u64(*number),
            Self::Meta(meta) => state.write_u8(*meta as u8),
            Self::Nonce(address, nonce) => {
                hash_words(address.as_slice(), state);
                state.write_u64(*nonce);
            }
            Self::NonceLog(second, part) => {
                state.write_u64(*second);
                state.write_u64(*part);
            }
            Self::AccountKey(address) => hash_words(address.as_slice(), state),
        }
    }
}

/// The lengths are fixed by the kind of key, so none is written.
fn hash_words<H: Hasher>(bytes: &[u8], state: &mut H) {
    let (words, rest) = bytes.as_chunks::<8>();
    words.iter().for_each(|word| state.write_u64(u64::from_ne_bytes(*word)));
    if let Some(half) = rest.first_chunk::<4>() {
        state.write_u32(u32::from_ne_bytes(*half));
    }
}

impl StateKey {
    /// The key under which the value is stored: a hash, so that nobody can choose where values cluster.
    pub fn hashed(&self) -> B256 {
        self.with_bytes(|bytes| keccak256(bytes))
    }

    /// Lends the key's canonical bytes: a tag for its kind, then its parts at their full width.
    pub fn with_bytes<T>(&self, take: impl FnOnce(&[u8]) -> T) -> T {
        let mut bytes = [0u8; 53];
        let length = match self {
            Self::Account(address) => {
                bytes[1..21].copy_from_slice(address.as_slice());
                21
            }
            Self::Slot(address, slot) => {
                bytes[0] = 1;
                bytes[1..21].copy_from_slice(address.as_slice());
                bytes[21..53].copy_from_slice(&slot.to_be_bytes::<32>());
                53
            }
            Self::Code(hash) => {
                bytes[0] = 2;
                bytes[1..33].copy_from_slice(hash.as_slice());
                33
            }
            Self::Body(schedule) => {
                bytes[0] = 3;
                bytes[1..9].copy_from_slice(&schedule.0.to_be_bytes());
                9
            }
            Self::Calendar(node) => {
                bytes[0] = 4;
                bytes[1..9].copy_from_slice(&node.to_be_bytes());
                9
            }
            Self::Meta(meta) => {
                bytes[0] = 5;
                bytes[1] = *meta as u8;
                2
            }
            Self::Nonce(address, nonce) => {
                bytes[0] = 6;
                bytes[1..21].copy_from_slice(address.as_slice());
                bytes[21..29].copy_from_slice(&nonce.to_be_bytes());
                29
            }
            Self::NonceLog(second, part) => {
                bytes[0] = 7;
                bytes[1..9].copy_from_slice(&second.to_be_bytes());
                bytes[9..17].copy_from_slice(&part.to_be_bytes());
                17
            }
            Self::AccountKey(address) => {
                bytes[0] = 8;
                bytes[1..21].copy_from_slice(address.as_slice());
                21
            }
        };
        take(&bytes[..length])
    }
}

/// The disk or the peer behind a state view failed; never the user's fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("state value {key:?} cannot be read: {reason}")]
pub struct StateReadError {
    /// What was asked for.
    pub key: StateKey,
    /// What the store said.
    pub reason: String,
    /// Whether an earlier failure has closed the store: it answers nothing any more until the node starts again.
    pub is_closed: bool,
}

impl StateReadError {
    /// A read that failed, and may succeed another time.
    pub fn failed(key: StateKey, reason: impl Into<String>) -> Self {
        Self { key, reason: reason.into(), is_closed: false }
    }

    /// A read of a store that an earlier failure has closed.
    pub fn closed(key: StateKey, reason: impl Into<String>) -> Self {
        Self { key, reason: reason.into(), is_closed: true }
    }
}

/// The state that a block starts from, as execution sees it.
pub trait StateRead {
    /// The value under a key, or `None` where there is none.
    fn read(&self, key: StateKey) -> Result<Option<Bytes>, StateReadError>;

    /// Says that these keys are about to be read, so that a store can fetch them side by side. Changes no answer.
    fn announce(&self, _keys: &[StateKey]) {}
}

impl<R: StateRead + ?Sized> StateRead for &R {
    fn read(&self, key: StateKey) -> Result<Option<Bytes>, StateReadError> {
        (**self).read(key)
    }

    fn announce(&self, keys: &[StateKey]) {
        (**self).announce(keys);
    }
}

/// One value that a block changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateChange {
    /// Which value.
    pub key: StateKey,
    /// What it was. History and undo need it, and execution has it at hand.
    pub old: Option<Bytes>,
    /// What it is now; `None` removes it.
    pub new: Option<Bytes>,
}

/// Everything that a block changed, ascending by key, each key once.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct StateDiff(Vec<StateChange>);

impl StateDiff {
    /// Sorts changes and drops those that change nothing.
    ///
    /// # Panics
    /// If a key occurs twice: that would make the result depend on the order of the input.
    pub fn new(mut changes: Vec<StateChange>) -> Self {
        changes.retain(|change| change.old != change.new);
        changes.sort_unstable_by_key(|change| change.key);
        assert!(changes.windows(2).all(|pair| pair[0].key < pair[1].key), "a diff names each key once");
        Self(changes)
    }

    /// The changes in key order.
    pub fn changes(&self) -> &[StateChange] {
        &self.0
    }
}

impl fmt::Debug for StateDiff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.0).finish()
    }
}

/// An account as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    /// Transactions sent, or for a contract: contracts created, plus one.
    pub nonce: u64,
    /// Its money.
    pub balance: U256,
    /// Hash of its code; [`KECCAK256_EMPTY`] where it has none.
    pub code_hash: B256,
    /// Whether a key record replaces the key that its address derives from.
    pub is_keyed: bool,
}

const ACCOUNT_VERSION: u8 = 1;
/// The same fields, of an account with a key record.
const KEYED_ACCOUNT_VERSION: u8 = 2;

impl Default for Account {
    fn default() -> Self {
        Self { nonce: 0, balance: U256::ZERO, code_hash: KECCAK256_EMPTY, is_keyed: false }
    }
}

impl Account {
    /// Stored form: version, nonce, balance, and the code hash where there is code. The version tells whether the
    /// account has a key record.
    pub fn encode(&self) -> Bytes {
        let version = if self.is_keyed { KEYED_ACCOUNT_VERSION } else { ACCOUNT_VERSION };
        let mut out = Writer::versioned(version, 73);
        out.u64(self.nonce);
        out.u256(self.balance);
        if self.code_hash != KECCAK256_EMPTY {
            out.b256(self.code_hash);
        }
        out.finish().into()
    }

    /// Reads the stored form.
    pub fn decode(encoded: &[u8]) -> Result<Self, DecodeError> {
        let is_keyed = encoded.first() == Some(&KEYED_ACCOUNT_VERSION);
        let version = if is_keyed { KEYED_ACCOUNT_VERSION } else { ACCOUNT_VERSION };
        let mut input = Reader::versioned(encoded, "account", version)?;
        let nonce = input.u64("nonce")?;
        let balance = input.u256("balance")?;
        let code_hash = match encoded.len() {
            41 => KECCAK256_EMPTY,
            _ => input.b256("code hash")?,
        };
        input.finish("account")?;
        if encoded.len() > 41 && code_hash == KECCAK256_EMPTY {
            return Err(DecodeError::UnknownValue { what: "hash of empty code", given: 0 });
        }
        Ok(Self { nonce, balance, code_hash, is_keyed })
    }
}

/// Stored form of a slot: big-endian without leading zeroes; a zero slot is not stored.
pub fn encode_slot(value: U256) -> Option<Bytes> {
    (!value.is_zero()).then(|| value.to_be_bytes_trimmed_vec().into())
}

/// Reads the stored form of a slot.
pub fn decode_slot(encoded: &[u8]) -> Result<U256, DecodeError> {
    match encoded {
        [] | [0, ..] => Err(DecodeError::UnknownValue { what: "slot with leading zeroes", given: 0 }),
        _ if encoded.len() > 32 => Err(DecodeError::TooLong { what: "slot", given: encoded.len(), max: 32 }),
        _ => Ok(U256::from_be_slice(encoded)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn accounts_survive_storage(nonce: u64, balance: [u8; 32], code: Option<[u8; 32]>, is_keyed: bool) {
            let account = Account {
                nonce,
                balance: U256::from_be_bytes(balance),
                code_hash: code.map_or(KECCAK256_EMPTY, B256::from),
                is_keyed,
            };
            prop_assert_eq!(Account::decode(&account.encode()), Ok(account));
        }

        #[test]
        fn slots_survive_storage(value: [u8; 32]) {
            let value = U256::from_be_bytes(value);
            prop_assert_eq!(encode_slot(value).map(|stored| decode_slot(&stored)), (!value.is_zero()).then_some(Ok(value)));
        }

        #[test]
        fn one_account_has_one_encoding(bytes in proptest::collection::vec(any::<u8>(), 0..90)) {
            if let Ok(account) = Account::decode(&bytes) {
                prop_assert_eq!(account.encode(), Bytes::from(bytes));
            }
        }

        #[test]
        fn one_slot_has_one_encoding(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(value) = decode_slot(&bytes) {
                prop_assert_eq!(encode_slot(value), Some(Bytes::from(bytes)));
            }
        }
    }

    #[test]
    fn keys_of_different_kinds_never_meet() {
        let keys = [
            StateKey::Account(Address::ZERO),
            StateKey::Slot(Address::ZERO, U256::ZERO),
            StateKey::Code(B256::ZERO),
            StateKey::Body(ScheduleId(0)),
            StateKey::Calendar(0),
            StateKey::Meta(Meta::Genesis),
            StateKey::Meta(Meta::NonceSweep),
            StateKey::Nonce(Address::ZERO, 0),
            StateKey::NonceLog(0, 0),
            StateKey::AccountKey(Address::ZERO),
        ];
        let hashes: std::collections::BTreeSet<_> = keys.iter().map(StateKey::hashed).collect();
        assert_eq!(hashes.len(), keys.len());
    }

    #[test]
    fn every_part_of_a_key_counts_in_its_hash() {
        use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
        let hash = |key: StateKey| BuildHasherDefault::<DefaultHasher>::default().hash_one(key);
        let mut seen = std::collections::BTreeSet::new();
        for bit in 0..160 {
            let address = Address::from_word(B256::from(U256::from(1) << bit));
            assert!(seen.insert(hash(StateKey::Account(address))), "address bit {bit}");
            assert!(seen.insert(hash(StateKey::Slot(address, U256::ZERO))), "slot address bit {bit}");
            assert!(seen.insert(hash(StateKey::Nonce(address, 0))), "nonce address bit {bit}");
            assert!(seen.insert(hash(StateKey::AccountKey(address))), "key address bit {bit}");
        }
        for bit in 0..256 {
            let word = U256::from(1) << bit;
            assert!(seen.insert(hash(StateKey::Slot(Address::ZERO, word))), "slot bit {bit}");
            assert!(seen.insert(hash(StateKey::Code(word.into()))), "code bit {bit}");
        }
        for bit in 0..64 {
            assert!(seen.insert(hash(StateKey::Body(ScheduleId(1 << bit)))), "body bit {bit}");
            assert!(seen.insert(hash(StateKey::Calendar(1 << bit))), "calendar bit {bit}");
            assert!(seen.insert(hash(StateKey::Nonce(Address::ZERO, 1 << bit))), "nonce bit {bit}");
            assert!(seen.insert(hash(StateKey::NonceLog(1 << bit, 0))), "log second bit {bit}");
            assert!(seen.insert(hash(StateKey::NonceLog(0, 1 << bit))), "log part bit {bit}");
        }
    }

    #[test]
    #[should_panic(expected = "a diff names each key once")]
    fn a_diff_refuses_the_same_key_twice() {
        let change = |new: &'static [u8]| StateChange {
            key: StateKey::Calendar(1),
            old: None,
            new: Some(Bytes::from_static(new)),
        };
        StateDiff::new(vec![change(b"a"), change(b"b")]);
    }
}
