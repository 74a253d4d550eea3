//! A chain that is executed for real and kept in an index, as a node keeps it.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]

pub use almanac_primitives::testing::{contracts::*, *};

use alloy_primitives::{Address, B256, Bytes, U256};
use almanac_exec::{BlockInput, Candidates, Rules, check_static, execute};
use almanac_index::{Index, IndexConfig, IndexedBlock, Parties};
use almanac_primitives::{
    Account, Block, ConsensusContext, Gas, GasPrice, Header, Lane, Receipt, RunTransaction, ScheduleId,
    ScheduleRef, StateChange, StateCommitment, StateDiff, StateKey, StateRead, TimestampMs, UserTransaction,
    Wei, state::decode_slot,
};
use almanac_schedule::{
    CalendarAgenda,
    testing::{plant, record},
};
use almanac_trace::{Limits, Replay, TraceError, Tracer};
use std::sync::Arc;

pub struct Chain {
    pub index: Index,
    pub agenda: CalendarAgenda,
    genesis: Header,
}

impl Chain {
    pub fn new() -> Self {
        Self::with_depth(u64::MAX)
    }

    pub fn with_depth(history_depth: u64) -> Self {
        Self::with_config(IndexConfig { history_depth, ..IndexConfig::default() })
    }

    pub fn with_config(config: IndexConfig) -> Self {
        let genesis = genesis();
        let header = genesis.header(StateCommitment::default()).unwrap();
        let index = Index::in_memory(config, header.clone(), genesis.state().unwrap()).unwrap();
        Self { index, agenda: CalendarAgenda, genesis: header }
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
        self.plant(runs);
        let tip = self.index.tip();
        let timestamp = TimestampMs(tip.block.header.timestamp.0 + 1_000);
        let input = BlockInput {
            chain: CHAIN,
            parent: tip.block.header.clone(),
            parent_hash: tip.hash,
            timestamp,
            fee_recipient: FEE_RECIPIENT,
            consensus: ConsensusContext::default(),
        };
        let rules = Rules { chain: CHAIN, gas_max: tip.block.header.gas_limit, is_developer: false };
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

    /// Adds a block that writes single runs into the state, due in the next one.
    fn plant(&self, runs: Vec<RunTransaction>) {
        if runs.is_empty() {
            return;
        }
        let tip = self.index.tip();
        let (number, timestamp) = (tip.number() + 1, TimestampMs(tip.block.header.timestamp.0 + 1));
        let header = Header { number, timestamp, parent_hash: tip.hash, ..tip.block.header.clone() };
        let state = self.index.tip_state();
        let records: Vec<_> = runs.into_iter().map(|run| record(timestamp, &run)).collect();
        let changes = plant(&state, &records).into_iter().map(|(key, new)| StateChange {
            key,
            old: state.read(key).unwrap(),
            new: Some(new),
        });
        let diff = StateDiff::new(changes.collect());
        let block = Arc::new(Block { header, transactions: Vec::new() });
        self.index.apply(&block, &[], Vec::new(), &[], &diff).unwrap();
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
        let replay = Replay::new(&self.index, &self.agenda, CHAIN, block)?;
        replay.expect("no genesis").one(tracer, index, limits)
    }

    pub fn all<T: Tracer>(&self, block: &IndexedBlock, tracer: &T) -> Vec<T::Trace> {
        let replay = Replay::new(&self.index, &self.agenda, CHAIN, block).unwrap();
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
