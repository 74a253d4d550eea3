//! What every door answers about its schedules, as data: what becomes of one that is due, and who gets the money.
//!
//! Each door has one module of rules (`doors`). Here is what they all answer with. `life` carries the answers out, for
//! all doors alike.

use crate::{
    doors::cron,
    record::{Head, Record, Status},
};
use alloy_primitives::Address;
use almanac_primitives::{Gas, GasPrice, Lane, Outcome, TimestampMs, Wei};
use std::fmt;

/// What a block brings to the schedules that it meets.
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
    /// The block until which an end of this block stays readable, where its door keeps ends.
    pub ended_kept_until: u64,
}

/// What a block does with a schedule that it meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It runs.
    Run {
        /// The due time that the run is for.
        due: TimestampMs,
        /// The price of its gas, as its receipt shows it.
        price: GasPrice,
        /// What leaves the escrow before the call.
        charge: Wei,
        /// What comes after it.
        again: NextRun,
    },
    /// It waits for a better price until its own clock says `until`.
    Wait {
        /// When it expires.
        until: u64,
    },
    /// It does not run this time, and waits for a later one.
    Skip {
        /// That time.
        until: TimestampMs,
    },
    /// It ends without a run.
    End(End),
}

/// What comes after a run.
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
    /// Its escrow does not pay for the next run.
    OutOfMoney = 4,
    /// It has run as often as it should.
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

    /// What the head of a schedule says that stays readable after such an end.
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
            // ARC-21's words, which its events carry.
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
    /// What became of the call.
    pub outcome: &'o Outcome,
    /// Gas it used.
    pub gas_used: Gas,
}

/// Who gets an amount of a schedule's money. The parts add up to the amount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settlement {
    /// Taken out of the world.
    pub burn: Wei,
    /// Paid to the block's fee recipient.
    pub fee_recipient: Wei,
    /// Paid back: into the escrow while the schedule lives, else to whom its refunds go.
    pub refund: Wei,
}

impl Settlement {
    /// All of it returns.
    pub fn refund(amount: Wei) -> Self {
        Self { refund: amount, ..Self::default() }
    }

    /// This much is burned, and the rest returns.
    pub fn burn_part(burn: Wei, amount: Wei) -> Self {
        let burn = burn.min(amount);
        Self { burn, refund: amount.checked_sub(burn).unwrap_or(Wei::ZERO), ..Self::default() }
    }

    /// What is divided.
    pub fn total(&self) -> Option<Wei> {
        self.burn.checked_add(self.fee_recipient)?.checked_add(self.refund)
    }
}

/// What a block does with a schedule that it meets. Nothing changes.
pub fn decide(record: &Record, moment: Moment) -> Decision {
    record.body.terms.decide(record, moment)
}

/// Whether a block can tell from the head alone that a schedule will not run: what it has to look at must not cost
/// more than the look was paid for. Only the cron lane has heads that tell.
pub fn is_passed_over(head: &Head, moment: Moment) -> bool {
    head.lane == Lane::Cron && cron::is_passed_over(head, moment)
}
