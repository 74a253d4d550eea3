//! What the keys of a schedule sign: EIP-712 typed data of the schedule service.

use crate::abi::IScheduleService::Body;
use alloy_primitives::{Address, B256, Bytes, U256};
use alloy_sol_types::{Eip712Domain, SolStruct as _, SolValue as _};
use almanac_primitives::{Chain, addresses::SCHEDULE_SERVICE};

alloy_sol_types::sol! {
    struct Call { address from; address to; uint256 value; bytes data; }
    struct Schedule {
        Call[] calls; uint64 gasLimit; uint256 maxFeePerGas; string memo; uint32 nonce; uint64 executionTime;
        bool waitForExpiry; address payer; bytes adminKey; uint32 round; uint64 deadline;
    }
    struct Delete { uint64 scheduleID; uint64 deadline; }
}

/// What beside the body a signature is bound to.
pub(crate) struct SignedFor {
    pub(crate) payer: Address,
    pub(crate) admin_key: Bytes,
    pub(crate) round: u32,
    pub(crate) deadline: u64,
}

/// The digest of a schedule with this body; `None` where that is not an encoded `Body`.
pub(crate) fn of_schedule(chain: &Chain, transaction_body: &[u8], signed_for: SignedFor) -> Option<B256> {
    let body = Body::abi_decode(transaction_body).ok()?;
    let SignedFor { payer, admin_key, round, deadline } = signed_for;
    let calls = body.calls.into_iter();
    let calls = calls.map(|call| Call { from: call.from, to: call.to, value: call.value, data: call.data });
    let schedule = Schedule {
        calls: calls.collect(),
        gasLimit: body.gasLimit,
        maxFeePerGas: body.maxFeePerGas,
        memo: body.memo,
        nonce: body.nonce,
        executionTime: body.executionTime,
        waitForExpiry: body.waitForExpiry,
        payer,
        adminKey: admin_key,
        round,
        deadline,
    };
    Some(schedule.eip712_signing_hash(&domain(chain)))
}

/// The digest of a deletion.
pub(crate) fn of_deletion(chain: &Chain, schedule: u64, deadline: u64) -> B256 {
    Delete { scheduleID: schedule, deadline }.eip712_signing_hash(&domain(chain))
}

fn domain(chain: &Chain) -> Eip712Domain {
    Eip712Domain {
        name: Some("Almanac".into()),
        version: Some("1".into()),
        chain_id: Some(U256::from(chain.id)),
        verifying_contract: Some(SCHEDULE_SERVICE),
        salt: Some(chain.genesis),
    }
}
