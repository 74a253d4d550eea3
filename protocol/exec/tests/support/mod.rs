//! A chain in a test: every block is built, verified, executed twice and checked for lost money.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]

pub mod artifacts;
pub mod callbacks;
pub mod cron;
pub mod ledger;
pub mod market;
pub mod runs;
pub mod signed;

pub use almanac_primitives::testing::*;

use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use almanac_exec::{
    BlockBody, BlockInput, BlockOutput, Call, CallResult, Candidates, Rules, SimulateError, TransactionError,
    check_header, execute, recover_all, simulate,
};
use almanac_primitives::{
    Account, Block, Gas, GasPrice, Genesis, Header, RunTransaction, StateCommitment, StateDiff, StateKey,
    StateRead, StateReadError, TimestampMs, UserTransaction,
    addresses::UNBUILT_ACCOUNTS,
    state::{decode_slot, encode_slot},
};
use almanac_schedule::{Agenda, CalendarAgenda, Record, testing as schedules};
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

/// The byte of code of a system account: STOP, or INVALID where nothing answers yet.
pub fn system_code(address: Address) -> u8 {
    if UNBUILT_ACCOUNTS.contains(&address) { 0xfe } else { 0x00 }
}

/// State as a plain sorted map: the dullest implementation of the trait that execution reads through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MapState(pub BTreeMap<StateKey, Bytes>);

impl StateRead for MapState {
    fn read(&self, key: StateKey) -> Result<Option<Bytes>, StateReadError> {
        Ok(self.0.get(&key).cloned())
    }
}

impl MapState {
    pub fn apply(&mut self, diff: &StateDiff) {
        for change in diff.changes() {
            let old = match &change.new {
                Some(new) => self.0.insert(change.key, new.clone()),
                None => self.0.remove(&change.key),
            };
            assert_eq!(old, change.old, "the diff knows what was there: {:?}", change.key);
        }
    }

    /// Commits to the whole content; slow and obvious.
    pub fn commitment(&self) -> StateCommitment {
        let mut bytes = Vec::new();
        for (key, value) in &self.0 {
            bytes.extend_from_slice(key.hashed().as_slice());
            bytes.extend_from_slice(&(value.len() as u64).to_be_bytes());
            bytes.extend_from_slice(value);
        }
        StateCommitment { state_root: keccak256(bytes), ops_end: self.0.len() as u64, ..Default::default() }
    }

    pub fn account(&self, address: Address) -> Account {
        self.0
            .get(&StateKey::Account(address))
            .map_or_else(Account::default, |bytes| Account::decode(bytes).unwrap())
    }

    pub fn slot(&self, address: Address, slot: u64) -> U256 {
        self.0
            .get(&StateKey::Slot(address, U256::from(slot)))
            .map_or(U256::ZERO, |bytes| decode_slot(bytes).unwrap())
    }

    /// A slot that is named after an address.
    pub fn slot_of(&self, address: Address, name: Address) -> U256 {
        let key = StateKey::Slot(address, U256::from_be_slice(name.as_slice()));
        self.0.get(&key).map_or(U256::ZERO, |bytes| decode_slot(bytes).unwrap())
    }

    pub fn set_slot(&mut self, address: Address, slot: u64, value: U256) {
        let key = StateKey::Slot(address, U256::from(slot));
        match encode_slot(value) {
            Some(bytes) => self.0.insert(key, bytes),
            None => self.0.remove(&key),
        };
    }

    pub fn total(&self) -> U256 {
        self.0
            .iter()
            .filter(|(key, _)| matches!(key, StateKey::Account(_)))
            .map(|(_, bytes)| Account::decode(bytes).unwrap().balance)
            .sum()
    }
}

/// Counts what is read of a state.
pub struct Counting<'s> {
    pub state: &'s MapState,
    pub reads: AtomicUsize,
}

impl StateRead for Counting<'_> {
    fn read(&self, key: StateKey) -> Result<Option<Bytes>, StateReadError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.state.read(key)
    }
}

pub fn rules() -> Rules {
    Rules { chain: CHAIN, gas_max: Gas(30_000_000), is_developer: false }
}

/// A chain with everything checked at every block.
pub struct TestChain {
    pub genesis_state: MapState,
    pub genesis_header: Header,
    pub state: MapState,
    pub head: Header,
    pub blocks: Vec<Block>,
    pub outputs: Vec<BlockOutput>,
    pub issued: U256,
    pub burned: U256,
    pub agenda: Arc<dyn Agenda>,
    /// Schedules that were written into the state, and before which block.
    planted: Vec<(usize, Vec<Record>)>,
}

impl TestChain {
    pub fn new() -> Self {
        Self::from_genesis(&genesis())
    }

    pub fn from_genesis(genesis: &Genesis) -> Self {
        let state = MapState(genesis.state().unwrap());
        let head = genesis.header(state.commitment()).unwrap();
        Self {
            genesis_state: state.clone(),
            genesis_header: head.clone(),
            issued: state.total(),
            state,
            head,
            blocks: Vec::new(),
            outputs: Vec::new(),
            burned: U256::ZERO,
            agenda: Arc::new(CalendarAgenda),
            planted: Vec::new(),
        }
    }

    /// Writes schedules into the state, with their money.
    pub fn plant(&mut self, records: Vec<Record>) {
        self.issued += records.iter().map(|record| record.escrow.0).sum::<U256>();
        self.state.0.extend(schedules::plant(&self.state, &records));
        ledger::check(&self.state);
        self.planted.push((self.blocks.len(), records));
    }

    /// Writes single runs into the state that are due in the next block.
    pub fn plant_runs(&mut self, runs: &[RunTransaction]) {
        let now = self.input().timestamp;
        self.plant(runs.iter().map(|run| schedules::record(now, run)).collect());
    }

    /// What the next block is made from, a second after the last.
    pub fn input(&self) -> BlockInput {
        self.input_at(TimestampMs(self.head.timestamp.0 + 1_000))
    }

    pub fn input_at(&self, timestamp: TimestampMs) -> BlockInput {
        BlockInput {
            chain: CHAIN,
            parent: self.head.clone(),
            parent_hash: self.head.hash(),
            timestamp,
            fee_recipient: FEE_RECIPIENT,
            consensus: Default::default(),
        }
    }

    /// Makes a block of the candidates that pass, and answers with its output and those that did not.
    pub fn produce(&mut self, candidates: Vec<UserTransaction>) -> Produced {
        let input = self.input();
        self.produce_with(&input, candidates)
    }

    pub fn produce_with(&mut self, input: &BlockInput, candidates: Vec<UserTransaction>) -> Produced {
        let mut source = Candidates::new(candidates.into_iter().map(recovered).collect());
        let built = execute(&self.state, &*self.agenda, input, &mut source).unwrap();
        let mut next = self.state.clone();
        next.apply(&built.diff);
        let block = built.block(next.commitment());

        // Everyone else gets bytes, and must come to the same result from them.
        let received = Block::decode(&block.encode()).unwrap();
        assert_eq!(received, block);
        for _ in 0..2 {
            assert_eq!(self.verify(&received).unwrap(), built, "building and verifying give the same output");
        }
        self.accept(block, built.clone(), next);
        Produced { output: built, refused: source.refusals().to_vec() }
    }

    /// Makes a block without the checks of others, for histories that are long.
    pub fn produce_once(&mut self, input: &BlockInput, candidates: Vec<UserTransaction>) -> Produced {
        let mut source = Candidates::new(candidates.into_iter().map(recovered).collect());
        let built = execute(&self.state, &*self.agenda, input, &mut source).unwrap();
        let mut next = std::mem::take(&mut self.state);
        next.apply(&built.diff);
        self.accept(built.block(StateCommitment::default()), built.clone(), next);
        Produced { output: built, refused: source.refusals().to_vec() }
    }

    /// Executes a block on the present state, as a validator does.
    pub fn verify(&self, block: &Block) -> Result<BlockOutput, String> {
        let input = BlockInput::of_block(block, self.head.clone(), CHAIN).map_err(|e| e.to_string())?;
        let rules = Rules::read(CHAIN, &self.state).unwrap();
        let senders = recover_all(&block.transactions, &rules).map_err(|(i, e)| format!("{i}: {e}"))?;
        let output = execute(&self.state, &*self.agenda, &input, &mut BlockBody::new(senders))
            .map_err(|error| error.to_string())?;
        let mut next = self.state.clone();
        next.apply(&output.diff);
        let mut computed = output.header(next.commitment());
        computed.parent_hash = self.head.hash();
        check_header(&block.header, &computed).map_err(|error| error.to_string())?;
        Ok(output)
    }

    fn accept(&mut self, block: Block, output: BlockOutput, next: MapState) {
        self.burned += output.burned.0;
        self.state = next;
        assert_eq!(self.state.total() + self.burned, self.issued, "value is conserved");
        ledger::check(&self.state);
        assert_eq!(output.transactions.len(), output.receipts.len());
        for (executed, receipt) in output.transactions.iter().zip(&output.receipts) {
            assert_eq!(executed.hash(), receipt.transaction_hash);
        }
        self.head = block.header.clone();
        self.blocks.push(block);
        self.outputs.push(output);
    }

    /// Executes all blocks again from genesis and compares every root.
    pub fn replay(&self) {
        let mut chain = Self {
            genesis_state: self.genesis_state.clone(),
            genesis_header: self.genesis_header.clone(),
            state: self.genesis_state.clone(),
            head: self.genesis_header.clone(),
            blocks: Vec::new(),
            outputs: Vec::new(),
            issued: self.genesis_state.total(),
            burned: U256::ZERO,
            agenda: self.agenda.clone(),
            planted: Vec::new(),
        };
        for (height, (block, expected)) in self.blocks.iter().zip(&self.outputs).enumerate() {
            for (_, records) in self.planted.iter().filter(|(before, _)| *before == height) {
                chain.plant(records.clone());
            }
            let output = chain.verify(block).unwrap();
            assert_eq!(&output, expected);
            let mut next = chain.state.clone();
            next.apply(&output.diff);
            chain.accept(block.clone(), output, next);
        }
        assert_eq!(chain.state, self.state, "replay from genesis gives the same state");
    }

    pub fn nonce(&self, address: Address) -> u64 {
        self.state.account(address).nonce
    }

    pub fn balance(&self, address: Address) -> U256 {
        self.state.account(address).balance
    }

    pub fn call(&self, from: Address, to: Address, input: impl Into<Bytes>) -> CallResult {
        self.try_call(from, to, input).unwrap()
    }

    pub fn try_call(
        &self,
        from: Address,
        to: Address,
        input: impl Into<Bytes>,
    ) -> Result<CallResult, SimulateError> {
        let call = Call {
            from,
            to: Some(to),
            value: U256::ZERO,
            input: input.into(),
            gas_limit: Gas(10_000_000),
            ..Call::default()
        };
        simulate(&self.state, &self.input(), call)
    }
}

/// What became of candidates.
pub struct Produced {
    pub output: BlockOutput,
    pub refused: Vec<(B256, TransactionError)>,
}

impl Produced {
    /// The receipt of the n-th user transaction of the body.
    pub fn receipt(&self, n: usize) -> &almanac_primitives::Receipt {
        self.output
            .receipts
            .iter()
            .filter(|receipt| !matches!(receipt.transaction_type, 0x70 | 0x71))
            .nth(n)
            .unwrap()
    }
}

pub fn base_fee(output: &BlockOutput) -> GasPrice {
    output.environment.base_fee
}
