//! Whole networks: nodes without a vote copy the state while blocks are made, and follow.

use crate::sync::{
    Values,
    node::{self, Node, World},
};
use alloy_primitives::Bytes;
use almanac_bft::sync::{
    self, Floor, Session,
    ask::Asker,
    message::{Answer, Question},
};
use almanac_primitives::{Header, StateKey};
use almanac_state::BlockJournal;
use commonware_cryptography::ed25519::PublicKey;
use commonware_p2p::{
    Receiver as _, Recipients, Sender as _,
    simulated::{self, Control, Link, Network, Oracle},
};
use commonware_runtime::{
    Clock as _, Handle, Runner as _, Spawner as _, Supervisor as _,
    deterministic::{self, Context},
};
use commonware_utils::{NZUsize, Probability, probability};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

pub const VALIDATORS: usize = 4;

pub async fn connect(context: &Context, world: &World) -> Oracle<PublicKey, Context> {
    connect_over(context, world, link(probability!(0.98))).await
}

fn link(success_rate: Probability) -> Link {
    Link { latency: Duration::from_millis(10), jitter: Duration::from_millis(5), success_rate }
}

async fn connect_over(context: &Context, world: &World, link: Link) -> Oracle<PublicKey, Context> {
    let config = simulated::Config {
        max_size: almanac_bft::message_bytes_max(4),
        max_peers_per_set: NZUsize!(8),
        disconnect_on_block: true,
        tracked_peer_sets: NZUsize!(1),
    };
    let keys: Vec<_> = (0..world.keys.len()).map(|index| world.public(index)).collect();
    let (validators, followers) = keys.split_at(VALIDATORS);
    let context = context.child("network");
    let (network, oracle) =
        Network::new_with_split_peers(context, config, validators.to_vec(), followers.to_vec()).await;
    network.start();
    for from in &keys {
        for to in keys.iter().filter(|to| *to != from) {
            oracle.add_link(from.clone(), to.clone(), link.clone()).await.unwrap();
        }
    }
    oracle
}

type TestSession = Session<Context, simulated::Sender<PublicKey, Context>, Control<PublicKey, Context>>;

/// A session of a node with the given peers, and what takes in their answers.
pub async fn session(
    context: &Context,
    world: &World,
    oracle: &Oracle<PublicKey, Context>,
    index: usize,
    peers: &[usize],
) -> (TestSession, Handle<()>) {
    let control = oracle.control(world.public(index));
    let channel = control.register(sync::CHANNEL, sync::QUOTA).await.unwrap();
    let peers = peers.iter().map(|peer| world.public(*peer)).collect();
    let (asker, listener) = Asker::new(context.child("patience"), peers, control, channel);
    let listening = context.child("answers").spawn(|_| listener);
    let validators = world.validators.clone();
    let (namespace, progress) = (world.namespace, Arc::default());
    let names_per_page = sync::NAMES_PER_PAGE;
    (Session { asker: asker.into(), validators, namespace, progress, names_per_page }, listening)
}

/// Copies the state for a node from the given peers, and makes its archive.
async fn copy(
    context: &Context,
    world: &World,
    oracle: &Oracle<PublicKey, Context>,
    index: usize,
    peers: &[usize],
) -> (Floor, BTreeMap<StateKey, Bytes>) {
    let (session, listening) = session(context, world, oracle, index, peers).await;
    let floor = session.find_floor(&mut context.child("weights")).await.unwrap();
    let config = world.config(index);
    let store = session.fetch_state(context.child("copy"), &config, &world.state, &floor).await.unwrap();
    let mut values = Values::default();
    session.fetch_values(&store, &floor, &mut values, &mut context.child("names")).await.unwrap();
    BlockJournal::begin_after(context.child("begin"), &config, floor.header.number).await.unwrap();
    listening.abort();
    (floor, values.0)
}

/// All blocks that a node has seen after its floor are those that a validator has seen.
pub fn check_same(node: &Node, validator: &Node, floor: u64) {
    let expected = validator.seen.headers.lock().unwrap();
    let seen = node.seen.headers.lock().unwrap();
    let first = *seen.keys().next().expect("a block");
    assert!(first > floor, "nothing before the floor");
    for ((number, header), next) in seen.iter().zip(first..) {
        assert_eq!(*number, next, "one after the other");
        let same = |other: &Header| header.hash() == other.hash();
        assert!(expected.get(number).is_none_or(same), "block {number}");
    }
}

#[test]
fn followers_copy_the_state_while_blocks_are_made_and_go_on() {
    deterministic::Runner::timed(Duration::from_secs(300)).start(|context| async move {
        let world = Arc::new(World::new(&context, VALIDATORS, 2).await);
        let oracle = connect(&context, &world).await;
        let mut validators = Vec::new();
        for index in 0..VALIDATORS {
            validators.push(node::start(context.child("validator"), &world, &oracle, index, None).await);
        }
        validators[0].replica.wait_for(30).await;

        let all: Vec<usize> = (0..VALIDATORS).collect();
        let (floor, values) = copy(&context, &world, &oracle, 4, &all).await;
        let number = floor.header.number;
        assert!(number >= 25, "a recent block: {number}");
        let first = node::start(context.child("first"), &world, &oracle, 4, Some(floor.clone())).await;
        first.seen.copied(values.into_keys());
        first.replica.wait_for(number + 20).await;
        check_same(&first, &validators[0], number);

        // From the follower alone, which has no beginning of the chain itself.
        let (second_floor, _) = copy(&context, &world, &oracle, 5, &[4]).await;
        let second_number = second_floor.header.number;
        assert!(second_number > number);
        let second = node::start(context.child("second"), &world, &oracle, 5, Some(second_floor)).await;
        second.replica.wait_for(second_number + 10).await;
        check_same(&second, &validators[0], second_number);

        // Crashed and started again, from the same floor and what it has on disk.
        let before = first.replica.tip().header.number;
        first.root.abort();
        let _ = first.root.await;
        drop(first.replica);
        validators[0].replica.wait_for(before + 15).await;
        let again = node::start(context.child("again"), &world, &oracle, 4, Some(floor)).await;
        assert!(again.replica.tip().header.number >= before, "what was final stays");
        again.replica.wait_for(before + 20).await;
        check_same(&again, &validators[0], number);
    });
}

/// Executing takes no time here, so this is what the network gives. Four peers at 64 messages a second each once gave
/// less than 256 blocks a second.
#[test]
fn a_node_that_was_away_fetches_hundreds_of_blocks_a_second() {
    const BLOCKS: u64 = 600;
    deterministic::Runner::timed(Duration::from_secs(300)).start(|context| async move {
        let world = Arc::new(World::new(&context, VALIDATORS, 1).await);
        let oracle = connect_over(&context, &world, link(probability!(1.0))).await;
        let mut validators = Vec::new();
        for index in 0..VALIDATORS {
            validators.push(node::start(context.child("validator"), &world, &oracle, index, None).await);
        }
        validators[0].replica.wait_for(BLOCKS).await;
        let begin = context.current();
        let late = node::start(context.child("late"), &world, &oracle, VALIDATORS, None).await;
        late.replica.wait_for(BLOCKS).await;
        let seconds = context.current().duration_since(begin).unwrap().as_secs_f64();
        let rate = BLOCKS as f64 / seconds;
        println!("{BLOCKS} blocks in {seconds:.2} s: {rate:.0} a second");
        assert!(rate > 400.0, "{rate:.0} blocks a second");
        check_same(&late, &validators[0], 0);
    });
}

/// More questions at once than a validator takes from one peer: each of them is answered, if only with "busy".
#[test]
fn who_asks_too_much_at_once_hears_so_for_every_question() {
    const QUESTIONS: u64 = 60;
    deterministic::Runner::timed(Duration::from_secs(60)).start(|context| async move {
        let world = Arc::new(World::new(&context, VALIDATORS, 1).await);
        // All of them arrive at the same moment.
        let link = Link { jitter: Duration::ZERO, ..link(probability!(1.0)) };
        let oracle = connect_over(&context, &world, link).await;
        let _asked = node::start(context.child("validator"), &world, &oracle, 0, None).await;
        let control = oracle.control(world.public(VALIDATORS));
        let (mut sender, mut receiver) = control.register(sync::CHANNEL, sync::QUOTA).await.unwrap();
        context.sleep(Duration::from_secs(1)).await;
        for number in 0..QUESTIONS {
            sender.send(Recipients::One(world.public(0)), Question::Tip.encode(number), false);
        }
        let mut busy = BTreeMap::new();
        while busy.len() < QUESTIONS as usize {
            let (_, bytes) = receiver.recv().await.unwrap();
            let (number, answer) = Answer::decode(bytes.as_ref()).unwrap();
            busy.insert(number, matches!(answer, Answer::Busy { .. }));
        }
        let count = busy.values().filter(|is_busy| **is_busy).count();
        assert!(0 < count && count < busy.len(), "{count} of {QUESTIONS} were turned away");
    });
}
