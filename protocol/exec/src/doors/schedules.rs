//! What all doors to schedules share.

use super::call::{DoorCall, DoorError};
use alloy_primitives::Bytes;
use alloy_sol_types::SolError as _;
use almanac_primitives::{Outcome, Wei};
use almanac_schedule::{
    Failure, Ledger as _,
    life::{Event, What},
};

/// Takes what an order needs out of the value that came with the call, and returns the rest at once.
pub(super) fn take_exactly(
    call: &mut DoorCall<'_, '_>,
    needed: Wei,
    too_low: impl FnOnce(Wei, Wei) -> DoorError,
) -> Result<(), DoorError> {
    let (given, caller) = (call.take_escrow()?, call.caller());
    match given.checked_sub(needed) {
        None => Err(too_low(given, needed)),
        Some(Wei::ZERO) => Ok(()),
        Some(rest) => call.credit(caller, rest),
    }
}

/// What an end refunded.
pub(super) fn refunded(event: &Event) -> Wei {
    match event.what {
        What::Ended { refunded, .. } => refunded,
        _ => Wei::ZERO,
    }
}

/// Why a run failed: what its target reverted with, or in Solidity's form what stopped it.
pub(super) fn reason(outcome: &Outcome) -> Bytes {
    match outcome {
        Outcome::Success => Bytes::new(),
        Outcome::Reverted(data) => data.clone(),
        Outcome::Halted(halt) => alloy_sol_types::Revert::from(halt.to_string()).abi_encode().into(),
    }
}

/// Ends a call whose operation did not happen: with the door's own error for what its rules refuse, and with another for
/// a record that a fault of the chain's own has made unreadable.
pub(super) fn thrown<R>(
    failure: Failure<R, DoorError>,
    refused: impl FnOnce(R) -> DoorError,
    unreadable: impl FnOnce(String) -> DoorError,
) -> DoorError {
    match failure {
        Failure::Refused(error) => refused(error),
        Failure::Broken(broken) => unreadable(broken.to_string()),
        Failure::Ledger(error) => error,
    }
}
