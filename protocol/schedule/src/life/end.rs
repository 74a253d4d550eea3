//! The end of a schedule: settles its escrow, then removes its record or keeps it readable for a while.

use super::{Event, event::What, process::release};
use crate::{
    calendar::Entry,
    decide::{End, Moment, Settlement},
    doors::signed::{self, Tally},
    ledger::{Failure, Ledger, remove, remove_nameless, save},
    record::{Body, Broken, Head, Record, head_slot},
};
use alloy_primitives::Address;
use almanac_primitives::Wei;

/// Ends a schedule and splits the rest of its escrow by its door's rules.
pub(super) fn end<L: Ledger, R>(
    ledger: &mut L,
    record: &Record,
    end: End,
    moment: Moment,
) -> Result<Event, Failure<R, L::Error>> {
    let settlement = record.body.terms.settle_end(record, end, moment);
    if settlement.total() != Some(record.escrow) {
        return Err(Failure::Broken(Broken::Unsettled { id: record.id, amount: record.escrow }));
    }
    release(ledger, record, moment)?;
    close(ledger, record, end, moment).map_err(Failure::Ledger)?;
    pay(ledger, settlement, record.body.refund_to, moment).map_err(Failure::Ledger)?;
    let what = What::Ended { end, owner: record.body.owner, refunded: settlement.refund };
    Ok(Event::of(record.id, &record.body, what))
}

/// Removes a record, or keeps its final status readable.
fn close<L: Ledger>(ledger: &mut L, record: &Record, end: End, moment: Moment) -> Result<(), L::Error> {
    ledger.move_entry()?;
    if !record.body.terms.keeps_ends() {
        return remove(ledger, record.id, &record.body).map(|_| ());
    }
    let mut ended = record.clone();
    ended.head.status = end.status();
    ended.head.until = moment.ended_kept_until;
    ended.escrow = Wei::ZERO;
    save(ledger, &ended)?;
    let Some(identity) = record.body.terms.identity() else { return Ok(()) };
    let tally = Tally { ended: Some(moment.now), ..Tally::load(ledger, record.id)? };
    signed::leave(ledger, identity, end, tally.is_unpaid)?;
    tally.store(ledger, record.id)
}

/// Removes the record of a schedule that ended some time ago, and returns how many slots of signatures went with it.
/// Returns `None` if the record contradicts the calendar entry.
pub fn sweep<L: Ledger>(ledger: &mut L, entry: Entry) -> Result<Option<u64>, L::Error> {
    let id = entry.schedule;
    let head = Head::from_word(ledger.load(head_slot(id))?);
    if !head.is_ok_and(|head| head.status.is_ended() && head.entries(id).any(|place| place == entry)) {
        return Ok(None);
    }
    ledger.move_entry()?;
    let cleared = match ledger.body(id)?.map(|body| Body::decode(&body)) {
        Some(Ok(body)) => remove(ledger, id, &body)?,
        // A fault of our own, and its other name is lost with it.
        Some(Err(_)) | None => {
            remove_nameless(ledger, id)?;
            0
        }
    };
    Ok(Some(cleared))
}

/// Pays out money of the ledger.
pub(super) fn pay<L: Ledger>(
    ledger: &mut L,
    settlement: Settlement,
    refund_to: Address,
    moment: Moment,
) -> Result<(), L::Error> {
    let Settlement { burn, fee_recipient, refund } = settlement;
    if burn > Wei::ZERO {
        ledger.burn(burn)?;
    }
    if fee_recipient > Wei::ZERO {
        ledger.credit(moment.fee_recipient, fee_recipient)?;
    }
    if refund > Wei::ZERO {
        ledger.credit(refund_to, refund)?;
    }
    Ok(())
}
