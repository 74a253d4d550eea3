//! What is remembered of schedules, also of those that have ended.
//!
//! The state knows a schedule only while it lives. Here is what doors said of it, in which blocks it ran, and how it
//! ended. Each fact names its block, so that taking a block back takes back what it said and nothing else.

mod find;
mod living;
mod rows;
mod write;

pub(crate) use find::{body, find, known, runs_of};
pub(crate) use living::{add_living, living};
pub(crate) use write::{add, take_back};

use crate::block::Location;
use alloy_primitives::Address;
use almanac_primitives::{Lane, ScheduleId, TimestampMs};
use almanac_schedule::{Record, decide::End, record::Body};
use std::ops::RangeInclusive;

/// A schedule as its doors' logs tell of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Its name, which says where it was made.
    pub id: ScheduleId,
    /// Who may cancel it.
    pub owner: Address,
    /// The contract that it calls.
    pub target: Address,
    /// How its runs get into a block.
    pub lane: Lane,
    /// When its first run is due.
    pub first_due: TimestampMs,
    /// Whether it runs once.
    pub is_single: bool,
    /// How often it ran.
    pub runs: u64,
    /// How often that failed.
    pub runs_failed: u64,
    /// A fault of the chain's own that put it aside.
    pub quarantine: Option<Ending>,
    /// How it ended.
    pub end: Option<Ending>,
}

/// What ended a schedule, or put it aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// The status that it has since.
    pub status: ScheduleStatus,
    /// The transaction in which that happened.
    pub location: Location,
    /// Why, where the chain said so; else empty.
    pub reason: String,
}

/// Where in its life a schedule is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum ScheduleStatus {
    /// It waits for its next run.
    Pending = 0,
    /// A fault of the chain's own put it aside; its owner may cancel it.
    Quarantined = 1,
    /// Its one run returned.
    Succeeded = 2,
    /// Its one run did not.
    Failed = 3,
    /// Its owner ended it.
    Cancelled = 4,
    /// Its runs or its money are used up.
    Exhausted = 5,
}

impl ScheduleStatus {
    /// Every status.
    pub const ALL: [Self; 6] =
        [Self::Pending, Self::Quarantined, Self::Succeeded, Self::Failed, Self::Cancelled, Self::Exhausted];

    /// The status of a schedule that has ended in this way.
    pub fn of_end(end: End) -> Self {
        match end {
            End::Succeeded => Self::Succeeded,
            End::Failed => Self::Failed,
            End::Cancelled => Self::Cancelled,
            End::OutOfMoney | End::RunsReached | End::Expired | End::Shutdown => Self::Exhausted,
        }
    }

    /// The status with this number.
    pub(crate) fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|status| *status as u8 == number)
    }
}

impl Schedule {
    /// Where in its life it is.
    pub fn status(&self) -> ScheduleStatus {
        let ending = self.end.as_ref().or(self.quarantine.as_ref());
        ending.map_or(ScheduleStatus::Pending, |ending| ending.status)
    }

    /// The transaction that made it.
    pub fn created(&self) -> Location {
        let index = usize::try_from(self.id.index()).expect("an index fits the memory it counts");
        Location { number: self.id.block(), index }
    }
}

/// A schedule with all that is known of it at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownSchedule {
    /// What doors said of it.
    pub schedule: Schedule,
    /// What never changes of it; `None` where it ended in the very block that made it.
    pub body: Option<Body>,
    /// Its record, as long as it lives.
    pub record: Option<Record>,
}

/// Which schedules to find. What is `None` allows anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScheduleFilter {
    /// Whose they are.
    pub owner: Option<Address>,
    /// The contract that they call.
    pub target: Option<Address>,
    /// Where in their lives they are.
    pub status: Option<ScheduleStatus>,
    /// How their runs get into a block.
    pub lane: Option<Lane>,
    /// When their next run is due; those without one are not asked for.
    pub due: Option<RangeInclusive<TimestampMs>>,
}

/// A part of what a filter asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchedulePage {
    /// The schedules, by birth.
    pub schedules: Vec<KnownSchedule>,
    /// After which one to go on; `None` where there are no more.
    pub next: Option<ScheduleId>,
}
