//! A node that stops at any moment, and is started again.
//!
//! A workload of 20 blocks runs in the deterministic runtime, whose storage draws a number before every write,
//! sync, resize, creation and removal of a file. The n-th draw ends the process, or makes the operation fail, for
//! every n there is. What was written and not synced is then lost, kept, or torn. After that the node is started
//! on what is left: every block that was acknowledged must be there with its receipts, the root must be that of a
//! node that never stopped, and the chain must go on to its end with equal roots.
//!
//! `ALMANAC_CRASH_LONG=1` crashes every recovery at each of its own points too, instead of a sample.
#![allow(clippy::disallowed_methods, reason = "the environment chooses how much is run")]

use alloy_primitives::{BlockHash, Bytes, TxKind, U256};
use alloy_sol_types::SolCall as _;
use almanac_consensus::{Application, ApplicationError, Deadline, MadeBlock, Proposal, Tip};
use almanac_primitives::{
    ConsensusContext, Genesis, Header, Receipt, RecoveredTransaction, StateCommitment, TimestampMs,
    UserTransaction,
    addresses::CRON_REGISTRY,
    params::CRON_INTERVAL_SECONDS_MIN,
    testing::{contracts::*, *},
};
use almanac_schedule::CalendarAgenda;
use almanac_state::{
    ArchiveError, BlockJournal, CommitError, OpenError, QmdbBatch, QmdbConfig, QmdbStore, SealedBatch as _,
    StateStore as _,
};
use commonware_runtime::{
    Runner as _, Supervisor as _,
    deterministic::{self, Checkpoint, Context, FaultConfig, PartialWriteMode, ResizeConfig, WriteConfig},
};
use commonware_utils::{NZU64, NZUsize, Probability, ScriptedRng, probability};
use futures::FutureExt as _;
use std::{
    collections::BTreeMap,
    panic::AssertUnwindSafe,
    sync::{
        Arc, LazyLock, Once,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

const BLOCKS: u64 = 20;

/// The state is pruned after these blocks.
const PRUNED_AFTER: [u64; 2] = [12, 18];

type Store = QmdbStore<Context>;

// ---- The workload ----

alloy_sol_types::sol!("../../contracts/ICronRegistry.sol");

/// Series may come every second, so that jobs run in every block.
static GENESIS: LazyLock<Genesis> = LazyLock::new(|| {
    let mut genesis = genesis();
    genesis.parameters.insert(CRON_INTERVAL_SECONDS_MIN.name.to_owned(), 1);
    genesis
});

/// A job that is due two seconds after its block: a series every other second, and single runs.
fn job(number: u64) -> UserTransaction {
    let order = ICronRegistry::scheduleCalldataCall {
        target: if number.is_multiple_of(4) { REVERTER } else { COUNTER },
        data: Bytes::from_static(&[1, 2, 3, 4]),
        nextRunAt: U256::from(START.seconds() + number + 2),
        intervalSec: U256::from(if number.is_multiple_of(2) { 0 } else { 2 }),
        maxRuns: U256::from(3),
        gasLimit: U256::from(100_000),
    };
    let mut tx = eip1559(number - 1, TxKind::Call(CRON_REGISTRY), 0, order.abi_encode(), 500_000);
    tx.value = U256::from(10u64.pow(15));
    sign(tx, person(3).secret)
}

/// Transactions of each block, the first at index 1. Signing and recovering takes longer than the rest.
static TRANSACTIONS: LazyLock<Vec<Vec<RecoveredTransaction>>> = LazyLock::new(|| {
    let block = |number: u64| {
        let (alice, bob) = (person(0), person(1));
        let nonce = number - 1;
        // Slots are written, written again, and cleared.
        let slots = words(12, number % 3 * 12);
        let target = if number.is_multiple_of(3) { CLEARER } else { WRITER };
        vec![
            transfer(alice, nonce, bob.address, number),
            call(bob, nonce, target, slots, 600_000),
            call(person(2), nonce, LOGGER, vec![7; 40], 100_000),
            job(number),
        ]
    };
    let blocks = (1..=BLOCKS).map(|number| block(number).into_iter().map(recovered).collect());
    std::iter::once(Vec::new()).chain(blocks).collect()
});

fn proposal(number: u64) -> Proposal {
    Proposal {
        timestamp: TimestampMs(START.0 + number * 1_000),
        fee_recipient: FEE_RECIPIENT,
        consensus: ConsensusContext::default(),
        candidates: TRANSACTIONS[number as usize].clone(),
        more: almanac_consensus::More::NONE,
        deadline: Deadline::NEVER,
    }
}

/// Files so small that the workload begins and removes several of each.
fn config() -> QmdbConfig {
    QmdbConfig {
        page_cache_bytes: 64 << 10,
        open_cache_keys: 1_000,
        write_buffer_bytes: NZUsize!(1 << 10),
        file_operations: NZU64!(150),
        file_blocks: NZU64!(6),
        ..QmdbConfig::new("node")
    }
}

/// What a block must be, on every node and for ever.
#[derive(Clone, Debug, PartialEq)]
struct Expected {
    hash: BlockHash,
    commitment: StateCommitment,
    receipts: Vec<Receipt>,
}

/// The blocks of a node that never stopped.
static EXPECTED: LazyLock<Vec<Expected>> = LazyLock::new(|| {
    deterministic::Runner::default().start(async |context| {
        let mut node = Node::start(&context).await.unwrap();
        let mut expected = vec![expected(&node.tip, &[])];
        while node.tip.header.number < BLOCKS {
            let made = node.step().await.unwrap();
            node.tidy().await.unwrap();
            assert!(made.refused.is_empty() && made.output.receipts.len() > 3);
            expected.push(self::expected(&made.tip, &made.output.receipts));
        }
        check_runs(&expected);
        expected
    })
});

/// Runs of a schedule are numbered without gap, and none happens twice. A node that comes to the same receipts at
/// every height has neither lost nor repeated one.
fn check_runs(expected: &[Expected]) {
    let receipts = expected.iter().flat_map(|block| &block.receipts);
    let mut runs: BTreeMap<_, u64> = BTreeMap::new();
    for run in receipts.filter_map(|receipt| receipt.schedule_ref) {
        let next = runs.entry(run.schedule).or_default();
        assert_eq!(run.number, *next, "{:?}", run.schedule);
        *next += 1;
    }
    assert!(runs.len() > 15 && runs.values().any(|count| *count == 3), "jobs ran: {runs:?}");
}

fn expected(tip: &Tip<QmdbBatch<Context>>, receipts: &[Receipt]) -> Expected {
    let commitment = tip.state.commitment();
    assert_eq!(commitment, tip.header.commitment);
    Expected { hash: tip.hash, commitment, receipts: receipts.to_vec() }
}

// ---- A node ----

struct Node {
    application: Application<Store>,
    store: Store,
    archive: Arc<BlockJournal<Context>>,
    tip: Tip<QmdbBatch<Context>>,
}

/// Why a node does not start, or stops.
#[derive(Debug, thiserror::Error)]
enum Stopped {
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Application(#[from] ApplicationError),
    #[error(transparent)]
    Prune(#[from] CommitError),
}

impl Node {
    /// Opens what is on disk, and executes again what the archive has and the state lacks.
    async fn start(context: &Context) -> Result<Self, Stopped> {
        let config = config();
        let state = GENESIS.state().unwrap();
        let archive = BlockJournal::open(context.child("blocks"), &config).await?;
        let store = Store::open(context.child("state"), &config, &state).await?;
        let archived = archive.height().await?;
        assert!(store.height() <= archived, "the state is at {}, the archive at {archived}", store.height());
        let header = match store.height() {
            0 => GENESIS.header(store.tip().commitment()).unwrap(),
            height => {
                let archived = archive.get(height).await?;
                archived.expect("below the archive's height").block.header
            }
        };
        // Refuses a state that is not the header's.
        let (application, tip) = Application::resume(
            &GENESIS,
            alloy_primitives::B256::ZERO,
            store.clone(),
            Arc::new(CalendarAgenda),
            header,
        )?;
        let mut node = Self { application, store, archive: Arc::new(archive), tip };
        for number in node.tip.header.number + 1..=archived {
            node.replay(number).await?;
        }
        node.application.keep_archive(node.archive.clone());
        Ok(node)
    }

    async fn replay(&mut self, number: u64) -> Result<(), Stopped> {
        let archived = self.archive.get(number).await?;
        let archived = archived.expect("below the archive's height");
        let made = self.application.verify(&self.tip, archived.block).await?;
        assert_eq!(made.output.receipts, archived.receipts, "block {number}");
        self.application.commit(&made).await?;
        self.tip = made.tip;
        Ok(())
    }

    /// Makes the next block. It is acknowledged when this returns.
    async fn step(&mut self) -> Result<MadeBlock<QmdbBatch<Context>>, Stopped> {
        let number = self.tip.header.number + 1;
        let made = self.application.propose(&self.tip, proposal(number)).await?;
        self.application.commit(&made).await?;
        self.tip = made.tip.clone();
        Ok(made)
    }

    /// What a node does between blocks.
    async fn tidy(&self) -> Result<(), Stopped> {
        let Header { number, commitment, .. } = &self.tip.header;
        if PRUNED_AFTER.contains(number) {
            while self.store.prune(commitment).await? {}
        }
        Ok(())
    }

    /// Makes the rest of the blocks, and notes each that is acknowledged.
    async fn run(&mut self, acknowledged: &AtomicU64) -> Result<(), Stopped> {
        acknowledged.fetch_max(self.tip.header.number, Ordering::Relaxed);
        while self.tip.header.number < BLOCKS {
            self.step().await?;
            let number = self.tip.header.number;
            assert_eq!(self.tip.hash, EXPECTED[number as usize].hash);
            acknowledged.fetch_max(number, Ordering::Relaxed);
            self.tidy().await?;
        }
        Ok(())
    }

    /// Compares everything that is in the archive with what must be there.
    async fn check(&self, acknowledged: u64) {
        let height = self.tip.header.number;
        assert!(height >= acknowledged, "block {acknowledged} was acknowledged, the chain ends at {height}");
        assert_eq!(expected(&self.tip, &EXPECTED[height as usize].receipts), EXPECTED[height as usize]);
        assert_eq!((self.store.height(), self.archive.height().await.unwrap()), (height, height));
        for number in 1..=height {
            let archived = self.archive.get(number).await.unwrap().expect("below the archive's height");
            let expected = &EXPECTED[number as usize];
            assert_eq!((archived.block.hash(), &archived.receipts), (expected.hash, &expected.receipts));
        }
        assert_eq!(self.archive.get(height + 1).await.unwrap(), None);
    }
}

// ---- Storage that stops ----

/// What becomes of bytes that were written and not synced when the process ends.
#[derive(Clone, Copy, Debug)]
enum Unsynced {
    /// None of them is there afterwards.
    Lost,
    /// All of them are.
    Kept,
    /// The first bytes of each write.
    Prefix,
    /// Some bytes here and there.
    Subset,
}

/// A fault that happens where a script says so, and otherwise as good as never.
const RARELY: Probability = probability!(1, 1 << 60);

fn faults(unsynced: Unsynced) -> FaultConfig {
    let (mode, retention_rate) = match unsynced {
        Unsynced::Lost => (PartialWriteMode::Prefix, probability!(0.0)),
        Unsynced::Kept => (PartialWriteMode::Prefix, probability!(1.0)),
        Unsynced::Prefix => (PartialWriteMode::Prefix, probability!(999, 1000)),
        Unsynced::Subset => (PartialWriteMode::Subset, probability!(1, 2)),
    };
    FaultConfig::default()
        .open(RARELY)
        .write(WriteConfig { failure_rate: RARELY, retention_rate, mode })
        .sync(RARELY)
        .resize(ResizeConfig { failure_rate: RARELY, partial_rate: probability!(1, 2) })
        .remove(RARELY)
}

/// A draw at which nothing fails.
const NO_FAULT: u64 = u64::MAX;
/// A draw at which the operation fails.
const FAULT: u64 = 0;

fn scripted(script: Vec<u64>) -> deterministic::Runner {
    deterministic::Runner::new(deterministic::Config::default().with_rng(ScriptedRng::new(script)))
}

/// Ends the process at the n-th draw: the script is over.
fn crash_at(draw: usize) -> deterministic::Runner {
    scripted(vec![NO_FAULT; draw])
}

/// Makes the n-th operation fail.
fn fail_at(draw: usize) -> deterministic::Runner {
    scripted([&vec![NO_FAULT; draw][..], &[FAULT], &NOISE].concat())
}

/// Draws for what is torn, none of them a fault.
static NOISE: LazyLock<Vec<u64>> = LazyLock::new(|| {
    let next =
        |word: &u64| Some(word.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f));
    std::iter::successors(Some(1), next).map(|word: u64| word | 1 << 20).take(1 << 18).collect()
});

/// How a run ended.
#[derive(Debug)]
enum End {
    /// All blocks were made.
    Finished,
    /// The process ended in the middle.
    Crashed,
    /// The node said why it cannot go on.
    Stopped(Stopped),
}

/// One life of a node, and what it leaves behind.
struct Life {
    end: End,
    /// Whether it came as far as making blocks.
    is_started: bool,
    acknowledged: u64,
    checkpoint: Checkpoint,
}

/// Runs a node until it ends, on a disk with faults.
fn live(runner: deterministic::Runner, faults: FaultConfig) -> Life {
    say_nothing_of_crashes();
    LazyLock::force(&EXPECTED);
    let (acknowledged, is_started) = (AtomicU64::new(0), AtomicBool::new(false));
    let (end, checkpoint) = runner.start_and_recover(async |context| {
        *context.storage_fault_config().write() = faults;
        let life = AssertUnwindSafe(async {
            let mut node = Node::start(&context).await?;
            is_started.store(true, Ordering::Relaxed);
            node.run(&acknowledged).await
        });
        let end = match life.catch_unwind().await {
            Ok(Ok(())) => End::Finished,
            Ok(Err(stopped)) => End::Stopped(stopped),
            Err(panic) if panic.downcast_ref::<String>().is_some_and(|text| is_crash(text)) => End::Crashed,
            Err(panic) if panic.downcast_ref::<&str>().is_some_and(|text| is_crash(text)) => End::Crashed,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        *context.storage_fault_config().write() = FaultConfig::default();
        end
    });
    Life { end, is_started: is_started.into_inner(), acknowledged: acknowledged.into_inner(), checkpoint }
}

fn is_crash(text: &str) -> bool {
    text.starts_with("scripted RNG consumed more samples")
}

/// The panic that stops the process is meant, and a backtrace of each takes longer than the test.
fn say_nothing_of_crashes() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !info.payload_as_str().is_some_and(is_crash) {
                hook(info);
            }
        }));
    });
}

/// Starts the node again on a disk without faults, and lets it go on to the end.
fn recover(checkpoint: Checkpoint, acknowledged: u64) {
    deterministic::Runner::from(checkpoint).start(async |context| {
        *context.storage_fault_config().write() = FaultConfig::default();
        let mut node = Node::start(&context).await.unwrap();
        node.check(acknowledged).await;
        node.run(&AtomicU64::new(0)).await.unwrap();
        node.check(BLOCKS).await;
    });
}

// ---- One crash ----

/// Crashes at every point there is, and answers with their number.
fn crash_everywhere(unsynced: Unsynced) -> usize {
    for draw in 0.. {
        let life = live(crash_at(draw), faults(unsynced));
        match life.end {
            End::Finished => return draw,
            End::Crashed => recover(life.checkpoint, life.acknowledged),
            End::Stopped(stopped) => panic!("draw {draw}: {stopped:?}"),
        }
    }
    unreachable!("a run ends")
}

#[test]
fn a_crash_at_any_point_that_loses_what_was_not_synced() {
    let points = crash_everywhere(Unsynced::Lost);
    println!("{points} points");
    assert!(points >= 300, "{points}");
}

#[test]
fn a_crash_at_any_point_that_keeps_what_was_not_synced() {
    let points = crash_everywhere(Unsynced::Kept);
    println!("{points} points");
    assert!(points >= 300, "{points}");
}

// ---- Operations that fail ----

/// Every operation fails once, a write after some of its bytes; and what was not synced is torn too.
#[test]
fn a_failure_of_any_operation_is_said_and_nothing_is_lost() {
    let mut points = 0;
    for draw in 0.. {
        let unsynced = [Unsynced::Prefix, Unsynced::Subset][draw % 2];
        let life = live(fail_at(draw), faults(unsynced));
        match life.end {
            End::Finished => break,
            End::Stopped(stopped) => {
                assert!(stopped.to_string().contains("injected"), "draw {draw}: {stopped}");
            }
            End::Crashed => panic!("the noise is too short for draw {draw}"),
        }
        recover(life.checkpoint, life.acknowledged);
        points += 1;
    }
    println!("{points} points");
    assert!(points >= 300, "{points}");
}

/// From some operation on, everything that writes fails, also when the node is started again.
#[test]
fn a_full_disk_stops_the_node_and_loses_nothing() {
    let (mut points, mut refused) = (0, 0);
    for draw in (0..).step_by(if is_long() { 1 } else { 9 }) {
        let script = [&vec![NO_FAULT; draw][..], &[FAULT; 1 << 12]].concat();
        let life = live(scripted(script), faults(Unsynced::Kept));
        match life.end {
            End::Finished => break,
            End::Stopped(stopped) => {
                assert!(stopped.to_string().contains("injected"), "draw {draw}: {stopped}");
            }
            End::Crashed => panic!("the script is too short for draw {draw}"),
        }
        let again = live(deterministic::Runner::from(life.checkpoint), full_disk());
        let End::Stopped(stopped) = again.end else { panic!("draw {draw}: {:?}", again.end) };
        assert!(stopped.to_string().contains("injected"), "draw {draw}: {stopped}");
        assert!(again.acknowledged == 0 || again.acknowledged >= life.acknowledged);
        refused += usize::from(!again.is_started);
        recover(again.checkpoint, life.acknowledged);
        points += 1;
    }
    println!("{points} points; at {refused} the node did not even start");
    assert!(points >= 40 && refused > 0, "{points} points, {refused} refused");
}

fn full_disk() -> FaultConfig {
    let always = probability!(1.0);
    let mode = PartialWriteMode::Prefix;
    FaultConfig::default().write(WriteConfig {
        failure_rate: always,
        retention_rate: probability!(0.0),
        mode,
    })
}

// ---- Two crashes ----

/// The node is stopped, and then stopped again at each point of its recovery.
#[test]
fn a_crash_while_recovering_from_a_crash() {
    let (mut points, mut recoveries) = (0, 0);
    let (first_step, second_step) = if is_long() { (1, 1) } else { (41, 4) };
    'first: for first in (0..).step_by(first_step) {
        for second in (0..).step_by(second_step) {
            let unsynced = [Unsynced::Lost, Unsynced::Kept][(first + second) % 2];
            // The first fault is a failure, since a script can end only once. It may be followed by draws of
            // operations that were under way: the second crash comes that much earlier.
            let script = [&vec![NO_FAULT; first][..], &[FAULT], &vec![NO_FAULT; second]].concat();
            let life = live(scripted(script), faults(unsynced));
            match life.end {
                End::Finished => break 'first,
                End::Stopped(_) => {}
                // Operations under way used up the draws for the second life.
                End::Crashed => continue,
            }
            let again = live(deterministic::Runner::from(life.checkpoint), faults(unsynced));
            let is_crashed = matches!(again.end, End::Crashed);
            assert!(is_crashed || again.is_started, "{first}, {second}: {:?}", again.end);
            recover(again.checkpoint, life.acknowledged.max(again.acknowledged));
            points += usize::from(is_crashed);
            if again.is_started {
                recoveries += 1;
                break;
            }
        }
    }
    println!("{points} points in {recoveries} recoveries");
    assert!(points >= 100 && recoveries >= 10, "{points} points in {recoveries} recoveries");
}

fn is_long() -> bool {
    std::env::var("ALMANAC_CRASH_LONG").is_ok_and(|value| value == "1")
}
