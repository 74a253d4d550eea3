//! The schedule service from a test: bodies, signatures, calls, what came of them.

use super::{
    CHAIN, Person, Produced, TestChain, call, eip1559,
    native::{Key, sign_all},
    sign,
};
use alloy_primitives::{Address, Bytes, TxKind, U256};
use alloy_sol_types::{SolCall, SolError, SolEvent, SolValue as _};
use almanac_primitives::{
    Outcome, Receipt, ScheduleId, UserTransaction,
    addresses::SCHEDULE_SERVICE,
    transaction_body::{BodyCall, SignedFor, TransactionBody, deletion_hash},
};

alloy_sol_types::sol!(
    #![sol(all_derives = true)]
    "../../contracts/IScheduleService.sol"
);
#[allow(unused_imports, reason = "each test file uses a part of it")]
pub use IScheduleService::{
    Body, Call as ServiceCall, Info, Refused, ScheduleCreated, ScheduleDeleted, ScheduleExecuted,
    ScheduleExpired, ScheduleSigned, ScheduleTriggered, SignatureEntry, createScheduleCall,
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
        let Body { calls, gasLimit, maxFeePerGas, memo, nonce, executionTime, waitForExpiry } =
            self.body.clone();
        let calls = calls.into_iter().map(|call| {
            let ServiceCall { from, to, value, data } = call;
            BodyCall { from, to, value, data }
        });
        TransactionBody {
            calls: calls.collect(),
            gas_limit: gasLimit,
            max_fee_per_gas: maxFeePerGas,
            memo,
            nonce,
            execution_time: executionTime,
            wait_for_expiry: waitForExpiry,
        }
    }

    /// The signature of a key.
    pub fn signed(&self, key: impl Into<Key>) -> SignatureEntry {
        let key = key.into();
        let signed_for = SignedFor {
            payer: self.payer,
            admin_key: &self.admin_key,
            round: self.round,
            deadline: self.deadline,
        };
        let digest = self.transaction_body().signing_hash(&CHAIN, signed_for);
        let signature = sign_all(&[key], digest).remove(0);
        SignatureEntry { key: key.encoded(), signature, deadline: self.deadline }
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
    let signature = sign_all(&[key], deletion_hash(&CHAIN, id, deadline)).remove(0);
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

/// A transaction that fills the fund of an account.
pub fn funding(from: Person, nonce: u64, account: Address, value: u64) -> UserTransaction {
    let tx =
        eip1559(nonce, TxKind::Call(SCHEDULE_SERVICE), value, fundCall { account }.abi_encode(), 200_000);
    sign(tx, from.secret)
}

impl TestChain {
    /// Sends one call to the service in a block of its own.
    pub fn serve(&mut self, from: Person, input: Vec<u8>) -> Produced {
        let nonce = self.nonce(from.address);
        let produced = self.produce(vec![to_service(from, nonce, input)]);
        assert!(produced.refused.is_empty(), "{:?}", produced.refused);
        produced
    }

    /// Creates a schedule, which must succeed.
    pub fn create(
        &mut self,
        from: Person,
        wish: &Wish,
        entries: Vec<SignatureEntry>,
    ) -> (ScheduleId, Produced) {
        let produced = self.serve(from, wish.create(entries));
        assert_eq!(code(produced.receipt(0)), 22);
        (created(produced.receipt(0)), produced)
    }

    /// Signs a schedule and answers with the code.
    pub fn add(&mut self, from: Person, id: ScheduleId, entries: Vec<SignatureEntry>) -> i64 {
        code(self.serve(from, signing(id, entries)).receipt(0))
    }

    /// Deletes a schedule and answers with the code.
    pub fn delete(&mut self, from: Person, id: ScheduleId, entries: Vec<SignatureEntry>) -> i64 {
        code(self.serve(from, deleting(id, entries)).receipt(0))
    }

    pub fn info(&self, id: ScheduleId) -> (i64, Info) {
        let asked = getScheduleInfoCall { scheduleID: id.0 }.abi_encode();
        let result = self.call(Address::repeat_byte(0x77), SCHEDULE_SERVICE, asked);
        let answer = getScheduleInfoCall::abi_decode_returns(&result.output).unwrap();
        (answer.responseCode, answer.info)
    }

    pub fn round_of(&self, wish: &Wish) -> u32 {
        let (body, key) = (wish.bytes(), wish.admin_key.clone());
        let payer = wish.payer.unwrap_or_default();
        let asked = roundOfCall { transactionBody: body, adminKey: key, payer }.abi_encode();
        let result = self.call(Address::repeat_byte(0x77), SCHEDULE_SERVICE, asked);
        roundOfCall::abi_decode_returns(&result.output).unwrap()
    }

    pub fn fund_of(&self, account: Address) -> U256 {
        let result =
            self.call(Address::repeat_byte(0x77), SCHEDULE_SERVICE, fundOfCall { account }.abi_encode());
        fundOfCall::abi_decode_returns(&result.output).unwrap()
    }
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

/// The codes with which runs of a block ended, in order.
pub fn run_codes(produced: &Produced) -> Vec<(u64, i64)> {
    let logs = produced.output.receipts.iter().flat_map(|receipt| &receipt.logs);
    logs.filter_map(|log| ScheduleExecuted::decode_log(log).ok()).map(|log| (log.id, log.code)).collect()
}
