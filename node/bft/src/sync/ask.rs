//! Asks peers one after the other until one gives a valid answer.
//!
//! A peer with a wrong answer is disconnected. One that refuses or does not answer is skipped and asked again
//! later. A busy peer states how long, and is left alone for that time.

use super::message::{self, Answer, Question};
use commonware_cryptography::ed25519::PublicKey;
use commonware_p2p::{Blocker, CheckedSender as _, Receiver, Recipients, Sender};
use commonware_runtime::Clock;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};
use tokio::sync::oneshot;

/// How long a peer may take to answer.
const ANSWER_PATIENCE: Duration = Duration::from_secs(2);

/// How often every peer is asked the same question before giving up.
const ROUNDS: usize = 5;

/// Time between two rounds.
const ROUND_PAUSE: Duration = Duration::from_millis(500);

/// Longest rest of a busy peer, whatever it asks for.
const REST_MAX: Duration = Duration::from_secs(5);

/// How long one question waits for busy peers. After that, busy counts as silent.
const BUSY_PATIENCE: Duration = Duration::from_secs(60);

/// Why a question was not answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// The peer did not answer in time.
    #[error("no answer within {ANSWER_PATIENCE:?}")]
    Silent,
    /// The peer is busy.
    #[error("busy for {wait:?}")]
    Busy {
        /// How long to leave it alone.
        wait: Duration,
    },
    /// The peer refused to answer.
    #[error("refused: {reason}")]
    Refused {
        /// Why not.
        reason: String,
    },
    /// The answer is wrong.
    #[error("the answer is wrong: {reason}")]
    Wrong {
        /// What is wrong.
        reason: String,
    },
    /// No peer gave a valid answer.
    #[error("none of {peers} peers answered {question} in {ROUNDS} rounds; the last one: {last}")]
    Nobody {
        /// The question.
        question: String,
        /// Number of peers that never gave a wrong answer.
        peers: usize,
        /// The last error.
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
    /// Busy peers, and when they may be asked again.
    resting: Mutex<BTreeMap<PublicKey, SystemTime>>,
    open: Arc<Open>,
    turn: AtomicU64,
}

/// The open questions.
#[derive(Default)]
struct Open {
    next: AtomicU64,
    waiting: Mutex<BTreeMap<u64, (PublicKey, Waiter)>>,
}

/// Receives the answer to a question.
type Waiter = oneshot::Sender<Result<Answer, AskError>>;

impl<E, S, B> Asker<E, S, B>
where
    E: Clock,
    S: Sender<PublicKey = PublicKey>,
    B: Blocker<PublicKey = PublicKey>,
{
    /// Returns an asker, and a future that receives the answers and must run.
    pub fn new<R: Receiver<PublicKey = PublicKey>>(
        clock: E,
        peers: Vec<PublicKey>,
        blocker: B,
        (sender, receiver): (S, R),
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let open = Arc::new(Open::default());
        let listener = listen(open.clone(), receiver);
        let (liars, resting, turn) = (Mutex::default(), Mutex::default(), AtomicU64::new(0));
        (Self { clock, sender, blocker, peers, liars, resting, open, turn }, listener)
    }

    /// The clock of the timeouts.
    pub fn clock(&self) -> &E {
        &self.clock
    }

    /// The peers that never gave a wrong answer.
    pub fn peers(&self) -> Vec<PublicKey> {
        let liars = lock(&self.liars);
        self.peers.iter().filter(|peer| !liars.contains(*peer)).cloned().collect()
    }

    /// Asks one peer. `check` extracts the result from the answer, or says what is wrong with it. Fails if the
    /// peer rests.
    pub async fn ask<T>(
        &self,
        peer: &PublicKey,
        question: &Question,
        check: impl FnOnce(Answer) -> Result<T, String>,
    ) -> Result<T, AskError> {
        if let Some(wait) = self.rest_of(peer) {
            return Err(AskError::Busy { wait });
        }
        let number = self.open.next.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        lock(&self.open.waiting).insert(number, (peer.clone(), sender));
        self.send(peer, &question.encode(number)).await;
        let answer = tokio::select! {
            biased;
            answer = receiver => answer.unwrap_or(Err(AskError::Silent)),
            () = self.clock.sleep(ANSWER_PATIENCE) => Err(AskError::Silent),
        };
        lock(&self.open.waiting).remove(&number);
        let checked = answer.and_then(|answer| match answer {
            Answer::Refused(reason) => Err(AskError::Refused { reason }),
            Answer::Busy { wait_ms } => Err(AskError::Busy { wait: self.rest(peer, wait_ms) }),
            answer => check(answer).map_err(|reason| AskError::Wrong { reason }),
        });
        if let Err(AskError::Wrong { reason }) = &checked {
            self.cut_off(peer, reason);
        }
        checked
    }

    /// Sends a question as soon as our own quota allows: beyond it, the network would drop the question.
    async fn send(&self, peer: &PublicKey, question: &[u8]) {
        let mut sender = self.sender.clone();
        loop {
            let until = match sender.check(Recipients::One(peer.clone())) {
                Ok(checked) => {
                    checked.send(question.to_vec(), false);
                    return;
                }
                Err(until) => until,
            };
            self.clock.sleep_until(until).await;
        }
    }

    /// Lets a busy peer rest for as long as it asks, within bounds. Returns for how long.
    fn rest(&self, peer: &PublicKey, wait_ms: u32) -> Duration {
        let wait = Duration::from_millis(wait_ms.max(1).into()).min(REST_MAX);
        lock(&self.resting).insert(peer.clone(), self.clock.current() + wait);
        wait
    }

    /// How long a peer still rests.
    fn rest_of(&self, peer: &PublicKey) -> Option<Duration> {
        let mut resting = lock(&self.resting);
        let left = rest_left(*resting.get(peer)?, self.clock.current());
        if left.is_none() {
            resting.remove(peer);
        }
        left
    }

    /// Asks peer after peer, taking turns in who is first. If none answers but some are busy, waits for those;
    /// that does not count as a round.
    pub async fn ask_any<T>(
        &self,
        question: &Question,
        check: impl Fn(Answer) -> Result<T, String>,
    ) -> Result<T, AskError> {
        let mut last = "all were disconnected".to_owned();
        let patience = self.clock.current() + BUSY_PATIENCE;
        let mut round = 0;
        while round < ROUNDS {
            let mut rest = None;
            for peer in self.peers_in_turn() {
                match self.ask(&peer, question, &check).await {
                    Ok(found) => return Ok(found),
                    Err(error) => {
                        if let AskError::Busy { wait } = error {
                            rest = Some(rest.map_or(wait, |rest: Duration| rest.min(wait)));
                        }
                        last = format!("{peer}: {error}");
                    }
                }
            }
            match rest.filter(|_| self.clock.current() < patience) {
                Some(rest) => self.clock.sleep(rest).await,
                None => {
                    round += 1;
                    self.clock.sleep(ROUND_PAUSE).await;
                }
            }
        }
        Err(AskError::Nobody { question: format!("{question:?}"), peers: self.peers().len(), last })
    }

    /// The peers, starting with another one each time.
    fn peers_in_turn(&self) -> Vec<PublicKey> {
        let mut peers = self.peers();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let count = u64::try_from(peers.len()).expect("a length fits 64 bits").max(1);
        peers.rotate_left(usize::try_from(turn % count).expect("less than a length"));
        peers
    }

    /// Disconnects a peer, for a proven reason.
    pub(super) fn cut_off(&self, peer: &PublicKey, reason: &str) {
        tracing::warn!("disconnecting {peer}: {reason}");
        lock(&self.liars).insert(peer.clone());
        self.blocker.clone().block(peer.clone());
    }
}

/// Passes answers to their waiters. Drops answers that this peer was not asked for.
async fn listen<R: Receiver<PublicKey = PublicKey>>(open: Arc<Open>, mut receiver: R) {
    while let Ok((peer, bytes)) = receiver.recv().await {
        let bytes: &[u8] = bytes.as_ref();
        let Some(number) = message::read_number(bytes) else { continue };
        let answer = match Answer::decode(bytes) {
            Ok((_, answer)) => Ok(answer),
            Err(error) => Err(AskError::Wrong { reason: error.to_string() }),
        };
        let mut waiting = lock(&open.waiting);
        if waiting.get(&number).is_some_and(|(asked, _)| *asked == peer)
            && let Some((_, waiter)) = waiting.remove(&number)
        {
            // The waiter may have timed out.
            let _ = waiter.send(answer);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nothing panics while it holds this")
}

/// The rest of a pause. If the clock was set back, no pause becomes longer than intended.
fn rest_left(until: SystemTime, now: SystemTime) -> Option<Duration> {
    until.duration_since(now).ok().filter(|left| !left.is_zero() && *left <= REST_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: setting the clock back by an hour kept every busy peer away for that hour.
    #[test]
    fn a_rest_ends_by_a_clock_that_was_set_back() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let (second, hour) = (Duration::from_secs(1), Duration::from_secs(3_600));
        assert_eq!(rest_left(now + second, now), Some(second));
        assert_eq!(rest_left(now + REST_MAX, now), Some(REST_MAX), "the longest");
        assert_eq!(rest_left(now, now), None, "over");
        assert_eq!(rest_left(now, now + second), None, "long over");
        assert_eq!(rest_left(now, now - hour), None, "set back");
    }
}
