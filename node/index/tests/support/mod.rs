//! Random chains, and a dull version of everything that the index answers.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part")]

pub mod schedules;

use alloy_primitives::{Address, B256, Bytes, Log, LogData, U256, keccak256};
use almanac_index::{Direction, Index, IndexConfig, Location, LogEntry, LogFilter, OpenError, Parties, Sent};
use almanac_primitives::{
    Block, Gas, GasPrice, Header, Lane, Outcome, Receipt, RunTransaction, ScheduleId, ScheduleRef,
    StateChange, StateDiff, StateKey, StateRead as _, TimestampMs, UserTransaction, Wei,
    run::PROLOGUE_TYPE,
    state::Meta,
    testing::{person, transfer},
};
use almanac_schedule::life::LifeEvent;
use proptest::{collection::vec, option, prelude::*};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::{Arc, OnceLock},
};

use schedules::{ACTS, Happened, SchedulePlan};

pub type State = BTreeMap<StateKey, Bytes>;

/// Few of each, so that things meet.
pub const KEYS: u8 = 11;
pub const PEOPLE: u8 = 4;
pub const TOPICS: u8 = 3;

pub fn key(n: u8) -> StateKey {
    match n % KEYS {
        0 => StateKey::Account(Address::repeat_byte(1)),
        1 => StateKey::Account(Address::repeat_byte(2)),
        2 => StateKey::Slot(Address::repeat_byte(1), U256::ZERO),
        3 => StateKey::Slot(Address::repeat_byte(1), U256::MAX),
        4 => StateKey::Code(B256::repeat_byte(4)),
        5 => StateKey::Body(ScheduleId(4)),
        6 => StateKey::Calendar(6),
        7 => StateKey::Meta(Meta::Genesis),
        8 => StateKey::Nonce(Address::repeat_byte(1), 8),
        9 => StateKey::NonceLog(9, 0),
        _ => StateKey::AccountKey(Address::repeat_byte(1)),
    }
}

pub fn value(n: u8) -> Bytes {
    vec![n; usize::from(n)].into()
}

pub fn someone(n: u8) -> Address {
    Address::repeat_byte(0xa0 + n % PEOPLE)
}

/// Of every other sender, what happens are runs.
fn run(plan: &TransactionPlan) -> Option<RunTransaction> {
    (plan.0 % 2 == 1).then(|| a_run(plan.0))
}

pub fn a_run(n: u8) -> RunTransaction {
    RunTransaction {
        schedule_ref: ScheduleRef { schedule: ScheduleId(n.into()), number: 3 },
        lane: Lane::Cron,
        from: someone(n),
        to: someone(n + 1),
        value: Wei::ZERO,
        input: value(n),
        gas_limit: Gas(50_000),
        gas_price: GasPrice(7),
    }
}

pub fn topic(n: u8) -> B256 {
    B256::repeat_byte(0xb0 + n % TOPICS)
}

/// A log as numbers: who, and which topics.
pub type LogPlan = (u8, Vec<u8>);
/// A transaction as numbers: from, to, logs.
pub type TransactionPlan = (u8, Option<u8>, Vec<LogPlan>);

/// A block as numbers.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    pub writes: Vec<(u8, Option<u8>)>,
    pub transactions: Vec<TransactionPlan>,
    pub bodies: u8,
    pub schedules: Vec<SchedulePlan>,
}

pub fn any_plan() -> impl Strategy<Value = Plan> {
    let log = (0..PEOPLE, vec(0..TOPICS, 0..=4));
    let transaction = (0..PEOPLE, option::of(0..PEOPLE), vec(log, 0..4));
    let writes = vec((0..KEYS, option::of(0..9u8)), 0..6);
    let schedules = vec((0..4u8, 0..ACTS, 0..8u8), 0..5);
    (writes, vec(transaction, 0..4), 0..3u8, schedules).prop_map(
        |(writes, transactions, bodies, schedules)| Plan { writes, transactions, bodies, schedules },
    )
}

pub fn any_filter(height_max: u64) -> impl Strategy<Value = LogFilter> {
    let topics = || vec((0..TOPICS).prop_map(topic), 0..3);
    let range = (0..=height_max, 0..=height_max);
    (range, vec((0..PEOPLE).prop_map(someone), 0..3), [topics(), topics(), topics(), topics()])
        .prop_map(|((from, to), addresses, topics)| LogFilter { from, to, addresses, topics })
}

/// A block with what the node hands over beside it.
#[derive(Clone, Debug)]
pub struct Fed {
    pub block: Arc<Block>,
    pub receipts: Vec<Receipt>,
    pub parties: Vec<Parties>,
    pub diff: StateDiff,
    pub schedules: Vec<Happened>,
}

impl Fed {
    pub fn events(&self) -> Vec<LifeEvent> {
        self.schedules.iter().flat_map(Happened::events).collect()
    }
}

/// A chain that remembers everything, in the dullest way.
#[derive(Clone, Debug)]
pub struct Chain {
    pub genesis: Header,
    pub fed: Vec<Fed>,
    /// The whole state after each block.
    pub states: Vec<State>,
    /// Distinguishes blocks of different branches.
    salt: u64,
}

impl Chain {
    pub fn new() -> Self {
        let state = State::from([(key(0), value(9)), (key(4), value(0))]);
        Self { genesis: Header::default(), fed: Vec::new(), states: vec![state], salt: 0 }
    }

    pub fn height(&self) -> u64 {
        self.fed.len() as u64
    }

    pub fn grow(&mut self, plan: &Plan) -> &Fed {
        self.salt += 1;
        let number = self.height() + 1;
        let parent_hash = self.fed.last().map_or(self.genesis.hash(), |fed| fed.block.hash());
        let timestamp = TimestampMs(1_000 * number + self.salt);
        let header = Header { number, parent_hash, timestamp, ..Header::default() };
        let transactions = (0..plan.bodies).map(signed).collect();
        let block = Arc::new(Block { header, transactions });
        let receipts = (0u64..).zip(&plan.transactions);
        let mut receipts: Vec<_> = receipts.map(|(index, plan)| receipt(&block, index, plan)).collect();
        let parties = plan.transactions.iter();
        let parties = parties
            .map(|plan| Parties { from: someone(plan.0), to: plan.1.map(someone), run: run(plan) })
            .collect();
        let before = self.states.last().unwrap();
        let mut after = write(before, &plan.writes);
        let schedules = schedules::live(self, &plan.schedules, &mut receipts, &mut after);
        let diff = difference(before, &after);
        self.states.push(after);
        self.fed.push(Fed { block, receipts, parties, diff, schedules });
        self.fed.last().unwrap()
    }

    pub fn revert_to(&mut self, height: u64) {
        self.fed.truncate(height as usize);
        self.states.truncate(height as usize + 1);
    }

    pub fn open(&self, path: &Path, config: IndexConfig) -> Result<Index, OpenError> {
        Index::open(path, config, self.genesis.clone(), self.states[0].clone())
    }

    pub fn in_memory(&self, config: IndexConfig) -> Index {
        Index::in_memory(config, self.genesis.clone(), self.states[0].clone()).unwrap()
    }

    /// Feeds all blocks that the index does not have yet.
    pub fn feed(&self, index: &Index) {
        for fed in &self.fed[index.height() as usize..] {
            apply(index, fed).unwrap();
        }
    }

    /// A new index in memory with all blocks.
    pub fn rebuilt(&self, config: IndexConfig) -> Index {
        let index = self.in_memory(config);
        self.feed(&index);
        index
    }

    pub fn logs(&self, filter: &LogFilter) -> Vec<LogEntry> {
        let mut found = Vec::new();
        for fed in &self.fed {
            let number = fed.block.header.number;
            let mut log_index = 0;
            for (index, receipt) in fed.receipts.iter().enumerate() {
                for log in &receipt.logs {
                    if number >= filter.from && number <= filter.to && is_asked_for(filter, log) {
                        found.push(LogEntry {
                            location: Location { number, index },
                            unseen: unseen(&fed.receipts),
                            transaction_hash: receipt.transaction_hash,
                            block_hash: fed.block.hash(),
                            timestamp: fed.block.header.timestamp,
                            log_index,
                            log: log.clone(),
                        });
                    }
                    log_index += 1;
                }
            }
        }
        found
    }

    pub fn transactions_of(
        &self,
        sender: Address,
        from: Location,
        to: Location,
        order: Direction,
    ) -> Vec<Sent> {
        self.transactions(from, to, order, |_, parties| parties.from == sender)
    }

    pub fn involving(&self, address: Address, from: Location, to: Location, order: Direction) -> Vec<Sent> {
        self.transactions(from, to, order, |receipt, parties| {
            [Some(parties.from), parties.to, receipt.contract_address].contains(&Some(address))
        })
    }

    pub fn creation_of(&self, contract: Address) -> Option<Sent> {
        let (from, to) = (Location::first_of(0), Location::last_of(u64::MAX));
        let made = |receipt: &Receipt, _: &Parties| receipt.contract_address == Some(contract);
        self.transactions(from, to, Direction::Ascending, made).first().copied()
    }

    /// Nobody has a part in a prologue.
    fn transactions(
        &self,
        from: Location,
        to: Location,
        order: Direction,
        is_asked_for: impl Fn(&Receipt, &Parties) -> bool,
    ) -> Vec<Sent> {
        let mut found = Vec::new();
        for fed in &self.fed {
            for (index, (receipt, parties)) in fed.receipts.iter().zip(&fed.parties).enumerate() {
                let location = Location { number: fed.block.header.number, index };
                let is_wanted = receipt.transaction_type != PROLOGUE_TYPE && is_asked_for(receipt, parties);
                if is_wanted && location >= from && location <= to {
                    found.push(Sent { location, hash: receipt.transaction_hash });
                }
            }
        }
        if order == Direction::Descending {
            found.reverse();
        }
        found
    }

    /// Compares every block and every way to find it.
    pub fn check_blocks(&self, index: &Index) {
        assert_eq!(index.height(), self.height());
        assert_eq!(index.block(0).unwrap().unwrap().hash, self.genesis.hash());
        for fed in &self.fed {
            let number = fed.block.header.number;
            let found = index.block(number).unwrap().expect("every block is found");
            assert_eq!((&found.block, found.hash), (&fed.block, fed.block.hash()));
            assert_eq!((&found.receipts, &found.parties), (&fed.receipts, &fed.parties));
            assert_eq!(found.events, fed.events());
            assert_eq!(index.block_by_hash(found.hash).unwrap(), Some(found.clone()));
            for (position, receipt) in fed.receipts.iter().enumerate() {
                let location = Location { number, index: position };
                let by_hash = index.transaction(receipt.transaction_hash).unwrap();
                assert_eq!(by_hash, Some((location, found.clone())));
            }
        }
        assert_eq!(index.tip(), index.block(self.height()).unwrap().unwrap());
        assert_eq!(index.block(self.height() + 1).unwrap(), None);
    }

    /// Compares every key at every height that is kept.
    pub fn check_states(&self, index: &Index) {
        for (height, expected) in (0u64..).zip(&self.states) {
            let Some(state) = index.state_at(height) else { continue };
            for n in 0..KEYS {
                let found = state.read(key(n)).unwrap();
                assert_eq!(found.as_ref(), expected.get(&key(n)), "{:?} at {height}", key(n));
            }
        }
        let is_account = |key: &StateKey| matches!(key, StateKey::Account(_) | StateKey::Slot(..));
        let tip = self.states.last().unwrap().iter().filter(|(key, _)| is_account(key));
        let tip: Vec<_> = tip.map(|(key, value)| (*key, value.clone())).collect();
        assert_eq!(index.tip_accounts().unwrap(), tip);
        assert!(index.state_at(self.height()).is_some(), "the tip is always kept");
        assert!(index.state_at(self.height() + 1).is_none());
    }
}

pub fn apply(index: &Index, fed: &Fed) -> Result<(), almanac_index::ApplyError> {
    index.apply(&fed.block, &fed.receipts, fed.parties.clone(), &fed.events(), &fed.diff)
}

/// The buffer is small, so that rows go to their final place, and are cleaned up there, while a test runs.
pub fn keeping(history_depth: u64) -> IndexConfig {
    IndexConfig { history_depth, cache_bytes: 4 << 20, buffer_bytes: 32 << 10, ..IndexConfig::default() }
}

/// Signing takes long; what the transactions say does not matter here.
fn signed(n: u8) -> UserTransaction {
    static SIGNED: OnceLock<Vec<UserTransaction>> = OnceLock::new();
    let signed =
        SIGNED.get_or_init(|| (0..3).map(|nonce| transfer(person(1), nonce, person(2).address, 5)).collect());
    signed[usize::from(n) % signed.len()].clone()
}

fn receipt(block: &Block, index: u64, (from, to, logs): &TransactionPlan) -> Receipt {
    let logs: Vec<Log> = logs
        .iter()
        .map(|(who, topics)| {
            let topics = topics.iter().map(|n| topic(*n)).collect();
            Log { address: someone(*who), data: LogData::new_unchecked(topics, value(*who)) }
        })
        .collect();
    Receipt {
        // In every other block the first is a prologue, with logs or without.
        transaction_type: if index == 0 && block.header.number.is_multiple_of(2) { PROLOGUE_TYPE } else { 2 },
        transaction_hash: keccak256([block.hash().as_slice(), &index.to_be_bytes()].concat()),
        outcome: Outcome::Success,
        gas_used: Gas(21_000),
        cumulative_gas_used: Gas(21_000 * (index + 1)),
        effective_gas_price: GasPrice(1),
        // Not every creation succeeds.
        contract_address: (to.is_none() && index != 1).then(|| someone(from + 2)),
        failed_call: None,
        schedule_ref: None,
        logs,
    }
}

/// The state after some writes.
fn write(before: &State, writes: &[(u8, Option<u8>)]) -> State {
    let mut after = before.clone();
    for (n, new) in writes {
        match new {
            Some(new) => after.insert(key(*n), value(*new)),
            None => after.remove(&key(*n)),
        };
    }
    after
}

fn difference(before: &State, after: &State) -> StateDiff {
    let keys: BTreeSet<_> = before.keys().chain(after.keys()).copied().collect();
    let change = |key| StateChange { key, old: before.get(&key).cloned(), new: after.get(&key).cloned() };
    StateDiff::new(keys.into_iter().map(change).collect())
}

/// Written out, not shared with the index.
fn is_asked_for(filter: &LogFilter, log: &Log) -> bool {
    if !filter.addresses.is_empty() && !filter.addresses.contains(&log.address) {
        return false;
    }
    for (position, allowed) in filter.topics.iter().enumerate() {
        if allowed.is_empty() {
            continue;
        }
        match log.topics().get(position) {
            None => return false,
            Some(topic) if !allowed.contains(topic) => return false,
            Some(_) => {}
        }
    }
    true
}

/// A prologue that logged nothing is not shown.
fn unseen(receipts: &[Receipt]) -> usize {
    match receipts {
        [first, ..] if first.transaction_type == PROLOGUE_TYPE && first.logs.is_empty() => 1,
        _ => 0,
    }
}
