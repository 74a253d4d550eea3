//! What all doors to schedules share.

use super::call::DoorError;
use almanac_schedule::Failure;

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
