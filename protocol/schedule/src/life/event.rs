//! What happened to a schedule, independent of its door.

use crate::{
    decide::End,
    record::{Body, Door},
};
use alloy_primitives::Address;
use almanac_primitives::{Gas, Lane, ScheduleId, TimestampMs, Wei};

/// Something that happened to a schedule. Doors translate it into their own logs; the index stores it as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Which schedule.
    pub id: ScheduleId,
    /// The door that created it; `None` if the record cannot be read.
    pub door: Option<Door>,
    /// What happened.
    pub what: What,
}

/// An event with the position of its transaction in the block.
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
    /// It was created.
    Created {
        /// Who may cancel it.
        owner: Address,
        /// The target of its first call.
        target: Address,
        /// The lane of its runs.
        lane: Lane,
        /// When its first run is due, if a time triggers it.
        due: Option<TimestampMs>,
        /// Gas that a run may use.
        gas_limit: Gas,
        /// What its door sorts it by at its creation.
        priority: u64,
    },
    /// The start of a block has taken it up; its run follows.
    Processed {
        /// Gas that the run may use.
        gas_limit: Gas,
    },
    /// Money was added to its escrow.
    ToppedUp {
        /// How much.
        amount: Wei,
        /// The escrow afterwards.
        escrow: Wei,
    },
    /// A run finished.
    Executed {
        /// Whether the call succeeded.
        is_success: bool,
        /// Gas it used.
        gas_used: Gas,
        /// What it cost: its charge without what returned of it.
        fee: Wei,
    },
    /// It ended.
    Ended {
        /// Why.
        end: End,
        /// Its owner.
        owner: Address,
        /// The amount refunded.
        refunded: Wei,
    },
    /// A fault of the chain's own quarantined it.
    Quarantined {
        /// What is wrong.
        reason: String,
    },
}

impl Event {
    /// An event of a schedule with this body.
    pub(super) fn of(id: ScheduleId, body: &Body, what: What) -> Self {
        Self { id, door: Some(body.door()), what }
    }
}
