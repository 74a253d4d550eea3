//! A store whose reads really have to be waited for, and schedules that are there from the start.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]

pub mod running;

use alloy_primitives::{Address, Bytes, TxKind, U256};
use alloy_sol_types::SolCall as _;
use almanac_consensus::{Application, Tip};
use almanac_primitives::{
    Gas, GasPrice, Genesis, Lane, RunTransaction, ScheduleId, ScheduleRef, StateCommitment, StateDiff,
    StateKey, StateRead, StateReadError, TimestampMs, UserTransaction, Wei,
    addresses::CRON_REGISTRY,
    testing::{contracts::COUNTER, eip1559, genesis, person, sign},
};
use almanac_schedule::{
    CalendarAgenda,
    testing::{plant, record},
};
use almanac_state::{CommitError, MemoryBatch, MemoryStore, SealError, SealedBatch, StateStore, StateView};
use std::{
    collections::BTreeMap,
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// Makes a future that is not ready at once, on whatever runtime the test uses.
pub type Pause = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// The in-memory store, with a pause before every answer.
pub struct SlowStore {
    inner: MemoryStore,
    pause: Pause,
    reads: Arc<AtomicU64>,
}

#[derive(Clone)]
pub struct SlowBatch {
    inner: MemoryBatch,
    pause: Pause,
    reads: Arc<AtomicU64>,
}

impl SlowStore {
    pub fn new(genesis: &Genesis, pause: Pause) -> Self {
        let inner = MemoryStore::from_genesis(genesis.state().unwrap());
        Self { inner, pause, reads: Arc::default() }
    }

    /// How many times a batch was asked.
    pub fn reads(&self) -> Arc<AtomicU64> {
        self.reads.clone()
    }

    fn slow(&self, inner: MemoryBatch) -> SlowBatch {
        SlowBatch { inner, pause: self.pause.clone(), reads: self.reads.clone() }
    }
}

impl StateStore for SlowStore {
    type Batch = SlowBatch;

    fn tip(&self) -> SlowBatch {
        self.slow(self.inner.tip())
    }

    async fn seal(&self, parent: &SlowBatch, diff: &StateDiff) -> Result<SlowBatch, SealError> {
        (self.pause)().await;
        Ok(self.slow(self.inner.seal(&parent.inner, diff).await?))
    }

    async fn commit(&self, batch: &SlowBatch) -> Result<(), CommitError> {
        (self.pause)().await;
        self.inner.commit(&batch.inner).await
    }
}

impl StateView for SlowBatch {
    async fn get_many(&self, keys: &[StateKey]) -> Result<Vec<Option<Bytes>>, StateReadError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        (self.pause)().await;
        self.inner.get_many(keys).await
    }
}

impl SealedBatch for SlowBatch {
    fn commitment(&self) -> StateCommitment {
        self.inner.commitment()
    }
}

/// An application in memory, at the genesis of the test people.
pub fn application() -> (Application<MemoryStore>, Tip<MemoryBatch>) {
    application_of(&genesis(), &[])
}

/// An application in memory, at a genesis with these calls of the counter.
pub fn application_of(
    genesis: &Genesis,
    due: &[TimestampMs],
) -> (Application<MemoryStore>, Tip<MemoryBatch>) {
    let store = MemoryStore::from_genesis(state_with(genesis, due));
    Application::new(genesis, store, Arc::new(CalendarAgenda)).unwrap()
}

/// Who the test runs call as.
pub const RUNNER: Address = Address::repeat_byte(0x77);

/// The state of a genesis, with a schedule for each of these moments that calls the counter once.
pub fn state_with(genesis: &Genesis, due: &[TimestampMs]) -> BTreeMap<StateKey, Bytes> {
    let mut state = genesis.state().unwrap();
    let run = |id| RunTransaction {
        schedule_ref: ScheduleRef { schedule: ScheduleId(id), number: 0 },
        lane: Lane::Cron,
        from: RUNNER,
        to: COUNTER,
        value: Wei::ZERO,
        input: Bytes::new(),
        gas_limit: Gas(100_000),
        gas_price: GasPrice(1),
    };
    let records: Vec<_> = (1..).zip(due).map(|(id, due)| record(*due, &run(id))).collect();
    if !records.is_empty() {
        let planted = plant(&Planting(&state), &records);
        state.extend(planted);
    }
    state
}

struct Planting<'s>(&'s BTreeMap<StateKey, Bytes>);

impl StateRead for Planting<'_> {
    fn read(&self, key: StateKey) -> Result<Option<Bytes>, StateReadError> {
        Ok(self.0.get(&key).cloned())
    }
}

alloy_sol_types::sol!("../../contracts/ICronRegistry.sol");

/// Someone's order for one call of the counter.
pub fn job(nonce: u64, due_s: u64) -> UserTransaction {
    let order = ICronRegistry::scheduleCalldataCall {
        target: COUNTER,
        data: Bytes::from_static(&[1, 2, 3, 4]),
        nextRunAt: U256::from(due_s),
        intervalSec: U256::ZERO,
        maxRuns: U256::ONE,
        gasLimit: U256::from(50_000),
    };
    let mut call = eip1559(nonce, TxKind::Call(CRON_REGISTRY), 0, order.abi_encode(), 500_000);
    call.value = U256::from(10u64.pow(15));
    sign(call, person(3).secret)
}
