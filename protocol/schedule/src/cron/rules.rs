//! What becomes of an ARC-21 job whose time has come, and who gets its money.

use super::{CatchUp, Charge, CronTerms};
use crate::{
    decide::{Decision, End, Moment, NextRun, RunEnd, Settlement},
    record::{Head, Record},
};
use alloy_primitives::U256;
use almanac_primitives::{TimestampMs, Wei};

/// A job makes one call.
pub(crate) const CALLS: usize = 1;

/// What a block does with a job that is due.
pub(crate) fn decide(terms: &CronTerms, record: &Record, moment: Moment) -> Decision {
    // A job always waits for a time.
    let due = record.head.due.unwrap_or(moment.now);
    let due = match missed(terms, due, moment.now) {
        Some(Missed { latest, .. }) if terms.catch_up == CatchUp::Latest => latest,
        Some(Missed { next: Some(next), .. }) if terms.catch_up == CatchUp::Skip => {
            return Decision::Skip { until: next };
        }
        _ => due,
    };
    let charge = record.charge(moment.base_fee);
    if record.escrow < charge {
        return Decision::End(End::OutOfMoney);
    }
    let again = record.next_due(due).map_or(NextRun::Never, NextRun::At);
    Decision::Run { due, price: moment.base_fee, charge, again }
}

/// Times that a series has missed entirely: the one after them has come as well.
struct Missed {
    /// The latest time that has come.
    latest: TimestampMs,
    /// The first that has not; `None` at the end of time.
    next: Option<TimestampMs>,
}

fn missed(terms: &CronTerms, due: TimestampMs, now: TimestampMs) -> Option<Missed> {
    let (interval, late) = (terms.interval()?, now.since(due)?);
    let intervals = late.0.checked_div(interval.0).filter(|intervals| *intervals > 0)?;
    // At most `now`: no overflow.
    let latest = TimestampMs(due.0 + intervals * interval.0);
    Some(Missed { latest, next: latest.checked_add(interval) })
}

/// Whether a block can tell from the head alone that this job does not run: it cannot pay, or it skips what it has
/// missed.
pub(crate) fn is_passed_over(head: &Head, moment: Moment) -> bool {
    let is_skipped = head.until > 0 && head.until <= moment.now.0;
    is_skipped || u128::from(head.priority) < moment.base_fee.0
}

/// The head with what it repeats: how much a run can pay per gas, and from when a run that is late is skipped.
pub(crate) fn full_head(terms: &CronTerms, record: &Record) -> Head {
    let Record { head, escrow, body, .. } = record;
    let skipped = |interval| head.due.and_then(|due| due.checked_add(interval));
    let interval = terms.interval().filter(|_| terms.catch_up == CatchUp::Skip);
    let until = interval.and_then(skipped).map_or(0, |until| until.0);
    Head { priority: body.price(*escrow), until, ..*head }
}

/// Who gets what a run was charged: what it cost is burned, the rest returns.
///
/// At most half of it returns (ARC21-14): the whole limit counts against the lane's budget, and what holds a budget
/// pays for it. An odd wei is burned.
pub(crate) fn settle_run(terms: &CronTerms, charge: Wei, ended: RunEnd<'_>, moment: Moment) -> Settlement {
    let cost = match terms.charge {
        Charge::GasLimit => charge,
        Charge::GasUsed => {
            let least = Wei(charge.0.div_ceil(U256::from(2)));
            ended.gas_used.cost(moment.base_fee).max(least)
        }
    };
    // No run uses more than its limit.
    Settlement::burn_part(cost, charge)
}

/// Who gets what an escrow still has when a job ends, for whatever reason: its owner paid for runs that do not come.
pub(crate) fn settle_end(record: &Record, _: End) -> Settlement {
    Settlement::refund(record.escrow)
}
