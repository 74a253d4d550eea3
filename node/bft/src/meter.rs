//! Meters the answers to peers, in bytes. A peer that has used up its share has to wait.
//!
//! A request is charged before anything is read for it, by the size of the last answer to that peer; the answer then
//! settles the difference. Answers that nobody requested are dropped before they are queued.

use crate::{
    credit::{Allowance, Credits},
    questions::Questions,
};
use almanac_consensus::Clock;
use almanac_primitives::TimestampMs;
use commonware_actor::{Feedback, Unreliable};
use commonware_p2p::{CheckedSender, LimitedSender, Recipients};
use commonware_runtime::IoBufs;
use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, SystemTime},
};

/// Bytes that a peer gets per second, and at once: some full blocks, or all the small ones that it may request.
/// A node that is behind asks several peers.
const ANSWERS: Allowance = Allowance { per_second: 16 << 20, burst: 32 << 20 };

/// Least charge of a request: searching for what does not exist takes time as well.
const QUESTION_BYTES: usize = 4 << 10;

/// Unanswered requests of a peer, and of this node to a peer. Beyond that, the oldest count as never answered.
const UNANSWERED_MAX: usize = 256;

/// What each peer got recently on one channel.
#[derive(Debug)]
pub(crate) struct Meter<P, C> {
    accounts: Arc<Mutex<Accounts<P>>>,
    questions: Questions,
    clock: C,
}

#[derive(Debug)]
struct Accounts<P> {
    credits: Credits<P>,
    peers: BTreeMap<P, Account>,
}

/// The account of one peer.
#[derive(Debug, Default)]
struct Account {
    /// The charge of each request that has no answer yet.
    charged: VecDeque<usize>,
    /// The size of the last answer.
    last_bytes: usize,
    /// Requests of this node that the peer has not answered.
    asked: usize,
}

impl<P, C: Clone> Clone for Meter<P, C> {
    fn clone(&self) -> Self {
        Self { accounts: self.accounts.clone(), questions: self.questions, clock: self.clock.clone() }
    }
}

impl<P: Ord + Clone, C: Clock> Meter<P, C> {
    /// A meter without usage.
    pub(crate) fn new(questions: Questions, clock: C) -> Self {
        let accounts = Accounts { credits: Credits::new(ANSWERS), peers: BTreeMap::new() };
        Self { accounts: Arc::new(Mutex::new(accounts)), questions, clock }
    }

    /// Whether a message may be processed. If so, a request is charged.
    pub(crate) fn admits(&self, peer: &P, message: &[u8]) -> bool {
        if !self.questions.are_asked {
            return true;
        }
        if (self.questions.is_question)(message) {
            return self.lock().admit(peer, self.clock.now());
        }
        self.lock().is_asked_for(peer)
    }

    /// The answer to a peer whose message was dropped, if it was a request.
    pub(crate) fn busy(&self, peer: &P, message: &[u8]) -> Option<Vec<u8>> {
        if !(self.questions.is_question)(message) {
            return None;
        }
        let wait_ms = self.lock().credits.wait_ms(peer, self.clock.now());
        (self.questions.busy)(message, Duration::from_millis(wait_ms))
    }

    /// Charges what was sent to a peer. This node's own requests are not charged.
    fn sent(&self, peer: P, message: &IoBufs, now: TimestampMs) {
        if (self.questions.is_question)(message.chunk_at(0).unwrap_or_default()) {
            let mut accounts = self.lock();
            let account = accounts.peers.entry(peer).or_default();
            account.asked = UNANSWERED_MAX.min(account.asked + 1);
        } else {
            self.lock().answered(peer, message.len(), now);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Accounts<P>> {
        self.accounts.lock().expect("nothing panics while it holds this")
    }
}

impl<P: Ord + Clone> Accounts<P> {
    fn admit(&mut self, peer: &P, now: TimestampMs) -> bool {
        if !self.credits.is_good(peer, now) {
            return false;
        }
        let account = self.peers.entry(peer.clone()).or_default();
        let cost = account.last_bytes.max(QUESTION_BYTES);
        if account.charged.len() == UNANSWERED_MAX {
            account.charged.pop_front();
        }
        account.charged.push_back(cost);
        self.credits.charge(peer.clone(), cost, now);
        true
    }

    /// Whether a peer owes an answer, which it then no longer does.
    fn is_asked_for(&mut self, peer: &P) -> bool {
        let Some(account) = self.peers.get_mut(peer).filter(|account| account.asked > 0) else {
            return false;
        };
        account.asked -= 1;
        true
    }

    fn answered(&mut self, peer: P, bytes: usize, now: TimestampMs) {
        let charged = self.peers.get_mut(&peer).and_then(|account| {
            account.last_bytes = bytes;
            account.charged.pop_front()
        });
        let charged = charged.unwrap_or(0);
        // The minimum charge stays, however short the answer.
        let cost = bytes.max(charged.min(QUESTION_BYTES));
        self.credits.refund(&peer, charged.saturating_sub(cost));
        self.credits.charge(peer, cost.saturating_sub(charged), now);
    }
}

/// A sender that counts the bytes.
#[derive(Clone)]
pub(crate) struct MeteredSender<S: LimitedSender, C: Clone> {
    pub(crate) sender: S,
    pub(crate) meter: Meter<S::PublicKey, C>,
}

impl<S: LimitedSender, C: Clock> LimitedSender for MeteredSender<S, C> {
    type PublicKey = S::PublicKey;
    type Checked<'a> = Metered<'a, S, C>;

    fn check(&mut self, recipients: Recipients<S::PublicKey>) -> Result<Metered<'_, S, C>, SystemTime> {
        let now = self.meter.clock.now();
        Ok(Metered { checked: self.sender.check(recipients)?, meter: &self.meter, now })
    }
}

/// A message to be sent.
pub(crate) struct Metered<'a, S: LimitedSender + 'a, C: Clone> {
    checked: S::Checked<'a>,
    meter: &'a Meter<S::PublicKey, C>,
    now: TimestampMs,
}

impl<S: LimitedSender, C: Clock> CheckedSender for Metered<'_, S, C> {
    type PublicKey = S::PublicKey;

    fn recipients(&self) -> Vec<S::PublicKey> {
        self.checked.recipients()
    }

    fn send(self, message: impl Into<IoBufs> + Send, priority: bool) -> Unreliable<Feedback> {
        let message = message.into();
        for peer in self.checked.recipients() {
            self.meter.sent(peer, &message, self.now);
        }
        self.checked.send(message, priority)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use almanac_consensus::ManualClock;
    use almanac_primitives::DurationMs;
    use commonware_cryptography::{
        Signer as _,
        ed25519::{PrivateKey, PublicKey},
    };

    #[derive(Clone, Debug)]
    struct ToEveryone;

    impl LimitedSender for ToEveryone {
        type PublicKey = PublicKey;
        type Checked<'a> = Given;

        fn check(&mut self, recipients: Recipients<PublicKey>) -> Result<Given, SystemTime> {
            match recipients {
                Recipients::Some(peers) => Ok(Given(peers)),
                Recipients::One(peer) => Ok(Given(vec![peer])),
                Recipients::All => Ok(Given(Vec::new())),
            }
        }
    }

    struct Given(Vec<PublicKey>);

    impl CheckedSender for Given {
        type PublicKey = PublicKey;

        fn recipients(&self) -> Vec<PublicKey> {
            self.0.clone()
        }

        fn send(self, _: impl Into<IoBufs> + Send, _: bool) -> Unreliable<Feedback> {
            Unreliable::new(Feedback::Ok)
        }
    }

    type TestMeter = Meter<PublicKey, ManualClock>;

    /// A meter of the channel of block requests, with its sender.
    fn meter() -> (ManualClock, TestMeter, MeteredSender<ToEveryone, ManualClock>) {
        let clock = ManualClock::new(TimestampMs(1_000));
        let meter = Meter::new(Questions::BLOCKS, clock.clone());
        (clock, meter.clone(), MeteredSender { sender: ToEveryone, meter })
    }

    fn peer(seed: u64) -> PublicKey {
        PrivateKey::from_seed(seed).public_key()
    }

    const QUESTION: [u8; 9] = [0; 9];

    fn answer(bytes: usize) -> Vec<u8> {
        vec![1; bytes]
    }

    fn give(sender: &mut MeteredSender<ToEveryone, ManualClock>, peer: &PublicKey, message: Vec<u8>) {
        sender.check(Recipients::One(peer.clone())).unwrap().send(message, false);
    }

    const BURST: usize = ANSWERS.burst as usize;

    /// Both sides of the burst; some credit returns a moment later.
    #[test]
    fn who_was_given_too_much_may_not_ask_until_time_has_passed() {
        let (clock, meter, mut sender) = meter();
        let [greedy, modest] = [1, 2].map(peer);
        give(&mut sender, &greedy, answer(BURST - 1));
        give(&mut sender, &modest, answer(20));
        assert!(meter.admits(&greedy, &QUESTION), "charged, and the answer is as short as it can be");
        give(&mut sender, &greedy, answer(9));
        assert!(!meter.admits(&greedy, &QUESTION) && meter.admits(&modest, &QUESTION));
        clock.advance(DurationMs(1));
        assert!(meter.admits(&greedy, &QUESTION));
    }

    /// Without a charge in advance, all requests before the first answer would be free.
    #[test]
    fn questions_are_charged_before_their_answers_are_made() {
        let admitted =
            |meter: &TestMeter| (0..100_000).take_while(|_| meter.admits(&peer(1), &QUESTION)).count();
        let (_, unknown, _) = meter();
        assert_eq!(admitted(&unknown), BURST / QUESTION_BYTES, "of answers whose size nobody knows");
        let (_, large, mut sender) = meter();
        assert!(large.admits(&peer(1), &QUESTION));
        give(&mut sender, &peer(1), answer(4 << 20));
        assert_eq!(admitted(&large), 7, "32 MiB at 4 MiB each, one of which was answered");
    }

    /// In the end a peer is charged for the bytes it got, or the minimum charge of a request.
    #[test]
    fn answers_settle_what_questions_were_charged() {
        let (_, meter, mut sender) = meter();
        let peer = peer(1);
        let is_good = || meter.lock().credits.wait_ms(&peer, TimestampMs(1_000)) == 0;
        let mut total = 0;
        for size in [5 << 20, 9, 100_000, 2 << 20, 4_095, 4_097] {
            assert!(meter.admits(&peer, &QUESTION));
            give(&mut sender, &peer, answer(size));
            total += size.max(QUESTION_BYTES);
        }
        give(&mut sender, &peer, QUESTION.to_vec());
        give(&mut sender, &peer, answer(BURST - total - 1));
        assert!(is_good(), "one byte is left: an own question cost nothing");
        give(&mut sender, &peer, answer(1));
        assert!(!is_good());
    }

    /// One answer per request. Late ones count, in any order.
    #[test]
    fn answers_that_nobody_asked_for_are_dropped() {
        let (_, meter, mut sender) = meter();
        let [asked, other] = [1, 2].map(peer);
        assert!(!meter.admits(&asked, &answer(20)));
        for _ in 0..2 {
            give(&mut sender, &asked, QUESTION.to_vec());
        }
        assert!(!meter.admits(&other, &answer(20)));
        assert_eq!([0; 3].map(|_| meter.admits(&asked, &answer(20))), [true, true, false]);
        let none = Meter::new(Questions::NONE, ManualClock::new(TimestampMs(1_000)));
        assert!(none.admits(&other, &answer(20)), "a channel without questions");
    }

    /// Both sides of how many answers a peer may withhold to send them all at once later.
    #[test]
    fn answers_cannot_be_saved_up() {
        let (_, meter, mut sender) = meter();
        let peer = peer(1);
        for _ in 0..10 * UNANSWERED_MAX {
            give(&mut sender, &peer, QUESTION.to_vec());
        }
        let admitted = (0..2 * UNANSWERED_MAX).filter(|_| meter.admits(&peer, &answer(20)));
        assert_eq!(admitted.count(), UNANSWERED_MAX);
    }

    #[test]
    fn who_has_to_wait_hears_so() {
        let (_, meter, mut sender) = meter();
        let peer = peer(1);
        give(&mut sender, &peer, answer(BURST));
        let question = [&77_u64.to_be_bytes()[..], &[0, 5]].concat();
        assert!(!meter.admits(&peer, &question));
        let said = meter.busy(&peer, &question).unwrap();
        assert_eq!(said, [&77_u64.to_be_bytes()[..], &[2]].concat());
        assert_eq!(meter.busy(&peer, &answer(9)), None, "nobody waits for an answer to an answer");
    }
}
