//! Due work that takes time, and states that are slow: the simulator's clock stands still while code runs, so a store
//! sleeps for it.

use crate::sim::{
    disk::Slowness,
    draw::Draw,
    faults::{Faults, good},
    machine::Machine,
    marks::{Mark, Marks},
    network::Network,
    run::run,
};
use almanac_bft::TIMEOUT_NS_PER_GAS;
use almanac_primitives::{StateChange, StateDiff, StateKey, addresses::LEDGER};
use almanac_schedule::record::schedule_of_head_slot;
use almanac_state::{CommitError, QmdbBatch, QmdbStore, SealError, StateStore};
use commonware_runtime::Clock as _;
use std::{
    borrow::Borrow,
    sync::{Arc, Mutex},
    time::{Duration, UNIX_EPOCH},
};

/// A store that takes some time for every run of a block before it seals what the block changed, and is slow and fails
/// at some times.
#[derive(Clone)]
pub struct WorkingStore {
    store: QmdbStore<Machine>,
    clock: Arc<Machine>,
    run_time: Duration,
    slow: Arc<SlowSeals>,
}

/// When a store is slow.
struct SlowSeals {
    times: Vec<Slowness>,
    draw: Mutex<Draw>,
    marks: Marks,
}

/// Seals of a thousand that fail at such a time. So few that not all attempts to commit a final block fail, which would
/// end the process.
const FAILING: u64 = 300;

impl SlowSeals {
    /// How long a seal takes that begins now, and whether it fails then.
    fn next(&self, now: Duration) -> Option<(Duration, bool)> {
        let (_, most) = self.times.iter().find(|(during, _)| during.contains(&now))?;
        let mut draw = self.draw.lock().unwrap();
        let (delay, is_failing) = (draw.millis(1, *most + 1), draw.chance(FAILING));
        self.marks.add(if is_failing { Mark::FailedSeal } else { Mark::SlowSeal });
        Some((delay, is_failing))
    }
}

impl WorkingStore {
    pub fn new(store: QmdbStore<Machine>, clock: Machine, network: &Network, index: usize) -> Self {
        let slow = SlowSeals {
            times: network.faults.seals_of(index),
            draw: Mutex::new(network.leftovers(index)),
            marks: network.marks.clone(),
        };
        Self { store, clock: Arc::new(clock), run_time: network.run_time, slow: Arc::new(slow) }
    }
}

impl Borrow<QmdbStore<Machine>> for WorkingStore {
    fn borrow(&self) -> &QmdbStore<Machine> {
        &self.store
    }
}

impl StateStore for WorkingStore {
    type Batch = QmdbBatch<Machine>;

    fn tip(&self) -> Self::Batch {
        self.store.tip()
    }

    async fn seal(&self, parent: &Self::Batch, diff: &StateDiff) -> Result<Self::Batch, SealError> {
        let runs = diff.changes().iter().filter(|change| is_run(change)).count();
        let work = self.run_time * u32::try_from(runs).unwrap();
        if !work.is_zero() {
            self.clock.sleep(work).await;
        }
        let now = self.clock.true_time().duration_since(UNIX_EPOCH).unwrap();
        if let Some((delay, is_failing)) = self.slow.next(now) {
            self.clock.sleep(delay).await;
            if is_failing {
                return Err(SealError::Store { reason: "the simulated state gave no answer".to_owned() });
            }
        }
        self.store.seal(parent, diff).await
    }

    async fn commit(&self, batch: &Self::Batch) -> Result<(), CommitError> {
        self.store.commit(batch).await
    }
}

/// Whether a schedule that was there has moved on: it ran.
fn is_run(change: &StateChange) -> bool {
    let StateKey::Slot(LEDGER, slot) = change.key else { return false };
    change.old.is_some() && schedule_of_head_slot(slot).is_some()
}

/// Gas of a run: 15 M hold all that is due at once, half of that three, and the floor two.
pub const RUN_GAS: u64 = 2_500_000;

/// Four runs take a second, three three quarters: more than a leader has, which is 700 ms. Two take half a second.
const RUN_TIME: Duration = Duration::from_millis(250);

/// Runs of each block that has any, and the views that failed before it.
fn runs_and_failed_views(network: &Network) -> Vec<(usize, u64)> {
    let outcome = run(network, 7, good(), Faults::default(), 60);
    assert_eq!(outcome.runs, 12, "all runs of all clients");
    let runs_and_failed: Vec<_> = (outcome.chain.iter())
        .map(|archived| {
            let runs = archived.receipts.iter().filter(|receipt| receipt.schedule_ref.is_some()).count();
            (runs, archived.block.header.consensus.failed_views())
        })
        .filter(|(runs, _)| *runs > 0)
        .collect();
    println!("runs of a block, and views that failed before it: {runs_and_failed:?}");
    runs_and_failed
}

/// Without halving, no block comes after the first second in which three or more are due.
#[test]
fn due_work_that_outlasts_a_view_is_halved_until_it_fits() {
    let runs_and_failed = runs_and_failed_views(&Network::new(4).runs_that_take(RUN_TIME));
    assert!(runs_and_failed.iter().all(|(runs, _)| *runs <= 2), "more do not fit a view");
    assert!(runs_and_failed.iter().any(|(runs, failed)| *runs == 2 && *failed >= 3), "{runs_and_failed:?}");
}

/// The same work, where timeouts have room for a full block as in a real network: no view fails, and nothing is halved.
#[test]
fn due_work_that_timeouts_have_room_for_fails_no_view() {
    let network = Network::new(4).runs_that_take(RUN_TIME).with_room_in_timeouts(TIMEOUT_NS_PER_GAS);
    let runs_and_failed = runs_and_failed_views(&network);
    assert!(runs_and_failed.iter().all(|(_, failed)| *failed == 0), "{runs_and_failed:?}");
    assert!(runs_and_failed.iter().any(|(runs, _)| *runs > 2), "{runs_and_failed:?}");
}
