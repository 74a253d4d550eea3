//! Accounts with keys, transactions and small contracts, shared by the tests of every crate.
//!
//! Only built with the feature `testing`; no node uses it.
#![expect(missing_docs, reason = "names and tests say it")]

pub mod contracts;
pub mod native;
pub mod signed;

use crate::{
    addresses::DEVELOPER,
    chain::Chain,
    genesis::{Allocation, Genesis},
    params::DEVELOPER_TREASURY,
    transaction::{RecoveredTransaction, Unsigned, UserTransaction},
    units::{TimestampMs, Wei},
};
use alloy_consensus::{
    SignableTransaction, Signed, TxEip1559, TxEip2930, TxEip7702, TxLegacy, crypto::secp256k1::sign_message,
};
use alloy_eips::{
    eip2718::Encodable2718,
    eip2930::AccessList,
    eip7702::{Authorization, SignedAuthorization},
};
use alloy_primitives::{Address, B256, Bytes, Signature, TxKind, U256, address, keccak256};
use std::collections::BTreeMap;

pub const CHAIN_ID: u64 = 31_337;
/// The chain of tests that have no block 0.
pub const CHAIN: Chain = Chain { id: CHAIN_ID, genesis: B256::repeat_byte(0x60) };
pub const GOVERNANCE: Address = address!("0x00000000000000000000000000000000000000aa");
pub const FEE_RECIPIENT: Address = address!("0x00000000000000000000000000000000000000fe");
pub const START: TimestampMs = TimestampMs(1_700_000_000_000);

/// A person with a key.
#[derive(Clone, Copy, Debug)]
pub struct Person {
    pub secret: B256,
    pub address: Address,
}

/// The n-th person.
pub fn person(n: u64) -> Person {
    let secret = keccak256(n.to_be_bytes());
    let signature = sign_message(secret, B256::ZERO).expect("a hash is a key");
    let address = signature.recover_address_from_prehash(&B256::ZERO).expect("just signed");
    Person { secret, address }
}

/// Signs any kind of transaction.
pub fn sign<T>(tx: T, secret: B256) -> UserTransaction
where
    T: SignableTransaction<Signature>,
    Signed<T>: Encodable2718,
{
    let signature = sign_message(secret, tx.signature_hash()).expect("a hash is a key");
    UserTransaction::decode(&tx.into_signed(signature).encoded_2718()).expect("just encoded")
}

/// Makes any kind of transaction in someone's name.
pub fn impersonate(sender: Address, tx: impl Into<Unsigned>) -> UserTransaction {
    UserTransaction::impersonate(sender, tx.into()).expect("of a kind that is taken")
}

/// An EIP-1559 transaction to fill in.
pub fn eip1559(nonce: u64, to: TxKind, value: u64, input: impl Into<Bytes>, gas_limit: u64) -> TxEip1559 {
    TxEip1559 {
        chain_id: CHAIN_ID,
        nonce,
        gas_limit,
        max_fee_per_gas: 20_000_000_000,
        max_priority_fee_per_gas: 1_000_000_000,
        to,
        value: U256::from(value),
        input: input.into(),
        ..Default::default()
    }
}

/// A legacy transfer to fill in.
pub fn legacy(nonce: u64, to: Address, value: u64) -> TxLegacy {
    TxLegacy {
        chain_id: Some(CHAIN_ID),
        nonce,
        gas_price: 20_000_000_000,
        gas_limit: 21_000,
        to: TxKind::Call(to),
        value: U256::from(value),
        input: Bytes::new(),
    }
}

pub fn eip2930(nonce: u64, to: Address, access_list: AccessList, gas_limit: u64) -> TxEip2930 {
    TxEip2930 {
        chain_id: CHAIN_ID,
        nonce,
        gas_price: 20_000_000_000,
        gas_limit,
        to: TxKind::Call(to),
        access_list,
        ..Default::default()
    }
}

pub fn eip7702(nonce: u64, to: Address, authorization_list: Vec<SignedAuthorization>, gas: u64) -> TxEip7702 {
    TxEip7702 {
        chain_id: CHAIN_ID,
        nonce,
        gas_limit: gas,
        max_fee_per_gas: 20_000_000_000,
        max_priority_fee_per_gas: 1_000_000_000,
        to,
        authorization_list,
        ..Default::default()
    }
}

/// What `authority` signs to run the code of `delegate` (EIP-7702); the zero address takes it back.
pub fn authorize(authority: Person, nonce: u64, delegate: Address) -> SignedAuthorization {
    let authorization = Authorization { chain_id: U256::from(CHAIN_ID), address: delegate, nonce };
    let signature = sign_message(authority.secret, authorization.signature_hash()).expect("a hash is a key");
    authorization.into_signed(signature)
}

pub fn transfer(from: Person, nonce: u64, to: Address, value: u64) -> UserTransaction {
    sign(eip1559(nonce, TxKind::Call(to), value, Bytes::new(), 21_000), from.secret)
}

pub fn call(from: Person, nonce: u64, to: Address, input: impl Into<Bytes>, gas: u64) -> UserTransaction {
    sign(eip1559(nonce, TxKind::Call(to), 0, input, gas), from.secret)
}

pub fn recovered(transaction: UserTransaction) -> RecoveredTransaction {
    RecoveredTransaction::recover(transaction, &CHAIN).expect("signed by a person")
}

/// Ten persons with 1,000 coins each, and the test contracts.
pub fn genesis() -> Genesis {
    let coins = Wei(U256::from(1_000) * U256::from(10).pow(U256::from(18)));
    let mut allocations: BTreeMap<_, _> =
        (0..10).map(|n| (person(n).address, Allocation { balance: coins, ..Default::default() })).collect();
    for (address, code) in contracts::all() {
        allocations.insert(address, Allocation { code, ..Default::default() });
    }
    Genesis {
        chain_id: CHAIN_ID,
        timestamp_ms: START,
        governance: GOVERNANCE,
        parameters: BTreeMap::new(),
        validators: Vec::new(),
        developer: false,
        fork: None,
        allocations,
    }
}

/// The same, as a developer's chain.
pub fn developer_genesis() -> Genesis {
    let mut genesis = Genesis { developer: true, ..genesis() };
    let treasury = Allocation { balance: DEVELOPER_TREASURY, ..Default::default() };
    genesis.allocations.insert(DEVELOPER, treasury);
    genesis
}
