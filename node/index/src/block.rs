//! What the index stores of a block, and positions within blocks.

use crate::logs::LogEntry;
use alloy_primitives::{Address, BlockHash, TxHash};
use almanac_primitives::{Block, Receipt, RunTransaction, TimestampMs, run::PROLOGUE_TYPE};
use almanac_schedule::life::LifeEvent;
use std::sync::Arc;

/// What the index stores of one block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedBlock {
    /// The block.
    pub block: Arc<Block>,
    /// Its hash.
    pub hash: BlockHash,
    /// The receipts of everything that ran in it.
    pub receipts: Vec<Receipt>,
    /// The sender and recipient of each of these.
    pub parties: Vec<Parties>,
    /// Schedule events, in order.
    pub events: Vec<LifeEvent>,
}

impl IndexedBlock {
    /// A block without receipts, parties and events.
    pub fn alone(block: Arc<Block>) -> Self {
        Self { hash: block.hash(), block, receipts: Vec::new(), parties: Vec::new(), events: Vec::new() }
    }

    /// Its height.
    pub fn number(&self) -> u64 {
        self.block.header.number
    }

    /// Approximate stored size in bytes.
    pub fn weight(&self) -> usize {
        const RECEIPT_BYTES: usize = 256;
        const LOG_BYTES: usize = 160;
        const EVENT_BYTES: usize = 80;
        let transactions = self.block.transactions.iter().map(|transaction| transaction.encoded().len());
        let logs = self.receipts.iter().flat_map(|receipt| &receipt.logs);
        let logs = logs.map(|log| log.data.data.len().saturating_add(LOG_BYTES));
        let runs = self.parties.iter().filter_map(|parties| parties.run.as_ref()).map(|run| run.input.len());
        let receipts = self.receipts.len().saturating_mul(RECEIPT_BYTES);
        let events = self.events.len().saturating_mul(EVENT_BYTES);
        let fixed = receipts.saturating_add(events);
        transactions.chain(logs).chain(runs).fold(fixed, usize::saturating_add)
    }

    /// How many of its receipts are hidden from clients; these come first.
    pub fn unseen(&self) -> usize {
        self.receipts.first().map_or(0, unseen)
    }

    /// The logs of the transaction with this receipt index, with their positions.
    pub fn logs_of(&self, index: usize) -> impl Iterator<Item = LogEntry> {
        let before = self.receipts.iter().take(index).map(|receipt| receipt.logs.len()).sum();
        (0..).map_while(move |nth| self.log_at(index, nth, before))
    }

    /// One log of a transaction. `before` is the number of logs of earlier transactions.
    pub fn log_at(&self, index: usize, nth: usize, before: usize) -> Option<LogEntry> {
        let receipt = self.receipts.get(index)?;
        Some(LogEntry {
            log: receipt.logs.get(nth)?.clone(),
            location: Location { number: self.number(), index },
            unseen: self.unseen(),
            transaction_hash: receipt.transaction_hash,
            block_hash: self.hash,
            timestamp: self.block.header.timestamp,
            log_index: before + nth,
        })
    }
}

/// How many receipts of a block are hidden, given the first one. A prologue without visible effects is hidden,
/// because it would only confuse clients.
pub(crate) fn unseen(first: &Receipt) -> usize {
    (first.transaction_type == PROLOGUE_TYPE && first.logs.is_empty()).into()
}

/// What is known of a receipt's position without its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its position.
    pub location: Location,
    /// Hash of the block.
    pub block_hash: BlockHash,
    /// Time of the block.
    pub timestamp: TimestampMs,
    /// Hidden receipts of the block; these come first.
    pub unseen: usize,
    /// The transaction's hash.
    pub transaction_hash: TxHash,
}

/// The sender and recipient of a transaction, and the run if the transaction is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parties {
    /// The sender.
    pub from: Address,
    /// The recipient; `None` for a creation.
    pub to: Option<Address>,
    /// The run of a schedule. Every node derives it; block bodies do not contain it.
    pub run: Option<RunTransaction>,
}

/// Where a transaction ran. Sorts in execution order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    /// Height of the block.
    pub number: u64,
    /// Receipt index in it.
    pub index: usize,
}

impl Location {
    /// Before everything in a block.
    pub fn first_of(number: u64) -> Self {
        Self { number, index: 0 }
    }

    /// After everything in a block.
    pub fn last_of(number: u64) -> Self {
        Self { number, index: usize::MAX }
    }
}
