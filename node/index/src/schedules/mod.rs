//! What the index stores of schedules, including ended ones.
//!
//! The state contains a schedule only while it lives. These tables, built from the events of blocks, hold its
//! history: the blocks in which it ran, and how it ended. Each fact refers to its block, so that reverting a
//! block removes exactly what it added.

mod events;
mod find;
mod from_state;
mod rows;
mod write;

pub(crate) use events::read_events;
pub(crate) use find::{body, find, known, runs_of};
pub(crate) use from_state::{add_living, living};
pub(crate) use write::{add, take_back};

use crate::{block::Location, participants::Direction};
use alloy_primitives::Address;
use almanac_primitives::{Lane, ScheduleId, TimestampMs, Wei};
use almanac_schedule::{
    Record,
    decide::End,
    record::{Body, Door, LastRun},
};
use std::ops::RangeInclusive;

/// A schedule as the events of blocks describe it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Its id, which encodes where it was created.
    pub id: ScheduleId,
    /// Who may cancel it.
    pub owner: Address,
    /// The contract that it calls.
    pub target: Address,
    /// The lane of its runs.
    pub lane: Lane,
    /// The door through which it was made; `None` if a fault had broken its record by then.
    pub door: Option<Door>,
    /// When its first run is due, if a time triggers it.
    pub first_due: Option<TimestampMs>,
    /// Number of runs.
    pub runs: u64,
    /// Number of failed runs.
    pub runs_failed: u64,
    /// What its runs cost.
    pub fees: Wei,
    /// The fault of the chain's own that quarantined it.
    pub quarantine: Option<Ending>,
    /// How it ended.
    pub end: Option<Ending>,
}

/// A run that took place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PastRun {
    /// Where.
    pub location: Location,
    /// What it cost.
    pub fee: Wei,
    /// How it ended.
    pub result: LastRun,
}

/// What ended or quarantined a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// Why.
    pub reason: EndReason,
    /// What its owner got back; `None` where that is not known, and for a quarantine.
    pub refunded: Option<Wei>,
    /// The transaction in which it happened.
    pub location: Location,
}

/// Why a schedule ended or was quarantined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// It ended.
    Ended(End),
    /// A fault of the chain's own quarantined it.
    Fault(String),
}

impl Ending {
    /// The resulting status.
    pub fn status(&self) -> ScheduleStatus {
        match self.reason {
            EndReason::Ended(end) => ScheduleStatus::of_end(end),
            EndReason::Fault(_) => ScheduleStatus::Quarantined,
        }
    }

    /// The reason, if the status does not imply it.
    pub fn explanation(&self) -> Option<String> {
        match &self.reason {
            EndReason::Ended(End::Succeeded | End::Failed | End::Cancelled) => None,
            EndReason::Ended(end) => Some(end.to_string()),
            EndReason::Fault(reason) => Some(reason.clone()),
        }
    }
}

/// Where a schedule is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum ScheduleStatus {
    /// It waits for its next run.
    Pending = 0,
    /// A fault of the chain's own quarantined it; its owner may cancel it.
    Quarantined = 1,
    /// Its only run succeeded.
    Succeeded = 2,
    /// Its only run failed.
    Failed = 3,
    /// Its owner cancelled it.
    Cancelled = 4,
    /// Its runs or its escrow are used up.
    Exhausted = 5,
}

impl ScheduleStatus {
    /// Every status.
    pub const ALL: [Self; 6] =
        [Self::Pending, Self::Quarantined, Self::Succeeded, Self::Failed, Self::Cancelled, Self::Exhausted];

    /// The status after this end.
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
    /// Where it is in its life.
    pub fn status(&self) -> ScheduleStatus {
        let ending = self.end.as_ref().or(self.quarantine.as_ref());
        ending.map_or(ScheduleStatus::Pending, Ending::status)
    }

    /// The transaction that created it.
    pub fn created(&self) -> Location {
        let index = usize::try_from(self.id.index()).expect("an index fits the memory it counts");
        Location { number: self.id.block(), index }
    }
}

/// A schedule with everything known of it at one block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownSchedule {
    /// Its history.
    pub schedule: Schedule,
    /// Its immutable part; `None` if it ended in the block that created it.
    pub body: Option<Body>,
    /// Its record, while it lives.
    pub record: Option<Record>,
    /// How its last run ended, also after its end.
    pub last_run: LastRun,
}

/// Which schedules to find. `None` allows anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScheduleFilter {
    /// Their owner.
    pub owner: Option<Address>,
    /// The contract that they call.
    pub target: Option<Address>,
    /// Their status.
    pub status: Option<ScheduleStatus>,
    /// The lane of their runs.
    pub lane: Option<Lane>,
    /// The door through which they were made.
    pub door: Option<Door>,
    /// When their next run is due; excludes schedules without one.
    pub due: Option<RangeInclusive<TimestampMs>>,
    /// Which come first, by creation.
    pub order: Direction,
}

/// A page of the schedules that match a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchedulePage {
    /// The schedules, by creation, in the filter's order.
    pub schedules: Vec<KnownSchedule>,
    /// The id to continue after; `None` if there are no more.
    pub next: Option<ScheduleId>,
}
