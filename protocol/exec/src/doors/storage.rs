//! Typed slots of a door's storage.

use alloy_primitives::{Address, U256};
use std::marker::PhantomData;

/// A slot of a door's storage that holds a `T`.
pub(super) struct Slot<T>(U256, PhantomData<T>);

impl<T> Slot<T> {
    pub(super) const fn at(key: u64) -> Self {
        Self(U256::from_limbs([key, 0, 0, 0]), PhantomData)
    }

    pub(super) fn key(&self) -> U256 {
        self.0
    }
}

impl<T> Clone for Slot<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Slot<T> {}

/// A type that fits one slot.
pub(super) trait SlotValue: Copy {
    fn to_word(&self) -> U256;
    fn from_word(word: U256) -> Self;
}

impl SlotValue for U256 {
    fn to_word(&self) -> U256 {
        *self
    }

    fn from_word(word: U256) -> Self {
        word
    }
}

impl SlotValue for Address {
    fn to_word(&self) -> U256 {
        self.into_word().into()
    }

    fn from_word(word: U256) -> Self {
        Self::from_word(word.into())
    }
}
