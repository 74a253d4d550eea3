//! Transactions that wait for signatures (`docs/signatures.md`): made, shown, signed here or elsewhere, and deleted.
//!
//! ```text
//! flags ──> body ──> createSchedule ──> id ──> Gathering: who has signed, who is missing
//!                                       |
//!                                       v
//!     a line or a file ──> Request ──> words, then a signature ──> a line or a file ──> signSchedule
//! ```

mod booking;
pub(super) mod create;
pub(super) mod delete;
mod file;
mod gathering;
mod given;
mod key_words;
mod line;
mod outcome;
mod request;
pub(super) mod show;
pub(super) mod sign;
mod terms;
pub(super) mod waiting;
mod wording;

use super::calls::IScheduleService;
use alloy_primitives::U256;
use almanac_primitives::{NativeCall, addresses::SCHEDULE_SERVICE};

/// The name of the door in answers of the `almanac_` methods.
pub(super) const SIGNED: &str = "signed";

/// A call of the service.
fn to_service(value: U256, input: Vec<u8>) -> NativeCall {
    NativeCall { to: Some(SCHEDULE_SERVICE), value, input: input.into() }
}
