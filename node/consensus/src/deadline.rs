//! Ends a proposer's choice of transactions in time: a block that others cannot verify before their timeout is lost.
//!
//! Only the choice of transactions ends. Due runs are executed in any case, since a proposer cannot leave them
//! out.

use crate::{admission::may_pass_later, clock::Clock, spread::spread};
use alloy_primitives::TxHash;
use almanac_exec::{BlockError, Candidates, Room, TransactionError, TransactionSource};
use almanac_primitives::{DurationMs, RecoveredTransaction, TimestampMs};
use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, OnceLock},
};

/// When a proposer stops adding transactions.
#[derive(Clone, Default)]
pub struct Deadline(Option<Limit>);

/// A moment of a clock.
#[derive(Clone)]
struct Limit {
    now: Arc<dyn Fn() -> TimestampMs + Send + Sync>,
    moment: TimestampMs,
    /// How long transactions are offered at least, from the first one on.
    least: DurationMs,
    /// Until when that is. Shared by all attempts at a proposal: a second one gets no further time.
    open_until: Arc<OnceLock<TimestampMs>>,
}

impl Deadline {
    /// No deadline: only the block's own limits apply.
    pub const NEVER: Self = Self(None);

    /// The deadline at `moment` on `clock`.
    pub fn at(clock: impl Clock, moment: TimestampMs) -> Self {
        let now = Arc::new(move || clock.now());
        Self(Some(Limit { now, moment, least: DurationMs(0), open_until: Arc::default() }))
    }

    /// Leaves this much time for transactions, however long the work takes that comes first and that no proposer can
    /// leave out. Otherwise due runs of slow code would keep everybody else out for a small part of a block's price.
    #[must_use]
    pub fn leaving(mut self, least: DurationMs) -> Self {
        if let Some(limit) = &mut self.0 {
            limit.least = least;
        }
        self
    }

    /// Notes that the first transaction is about to be offered.
    fn open(&self) {
        if let Some(limit) = self.0.as_ref().filter(|limit| limit.least.0 > 0) {
            let end = || (limit.now)().checked_add(limit.least).unwrap_or(limit.moment);
            limit.open_until.get_or_init(end);
        }
    }

    /// Whether it has come, or will have come when work of this length is done.
    fn has_come(&self, needed: DurationMs) -> bool {
        let Some(Limit { now, moment, open_until, .. }) = &self.0 else { return false };
        let now = now();
        let is_open = open_until.get().is_some_and(|end| now < *end);
        !is_open && now.checked_add(needed).is_none_or(|then| then >= *moment)
    }
}

impl fmt::Debug for Deadline {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.0.is_some() { "Deadline::at" } else { "Deadline::NEVER" })
    }
}

/// Further candidates for a proposal whose own were void. One transaction may void many others, and a block must not go
/// out empty for that.
#[derive(Clone, Default)]
pub struct More(Option<Arc<Find>>);

/// Candidates beside those with these hashes.
type Find = dyn Fn(&BTreeSet<TxHash>) -> Vec<RecoveredTransaction> + Send + Sync;

impl More {
    /// No further ones.
    pub const NONE: Self = Self(None);

    /// Candidates beside those that were offered.
    pub fn by(find: impl Fn(&BTreeSet<TxHash>) -> Vec<RecoveredTransaction> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(find)))
    }
}

impl fmt::Debug for More {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.0.is_some() { "More::by" } else { "More::NONE" })
    }
}

/// How often a proposal asks for further candidates: each time the pool is locked while it looks past the others.
const REFILLS_MAX: usize = 3;

/// Gas of market runs that a proposer executes in a millisecond: plain work takes about one nanosecond per gas. They
/// follow the last transaction in any case, so the choice ends earlier where they are many.
const RUNS_GAS_PER_MS: u64 = 1_000_000;

/// Candidates to try past the deadline while none is taken. So a slow node's blocks are small but not empty,
/// and a pool full of invalid transactions still comes to an end.
const LATE_TRIES_MAX: usize = 8;

/// Failed views from which nothing is tried past the deadline, whatever time due work took: a single transaction may have
/// been too much.
const STRICT_FAILED_VIEWS: u64 = 2;

/// Offers candidates until a deadline, and a few more while none is taken.
pub(crate) struct InTime {
    candidates: Candidates,
    deadline: Deadline,
    /// Those that were offered and neither rejected nor caused a fault.
    taken: Vec<TxHash>,
    taken_max: usize,
    late_tries_left: usize,
    more: More,
    refills_left: usize,
    offered: BTreeSet<TxHash>,
    /// How many were offered before the last refill, and how many of them were void.
    before: (usize, usize),
    /// How many were void: no rule of this block alone kept them out.
    void: usize,
}

impl InTime {
    /// Offers `candidates` until `deadline`, after this many consecutive views without a block.
    pub(crate) fn new(candidates: Vec<RecoveredTransaction>, deadline: Deadline, failed_views: u64) -> Self {
        let is_strict = failed_views >= STRICT_FAILED_VIEWS;
        let late_tries_left = if is_strict { 0 } else { LATE_TRIES_MAX };
        let deadline = if is_strict { deadline.leaving(DurationMs(0)) } else { deadline };
        Self {
            candidates: Candidates::new(candidates),
            deadline,
            taken: Vec::new(),
            taken_max: usize::MAX,
            late_tries_left,
            more: More::NONE,
            refills_left: REFILLS_MAX,
            offered: BTreeSet::new(),
            before: (0, 0),
            void: 0,
        }
    }

    /// Asks for further candidates when half of those before were void.
    pub(crate) fn with_more(mut self, more: More) -> Self {
        self.more = more;
        self
    }

    /// Limits how many are taken.
    pub(crate) fn at_most(mut self, taken_max: usize) -> Self {
        self.taken_max = taken_max;
        self
    }

    /// The candidates that would be in the block.
    pub(crate) fn taken(&self) -> &[TxHash] {
        &self.taken
    }

    /// Which candidates were rejected, and why; and which caused a fault.
    pub(crate) fn left_out(&self) -> LeftOut {
        LeftOut { refused: self.candidates.refusals().to_vec(), faulted: self.candidates.faults().to_vec() }
    }

    fn refill(&mut self) {
        let (offered, void) = (self.offered.len() - self.before.0, self.void - self.before.1);
        if void == 0 || void * 2 < offered || self.refills_left == 0 {
            return;
        }
        let Some(find) = &self.more.0 else { return };
        self.refills_left -= 1;
        self.before = (self.offered.len(), self.void);
        self.candidates.extend(spread(&find(&self.offered)));
    }

    fn has_time(&mut self, room: Room) -> bool {
        self.deadline.open();
        if !self.deadline.has_come(DurationMs(room.runs_gas.0 / RUNS_GAS_PER_MS)) {
            return true;
        }
        let is_allowed = self.taken.is_empty() && self.late_tries_left > 0;
        self.late_tries_left = self.late_tries_left.saturating_sub(1);
        is_allowed
    }
}

/// Candidates that were tried but are not in the block.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeftOut {
    pub(crate) refused: Vec<(TxHash, TransactionError)>,
    pub(crate) faulted: Vec<(TxHash, BlockError)>,
}

impl TransactionSource for InTime {
    fn next(&mut self, room: Room) -> Option<RecoveredTransaction> {
        if self.taken.len() >= self.taken_max || !self.has_time(room) {
            return None;
        }
        if self.candidates.is_empty() {
            self.refill();
        }
        let next = self.candidates.next(room)?;
        self.offered.insert(next.hash());
        self.taken.push(next.hash());
        Some(next)
    }

    fn refused(
        &mut self,
        transaction: RecoveredTransaction,
        error: TransactionError,
    ) -> Result<(), BlockError> {
        self.taken.pop();
        self.void += usize::from(!may_pass_later(&error));
        self.candidates.refused(transaction, error)
    }

    fn faulted(&mut self, transaction: RecoveredTransaction, error: BlockError) -> Result<(), BlockError> {
        self.taken.pop();
        self.candidates.faulted(transaction, error)
    }

    fn upcoming(&self, show: &mut dyn FnMut(&RecoveredTransaction) -> bool) {
        self.candidates.upcoming(show);
    }
}
