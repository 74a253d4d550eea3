//! Native transactions and keys of both curves.

use super::{CHAIN, Person};
use crate::{
    chain::Chain,
    keys::{KeyTree, Leaf, SecretKey, rotation_digest},
    native::{Kind, NativeCall, NativeTransaction},
    transaction::UserTransaction,
};
use accounts::IAccounts::rotateKeyCall;
use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use alloy_sol_types::SolCall as _;

mod accounts {
    alloy_sol_types::sol!("../../contracts/IAccounts.sol");
}

/// Somebody with an Ed25519 key.
#[derive(Clone, Copy, Debug)]
pub struct EdPerson {
    secret: B256,
    pub key: B256,
}

/// A key that signs digests.
#[derive(Clone, Copy, Debug)]
pub enum Key {
    Secp256k1(Person),
    Ed25519(EdPerson),
}

/// The n-th person with an Ed25519 key.
pub fn ed_person(n: u64) -> EdPerson {
    let secret = keccak256([&b"ed25519"[..], &n.to_be_bytes()].concat());
    let Leaf::Ed25519(key) = SecretKey::ed25519(secret).leaf() else { unreachable!("of that curve") };
    EdPerson { secret, key }
}

impl EdPerson {
    pub fn address(&self) -> Address {
        Leaf::Ed25519(self.key).account()
    }
}

impl From<Person> for Key {
    fn from(person: Person) -> Self {
        Self::Secp256k1(person)
    }
}

impl From<EdPerson> for Key {
    fn from(person: EdPerson) -> Self {
        Self::Ed25519(person)
    }
}

impl Key {
    pub fn leaf(&self) -> Leaf {
        match self {
            Self::Secp256k1(person) => Leaf::Secp256k1(person.address),
            Self::Ed25519(person) => Leaf::Ed25519(person.key),
        }
    }

    pub fn address(&self) -> Address {
        self.leaf().account()
    }

    /// Its bytes as a key of one leaf.
    pub fn encoded(&self) -> Bytes {
        KeyTree::single(self.leaf()).encoded().clone()
    }

    pub fn sign(&self, digest: B256) -> Bytes {
        let secret = match self {
            Self::Secp256k1(person) => SecretKey::secp256k1(person.secret).expect("a hash is a key"),
            Self::Ed25519(person) => SecretKey::ed25519(person.secret),
        };
        secret.sign(digest)
    }
}

/// A threshold over keys.
pub fn threshold(needed: u8, children: &[Bytes]) -> Bytes {
    let count = u8::try_from(children.len()).expect("few children");
    let mut encoded = vec![3, count, needed];
    children.iter().for_each(|child| encoded.extend_from_slice(child));
    encoded.into()
}

/// Signatures of all these keys, in the order that a transaction needs.
pub fn sign_all(keys: &[Key], digest: B256) -> Vec<Bytes> {
    let mut keys = keys.to_vec();
    keys.sort_by_key(Key::leaf);
    keys.iter().map(|key| key.sign(digest)).collect()
}

/// Calldata that rotates the key of `account` for the n-th time, with proofs of `keys`.
pub fn rotation_on(chain: &Chain, account: Address, key: &Bytes, number: u64, keys: &[Key]) -> Bytes {
    let digest = rotation_digest(chain, account, key, number);
    rotateKeyCall { key: key.clone(), proofs: sign_all(keys, digest) }.abi_encode().into()
}

pub fn native_call(to: Address, value: u64, input: impl Into<Bytes>) -> NativeCall {
    NativeCall { to: Some(to), value: U256::from(value), input: input.into() }
}

/// A transaction with a sequence number, to fill in and sign.
pub fn native(sender: Address, nonce: u64, calls: Vec<NativeCall>) -> NativeTransaction {
    NativeTransaction {
        chain_id: CHAIN.id,
        sender,
        kind: Kind::Sequence,
        nonce,
        expiration: 0,
        max_priority_fee_per_gas: 1_000_000_000,
        max_fee_per_gas: 20_000_000_000,
        gas_limit: 1_000_000,
        calls,
        fee_payer: None,
        signatures: Vec::new(),
        fee_payer_signatures: Vec::new(),
    }
}

/// An orderless one.
pub fn orderless(sender: Address, nonce: u64, expiration: u64, calls: Vec<NativeCall>) -> NativeTransaction {
    NativeTransaction { kind: Kind::Orderless, expiration, ..native(sender, nonce, calls) }
}

pub fn sign_native(transaction: NativeTransaction, keys: &[Key]) -> UserTransaction {
    sign_native_on(&CHAIN, transaction, keys, &[])
}

/// Signs for sender and fee payer.
pub fn sign_native_on(
    chain: &Chain,
    mut transaction: NativeTransaction,
    keys: &[Key],
    payer_keys: &[Key],
) -> UserTransaction {
    transaction.signatures = sign_all(keys, transaction.signing_hash(chain));
    transaction.fee_payer_signatures = sign_all(payer_keys, transaction.fee_payer_signing_hash(chain));
    UserTransaction::native_signed(transaction).expect("within bounds")
}

/// A person's orderless transfer.
pub fn orderless_transfer(
    from: Person,
    nonce: u64,
    expiration: u64,
    to: Address,
    value: u64,
) -> UserTransaction {
    let transaction = orderless(from.address, nonce, expiration, vec![native_call(to, value, Bytes::new())]);
    sign_native(NativeTransaction { gas_limit: 23_000, ..transaction }, &[from.into()])
}
