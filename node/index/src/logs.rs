//! Finds logs by contract and topics.
//!
//! For each term (a contract, or a topic at a position) there is a list of the blocks and receipts that contain
//! it. A filter is a list of constraints, each a set of alternative terms. Only receipts that satisfy all
//! constraints are read and compared.

use crate::{
    block::{Location, unseen},
    error::{Fault, LogsError},
    read,
    rows::{self, ReceiptRow, Term},
    store::{Row, Table, View},
};
use alloy_primitives::{Address, B256, BlockHash, Log, TxHash};
use almanac_primitives::TimestampMs;

/// Which logs to find. An empty list allows anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogFilter {
    /// First height.
    pub from: u64,
    /// Last height.
    pub to: u64,
    /// Contracts, one of which must have emitted the log.
    pub addresses: Vec<Address>,
    /// For each position, topics of which the log must have one there.
    pub topics: [Vec<B256>; 4],
}

impl LogFilter {
    /// Whether a log matches, ignoring its block.
    pub fn matches(&self, log: &Log) -> bool {
        let topics = log.topics();
        let mut positions = self.topics.iter().enumerate();
        allows(&self.addresses, Some(&log.address))
            && positions.all(|(position, allowed)| allows(allowed, topics.get(position)))
    }

    /// The filter's constraints, each a list of alternative terms.
    fn constraints(&self) -> Vec<Vec<Term>> {
        let addresses = self.addresses.iter().map(|address| Term::Address(*address)).collect();
        let topics = (0u8..)
            .zip(&self.topics)
            .map(|(position, topics)| topics.iter().map(|topic| Term::Topic(position, *topic)).collect());
        let mut constraints: Vec<Vec<Term>> = std::iter::once(addresses).chain(topics).collect();
        constraints.retain(|terms| !terms.is_empty());
        if constraints.is_empty() {
            constraints.push(vec![Term::Any]);
        }
        constraints
    }
}

fn allows<T: PartialEq>(allowed: &[T], given: Option<&T>) -> bool {
    allowed.is_empty() || given.is_some_and(|given| allowed.contains(given))
}

/// A log with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// The transaction that emitted it.
    pub location: Location,
    /// Hidden receipts of the block; these come first.
    pub unseen: usize,
    /// That transaction's hash.
    pub transaction_hash: TxHash,
    /// Hash of the block.
    pub block_hash: BlockHash,
    /// Time of the block.
    pub timestamp: TimestampMs,
    /// Position among all logs of the block.
    pub log_index: usize,
    /// The log.
    pub log: Log,
}

/// A search in progress.
pub(crate) struct Search<'a> {
    filter: &'a LogFilter,
    bounds: Bounds,
    /// Rows read so far.
    looked_at: usize,
    bytes: usize,
    found: usize,
    /// Receives each match. Returns false to end the search.
    take: &'a mut dyn FnMut(LogEntry) -> bool,
    /// The last block whose logs were all returned.
    complete_to: Option<u64>,
}

/// The limits of a search.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    /// Most matching logs.
    pub(crate) found_max: usize,
    /// Most rows to read.
    pub(crate) looked_at_max: usize,
    /// Most bytes to read: one receipt may be megabytes.
    pub(crate) bytes_max: usize,
}

/// Why a search ended early: a limit, or a failure of the store.
pub(crate) enum Stop {
    Limit(LogsError),
    Fault(Fault),
}

impl From<LogsError> for Stop {
    fn from(limit: LogsError) -> Self {
        Self::Limit(limit)
    }
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl<'a> Search<'a> {
    pub(crate) fn new(
        filter: &'a LogFilter,
        bounds: Bounds,
        take: &'a mut dyn FnMut(LogEntry) -> bool,
    ) -> Self {
        Self { filter, bounds, looked_at: 0, bytes: 0, found: 0, take, complete_to: None }
    }

    /// Searches the filter's range in execution order.
    pub(crate) fn run(&mut self, view: &View<'_>) -> Result<(), Stop> {
        let to = self.filter.to;
        let mut constraints: Vec<_> = self.filter.constraints().into_iter().map(Constraint::new).collect();
        let mut height = self.filter.from;
        while height <= to
            && let Some(next) = self.next_common(&mut constraints, view, height, to)?
        {
            if next > height {
                self.complete_to = Some(next - 1);
            }
            self.examine(view, next, &common_receipts(&constraints, next))?;
            self.complete_to = Some(next);
            let Some(after) = next.checked_add(1) else { break };
            height = after;
        }
        Ok(())
    }

    /// The lowest height from `height` on that satisfies every constraint, if it is not above `to`.
    fn next_common(
        &mut self,
        constraints: &mut [Constraint],
        view: &View<'_>,
        mut height: u64,
        to: u64,
    ) -> Result<Option<u64>, Stop> {
        let mut agreed = 0;
        while agreed < constraints.len() {
            agreed = 0;
            for constraint in &mut *constraints {
                let Looked { rows, bytes } = constraint.seek(view, height, to)?;
                self.look_at(rows, bytes)?;
                match constraint.height() {
                    None => return Ok(None),
                    Some(next) if next == height => agreed += 1,
                    Some(next) => height = next,
                }
            }
        }
        Ok(Some(height))
    }

    fn examine(&mut self, view: &View<'_>, number: u64, indexes: &[u32]) -> Result<(), Stop> {
        if indexes.is_empty() {
            return Ok(());
        }
        let header = read::header_at(view, number)?;
        let block_hash = header.hash();
        let unseen = unseen(&self.receipt_at(view, Location::first_of(number))?.receipt);
        for index in indexes {
            let index = usize::try_from(*index).expect("an index fits the memory it counts");
            let location = Location { number, index };
            let row = self.receipt_at(view, location)?;
            let first_log = usize::try_from(row.first_log).expect("logs fit the memory they are counted in");
            for (nth, log) in row.receipt.logs.into_iter().enumerate() {
                if self.filter.matches(&log) {
                    self.take(LogEntry {
                        location,
                        unseen,
                        transaction_hash: row.receipt.transaction_hash,
                        block_hash,
                        timestamp: header.timestamp,
                        log_index: first_log + nth,
                        log,
                    })?;
                }
            }
        }
        Ok(())
    }

    fn receipt_at(&mut self, view: &View<'_>, location: Location) -> Result<ReceiptRow, Stop> {
        let (row, bytes) = read::receipt_at(view, location)?;
        self.look_at(1, bytes)?;
        Ok(row)
    }

    fn take(&mut self, entry: LogEntry) -> Result<(), LogsError> {
        let (max, complete_to) = (self.bounds.found_max, self.complete_to);
        if self.found == max {
            return Err(LogsError::TooMany { max, complete_to });
        }
        self.found += 1;
        if (self.take)(entry) { Ok(()) } else { Err(LogsError::TooLarge { complete_to }) }
    }

    fn look_at(&mut self, rows: usize, bytes: usize) -> Result<(), LogsError> {
        self.looked_at = self.looked_at.saturating_add(rows);
        self.bytes = self.bytes.saturating_add(bytes);
        let (looked_at, bytes, complete_to) = (self.looked_at, self.bytes, self.complete_to);
        if looked_at > self.bounds.looked_at_max {
            return Err(LogsError::TooWide { looked_at, complete_to });
        }
        if bytes > self.bounds.bytes_max {
            return Err(LogsError::TooHeavy { bytes, complete_to });
        }
        Ok(())
    }
}

/// The amount read.
#[derive(Clone, Copy, Default)]
struct Looked {
    rows: usize,
    bytes: usize,
}

/// One constraint of a filter: a log has one of these terms.
struct Constraint {
    terms: Vec<Sought>,
}

/// The next block that has a term.
struct Sought {
    prefix: Vec<u8>,
    /// `None` if no block is left.
    next: Option<(u64, Vec<u32>)>,
    is_started: bool,
}

impl Constraint {
    fn new(terms: Vec<Term>) -> Self {
        let sought = |term: Term| Sought { prefix: term.prefix(), next: None, is_started: false };
        Self { terms: terms.into_iter().map(sought).collect() }
    }

    /// Moves every term to its first block in `height..=to`. Returns the amount read.
    fn seek(&mut self, view: &View<'_>, height: u64, to: u64) -> Result<Looked, Fault> {
        let mut looked = Looked::default();
        for sought in &mut self.terms {
            let is_there = match &sought.next {
                Some((next, _)) => *next >= height,
                None => sought.is_started,
            };
            if !is_there {
                looked.bytes += sought.seek(view, height, to)?;
                looked.rows += 1;
            }
        }
        Ok(looked)
    }

    /// The lowest block that has one of the terms.
    fn height(&self) -> Option<u64> {
        self.terms.iter().filter_map(|sought| sought.next.as_ref()).map(|(height, _)| *height).min()
    }

    /// The receipts of a block that have one of the terms, ascending.
    fn receipts(&self, height: u64) -> Vec<u32> {
        let here =
            self.terms.iter().filter_map(|sought| sought.next.as_ref()).filter(|next| next.0 == height);
        let mut indexes: Vec<u32> = here.flat_map(|(_, indexes)| indexes).copied().collect();
        indexes.sort_unstable();
        indexes.dedup();
        indexes
    }
}

impl Sought {
    /// Returns the number of bytes read.
    fn seek(&mut self, view: &View<'_>, height: u64, to: u64) -> Result<usize, Fault> {
        let (first, last) = (rows::at_height(&self.prefix, height), rows::at_height(&self.prefix, to));
        let row = view.range(Table::Postings, &first..=&last).next().transpose()?;
        let bytes = row.as_ref().map_or(0, |(key, row)| key.len() + row.len());
        let read = |(key, row): Row| Ok::<_, Fault>((rows::height_of(&key)?, rows::read_posting(&row)?));
        self.next = row.map(read).transpose()?;
        self.is_started = true;
        Ok(bytes)
    }
}

/// The receipts of a block that satisfy every constraint.
fn common_receipts(constraints: &[Constraint], height: u64) -> Vec<u32> {
    let lists = constraints.iter().map(|constraint| constraint.receipts(height));
    let both = |mut common: Vec<u32>, other: Vec<u32>| {
        common.retain(|index| other.binary_search(index).is_ok());
        common
    };
    lists.reduce(both).unwrap_or_default()
}
