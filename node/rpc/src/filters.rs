//! Filters that a client makes once and asks for news again and again.

use crate::heads::Heads;
use alloy_primitives::{B256, TxHash};
use almanac_index::LogFilter;
use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard},
    time::{Duration, Instant},
};
use tokio::sync::broadcast;

/// A filter that nobody asked for this long is gone.
const IDLE_MAX: Duration = Duration::from_secs(300);
/// Most filters at once, of all clients.
const COUNT_MAX: usize = 1_000;

/// All filters.
#[derive(Debug, Default)]
pub(crate) struct Filters(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    made: u64,
    filters: BTreeMap<u64, Filter>,
}

/// What a filter is about, and how far it got.
#[derive(Debug)]
struct Filter {
    kind: Kind,
    asked: Instant,
}

/// What a filter tells.
#[derive(Debug)]
pub(crate) enum Kind {
    /// Hashes of new blocks.
    Blocks(Progress),
    /// Logs of new blocks.
    Logs(LogFilter, Progress),
    /// Hashes of transactions that came into the pool.
    Pending(broadcast::Receiver<TxHash>),
}

/// The next height to tell of, and how often the chain had gone back by then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    next: u64,
    reverts: usize,
}

impl Progress {
    /// Begins after the block at `height`.
    pub(crate) fn after(height: u64, heads: &Heads) -> Self {
        Self { next: height.saturating_add(1), reverts: heads.revert_count() }
    }

    /// The heights that are news when the chain is at `tip`.
    pub(crate) fn advance(&mut self, tip: u64, heads: &Heads) -> std::ops::RangeInclusive<u64> {
        if let Some(lowest) = heads.lowest_since(self.reverts) {
            self.next = self.next.min(lowest.saturating_add(1));
            self.reverts = heads.revert_count();
        }
        let news = self.next..=tip;
        self.next = self.next.max(tip.saturating_add(1));
        news
    }
}

/// There is no such filter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FilterError {
    #[error("filter not found: it was removed, or nobody asked for it for {} s", IDLE_MAX.as_secs())]
    NotFound,
    #[error("there are {COUNT_MAX} filters already: remove some with eth_uninstallFilter, or subscribe")]
    TooMany,
}

impl Filters {
    /// Makes a filter and answers with its number.
    pub(crate) fn add(&self, kind: Kind) -> Result<u64, FilterError> {
        let mut table = self.lock();
        table.filters.retain(|_, filter| filter.asked.elapsed() < IDLE_MAX);
        if table.filters.len() >= COUNT_MAX {
            return Err(FilterError::TooMany);
        }
        table.made += 1;
        let id = table.made;
        table.filters.insert(id, Filter { kind, asked: Instant::now() });
        Ok(id)
    }

    /// Removes a filter; whether there was one.
    pub(crate) fn remove(&self, id: u64) -> bool {
        self.lock().filters.remove(&id).is_some()
    }

    /// Does something with a filter that is still alive.
    pub(crate) fn with<T>(&self, id: u64, work: impl FnOnce(&mut Kind) -> T) -> Result<T, FilterError> {
        let mut table = self.lock();
        let filter = table.filters.get_mut(&id).ok_or(FilterError::NotFound)?;
        if filter.asked.elapsed() >= IDLE_MAX {
            table.filters.remove(&id);
            return Err(FilterError::NotFound);
        }
        filter.asked = Instant::now();
        Ok(work(&mut filter.kind))
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().expect("nobody panics while holding the filters")
    }
}

/// Everything that came in since the last time; what was too much to hold is lost.
pub(crate) fn drain(pending: &mut broadcast::Receiver<TxHash>) -> Vec<B256> {
    let mut hashes = Vec::new();
    loop {
        match pending.try_recv() {
            Ok(hash) => hashes.push(hash),
            Err(broadcast::error::TryRecvError::Lagged(_)) => {}
            Err(_) => return hashes,
        }
    }
}
