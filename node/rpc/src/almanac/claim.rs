//! What it takes to prove a claim: which values of a state, or which receipt of a block.
//!
//! A node that is asked over RPC and a command that looks into the directory of a stopped one prove the same.

use super::params::LaneName;
use crate::{
    bounds::PROOF_LEAVES_MAX,
    types::{
        encoded_transaction,
        proof::{ClaimJson, EntryJson, ProofJson},
    },
};
use alloy_primitives::{TxHash, U64};
use almanac_index::{Index, StoreError};
use almanac_primitives::{ReceiptProof, ScheduleId, StateKey, StateRead, TimestampMs, Wei};
use almanac_schedule::{
    Calendar, Record,
    calendar::{Leaf, Queue, due_in},
};

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

/// Why something cannot be claimed.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
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
    /// Nothing with this hash ran.
    #[error("no block has {hash}")]
    NotFound {
        /// Which hash.
        hash: TxHash,
    },
    /// It ran, and is something else.
    #[error("{hash} is no run of a schedule: ask with {{ transaction }}")]
    NoRun {
        /// Its hash.
        hash: TxHash,
    },
    /// The index contradicts itself.
    #[error("{hash} is not where the index says")]
    Misplaced {
        /// Its hash.
        hash: TxHash,
    },
    /// The index cannot be read.
    #[error(transparent)]
    Index(#[from] StoreError),
    /// The state has something that cannot be read.
    #[error("the state cannot be read: {reason}")]
    State {
        /// What is wrong.
        reason: String,
    },
}

/// Which values show something in a state.
pub fn plan(state: &dyn StateRead, subject: StateSubject) -> Result<Plan, ClaimError> {
    match subject {
        StateSubject::Value(key) => Ok(Plan { claim: ClaimJson::Value {}, keys: vec![key], entries: None }),
        StateSubject::Schedule(id) => of_schedule(state, id),
        StateSubject::Span { lane, from, to } => of_span(state, lane, from, to),
    }
}

fn of_schedule(state: &dyn StateRead, id: ScheduleId) -> Result<Plan, ClaimError> {
    let record = Record::read(state, id).map_err(unreadable)?.ok_or(ClaimError::NoSchedule { id })?;
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
) -> Result<Plan, ClaimError> {
    if from > to {
        return Err(ClaimError::Backwards { from, to });
    }
    if state.read(StateKey::Calendar(0)).map_err(unreadable)?.is_none() {
        return Err(ClaimError::NoCalendar);
    }
    let calendar = Calendar::new(state);
    let queue = Queue::of_lane(lane.into());
    let leaves = calendar.leaves(queue, from, to, PROOF_LEAVES_MAX + 1).map_err(unreadable)?;
    if leaves.len() > PROOF_LEAVES_MAX {
        return Err(ClaimError::TooManyLeaves);
    }
    let (nodes, leaves): (Vec<u64>, Vec<Leaf>) = leaves.into_iter().unzip();
    let due = due_in(&leaves, queue, from, to).map_err(unreadable)?;
    Ok(Plan {
        claim: ClaimJson::Span { lane, from: U64::from(from.0), to: U64::from(to.0) },
        keys: nodes.into_iter().map(StateKey::Calendar).collect(),
        entries: Some(due.iter().map(EntryJson::from).collect()),
    })
}

fn unreadable(error: impl std::fmt::Display) -> ClaimError {
    ClaimError::State { reason: error.to_string() }
}

/// Proves that something ran, and what became of it.
pub fn prove_ran(index: &Index, hash: TxHash, is_run: bool) -> Result<ProofJson, ClaimError> {
    let (location, block) = index.transaction(hash)?.ok_or(ClaimError::NotFound { hash })?;
    let misplaced = || ClaimError::Misplaced { hash };
    let receipt = block.receipts.get(location.index).ok_or_else(misplaced)?;
    if is_run && receipt.schedule_ref.is_none() {
        return Err(ClaimError::NoRun { hash });
    }
    let transaction = encoded_transaction(&block, location.index).ok_or_else(misplaced)?;
    let place = u32::try_from(location.index).map_err(|_| misplaced())?;
    let proof = ReceiptProof::new(&block.receipts, place, transaction).ok_or_else(misplaced)?;
    let claim = if is_run { ClaimJson::Run { hash } } else { ClaimJson::Transaction { hash } };
    Ok(ProofJson::of_receipt(claim, &block.block.header, proof))
}
