//! What happens to an ARC-21 job that is due, and who gets its money.

use super::{CatchUp, Charge, CronTerms};
use crate::{
    decide::{Decision, End, Moment, NextRun, RunEnd, Settlement},
    doors::{Door, Fact, Rules},
    record::{Head, Record},
};
use alloy_primitives::U256;
use almanac_primitives::{DurationMs, Lane, TimestampMs, Wei, codec::Writer};
use std::num::NonZeroU64;

/// The most runs that a head can count.
const RUNS_LARGEST: u64 = u32::MAX as u64;

impl Rules for CronTerms {
    fn door(&self) -> Door {
        Door::Cron
    }

    fn encode(&self, out: &mut Writer) {
        out.u8(self.catch_up as u8);
        out.u8(self.charge as u8);
        out.u64(self.interval_ms.map_or(0, NonZeroU64::get));
        out.u64(self.runs_max.map_or(0, NonZeroU64::get));
    }

    fn decide(&self, record: &Record, moment: Moment) -> Decision {
        // A job always has a due time.
        let due = record.head.due.unwrap_or(moment.now);
        let due = match missed(self, due, moment.now) {
            Some(Missed { latest, .. }) if self.catch_up == CatchUp::Latest => latest,
            Some(Missed { next: Some(next), .. }) if self.catch_up == CatchUp::Skip => {
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

    /// Burns the cost of the run and refunds the rest.
    ///
    /// At most half is refunded (ARC21-14): the whole gas limit counts against the lane's budget, and a job
    /// pays for the budget it occupies. An odd wei is burned.
    fn settle_run(&self, _: &Record, charge: Wei, ended: RunEnd<'_>, moment: Moment) -> Settlement {
        let cost = match self.charge {
            Charge::GasLimit => charge,
            Charge::GasUsed => {
                let least = Wei(charge.0.div_ceil(U256::from(2)));
                ended.gas_used.cost(moment.base_fee).max(least)
            }
        };
        // No run uses more than its limit.
        Settlement::burn_part(cost, charge)
    }

    /// Refunds everything, whatever the reason: the escrow was for runs that will not happen.
    fn settle_end(&self, record: &Record, _: End, _: Moment) -> Settlement {
        Settlement::refund(record.escrow)
    }

    fn facts(&self) -> Vec<(&'static str, Fact)> {
        let number = |number: Option<NonZeroU64>| Fact::Number(number.map(NonZeroU64::get));
        let catch_up = match self.catch_up {
            CatchUp::All => "all",
            CatchUp::Latest => "latest",
            CatchUp::Skip => "skip",
        };
        let charge = match self.charge {
            Charge::GasLimit => "gasLimit",
            Charge::GasUsed => "gasUsed",
        };
        vec![
            ("intervalMs", number(self.interval_ms)),
            ("runsMax", number(self.runs_max)),
            ("catchUp", Fact::Word(catch_up)),
            ("charge", Fact::Word(charge)),
        ]
    }

    fn interval(&self) -> Option<DurationMs> {
        self.interval_ms.map(|ms| DurationMs(ms.get()))
    }

    /// A head counts runs in 32 bits, enough for one per second over 136 years. Larger numbers are capped.
    fn runs_max(&self) -> Option<u64> {
        match (self.interval_ms, self.runs_max) {
            (None, _) => Some(1),
            (Some(_), max) => max.map(|max| max.get().min(RUNS_LARGEST)),
        }
    }

    fn returns_unused(&self) -> bool {
        self.charge == Charge::GasUsed
    }

    /// Caches the highest price per gas that the escrow can pay, and the time from which a late run is skipped.
    /// Only the cron lane reads them.
    fn full_head(&self, record: &Record) -> Head {
        let Record { head, escrow, body, .. } = record;
        if head.lane != Lane::Cron {
            return *head;
        }
        let skipped = |interval| head.due.and_then(|due| due.checked_add(interval));
        let interval = self.interval().filter(|_| self.catch_up == CatchUp::Skip);
        let until = interval.and_then(skipped).map_or(0, |until| until.0);
        Head { priority: body.price(*escrow), until, ..*head }
    }
}

/// The due times that a series has missed: a later due time has passed as well.
struct Missed {
    /// The latest due time that has passed.
    latest: TimestampMs,
    /// The first due time that has not passed; `None` if it overflows.
    next: Option<TimestampMs>,
}

fn missed(terms: &CronTerms, due: TimestampMs, now: TimestampMs) -> Option<Missed> {
    let (interval, late) = (terms.interval()?, now.since(due)?);
    let intervals = late.0.checked_div(interval.0).filter(|intervals| *intervals > 0)?;
    // No overflow: the sum is at most `now`.
    let latest = TimestampMs(due.0 + intervals * interval.0);
    Some(Missed { latest, next: latest.checked_add(interval) })
}

/// Whether the head alone shows that this job does not run: it cannot pay, or its policy skips missed times.
pub(crate) fn is_passed_over(head: &Head, moment: Moment) -> bool {
    let is_skipped = head.until > 0 && head.until <= moment.now.0;
    is_skipped || u128::from(head.priority) < moment.base_fee.0
}
