//! All doors in the same blocks, at random: called by people, by contracts that revert, and by runs of each other.
//!
//! `TestChain` checks of every block that verifiers agree with the proposer and that no money is lost, and each history
//! is replayed. Beside that nothing may be quarantined: nobody can cause a fault of the chain's own. What happened is
//! counted, so that the histories cannot become boring unnoticed.

mod act;
mod dice;

use crate::{
    keys::rotating,
    support::{contracts::*, native::*, *},
};
use act::{Act, draw};
use alloy_primitives::{Address, TxKind};
use almanac_exec::{BlockInput, BlockOutput, fault_in};
use almanac_primitives::{
    ConsensusContext, Genesis, TimestampMs, UserTransaction,
    addresses::{BURN, CRON_REGISTRY, LEDGER, SCHEDULE_SERVICE, SCHEDULED_TRANSACTIONS},
};
use dice::Dice;
use std::collections::BTreeMap;

const SEEDS: u64 = 10;
const BLOCKS: u64 = 50;
const PEOPLE: u64 = 4;

/// From which block on keys are replaced: before, Ethereum transactions are what people send.
const ROTATIONS_FROM: u64 = 25;

#[test]
fn all_doors_in_the_same_blocks_lose_and_break_nothing() {
    let mut seen = BTreeMap::new();
    for seed in 1..=SEEDS {
        History::new(seed).play(&mut seen);
    }
    let wanted = [
        "Cron Executed",
        "Cron Cancelled",
        "Callback Executed",
        "Market Executed",
        "Market Cancelled",
        "Signed Executed",
        "Signed Expired",
        "Signed Cancelled",
        "type 0x72",
        "type 0x4",
        "failed run",
        "failed transaction",
    ];
    let missing: Vec<_> = wanted.iter().filter(|what| !seen.contains_key(**what)).collect();
    assert!(missing.is_empty(), "never seen: {missing:?}; seen: {seen:?}");
}

/// One history. Half of them have narrow limits, at which schedules wait, expire and are swept.
struct History {
    seed: u64,
    dice: Dice,
    chain: TestChain,
    /// The keys of those who have replaced theirs.
    keys: BTreeMap<u64, EdPerson>,
}

impl History {
    fn new(seed: u64) -> Self {
        let narrow = [
            ("market_ready_max", 2),
            ("market_looks_max", 3),
            ("market_expiries_max", 1),
            ("cron_block_exhaustions_max", 1),
            ("ended_kept_blocks", 3),
            ("signed_expiries_max", 10),
        ];
        let narrow = narrow.into_iter().filter(|_| seed.is_multiple_of(2));
        let parameters = narrow.chain([("cron_interval_seconds_min", 1)]);
        let parameters = parameters.map(|(name, value)| (name.to_owned(), value)).collect();
        let chain = TestChain::from_genesis(&Genesis { parameters, ..genesis() });
        Self { seed, dice: Dice::new(seed), chain, keys: BTreeMap::new() }
    }

    fn play(mut self, seen: &mut BTreeMap<String, u64>) {
        for block in 0..BLOCKS {
            let body = self.body(block);
            let input = self.input();
            let produced = self.chain.produce_with(&input, body);
            count(&produced.output, seen, &format!("seed {}, block {block}", self.seed));
        }
        self.chain.replay();
    }

    /// A block some time later, sometimes after failed views.
    fn input(&mut self) -> BlockInput {
        let ms = self.dice.of(&[1, 100, 500, 1_000, 1_000, 3_000, 3_000, 9_000, 70_000]);
        let failed = self.dice.of(&[0, 0, 0, 1, 2, 5, 70]);
        let input = self.chain.input_at(TimestampMs(self.chain.head.timestamp.0 + ms));
        let before = input.parent.consensus;
        let consensus =
            ConsensusContext { view: before.view + 1 + failed, parent_view: before.view, ..before };
        BlockInput { consensus, ..input }
    }

    fn body(&mut self, block: u64) -> Vec<UserTransaction> {
        let mut nonces = BTreeMap::new();
        let mut body = Vec::new();
        for _ in 0..self.dice.below(6) {
            let n = self.dice.below(PEOPLE);
            let nonce = nonces.entry(n).or_insert_with(|| self.chain.nonce(person(n).address));
            let (transaction, used) = self.transaction(n, *nonce, block);
            *nonce += used;
            body.push(transaction);
        }
        body
    }

    /// A transaction of a person, and how many numbers it uses up.
    fn transaction(&mut self, n: u64, nonce: u64, block: u64) -> (UserTransaction, u64) {
        let (from, kind, has_other_key) = (person(n), self.dice.below(12), self.keys.contains_key(&n));
        match kind {
            0 if !has_other_key && block > ROTATIONS_FROM => {
                let key = ed_person(n);
                self.keys.insert(n, key);
                (rotating(from, nonce, &Key::from(key).encoded(), 1, &[key.into()]), 1)
            }
            1 if !has_other_key => {
                let authorization = authorize(from, nonce + 1, self.delegate(n));
                (sign(eip7702(nonce, COUNTER, vec![authorization], 300_000), from.secret), 2)
            }
            2..=5 => (self.batch(n, nonce), 1),
            _ if has_other_key => (self.batch(n, nonce), 1),
            _ => {
                let Act { to, value, input } = draw(&mut self.dice, &self.chain, from.address, 0);
                let gas = self.dice.of(&[2_000_000, 9_000_000]);
                let mut tx = eip1559(nonce, TxKind::Call(to), 0, input, gas);
                tx.value = value;
                (sign(tx, from.secret), 1)
            }
        }
    }

    /// A native transaction of one to four calls.
    fn batch(&mut self, n: u64, nonce: u64) -> UserTransaction {
        let from = person(n);
        let count = 1 + self.dice.below(4);
        let acts = (0..count).map(|_| draw(&mut self.dice, &self.chain, from.address, 0));
        let calls = acts.map(|Act { to, value, input }| {
            let mut call = native_call(to, 0, input);
            call.value = value;
            call
        });
        let mut tx = native(from.address, nonce, calls.collect());
        tx.gas_limit = 12_000_000;
        let key = self.keys.get(&n).map_or(from.into(), |key| Key::from(*key));
        sign_native(tx, &[key])
    }

    /// Whose code an account takes: a contract's, nobody's, a door's, a precompile's, its own.
    fn delegate(&mut self, n: u64) -> Address {
        let people = [0, 1, n].map(|n| person(n).address);
        let doors = [SCHEDULE_SERVICE, SCHEDULED_TRANSACTIONS, CRON_REGISTRY, LEDGER, BURN];
        let others = [FORWARDER, FORWARDER, Address::ZERO, Address::with_last_byte(2), DESTRUCTIBLE, CREATOR];
        self.dice.of(&[&people[..], &doors, &others].concat())
    }
}

/// Counts what happened in a block, in which no fault may be among it.
fn count(output: &BlockOutput, seen: &mut BTreeMap<String, u64>, place: &str) {
    let mut note = |what: String| *seen.entry(what).or_default() += 1;
    for event in &output.events {
        let told = format!("{:?}", event.event.what);
        assert!(!told.starts_with("Quarantined"), "{place}: {told}");
        let name = told.split_once("end: ").map_or(&*told, |(_, end)| end);
        let name = name.split([' ', '{', ',']).next().unwrap_or_default();
        note(format!("{} {name}", event.event.door.map_or_else(String::new, |door| format!("{door:?}"))));
    }
    for receipt in &output.receipts {
        let faults: Vec<_> = receipt.logs.iter().filter_map(fault_in).collect();
        assert!(faults.is_empty(), "{place}: {faults:?}");
        note(format!("type {:#x}", receipt.transaction_type));
        if !receipt.outcome.is_success() {
            let kind = if receipt.schedule_ref.is_some() { "run" } else { "transaction" };
            note(format!("failed {kind}"));
        }
    }
}
