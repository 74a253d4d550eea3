//! Filters that a client creates once and polls.

use crate::{
    bounds::{CLIENT_FILTERS_MAX, FILTER_IDLE_MAX, FILTERS_MAX},
    heads::Heads,
    peer::{Client, Peer},
    session::random_bits,
};
use alloy_primitives::B256;
use almanac_consensus::Arrival;
use almanac_index::LogFilter;
use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard},
    time::Instant,
};
use tokio::sync::broadcast;

/// All filters, by ids that nobody guesses: a client uses and removes only what it made itself.
#[derive(Debug, Default)]
pub(crate) struct Filters(Mutex<BTreeMap<u128, Filter>>);

/// What a filter is about, and how far it got.
#[derive(Debug)]
struct Filter {
    /// Who made it; nobody, where the request came from inside the process.
    client: Option<Client>,
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
    Pending(broadcast::Receiver<Arrival>),
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

/// Why there is no filter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FilterError {
    #[error("filter not found: it was removed, or nobody asked for it for {} s", FILTER_IDLE_MAX.as_secs())]
    NotFound,
    #[error(
        "there are {FILTERS_MAX} filters already, and no other address has more than this one, which has {0}: remove some \
         with eth_uninstallFilter, or subscribe"
    )]
    TooMany(usize),
    #[error(
        "this client has {CLIENT_FILTERS_MAX} filters already: remove some with eth_uninstallFilter, or subscribe \
         (all HTTP connections from one address are one client, and so is each WebSocket)"
    )]
    TooManyOfClient,
    #[error("cannot get a random id: {0}")]
    NoId(getrandom::Error),
}

impl Filters {
    /// Makes a filter and answers with its id.
    pub(crate) fn add(&self, client: Option<Client>, kind: Kind) -> Result<u128, FilterError> {
        let mut table = self.lock();
        table.retain(|_, filter| filter.asked.elapsed() < FILTER_IDLE_MAX);
        let has = table.values().filter(|filter| filter.client == client).count();
        if has >= CLIENT_FILTERS_MAX {
            return Err(FilterError::TooManyOfClient);
        }
        if table.len() >= FILTERS_MAX {
            make_room(&mut table, client.map(|client| client.peer))?;
        }
        let id = random_bits().map_err(FilterError::NoId)?;
        table.insert(id, Filter { client, kind, asked: Instant::now() });
        Ok(id)
    }

    /// Removes a filter; whether there was one.
    pub(crate) fn remove(&self, id: u128) -> bool {
        self.lock().remove(&id).is_some()
    }

    /// Does something with a filter that is still alive.
    pub(crate) fn with<T>(&self, id: u128, work: impl FnOnce(&mut Kind) -> T) -> Result<T, FilterError> {
        let mut table = self.lock();
        let filter = table.get_mut(&id).ok_or(FilterError::NotFound)?;
        if filter.asked.elapsed() >= FILTER_IDLE_MAX {
            table.remove(&id);
            return Err(FilterError::NotFound);
        }
        filter.asked = Instant::now();
        Ok(work(&mut filter.kind))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u128, Filter>> {
        self.0.lock().expect("nobody panics while holding the filters")
    }
}

/// Removes the filter that was not asked for longest, of the address that has most, unless that is the newcomer's.
fn make_room(table: &mut BTreeMap<u128, Filter>, newcomer: Option<Peer>) -> Result<(), FilterError> {
    let peer = |filter: &Filter| filter.client.map(|client| client.peer);
    let mut counts = BTreeMap::new();
    table.values().for_each(|filter| *counts.entry(peer(filter)).or_insert(0) += 1);
    let own = counts.get(&newcomer).copied().unwrap_or(0);
    let most = counts.into_iter().filter(|(_, count)| *count > own).max_by_key(|(_, count)| *count);
    let (owner, _) = most.ok_or(FilterError::TooMany(own))?;
    let oldest =
        table.iter().filter(|(_, filter)| peer(filter) == owner).min_by_key(|(_, filter)| filter.asked);
    let oldest = oldest.map(|(id, _)| *id);
    oldest.and_then(|id| table.remove(&id));
    Ok(())
}

/// Everything that came in since the last time; what was too much to hold is lost.
pub(crate) fn drain(pending: &mut broadcast::Receiver<Arrival>) -> Vec<B256> {
    let mut hashes = Vec::new();
    loop {
        match pending.try_recv() {
            Ok(Arrival { hash, .. }) => hashes.push(hash),
            Err(broadcast::error::TryRecvError::Lagged(_)) => {}
            Err(_) => return hashes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks() -> Kind {
        Kind::Blocks(Progress { next: 1, reverts: 0 })
    }

    fn peer(n: u8) -> Peer {
        Peer::new(std::net::Ipv4Addr::new(10, 0, 0, n).into())
    }

    /// A WebSocket of the first address.
    fn connection(n: usize) -> Option<Client> {
        Some(Client { peer: peer(0), websocket: Some(n as u64) })
    }

    fn address(n: u8) -> Option<Client> {
        Some(Client { peer: peer(n), websocket: None })
    }

    #[test]
    fn so_many_of_one_client_and_so_many_of_all() {
        let filters = Filters::default();
        let first: Vec<u128> =
            (0..CLIENT_FILTERS_MAX).map(|_| filters.add(connection(0), blocks()).unwrap()).collect();
        assert_eq!(filters.add(connection(0), blocks()), Err(FilterError::TooManyOfClient));
        assert!(filters.add(address(0), blocks()).is_ok(), "another client has its own");
        assert!(filters.remove(first[7]) && !filters.remove(first[7]));
        assert!(filters.add(connection(0), blocks()).is_ok(), "one less makes room for one");
        assert_eq!(filters.add(connection(0), blocks()), Err(FilterError::TooManyOfClient));

        let rest = FILTERS_MAX - CLIENT_FILTERS_MAX - 1;
        for n in 0..rest {
            filters.add(connection(1 + n / CLIENT_FILTERS_MAX), blocks()).unwrap();
        }
        assert_eq!(filters.add(connection(99), blocks()), Err(FilterError::TooMany(FILTERS_MAX)));
    }

    /// However many WebSockets one address opens.
    #[test]
    fn one_address_does_not_leave_others_without() {
        let filters = Filters::default();
        let all: Vec<u128> = (0..FILTERS_MAX)
            .map(|n| filters.add(connection(n / CLIENT_FILTERS_MAX), blocks()).unwrap())
            .collect();
        let others: Vec<u128> =
            (0..CLIENT_FILTERS_MAX).map(|_| filters.add(address(1), blocks()).unwrap()).collect();
        assert_eq!(filters.lock().len(), FILTERS_MAX);
        let is_there = |id: &&u128| filters.lock().contains_key(id);
        assert_eq!(all.iter().filter(is_there).count(), FILTERS_MAX - CLIENT_FILTERS_MAX);
        assert_eq!(others.iter().filter(is_there).count(), CLIENT_FILTERS_MAX);
        assert!(!is_there(&&all[0]) && is_there(&&all[FILTERS_MAX - 1]), "the oldest went");
        assert_eq!(
            filters.add(connection(99), blocks()),
            Err(FilterError::TooMany(FILTERS_MAX - CLIENT_FILTERS_MAX))
        );
    }

    #[test]
    fn a_filter_that_nobody_asked_for_is_gone() {
        let filters = Filters::default();
        let ids: Vec<u128> =
            (0..CLIENT_FILTERS_MAX).map(|_| filters.add(connection(0), blocks()).unwrap()).collect();
        let Some(long_ago) = Instant::now().checked_sub(FILTER_IDLE_MAX) else { return };
        for filter in filters.lock().values_mut() {
            filter.asked = long_ago;
        }
        filters.lock().get_mut(&ids[1]).unwrap().asked = long_ago + std::time::Duration::from_secs(10);
        assert_eq!(filters.with(ids[0], |_| ()), Err(FilterError::NotFound));
        assert_eq!(filters.with(ids[1], |_| ()), Ok(()));
        filters.add(connection(0), blocks()).unwrap();
        assert_eq!(filters.lock().len(), 2, "the others made room");
    }
}
