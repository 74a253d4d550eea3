//! Errors with the codes and phrases that Ethereum clients look for.

use crate::{
    eth::attempt::AttemptError,
    revert::{Called, halted, reason_of},
};
use alloy_primitives::{TxHash, hex};
use almanac_consensus::SubmitError;
use almanac_exec::{CallResult, Refusal, SimulateError, TransactionError};
use almanac_index::history::GONE;
use almanac_primitives::{Outcome, ScheduleId};
use almanac_trace::TraceError;
use jsonrpsee::types::ErrorObjectOwned;

/// The server could not do it for a reason of the request's own.
const SERVER_ERROR: i32 = -32_000;
/// There is no such method, here at least.
const METHOD_NOT_FOUND: i32 = -32_601;
/// A parameter is not of the form that the method takes.
const INVALID_PARAMS: i32 = -32_602;
/// EIP-1474: the request asks for too much.
const LIMIT_EXCEEDED: i32 = -32_005;
/// EIP-7966: the transaction was taken, but not included in time.
const NOT_IN_TIME: i32 = 4;
/// Something of ours failed.
const INTERNAL: i32 = -32_603;
/// A call reverted; the data says with what.
const REVERTED: i32 = 3;

/// A transaction that is not taken.
pub(crate) fn submit(error: &SubmitError) -> ErrorObjectOwned {
    match error {
        SubmitError::Decode(_) => invalid(error),
        SubmitError::Invalid(_) | SubmitError::Pool(_) | SubmitError::TooManyAuthorizations { .. } => {
            refused(error)
        }
        SubmitError::State(_) => internal(error),
    }
}

/// A call without a result.
pub(crate) fn attempt(error: &AttemptError) -> ErrorObjectOwned {
    match error {
        AttemptError::TooLong { .. } => limit(error),
        AttemptError::Simulate(error) => simulate(error),
    }
}

/// A call that cannot be tried.
pub(crate) fn simulate(error: &SimulateError) -> ErrorObjectOwned {
    match error {
        SimulateError::Refused { reason: Refusal::Form(_) } => invalid(error),
        SimulateError::Refused { .. } => plain(SERVER_ERROR, error.to_string()),
        SimulateError::Block(_) => internal(error),
    }
}

/// A call of `eth_simulateV1` that no block could hold. The specification has a code for each reason.
pub(crate) fn simulated(error: &AttemptError) -> ErrorObjectOwned {
    let AttemptError::Simulate(SimulateError::Refused { reason }) = error else { return attempt(error) };
    let code = match reason {
        Refusal::Rule(TransactionError::NonceTooLow { .. }) => -38_010,
        Refusal::Rule(TransactionError::NonceTooHigh { .. }) => -38_011,
        Refusal::Rule(TransactionError::FeeCapBelowBaseFee { .. }) => -38_012,
        Refusal::Rule(TransactionError::IntrinsicGasTooLow { .. }) => -38_013,
        Refusal::Rule(
            TransactionError::InsufficientFunds { .. } | TransactionError::FeePayerFunds { .. },
        ) => -38_014,
        Refusal::Rule(TransactionError::GasLimitAboveBlock { .. }) => -38_015,
        Refusal::Form(_) => INVALID_PARAMS,
        Refusal::Rule(_) | Refusal::Evm(_) => SERVER_ERROR,
    };
    plain(code, reason.to_string())
}

/// Blocks of `eth_simulateV1` that are not above each other.
pub(crate) fn out_of_order(reason: String) -> ErrorObjectOwned {
    plain(-38_020, reason)
}

/// Blocks of `eth_simulateV1` that are not after each other.
pub(crate) fn out_of_time(reason: String) -> ErrorObjectOwned {
    plain(-38_021, reason)
}

/// A call that was tried and did not succeed. Of a batch, the message names the call that failed.
pub(crate) fn failed_call(called: &[Called], result: &CallResult) -> ErrorObjectOwned {
    let index = result.failed_call.unwrap_or(0);
    let of_batch = if called.len() > 1 { format!(": call {index}") } else { String::new() };
    let unnamed = Called::default();
    let called = called.get(usize::from(index)).unwrap_or(&unnamed);
    match &result.outcome {
        Outcome::Reverted(_) => {
            let data = hex::encode_prefixed(&result.output);
            let reason = reason_of(called, &result.output).map(|reason| format!(": {reason}"));
            let message = format!("execution reverted{of_batch}{}", reason.unwrap_or_default());
            ErrorObjectOwned::owned(REVERTED, message, Some(data))
        }
        Outcome::Halted(halt) => {
            plain(SERVER_ERROR, format!("execution stopped{of_batch}: {}", halted(called, *halt)))
        }
        Outcome::Success => unreachable!("only failures are turned into errors"),
    }
}

/// A block that is not there.
pub(crate) fn unknown_block(asked: impl std::fmt::Display) -> ErrorObjectOwned {
    plain(
        SERVER_ERROR,
        format!("header not found: there is no block {asked}, or its state is no longer kept"),
    )
}

/// A method that this chain cannot serve, and what serves instead.
pub(crate) fn unsupported(method: &str, instead: &str) -> ErrorObjectOwned {
    plain(SERVER_ERROR, format!("unsupported: {method}: {instead}"))
}

/// Geth's words and code for this; clients fall back to asking again and again.
pub(crate) fn no_notifications() -> ErrorObjectOwned {
    plain(METHOD_NOT_FOUND, "notifications not supported over HTTP: subscribe over WebSocket".to_owned())
}

/// A parameter that makes no sense.
pub(crate) fn invalid(reason: impl std::fmt::Display) -> ErrorObjectOwned {
    plain(INVALID_PARAMS, shortened(reason.to_string()))
}

/// Leaves the middle of a long reason out: what was given is repeated at its front, what is allowed is said at its
/// end, and a flood is not sent back.
fn shortened(reason: String) -> String {
    const FRONT: usize = 200;
    const END: usize = 400;
    let count = reason.chars().count();
    if count <= FRONT + END {
        return reason;
    }
    let front: String = reason.chars().take(FRONT).collect();
    let end: String = reason.chars().skip(count - END).collect();
    format!("{front} … {end}")
}

/// More than one request may ask for.
pub(crate) fn limit(reason: impl std::fmt::Display) -> ErrorObjectOwned {
    plain(LIMIT_EXCEEDED, reason.to_string())
}

/// Something that the node will not do.
pub(crate) fn refused(reason: impl std::fmt::Display) -> ErrorObjectOwned {
    plain(SERVER_ERROR, reason.to_string())
}

/// EIP-7966: the transaction is in the pool, but in no block yet.
pub(crate) fn not_included_in_time(hash: TxHash, waited: std::time::Duration) -> ErrorObjectOwned {
    let message = format!("transaction {hash} was taken, but is in no block after {} ms", waited.as_millis());
    ErrorObjectOwned::owned(NOT_IN_TIME, message, Some(hash))
}

/// A transaction that is not there.
pub(crate) fn unknown_transaction(hash: TxHash) -> ErrorObjectOwned {
    plain(SERVER_ERROR, format!("transaction not found: no block has {hash}"))
}

/// A schedule that never was.
pub(crate) fn unknown_schedule(id: ScheduleId) -> ErrorObjectOwned {
    plain(SERVER_ERROR, format!("schedule not found: there never was a schedule {id}"))
}

/// Something that cannot be traced.
pub(crate) fn trace(error: &TraceError) -> ErrorObjectOwned {
    match error {
        TraceError::UnknownTracer { .. } | TraceError::BadConfig { .. } => invalid(error),
        TraceError::TooLong { .. } | TraceError::TooLarge { .. } => limit(error),
        TraceError::StateGone { .. }
        | TraceError::TakenBack { .. }
        | TraceError::NoSuchTransaction { .. } => refused(error),
        TraceError::Call(error) => simulate(error),
        TraceError::Differs { .. }
        | TraceError::Invalid { .. }
        | TraceError::Block(_)
        | TraceError::State(_)
        | TraceError::Store(_) => internal(error),
    }
}

/// A fault of ours; unless the chain went back, or on, from under a request.
pub(crate) fn internal(reason: impl std::fmt::Display) -> ErrorObjectOwned {
    let reason = reason.to_string();
    if reason.contains(GONE) {
        return plain(SERVER_ERROR, format!("header not found: {reason}"));
    }
    plain(INTERNAL, format!("internal error: {reason}"))
}

fn plain(code: i32, message: String) -> ErrorObjectOwned {
    ErrorObjectOwned::owned(code, message, None::<()>)
}

#[cfg(test)]
mod tests {
    use super::shortened;

    #[test]
    fn long_reasons_keep_both_ends() {
        let whole = "x".repeat(600);
        assert_eq!(shortened(whole.clone()), whole);
        let text = format!("given {}, expected a or b", "ü".repeat(10_000));
        let short = shortened(text);
        assert!(short.starts_with("given ü") && short.ends_with("expected a or b"), "{short}");
        assert_eq!(short.chars().count(), 603);
    }
}
