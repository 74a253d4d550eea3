//! A developer chain over the state of another chain, its origin.
//!
//! The chain's own store holds what genesis and its blocks wrote. What it lacks is read from the origin, at one block
//! that never changes. So a store must tell "removed here" from "never touched here": a removed account or slot is stored
//! as no bytes at all, which encodes neither.
//!
//! ```text
//!   stored here     what a reader sees
//!   a value         that value
//!   no bytes        nothing: a block of ours removed it
//!   nothing         what the origin has
//! ```

use crate::{
    addresses::{DEVELOPER, is_system},
    state::{StateKey, StateRead, StateReadError},
};
use alloy_primitives::{B256, Bytes};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The block whose state lies below a forked chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fork {
    /// Chain id of the origin.
    pub chain_id: u64,
    /// Height of the block.
    pub number: u64,
    /// Its hash. It commits to the state that this chain's own root does not cover.
    pub hash: B256,
}

/// The state of the origin. Its values never change.
#[derive(Clone)]
pub struct Origin(Arc<dyn StateRead + Send + Sync>);

impl Origin {
    /// An origin that is read through `state`.
    pub fn new(state: impl StateRead + Send + Sync + 'static) -> Self {
        Self(Arc::new(state))
    }

    /// Whether the origin answers for a key where nothing is stored. It never does for the chain's own accounts: doors,
    /// parameters, records and block hashes are ours.
    pub fn has(key: &StateKey) -> bool {
        match key {
            StateKey::Account(address) | StateKey::Slot(address, _) => {
                !is_system(*address) && *address != DEVELOPER
            }
            StateKey::Code(_) => true,
            StateKey::Body(_)
            | StateKey::Calendar(_)
            | StateKey::Meta(_)
            | StateKey::Nonce(..)
            | StateKey::NonceLog(..)
            | StateKey::AccountKey(_) => false,
        }
    }

    /// How a new value is stored. Code is found by its hash, which no other code has, so it needs no mark.
    pub fn to_stored(key: &StateKey, new: Option<Bytes>) -> Option<Bytes> {
        let is_marked = Self::has(key) && !matches!(key, StateKey::Code(_));
        new.or_else(|| is_marked.then(Bytes::new))
    }

    /// The values that readers see, given what is stored under the same keys. Asks the origin for all that it lacks at
    /// once.
    pub fn complete(
        &self,
        keys: &[StateKey],
        stored: Vec<Option<Bytes>>,
    ) -> Result<Vec<Option<Bytes>>, StateReadError> {
        let is_lacking = |(key, stored): &(&StateKey, &Option<Bytes>)| stored.is_none() && Self::has(key);
        let lacking: Vec<_> = keys.iter().zip(&stored).filter(is_lacking).map(|(key, _)| *key).collect();
        if lacking.len() > 1 {
            self.0.announce(&lacking);
        }
        keys.iter().zip(stored).map(|(key, stored)| self.seen(key, stored)).collect()
    }

    /// The same for one value.
    pub fn seen(&self, key: &StateKey, stored: Option<Bytes>) -> Result<Option<Bytes>, StateReadError> {
        match stored {
            _ if !Self::has(key) => Ok(stored),
            Some(stored) => Ok(Some(stored).filter(|stored| !stored.is_empty())),
            None => self.0.read(*key),
        }
    }

    /// Says that these keys are about to be read.
    pub fn announce(&self, keys: &[StateKey]) {
        self.0.announce(keys);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        addresses::{BLOCK_HASH_HISTORY, CRON_REGISTRY, LEDGER},
        state::Meta,
    };
    use alloy_primitives::{Address, U256};
    use std::sync::Mutex;

    /// Answers every key with one byte, and notes what was announced.
    #[derive(Default)]
    struct Below(Arc<Mutex<Vec<StateKey>>>);

    impl StateRead for Below {
        fn read(&self, _: StateKey) -> Result<Option<Bytes>, StateReadError> {
            Ok(Some(Bytes::from_static(b"o")))
        }

        fn announce(&self, keys: &[StateKey]) {
            self.0.lock().unwrap().extend_from_slice(keys);
        }
    }

    const ANYONE: StateKey = StateKey::Account(Address::repeat_byte(7));
    const SLOT: StateKey = StateKey::Slot(Address::repeat_byte(7), U256::ZERO);

    #[test]
    fn fork_01_what_is_stored_hides_the_origin() {
        let origin = Origin::new(Below::default());
        let (own, below) = (Bytes::from_static(b"s"), Bytes::from_static(b"o"));
        for key in [ANYONE, SLOT, StateKey::Code(B256::ZERO)] {
            assert_eq!(origin.seen(&key, None).unwrap(), Some(below.clone()), "{key:?}");
            assert_eq!(origin.seen(&key, Some(own.clone())).unwrap(), Some(own.clone()), "{key:?}");
        }
        for key in [ANYONE, SLOT] {
            let removed = Origin::to_stored(&key, None);
            assert!(removed.is_some(), "a removal leaves a mark");
            assert_eq!(origin.seen(&key, removed).unwrap(), None, "{key:?}");
        }
        assert_eq!(Origin::to_stored(&StateKey::Code(B256::ZERO), None), None);
    }

    #[test]
    fn fork_02_the_chains_own_values_never_come_from_the_origin() {
        let origin = Origin::new(Below::default());
        for key in [
            StateKey::Account(CRON_REGISTRY),
            StateKey::Account(DEVELOPER),
            StateKey::Slot(LEDGER, U256::from(1)),
            StateKey::Slot(BLOCK_HASH_HISTORY, U256::from(1)),
            StateKey::Calendar(0),
            StateKey::Meta(Meta::Genesis),
            StateKey::Nonce(Address::ZERO, 1),
            StateKey::AccountKey(Address::ZERO),
        ] {
            assert_eq!(origin.seen(&key, None).unwrap(), None, "{key:?}");
            assert_eq!(Origin::to_stored(&key, None), None, "{key:?}");
        }
    }

    #[test]
    fn fork_03_what_several_keys_lack_is_asked_for_at_once() {
        let below = Below::default();
        let announced = below.0.clone();
        let origin = Origin::new(below);
        let keys = [ANYONE, StateKey::Calendar(1), SLOT, StateKey::Account(Address::ZERO)];
        let own = Some(Bytes::from_static(b"s"));
        let seen = origin.complete(&keys, vec![None, None, own.clone(), None]).unwrap();
        let below = Some(Bytes::from_static(b"o"));
        assert_eq!(seen, [below.clone(), None, own, below]);
        assert_eq!(*announced.lock().unwrap(), [ANYONE, StateKey::Account(Address::ZERO)]);
    }
}
