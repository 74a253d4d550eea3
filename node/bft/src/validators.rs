//! The validators of a genesis: their keys in the order that certificates use, and the recipients of their tips.

use crate::{
    block::{key_bytes, read_key},
    keys::is_everyones,
};
use alloy_primitives::{Address, B256, BlockHash};
use almanac_primitives::Genesis;
use commonware_consensus::simplex::scheme::ed25519::Scheme;
use commonware_cryptography::{
    Signer as _,
    ed25519::{PrivateKey, PublicKey},
};
use commonware_utils::{TryCollect as _, ordered::Set};
use std::collections::BTreeMap;

/// The validators, who may propose and vote.
#[derive(Clone, Debug)]
pub struct ValidatorSet {
    keys: Set<PublicKey>,
    fee_recipients: BTreeMap<B256, Address>,
}

/// What is wrong with the validators of a genesis.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValidatorSetError {
    /// There are no validators.
    #[error("the genesis names no validators: a network needs at least 1")]
    Empty,
    /// A key is invalid.
    #[error("validator {name:?} has the public key {given}, which is not an ed25519 key")]
    NotAKey {
        /// The validator's name.
        name: String,
        /// The given key.
        given: B256,
    },
    /// A key with which anyone can sign.
    #[error(
        "validator {name:?} has {given} as its public key, with which anyone can sign: make one with almanac keys new"
    )]
    Everyones {
        /// The validator's name.
        name: String,
        /// The given key.
        given: B256,
    },
    /// Two validators have the same key.
    #[error("a validator's key occurs twice")]
    Duplicate,
    /// The private key does not belong to a validator.
    #[error("the key {given} belongs to none of the {count} validators of the genesis")]
    NotAValidator {
        /// The public part of the key.
        given: B256,
        /// How many validators there are.
        count: usize,
    },
}

impl ValidatorSet {
    /// Decodes the validators of a genesis.
    pub fn new(genesis: &Genesis) -> Result<Self, ValidatorSetError> {
        if genesis.validators.is_empty() {
            return Err(ValidatorSetError::Empty);
        }
        let mut keys = Vec::with_capacity(genesis.validators.len());
        for validator in &genesis.validators {
            let (given, name) = (validator.public_key, || validator.name.clone());
            let key = read_key(given).ok_or_else(|| ValidatorSetError::NotAKey { name: name(), given })?;
            if is_everyones(&key) {
                return Err(ValidatorSetError::Everyones { name: name(), given });
            }
            keys.push(key);
        }
        let keys = keys.into_iter().try_collect().map_err(|_| ValidatorSetError::Duplicate)?;
        let fee_recipients =
            genesis.validators.iter().map(|validator| (validator.public_key, validator.fee_recipient));
        Ok(Self { keys, fee_recipients: fee_recipients.collect() })
    }

    /// The keys, in the order of their indices in certificates.
    pub fn keys(&self) -> &Set<PublicKey> {
        &self.keys
    }

    /// The recipient of the tips of a validator's blocks.
    pub fn fee_recipient(&self, leader: &PublicKey) -> Option<Address> {
        self.fee_recipients.get(&key_bytes(leader)).copied()
    }

    /// A scheme that signs and verifies votes as the validator with this key.
    pub fn signer(&self, namespace: &Namespace, key: &PrivateKey) -> Result<Scheme, ValidatorSetError> {
        Scheme::signer(&namespace.consensus(), self.keys.clone(), key.clone()).ok_or_else(|| {
            ValidatorSetError::NotAValidator { given: key_bytes(&key.public_key()), count: self.keys.len() }
        })
    }

    /// A scheme that verifies votes and certificates, and cannot sign.
    pub fn verifier(&self, namespace: &Namespace) -> Scheme {
        Scheme::verifier(&namespace.consensus(), self.keys.clone())
    }
}

/// Separates the signatures of one chain from those of any other: the hash of its block 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Namespace(pub BlockHash);

impl Namespace {
    /// The prefix of every signed vote.
    pub fn consensus(&self) -> Vec<u8> {
        self.with("consensus")
    }

    /// The namespace of the handshake between peers.
    pub fn network(&self) -> Vec<u8> {
        self.with("network")
    }

    fn with(&self, purpose: &str) -> Vec<u8> {
        [b"almanac-", purpose.as_bytes(), b"-", self.0.as_slice()].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::ValidatorKey;
    use alloy_primitives::b256;
    use almanac_primitives::{genesis::Validator, testing};

    fn set(keys: &[B256]) -> Result<ValidatorSet, ValidatorSetError> {
        let validator = |(number, key): (usize, &B256)| Validator {
            name: format!("v{number}"),
            public_key: *key,
            fee_recipient: Address::ZERO,
        };
        let validators = keys.iter().enumerate().map(validator).collect();
        ValidatorSet::new(&Genesis { validators, ..testing::genesis() })
    }

    /// The points of small order, and another encoding of one of them: anyone can sign anything with these.
    const EVERYONES: [B256; 5] = [
        B256::ZERO,
        b256!("0100000000000000000000000000000000000000000000000000000000000000"),
        b256!("ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"),
        b256!("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"),
        b256!("eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"),
    ];

    #[test]
    fn a_key_with_which_anyone_can_sign_is_no_validators() {
        let own = ValidatorKey::from_secret(&B256::repeat_byte(1)).public();
        assert_eq!(set(&[own]).unwrap().keys().len(), 1);
        for given in EVERYONES {
            let refused = set(&[own, given]).unwrap_err();
            assert_eq!(refused, ValidatorSetError::Everyones { name: "v1".to_owned(), given });
        }
    }

    #[test]
    fn what_is_no_set_of_keys_is_refused() {
        let own = ValidatorKey::from_secret(&B256::repeat_byte(1)).public();
        assert_eq!(set(&[]).unwrap_err(), ValidatorSetError::Empty);
        assert_eq!(set(&[own, own]).unwrap_err(), ValidatorSetError::Duplicate);
        let mut all = (0..=u8::MAX).map(B256::repeat_byte);
        let given = all.find(|bytes| read_key(*bytes).is_none()).expect("half of all bytes are no point");
        let refused = set(&[own, given]).unwrap_err();
        assert_eq!(refused, ValidatorSetError::NotAKey { name: "v1".to_owned(), given });
        let stranger = ValidatorKey::from_secret(&B256::repeat_byte(2));
        let refused = set(&[own]).unwrap().signer(&Namespace(B256::ZERO), stranger.private()).unwrap_err();
        assert_eq!(refused, ValidatorSetError::NotAValidator { given: stranger.public(), count: 1 });
    }
}
