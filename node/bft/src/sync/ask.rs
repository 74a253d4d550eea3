//! Asks peers one after the other until one gives a valid answer.
//!
//! A peer with a wrong answer is disconnected. One that refuses or does not answer is skipped and asked again
//! later. A busy peer states how long, and is left alone for that time. A slow one is mostly asked after the others
//! for a while, and one that gives no answer always: being first in its turn, it would hold up every copy.

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

/// Shortest and longest rest of a busy peer, whatever it asks for. Where all others refuse, a shorter one would make the
/// same question be asked of all of them hundreds of times a second.
const REST_MIN: Duration = Duration::from_millis(100);
const REST_MAX: Duration = Duration::from_secs(5);

/// A peer that takes longer for an answer is late. If all are, none comes before another.
const LATE_AFTER: Duration = Duration::from_millis(250);

/// How long a late or silent peer is asked after the others.
const LATE_FOR: Duration = Duration::from_secs(60);

/// In one of so many rounds through all peers, late ones have their turn like the others: where all honest peers are far
/// away, one that is near and gives as little as it may would answer everything. Silent ones answer nothing.
const FAIR_EVERY: u64 = 4;

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
    /// Late peers, and until when they are asked after the others.
    late: Mutex<BTreeMap<PublicKey, (Late, SystemTime)>>,
    open: Arc<Open>,
    turn: AtomicU64,
}

/// How late a peer was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Late {
    Slow,
    Silent,
}

/// An order of the peers, to be asked one after the other.
struct Order {
    left: Vec<PublicKey>,
    /// Whether slow ones have their turn like the others.
    is_fair: bool,
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
        let (liars, resting, late) = (Mutex::default(), Mutex::default(), Mutex::default());
        let turn = AtomicU64::new(0);
        (Self { clock, sender, blocker, peers, liars, resting, late, open, turn }, listener)
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
        let asked = self.clock.current();
        let answer = tokio::select! {
            biased;
            answer = receiver => answer.unwrap_or(Err(AskError::Silent)),
            () = self.clock.sleep(ANSWER_PATIENCE) => Err(AskError::Silent),
        };
        self.note_time(peer, asked, matches!(answer, Err(AskError::Silent)));
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
        let wait = rest_time(wait_ms);
        lock(&self.resting).insert(peer.clone(), self.clock.current() + wait);
        wait
    }

    /// How long a peer still rests.
    fn rest_of(&self, peer: &PublicKey) -> Option<Duration> {
        let mut resting = lock(&self.resting);
        let left = time_left(*resting.get(peer)?, self.clock.current(), REST_MAX);
        if left.is_none() {
            resting.remove(peer);
        }
        left
    }

    /// Notes a peer that was late with an answer, or gave none.
    fn note_time(&self, peer: &PublicKey, asked: SystemTime, is_silent: bool) {
        let now = self.clock.current();
        let late = if is_silent { Late::Silent } else { Late::Slow };
        if is_silent || now.duration_since(asked).is_ok_and(|took| took > LATE_AFTER) {
            lock(&self.late).insert(peer.clone(), (late, now + LATE_FOR));
        }
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
            let (mut rest, mut order) = (None, self.peers_in_turn());
            while let Some(peer) = self.next(&mut order) {
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
                // Several busy peers would otherwise have the others asked each time that one of them has rested.
                Some(rest) => self.clock.sleep(rest.max(REST_MIN)).await,
                None => {
                    round += 1;
                    self.clock.sleep(ROUND_PAUSE).await;
                }
            }
        }
        Err(AskError::Nobody { question: format!("{question:?}"), peers: self.peers().len(), last })
    }

    /// The peers, starting with another one each time.
    fn peers_in_turn(&self) -> Order {
        let mut left = self.peers();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let count = u64::try_from(left.len()).expect("a length fits 64 bits").max(1);
        left.rotate_left(usize::try_from(turn % count).expect("less than a length"));
        Order { left, is_fair: (turn / count).is_multiple_of(FAIR_EVERY) }
    }

    /// Takes out the next peer, late ones last: those that are late by now, which another question may have shown.
    fn next(&self, order: &mut Order) -> Option<PublicKey> {
        let (late, now) = (lock(&self.late), self.clock.current());
        let lateness =
            |peer| lateness(late.get(peer), now).filter(|late| !order.is_fair || *late == Late::Silent);
        let (place, _) = order.left.iter().enumerate().min_by_key(|(_, peer)| lateness(peer))?;
        Some(order.left.remove(place))
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

/// How long a peer rests that asks for so many milliseconds.
fn rest_time(wait_ms: u32) -> Duration {
    Duration::from_millis(wait_ms.into()).clamp(REST_MIN, REST_MAX)
}

/// How late a peer counts as now.
fn lateness(noted: Option<&(Late, SystemTime)>, now: SystemTime) -> Option<Late> {
    noted.filter(|(_, until)| time_left(*until, now, LATE_FOR).is_some()).map(|(late, _)| *late)
}

/// What is left of a time. If the clock was set back, none becomes longer than intended.
fn time_left(until: SystemTime, now: SystemTime, most: Duration) -> Option<Duration> {
    until.duration_since(now).ok().filter(|left| !left.is_zero() && *left <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: setting the clock back by an hour kept every busy peer away for that hour.
    #[test]
    fn a_rest_ends_by_a_clock_that_was_set_back() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let (second, hour) = (Duration::from_secs(1), Duration::from_secs(3_600));
        let rest_left = |until, now| time_left(until, now, REST_MAX);
        assert_eq!(rest_left(now + second, now), Some(second));
        assert_eq!(rest_left(now + REST_MAX, now), Some(REST_MAX), "the longest");
        assert_eq!(rest_left(now, now), None, "over");
        assert_eq!(rest_left(now, now + second), None, "long over");
        assert_eq!(rest_left(now, now - hour), None, "set back");
    }

    #[test]
    fn both_sides_of_a_rest() {
        let times = [0, 1, 100, 101, 5_000, 5_001, u32::MAX].map(|asked| rest_time(asked).as_millis());
        assert_eq!(times, [100, 100, 100, 101, 5_000, 5_000, 5_000]);
    }

    #[test]
    fn a_late_peer_is_late_for_a_minute() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let until = now + LATE_FOR;
        assert_eq!(lateness(None, now), None);
        for late in [Late::Slow, Late::Silent] {
            let noted = (late, until);
            assert_eq!(lateness(Some(&noted), now), Some(late));
            assert_eq!(lateness(Some(&noted), until - Duration::from_millis(1)), Some(late));
            assert_eq!(lateness(Some(&noted), until), None);
        }
        assert!(None < Some(Late::Slow) && Late::Slow < Late::Silent, "the order in which they are asked");
    }
}
