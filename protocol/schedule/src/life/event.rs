//! What happened to a schedule, in words that belong to no door.

use crate::{
    decide::End,
    record::{Body, Door},
};
use alloy_primitives::Address;
use almanac_primitives::{Gas, Lane, ScheduleId, TimestampMs, Wei};

/// Something that happened to a schedule. Its door says it in its own words, and the index keeps it as it is here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Which schedule.
    pub id: ScheduleId,
    /// The door that it came through; `None` where the record cannot be read.
    pub door: Option<Door>,
    /// What happened.
    pub what: What,
}

/// Something that happened to a schedule, and in which transaction of its block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LifeEvent {
    /// The transaction's receipt index.
    pub index: usize,
    /// What happened.
    pub event: Event,
}

/// What happened to a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// Somebody made it.
    Created {
        /// Who may cancel it.
        owner: Address,
        /// The contract that it calls first.
        target: Address,
        /// How its runs get into a block.
        lane: Lane,
        /// When its first run is due, if a time makes it run.
        due: Option<TimestampMs>,
    },
    /// Somebody added money.
    ToppedUp {
        /// How much.
        amount: Wei,
        /// What it has now.
        escrow: Wei,
    },
    /// A run is over.
    Executed {
        /// Whether the call returned.
        is_success: bool,
        /// Gas it used.
        gas_used: Gas,
    },
    /// It has ended.
    Ended {
        /// Why.
        end: End,
        /// Whose it was.
        owner: Address,
        /// What was paid back.
        refunded: Wei,
    },
    /// A fault of the chain's own put it aside.
    Quarantined {
        /// What is wrong.
        reason: String,
    },
}

impl Event {
    /// Something that happened to a schedule with this body.
    pub(super) fn of(id: ScheduleId, body: &Body, what: What) -> Self {
        Self { id, door: Some(body.door()), what }
    }
}
