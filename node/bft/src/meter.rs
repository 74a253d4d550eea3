//! Counts what peers are given in answer to their questions. Those who had too much are not heard for a while.

use crate::credit::{Allowance, Credits};
use almanac_consensus::Clock;
use almanac_primitives::TimestampMs;
use commonware_actor::{Feedback, Unreliable};
use commonware_p2p::{CheckedSender, LimitedSender, Recipients};
use commonware_runtime::IoBufs;
use std::{
    sync::{Arc, Mutex, MutexGuard},
    time::SystemTime,
};

/// Bytes that a peer is given each second, and at once: some full blocks, or all the small ones that it may ask for.
/// Whoever is behind asks several peers.
const ANSWERS: Allowance = Allowance { per_second: 16 << 20, burst: 32 << 20 };

/// What each peer was given lately on one channel.
#[derive(Debug)]
pub(crate) struct Meter<P, C> {
    credits: Arc<Mutex<Credits<P>>>,
    clock: C,
}

impl<P, C: Clone> Clone for Meter<P, C> {
    fn clone(&self) -> Self {
        Self { credits: self.credits.clone(), clock: self.clock.clone() }
    }
}

impl<P: Ord, C: Clock> Meter<P, C> {
    /// Nobody was given anything yet.
    pub(crate) fn new(clock: C) -> Self {
        Self { credits: Arc::new(Mutex::new(Credits::new(ANSWERS))), clock }
    }

    /// Whether a peer may ask again.
    pub(crate) fn may_ask(&self, peer: &P) -> bool {
        let now = self.clock.now();
        self.lock().is_good(peer, now)
    }

    fn lock(&self) -> MutexGuard<'_, Credits<P>> {
        self.credits.lock().expect("nothing panics while it holds this")
    }
}

/// Sends, and notes how much.
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

/// A message on its way.
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
            self.meter.lock().charge(peer, message.len(), self.now);
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

    /// Both sides of what is given at once, and a second later some of it is forgotten.
    #[test]
    fn who_was_given_too_much_may_not_ask_until_time_has_passed() {
        let clock = ManualClock::new(TimestampMs(1_000));
        let meter = Meter::new(clock.clone());
        let mut sender = MeteredSender { sender: ToEveryone, meter: meter.clone() };
        let [greedy, modest] = [1, 2].map(|seed| PrivateKey::from_seed(seed).public_key());
        let mut give = |peer: &PublicKey, bytes: u64| {
            let answer = vec![0; usize::try_from(bytes).unwrap()];
            sender.check(Recipients::One(peer.clone())).unwrap().send(answer, false);
        };
        give(&greedy, ANSWERS.burst - 1);
        give(&modest, 1);
        assert!(meter.may_ask(&greedy));
        give(&greedy, 1);
        assert!(!meter.may_ask(&greedy) && meter.may_ask(&modest));
        clock.advance(DurationMs(1));
        assert!(meter.may_ask(&greedy));
    }
}
