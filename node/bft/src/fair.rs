//! Serves the messages of a channel in turn by peer: a peer that floods it fills only its own share.
//!
//! The transport has one queue for all peers. When it is full, it drops messages of any peer. This module empties
//! that queue immediately and keeps a short queue per peer. It also enforces the size limit of its channel; the
//! transport has one limit for all channels.

use commonware_cryptography::PublicKey;
use commonware_p2p::{Blocker, Message, Receiver};
use commonware_runtime::{IoBuf, Spawner};
use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    num::NonZeroUsize,
    sync::{Arc, Mutex, MutexGuard},
};
use tokio::sync::Notify;

/// Queue limits of one peer. A single message is kept whatever its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    /// Most messages.
    pub(crate) messages: NonZeroUsize,
    /// Most bytes of messages.
    pub(crate) bytes: usize,
}

/// Checks the messages of a channel before they are queued.
pub(crate) struct Gate<B, F, D> {
    /// The largest message of the channel. Sending a larger one is a violation.
    pub(crate) message_bytes_max: usize,
    /// Disconnects peers that violate it.
    pub(crate) blocker: B,
    /// Whether a message may be queued; otherwise it is dropped.
    pub(crate) admits: F,
    /// Called for every dropped message: not admitted, or no room.
    pub(crate) dropped: D,
}

/// The network has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the network has ended")]
pub(crate) struct Ended;

/// Receives from each peer in turn.
pub(crate) struct FairReceiver<P> {
    waiting: Arc<Waiting<P>>,
    channel_size: NonZeroUsize,
}

impl<P: PublicKey> FairReceiver<P> {
    /// Takes over a channel. The task that empties it ends with the channel.
    pub(crate) fn new<R, B, F, D>(
        context: impl Spawner,
        channel: R,
        share: Share,
        gate: Gate<B, F, D>,
    ) -> Self
    where
        R: Receiver<PublicKey = P>,
        B: Blocker<PublicKey = P>,
        F: Fn(&P, &[u8]) -> bool + Send + 'static,
        D: Fn(&P, &[u8]) + Send + 'static,
    {
        let waiting = Arc::new(Waiting { queues: Mutex::new(Queues::new(share)), arrived: Notify::new() });
        let channel_size = channel.capacity();
        context.spawn({
            let waiting = waiting.clone();
            |_| empty(channel, gate, waiting)
        });
        Self { waiting, channel_size }
    }
}

impl<P> fmt::Debug for FairReceiver<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FairReceiver").field("channel_size", &self.channel_size).finish_non_exhaustive()
    }
}

impl<P: PublicKey> Receiver for FairReceiver<P> {
    type Error = Ended;
    type PublicKey = P;

    async fn recv(&mut self) -> Result<Message<P>, Ended> {
        loop {
            {
                let mut queues = self.waiting.lock();
                if let Some(next) = queues.take() {
                    return Ok(next);
                }
                if queues.has_ended {
                    return Err(Ended);
                }
            }
            // Messages that arrived since the check of the queues have left a permit here.
            self.waiting.arrived.notified().await;
        }
    }

    fn capacity(&self) -> NonZeroUsize {
        self.channel_size
    }
}

async fn empty<R, B, F, D>(mut channel: R, gate: Gate<B, F, D>, waiting: Arc<Waiting<R::PublicKey>>)
where
    R: Receiver,
    B: Blocker<PublicKey = R::PublicKey>,
    F: Fn(&R::PublicKey, &[u8]) -> bool,
    D: Fn(&R::PublicKey, &[u8]),
{
    let Gate { message_bytes_max, mut blocker, admits, dropped } = gate;
    while let Ok((peer, message)) = channel.recv().await {
        let given = message.len();
        if given > message_bytes_max {
            commonware_p2p::block!(
                blocker,
                peer,
                given,
                message_bytes_max,
                "larger than any message of this channel"
            );
            continue;
        }
        // Check for room first: a request without room is not charged.
        if !waiting.lock().has_room(&peer, given) {
            tracing::trace!("a message of {peer} is dropped: its earlier ones still wait");
            dropped(&peer, message.as_ref());
            continue;
        }
        if !admits(&peer, message.as_ref()) {
            tracing::trace!("a message of {peer} is dropped: it has had its share");
            dropped(&peer, message.as_ref());
            continue;
        }
        waiting.lock().put(&peer, message);
        waiting.arrived.notify_one();
    }
    waiting.lock().has_ended = true;
    waiting.arrived.notify_one();
}

struct Waiting<P> {
    queues: Mutex<Queues<P>>,
    arrived: Notify,
}

impl<P> Waiting<P> {
    fn lock(&self) -> MutexGuard<'_, Queues<P>> {
        self.queues.lock().expect("nothing panics while it holds this")
    }
}

struct Queues<P> {
    share: Share,
    /// Queues of the peers that have a message waiting.
    queues: BTreeMap<P, Queue>,
    /// The same peers, in the order of their turns.
    turns: VecDeque<P>,
    has_ended: bool,
}

#[derive(Default)]
struct Queue {
    messages: VecDeque<IoBuf>,
    bytes: usize,
}

impl Queue {
    fn has_room(&self, bytes: usize, share: Share) -> bool {
        self.messages.len() < share.messages.get() && self.bytes.saturating_add(bytes) <= share.bytes
    }
}

impl<P: Ord + Clone> Queues<P> {
    fn new(share: Share) -> Self {
        Self { share, queues: BTreeMap::new(), turns: VecDeque::new(), has_ended: false }
    }

    /// Queues a message. Returns whether there was room.
    fn put(&mut self, peer: &P, message: IoBuf) -> bool {
        let Some(queue) = self.queues.get_mut(peer) else {
            let bytes = message.len();
            self.queues.insert(peer.clone(), Queue { messages: [message].into(), bytes });
            self.turns.push_back(peer.clone());
            return true;
        };
        let has_room = queue.has_room(message.len(), self.share);
        if has_room {
            queue.bytes = queue.bytes.saturating_add(message.len());
            queue.messages.push_back(message);
        }
        has_room
    }

    /// Whether there is room for a message of so many bytes.
    fn has_room(&self, peer: &P, bytes: usize) -> bool {
        self.queues.get(peer).is_none_or(|queue| queue.has_room(bytes, self.share))
    }

    fn take(&mut self) -> Option<(P, IoBuf)> {
        let peer = self.turns.pop_front()?;
        let queue = self.queues.get_mut(&peer).expect("whoever has a turn has a message");
        let message = queue.messages.pop_front().expect("a queue without messages is removed");
        queue.bytes -= message.len();
        if queue.messages.is_empty() {
            self.queues.remove(&peer);
        } else {
            self.turns.push_back(peer.clone());
        }
        Some((peer, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use commonware_actor::Feedback;
    use commonware_cryptography::{Signer as _, ed25519};
    use commonware_p2p::BlockedSubscription;
    use commonware_utils::{NZUsize, channel::ring};

    const SHARE: Share = Share { messages: NZUsize!(3), bytes: 10 };

    fn message(bytes: &[u8]) -> IoBuf {
        IoBuf::copy_from_slice(bytes)
    }

    fn taken(queues: &mut Queues<char>) -> Vec<(char, usize)> {
        std::iter::from_fn(|| queues.take()).map(|(peer, message)| (peer, message.len())).collect()
    }

    /// The reason for this module: with one queue for all, the second peer would wait behind all messages of
    /// the first, or find no room.
    #[test]
    fn a_peer_that_sends_much_does_not_keep_others_waiting() {
        let mut queues = Queues::new(SHARE);
        for _ in 0..100 {
            queues.put(&'a', message(b"1"));
        }
        assert!(queues.put(&'b', message(b"22")));
        assert!(queues.put(&'c', message(b"333")));
        assert!(queues.put(&'c', message(b"4444")));
        assert_eq!(taken(&mut queues), [('a', 1), ('b', 2), ('c', 3), ('a', 1), ('c', 4), ('a', 1)]);
        assert!(queues.queues.is_empty() && queues.turns.is_empty(), "nothing is left of those who are done");
    }

    #[test]
    fn both_sides_of_a_share() {
        let mut queues = Queues::new(SHARE);
        assert_eq!([1, 1, 1, 1].map(|_| queues.put(&'a', message(b"1"))), [true, true, true, false], "count");
        assert_eq!(
            [5, 5, 1].map(|size| queues.put(&'b', message(&vec![0; size]))),
            [true, true, false],
            "bytes"
        );
        assert_eq!([11, 0, 1].map(|size| queues.put(&'c', message(&vec![0; size]))), [true, false, false]);
        // Taking a message makes room.
        while queues.take().is_some_and(|(peer, _)| peer != 'a') {}
        assert!(queues.put(&'a', message(b"1")));
    }

    /// Compares with a simple reference that keeps every message and counts.
    #[test]
    fn the_same_as_counting_on_random_orders() {
        let mut seed = 7_u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        let mut queues = Queues::new(SHARE);
        let mut dull: Vec<(char, usize)> = Vec::new();
        for _ in 0..20_000 {
            if random(3) == 0 {
                let Some((peer, message)) = queues.take() else {
                    assert!(dull.is_empty());
                    continue;
                };
                let first = dull.iter().position(|(from, _)| *from == peer).unwrap();
                assert_eq!(dull.remove(first).1, message.len(), "in the order of arrival");
            } else {
                let peer = ['a', 'b', 'c'][usize::try_from(random(3)).unwrap()];
                let size = usize::try_from(random(7)).unwrap();
                let own: Vec<usize> =
                    dull.iter().filter(|(from, _)| *from == peer).map(|(_, size)| *size).collect();
                let has_room = own.is_empty()
                    || own.len() < SHARE.messages.get() && own.iter().sum::<usize>() + size <= SHARE.bytes;
                assert_eq!(queues.put(&peer, message(&vec![0; size])), has_room);
                if has_room {
                    dull.push((peer, size));
                }
            }
        }
    }

    /// A channel with scripted messages.
    #[derive(Debug)]
    struct Script(VecDeque<Message<ed25519::PublicKey>>);

    impl Receiver for Script {
        type Error = Ended;
        type PublicKey = ed25519::PublicKey;

        async fn recv(&mut self) -> Result<Message<ed25519::PublicKey>, Ended> {
            self.0.pop_front().ok_or(Ended)
        }

        fn capacity(&self) -> NonZeroUsize {
            NZUsize!(1)
        }
    }

    #[derive(Clone, Default)]
    struct CutOff(Arc<Mutex<Vec<ed25519::PublicKey>>>);

    impl Blocker for CutOff {
        type PublicKey = ed25519::PublicKey;

        fn block(&mut self, peer: ed25519::PublicKey) -> Feedback {
            self.0.lock().unwrap().push(peer);
            Feedback::Ok
        }

        fn blocked(&mut self) -> BlockedSubscription<ed25519::PublicKey> {
            ring::channel(NZUsize!(1)).1
        }
    }

    #[test]
    fn what_is_too_large_cuts_off_and_what_is_dropped_is_told() {
        let [small, large] = [1, 2].map(|seed| ed25519::PrivateKey::from_seed(seed).public_key());
        // The third is not admitted; of the next four, the last finds no room.
        let sizes =
            [(&small, 0, 8), (&large, 0, 9), (&small, 1, 8), (&small, 0, 1), (&small, 0, 1), (&small, 0, 0)];
        let sent = sizes.map(|(peer, byte, size)| (peer.clone(), message(&vec![byte; size])));
        let (blocker, queues) = (CutOff::default(), Mutex::new(Queues::new(SHARE)));
        let waiting = Arc::new(Waiting { queues, arrived: Notify::new() });
        let admits = |_: &ed25519::PublicKey, bytes: &[u8]| bytes.first() != Some(&1);
        let told = Arc::<Mutex<Vec<(ed25519::PublicKey, usize)>>>::default();
        let notes = told.clone();
        let dropped = move |peer: &ed25519::PublicKey, bytes: &[u8]| {
            notes.lock().unwrap().push((peer.clone(), bytes.len()));
        };
        let gate = Gate { message_bytes_max: 8, blocker: blocker.clone(), admits, dropped };
        futures::executor::block_on(empty(Script(sent.into()), gate, waiting.clone()));
        assert_eq!(*blocker.0.lock().unwrap(), [large]);
        assert_eq!(*told.lock().unwrap(), [(small.clone(), 8), (small.clone(), 0)]);
        let mut receiver = FairReceiver { waiting, channel_size: NZUsize!(1) };
        let received = futures::executor::block_on(async {
            [receiver.recv().await, receiver.recv().await, receiver.recv().await, receiver.recv().await]
        });
        let sizes = received.map(|got| got.map(|(peer, bytes)| (peer, bytes.len())));
        assert_eq!(sizes, [Ok((small.clone(), 8)), Ok((small.clone(), 1)), Ok((small, 1)), Err(Ended)]);
    }
}
