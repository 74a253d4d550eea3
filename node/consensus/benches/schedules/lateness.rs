//! How late runs start on a chain that makes blocks on demand and wakes at due times.

use crate::{
    chain::genesis,
    ms,
    orders::{self, Kind, RUN_GAS},
};
use alloy_primitives::U256;
use almanac_consensus::{
    Application, Clock as _, Mode, SharedPool, Sink, SinkError, Solo, SoloConfig, SystemClock,
};
use almanac_exec::BlockOutput;
use almanac_mempool::{Pool, PoolConfig, SenderState};
use almanac_primitives::{Block, Gas, GasPrice, TimestampMs, Wei, run::RUN_TYPE, testing::FEE_RECIPIENT};
use almanac_schedule::CalendarAgenda;
use almanac_state::MemoryStore;
use std::{
    sync::{Arc, mpsc},
    time::Duration,
};

/// Seconds in each of which one run is due.
const SECONDS: u64 = 30;

/// Tells when a block with runs is final.
struct Listener(mpsc::Sender<TimestampMs>);

impl Sink for Listener {
    fn finalized(&self, _: &Arc<Block>, output: &Arc<BlockOutput>) -> Result<(), SinkError> {
        if output.receipts.iter().any(|receipt| receipt.transaction_type == RUN_TYPE) {
            let _ = self.0.send(SystemClock.now());
        }
        Ok(())
    }

    fn reverted(&self, _: u64) -> Result<(), SinkError> {
        Ok(())
    }
}

/// Schedules a run for each of the next seconds and waits for them.
pub(crate) fn measure() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let (sender, runs) = mpsc::channel();
    let first = SystemClock.now().seconds() + 2;
    runtime.block_on(async {
        let mut genesis = genesis(Kind::Cron);
        genesis.timestamp_ms = TimestampMs(SystemClock.now().0 - 1);
        let store = MemoryStore::from_genesis(genesis.state().expect("a good genesis"));
        let (application, tip) =
            Application::new(&genesis, store, Arc::new(CalendarAgenda)).expect("a good genesis");
        let pool = SharedPool::new(Pool::new(PoolConfig::developer(), GasPrice(1_000_000_000)));
        let config = SoloConfig::new(Mode::OnDemand, FEE_RECIPIENT);
        let sinks: Vec<Arc<dyn Sink>> = vec![Arc::new(Listener(sender))];
        let (_solo, task) = Solo::start(Arc::new(application), tip, pool.clone(), sinks, SystemClock, config);
        let task = tokio::spawn(task);
        let sender = SenderState { nonce: 0, balance: Wei(U256::MAX), is_delegated: false };
        pool.lock().insert(orders::bulk(0, SECONDS, first, 1), sender).expect("an empty pool takes it");
        pool.wake();
        tokio::time::sleep(Duration::from_secs(SECONDS + 3)).await;
        task.abort();
    });
    let late = runs.try_iter().zip(first..).map(|(at, due_s)| at.0.saturating_sub(due_s * 1_000));
    let mut late: Vec<_> = late.map(Duration::from_millis).collect();
    late.sort_unstable();
    assert_eq!(late.len() as u64, SECONDS, "a block for each");
    println!(
        "lateness of {SECONDS} runs of {} gas until final, blocks on demand: p50 {:.0} ms, p99 {:.0} ms",
        Gas(RUN_GAS).0,
        ms(late[late.len() / 2]),
        ms(late[late.len() - 1]),
    );
}
