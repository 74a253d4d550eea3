//! Answers nodes that copy the state.

use super::message::{Answer, KEYS_MAX, Question};
use crate::{engine::Marshal, ledger::Ledger};
use almanac_primitives::StateKey;
use almanac_state::{QmdbStore, StateStore};
use commonware_codec::Encode as _;
use commonware_consensus::{marshal::Identifier, types::Height};
use commonware_p2p::{Receiver, Recipients, Sender};
use commonware_runtime::Spawner;
use commonware_storage::Context;
use std::{borrow::Borrow, sync::Arc};

/// Blocks below the last one that are looked at for a certificate. Without faults each block has its own.
const LOOK_BACK: u64 = 256;

/// After an answer, the server rests so many times as long as it took: a commit waits while an answer is read, and so
/// it waits a quarter of the time at most.
const PAUSE: u32 = 3;

/// Knows the names of values. The state itself has only their hashes.
pub trait KnownKeys: Send + Sync {
    /// Up to `limit` names of values in the last state after `after`, ascending by their bytes.
    fn after(&self, after: Option<&StateKey>, limit: usize) -> Result<Vec<StateKey>, String>;

    /// Names of the values that a block changed, ascending, or `None` where it is not known.
    fn changed_in(&self, height: u64) -> Result<Option<Vec<StateKey>>, String>;
}

/// Answers from what this node has.
pub struct Server<E, T: StateStore> {
    /// The chain.
    pub ledger: Arc<Ledger<T>>,
    /// Its certificates.
    pub marshal: Marshal,
    /// The names of its values.
    pub keys: Arc<dyn KnownKeys>,
    /// Measures what answers take.
    pub clock: E,
}

impl<E, T> Server<E, T>
where
    E: Context + Spawner,
    T: StateStore<Batch: Send + 'static> + Borrow<QmdbStore<E>>,
{
    /// Answers one question after the other until the network ends. Peers that ask for more than the channel's
    /// quota have to wait.
    pub async fn run<S: Sender, R: Receiver<PublicKey = S::PublicKey>>(self, mut sender: S, mut receiver: R) {
        while let Ok((peer, bytes)) = receiver.recv().await {
            let (number, question) = match Question::decode(bytes.as_ref()) {
                Ok(asked) => asked,
                Err(error) => {
                    tracing::debug!("{peer} asked something that is no question: {error}");
                    continue;
                }
            };
            let begin = self.clock.current();
            let answer = self.answer(question).await.unwrap_or_else(Answer::Refused);
            sender.send(Recipients::One(peer), answer.encode(number), false);
            let spent = self.clock.current().duration_since(begin).unwrap_or_default();
            self.clock.sleep(spent * PAUSE).await;
        }
    }

    async fn answer(&self, question: Question) -> Result<Answer, String> {
        match question {
            Question::Tip => self.tip().await.ok_or_else(|| "nothing is final yet".to_owned()),
            Question::Operations(request) => {
                let store: &QmdbStore<E> = self.ledger.application().store().borrow();
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

    /// The newest block that is committed here and has a certificate of its own.
    async fn tip(&self) -> Option<Answer> {
        let height = self.ledger.tip().header.number;
        for number in (height.saturating_sub(LOOK_BACK).max(1)..=height).rev() {
            if let Some(signed) = self.marshal.get_finalization(Height::new(number)).await {
                let block = self.marshal.get_block(Identifier::Height(Height::new(number))).await?;
                let header = block.inner().block().header.clone();
                return Some(Answer::Tip { header: header.into(), certificate: signed.encode().into() });
            }
        }
        None
    }
}

/// How many names are given where so many are asked for.
fn at_most(limit: u32) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX).min(KEYS_MAX)
}
