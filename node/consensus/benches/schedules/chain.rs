//! A chain on disk that a benchmark drives block by block.

use crate::{
    DAY_S,
    orders::{self, BID, BULK, IScheduledTransactions::TransactionScheduledEvent, Kind, bulk_code},
    processor_time,
};
use alloy_primitives::{Bytes, U256};
use alloy_sol_types::SolEvent as _;
use almanac_consensus::{Application, Deadline, Proposal, Tip};
use almanac_primitives::{
    Genesis, RecoveredTransaction, StateKey, TimestampMs, Wei,
    genesis::Allocation,
    params::{BLOCK_GAS_MAX, CRON_BLOCK_GAS_MAX, Parameter},
    run::RUN_TYPE,
    testing::{FEE_RECIPIENT, START, genesis as people, person},
};
use almanac_schedule::{Calendar, CalendarAgenda, calendar::Queue};
use almanac_state::{BlockJournal, QmdbConfig, QmdbStore, StateStore, with_reader};
use commonware_runtime::{Supervisor as _, tokio::Context};
use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

/// Name of the chain that grows.
pub(crate) const LARGE: &str = "large";

/// Schedules that one block of the loader creates: less than half of a block's gas, so that the base fee does not rise.
const LOAD_PER_BLOCK: u64 = 250;

type Store = QmdbStore<Context>;

pub(crate) struct Chain {
    kind: Kind,
    application: Application<Store>,
    tip: Tip<<Store as StateStore>::Batch>,
    nonces: [u64; 2],
    loaded: u64,
    /// What the last block took to execute and seal, and to make durable.
    pub(crate) last: [Duration; 2],
    /// Processor time of both.
    pub(crate) processor: Duration,
}

/// Rich people, the loop that creates schedules, and the largest budgets that governance may set.
pub(crate) fn genesis(kind: Kind) -> Genesis {
    let mut genesis = Genesis { governance: person(0).address, ..people() };
    let rich = Allocation { balance: Wei(U256::ONE << 120), ..Default::default() };
    genesis.allocations.insert(person(0).address, rich.clone());
    genesis.allocations.insert(person(1).address, rich);
    genesis.allocations.insert(BULK, Allocation { code: bulk_code(kind), ..Default::default() });
    for parameter in [BLOCK_GAS_MAX, CRON_BLOCK_GAS_MAX] {
        genesis.parameters.insert(parameter.name.to_owned(), parameter.max);
    }
    genesis
}

pub(crate) fn genesis_state() -> BTreeMap<StateKey, Bytes> {
    genesis(Kind::Cron).state().expect("a good genesis")
}

impl Chain {
    /// The chain of this name on the disk of `context`, at its last block.
    pub(crate) async fn open(context: &Context, name: &'static str) -> Self {
        Self::open_with(context, name, Kind::Cron, &genesis(Kind::Cron)).await
    }

    /// The same for a genesis of one's own.
    pub(crate) async fn open_with(
        context: &Context,
        name: &'static str,
        kind: Kind,
        genesis: &Genesis,
    ) -> Self {
        Self::open_over(context, name, kind, genesis, BTreeMap::new()).await
    }

    /// The same, with more in the state than the genesis says.
    pub(crate) async fn open_over(
        context: &Context,
        name: &'static str,
        kind: Kind,
        genesis: &Genesis,
        more: BTreeMap<StateKey, Bytes>,
    ) -> Self {
        let (context, config) = (context.child(name), QmdbConfig::new(name));
        let archive = BlockJournal::open(context.child("blocks"), &config).await.expect("the archive opens");
        let mut state = genesis.state().expect("a good genesis");
        state.extend(more);
        let store = QmdbStore::open(context.child("state"), &config, &state).await;
        let store = store.expect("the store opens");
        // These transactions are all Ethereum's, which do not name block 0.
        let origin = alloy_primitives::B256::ZERO;
        let height = store.height();
        let (mut application, tip) = if height == 0 {
            Application::new(genesis, store, Arc::new(CalendarAgenda)).expect("a good genesis")
        } else {
            let archived = archive.get(height).await.expect("the archive answers").expect("it has the block");
            Application::resume(genesis, origin, store, Arc::new(CalendarAgenda), archived.block.header)
                .expect("the state of that block")
        };
        application.keep_archive(Arc::new(archive));
        Self {
            kind,
            application,
            tip,
            nonces: [0; 2],
            loaded: 0,
            last: [Duration::ZERO; 2],
            processor: Duration::ZERO,
        }
    }

    /// What signatures are for.
    pub(crate) fn name(&self) -> almanac_primitives::Chain {
        self.application.chain()
    }

    /// Values of the state.
    pub(crate) async fn live_values(&self) -> u64 {
        self.application.store().live_values().await.expect("the store answers")
    }

    /// A block at a time with all of these, all of which pass.
    pub(crate) async fn all_in(&mut self, at: TimestampMs, transactions: Vec<RecoveredTransaction>) {
        let given = transactions.len();
        let output = self.commit(at, transactions).await;
        let users = output.receipts.iter().filter(|receipt| !matches!(receipt.transaction_type, 0x70 | 0x71));
        assert_eq!(users.filter(|receipt| receipt.outcome.is_success()).count(), given, "all of them pass");
    }

    pub(crate) fn now_s(&self) -> u64 {
        self.tip.header.timestamp.seconds()
    }

    pub(crate) async fn next_due(&self) -> Option<TimestampMs> {
        self.application.next_due(&self.tip).await.expect("the calendar can be read")
    }

    /// How many are due and wait for a price.
    pub(crate) async fn waiting(&self) -> u64 {
        let count = with_reader(&self.tip.state, &[], |state| Calendar::new(state).count(Queue::Waiting));
        count.await.expect("the state answers").expect("the calendar is there")
    }

    /// Creates schedules that are due within the next nine years, evenly spread. Answers with how many a second.
    pub(crate) async fn load(&mut self, count: u64) -> f64 {
        // Odd and large: neighbours in time were created far from each other.
        const STRIDE_S: u64 = 7_919;
        let begin = Instant::now();
        let mut left = count;
        while left > 0 {
            let now = left.min(LOAD_PER_BLOCK);
            let first = START.seconds() + 30 * DAY_S + self.loaded.wrapping_mul(STRIDE_S) % (8 * 365 * DAY_S);
            let tx = self.bulk(now, first, 311);
            self.make(tx).await;
            self.loaded += now;
            left -= now;
        }
        count as f64 / begin.elapsed().as_secs_f64()
    }

    /// A transaction that creates `count` schedules.
    pub(crate) fn bulk(&mut self, count: u64, first_s: u64, step_s: u64) -> Vec<RecoveredTransaction> {
        match self.kind {
            Kind::Cron => vec![orders::bulk(self.next_nonce(0), count, first_s, step_s)],
            Kind::Market => self.bids(count, first_s * 1_000, step_s * 1_000, BID),
            Kind::Signed => unreachable!("they have no due time"),
        }
    }

    /// A transaction that inserts `count` scheduled transactions.
    pub(crate) fn bids(
        &mut self,
        count: u64,
        first_ms: u64,
        step_ms: u64,
        bid: u64,
    ) -> Vec<RecoveredTransaction> {
        vec![orders::bulk_market(self.next_nonce(0), count, first_ms, step_ms, bid)]
    }

    /// Inserts scheduled transactions that are due at once, in a block of their own.
    pub(crate) async fn insert(&mut self, count: u64, due_ms: u64, bid: u64) {
        let orders = self.bids(count, due_ms, 0, bid);
        let output = self.commit(TimestampMs(self.now_ms() + 1), orders).await;
        let logs = output.receipts.iter().flat_map(|receipt| &receipt.logs);
        let inserted = logs.filter(|log| TransactionScheduledEvent::decode_log(log).is_ok()).count();
        assert_eq!(inserted as u64, count, "all of them are inserted");
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.tip.header.timestamp.0
    }

    /// Base fee of the last block.
    pub(crate) fn base_fee(&self) -> u64 {
        u64::try_from(self.tip.header.base_fee.0).expect("a price of this chain")
    }

    /// Governance changes a parameter.
    pub(crate) fn set_parameter(&mut self, parameter: Parameter, value: u64) -> Vec<RecoveredTransaction> {
        vec![orders::set_parameter(self.next_nonce(0), parameter, value)]
    }

    /// Transactions that create a schedule each.
    pub(crate) fn single_orders(&mut self, count: u64) -> Vec<RecoveredTransaction> {
        let at = self.now_s() + 20 * DAY_S;
        (0..count).map(|n| orders::single(self.next_nonce(0), at + n)).collect()
    }

    pub(crate) fn cancellations(&mut self, ids: &[U256]) -> Vec<RecoveredTransaction> {
        ids.iter().map(|id| orders::cancel(self.next_nonce(0), *id)).collect()
    }

    pub(crate) fn transfers(&mut self, count: u64) -> Vec<RecoveredTransaction> {
        (0..count).map(|_| orders::transfer(self.next_nonce(1))).collect()
    }

    /// A block a millisecond later; all its transactions pass. Answers with the ids of what they created.
    pub(crate) async fn make(&mut self, transactions: Vec<RecoveredTransaction>) -> Vec<U256> {
        let given = transactions.len();
        let time = TimestampMs(self.tip.header.timestamp.0 + 1);
        let output = self.commit(time, transactions).await;
        let users = output.receipts.iter().filter(|receipt| receipt.transaction_type < 0x70);
        assert_eq!(users.filter(|receipt| receipt.outcome.is_success()).count(), given, "all of them pass");
        let logs = output.receipts.iter().flat_map(|receipt| &receipt.logs);
        let created = logs
            .filter(|log| log.topics().first() == Some(&orders::ICronRegistry::JobScheduled::SIGNATURE_HASH));
        created.map(|log| log.topics()[1].into()).collect()
    }

    /// A block at a time. Answers with how many runs it had.
    pub(crate) async fn block_at(
        &mut self,
        time: TimestampMs,
        transactions: Vec<RecoveredTransaction>,
    ) -> usize {
        let output = self.commit(time, transactions).await;
        let runs = output.receipts.iter().filter(|receipt| receipt.transaction_type == RUN_TYPE);
        runs.inspect(|run| assert!(run.outcome.is_success(), "{:?}", run.outcome)).count()
    }

    /// A block with more candidates than it can hold. Answers with the gas of users and of runs.
    pub(crate) async fn full_block(
        &mut self,
        at_s: u64,
        transactions: Vec<RecoveredTransaction>,
    ) -> (u64, u64) {
        self.full_block_at(TimestampMs(at_s * 1_000), transactions).await
    }

    /// The same at a millisecond.
    pub(crate) async fn full_block_at(
        &mut self,
        at: TimestampMs,
        transactions: Vec<RecoveredTransaction>,
    ) -> (u64, u64) {
        let given = transactions.len() as u64;
        let output = self.commit(at, transactions).await;
        // What did not fit is thrown away, and its numbers are used again.
        self.nonces[1] -= given - output.block_body().count() as u64;
        let runs = output.receipts.iter().filter(|receipt| receipt.transaction_type == RUN_TYPE);
        let runs: u64 = runs.map(|run| run.gas_used.0).sum();
        (output.gas_used.0 - runs, runs)
    }

    pub(crate) async fn commit(
        &mut self,
        timestamp: TimestampMs,
        candidates: Vec<RecoveredTransaction>,
    ) -> Arc<almanac_exec::BlockOutput> {
        let (fee_recipient, consensus) = (FEE_RECIPIENT, Default::default());
        let proposal = Proposal {
            timestamp,
            fee_recipient,
            consensus,
            candidates,
            more: almanac_consensus::More::NONE,
            deadline: Deadline::NEVER,
        };
        let (begin, processor) = (Instant::now(), processor_time());
        let made = self.application.propose(&self.tip, proposal).await.expect("a block");
        let sealed = begin.elapsed();
        self.application.commit(&made).await.expect("it is durable");
        self.last = [sealed, begin.elapsed() - sealed];
        self.processor = processor_time().saturating_sub(processor);
        self.tip = made.tip;
        made.output
    }

    pub(crate) fn next_nonce(&mut self, who: usize) -> u64 {
        self.nonces[who] += 1;
        self.nonces[who] - 1
    }
}
