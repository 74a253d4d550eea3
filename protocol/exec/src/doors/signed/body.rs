//! Bodies of transactions that wait for signatures: what it costs to read one.

use super::{DoorCall, DoorError, charge_copies, refused};
use alloy_primitives::Bytes;
use almanac_primitives::{params::SIGNED_BODY_BYTES_MAX, transaction_body::TransactionBody};
use almanac_schedule::{record::Body, signed::Code};

/// Gas per 32 bytes of a body: it is decoded, and encoded again for comparison.
const BODY_WORD_GAS: u64 = 24;

/// Pays for a body, then reads it.
pub(super) fn read(call: &mut DoorCall<'_, '_>, encoded: &Bytes) -> Result<TransactionBody, DoorError> {
    if encoded.len() > SIGNED_BODY_BYTES_MAX {
        return Err(refused(Code::TooLarge));
    }
    call.charge_words(encoded.len(), BODY_WORD_GAS)?;
    charge_copies(call, encoded.len())?;
    TransactionBody::decode(encoded).ok_or_else(|| refused(Code::InvalidBody))
}

/// The bytes of a stored schedule's body, as they were given.
pub(crate) fn transaction_body(body: &Body) -> Bytes {
    body.terms.signed().map(|terms| terms.transaction_body(body).encode()).unwrap_or_default()
}
