//! A node copies the state over a simulated network, from peers that are honest, silent, lossy, or lie.
#![allow(unreachable_pub, reason = "modules of a test")]

mod chain;
mod follow;
mod lost;
mod node;
mod old;
mod peer;

use alloy_primitives::Bytes;
use almanac_bft::sync::{Floor, Phase, Session, Stage, SyncError, ValueSink, ask::Asker, message::Question};
use almanac_primitives::StateKey;
use almanac_state::{SealedBatch as _, StateStore as _, qmdb::sync::SyncError as StateSyncError};
use chain::Chain;
use commonware_cryptography::{
    Signer as _,
    ed25519::{PrivateKey, PublicKey},
};
use commonware_p2p::simulated::{self, Control, Link, Network, Oracle};
use commonware_runtime::{
    Clock as _, Runner as _, Spawner as _, Supervisor as _,
    deterministic::{self, Context},
};
use commonware_utils::{NZUsize, Probability, probability};
use peer::Habit;
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// The block that honest peers are at when the copy begins.
const TIP: u64 = 40;

type TestSession = Session<Context, simulated::Sender<PublicKey, Context>, Control<PublicKey, Context>>;

/// A copied state with its names, or why there is none, and the peers that were cut off.
struct Outcome {
    copied: Result<(Floor, BTreeMap<StateKey, Bytes>), SyncError>,
    cut_off: Vec<usize>,
    /// How long it took.
    time: Duration,
}

#[derive(Default)]
struct Values(BTreeMap<StateKey, Bytes>);

impl ValueSink for Values {
    fn add(&mut self, values: Vec<(StateKey, Bytes)>) -> Result<u64, String> {
        let before = self.0.len();
        self.0.extend(values);
        Ok((self.0.len() - before) as u64)
    }
}

/// Copies the state from four peers with these habits, and checks everything that was believed.
fn copy_from(habits: [Habit; 4], success_rate: Probability) -> Outcome {
    deterministic::Runner::timed(Duration::from_secs(600)).start(|context| async move {
        let Peers { chain, own, keys, oracle, session } = peers(&context, habits, success_rate).await;
        let begin = context.current();
        let copied = copy(&context, &chain, &session).await;
        let time = context.current().duration_since(begin).unwrap();
        let blocked = oracle.blocked().await.unwrap();
        let is_cut_off = |index: &usize| blocked.contains(&(own.clone(), keys[*index].clone()));
        Outcome { copied, cut_off: (0..keys.len()).filter(is_cut_off).collect(), time }
    })
}

/// Peers with a chain, and a node that asks them.
struct Peers {
    chain: Arc<Chain>,
    own: PublicKey,
    keys: Vec<PublicKey>,
    oracle: Oracle<PublicKey, Context>,
    session: TestSession,
}

async fn peers(context: &Context, habits: [Habit; 4], success_rate: Probability) -> Peers {
    let chain = Arc::new(Chain::new(context, TIP).await);
    let own = PrivateKey::from_seed(99).public_key();
    let keys: Vec<PublicKey> = chain.keys.iter().map(PrivateKey::public_key).collect();
    let oracle = network(context, &keys, &own, success_rate).await;
    for (key, habit) in keys.iter().zip(habits) {
        let channel = oracle.control(key.clone()).register(0, almanac_bft::sync::QUOTA).await.unwrap();
        let chain = chain.clone();
        context.child("peer").spawn(move |clock| peer::run(clock, chain, habit, channel));
    }
    let session = session(context, &chain, &oracle, own.clone(), keys.clone()).await;
    Peers { chain, own, keys, oracle, session }
}

async fn network(
    context: &Context,
    keys: &[PublicKey],
    own: &PublicKey,
    success_rate: Probability,
) -> Oracle<PublicKey, Context> {
    let config = simulated::Config {
        max_size: almanac_bft::message_bytes_max(4),
        max_peers_per_set: NZUsize!(5),
        disconnect_on_block: true,
        tracked_peer_sets: NZUsize!(1),
    };
    let all = keys.iter().cloned().chain([own.clone()]);
    let (network, oracle) = Network::new_with_peers(context.child("network"), config, all).await;
    network.start();
    let link = Link { latency: Duration::from_millis(10), jitter: Duration::from_millis(3), success_rate };
    for key in keys {
        oracle.add_link(key.clone(), own.clone(), link.clone()).await.unwrap();
        oracle.add_link(own.clone(), key.clone(), link.clone()).await.unwrap();
    }
    oracle
}

async fn session(
    context: &Context,
    chain: &Chain,
    oracle: &Oracle<PublicKey, Context>,
    own: PublicKey,
    peers: Vec<PublicKey>,
) -> TestSession {
    let control = oracle.control(own);
    let channel = control.register(0, almanac_bft::sync::QUOTA).await.unwrap();
    let (asker, listener) = Asker::new(context.child("patience"), peers, control, channel);
    context.child("answers").spawn(|_| listener);
    let (validators, namespace) = (chain.validators.clone(), chain.namespace);
    let (progress, names_per_page) = (Arc::default(), peer::PAGE);
    Session { asker: asker.into(), validators, namespace, progress, names_per_page }
}

async fn copy(
    context: &Context,
    chain: &Chain,
    session: &TestSession,
) -> Result<(Floor, BTreeMap<StateKey, Bytes>), SyncError> {
    let floor = session.find_floor(&mut context.child("weights")).await?;
    let number = usize::try_from(floor.header.number).unwrap();
    assert_eq!(floor.header, chain.headers[number], "a header of this chain");
    let config = chain::config("copy");
    let store = session.fetch_state(context.child("copy"), &config, &chain.genesis, &floor).await?;
    assert_eq!(store.tip().commitment(), floor.header.commitment);
    assert_eq!(session.progress.now().phase, Phase::Check, "every operation was counted");
    let mut values = Values::default();
    let mut rng = context.child("names");
    let count = session.fetch_values(&store, &floor, &mut values, &mut rng).await?;
    assert_eq!(count, values.0.len() as u64);
    let Stage { phase, done, total, .. } = session.progress.now();
    assert_eq!((phase, done, total), (Phase::Names, count, count), "every value was counted once");
    assert_eq!(values.0, chain.states[number], "every value, and nothing else");
    Ok((floor, values.0))
}

const SURE: Probability = probability!(1.0);

#[test]
fn honest_peers_give_the_newest_state() {
    let outcome = copy_from([Habit::Honest; 4], SURE);
    let (floor, _) = outcome.copied.unwrap();
    assert_eq!(floor.header.number, TIP);
    assert!(outcome.cut_off.is_empty());
}

/// The newest block that two of four have reached counts, and a value that was removed since has a name all the same.
#[test]
fn a_state_that_others_have_left_behind_is_copied_whole() {
    let outcome =
        copy_from([Habit::BehindBy(1), Habit::BehindBy(17), Habit::BehindBy(30), Habit::BehindBy(9)], SURE);
    assert_eq!(outcome.copied.unwrap().0.header.number, TIP - 9);
    let outcome = copy_from([Habit::BehindBy(30); 4], SURE);
    assert_eq!(outcome.copied.unwrap().0.header.number, TIP - 30);
    assert!(outcome.cut_off.is_empty());
}

#[test]
fn one_liar_is_cut_off_and_the_others_are_enough() {
    for habit in [
        Habit::WrongProof,
        Habit::WrongBoundary,
        Habit::OtherOperations,
        Habit::ForeignCertificate,
        Habit::CertificateOfAnother,
        Habit::CutCertificate,
        Habit::Garbage,
        Habit::OtherKind,
        Habit::NamesInDisorder,
        Habit::LongPages,
    ] {
        // First in turn, so that it is asked whatever the others say.
        let outcome = copy_from([habit, Habit::Honest, Habit::Honest, Habit::Honest], SURE);
        assert!(outcome.copied.is_ok(), "{habit:?}: {:?}", outcome.copied.err());
        assert_eq!(outcome.cut_off, [0], "{habit:?}");
    }
}

/// Who gives nothing, or less than there is, is passed over. That alone is no lie.
#[test]
fn peers_that_give_too_little_are_passed_over() {
    for habit in [Habit::Silent, Habit::Refuses, Habit::NoNames, Habit::SomeNames, Habit::WrongNumbers] {
        let outcome = copy_from([habit, habit, habit, Habit::Honest], SURE);
        assert!(outcome.copied.is_ok(), "{habit:?}: {:?}", outcome.copied.err());
        assert!(outcome.cut_off.is_empty(), "{habit:?}: {:?}", outcome.cut_off);
    }
}

/// Regression: one that is down, or answers as late as it may, was first in its turn for a quarter of all questions, and
/// a large state was gone from the others before it was copied. Then one that is down had its turn in one of four rounds,
/// as one that is slow has.
#[test]
fn silent_and_slow_peers_are_asked_after_the_others() {
    for (habit, time_max) in [(Habit::Silent, Duration::from_secs(4)), (Habit::Slow, Duration::from_secs(8))]
    {
        deterministic::Runner::timed(Duration::from_secs(600)).start(|context| async move {
            let habits = [habit, Habit::Honest, Habit::Honest, Habit::Honest];
            let Peers { session, .. } = peers(&context, habits, SURE).await;
            let begin = context.current();
            for _ in 0..40 {
                session.asker.ask_any(&Question::Tip, |_| Ok(())).await.unwrap();
            }
            let time = context.current().duration_since(begin).unwrap();
            assert!(time < time_max, "{habit:?}: 40 questions took {time:?}");
        });
    }
    let outcome = copy_from([Habit::Slow; 4], SURE);
    assert!(outcome.copied.is_ok(), "where all are slow: {:?}", outcome.copied.err());
}

/// Regression: where all honest peers are far away, a near one that gives as little as it may answered nearly everything.
#[test]
fn who_is_near_does_not_answer_everything() {
    deterministic::Runner::timed(Duration::from_secs(600)).start(|context| async move {
        let habits = [Habit::Honest, Habit::Slow, Habit::Slow, Habit::Slow];
        let Peers { session, .. } = peers(&context, habits, SURE).await;
        let mut by_others = 0;
        for _ in 0..64 {
            let begin = context.current();
            session.asker.ask_any(&Question::Tip, |_| Ok(())).await.unwrap();
            let time = context.current().duration_since(begin).unwrap();
            by_others += u32::from(time > Duration::from_millis(250));
        }
        assert!((12..=16).contains(&by_others), "three of sixteen, and not most: {by_others}");
    });
}

/// One peer that answers first, with an old block, does not choose for a node whose other peers answer later.
#[test]
fn an_old_block_does_not_win_by_being_named_first() {
    let outcome = copy_from([Habit::BehindBy(38), Habit::Late, Habit::Late, Habit::Late], SURE);
    assert_eq!(outcome.copied.unwrap().0.header.number, TIP);
    let outcome = copy_from([Habit::BehindBy(38), Habit::Silent, Habit::Silent, Habit::Honest], SURE);
    assert_eq!(outcome.copied.unwrap().0.header.number, TIP, "of too few, the newest");
}

/// Names that do not exist, without an end, once held up a copy for ever: peers were asked one after the other, each
/// until it had no more to say.
#[test]
fn endless_names_hold_up_a_copy_for_seconds_only() {
    for habit in [Habit::EndlessNames, Habit::DripNames] {
        let outcome = copy_from([habit, Habit::Honest, Habit::Honest, Habit::Honest], SURE);
        assert!(outcome.copied.is_ok(), "{habit:?}: {:?}", outcome.copied.err());
        assert!(outcome.cut_off.is_empty(), "nothing is proven: {habit:?}: {:?}", outcome.cut_off);
        assert!(outcome.time < Duration::from_secs(30), "{habit:?} took {:?}", outcome.time);
    }
    let outcome = copy_from([Habit::EndlessNames, Habit::DripNames, Habit::DripNames, Habit::Honest], SURE);
    assert!(outcome.copied.is_ok(), "{:?}", outcome.copied.err());
    assert!(outcome.time < Duration::from_secs(90), "{:?}", outcome.time);
}

/// The same where values were removed after the copied block, so that honest peers have to list what blocks changed.
#[test]
fn endless_names_do_not_hide_what_blocks_changed() {
    let behind = Habit::BehindBy(30);
    let outcome = copy_from([Habit::EndlessNames, behind, behind, behind], SURE);
    assert_eq!(outcome.copied.unwrap().0.header.number, TIP - 30);
    assert!(outcome.time < Duration::from_secs(60), "{:?}", outcome.time);
}

#[test]
fn where_all_list_endless_names_a_copy_ends_without_an_outcome() {
    let outcome = copy_from([Habit::EndlessNames; 4], SURE);
    assert!(
        matches!(outcome.copied, Err(SyncError::KeysMissing { found: 0, .. })),
        "{:?}",
        outcome.copied.err()
    );
}

/// A peer that is busy is asked again when it said; one that always is counts like one that is silent.
#[test]
fn busy_peers_are_waited_for_and_those_that_always_are_passed_over() {
    let outcome = copy_from([Habit::BusyOften; 4], SURE);
    assert!(outcome.copied.is_ok(), "{:?}", outcome.copied.err());
    let busy = Habit::AlwaysBusy;
    let outcome = copy_from([busy, busy, busy, Habit::Honest], SURE);
    assert!(outcome.copied.is_ok(), "{:?}", outcome.copied.err());
    let outcome = copy_from([busy; 4], SURE);
    assert!(matches!(outcome.copied, Err(SyncError::NoTip { .. })), "{:?}", outcome.copied.err());
}

#[test]
fn messages_that_get_lost_cost_time_only() {
    let outcome = copy_from([Habit::Honest; 4], probability!(0.8));
    assert!(outcome.copied.is_ok(), "{:?}", outcome.copied.err());
    assert!(outcome.cut_off.is_empty());
}

#[test]
fn where_all_lie_nothing_is_believed() {
    let error = |habit| copy_from([habit; 4], SURE).copied.unwrap_err();
    for habit in [Habit::Silent, Habit::Refuses, Habit::ForeignCertificate, Habit::CertificateOfAnother] {
        assert!(matches!(error(habit), SyncError::NoTip { .. }), "{habit:?}");
    }
    for habit in [Habit::WrongProof, Habit::OtherOperations, Habit::WrongBoundary] {
        let error = error(habit);
        assert!(matches!(error, SyncError::State(StateSyncError::Source { .. })), "{habit:?}: {error}");
    }
    let SyncError::KeysMissing { number, live, found } = error(Habit::SomeNames) else { panic!("names") };
    assert_eq!(number, TIP);
    assert!(0 < found && found < live, "{found} of {live}");
}
