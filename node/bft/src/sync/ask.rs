//! Asks peers, one after the other, until one gives an answer that can be checked.
//!
//! A peer that answers wrongly is cut off. One that refuses or is silent is passed over, and asked again later.

use super::message::{Answer, Question};
use commonware_cryptography::ed25519::PublicKey;
use commonware_p2p::{Blocker, Receiver, Recipients, Sender};
use commonware_runtime::Clock;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::sync::oneshot;

/// How long a peer may take to answer.
const ANSWER_PATIENCE: Duration = Duration::from_secs(2);

/// How often every peer is asked the same before giving up.
const ROUNDS: usize = 5;

/// Time between two rounds.
const ROUND_PAUSE: Duration = Duration::from_millis(500);

/// Why a question stays open.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// The peer gave no answer in time.
    #[error("no answer within {ANSWER_PATIENCE:?}")]
    Silent,
    /// The peer does not answer this.
    #[error("refused: {reason}")]
    Refused {
        /// Why not.
        reason: String,
    },
    /// The answer is wrong.
    #[error("the answer is wrong: {reason}")]
    Wrong {
        /// How that shows.
        reason: String,
    },
    /// Nobody gave an answer that is right.
    #[error("none of {peers} peers answered {question} in {ROUNDS} rounds; the last one: {last}")]
    Nobody {
        /// What was asked.
        question: String,
        /// How many there are that never answered wrongly.
        peers: usize,
        /// What happened last.
        last: String,
    },
}

/// Asks the peers of a network.
pub struct Asker<E, S, B> {
    clock: E,
    sender: S,
    blocker: B,
    peers: Vec<PublicKey>,
    liars: Mutex<BTreeSet<PublicKey>>,
    open: Arc<Open>,
    turn: AtomicU64,
}

/// The questions that wait for an answer.
#[derive(Default)]
struct Open {
    next: AtomicU64,
    waiting: Mutex<BTreeMap<u64, (PublicKey, Waiter)>>,
}

/// Whoever waits for an answer.
type Waiter = oneshot::Sender<Result<Answer, AskError>>;

impl<E, S, B> Asker<E, S, B>
where
    E: Clock,
    S: Sender<PublicKey = PublicKey>,
    B: Blocker<PublicKey = PublicKey>,
{
    /// An asker, and what takes in the answers as long as it is run.
    pub fn new<R: Receiver<PublicKey = PublicKey>>(
        clock: E,
        peers: Vec<PublicKey>,
        blocker: B,
        (sender, receiver): (S, R),
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let open = Arc::new(Open::default());
        let listener = listen(open.clone(), receiver);
        let asker =
            Self { clock, sender, blocker, peers, liars: Mutex::default(), open, turn: AtomicU64::new(0) };
        (asker, listener)
    }

    /// The clock that patience is measured by.
    pub fn clock(&self) -> &E {
        &self.clock
    }

    /// The peers that never answered wrongly.
    pub fn peers(&self) -> Vec<PublicKey> {
        let liars = lock(&self.liars);
        self.peers.iter().filter(|peer| !liars.contains(*peer)).cloned().collect()
    }

    /// Asks one peer. `check` takes what is right about the answer, or says what is wrong.
    pub async fn ask<T>(
        &self,
        peer: &PublicKey,
        question: &Question,
        check: impl FnOnce(Answer) -> Result<T, String>,
    ) -> Result<T, AskError> {
        let number = self.open.next.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        lock(&self.open.waiting).insert(number, (peer.clone(), sender));
        self.sender.clone().send(Recipients::One(peer.clone()), question.encode(number), false);
        let answer = tokio::select! {
            biased;
            answer = receiver => answer.unwrap_or(Err(AskError::Silent)),
            () = self.clock.sleep(ANSWER_PATIENCE) => Err(AskError::Silent),
        };
        lock(&self.open.waiting).remove(&number);
        let checked = answer.and_then(|answer| match answer {
            Answer::Refused(reason) => Err(AskError::Refused { reason }),
            answer => check(answer).map_err(|reason| AskError::Wrong { reason }),
        });
        if let Err(AskError::Wrong { reason }) = &checked {
            self.cut_off(peer, reason);
        }
        checked
    }

    /// Asks peer after peer, each its share of the questions.
    pub async fn ask_any<T>(
        &self,
        question: &Question,
        check: impl Fn(Answer) -> Result<T, String>,
    ) -> Result<T, AskError> {
        let mut last = "all were cut off".to_owned();
        for round in 0..ROUNDS {
            if round > 0 {
                self.clock.sleep(ROUND_PAUSE).await;
            }
            let mut peers = self.peers();
            let turn = self.turn.fetch_add(1, Ordering::Relaxed);
            let count = u64::try_from(peers.len()).expect("a length fits 64 bits").max(1);
            peers.rotate_left(usize::try_from(turn % count).expect("less than a length"));
            for peer in peers {
                match self.ask(&peer, question, &check).await {
                    Ok(found) => return Ok(found),
                    Err(error) => last = format!("{peer}: {error}"),
                }
            }
        }
        Err(AskError::Nobody { question: format!("{question:?}"), peers: self.peers().len(), last })
    }

    fn cut_off(&self, peer: &PublicKey, reason: &str) {
        tracing::warn!("{peer} is cut off: {reason}");
        lock(&self.liars).insert(peer.clone());
        self.blocker.clone().block(peer.clone());
    }
}

/// Brings answers to those who wait for them. What nobody asked this peer is dropped.
async fn listen<R: Receiver<PublicKey = PublicKey>>(open: Arc<Open>, mut receiver: R) {
    while let Ok((peer, bytes)) = receiver.recv().await {
        let bytes: &[u8] = bytes.as_ref();
        let Some(number) = bytes.get(1..9).and_then(|number| number.try_into().ok()) else { continue };
        let number = u64::from_be_bytes(number);
        let answer = match Answer::decode(bytes) {
            Ok((_, answer)) => Ok(answer),
            Err(error) => Err(AskError::Wrong { reason: error.to_string() }),
        };
        let mut waiting = lock(&open.waiting);
        if waiting.get(&number).is_some_and(|(asked, _)| *asked == peer)
            && let Some((_, waiter)) = waiting.remove(&number)
        {
            // Whoever waited may have lost patience this very moment.
            let _ = waiter.send(answer);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nothing panics while it holds this")
}
