//! A sequencer that a test speaks to, with a listener that keeps every state.

use super::{application_of, state_with};
use almanac_consensus::{
    Admission, ManualClock, Mode, SharedPool, Sink, SinkError, Solo, SoloConfig, TipState,
};
use almanac_exec::BlockOutput;
use almanac_mempool::{Pool, PoolConfig};
use almanac_primitives::{
    Block, GasPrice, Genesis, StateKey, StateRead, StateReadError, TimestampMs, UserTransaction, testing::*,
};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::sync::mpsc;

pub type State = BTreeMap<StateKey, alloy_primitives::Bytes>;

/// Keeps the state, with the way back, and passes blocks on to the test.
pub struct Listener {
    kept: Mutex<Kept>,
    blocks: mpsc::UnboundedSender<(Arc<Block>, Arc<BlockOutput>)>,
    fails_at: Option<u64>,
}

struct Kept {
    state: State,
    outputs: Vec<Arc<BlockOutput>>,
}

impl Listener {
    /// The state after the last block.
    pub fn state(&self) -> State {
        self.kept.lock().unwrap().state.clone()
    }
}

impl Sink for Listener {
    fn finalized(&self, block: &Arc<Block>, output: &Arc<BlockOutput>) -> Result<(), SinkError> {
        if self.fails_at == Some(block.header.number) {
            let number = block.header.number;
            return Err(SinkError { sink: "the test", number, reason: "asked to".to_owned() });
        }
        let mut kept = self.kept.lock().unwrap();
        for change in output.diff.changes() {
            write(&mut kept.state, change.key, change.new.clone());
        }
        kept.outputs.push(output.clone());
        self.blocks.send((block.clone(), output.clone())).unwrap();
        Ok(())
    }

    fn reverted(&self, height: u64) -> Result<(), SinkError> {
        let mut kept = self.kept.lock().unwrap();
        let undone = kept.outputs.split_off(usize::try_from(height).unwrap());
        for change in undone.iter().rev().flat_map(|output| output.diff.changes()) {
            write(&mut kept.state, change.key, change.old.clone());
        }
        Ok(())
    }
}

fn write(state: &mut State, key: StateKey, value: Option<alloy_primitives::Bytes>) {
    match value {
        Some(value) => state.insert(key, value),
        None => state.remove(&key),
    };
}

pub struct Snapshot(State);

impl StateRead for Snapshot {
    fn read(&self, key: StateKey) -> Result<Option<alloy_primitives::Bytes>, StateReadError> {
        Ok(self.0.get(&key).cloned())
    }
}

impl TipState for Listener {
    fn tip_state(&self) -> Box<dyn StateRead + Send> {
        Box::new(Snapshot(self.state()))
    }
}

pub struct Running {
    pub chain: almanac_primitives::Chain,
    pub solo: Solo,
    pub admission: Admission,
    pub listener: Arc<Listener>,
    pub blocks: mpsc::UnboundedReceiver<(Arc<Block>, Arc<BlockOutput>)>,
    pub clock: ManualClock,
}

pub fn start(mode: Mode, due: &[TimestampMs]) -> Running {
    start_on(&genesis(), mode, due, None)
}

/// A developer's chain.
pub fn start_developer(mode: Mode, due: &[TimestampMs]) -> Running {
    start_on(&developer_genesis(), mode, due, None)
}

pub fn start_on(genesis: &Genesis, mode: Mode, due: &[TimestampMs], fails_at: Option<u64>) -> Running {
    let (application, tip) = application_of(genesis, due);
    let chain = application.chain();
    let clock = ManualClock::new(TimestampMs(START.0 + 1_000));
    let pool = SharedPool::new(Pool::new(PoolConfig::default(), GasPrice(1_000_000_000)));
    let (sender, blocks) = mpsc::unbounded_channel();
    let kept = Mutex::new(Kept { state: state_with(genesis, due), outputs: Vec::new() });
    let listener = Arc::new(Listener { kept, blocks: sender, fails_at });
    let config = SoloConfig::new(mode, FEE_RECIPIENT);
    let sinks: Vec<Arc<dyn Sink>> = vec![listener.clone()];
    let (solo, task) = Solo::start(Arc::new(application), tip, pool.clone(), sinks, clock.clone(), config);
    tokio::spawn(task);
    let admission = Admission::new(chain, pool, listener.clone());
    Running { chain, solo, admission, listener, blocks, clock }
}

impl Running {
    pub fn submit(&self, transaction: &UserTransaction) -> Result<alloy_primitives::TxHash, String> {
        self.admission.submit(transaction.encoded()).map_err(|error| error.to_string())
    }

    pub async fn next_block(&mut self) -> (Arc<Block>, Arc<BlockOutput>) {
        tokio::time::timeout(Duration::from_secs(10), self.blocks.recv())
            .await
            .expect("a block in time")
            .unwrap()
    }

    /// Nothing happens: the sequencer has had every chance to act.
    pub async fn stays_quiet(&mut self) {
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        assert!(self.blocks.try_recv().is_err(), "no block was due");
    }
}

/// No schedules.
pub fn nothing() -> &'static [TimestampMs] {
    &[]
}
