//! Ends a proposer's choice in time: a block that the others cannot judge before they lose patience is lost.
//!
//! Only the choice of transactions ends. What is due runs in any case, since no proposer may leave it out.

use crate::clock::Clock;
use alloy_primitives::TxHash;
use almanac_exec::{BlockError, Candidates, Room, TransactionError, TransactionSource};
use almanac_primitives::{RecoveredTransaction, TimestampMs};
use std::{fmt, sync::Arc};

/// When a proposer stops adding transactions.
#[derive(Clone, Default)]
pub struct Deadline(Option<Arc<dyn Fn() -> bool + Send + Sync>>);

impl Deadline {
    /// The block is full when it is full.
    pub const NEVER: Self = Self(None);

    /// The moment at which `clock` shows `moment`.
    pub fn at(clock: impl Clock, moment: TimestampMs) -> Self {
        Self(Some(Arc::new(move || clock.now() >= moment)))
    }

    fn has_come(&self) -> bool {
        self.0.as_ref().is_some_and(|has_come| has_come())
    }
}

impl fmt::Debug for Deadline {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.0.is_some() { "Deadline::at" } else { "Deadline::NEVER" })
    }
}

/// Offers candidates until a deadline, and whatever the time until one is taken: a slow node's blocks are small,
/// not empty.
pub(crate) struct InTime {
    candidates: Candidates,
    deadline: Deadline,
    offered: usize,
}

impl InTime {
    pub(crate) fn new(candidates: Vec<RecoveredTransaction>, deadline: Deadline) -> Self {
        Self { candidates: Candidates::new(candidates), deadline, offered: 0 }
    }

    pub(crate) fn refusals(&self) -> &[(TxHash, TransactionError)] {
        self.candidates.refusals()
    }

    fn is_any_taken(&self) -> bool {
        self.offered > self.refusals().len()
    }
}

impl TransactionSource for InTime {
    fn next(&mut self, room: Room) -> Option<RecoveredTransaction> {
        if self.is_any_taken() && self.deadline.has_come() {
            return None;
        }
        self.offered += 1;
        self.candidates.next(room)
    }

    fn refused(
        &mut self,
        transaction: RecoveredTransaction,
        error: TransactionError,
    ) -> Result<(), BlockError> {
        self.candidates.refused(transaction, error)
    }
}
