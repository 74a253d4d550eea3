//! Where a block's user transactions come from: a body to be checked, or a choice to be made.

use crate::{error::BlockError, validate::TransactionError};
use alloy_primitives::{Address, TxHash};
use almanac_primitives::{Gas, RecoveredTransaction};
use std::collections::{BTreeSet, VecDeque};

/// What a block can still take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Shared gas.
    pub gas_left: Gas,
    /// Bytes of the body.
    pub bytes_left: usize,
    /// Transactions.
    pub count_left: usize,
}

/// Offers a block its transactions.
pub trait TransactionSource {
    /// The next one to try, or `None` when there are no more.
    fn next(&mut self, room: Room) -> Option<RecoveredTransaction>;

    /// Learns that the last one broke a rule and is not in the block. An error ends the block.
    fn refused(
        &mut self,
        transaction: RecoveredTransaction,
        error: TransactionError,
    ) -> Result<(), BlockError>;

    /// Learns that executing the last one met a fault of our own or of the state below. Nothing of it took effect.
    /// An error ends the block.
    fn faulted(&mut self, _: RecoveredTransaction, error: BlockError) -> Result<(), BlockError> {
        Err(error)
    }

    /// Shows what is next in line, until `show` answers `false`: its keys can be fetched ahead. Not all of it will be
    /// offered.
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

    fn upcoming(&self, show: &mut dyn FnMut(&RecoveredTransaction) -> bool) {
        self.transactions.iter().all(show);
    }
}

/// The least gas that any transaction asks for: with less left, there is no point in going on.
const LEAST_GAS: Gas = Gas(21_000);

/// Faults after which no more candidates are offered: something is wrong with this node rather than with them.
const FAULTS_MAX: usize = 4;

/// Candidates in order of preference: those that do not pass are left out, with the rest of their sender's.
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

    /// Which candidates were refused, and why.
    pub fn refusals(&self) -> &[(TxHash, TransactionError)] {
        &self.refusals
    }

    /// Which candidates met a fault, and which.
    pub fn faults(&self) -> &[(TxHash, BlockError)] {
        &self.faults
    }
}

impl TransactionSource for Candidates {
    fn next(&mut self, room: Room) -> Option<RecoveredTransaction> {
        if room.gas_left < LEAST_GAS || room.count_left == 0 || self.faults.len() == FAULTS_MAX {
            return None;
        }
        loop {
            let candidate = self.queue.pop_front()?;
            if !self.skipped.contains(&candidate.sender()) {
                return Some(candidate);
            }
        }
    }

    fn refused(
        &mut self,
        transaction: RecoveredTransaction,
        error: TransactionError,
    ) -> Result<(), BlockError> {
        self.skipped.insert(transaction.sender());
        self.refusals.push((transaction.hash(), error));
        Ok(())
    }

    fn faulted(&mut self, transaction: RecoveredTransaction, error: BlockError) -> Result<(), BlockError> {
        self.skipped.insert(transaction.sender());
        self.faults.push((transaction.hash(), error));
        Ok(())
    }

    fn upcoming(&self, show: &mut dyn FnMut(&RecoveredTransaction) -> bool) {
        self.queue.iter().filter(|candidate| !self.skipped.contains(&candidate.sender())).all(show);
    }
}
