//! What it takes to prove something in a state: which of its values.
//!
//! A node that is asked over RPC and a command that reads the directory of a stopped one prove the same.

use crate::{ClaimJson, EntryJson, LaneName};
use alloy_primitives::{TxHash, U64};
use almanac_primitives::{ScheduleId, StateKey, StateRead, TimestampMs, Wei};
use almanac_schedule::{
    Calendar, Record,
    calendar::{Leaf, Queue, due_in},
};

/// Leaves of the calendar that one proof of a span holds.
pub const PROOF_LEAVES_MAX: usize = 64;

/// What has to be proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Something in the state after the last block.
    State(StateSubject),
    /// A transaction that ran.
    Ran {
        /// Its hash.
        hash: TxHash,
        /// Whether it must be a run of a schedule.
        is_run: bool,
    },
}

/// Something in a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateSubject {
    /// One value.
    Value(StateKey),
    /// A schedule.
    Schedule(ScheduleId),
    /// What a lane has due in a span, both ends included.
    Span {
        /// The lane.
        lane: LaneName,
        /// The beginning.
        from: TimestampMs,
        /// The end.
        to: TimestampMs,
    },
}

/// What to prove, planned on one state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The claim.
    pub claim: ClaimJson,
    /// The values that prove it, in this order.
    pub keys: Vec<StateKey>,
    /// The due entries, if the claim is about a span.
    pub entries: Option<Vec<EntryJson>>,
}

/// Why something cannot be proven.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// There is no such schedule, or no longer.
    #[error("schedule {id} is not in the state: only what is there can be proven")]
    NoSchedule {
        /// Which.
        id: ScheduleId,
    },
    /// A span that ends before it begins.
    #[error("the span ends at {to}, before it begins at {from}")]
    Backwards {
        /// Its beginning.
        from: TimestampMs,
        /// Its end.
        to: TimestampMs,
    },
    /// The calendar was never written.
    #[error(
        "nothing was ever scheduled here: the calendar is not in the state, and only what is there can be proven"
    )]
    NoCalendar,
    /// The span covers too many leaves.
    #[error("the span needs more than {PROOF_LEAVES_MAX} leaves of the calendar: make it shorter")]
    TooManyLeaves,
    /// The state has something that cannot be read.
    #[error("the state cannot be read: {reason}")]
    State {
        /// What is wrong.
        reason: String,
    },
}

/// Which values show something in a state.
pub fn plan(state: &dyn StateRead, subject: StateSubject) -> Result<Plan, PlanError> {
    match subject {
        StateSubject::Value(key) => Ok(Plan { claim: ClaimJson::Value {}, keys: vec![key], entries: None }),
        StateSubject::Schedule(id) => of_schedule(state, id),
        StateSubject::Span { lane, from, to } => of_span(state, lane, from, to),
    }
}

fn of_schedule(state: &dyn StateRead, id: ScheduleId) -> Result<Plan, PlanError> {
    let record = Record::read(state, id).map_err(unreadable)?.ok_or(PlanError::NoSchedule { id })?;
    let [head, escrow, body] = Record::keys(id);
    let mut keys = vec![head, body];
    // An empty slot is not a value, and cannot be proven.
    if record.escrow > Wei::ZERO {
        keys.push(escrow);
    }
    Ok(Plan { claim: ClaimJson::Schedule { schedule: id.to_string() }, keys, entries: None })
}

fn of_span(
    state: &dyn StateRead,
    lane: LaneName,
    from: TimestampMs,
    to: TimestampMs,
) -> Result<Plan, PlanError> {
    if from > to {
        return Err(PlanError::Backwards { from, to });
    }
    if state.read(StateKey::Calendar(0)).map_err(unreadable)?.is_none() {
        return Err(PlanError::NoCalendar);
    }
    let calendar = Calendar::new(state);
    let queue = Queue::of_lane(lane.into());
    let leaves = calendar.leaves(queue, from, to, PROOF_LEAVES_MAX + 1).map_err(unreadable)?;
    if leaves.len() > PROOF_LEAVES_MAX {
        return Err(PlanError::TooManyLeaves);
    }
    let (nodes, leaves): (Vec<u64>, Vec<Leaf>) = leaves.into_iter().unzip();
    let due = due_in(&leaves, queue, from, to).map_err(unreadable)?;
    Ok(Plan {
        claim: ClaimJson::Span { lane, from: U64::from(from.0), to: U64::from(to.0) },
        keys: nodes.into_iter().map(StateKey::Calendar).collect(),
        entries: Some(due.iter().map(EntryJson::from).collect()),
    })
}

fn unreadable(error: impl std::fmt::Display) -> PlanError {
    PlanError::State { reason: error.to_string() }
}
