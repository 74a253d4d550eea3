//! Deletes a schedule for its admin key (HEDERA-08).

use super::{DoorCall, DoorError, SignatureEntry, find, gather, read, refused, throttle, thrown};
use crate::doors::accounts::HASH_WORD_GAS;
use almanac_primitives::{
    ScheduleId,
    keys::{KeyTree, Leaf},
    params::KEY_LEAF_GAS,
    transaction_body::deletion_hash,
};
use almanac_schedule::{Record, decide::End, life, record::Status, signed::Code};

/// Bytes that are hashed for a digest.
const DIGEST_BYTES: usize = 512;

pub(super) fn delete(
    call: &mut DoorCall<'_, '_>,
    id: ScheduleId,
    entries: &[SignatureEntry],
) -> Result<(), DoorError> {
    call.refuse_static()?;
    let record = find_left(call, id)?;
    throttle::take(call, throttle::DELETE)?;
    let admin_key = record.body.terms.signed().map(|terms| terms.admin_key.clone()).unwrap_or_default();
    if admin_key.is_empty() {
        return Err(refused(Code::Immutable));
    }
    // It was checked before it was stored.
    let Ok(key) = KeyTree::decode_stored(&admin_key) else { return Err(refused(Code::Unknown)) };
    call.charge(KEY_LEAF_GAS * u64::from(key.leaf_count()))?;
    let proven = prove(call, id, &key, entries)?;
    if !key.is_satisfied(|leaf| proven.contains(&leaf)) {
        return Err(refused(Code::InvalidSignature));
    }
    let moment = call.moment();
    let event = life::end_without_run(call, &record, End::Cancelled, moment).map_err(thrown)?;
    call.tell(event)
}

/// A schedule that can be deleted, or why it cannot. Beside those that can be signed: one whose second has come and that
/// no block has taken up, because its lane is held or behind, and one that a fault of the chain's own has put aside.
fn find_left(call: &mut DoorCall<'_, '_>, id: ScheduleId) -> Result<Record, DoorError> {
    let is_left = |record: &Record| match record.head.status {
        Status::Quarantined => true,
        Status::Pending => record.body.terms.signed().is_some_and(|terms| terms.booked.is_some()),
        _ => false,
    };
    match read(call, id)?.filter(is_left) {
        Some(record) => Ok(record),
        None => find(call, id),
    }
}

/// The leaves that a call proves: those that signed, and its caller's.
fn prove(
    call: &mut DoorCall<'_, '_>,
    id: ScheduleId,
    key: &KeyTree,
    entries: &[SignatureEntry],
) -> Result<Vec<Leaf>, DoorError> {
    gather::check_entries(entries)?;
    let mut proven = vec![Leaf::Secp256k1(call.caller())];
    for entry in entries {
        let leaf = gather::check_entry(call, entry, |leaf| key.leaves().any(|known| known == leaf))?;
        call.charge_words(DIGEST_BYTES, HASH_WORD_GAS)?;
        let digest = deletion_hash(call.chain(), id, entry.deadline);
        if !gather::is_proven(call, digest, leaf, entry)? {
            return Err(refused(Code::InvalidSignature));
        }
        proven.push(leaf);
    }
    Ok(proven)
}
