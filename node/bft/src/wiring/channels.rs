//! The channels of a node: how many, how much a peer may send on each, and what guards them.

use crate::{
    engine::{self, CHANNEL_QUOTA, Channels},
    fair::{FairReceiver, Gate, Share},
    gossip,
    meter::{Meter, MeteredSender},
    questions::Questions,
    standing, sync,
    votes::{NotingSender, VoteBook},
};
use almanac_consensus::Clock;
use commonware_cryptography::ed25519::PublicKey;
use commonware_p2p::{Blocker, Receiver, Recipients, Sender};
use commonware_runtime::{Quota, Spawner};
use std::{sync::Arc, time::Duration};

/// Channels of a node: those of consensus and of transactions, then those of state sync and of standing.
pub const CHANNEL_COUNT: usize = 8;

const _: () = assert!(standing::CHANNEL + 1 == CHANNEL_COUNT as u64, "standing has the last channel");

/// Numbers of the channels, and the messages that a peer may send on each.
pub fn quotas(block_time: Duration) -> [(u64, Quota); CHANNEL_COUNT] {
    [
        (0, CHANNEL_QUOTA),
        (1, CHANNEL_QUOTA),
        (2, CHANNEL_QUOTA),
        (3, engine::BACKFILL_QUOTA),
        (4, engine::block_quota(block_time)),
        (5, gossip::QUOTA),
        (sync::CHANNEL, sync::QUOTA),
        (standing::CHANNEL, standing::QUOTA),
    ]
}

type GuardedSender<S, C> = NotingSender<MeteredSender<S, C>>;

/// Both ends of a channel with its limits.
pub(super) type Guarded<S, C> = (GuardedSender<S, C>, FairReceiver<PublicKey>);

/// The channels of a node, each with its limits.
pub(super) struct GuardedChannels<S: Sender<PublicKey = PublicKey>, C: Clock> {
    pub(super) consensus: Channels<GuardedSender<S, C>, FairReceiver<PublicKey>>,
    pub(super) transactions: Guarded<S, C>,
    pub(super) state: Guarded<S, C>,
    pub(super) standing: Guarded<S, C>,
}

/// What guards a channel against peers that send too much.
pub(super) struct Guard<'a, E, B, C> {
    pub(super) context: &'a E,
    pub(super) blocker: &'a B,
    pub(super) clock: &'a C,
}

impl<E: Spawner, B: Blocker<PublicKey = PublicKey>, C: Clock> Guard<'_, E, B, C> {
    /// Guards all channels of a node in a network of so many validators. What is sent on that of votes is noted in
    /// `book` first.
    pub(super) fn all<S: Sender<PublicKey = PublicKey>, R: Receiver<PublicKey = PublicKey>>(
        &self,
        ends: [(S, R); CHANNEL_COUNT],
        validators: usize,
        book: Arc<dyn VoteBook>,
    ) -> GuardedChannels<S, C> {
        let [votes, certificates, resolver, backfill, blocks, transactions, state, standing] = ends;
        let rules = Rules::of_channels(u32::try_from(validators).expect("VALIDATORS_MAX is small"));
        let mut consensus = Channels {
            votes: self.one(0, votes, rules[0]),
            certificates: self.one(1, certificates, rules[1]),
            resolver: self.one(2, resolver, rules[2]),
            backfill: self.one(3, backfill, rules[3]),
            blocks: self.one(4, blocks, rules[4]),
        };
        consensus.votes.0.book = Some(book);
        GuardedChannels {
            consensus,
            transactions: self.one(5, transactions, rules[5]),
            state: self.one(sync::CHANNEL, state, rules[6]),
            standing: self.one(standing::CHANNEL, standing, rules[7]),
        }
    }

    fn one<S: Sender<PublicKey = PublicKey>, R: Receiver<PublicKey = PublicKey>>(
        &self,
        number: u64,
        (sender, receiver): (S, R),
        rules: Rules,
    ) -> Guarded<S, C> {
        let Rules { share, message_bytes_max, questions } = rules;
        let meter = Meter::new(questions, self.clock.clone());
        let (asked, turned_away, answers) = (meter.clone(), meter.clone(), sender.clone());
        let admits = move |peer: &PublicKey, bytes: &[u8]| asked.admits(peer, bytes);
        // A question that is dropped without a word costs the asker its patience.
        let dropped = move |peer: &PublicKey, bytes: &[u8]| {
            if let Some(busy) = turned_away.busy(peer, bytes) {
                answers.clone().send(Recipients::One(peer.clone()), busy, false);
            }
        };
        let gate = Gate { message_bytes_max, blocker: self.blocker.clone(), admits, dropped };
        let context = self.context.child("queue").with_attribute("channel", number);
        let sender = NotingSender { sender: MeteredSender { sender, meter }, book: None };
        (sender, FairReceiver::new(context, receiver, share, gate))
    }
}

/// What may wait on a channel.
#[derive(Clone, Copy)]
struct Rules {
    share: Share,
    message_bytes_max: usize,
    questions: Questions,
}

impl Rules {
    /// Those of each channel, in a network of so many validators.
    fn of_channels(validators: u32) -> [Self; CHANNEL_COUNT] {
        let rules = |share, message_bytes_max, questions| Self { share, message_bytes_max, questions };
        let votes = rules(engine::SHARE, engine::vote_bytes_max(validators), Questions::NONE);
        let blocks_max = engine::block_bytes_max(validators);
        [
            votes,
            votes,
            votes,
            rules(engine::BACKFILL_SHARE, blocks_max, Questions::BLOCKS),
            rules(engine::SHARE, blocks_max, Questions::NONE),
            rules(gossip::SHARE, gossip::MESSAGE_BYTES_MAX, Questions::NONE),
            rules(sync::SHARE, sync::message::MESSAGE_BYTES_MAX, Questions::STATE),
            rules(standing::SHARE, standing::message_bytes_max(validators), Questions::NONE),
        ]
    }
}
