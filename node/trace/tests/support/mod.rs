//! A chain that is executed for real and kept in an index, as a node keeps it.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]

pub use almanac_primitives::testing::{contracts::*, *};

use alloy_primitives::{Address, B256, Bytes, U256};
use almanac_exec::{BlockInput, Candidates, Rules, check_static, execute};
use almanac_index::{Index, IndexConfig, IndexedBlock, Parties};
use almanac_primitives::{
    Account, ConsensusContext, Gas, GasPrice, Header, Lane, Receipt, RunTransaction, ScheduleId, ScheduleRef,
    StateCommitment, StateKey, StateRead, TimestampMs, UserTransaction, Wei, params::Parameters,
    state::decode_slot,
};
use almanac_schedule::{
    Agenda, Due,
    calendar::{CalendarError, Entry, Queue},
};
use almanac_trace::{Limits, Replay, TraceError, Tracer};
use std::sync::{Arc, Mutex};

/// Runs by the time of the block that they are due in.
#[derive(Default)]
pub struct Runs(Mutex<Vec<(TimestampMs, RunTransaction)>>);

impl Agenda for Runs {
    fn due_from(
        &self,
        _: &dyn StateRead,
        queue: Queue,
        until: u64,
        _: Option<Entry>,
        count_max: usize,
    ) -> Result<Vec<Due>, CalendarError> {
        let runs = self.0.lock().unwrap();
        let due = runs.iter().filter(|(at, run)| at.0 == until && Queue::of_lane(run.lane) == queue);
        Ok(due.map(|(_, run)| Due::Bare(run.clone())).take(count_max).collect())
    }

    fn next_due(&self, _: &dyn StateRead, _: &Parameters) -> Result<Option<TimestampMs>, CalendarError> {
        Ok(None)
    }
}

pub struct Chain {
    pub index: Index,
    pub agenda: Runs,
    genesis: Header,
}

impl Chain {
    pub fn new() -> Self {
        Self::with_depth(u64::MAX)
    }

    pub fn with_depth(history_depth: u64) -> Self {
        let genesis = genesis();
        let header = genesis.header(StateCommitment::default()).unwrap();
        let config = IndexConfig { history_depth, ..IndexConfig::default() };
        let index = Index::in_memory(config, header.clone(), genesis.state().unwrap()).unwrap();
        Self { index, agenda: Runs::default(), genesis: header }
    }

    /// A block of these transactions and runs; all of them must get in.
    pub fn produce(
        &self,
        transactions: Vec<UserTransaction>,
        runs: Vec<RunTransaction>,
    ) -> Arc<IndexedBlock> {
        let expected = 1 + runs.len() + transactions.len();
        let block = self.produce_what_fits(transactions, runs);
        assert_eq!(block.receipts.len(), expected, "everything got in");
        block
    }

    /// A block of what can be included.
    pub fn produce_what_fits(
        &self,
        transactions: Vec<UserTransaction>,
        runs: Vec<RunTransaction>,
    ) -> Arc<IndexedBlock> {
        self.make(transactions, runs, |_| {})
    }

    /// A block whose receipts are changed before they are stored.
    pub fn make(
        &self,
        transactions: Vec<UserTransaction>,
        runs: Vec<RunTransaction>,
        change: impl FnOnce(&mut Vec<Receipt>),
    ) -> Arc<IndexedBlock> {
        let tip = self.index.tip();
        let timestamp = TimestampMs(tip.block.header.timestamp.0 + 1_000);
        self.agenda.0.lock().unwrap().extend(runs.into_iter().map(|run| (timestamp, run)));
        let input = BlockInput {
            chain_id: CHAIN_ID,
            parent: tip.block.header.clone(),
            parent_hash: tip.hash,
            timestamp,
            fee_recipient: FEE_RECIPIENT,
            consensus: ConsensusContext::default(),
        };
        let rules = Rules { chain_id: CHAIN_ID, gas_max: tip.block.header.gas_limit, is_developer: false };
        let valid = transactions.into_iter().filter(|transaction| check_static(transaction, &rules).is_ok());
        let mut source = Candidates::new(valid.map(recovered).collect());
        let output = execute(&self.index.tip_state(), &self.agenda, &input, &mut source).unwrap();
        let block = Arc::new(output.block(StateCommitment::default()));
        let parties = output.transactions.iter().map(|executed| Parties {
            from: executed.from(),
            to: executed.to(),
            run: executed.run().cloned(),
        });
        let mut receipts = output.receipts.clone();
        change(&mut receipts);
        self.index.apply(&block, &receipts, parties.collect(), &output.events, &output.diff).unwrap();
        self.index.tip()
    }

    pub fn one<T: Tracer>(&self, block: &IndexedBlock, tracer: &T, index: usize) -> T::Trace {
        self.try_one(block, tracer, index, Limits::BLOCK).unwrap()
    }

    pub fn try_one<T: Tracer>(
        &self,
        block: &IndexedBlock,
        tracer: &T,
        index: usize,
        limits: Limits,
    ) -> Result<T::Trace, TraceError> {
        let replay = Replay::new(&self.index, &self.agenda, CHAIN_ID, block)?;
        replay.expect("no genesis").one(tracer, index, limits)
    }

    pub fn all<T: Tracer>(&self, block: &IndexedBlock, tracer: &T) -> Vec<T::Trace> {
        let replay = Replay::new(&self.index, &self.agenda, CHAIN_ID, block).unwrap();
        let limits = Limits { bytes_max: 1 << 30, ..Limits::BLOCK };
        replay.expect("no genesis").all(tracer, limits).unwrap()
    }

    pub fn account(&self, height: u64, address: Address) -> Option<Account> {
        let stored = self.index.state_at(height).unwrap().read(StateKey::Account(address)).unwrap();
        stored.map(|bytes| Account::decode(&bytes).unwrap())
    }

    pub fn slot(&self, height: u64, address: Address, slot: B256) -> U256 {
        let key = StateKey::Slot(address, slot.into());
        let stored = self.index.state_at(height).unwrap().read(key).unwrap();
        stored.map_or(U256::ZERO, |bytes| decode_slot(&bytes).unwrap())
    }

    pub fn code(&self, height: u64, hash: B256) -> Bytes {
        self.index.state_at(height).unwrap().read(StateKey::Code(hash)).unwrap().unwrap_or_default()
    }
}

/// A run of the schedule `id` to fill in.
pub fn run(id: u64, lane: Lane, to: Address, input: impl Into<Bytes>, gas: u64) -> RunTransaction {
    RunTransaction {
        schedule_ref: ScheduleRef { schedule: ScheduleId(id), number: 0 },
        lane,
        from: person(9).address,
        to,
        value: Wei::ZERO,
        input: input.into(),
        gas_limit: Gas(gas),
        gas_price: GasPrice(1_000_000_000),
    }
}
