//! Answers nodes that copy the state.

use super::{
    Floor,
    message::{Answer, KEYS_MAX, Question},
};
use crate::{engine::Marshal, newest::Newest, pace::paced, replica::Replica};
use almanac_primitives::StateKey;
use almanac_state::{QmdbStore, StateStore};
use commonware_p2p::{Receiver, Recipients, Sender};
use commonware_runtime::Spawner;
use commonware_storage::Context;
use std::{borrow::Borrow, sync::Arc};

/// Lists the keys of values. The state itself has only their hashes.
pub trait KnownKeys: Send + Sync {
    /// Up to `limit` keys of the latest state after `after`, ascending by their bytes.
    fn after(&self, after: Option<&StateKey>, limit: usize) -> Result<Vec<StateKey>, String>;

    /// The keys that a block changed, ascending, or `None` if they are not known.
    fn changed_in(&self, height: u64) -> Result<Option<Vec<StateKey>>, String>;
}

/// Answers questions of nodes that copy the state.
pub struct Server<E, T: StateStore> {
    /// The chain.
    pub replica: Arc<Replica<T>>,
    /// Its certificates.
    pub marshal: Marshal,
    /// The keys of its values.
    pub keys: Arc<dyn KnownKeys>,
    /// Measures how long answers take.
    pub clock: E,
}

impl<E, T> Server<E, T>
where
    E: Context + Spawner,
    T: StateStore<Batch: Send + 'static> + Borrow<QmdbStore<E>>,
{
    /// Answers one question after the other until the network ends. Peers above the channel's quota have to
    /// wait.
    pub async fn run<S: Sender, R: Receiver<PublicKey = S::PublicKey>>(self, mut sender: S, mut receiver: R) {
        let mut newest = Newest::new(self.replica.clone(), self.marshal.clone());
        while let Ok((peer, bytes)) = receiver.recv().await {
            let (number, question) = match Question::decode(bytes.as_ref()) {
                Ok(asked) => asked,
                Err(error) => {
                    tracing::debug!("{peer} sent a malformed question: {error}");
                    continue;
                }
            };
            // Commits wait while an answer is read.
            paced(&self.clock, async {
                let answer = self.answer(&mut newest, question).await.unwrap_or_else(Answer::Refused);
                sender.send(Recipients::One(peer), answer.encode(number), false);
            })
            .await;
        }
    }

    async fn answer(&self, newest: &mut Newest<T>, question: Question) -> Result<Answer, String> {
        match question {
            Question::Tip => {
                let newest = newest.find().await.ok_or_else(|| "nothing is final yet".to_owned())?;
                let Floor { header, certificate } = newest.clone();
                Ok(Answer::Tip { header: header.into(), certificate })
            }
            Question::Operations(request) => {
                let store: &QmdbStore<E> = self.replica.application().store().borrow();
                let served = store.serve(request).await;
                served.map(|response| Answer::Operations(response.into())).map_err(|error| error.to_string())
            }
            Question::Keys { after, limit } => {
                self.keys.after(after.as_ref(), at_most(limit)).map(Answer::Keys)
            }
            Question::Changed { height, skip, limit } => {
                let changed = self.keys.changed_in(height)?;
                let changed = changed.ok_or_else(|| format!("what block {height} changed is not known"))?;
                let skip = usize::try_from(skip).unwrap_or(usize::MAX);
                Ok(Answer::Keys(changed.into_iter().skip(skip).take(at_most(limit)).collect()))
            }
        }
    }
}

/// The number of keys to return for a requested limit.
fn at_most(limit: u32) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX).min(KEYS_MAX)
}
