//! Finds the keys of copied values; the state itself has only their hashes.

use super::{
    Floor, Session, SyncError,
    ask::AskError,
    message::Answer,
    progress::{Phase, Progress},
    walk::{Walk, Yield},
};
use alloy_primitives::Bytes;
use almanac_primitives::StateKey;
use almanac_state::{QmdbStore, StateStore as _, StateView as _};
use commonware_cryptography::ed25519::PublicKey;
use commonware_p2p::{Blocker, Sender};
use commonware_runtime::{Clock, Spawner};
use commonware_storage::Context;
use rand_core::CryptoRng;
use std::collections::VecDeque;

/// Receives the values of a copied state with their keys.
pub trait ValueSink: Send {
    /// Stores values. Returns how many of them were new.
    fn add(&mut self, values: Vec<(StateKey, Bytes)>) -> Result<u64, String>;
}

impl<E, S, B> Session<E, S, B>
where
    E: Clock,
    S: Sender<PublicKey = PublicKey>,
    B: Blocker<PublicKey = PublicKey> + Sync,
{
    /// Finds the keys of all values of a copied state, and passes both to `sink`. Returns their number.
    ///
    /// A peer lists its current keys. A value that was removed after the floor is not among them, but the
    /// changes of the block that removed it contain its key. Peers take turns, so that none can delay the
    /// others.
    pub async fn fetch_values<C: Context + Spawner>(
        &self,
        store: &QmdbStore<C>,
        floor: &Floor,
        sink: &mut impl ValueSink,
        rng: &mut impl CryptoRng,
    ) -> Result<u64, SyncError> {
        let live = store.live_values().await?;
        self.progress.begin(Phase::Names, live);
        let mut taking = Taking { store, sink, progress: &self.progress, found: 0, live };
        let number = floor.header.number;
        let mut turns: VecDeque<_> = self.asker.peers().into_iter().map(|peer| (peer, None)).collect();
        let mut position = None;
        while !taking.is_complete() {
            let Some((peer, walk)) = turns.pop_front() else {
                return Err(SyncError::KeysMissing { number, live, found: taking.found });
            };
            let mut walk = match walk {
                Some(walk) => walk,
                None => self.begin_walk(&peer, floor, position, rng).await,
            };
            self.turn(&peer, &mut walk, floor, &mut taking, rng).await?;
            position = walk.position();
            if walk.has_ended() {
                tracing::info!("{peer} has no more names; {} of {live} are found", taking.found);
            } else {
                turns.push_back((peer, Some(walk)));
            }
        }
        Ok(live)
    }

    async fn begin_walk(
        &self,
        peer: &PublicKey,
        floor: &Floor,
        position: Option<StateKey>,
        rng: &mut impl CryptoRng,
    ) -> Walk {
        let mut walk = Walk::new(floor.header.number, position, self.names_per_page);
        self.look_apart(peer, &mut walk, floor, rng).await;
        walk
    }

    /// Notes how many operations a peer is away from the floor.
    async fn look_apart(&self, peer: &PublicKey, walk: &mut Walk, floor: &Floor, rng: &mut impl CryptoRng) {
        if let Some(tip) = self.ask_tip(peer, rng).await {
            let ends = [&tip, floor].map(|floor| floor.header.commitment.ops_end);
            walk.know_apart(ends[0].abs_diff(ends[1]));
        }
    }

    /// Takes keys from one peer until all are found, or it is another peer's turn.
    async fn turn<C: Context + Spawner, K: ValueSink>(
        &self,
        peer: &PublicKey,
        walk: &mut Walk,
        floor: &Floor,
        taking: &mut Taking<'_, C, K>,
        rng: &mut impl CryptoRng,
    ) -> Result<(), SyncError> {
        while !taking.is_complete() && !walk.is_turn_over() {
            let Some(question) = walk.question() else { break };
            let begin = self.asker.clock().current();
            let answer = self.asker.ask(peer, &question, |answer| check_page(walk, answer)).await;
            let spent = self.asker.clock().current().duration_since(begin).unwrap_or_default();
            match answer {
                Ok(page) => {
                    walk.advance(&page);
                    walk.count(taking.take(page).await?, spent);
                    self.end_if_unexplained(peer, walk, floor, rng).await;
                }
                Err(AskError::Silent) => walk.count_silence(spent),
                Err(AskError::Busy { wait }) => {
                    self.asker.clock().sleep(wait).await;
                    walk.count_rest(spent + wait);
                }
                Err(AskError::Refused { reason }) => {
                    tracing::debug!("{peer} refused: {reason}");
                    walk.refused();
                }
                Err(AskError::Wrong { .. } | AskError::Nobody { .. }) => walk.end(),
            }
        }
        walk.end_turn();
        Ok(())
    }

    /// Drops a peer that lists far more foreign keys than there can be.
    async fn end_if_unexplained(
        &self,
        peer: &PublicKey,
        walk: &mut Walk,
        floor: &Floor,
        rng: &mut impl CryptoRng,
    ) {
        if walk.unexplained().is_some() {
            self.look_apart(peer, walk, floor, rng).await;
        }
        if let Some(foreign) = walk.unexplained() {
            let number = floor.header.number;
            tracing::warn!(
                "asking {peer} for no more names: {foreign} of its names are not in the state of block {number}, more than \
                 later blocks can explain"
            );
            walk.end();
        }
    }
}

fn check_page(walk: &Walk, answer: Answer) -> Result<Vec<StateKey>, String> {
    let Answer::Keys(page) = answer else { return Err("not a list of names".to_owned()) };
    walk.check(&page)?;
    Ok(page)
}

/// Moves values from a copied state to the sink.
struct Taking<'a, C: Context + Spawner, K> {
    store: &'a QmdbStore<C>,
    sink: &'a mut K,
    progress: &'a Progress,
    found: u64,
    live: u64,
}

impl<C: Context + Spawner, K: ValueSink> Taking<'_, C, K> {
    fn is_complete(&self) -> bool {
        self.found == self.live
    }

    /// Takes a page of keys. Ignores keys that the copied state does not have.
    async fn take(&mut self, keys: Vec<StateKey>) -> Result<Yield, SyncError> {
        let size = |size: usize| u64::try_from(size).expect("a size fits 64 bits");
        let listed = size(keys.len());
        let values = self.store.tip().get_many(&keys).await?;
        let values = keys.into_iter().zip(values).filter_map(|(key, value)| Some((key, value?)));
        let values: Vec<_> = values.collect();
        let bytes = values.iter().map(|(_, value)| value.len()).sum::<usize>();
        let foreign = listed - size(values.len());
        let new = self.sink.add(values).map_err(|reason| SyncError::Sink { reason })?;
        self.found += new;
        self.progress.add(new, size(bytes));
        Ok(Yield { new, foreign })
    }
}
