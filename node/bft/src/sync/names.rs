//! Finds the names of copied values, of which the state has only hashes.

use super::{
    Floor, Session, SyncError,
    ask::AskError,
    message::{Answer, Question},
    progress::{Phase, Progress},
};
use alloy_primitives::Bytes;
use almanac_primitives::StateKey;
use almanac_state::{QmdbStore, StateStore as _, StateView as _};
use commonware_cryptography::ed25519::PublicKey;
use commonware_p2p::{Blocker, Sender};
use commonware_runtime::{Clock, Spawner};
use commonware_storage::Context;

/// Blocks above the floor that are asked for what they changed.
const CHANGED_BLOCKS_MAX: u64 = 100_000;

/// How often a silent peer is asked for a page before the next peer is.
const PAGE_ATTEMPTS: usize = 5;

/// Takes the values of a copied state with their names.
pub trait ValueSink: Send {
    /// Keeps values, and answers how many of them it did not have yet.
    fn add(&mut self, values: Vec<(StateKey, Bytes)>) -> Result<u64, String>;
}

impl<E, S, B> Session<E, S, B>
where
    E: Clock,
    S: Sender<PublicKey = PublicKey>,
    B: Blocker<PublicKey = PublicKey> + Sync,
{
    /// Finds the names of all values of a copied state, and hands both to `sink`. Answers how many there are.
    ///
    /// A peer lists the names that it has now. A value that was removed after the floor is not among them; but the
    /// block that removed it says so.
    pub async fn fetch_values<C: Context + Spawner>(
        &self,
        store: &QmdbStore<C>,
        floor: &Floor,
        sink: &mut impl ValueSink,
    ) -> Result<u64, SyncError> {
        let live = store.live_values().await?;
        self.progress.begin(Phase::Names, live);
        let mut taking = Taking { store, sink, progress: &self.progress, found: 0, live };
        for peer in self.asker.peers() {
            self.names_of_now(&peer, &mut taking).await?;
            self.names_of_changes(&peer, floor.header.number, &mut taking).await?;
            if taking.is_complete() {
                return Ok(live);
            }
            tracing::warn!("{peer} knew {} of {live} names", taking.found);
        }
        Err(SyncError::KeysMissing { number: floor.header.number, live, found: taking.found })
    }

    /// All names that a peer has, page by page.
    async fn names_of_now<C: Context + Spawner, K: ValueSink>(
        &self,
        peer: &PublicKey,
        taking: &mut Taking<'_, C, K>,
    ) -> Result<(), SyncError> {
        let mut after: Option<StateKey> = None;
        while !taking.is_complete() {
            let page =
                self.page(peer, &Question::Keys { after }, |keys| is_ascending(after.as_ref(), keys)).await;
            let Some(last) = page.last().copied() else { break };
            taking.take(page).await?;
            after = Some(last);
        }
        Ok(())
    }

    /// What the blocks after the floor changed, as far as a peer knows.
    async fn names_of_changes<C: Context + Spawner, K: ValueSink>(
        &self,
        peer: &PublicKey,
        floor: u64,
        taking: &mut Taking<'_, C, K>,
    ) -> Result<(), SyncError> {
        for height in floor + 1..=floor.saturating_add(CHANGED_BLOCKS_MAX) {
            let (mut skip, mut after) = (0, None);
            loop {
                if taking.is_complete() {
                    return Ok(());
                }
                let question = Question::Changed { height, skip };
                let page = self.page(peer, &question, |keys| is_ascending(after.as_ref(), keys)).await;
                let (Some(last), Ok(count)) = (page.last().copied(), u32::try_from(page.len())) else {
                    break;
                };
                taking.take(page).await?;
                (skip, after) = (skip.saturating_add(count), Some(last));
            }
            if skip == 0 {
                // Every block changes something, so the peer is at its end.
                return Ok(());
            }
        }
        Ok(())
    }

    /// A page of names; an empty one where the peer has no more to say.
    async fn page(
        &self,
        peer: &PublicKey,
        question: &Question,
        is_in_order: impl Fn(&[StateKey]) -> bool,
    ) -> Vec<StateKey> {
        let check = |answer| match answer {
            Answer::Keys(keys) if is_in_order(&keys) => Ok(keys),
            Answer::Keys(_) => Err("names out of order".to_owned()),
            _ => Err("not a list of names".to_owned()),
        };
        for _ in 0..PAGE_ATTEMPTS {
            match self.asker.ask(peer, question, check).await {
                Ok(keys) => return keys,
                Err(AskError::Silent) => {}
                Err(error) => {
                    tracing::debug!("{peer}: {error}");
                    break;
                }
            }
        }
        Vec::new()
    }
}

/// Ascending, and all behind the last one: a peer cannot send the same names for ever.
fn is_ascending(after: Option<&StateKey>, keys: &[StateKey]) -> bool {
    after.into_iter().chain(keys).is_sorted_by(|a, b| a < b)
}

/// Values on their way from a copied state to whoever takes them.
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

    /// Names of values that the copied state does not have mean nothing.
    async fn take(&mut self, keys: Vec<StateKey>) -> Result<(), SyncError> {
        let values = self.store.head().get_many(&keys).await?;
        let values = keys.into_iter().zip(values).filter_map(|(key, value)| Some((key, value?)));
        let values: Vec<_> = values.collect();
        let bytes = values.iter().map(|(_, value)| value.len()).sum::<usize>();
        let found = self.sink.add(values).map_err(|reason| SyncError::Sink { reason })?;
        self.found += found;
        self.progress.add(found, u64::try_from(bytes).expect("a size fits 64 bits"));
        Ok(())
    }
}
