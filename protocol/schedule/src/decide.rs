//! What every door answers about its schedules, as data: what happens to a due schedule, and who gets the
//! money.
//!
//! Each door has one module of rules (`doors`), which return the types defined here. `life` carries the answers
//! out for all doors.

use crate::{
    capacity::Shares,
    doors::cron,
    record::{Head, Record, Status},
};
use alloy_primitives::Address;
use almanac_primitives::{Gas, GasPrice, Lane, Outcome, TimestampMs, Wei};
use std::fmt;

/// The properties of a block that decisions depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The block's number.
    pub block: u64,
    /// The block's time.
    pub now: TimestampMs,
    /// The price of gas in this block.
    pub base_fee: GasPrice,
    /// Who gets the tips of this block.
    pub fee_recipient: Address,
    /// Until when the chain itself kept booked callbacks from running (`standstill`).
    pub held_until: TimestampMs,
    /// How the effort of a second is divided.
    pub shares: Shares,
    /// The block up to which a schedule that ends in this block stays readable, if its door keeps ended
    /// schedules.
    pub ended_kept_until: u64,
}

/// What a block does with a due schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It runs.
    Run {
        /// The due time that the run is for.
        due: TimestampMs,
        /// The gas price in the run's receipt.
        price: GasPrice,
        /// Deducted from the escrow before the call.
        charge: Wei,
        /// What follows this run.
        again: NextRun,
    },
    /// It waits for a better price, as long as its terms allow.
    Wait,
    /// It does not run now and becomes due again later.
    Skip {
        /// The later time.
        until: TimestampMs,
    },
    /// It ends without a run.
    End(End),
}

/// What follows a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextRun {
    /// Another run, due at this time.
    At(TimestampMs),
    /// Nothing: it was the last.
    Never,
}

/// Why a schedule has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum End {
    /// Its only run returned.
    Succeeded = 1,
    /// Its only run failed.
    Failed = 2,
    /// Its owner ended it.
    Cancelled = 3,
    /// Its escrow does not cover the next run.
    OutOfMoney = 4,
    /// It has made all its runs.
    RunsReached = 5,
    /// It waited too long.
    Expired = 6,
    /// Its door was shut down.
    Shutdown = 7,
}

impl End {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Succeeded,
        Self::Failed,
        Self::Cancelled,
        Self::OutOfMoney,
        Self::RunsReached,
        Self::Expired,
        Self::Shutdown,
    ];

    /// The reason with this number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|end| *end as u8 == number)
    }

    /// The status of a schedule that stays readable after this end.
    pub fn status(self) -> Status {
        match self {
            Self::Succeeded | Self::RunsReached => Status::Succeeded,
            Self::Failed | Self::OutOfMoney => Status::Failed,
            Self::Cancelled => Status::Cancelled,
            Self::Expired => Status::Expired,
            Self::Shutdown => Status::Shutdown,
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Succeeded => "its run returned",
            Self::Failed => "its run failed",
            Self::Cancelled => "cancelled by its owner",
            // The exact strings that ARC-21 specifies for its events.
            Self::OutOfMoney => "insufficient escrow",
            Self::RunsReached => "max runs reached",
            Self::Expired => "waited too long",
            Self::Shutdown => "its door was shut down",
        })
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug)]
pub struct RunEnd<'o> {
    /// The outcome of the call.
    pub outcome: &'o Outcome,
    /// Gas it used.
    pub gas_used: Gas,
    /// Price per gas, as its receipt shows it.
    pub price: GasPrice,
    /// What it owes beside that for the place in the block of runs that it triggered.
    pub place: Wei,
}

/// How an amount of a schedule's money is split. The parts add up to the amount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settlement {
    /// Removed from the total supply.
    pub burn: Wei,
    /// Paid to the block's fee recipient.
    pub fee_recipient: Wei,
    /// Refunded: to the escrow while the schedule lives, afterwards to the refund address.
    pub refund: Wei,
}

impl Settlement {
    /// Refunds the whole amount.
    pub fn refund(amount: Wei) -> Self {
        Self { refund: amount, ..Self::default() }
    }

    /// Burns a part and refunds the rest.
    pub fn burn_part(burn: Wei, amount: Wei) -> Self {
        let burn = burn.min(amount);
        Self { burn, refund: amount.checked_sub(burn).unwrap_or(Wei::ZERO), ..Self::default() }
    }

    /// The sum of the parts.
    pub fn total(&self) -> Option<Wei> {
        self.burn.checked_add(self.fee_recipient)?.checked_add(self.refund)
    }
}

/// What a block does with a due schedule. Pure.
pub fn decide(record: &Record, moment: Moment) -> Decision {
    record.body.terms.decide(record, moment)
}

/// Whether the head alone shows that a schedule will not run, so that looking at it costs no more than was paid
/// for the look. Only heads of the cron lane carry this information.
pub fn is_passed_over(head: &Head, moment: Moment) -> bool {
    head.lane == Lane::Cron && cron::is_passed_over(head, moment)
}
