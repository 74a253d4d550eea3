//! Which messages of a channel are requests, and the answer to a peer that has to wait.

use crate::sync;
use std::time::Duration;

/// The request format of a channel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Questions {
    /// Whether the channel has requests. If so, every other message is an answer.
    pub(crate) are_asked: bool,
    /// Whether a message is a request.
    pub(crate) is_question: fn(&[u8]) -> bool,
    /// The answer to a request that has to wait for this long.
    pub(crate) busy: fn(&[u8], Duration) -> Option<Vec<u8>>,
}

impl Questions {
    /// A channel without requests.
    pub(crate) const NONE: Self = Self { are_asked: false, is_question: |_| false, busy: |_, _| None };

    /// The channel of state sync.
    pub(crate) const STATE: Self =
        Self { are_asked: true, is_question: sync::message::is_question, busy: sync::message::busy };

    /// The channel of block requests. The library's format is private: a number of eight bytes, then 0 for a
    /// request, 1 for an answer, or 2 for "no answer", after which the requester turns to another peer at once.
    pub(crate) const BLOCKS: Self = Self {
        are_asked: true,
        is_question: |message| message.get(8) == Some(&0),
        busy: |question, _| Some([question.get(..8)?, &[2]].concat()),
    };
}

/// Checks with the library's own resolver that its messages have the format of [`Questions::BLOCKS`].
#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use commonware_cryptography::{
        Signer as _,
        ed25519::{PrivateKey, PublicKey},
    };
    use commonware_p2p::{
        Receiver as _, Recipients, Sender as _,
        simulated::{self, Link, Network, Oracle},
    };
    use commonware_resolver::{
        Consumer, Delivery, Resolver as _,
        p2p::{Config, Engine, Mailbox, Producer},
    };
    use commonware_runtime::{
        Clock as _, Runner as _, Supervisor as _,
        deterministic::{self, Context},
    };
    use commonware_utils::{NZDuration, NZUsize, channel::oneshot, probability, sequence::U64};
    use std::collections::BTreeMap;

    const QUOTA: commonware_runtime::Quota = crate::CHANNEL_QUOTA;

    /// The resolver's timeout: longer than any of these tests.
    const FETCH_TIMEOUT: Duration = Duration::from_secs(600);

    /// Has the value of key 7, and accepts any value.
    #[derive(Clone)]
    struct Values;

    impl Producer for Values {
        type Key = U64;

        fn produce(&mut self, key: U64) -> oneshot::Receiver<Bytes> {
            let (sender, receiver) = oneshot::channel();
            if key == U64::new(7) {
                sender.send(Bytes::from_static(b"a block")).expect("the receiver is here");
            }
            receiver
        }
    }

    impl Consumer for Values {
        type Key = U64;
        type Value = Bytes;
        type Subscriber = ();
        type Outcome = bool;

        fn deliver(&mut self, _: Delivery<U64, ()>, _: Bytes) -> oneshot::Receiver<bool> {
            let (sender, receiver) = oneshot::channel();
            sender.send(true).expect("the receiver is here");
            receiver
        }
    }

    type Channel = (simulated::Sender<PublicKey, Context>, simulated::Receiver<PublicKey>);

    /// A resolver of the library, and a peer that exchanges raw bytes with it.
    struct Pair {
        resolver: Mailbox<U64, PublicKey, ()>,
        key: PublicKey,
        peer: Channel,
    }

    impl Pair {
        async fn new(context: &Context) -> Self {
            let [key, peer] = [1, 2].map(|seed| PrivateKey::from_seed(seed).public_key());
            let oracle = connect(context, [&key, &peer]).await;
            let control = oracle.control(key.clone());
            let channel = control.register(0, QUOTA).await.unwrap();
            let (engine, resolver) = Engine::new(
                context.child("resolver"),
                Config {
                    peer_provider: oracle.manager(),
                    blocker: control,
                    consumer: Values,
                    producer: Values,
                    mailbox_size: NZUsize!(8),
                    me: Some(key.clone()),
                    fetch_timeout: NZDuration!(FETCH_TIMEOUT),
                    fetch_retry_delay: Duration::from_millis(100),
                    priority_requests: false,
                    priority_responses: false,
                },
            );
            engine.start(channel);
            let peer = oracle.control(peer).register(0, QUOTA).await.unwrap();
            Self { resolver, key, peer }
        }

        fn send(&mut self, bytes: Vec<u8>) {
            self.peer.0.send(Recipients::One(self.key.clone()), bytes, false);
        }

        async fn receive(&mut self) -> Vec<u8> {
            let (_, bytes) = self.peer.1.recv().await.unwrap();
            let bytes: &[u8] = bytes.as_ref();
            bytes.to_vec()
        }
    }

    async fn connect(context: &Context, keys: [&PublicKey; 2]) -> Oracle<PublicKey, Context> {
        let config = simulated::Config {
            max_size: 1 << 20,
            max_peers_per_set: NZUsize!(2),
            disconnect_on_block: true,
            tracked_peer_sets: NZUsize!(1),
        };
        let all = keys.map(PublicKey::clone);
        let (network, oracle) = Network::new_with_peers(context.child("network"), config, all).await;
        network.start();
        let (latency, jitter) = (Duration::from_millis(10), Duration::ZERO);
        let link = Link { latency, jitter, success_rate: probability!(1.0) };
        for (from, to) in [(keys[0], keys[1]), (keys[1], keys[0])] {
            oracle.add_link(from.clone(), to.clone(), link.clone()).await.unwrap();
        }
        oracle
    }

    /// A resolver sends requests. If told that the peer is busy, it asks again at once; unknown bytes it
    /// ignores, and waits.
    #[test]
    fn a_resolver_understands_that_a_peer_is_busy() {
        for is_known in [true, false] {
            deterministic::Runner::default().start(|context| async move {
                let mut pair = Pair::new(&context).await;
                pair.resolver.fetch(U64::new(5));
                let question = pair.receive().await;
                assert!((Questions::BLOCKS.is_question)(&question), "{question:?}");
                let mut busy = (Questions::BLOCKS.busy)(&question, Duration::ZERO).unwrap();
                assert!(!(Questions::BLOCKS.is_question)(&busy));
                if !is_known {
                    busy[8] = 3;
                }
                pair.send(busy);
                let begin = context.current();
                let again = pair.receive().await;
                let waited = context.current().duration_since(begin).unwrap();
                assert!((Questions::BLOCKS.is_question)(&again));
                assert_eq!(waited < Duration::from_secs(1), is_known, "{waited:?}");
            });
        }
    }

    /// A resolver's answers are not requests; without a value it answers the same as a busy one.
    #[test]
    fn a_resolver_answers_as_expected() {
        deterministic::Runner::default().start(|context| async move {
            let mut pair = Pair::new(&context).await;
            pair.resolver.fetch(U64::new(5));
            let form = pair.receive().await;
            let mut answers = BTreeMap::new();
            for key in [7_u64, 8] {
                // The resolver's own request, with another number and key.
                let question = [&key.to_be_bytes()[..], &form[8..9], &key.to_be_bytes()].concat();
                assert_eq!(question.len(), form.len());
                pair.send(question.clone());
                let answer = pair.receive().await;
                assert!(!(Questions::BLOCKS.is_question)(&answer), "{answer:?}");
                answers.insert(key, (question, answer));
            }
            assert!(answers[&7].1.ends_with(b"a block"));
            let (question, answer) = &answers[&8];
            assert_eq!((Questions::BLOCKS.busy)(question, Duration::ZERO).as_ref(), Some(answer));
        });
    }

    #[test]
    fn bytes_that_are_too_short_are_no_question() {
        for length in 0..9 {
            assert!(!(Questions::BLOCKS.is_question)(&vec![0; length]), "{length}");
        }
        assert_eq!((Questions::BLOCKS.busy)(&[0; 7], Duration::ZERO), None);
        assert!((Questions::BLOCKS.is_question)(&[0; 9]));
        assert!(!(Questions::NONE.is_question)(&[0; 9]));
    }
}
