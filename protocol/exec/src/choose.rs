//! The source of a block's user transactions: a body to verify, or candidates to choose from.

use crate::{error::BlockError, validate::TransactionError};
use alloy_primitives::{Address, TxHash};
use almanac_primitives::{Gas, RecoveredTransaction};
use std::collections::{BTreeSet, VecDeque};

/// The room left in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Shared gas.
    pub gas_left: Gas,
    /// Bytes of the body.
    pub bytes_left: usize,
    /// Transactions.
    pub count_left: usize,
    /// The most gas that runs which follow in any case may use: choosing ends earlier where they need time.
    pub runs_gas: Gas,
}

/// Supplies a block with transactions.
pub trait TransactionSource {
    /// The next one to try, or `None` when there are no more.
    fn next(&mut self, room: Room) -> Option<RecoveredTransaction>;

    /// Called when the last one broke a rule and was left out. An error ends the block.
    fn refused(
        &mut self,
        transaction: RecoveredTransaction,
        error: TransactionError,
    ) -> Result<(), BlockError>;

    /// Called when executing the last one hit an internal fault or a state failure. Its effects were discarded.
    /// An error ends the block.
    fn faulted(&mut self, _: RecoveredTransaction, error: BlockError) -> Result<(), BlockError> {
        Err(error)
    }

    /// Whether a transaction may be left out. A body is given as it is.
    fn is_choosing(&self) -> bool {
        true
    }

    /// Shows the transactions that come next until `show` returns `false`, so that their keys can be
    /// prefetched. Some of them may never be supplied.
    fn upcoming(&self, _show: &mut dyn FnMut(&RecoveredTransaction) -> bool) {}
}

/// A finished body: every transaction must pass, or the block is invalid.
#[derive(Debug)]
pub struct BlockBody {
    transactions: VecDeque<RecoveredTransaction>,
    offered: usize,
}

impl BlockBody {
    /// The body of a block, its senders recovered.
    pub fn new(transactions: Vec<RecoveredTransaction>) -> Self {
        Self { transactions: transactions.into(), offered: 0 }
    }
}

impl TransactionSource for BlockBody {
    fn next(&mut self, _: Room) -> Option<RecoveredTransaction> {
        let transaction = self.transactions.pop_front()?;
        self.offered += 1;
        Some(transaction)
    }

    fn refused(&mut self, _: RecoveredTransaction, error: TransactionError) -> Result<(), BlockError> {
        Err(BlockError::InvalidTransaction { index: self.offered - 1, error })
    }

    fn is_choosing(&self) -> bool {
        false
    }

    fn upcoming(&self, show: &mut dyn FnMut(&RecoveredTransaction) -> bool) {
        self.transactions.iter().all(show);
    }
}

/// The least gas that any transaction needs. With less left, the choice ends.
const LEAST_GAS: Gas = Gas(21_000);

/// Faults after which the choice ends: that many mean that this node is broken, not the candidates.
const FAULTS_MAX: usize = 4;

/// Candidates in order of preference. Those that fail are left out, together with the rest of their sender's; an
/// orderless one is left out alone.
#[derive(Debug, Default)]
pub struct Candidates {
    queue: VecDeque<RecoveredTransaction>,
    skipped: BTreeSet<Address>,
    refusals: Vec<(TxHash, TransactionError)>,
    faults: Vec<(TxHash, BlockError)>,
}

impl Candidates {
    /// Candidates in the order in which a proposer wants them, each sender's by nonce.
    pub fn new(queue: Vec<RecoveredTransaction>) -> Self {
        Self { queue: queue.into(), ..Self::default() }
    }

    /// Whether none is left to offer.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Adds candidates behind the others.
    pub fn extend(&mut self, more: Vec<RecoveredTransaction>) {
        self.queue.extend(more);
    }

    /// Which candidates were rejected, and why.
    pub fn refusals(&self) -> &[(TxHash, TransactionError)] {
        &self.refusals
    }

    /// Which candidates caused a fault, and which one.
    pub fn faults(&self) -> &[(TxHash, BlockError)] {
        &self.faults
    }
}

impl Candidates {
    /// Whether an earlier one of its sender was left out. Orderless ones wait for none.
    fn is_skipped(&self, candidate: &RecoveredTransaction) -> bool {
        !candidate.transaction().is_orderless() && self.skipped.contains(&candidate.sender())
    }

    /// Leaves out what follows a sender's sequence number that was left out.
    fn skip_after(&mut self, transaction: &RecoveredTransaction) {
        if !transaction.transaction().is_orderless() {
            self.skipped.insert(transaction.sender());
        }
    }
}

impl TransactionSource for Candidates {
    fn next(&mut self, room: Room) -> Option<RecoveredTransaction> {
        if room.gas_left < LEAST_GAS || room.count_left == 0 || self.faults.len() == FAULTS_MAX {
            return None;
        }
        loop {
            let candidate = self.queue.pop_front()?;
            if !self.is_skipped(&candidate) {
                return Some(candidate);
            }
        }
    }

    fn refused(
        &mut self,
        transaction: RecoveredTransaction,
        error: TransactionError,
    ) -> Result<(), BlockError> {
        self.skip_after(&transaction);
        self.refusals.push((transaction.hash(), error));
        Ok(())
    }

    fn faulted(&mut self, transaction: RecoveredTransaction, error: BlockError) -> Result<(), BlockError> {
        self.skip_after(&transaction);
        self.faults.push((transaction.hash(), error));
        Ok(())
    }

    fn upcoming(&self, show: &mut dyn FnMut(&RecoveredTransaction) -> bool) {
        self.queue.iter().filter(|candidate| !self.is_skipped(candidate)).all(show);
    }
}
