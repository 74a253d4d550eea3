//! Serves addresses in turn: an address with many requests delays itself, not others.
//!
//! ```text
//!   10.0.0.1   a b c d e f …       order of turns: a g h b c d …
//!   10.0.0.2   g
//!   10.0.0.3   h
//! ```
//!
//! An address may queue as many requests as there are places left. So the first address gets at most half of them,
//! and there is always room for the next.

use crate::peer::Peer;
use std::{
    collections::BTreeMap,
    ops::Bound,
    sync::{Arc, Mutex, MutexGuard},
};
use tokio::sync::oneshot;

tokio::task_local! {
    /// Who asks for what the current task does.
    pub(crate) static ASKER: Peer;
}

/// Who waits: an address, or the node itself.
type Asker = Option<Peer>;

/// All who run or wait.
#[derive(Debug)]
pub(crate) struct Turns {
    places_max: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    is_closed: bool,
    /// Turns that nobody has.
    free: usize,
    /// Requests that run or wait.
    count: usize,
    tickets: u64,
    lines: BTreeMap<Asker, Line>,
    /// Who got the last turn.
    last: Asker,
}

/// What one address has here.
#[derive(Debug, Default)]
struct Line {
    count: usize,
    /// Those without a turn, the first first.
    waiting: BTreeMap<u64, oneshot::Sender<Turn>>,
}

/// Why a request must not wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// There are as many as there may be.
    Full,
    /// Its address has as many as there are places left.
    Share {
        /// So many.
        count: usize,
    },
    /// Nobody gets a turn any more.
    Closed,
}

impl Turns {
    /// So many at once, and so many in all.
    pub(crate) fn new(running_max: usize, places_max: usize) -> Arc<Self> {
        let state = State { free: running_max, ..State::default() };
        Arc::new(Self { places_max, state: Mutex::new(state) })
    }

    /// Waits for a turn on behalf of whoever asked for the current task.
    pub(crate) async fn take(self: &Arc<Self>) -> Result<Turn, Refused> {
        let asker = ASKER.try_with(|peer| *peer).ok();
        let (place, turn) = self.enter(asker)?;
        self.pass_on();
        let mut turn = turn.await.map_err(|_| Refused::Closed)?;
        turn.place = Some(place);
        Ok(turn)
    }

    /// Lets nobody in any more, and sends home who waits.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        state.lines.values_mut().for_each(|line| line.waiting.clear());
    }

    fn enter(self: &Arc<Self>, asker: Asker) -> Result<(Place, oneshot::Receiver<Turn>), Refused> {
        let mut state = self.lock();
        if state.is_closed {
            return Err(Refused::Closed);
        }
        let left = self.places_max - state.count;
        let count = state.lines.get(&asker).map_or(0, |line| line.count);
        if left == 0 {
            return Err(Refused::Full);
        }
        if asker.is_some() && count >= left {
            return Err(Refused::Share { count });
        }
        let (send, turn) = oneshot::channel();
        let ticket = state.tickets;
        state.tickets += 1;
        state.count += 1;
        let line = state.lines.entry(asker).or_default();
        line.count += 1;
        line.waiting.insert(ticket, send);
        Ok((Place { turns: self.clone(), asker, ticket }, turn))
    }

    /// Gives free turns to those who wait.
    fn pass_on(self: &Arc<Self>) {
        loop {
            // Not in the condition of the loop, which would hold the lock.
            let next = self.lock().next();
            let Some(next) = next else { return };
            if let Err(mut refused) = next.send(Turn { turns: Some(self.clone()), place: None }) {
                // It left in this moment. Its turn is for the next one.
                refused.turns = None;
                self.lock().free += 1;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics while holding the turns")
    }
}

impl State {
    /// Takes a free turn for the first of the address after the one that had the last, if there is both.
    fn next(&mut self) -> Option<oneshot::Sender<Turn>> {
        if self.free == 0 {
            return None;
        }
        let after = (Bound::Excluded(self.last), Bound::Unbounded);
        let waits = |(asker, line): (&Asker, &Line)| (!line.waiting.is_empty()).then_some(*asker);
        let next = self.lines.range(after).find_map(waits).or_else(|| self.lines.iter().find_map(waits))?;
        let (_, first) = self.lines.get_mut(&next)?.waiting.pop_first()?;
        self.free -= 1;
        self.last = next;
        Some(first)
    }
}

/// Stands for a request that runs or waits.
#[derive(Debug)]
struct Place {
    turns: Arc<Turns>,
    asker: Asker,
    ticket: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.turns.lock();
        state.count -= 1;
        let Some(line) = state.lines.get_mut(&self.asker) else { return };
        line.count -= 1;
        line.waiting.remove(&self.ticket);
        if line.count == 0 {
            state.lines.remove(&self.asker);
        }
    }
}

/// A turn, until this is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    turns: Option<Arc<Turns>>,
    place: Option<Place>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        drop(self.place.take());
        if let Some(turns) = self.turns.take() {
            turns.lock().free += 1;
            turns.pass_on();
        }
    }
}

#[cfg(test)]
impl Turns {
    /// Requests that run or wait, and turns that are free.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let state = self.lock();
        (state.count, state.free)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use tokio::{sync::mpsc, task::JoinHandle};

    fn peer(n: u8) -> Peer {
        Peer::new(Ipv4Addr::new(10, 0, 0, n).into())
    }

    async fn take_for(turns: &Arc<Turns>, n: u8) -> Result<Turn, Refused> {
        ASKER.scope(peer(n), turns.take()).await
    }

    /// One that waits on behalf of address `n`, and says so when it has its turn.
    async fn wait(turns: &Arc<Turns>, n: u8, told: &mpsc::UnboundedSender<u8>) -> JoinHandle<()> {
        let (turns, told, before) = (turns.clone(), told.clone(), turns.counts().0);
        let task = tokio::spawn({
            let turns = turns.clone();
            async move {
                let turn = take_for(&turns, n).await.unwrap();
                told.send(n).unwrap();
                drop(turn);
            }
        });
        while turns.counts().0 == before {
            tokio::task::yield_now().await;
        }
        task
    }

    #[tokio::test]
    async fn one_that_asks_for_much_waits_for_itself() {
        let turns = Turns::new(1, 100);
        let (told, mut order) = mpsc::unbounded_channel();
        let running = take_for(&turns, 1).await.unwrap();
        let mut tasks = Vec::new();
        for n in [1, 1, 1, 1, 2, 3, 2] {
            tasks.push(wait(&turns, n, &told).await);
        }
        drop(running);
        for task in tasks {
            task.await.unwrap();
        }
        let order: Vec<u8> = std::iter::from_fn(|| order.try_recv().ok()).collect();
        assert_eq!(order, [2, 3, 1, 2, 1, 1, 1]);
        assert_eq!(turns.counts(), (0, 1));
        assert!(turns.lock().lines.is_empty(), "nothing is left of them");
    }

    /// Both sides of an address's share, and of all places.
    #[tokio::test]
    async fn an_address_has_as_many_as_are_left() {
        let turns = Turns::new(1, 8);
        let (told, _order) = mpsc::unbounded_channel();
        let _running = take_for(&turns, 1).await.unwrap();
        let mut tasks = Vec::new();
        for (n, count) in [(1, 3), (2, 2), (3, 1), (4, 1)] {
            for _ in 0..count {
                assert!(!tasks.is_empty() || n == 1);
                tasks.push(wait(&turns, n, &told).await);
            }
            let count = if n == 1 { count + 1 } else { count };
            let full = turns.counts().0 == 8;
            let refused = if full { Refused::Full } else { Refused::Share { count } };
            assert_eq!(take_for(&turns, n).await.unwrap_err(), refused, "address {n}");
        }
        assert_eq!(turns.counts(), (8, 0));
        assert_eq!(take_for(&turns, 5).await.unwrap_err(), Refused::Full);
        tasks.iter().for_each(JoinHandle::abort);
    }

    /// A client that leaves, with a turn or without one, leaves nothing behind.
    #[tokio::test]
    async fn who_leaves_gives_everything_back() {
        let turns = Turns::new(1, 8);
        let (told, mut order) = mpsc::unbounded_channel();
        let running = take_for(&turns, 1).await.unwrap();
        let leaving = wait(&turns, 1, &told).await;
        let staying = wait(&turns, 2, &told).await;
        leaving.abort();
        assert!(leaving.await.unwrap_err().is_cancelled());
        assert_eq!(turns.counts(), (2, 0));
        // A turn that is on its way to one that leaves goes to the next.
        let (place, turn) = turns.enter(Some(peer(0))).unwrap();
        turns.lock().last = None;
        drop(running);
        drop((turn, place));
        staying.await.unwrap();
        assert_eq!(order.recv().await, Some(2));
        assert_eq!(turns.counts(), (0, 1));
    }
}
