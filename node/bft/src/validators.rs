//! The validators of a genesis: their keys in the order that certificates use, and who gets their tips.

use crate::block::{key_bytes, read_key};
use alloy_primitives::{Address, B256, BlockHash};
use almanac_primitives::Genesis;
use commonware_consensus::simplex::scheme::ed25519::Scheme;
use commonware_cryptography::{
    Signer as _,
    ed25519::{PrivateKey, PublicKey},
};
use commonware_utils::{TryCollect as _, ordered::Set};
use std::collections::BTreeMap;

/// Who may propose and vote.
#[derive(Clone, Debug)]
pub struct ValidatorSet {
    keys: Set<PublicKey>,
    fee_recipients: BTreeMap<B256, Address>,
}

/// What is wrong with the validators of a genesis.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValidatorSetError {
    /// A network needs somebody.
    #[error("the genesis names no validators: a network needs at least 1")]
    Empty,
    /// Not a key.
    #[error("validator {name:?} has {given} as its public key, which is no ed25519 key")]
    NotAKey {
        /// The validator's name.
        name: String,
        /// What it has.
        given: B256,
    },
    /// One key, two validators.
    #[error("a validator's key occurs twice")]
    Duplicate,
    /// A private key that belongs to nobody here.
    #[error("the key {given} belongs to none of the {count} validators of the genesis")]
    NotAValidator {
        /// The public part of the key.
        given: B256,
        /// How many validators there are.
        count: usize,
    },
}

impl ValidatorSet {
    /// Reads the validators of a genesis.
    pub fn new(genesis: &Genesis) -> Result<Self, ValidatorSetError> {
        if genesis.validators.is_empty() {
            return Err(ValidatorSetError::Empty);
        }
        let mut keys = Vec::with_capacity(genesis.validators.len());
        for validator in &genesis.validators {
            let given = validator.public_key;
            let key = read_key(given);
            keys.push(key.ok_or_else(|| ValidatorSetError::NotAKey { name: validator.name.clone(), given })?);
        }
        let keys = keys.into_iter().try_collect().map_err(|_| ValidatorSetError::Duplicate)?;
        let fee_recipients =
            genesis.validators.iter().map(|validator| (validator.public_key, validator.fee_recipient));
        Ok(Self { keys, fee_recipients: fee_recipients.collect() })
    }

    /// The keys, in the order that certificates number them.
    pub fn keys(&self) -> &Set<PublicKey> {
        &self.keys
    }

    /// Who gets the tips of the blocks that a validator proposes.
    pub fn fee_recipient(&self, leader: &PublicKey) -> Option<Address> {
        self.fee_recipients.get(&key_bytes(leader)).copied()
    }

    /// Signs and checks votes as the validator with this key.
    pub fn signer(&self, namespace: &Namespace, key: &PrivateKey) -> Result<Scheme, ValidatorSetError> {
        Scheme::signer(&namespace.consensus(), self.keys.clone(), key.clone()).ok_or_else(|| {
            ValidatorSetError::NotAValidator { given: key_bytes(&key.public_key()), count: self.keys.len() }
        })
    }

    /// Checks votes and certificates, and signs nothing.
    pub fn verifier(&self, namespace: &Namespace) -> Scheme {
        Scheme::verifier(&namespace.consensus(), self.keys.clone())
    }
}

/// What keeps the signatures of one chain apart from those of any other: the hash of its block 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Namespace(pub BlockHash);

impl Namespace {
    /// Goes before every signed vote.
    pub fn consensus(&self) -> Vec<u8> {
        self.with("consensus")
    }

    /// Goes into the handshake between peers.
    pub fn network(&self) -> Vec<u8> {
        self.with("network")
    }

    fn with(&self, purpose: &str) -> Vec<u8> {
        [b"almanac-", purpose.as_bytes(), b"-", self.0.as_slice()].concat()
    }
}
