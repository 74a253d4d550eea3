//! What is remembered of schedules, also of those that have ended.
//!
//! The state knows a schedule only while it lives. Here is what happened to it, in which blocks it ran, and how it
//! ended, as the events of blocks tell it. Each fact names its block, so that taking a block back takes back what it
//! said and nothing else.

mod events;
mod find;
mod from_state;
mod rows;
mod write;

pub(crate) use events::read_events;
pub(crate) use find::{body, find, known, runs_of};
pub(crate) use from_state::{add_living, living};
pub(crate) use write::{add, take_back};

use crate::block::Location;
use alloy_primitives::Address;
use almanac_primitives::{Lane, ScheduleId, TimestampMs};
use almanac_schedule::{Record, decide::End, record::Body};
use std::ops::RangeInclusive;

/// A schedule as the events of blocks tell of it.
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
    /// When its first run is due, if a time makes it run.
    pub first_due: Option<TimestampMs>,
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
    /// Why.
    pub reason: EndReason,
    /// The transaction in which that happened.
    pub location: Location,
}

/// Why a schedule ended, or was put aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// It ended.
    Ended(End),
    /// A fault of the chain's own put it aside.
    Fault(String),
}

impl Ending {
    /// The status that the schedule has since.
    pub fn status(&self) -> ScheduleStatus {
        match self.reason {
            EndReason::Ended(end) => ScheduleStatus::of_end(end),
            EndReason::Fault(_) => ScheduleStatus::Quarantined,
        }
    }

    /// Why, where the status does not tell.
    pub fn explanation(&self) -> Option<String> {
        match &self.reason {
            EndReason::Ended(End::Succeeded | End::Failed | End::Cancelled) => None,
            EndReason::Ended(end) => Some(end.to_string()),
            EndReason::Fault(reason) => Some(reason.clone()),
        }
    }
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
}

impl Schedule {
    /// Where in its life it is.
    pub fn status(&self) -> ScheduleStatus {
        let ending = self.end.as_ref().or(self.quarantine.as_ref());
        ending.map_or(ScheduleStatus::Pending, Ending::status)
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
    /// What happened to it.
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
