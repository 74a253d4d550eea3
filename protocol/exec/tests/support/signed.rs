//! The schedule service from a test: what it answers, what came of runs.

use super::{Person, Produced, TestChain, eip1559, sign};
use alloy_primitives::{Address, TxKind, U256};
use alloy_sol_types::{SolCall as _, SolEvent as _};
pub use almanac_primitives::testing::signed::*;
use almanac_primitives::{ScheduleId, UserTransaction, addresses::SCHEDULE_SERVICE};

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

/// The codes with which runs of a block ended, in order.
pub fn run_codes(produced: &Produced) -> Vec<(u64, i64)> {
    let logs = produced.output.receipts.iter().flat_map(|receipt| &receipt.logs);
    logs.filter_map(|log| ScheduleExecuted::decode_log(log).ok()).map(|log| (log.id, log.code)).collect()
}
