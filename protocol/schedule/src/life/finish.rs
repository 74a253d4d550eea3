//! The end of a run whose price is known at the end of the block only: first its schedule ends, then its charge is
//! divided.

use super::{Event, begin::Begun, end::pay, event::What};
use crate::{
    decide::{End, Moment, RunEnd},
    ledger::{Failure, Ledger, load, save},
    record::{Broken, Call, LastRun, Record, Status},
};
use almanac_primitives::{Outcome, Wei};
use std::convert::Infallible;

/// Ends the schedule of a run that has just ended. Returns what the ledger still holds for it: it is in no escrow until
/// [`settle_finished`] divides it.
pub fn finish<L: Ledger>(
    ledger: &mut L,
    begun: &Begun,
    outcome: &Outcome,
    moment: Moment,
) -> Result<Wei, Failure<Infallible, L::Error>> {
    let id = begun.record.id;
    let record = load(ledger, id)?.filter(|record: &Record| record.head.status == Status::Running);
    let Some(mut record) = record else { return Err(Failure::Broken(Broken::Changed { id })) };
    let held =
        if outcome.is_success() { begun.charge } else { unspent(ledger, begun).map_err(Failure::Ledger)? };
    let held = held.checked_add(record.escrow).expect("no escrow exceeds what was ever issued");
    record.escrow = Wei::ZERO;
    record.head.status = end_of(outcome).status();
    record.head.last = LastRun::of(outcome);
    record.head.until = moment.ended_kept_until;
    ledger.move_entry().and_then(|()| save(ledger, &record)).map_err(Failure::Ledger)?;
    Ok(held)
}

/// What a run without effect leaves: its charge, and the value that a door was given for it. An owner keeps the value.
pub fn unspent<L: Ledger>(ledger: &mut L, begun: &Begun) -> Result<Wei, L::Error> {
    let Call { from, value, .. } = begun.record.body.call();
    let is_lent = begun.record.body.terms.holds_value() && *from != begun.record.body.owner;
    if !is_lent || *value == Wei::ZERO {
        return Ok(begun.charge);
    }
    ledger.take_back(*from, *value)?;
    Ok(begun.charge.checked_add(*value).expect("no escrow exceeds what was ever issued"))
}

/// Divides what [`finish`] left.
pub fn settle_finished<L: Ledger>(
    ledger: &mut L,
    begun: &Begun,
    held: Wei,
    ended: RunEnd<'_>,
    moment: Moment,
) -> Result<Vec<Event>, Failure<Infallible, L::Error>> {
    let Begun { record, charge } = begun;
    let unsettled = Failure::Broken(Broken::Unsettled { id: record.id, amount: held });
    let mut settlement = record.body.terms.settle_run(record, *charge, ended, moment);
    let (true, Some(beside)) = (settlement.total() == Some(*charge), held.checked_sub(*charge)) else {
        return Err(unsettled);
    };
    let fee = charge.checked_sub(settlement.refund).expect("a refund is part of the charge");
    settlement.refund =
        settlement.refund.checked_add(beside).expect("no escrow exceeds what was ever issued");
    pay(ledger, settlement, record.body.refund_to, moment).map_err(Failure::Ledger)?;
    let executed = What::Executed { is_success: ended.outcome.is_success(), gas_used: ended.gas_used, fee };
    let end = end_of(ended.outcome);
    let over = What::Ended { end, owner: record.body.owner, refunded: settlement.refund };
    Ok([executed, over].map(|what| Event::of(record.id, &record.body, what)).into())
}

fn end_of(outcome: &Outcome) -> End {
    if outcome.is_success() { End::Succeeded } else { End::Failed }
}
