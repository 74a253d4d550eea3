//! What becomes of a callback whose time has come, and who gets its fee.

use super::{CallbackTerms, Priority};
use crate::{
    capacity::Booking,
    decide::{Decision, End, Moment, NextRun, RunEnd, Settlement},
    doors::{Door, Fact, Rules},
    record::{Record, Status},
};
use alloy_primitives::U256;
use almanac_primitives::{DurationMs, GasPrice, Wei, codec::Writer, params::CALLBACK_LATE_MS};

/// One hundred percent in hundredths of a percent.
const BPS_WHOLE: u64 = 10_000;

impl Rules for CallbackTerms {
    fn door(&self) -> Door {
        Door::Callback
    }

    fn encode(&self, out: &mut Writer) {
        self.write(out);
    }

    /// It always runs: its fee is in escrow, and its room was booked or is what is left.
    fn decide(&self, record: &Record, moment: Moment) -> Decision {
        let due = record.head.due.unwrap_or(moment.now);
        let charge = record.charge(moment.base_fee);
        Decision::Run { due, price: self.gas_price(), charge, again: NextRun::Never }
    }

    /// The fee that was paid at its creation, whatever the base fee is now.
    fn charge(&self, record: &Record, _: GasPrice) -> Wei {
        record.escrow
    }

    /// The base part pays the block's fee recipient, the premium is burned (FLIP330-19). If the chain was late by its own
    /// fault, all of it returns.
    fn settle_run(&self, record: &Record, charge: Wei, _: RunEnd<'_>, moment: Moment) -> Settlement {
        if self.is_late(record, moment) {
            return Settlement::refund(charge);
        }
        // No fee is below its base part: multipliers are above 100 %.
        let fee_recipient = self.base_part().min(charge);
        let burn = charge.checked_sub(fee_recipient).unwrap_or(Wei::ZERO);
        Settlement { burn, fee_recipient, refund: Wei::ZERO }
    }

    /// A part of the fee returns to the owner who cancels, rounded down, and the rest is burned (FLIP330-18). All of it
    /// returns after a fault of the chain's own, and what a run left returns anyway.
    fn settle_end(&self, record: &Record, end: End, moment: Moment) -> Settlement {
        let is_our_fault = record.head.status == Status::Quarantined || self.is_late(record, moment);
        if end != End::Cancelled || is_our_fault {
            return Settlement::refund(record.escrow);
        }
        let kept = BPS_WHOLE.saturating_sub(self.refund_bps);
        // A fee has at most 110 bits.
        let burn = (record.escrow.0 * U256::from(kept)).div_ceil(U256::from(BPS_WHOLE));
        Settlement::burn_part(Wei(burn), record.escrow)
    }

    fn facts(&self) -> Vec<(&'static str, Fact)> {
        vec![
            ("priority", Fact::Word(self.priority.name())),
            ("effort", Fact::Number(Some(self.effort))),
            ("refundBps", Fact::Number(Some(self.refund_bps))),
        ]
    }

    fn keeps_ends(&self) -> bool {
        true
    }

    fn is_processed(&self) -> bool {
        true
    }

    fn booking(&self, record: &Record) -> Option<Booking> {
        let class = self.priority.class()?;
        Some(Booking { second: record.head.due?.seconds(), class, effort: self.effort })
    }
}

impl CallbackTerms {
    /// Whether booked room was not there in time because the chain stood still or the door was held. Low has no time
    /// that it could miss.
    fn is_late(&self, record: &Record, moment: Moment) -> bool {
        let held = record.head.due.filter(|due| *due <= moment.held_until);
        let late = held.and_then(|due| moment.now.since(due));
        self.priority != Priority::Low && late.is_some_and(|late| late > DurationMs(CALLBACK_LATE_MS))
    }
}
