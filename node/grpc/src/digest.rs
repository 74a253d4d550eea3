//! What the keys of a schedule sign, from the bytes that clients have.

use crate::abi::IScheduleService::{Body, Call};
use alloy_primitives::B256;
use alloy_sol_types::SolValue as _;
use almanac_primitives::{
    Chain,
    transaction_body::{BodyCall, SignedFor, TransactionBody},
};

/// The digest of a schedule with this body; `None` where that is not an encoded `Body`.
pub(crate) fn of_schedule(chain: &Chain, transaction_body: &[u8], signed_for: SignedFor<'_>) -> Option<B256> {
    let body = Body::abi_decode(transaction_body).ok()?;
    let calls = body.calls.into_iter();
    let calls = calls.map(|Call { from, to, value, data }| BodyCall { from, to, value, data });
    let body = TransactionBody {
        calls: calls.collect(),
        gas_limit: body.gasLimit,
        max_fee_per_gas: body.maxFeePerGas,
        memo: body.memo,
        nonce: body.nonce,
        execution_time: body.executionTime,
        wait_for_expiry: body.waitForExpiry,
    };
    Some(body.signing_hash(chain, signed_for))
}
