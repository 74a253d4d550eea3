//! A validator that has lost its disk, and with it its votes, while the network stands still in a view it voted in.

use crate::sync::{
    follow::{self, VALIDATORS},
    node::{self, Node, Seat, World},
};
use almanac_bft::{BlockDigest, CHANNEL_QUOTA, RuntimeClock, Silence, Voice, sync::Floor};
use almanac_consensus::Clock as _;
use commonware_codec::{Copying, Decode as _};
use commonware_consensus::{
    Viewable as _,
    simplex::{scheme::ed25519::Scheme, types::Vote},
};
use commonware_cryptography::ed25519::PublicKey;
use commonware_p2p::{Receiver as _, simulated::Oracle};
use commonware_runtime::{
    Clock as _, Runner as _, Spawner as _, Supervisor as _,
    deterministic::{self, Context},
};
use std::{
    collections::BTreeSet,
    mem::take,
    sync::{Arc, Mutex},
    time::Duration,
};

/// The one that loses its disk.
const LOST: usize = 3;

/// The numbers of disks with nothing on them.
const NEW_DISK: usize = 10;
const OTHER_NEW_DISK: usize = 11;

/// A network that stands still: validator 2 is down, and the lost one has voted in the view that the others are in.
struct Scene {
    context: Context,
    world: Arc<World>,
    oracle: Oracle<PublicKey, Context>,
    nodes: Vec<Node>,
    /// Views of the votes that the lost one has sent since they were last taken.
    heard: Arc<Mutex<BTreeSet<u64>>>,
}

impl Scene {
    async fn new(context: Context) -> Self {
        let world = Arc::new(World::new(&context, VALIDATORS, 1).await);
        let oracle = follow::connect(&context, &world).await;
        let heard = listen(&context, &world, &oracle).await;
        let mut nodes = Vec::new();
        for index in 0..VALIDATORS {
            nodes.push(node::start(context.child("validator"), &world, &oracle, index, None).await);
        }
        nodes[0].replica.wait_for(20).await;
        // Two are too few: each votes that the view has failed, and can do no more. Then one of them is lost.
        for index in [2, 1, 1] {
            stop(nodes.remove(index)).await;
            context.sleep(Duration::from_secs(5)).await;
        }
        nodes.push(node::start(context.child("back"), &world, &oracle, 1, None).await);
        Self { context, world, oracle, nodes, heard }
    }

    /// Starts the lost one on a new disk.
    async fn start_lost(&self, disk: usize, voice: Voice) -> Node {
        let seat = Seat { index: LOST, disk, floor: None, voice };
        node::start_in(self.context.child("lost"), &self.world, &self.oracle, seat).await
    }

    fn take_heard(&self) -> BTreeSet<u64> {
        take(&mut *self.heard.lock().unwrap())
    }

    /// The newest final block, once it ends the silence.
    async fn end_of(&self, silence: Silence) -> Floor {
        let (session, _listening) =
            follow::session(&self.context, &self.world, &self.oracle, VALIDATORS, &[0, 1]).await;
        loop {
            let floor = session.find_floor(&mut self.context.child("weights")).await.unwrap();
            if silence.ends_with(&floor.header) {
                return floor;
            }
            self.context.sleep(Duration::from_millis(200)).await;
        }
    }
}

async fn stop(node: Node) {
    node.root.abort();
    let _ = node.root.await;
}

/// Writes down the views of the votes that the lost one sends, as a follower hears them.
async fn listen(
    context: &Context,
    world: &World,
    oracle: &Oracle<PublicKey, Context>,
) -> Arc<Mutex<BTreeSet<u64>>> {
    let heard = Arc::new(Mutex::new(BTreeSet::new()));
    let (notes, lost) = (heard.clone(), world.public(LOST));
    let control = oracle.control(world.public(VALIDATORS));
    let (sender, mut receiver) = control.register(0, CHANNEL_QUOTA).await.unwrap();
    context.child("votes").spawn(move |_| async move {
        let _sender = sender;
        while let Ok((peer, bytes)) = receiver.recv().await {
            if peer == lost {
                let vote = Vote::<Scheme, BlockDigest>::decode_cfg(Copying(bytes.as_ref()), &()).unwrap();
                notes.lock().unwrap().insert(vote.view().get());
            }
        }
    });
    heard
}

/// The control: without the rule, it votes again in a view that it voted in before. That takes a moment at which the
/// others are still in that view, so not every seed shows it.
#[test]
fn a_validator_that_votes_at_once_votes_twice_in_a_view() {
    let seeds = 0..20;
    assert!(seeds.clone().any(votes_twice), "with none of the seeds {seeds:?}");
}

fn votes_twice(seed: u64) -> bool {
    let config = deterministic::Config::new().with_seed(seed).with_timeout(Some(Duration::from_secs(300)));
    deterministic::Runner::new(config).start(|context| async move {
        let scene = Scene::new(context).await;
        let before = scene.take_heard();
        let _lost = scene.start_lost(NEW_DISK, Voice::Votes { after: None }).await;
        scene.context.sleep(Duration::from_secs(20)).await;
        let after = scene.take_heard();
        before.intersection(&after).next().is_some()
    })
}

#[test]
fn a_validator_that_was_silent_votes_in_new_views_only() {
    deterministic::Runner::timed(Duration::from_secs(300)).start(|context| async move {
        let mut scene = Scene::new(context).await;
        let before = scene.take_heard();
        let last = *before.last().expect("it voted");
        let start = RuntimeClock::new(scene.context.child("clock")).now();
        let tip = scene.nodes[0].replica.tip().header;
        let silence = Silence::new(start, &tip);
        let silent = scene.start_lost(NEW_DISK, Voice::None).await;
        scene.context.sleep(Duration::from_secs(20)).await;
        assert_eq!(scene.take_heard(), BTreeSet::new(), "it signs nothing, however long the others wait");
        assert_eq!(scene.nodes[0].replica.tip().header.number, tip.number, "two of four");

        let back = node::start(scene.context.child("back"), &scene.world, &scene.oracle, 2, None).await;
        scene.nodes.push(back);
        let floor = scene.end_of(silence).await;
        assert_eq!(scene.take_heard(), BTreeSet::new());
        let number = floor.header.number;
        let view = floor.header.consensus.view;
        assert!(view > last, "block {number} of view {view}, and it voted up to {last}");
        silent.replica.wait_for(number).await;
        stop(silent).await;

        // From here on, its vote is needed. On yet another disk: the block alone keeps it from voting before.
        stop(scene.nodes.remove(0)).await;
        let voter = scene.start_lost(OTHER_NEW_DISK, Voice::Votes { after: Some(floor.into()) }).await;
        voter.replica.wait_for(number + 30).await;
        let after = scene.take_heard();
        assert!(after.first() > Some(&view), "{after:?} are all after {view}");
    });
}
