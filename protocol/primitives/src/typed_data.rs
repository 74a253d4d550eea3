//! The hash of a struct by EIP-712: keccak-256 over its type's hash and one word per field.

use alloy_primitives::{Address, B256, U256, keccak256};

/// The words of one struct.
pub(crate) struct Words(Vec<u8>);

impl Words {
    /// Starts a struct with this type, which names its fields and, after them, the types of structs inside.
    pub(crate) fn of_type(name: &str) -> Self {
        Self(keccak256(name).to_vec())
    }

    pub(crate) fn word(&mut self, word: B256) {
        self.0.extend_from_slice(word.as_slice());
    }

    pub(crate) fn number(&mut self, number: impl Into<u128>) {
        self.uint(U256::from(number.into()));
    }

    pub(crate) fn uint(&mut self, number: U256) {
        self.word(number.into());
    }

    pub(crate) fn address(&mut self, address: Address) {
        self.word(address.into_word());
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.word(keccak256(bytes));
    }

    pub(crate) fn hash(&self) -> B256 {
        keccak256(&self.0)
    }
}

/// How a string stands in a struct.
pub(crate) fn text_hash(text: &str) -> B256 {
    keccak256(text)
}
