//! Tests how much a run adds to the index: little, however large its calldata is.

use crate::{
    block::{IndexedBlock, Parties},
    open, read,
    store::{Batch, Store},
    write,
};
use alloy_primitives::{Address, B256, Bytes};
use almanac_primitives::{
    Block, Gas, GasPrice, Header, Lane, Outcome, Receipt, RunTransaction, ScheduleId, ScheduleRef,
    StateChange, StateDiff, StateKey, TimestampMs, Wei, addresses::CRON_REGISTRY,
    params::RUN_INPUT_BYTES_MAX, run::RUN_TYPE,
};
use almanac_schedule::{
    cron::{CatchUp, Charge, CronTerms},
    life::{Event, LifeEvent, What},
    record::{Body, Call, Door, Terms, Trigger},
};
use std::{num::NonZeroU64, sync::Arc};

const OWNER: Address = Address::repeat_byte(1);
const TARGET: Address = Address::repeat_byte(2);
const RUNS: u64 = 1_000;

/// Bytes that a run may add: its receipt, its index rows, and the header of its block. The calldata is eight
/// times as much.
const RUN_BYTES_MAX: usize = 2_000;

fn body() -> Body {
    Body {
        owner: OWNER,
        refund_to: OWNER,
        gas_limit: Gas(21_000),
        trigger: Trigger::Time,
        terms: Terms::Cron(CronTerms {
            interval_ms: NonZeroU64::new(1_000),
            runs_max: None,
            catch_up: CatchUp::All,
            charge: Charge::GasLimit,
        }),
        calls: vec![Call {
            from: CRON_REGISTRY,
            to: TARGET,
            value: Wei::ZERO,
            input: vec![7; RUN_INPUT_BYTES_MAX].into(),
        }],
    }
}

fn run(id: ScheduleId, number: u64, input: Bytes) -> RunTransaction {
    RunTransaction {
        schedule_ref: ScheduleRef { schedule: id, number },
        lane: Lane::Cron,
        from: CRON_REGISTRY,
        to: TARGET,
        value: Wei::ZERO,
        input,
        gas_limit: Gas(21_000),
        gas_price: GasPrice(7),
    }
}

fn receipt(run: Option<&RunTransaction>) -> Receipt {
    Receipt {
        transaction_type: run.map_or(2, |_| RUN_TYPE),
        transaction_hash: run.map_or(B256::repeat_byte(9), RunTransaction::hash),
        outcome: Outcome::Success,
        gas_used: Gas(21_000),
        cumulative_gas_used: Gas(21_000),
        effective_gas_price: GasPrice(7),
        contract_address: None,
        failed_call: None,
        schedule_ref: run.map(|run| run.schedule_ref),
        logs: Vec::new(),
    }
}

struct Chain {
    store: Store,
    parent: B256,
}

impl Chain {
    fn new() -> Self {
        let store = Store::in_memory();
        let genesis = Header::default();
        open::open(&store, genesis.clone(), []).unwrap();
        Self { store, parent: genesis.hash() }
    }

    fn add(
        &mut self,
        number: u64,
        run: Option<RunTransaction>,
        events: Vec<LifeEvent>,
        changes: Vec<StateChange>,
    ) {
        let header = Header { number, parent_hash: self.parent, ..Header::default() };
        let block = Arc::new(Block { header, transactions: Vec::new() });
        let receipts = vec![receipt(run.as_ref())];
        let parties = vec![Parties { from: OWNER, to: Some(TARGET), run }];
        self.parent = block.hash();
        let indexed = IndexedBlock { hash: self.parent, block, receipts, parties, events };
        let mut batch = Batch::default();
        self.store
            .ask(|view| write::add(&mut batch, view, &indexed, &StateDiff::new(changes), false))
            .unwrap();
        self.store.commit(batch).unwrap();
        assert_eq!(self.store.ask(|view| read::block_at(view, number)).unwrap(), indexed, "read as written");
    }

    fn bytes(&self) -> usize {
        self.store
            .ask(|view| view.all().map(|row| row.map(|(key, value)| key.len() + value.len())).sum())
            .unwrap()
    }

    /// Makes a schedule in block 1.
    fn schedule(&mut self, body: &Body) -> ScheduleId {
        let id = ScheduleId::new(1, 0, 1).unwrap();
        let due = Some(TimestampMs(1_000));
        let (owner, target, lane, gas_limit) = (OWNER, TARGET, Lane::Cron, body.gas_limit);
        let what = What::Created { owner, target, lane, due, gas_limit, priority: 0 };
        let event = LifeEvent { index: 0, event: Event { id, door: Some(Door::Cron), what } };
        let change = StateChange { key: StateKey::Body(id), old: None, new: Some(body.encode()) };
        self.add(1, None, vec![event], vec![change]);
        id
    }
}

/// Regression: every run repeated the calldata of its schedule, 16 KiB for 21,000 gas.
#[test]
fn a_thousand_runs_keep_their_calldata_once() {
    let mut chain = Chain::new();
    let body = body();
    let id = chain.schedule(&body);
    let before = chain.bytes();
    for number in 0..RUNS {
        chain.add(number + 2, Some(run(id, number, body.call().input.clone())), Vec::new(), Vec::new());
    }
    let each = (chain.bytes() - before) / RUNS as usize;
    assert!(each < RUN_BYTES_MAX, "a run adds {each} bytes, {RUN_BYTES_MAX} at most are allowed");
}

/// Calldata that the schedule's body does not have is stored with the run.
#[test]
fn calldata_that_the_body_does_not_have_is_kept_with_the_run() {
    let mut chain = Chain::new();
    let id = chain.schedule(&body());
    for (number, input) in [(2, Bytes::new()), (3, vec![8; RUN_INPUT_BYTES_MAX].into())] {
        chain.add(number, Some(run(id, number, input)), Vec::new(), Vec::new());
    }
    let unknown = ScheduleId::new(1, 0, 2).unwrap();
    chain.add(4, Some(run(unknown, 0, body().call().input.clone())), Vec::new(), Vec::new());
}
