//! Transactions that wait for signatures, from a test: bodies, signatures, calldata, what a call answered.

use super::{CHAIN, Person, call, native::Key};
use crate::{
    addresses::SCHEDULE_SERVICE,
    chain::Chain,
    ids::ScheduleId,
    receipt::{Outcome, Receipt},
    transaction::UserTransaction,
    transaction_body::{SignedFor, TransactionBody, deletion_hash},
};
use alloy_primitives::{Address, B256, Bytes, U256};
use alloy_sol_types::{SolCall as _, SolError as _, SolEvent as _, SolValue as _};

alloy_sol_types::sol!(
    #![sol(all_derives = true)]
    "../../contracts/IScheduleService.sol"
);
pub use IScheduleService::{
    Body, Call as ServiceCall, Info, Refused, ScheduleCreated, ScheduleDeleted, ScheduleExecuted,
    ScheduleExpired, ScheduleFound, ScheduleSigned, ScheduleTriggered, SignatureEntry, createScheduleCall,
    deleteScheduleCall, fundCall, fundOfCall, getScheduleInfoCall, hasScheduleCapacityCall, roundOfCall,
    signScheduleCall, withdrawCall,
};

/// Gas for a call and a run.
pub const PLENTY_GAS: u64 = 2_000_000;

/// A schedule as a test asks for it.
#[derive(Clone, Debug)]
pub struct Wish {
    pub body: Body,
    pub admin_key: Bytes,
    pub payer: Option<Address>,
    pub round: u32,
    pub deadline: u64,
}

/// One call without value or data.
pub fn service_call(from: Address, to: Address) -> ServiceCall {
    ServiceCall { from, to, value: U256::ZERO, data: Bytes::new() }
}

impl Wish {
    /// These calls, with gas and price for most tests.
    pub fn new(calls: Vec<ServiceCall>) -> Self {
        let body = Body {
            calls,
            gasLimit: 200_000,
            maxFeePerGas: U256::MAX,
            memo: "a test".to_owned(),
            nonce: 0,
            executionTime: 0,
            waitForExpiry: false,
        };
        Self { body, admin_key: Bytes::new(), payer: None, round: 0, deadline: u64::MAX }
    }

    pub fn bytes(&self) -> Bytes {
        self.body.abi_encode().into()
    }

    fn transaction_body(&self) -> TransactionBody {
        TransactionBody::decode(&self.bytes()).expect("the encoding of a body")
    }

    /// The signature of a key, on the chain of tests that have no block 0.
    pub fn signed(&self, key: impl Into<Key>) -> SignatureEntry {
        self.signed_on(&CHAIN, key)
    }

    /// The signature of a key on a chain.
    pub fn signed_on(&self, chain: &Chain, key: impl Into<Key>) -> SignatureEntry {
        let key = key.into();
        let signature = key.sign(self.signing_hash(chain));
        SignatureEntry { key: key.encoded(), signature, deadline: self.deadline }
    }

    /// What is signed.
    pub fn signing_hash(&self, chain: &Chain) -> B256 {
        let signed_for = SignedFor {
            payer: self.payer,
            admin_key: &self.admin_key,
            round: self.round,
            deadline: self.deadline,
        };
        self.transaction_body().signing_hash(chain, signed_for)
    }

    /// Calldata that creates it.
    pub fn create(&self, entries: Vec<SignatureEntry>) -> Vec<u8> {
        let (body, key) = (self.bytes(), self.admin_key.clone());
        let payer = self.payer.unwrap_or_default();
        createScheduleCall { transactionBody: body, adminKey: key, payer, sigMap: entries }.abi_encode()
    }
}

/// The signature of a key that deletes a schedule.
pub fn deletion(id: ScheduleId, key: impl Into<Key>, deadline: u64) -> SignatureEntry {
    let key = key.into();
    let signature = key.sign(deletion_hash(&CHAIN, id, deadline));
    SignatureEntry { key: key.encoded(), signature, deadline }
}

/// Calldata that signs a schedule.
pub fn signing(id: ScheduleId, entries: Vec<SignatureEntry>) -> Vec<u8> {
    signScheduleCall { scheduleID: id.0, sigMap: entries }.abi_encode()
}

/// Calldata that deletes a schedule.
pub fn deleting(id: ScheduleId, entries: Vec<SignatureEntry>) -> Vec<u8> {
    deleteScheduleCall { scheduleID: id.0, sigMap: entries }.abi_encode()
}

/// A transaction to the service.
pub fn to_service(from: Person, nonce: u64, input: Vec<u8>) -> UserTransaction {
    call(from, nonce, SCHEDULE_SERVICE, input, PLENTY_GAS)
}

/// What a call answered: 22, the code that it was refused with, or −1 if it ran out of gas.
pub fn code(receipt: &Receipt) -> i64 {
    match &receipt.outcome {
        Outcome::Success => 22,
        Outcome::Reverted(data) => Refused::abi_decode(data).map_or(-2, |refused| refused.responseCode),
        Outcome::Halted(_) => -1,
    }
}

/// The id in the log of a creation.
pub fn created(receipt: &Receipt) -> ScheduleId {
    let log =
        receipt.logs.iter().find_map(|log| ScheduleCreated::decode_log(log).ok()).expect("it was created");
    ScheduleId(log.id)
}
