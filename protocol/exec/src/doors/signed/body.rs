//! The ABI encoding of a scheduled transaction's body.

use super::{DoorCall, DoorError, IScheduleService, charge_copies, refused};
use alloy_primitives::Bytes;
use alloy_sol_types::SolValue as _;
use almanac_primitives::{
    params::SIGNED_BODY_BYTES_MAX,
    transaction_body::{BodyCall, TransactionBody},
};
use almanac_schedule::{record::Body, signed::Code};

/// Gas per 32 bytes of a body: it is decoded, and encoded again for comparison.
const BODY_WORD_GAS: u64 = 24;

/// Pays for a body, then reads it. One body has one encoding: another one would make it another schedule.
pub(super) fn read(call: &mut DoorCall<'_, '_>, encoded: &Bytes) -> Result<TransactionBody, DoorError> {
    if encoded.len() > SIGNED_BODY_BYTES_MAX {
        return Err(refused(Code::TooLarge));
    }
    call.charge_words(encoded.len(), BODY_WORD_GAS)?;
    charge_copies(call, encoded.len())?;
    let decoded = IScheduleService::Body::abi_decode_validate(encoded).ok();
    let Some(body) = decoded.filter(|body| body.abi_encode() == **encoded) else {
        return Err(refused(Code::InvalidBody));
    };
    let IScheduleService::Body { calls, gasLimit, maxFeePerGas, memo, nonce, executionTime, waitForExpiry } =
        body;
    let calls = calls.into_iter().map(|call| {
        let IScheduleService::Call { from, to, value, data } = call;
        BodyCall { from, to, value, data }
    });
    Ok(TransactionBody {
        calls: calls.collect(),
        gas_limit: gasLimit,
        max_fee_per_gas: maxFeePerGas,
        memo,
        nonce,
        execution_time: executionTime,
        wait_for_expiry: waitForExpiry,
    })
}

/// The bytes of a stored schedule's body, as they were given.
pub(crate) fn transaction_body(body: &Body) -> Bytes {
    let Some(terms) = body.terms.signed() else { return Bytes::new() };
    let TransactionBody { calls, gas_limit, max_fee_per_gas, memo, nonce, execution_time, wait_for_expiry } =
        terms.transaction_body(body);
    let calls = calls.into_iter().map(|call| {
        let BodyCall { from, to, value, data } = call;
        IScheduleService::Call { from, to, value, data }
    });
    let body = IScheduleService::Body {
        calls: calls.collect(),
        gasLimit: gas_limit,
        maxFeePerGas: max_fee_per_gas,
        memo,
        nonce,
        executionTime: execution_time,
        waitForExpiry: wait_for_expiry,
    };
    body.abi_encode().into()
}
