//! What is signed, as bytes and as the service's interface has it.

use super::IScheduleService::{Body, Call};
use alloy_primitives::Bytes;
use alloy_sol_types::SolValue as _;
use almanac_primitives::transaction_body::{BodyCall, TransactionBody};
use anyhow::Context as _;

/// `abi.encode(Body)`.
pub(super) fn encode(body: &TransactionBody) -> Bytes {
    let calls = body.calls.iter().cloned();
    let calls = calls.map(|BodyCall { from, to, value, data }| Call { from, to, value, data });
    let body = Body {
        calls: calls.collect(),
        gasLimit: body.gas_limit,
        maxFeePerGas: body.max_fee_per_gas,
        memo: body.memo.clone(),
        nonce: body.nonce,
        executionTime: body.execution_time,
        waitForExpiry: body.wait_for_expiry,
    };
    body.abi_encode().into()
}

/// Reads what a node answers.
pub(super) fn decode(encoded: &[u8]) -> anyhow::Result<TransactionBody> {
    let body =
        Body::abi_decode(encoded).context("the node answers something that is no body of a transaction")?;
    let calls = body.calls.into_iter();
    let calls = calls.map(|Call { from, to, value, data }| BodyCall { from, to, value, data });
    Ok(TransactionBody {
        calls: calls.collect(),
        gas_limit: body.gasLimit,
        max_fee_per_gas: body.maxFeePerGas,
        memo: body.memo,
        nonce: body.nonce,
        execution_time: body.executionTime,
        wait_for_expiry: body.waitForExpiry,
    })
}
