//! A transaction that waits for signatures: what it does, and what its signers sign.

mod encoding;

use crate::{
    addresses::SCHEDULE_SERVICE,
    chain::Chain,
    ids::ScheduleId,
    typed_data::{Words, text_hash},
};
use alloy_primitives::{Address, B256, Bytes, U256, keccak256};

const CALL: &str = "Call(address from,address to,uint256 value,bytes data)";
const SCHEDULE: &str = "Schedule(Call[] calls,uint64 gasLimit,uint256 maxFeePerGas,string memo,uint32 nonce,\
                        uint64 executionTime,bool waitForExpiry,address payer,bytes adminKey,uint32 round,\
                        uint64 deadline)";
const DELETE: &str = "Delete(uint64 scheduleID,uint64 deadline)";

/// A list of calls that run together or not at all, and on which terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionBody {
    /// The calls, in order.
    pub calls: Vec<BodyCall>,
    /// Gas that all of them may use, intrinsic gas included.
    pub gas_limit: u64,
    /// The base fee above which it does not run.
    pub max_fee_per_gas: U256,
    /// For people.
    pub memo: String,
    /// Makes equal bodies different schedules (HEDERA-10).
    pub nonce: u32,
    /// The second at which it runs or expires; zero if it has none.
    pub execution_time: u64,
    /// Whether it waits for that second, although all have signed.
    pub wait_for_expiry: bool,
}

/// One call of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyCall {
    /// `msg.sender` and `tx.origin`.
    pub from: Address,
    /// The contract that is called.
    pub to: Address,
    /// Value that goes with the call.
    pub value: U256,
    /// Calldata.
    pub data: Bytes,
}

/// What beside the body a signature is bound to (HEDERA-11).
#[derive(Clone, Copy, Debug)]
pub struct SignedFor<'k> {
    /// Who pays, unless it is the creator.
    pub payer: Option<Address>,
    /// Whose signature deletes it; empty if nobody's does.
    pub admin_key: &'k [u8],
    /// How often a schedule of this identity was executed or deleted before.
    pub round: u32,
    /// The last second at which the signature is accepted.
    pub deadline: u64,
}

impl TransactionBody {
    /// What a signer signs, as EIP-712 typed data.
    pub fn signing_hash(&self, chain: &Chain, signed_for: SignedFor<'_>) -> B256 {
        let mut words = Words::of_type(&format!("{SCHEDULE}{CALL}"));
        let calls: Vec<u8> = self.calls.iter().flat_map(|call| call_hash(call).0).collect();
        words.word(keccak256(calls));
        words.number(self.gas_limit);
        words.uint(self.max_fee_per_gas);
        words.word(text_hash(&self.memo));
        words.number(self.nonce);
        words.number(self.execution_time);
        words.number(u8::from(self.wait_for_expiry));
        words.address(signed_for.payer.unwrap_or_default());
        words.bytes(signed_for.admin_key);
        words.number(signed_for.round);
        words.number(signed_for.deadline);
        chain.signing_hash(SCHEDULE_SERVICE, words.hash())
    }
}

fn call_hash(call: &BodyCall) -> B256 {
    let mut words = Words::of_type(CALL);
    words.address(call.from);
    words.address(call.to);
    words.uint(call.value);
    words.bytes(&call.data);
    words.hash()
}

/// What an admin key signs to delete a schedule. Ids are never used twice, so neither is this.
pub fn deletion_hash(chain: &Chain, schedule: ScheduleId, deadline: u64) -> B256 {
    let mut words = Words::of_type(DELETE);
    words.number(schedule.0);
    words.number(deadline);
    chain.signing_hash(SCHEDULE_SERVICE, words.hash())
}

/// The hash by which a pending schedule of the same body, payer and admin key is found (HEDERA-04). Each part has its
/// length in front, so that no two identities share bytes.
pub fn identity_hash(transaction_body: &[u8], payer: Option<Address>, admin_key: &[u8]) -> B256 {
    let payer: &[u8] = payer.as_ref().map_or(&[], |payer| payer.as_slice());
    let parts = [transaction_body, payer, admin_key];
    let mut bytes = Vec::with_capacity(parts.iter().map(|part| part.len() + 8).sum());
    for part in parts {
        bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
        bytes.extend_from_slice(part);
    }
    keccak256(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_sol_types::{Eip712Domain, SolStruct, sol};

    sol! {
        struct Call { address from; address to; uint256 value; bytes data; }
        struct Schedule {
            Call[] calls; uint64 gasLimit; uint256 maxFeePerGas; string memo; uint32 nonce; uint64 executionTime;
            bool waitForExpiry; address payer; bytes adminKey; uint32 round; uint64 deadline;
        }
        struct Delete { uint64 scheduleID; uint64 deadline; }
    }

    const CHAIN: Chain = Chain { id: 7, genesis: B256::repeat_byte(9) };

    fn domain() -> Eip712Domain {
        Eip712Domain {
            name: Some("Almanac".into()),
            version: Some("1".into()),
            chain_id: Some(U256::from(CHAIN.id)),
            verifying_contract: Some(SCHEDULE_SERVICE),
            salt: Some(CHAIN.genesis),
        }
    }

    fn body() -> TransactionBody {
        let call = |n: u8| BodyCall {
            from: Address::repeat_byte(n),
            to: Address::repeat_byte(n + 1),
            value: U256::from(n),
            data: Bytes::from(vec![n; 3]),
        };
        TransactionBody {
            calls: vec![call(1), call(5)],
            gas_limit: 100_000,
            max_fee_per_gas: U256::MAX,
            memo: "rent".to_owned(),
            nonce: 3,
            execution_time: 11,
            wait_for_expiry: true,
        }
    }

    /// HEDERA-11: an independent implementation of EIP-712 computes the same digest.
    #[test]
    fn hedera_11_digests_are_those_of_eip_712() {
        let (body, payer) = (body(), Address::repeat_byte(8));
        for payer in [None, Some(payer)] {
            let signed_for = SignedFor { payer, admin_key: &[1, 2], round: 4, deadline: 99 };
            let calls = body.calls.iter().cloned();
            let calls =
                calls.map(|call| Call { from: call.from, to: call.to, value: call.value, data: call.data });
            let typed = Schedule {
                calls: calls.collect(),
                gasLimit: body.gas_limit,
                maxFeePerGas: body.max_fee_per_gas,
                memo: body.memo.clone(),
                nonce: body.nonce,
                executionTime: body.execution_time,
                waitForExpiry: body.wait_for_expiry,
                payer: payer.unwrap_or_default(),
                adminKey: Bytes::from_static(&[1, 2]),
                round: 4,
                deadline: 99,
            };
            assert_eq!(body.signing_hash(&CHAIN, signed_for), typed.eip712_signing_hash(&domain()));
        }
        let typed = Delete { scheduleID: 5, deadline: 6 };
        assert_eq!(deletion_hash(&CHAIN, ScheduleId(5), 6), typed.eip712_signing_hash(&domain()));
    }

    /// HEDERA-04: what is before a boundary cannot move behind it.
    #[test]
    fn hedera_04_no_two_identities_share_a_hash() {
        let payer = Some(Address::repeat_byte(1));
        let twenty = [1u8; 20];
        let all = [
            identity_hash(b"ab", None, b""),
            identity_hash(b"a", None, b"b"),
            identity_hash(b"", None, b"ab"),
            identity_hash(b"ab", payer, b""),
            identity_hash(b"ab", None, &twenty),
        ];
        assert!((0..all.len()).all(|i| (0..i).all(|j| all[i] != all[j])));
    }
}
