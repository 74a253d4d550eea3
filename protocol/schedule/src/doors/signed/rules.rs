//! What becomes of a schedule that has all its signatures, and who gets its money.

use super::SignedTerms;
use crate::{
    capacity::Booking,
    decide::{Decision, End, Moment, NextRun, RunEnd, Settlement},
    doors::{Door, Fact, Rules},
    record::{Record, Status},
};
use alloy_primitives::B256;
use almanac_primitives::{GasPrice, Wei, codec::Writer, params::SIGNED_CALLS_MAX};

impl Rules for SignedTerms {
    fn door(&self) -> Door {
        Door::Signed
    }

    fn encode(&self, out: &mut Writer) {
        self.write(out);
    }

    /// It runs once it was triggered. Its payer has paid by then, or the run fails for want of it.
    fn decide(&self, record: &Record, moment: Moment) -> Decision {
        let due = record.head.due.unwrap_or(moment.now);
        Decision::Run { due, price: moment.base_fee, charge: record.escrow, again: NextRun::Never }
    }

    /// The gas used burns, the rest returns to the payer (HEDERA-15).
    fn settle_run(&self, record: &Record, charge: Wei, ended: RunEnd<'_>, moment: Moment) -> Settlement {
        match &self.booked {
            Some(booked) => booked.settle_run(record, charge, ended, moment),
            None => Settlement::burn_part(ended.gas_used.cost(ended.price), charge),
        }
    }

    /// What a run left returns. Of what was prepaid for a second that is not used, as much as of a callback.
    fn settle_end(&self, record: &Record, end: End, moment: Moment) -> Settlement {
        match &self.booked {
            Some(booked) if matches!(end, End::Expired | End::Cancelled) => {
                booked.settle_end(record, End::Cancelled, moment)
            }
            _ => Settlement::refund(record.escrow),
        }
    }

    fn charge(&self, record: &Record, base_fee: GasPrice) -> Wei {
        match &self.booked {
            Some(_) => record.escrow,
            None => record.body.gas_limit.cost(base_fee),
        }
    }

    fn facts(&self) -> Vec<(&'static str, Fact)> {
        vec![
            ("maxFeePerGas", Fact::Number(u64::try_from(self.max_fee_per_gas).ok())),
            ("nonce", Fact::Number(Some(self.nonce.into()))),
            ("round", Fact::Number(Some(self.round.into()))),
            ("executionTime", Fact::Number(Some(self.execution_time))),
            ("waitForExpiry", Fact::Word(if self.booked.is_some() { "yes" } else { "no" })),
        ]
    }

    fn calls_max(&self) -> usize {
        SIGNED_CALLS_MAX
    }

    fn returns_unused(&self) -> bool {
        self.booked.is_none()
    }

    fn keeps_ends(&self) -> bool {
        true
    }

    /// Marked when its last signature comes; the run follows.
    fn is_processed(&self) -> bool {
        true
    }

    fn booking(&self, record: &Record) -> Option<Booking> {
        self.booked.as_ref()?.booking(record)
    }

    fn identity(&self) -> Option<B256> {
        Some(self.identity)
    }
}

impl SignedTerms {
    /// Whether a schedule of these terms can still be signed at a time, by what its head says.
    pub fn is_open(record: &Record, moment: Moment) -> bool {
        record.head.status == Status::Pending && record.head.due.is_none_or(|due| due > moment.now)
    }
}
