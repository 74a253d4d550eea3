//! Tracks connections, and decides which one is accepted when all places are taken.
//!
//! A connection without a request gives its place to a new one, the longest silent first, so idle sockets keep nobody
//! out. An address has a share, and the last places are reserved for addresses without a connection, so an address
//! that is busy on all its connections leaves room for others. When all places are in use, an address without a
//! connection takes the newest place of the address that has most.

use crate::{
    budget::{Account, Level},
    connection::Connection,
    limits::Limits,
    peer::Peer,
};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
};
use tokio::sync::Semaphore;

/// All connections of a server.
#[derive(Debug)]
pub(crate) struct Places {
    limits: Limits,
    bytes: Arc<Level>,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    made: u64,
    count: usize,
    peers: BTreeMap<Peer, Neighbours>,
}

/// The connections of one address.
#[derive(Debug)]
struct Neighbours {
    bytes: Arc<Level>,
    turns: Arc<Semaphore>,
    writes: Arc<Semaphore>,
    connections: BTreeMap<u64, Arc<Connection>>,
}

/// Why a connection is turned away.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error("{peer} has {count} connections in use already, the most for one address")]
    Address { peer: Peer, count: usize },
    #[error("{count} connections are in use, the most for this node")]
    Total { count: usize },
    #[error("{count} connections are in use; the last {kept} places are for addresses without one")]
    Kept { count: usize, kept: usize },
}

impl Places {
    pub(crate) fn new(limits: Limits) -> Arc<Self> {
        let bytes = Level::new("all connections together", limits.total_bytes_max);
        Arc::new(Self { limits, bytes, table: Mutex::default() })
    }

    /// A place for a connection from `peer`, which another one may lose.
    pub(crate) fn take(self: &Arc<Self>, peer: Peer) -> Result<Place, Refused> {
        let mut table = self.lock();
        table.make_room(peer, &self.limits)?;
        table.made += 1;
        table.count += 1;
        let number = table.made;
        let neighbours = table.peers.entry(peer).or_insert_with(|| Neighbours {
            bytes: Level::new("the connections of one address", self.limits.address_bytes_max),
            turns: Arc::new(Semaphore::new(self.limits.address_calls_max)),
            writes: Arc::new(Semaphore::new(self.limits.address_writes_max)),
            connections: BTreeMap::new(),
        });
        let own = Level::new("one connection", self.limits.connection_bytes_max);
        let account = Account::new(own, neighbours.bytes.clone(), self.bytes.clone());
        let (turns, writes) = (neighbours.turns.clone(), neighbours.writes.clone());
        let connection = Connection::new(number, peer, account, turns, writes);
        neighbours.connections.insert(number, connection.clone());
        Ok(Place { places: self.clone(), connection })
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().expect("nobody panics while holding the connections")
    }
}

impl Table {
    /// Makes room for one more connection of `peer`, if there is none.
    fn make_room(&mut self, peer: Peer, limits: &Limits) -> Result<(), Refused> {
        let Limits { connections_max, address_connections_max, connections_kept: kept, .. } = *limits;
        let count = self.count;
        let own = self.peers.get(&peer).map_or(0, |neighbours| neighbours.connections.len());
        let has_share = own < address_connections_max;
        let room = if own == 0 { connections_max } else { connections_max.saturating_sub(kept) };
        if has_share && count < room {
            return Ok(());
        }
        let silent = self.longest_silent(|of| of == peer);
        let silent = silent.or_else(|| has_share.then(|| self.longest_silent(|_| true)).flatten());
        match silent.or_else(|| (own == 0).then(|| self.newest_of_most()).flatten()) {
            Some(displaced) => {
                self.remove(&displaced);
                displaced.displace();
                Ok(())
            }
            None if !has_share => Err(Refused::Address { peer, count: own }),
            None if count >= connections_max => Err(Refused::Total { count }),
            None => Err(Refused::Kept { count, kept }),
        }
    }

    fn longest_silent(&self, is_meant: impl Fn(Peer) -> bool) -> Option<Arc<Connection>> {
        let meant = self.peers.iter().filter(|(peer, _)| is_meant(**peer));
        let connections = meant.flat_map(|(_, neighbours)| neighbours.connections.values());
        let silent = connections.filter_map(|connection| Some((connection.waiting_since()?, connection)));
        silent.min_by_key(|(since, _)| *since).map(|(_, connection)| connection.clone())
    }

    /// The newest connection of the address that has most, if that has another.
    fn newest_of_most(&self) -> Option<Arc<Connection>> {
        let connections = self.peers.values().map(|neighbours| &neighbours.connections);
        let most = connections.max_by_key(|connections| connections.len()).filter(|most| most.len() > 1)?;
        most.last_key_value().map(|(_, newest)| newest.clone())
    }

    /// Forgets a connection, and its address with the last one.
    fn remove(&mut self, connection: &Connection) {
        let Some(neighbours) = self.peers.get_mut(&connection.peer) else { return };
        if neighbours.connections.remove(&connection.number).is_some() {
            self.count -= 1;
        }
        if neighbours.connections.is_empty() {
            self.peers.remove(&connection.peer);
        }
    }
}

/// A connection's place, until this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    connection: Arc<Connection>,
}

impl Place {
    pub(crate) fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.lock().remove(&self.connection);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn peer(n: u8) -> Peer {
        Peer::new(Ipv4Addr::new(10, 0, 0, n).into())
    }

    fn places() -> Arc<Places> {
        let limits = Limits {
            connections_max: 8,
            address_connections_max: 4,
            connections_kept: 2,
            ..Limits::default()
        };
        Places::new(limits)
    }

    /// So many connections in use, each with a request under way.
    fn busy(places: &Arc<Places>, n: u8, count: usize) -> Vec<(Place, crate::connection::Busy)> {
        (0..count)
            .map(|_| {
                let place = places.take(peer(n)).unwrap();
                let busy = place.connection().begin();
                (place, busy)
            })
            .collect()
    }

    #[test]
    fn an_address_has_a_share() {
        let places = places();
        let mut first = busy(&places, 1, 4);
        assert_eq!(places.take(peer(1)).unwrap_err(), Refused::Address { peer: peer(1), count: 4 });
        assert!(places.take(peer(2)).is_ok(), "others have their own");
        first.pop();
        assert!(places.take(peer(1)).is_ok(), "one less makes room for one");
    }

    #[test]
    fn the_last_places_are_for_addresses_without_a_connection() {
        let places = places();
        let mut kept = vec![busy(&places, 1, 4), busy(&places, 2, 2)];
        assert_eq!(places.take(peer(2)).unwrap_err(), Refused::Kept { count: 6, kept: 2 });
        kept.push(busy(&places, 3, 1));
        assert_eq!(places.take(peer(3)).unwrap_err(), Refused::Kept { count: 7, kept: 2 });
        kept.push(busy(&places, 4, 1));
        assert_eq!(places.take(peer(4)).unwrap_err(), Refused::Total { count: 8 });
        drop(kept);
        assert_eq!(places.lock().count, 0);
        assert!(places.lock().peers.is_empty(), "nothing is left of them");
    }

    /// However busy all others are, an address gets in until each of as many addresses as there are places has one.
    #[tokio::test]
    async fn an_address_without_a_connection_takes_one_of_the_address_that_has_most() {
        let places = places();
        let mut kept =
            vec![busy(&places, 1, 4), busy(&places, 2, 2), busy(&places, 3, 1), busy(&places, 4, 1)];
        kept.extend((5..=8).map(|n| busy(&places, n, 1)));
        let counts: Vec<usize> =
            places.lock().peers.values().map(|neighbours| neighbours.connections.len()).collect();
        assert_eq!(counts, [1; 8]);
        for (place, _) in &kept[0][1..] {
            place.connection().displaced().await;
        }
        assert_eq!(places.take(peer(9)).unwrap_err(), Refused::Total { count: 8 });
        drop(kept);
        assert_eq!(places.lock().count, 0, "a displaced connection is not counted twice");
    }

    #[test]
    fn a_silent_connection_gives_its_place_to_a_new_one() {
        let places = places();
        let silent: Vec<Place> = (0..4).map(|_| places.take(peer(1)).unwrap()).collect();
        let in_use = silent[0].connection().begin();
        let mut new = vec![places.take(peer(1)).unwrap()];
        let left = |places: &Arc<Places>, n: u64| {
            places.lock().peers.values().any(|neighbours| neighbours.connections.contains_key(&n))
        };
        assert!(left(&places, 1), "it is in use");
        assert!(!left(&places, 2), "the longest silent one is gone");
        assert!(left(&places, 3) && left(&places, 5));
        // Full with the silent ones of many: a newcomer takes the place of the longest silent of all.
        new.extend((2..=5).map(|n| places.take(peer(n)).unwrap()));
        assert_eq!(places.lock().count, 8);
        let newcomer = places.take(peer(6)).unwrap();
        assert!(!left(&places, 3) && left(&places, 1));
        assert_eq!(places.lock().count, 8);
        drop((silent, in_use, new, newcomer));
        assert_eq!(places.lock().count, 0, "a displaced connection is not counted twice");
    }
}
