//! Property: any sequence of time travel, snapshots, restarts and retries leaves the clock where a person would expect
//! it, and runs everything that is due once.

use crate::support::application_of;
use almanac_consensus::{
    Application, Clock as _, ControlError, Controls, Engine as _, ManualClock, Mode, SharedPool, Sink,
    SinkError, Solo, SoloConfig, Tip, Travel,
    solo::{KeepTime, Mining, TimeSetting},
};
use almanac_exec::BlockOutput;
use almanac_mempool::{Pool, PoolConfig};
use almanac_primitives::{Block, DurationMs, GasPrice, Header, TimestampMs, testing::*};
use almanac_state::{MemoryStore, SealedBatch as _, StateStore as _};
use futures::FutureExt as _;
use proptest::prelude::*;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::task::JoinHandle;

/// Few, so that long travels need several requests.
const REQUEST_BLOCKS_MAX: u64 = 4;

/// What a developer does.
#[derive(Clone, Debug)]
enum Act {
    Wait { ms: u64 },
    Travel { ms: u64, is_lost: bool },
    SetTime { ms: i64 },
    Mine { at_ms: Option<u64> },
    MineMany { count: u64, interval_ms: u64, is_led: bool, is_lost: bool },
    Snapshot,
    Revert { back: usize },
    Restart { after_ms: u64 },
    Kill { after_ms: u64 },
}

fn act() -> impl Strategy<Value = Act> {
    let span = 0..400_000u64;
    prop_oneof![
        span.clone().prop_map(|ms| Act::Wait { ms }),
        (span, any::<bool>()).prop_map(|(ms, is_lost)| Act::Travel { ms, is_lost }),
        (-200_000..400_000i64).prop_map(|ms| Act::SetTime { ms }),
        prop::option::of(1..100_000u64).prop_map(|at_ms| Act::Mine { at_ms }),
        (1..4u64, 0..50_000u64, any::<bool>(), any::<bool>()).prop_map(
            |(count, interval_ms, is_led, is_lost)| Act::MineMany { count, interval_ms, is_led, is_lost }
        ),
        Just(Act::Snapshot),
        (0..3usize).prop_map(|back| Act::Revert { back }),
        (0..100_000u64).prop_map(|after_ms| Act::Restart { after_ms }),
        (0..100_000u64).prop_map(|after_ms| Act::Kill { after_ms }),
    ]
}

/// The blocks that count, each with the schedules that ran in it.
#[derive(Default)]
struct Told(Mutex<Vec<(Header, Vec<u64>)>>);

impl Sink for Told {
    fn finalized(&self, block: &Arc<Block>, output: &Arc<BlockOutput>) -> Result<(), SinkError> {
        let runs = output.receipts.iter().filter_map(|receipt| receipt.schedule_ref);
        let runs = runs.map(|run| run.schedule.0).collect();
        self.0.lock().unwrap().push((block.header.clone(), runs));
        Ok(())
    }

    fn reverted(&self, height: u64) -> Result<(), SinkError> {
        self.0.lock().unwrap().retain(|(header, _)| header.number <= height);
        Ok(())
    }
}

/// A chain in a process that can be stopped and killed.
struct Lab {
    application: Arc<Application<MemoryStore>>,
    origin: Header,
    told: Arc<Told>,
    clock: ManualClock,
    noted: Arc<Mutex<TimeSetting>>,
    running: Option<(Solo, JoinHandle<()>)>,
    due: Vec<TimestampMs>,
    /// How far the clock should be ahead of the machine's.
    offset_ms: i64,
    /// Snapshots that can be reverted to, with the offset they restore.
    snapshots: Vec<(u64, i64)>,
}

impl Lab {
    fn new(due: Vec<TimestampMs>) -> Self {
        let (application, tip) = application_of(&genesis(), &due);
        let mut lab = Self {
            application: Arc::new(application),
            origin: tip.header,
            told: Arc::default(),
            clock: ManualClock::new(TimestampMs(START.0 + 1_000)),
            noted: Arc::default(),
            running: None,
            due,
            offset_ms: 0,
            snapshots: Vec::new(),
        };
        lab.start();
        lab
    }

    fn start(&mut self) {
        let header = self.tip();
        let state = self.application.store().tip();
        assert_eq!(state.commitment(), header.commitment, "the state is that of the tip");
        let tip = Tip::new(header, state);
        let pool = SharedPool::new(Pool::new(PoolConfig::default(), GasPrice(1_000_000_000)));
        let noted = self.noted.clone();
        let keep: KeepTime = Arc::new(move |setting| *noted.lock().unwrap() = setting);
        let config = SoloConfig {
            time: *self.noted.lock().unwrap(),
            keep_time: Some(keep),
            request_blocks_max: REQUEST_BLOCKS_MAX,
            ..SoloConfig::new(Mode::OnDemand, FEE_RECIPIENT)
        };
        let sinks: Vec<Arc<dyn Sink>> = vec![self.told.clone()];
        let (solo, task) =
            Solo::start(self.application.clone(), tip, pool, sinks, self.clock.clone(), config);
        self.running = Some((solo, tokio::spawn(task)));
        self.snapshots.clear();
    }

    fn tip(&self) -> Header {
        self.told.0.lock().unwrap().last().map_or_else(|| self.origin.clone(), |(header, _)| header.clone())
    }

    fn hand(&self) -> Controls {
        self.running.as_ref().unwrap().0.controls().clone()
    }

    /// Where the clock should be.
    fn now(&self) -> TimestampMs {
        TimestampMs(self.clock.now().0.checked_add_signed(self.offset_ms).unwrap())
    }

    fn expect_at(&mut self, now: TimestampMs) {
        self.offset_ms = now.0.cast_signed() - self.clock.now().0.cast_signed();
    }

    async fn act(&mut self, act: &Act) {
        let hand = self.hand();
        let now = self.now();
        match *act {
            Act::Wait { ms } => self.clock.advance(DurationMs(ms)),
            Act::Travel { ms, is_lost } => {
                if is_lost {
                    lose(hand.travel_by(DurationMs(ms))).await;
                }
                until_there(async || hand.travel_by(DurationMs(ms)).await).await;
                self.expect_at(TimestampMs(now.0 + ms));
            }
            Act::SetTime { ms } => {
                let at = TimestampMs(now.0.saturating_add_signed(ms).max(self.tip().timestamp.0 + 1));
                until_there(async || hand.travel_to(at).await).await;
                self.expect_at(at);
            }
            Act::Mine { at_ms } => {
                let at = at_ms.map(|ms| TimestampMs(now.0 + ms));
                hand.mine(at).await.unwrap();
                self.expect_at(at.unwrap_or(now));
            }
            Act::MineMany { count, interval_ms, is_led, is_lost } => {
                let mining = Mining { count, interval: Some(DurationMs(interval_ms)), is_led };
                let before = self.tip();
                if is_lost {
                    lose(hand.mine_all(mining)).await;
                }
                let last = hand.mine_all(mining).await.unwrap();
                assert_eq!(last.number, before.number + count, "mined once");
                let spans = if is_led { count } else { count - 1 };
                // The first block cannot be at the time of the tip.
                let first = now.max(TimestampMs(before.timestamp.0 + u64::from(!is_led || interval_ms == 0)));
                self.expect_at(TimestampMs(first.0 + spans * interval_ms));
            }
            Act::Snapshot => {
                let id = hand.snapshot().await.unwrap();
                self.snapshots.push((id, self.offset_ms));
            }
            Act::Revert { back } => self.revert(back).await,
            Act::Restart { after_ms } => {
                let (solo, task) = self.running.take().unwrap();
                solo.stop().await.unwrap();
                task.await.unwrap();
                self.clock.advance(DurationMs(after_ms));
                self.start();
            }
            Act::Kill { after_ms } => {
                let (_, task) = self.running.take().unwrap();
                task.abort();
                let _ = task.await;
                // Blocks above a snapshot were in memory only.
                let kept = self.application.store().tip().commitment();
                while self.tip().commitment != kept {
                    self.told.0.lock().unwrap().pop().expect("the state is that of a block");
                }
                self.clock.advance(DurationMs(after_ms));
                self.start();
            }
        }
        // A block cannot come before its parent; the clock follows it.
        self.expect_at(self.now().max(self.tip().timestamp));
    }

    async fn revert(&mut self, back: usize) {
        let Some(index) = self.snapshots.len().checked_sub(back + 1) else { return };
        let (id, offset_ms) = self.snapshots[index];
        self.snapshots.truncate(index);
        match self.hand().revert(id).await {
            Ok(_) => self.offset_ms = offset_ms,
            Err(error) => assert!(matches!(error, ControlError::UnknownSnapshot { .. }), "{error}"),
        }
    }

    /// The clock is where it should be, and all that is due ran, once and not early.
    async fn check(&mut self) {
        let settled = tokio::time::timeout(Duration::from_secs(10), async {
            while self.ran().len() < self.due_by_now() {
                tokio::task::yield_now().await;
            }
        });
        assert!(settled.await.is_ok(), "{} of {} ran by {}", self.ran().len(), self.due_by_now(), self.now());
        for _ in 0..30 {
            tokio::task::yield_now().await;
        }
        self.expect_at(self.now().max(self.tip().timestamp));
        assert_eq!(self.hand().next_time(), self.now());
        let ran = self.ran();
        assert_eq!(ran.len(), self.due_by_now());
        for (schedule, times) in ran {
            let due = self.due[usize::try_from(schedule).unwrap() - 1];
            assert!(times.len() == 1 && times[0] >= due, "{schedule}: due {due}, ran {times:?}");
        }
    }

    /// The times at which each schedule ran.
    fn ran(&self) -> BTreeMap<u64, Vec<TimestampMs>> {
        let mut ran: BTreeMap<u64, Vec<_>> = BTreeMap::new();
        for (header, schedules) in self.told.0.lock().unwrap().iter() {
            schedules.iter().for_each(|id| ran.entry(*id).or_default().push(header.timestamp));
        }
        ran
    }

    fn due_by_now(&self) -> usize {
        self.due.iter().filter(|due| **due <= self.now()).count()
    }
}

/// Sends a request and leaves before the answer comes.
async fn lose<T>(request: impl Future<Output = T>) {
    let mut request = Box::pin(request);
    assert!((&mut request).now_or_never().is_none());
    drop(request);
    tokio::task::yield_now().await;
}

/// Repeats a move of the clock as clients do, as long as it stops on the way.
async fn until_there(travel: impl AsyncFn() -> Result<Travel, ControlError>) {
    for _ in 0..100 {
        match travel().await {
            Ok(_) => return,
            Err(ControlError::TravelTooLong { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    panic!("100 requests of {REQUEST_BLOCKS_MAX} blocks do not get there");
}

fn play(due: &[u64], acts: &[Act]) {
    let due = due.iter().map(|ms| TimestampMs(START.0 + 2_000 + ms)).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let mut lab = Lab::new(due);
        for act in acts {
            lab.act(act).await;
            lab.check().await;
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, max_shrink_iters: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn the_clock_is_where_a_person_expects_it_and_everything_due_runs_once(
        due in prop::collection::vec(0..1_500_000u64, 0..24),
        acts in prop::collection::vec(act(), 1..14),
    ) {
        play(&due, &acts);
    }
}

/// The bug: with a data directory, time travel and a restart, blocks kept the old timestamp and nothing ran.
#[test]
fn a_chain_that_was_moved_ahead_goes_on_after_a_restart() {
    let day = 86_400_000;
    let acts = [
        Act::Travel { ms: day, is_lost: false },
        Act::Mine { at_ms: None },
        Act::Restart { after_ms: 1_000 },
        Act::Mine { at_ms: None },
        Act::Wait { ms: 60_000 },
        Act::Kill { after_ms: 1_000 },
        Act::Wait { ms: 60_000 },
    ];
    play(&[day + 30_000, day + 90_000], &acts);
}

/// The bug: clients repeat a travel that is too long for one request, and each repetition added the whole span.
#[test]
fn a_travel_of_several_requests_goes_as_far_as_it_was_asked_once() {
    let due: Vec<u64> = (0..30).map(|n| n * 60_000).collect();
    for is_lost in [false, true] {
        play(&due, &[Act::Travel { ms: 30 * 60_000, is_lost }, Act::Travel { ms: 60_000, is_lost }]);
    }
}

/// Between the requests of a client that repeats there is nothing else; after something else, a request is a new one.
#[tokio::test]
async fn the_same_request_again_adds_up_when_the_first_was_answered() {
    let mut lab = Lab::new((0..6).map(|n| TimestampMs(START.0 + 10_000 + n * 1_000)).collect());
    let minute = DurationMs(60_000);
    let stopped = lab.hand().travel_by(minute).await;
    assert!(
        matches!(stopped, Err(ControlError::TravelTooLong { made: REQUEST_BLOCKS_MAX, .. })),
        "{stopped:?}"
    );
    lab.hand().mine(None).await.unwrap();
    let here = lab.hand().next_time();
    lab.hand().travel_by(minute).await.unwrap();
    assert_eq!(
        lab.hand().next_time(),
        TimestampMs(here.0 + minute.0),
        "the block in between made it a new one"
    );
    lab.hand().travel_by(minute).await.unwrap();
    assert_eq!(lab.hand().next_time(), TimestampMs(here.0 + 2 * minute.0), "answered requests add up");
    lose(lab.hand().travel_by(minute)).await;
    lab.clock.advance(DurationMs(61_000));
    lab.hand().travel_by(minute).await.unwrap();
    let expected = TimestampMs(here.0 + 4 * minute.0 + 61_000);
    assert_eq!(lab.hand().next_time(), expected, "a minute later nobody repeats");
    lab.expect_at(expected);
    lab.check().await;
}
