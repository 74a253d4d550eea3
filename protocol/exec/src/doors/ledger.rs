//! The ledger account: escrow and records live there, and nobody can call it.

use super::call::{DoorCall, DoorError, IDoor, revert};
use alloy_primitives::Bytes;

/// Refuses every call, plain transfers included: money enters the ledger only through a door.
pub(super) fn call(_: &mut DoorCall<'_, '_>) -> Result<Bytes, DoorError> {
    Err(revert(IDoor::LedgerAnswersNoCall {}))
}
