//! Random operations on the pool and on its dull version: they must never differ.

use crate::{
    dull::{DullPool, cost},
    signing::{Draft, Signer, account},
};
use alloy_primitives::{Address, TxHash, U256};
use almanac_mempool::{Insertion, Pool, PoolConfig, PoolError, Readiness, SenderState};
use almanac_primitives::{DurationMs, GasPrice, RecoveredTransaction};
use proptest::{
    prelude::*,
    sample::Index,
    test_runner::{Config, TestRunner},
};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Small enough that every bound is hit all the time.
const CONFIG: PoolConfig = PoolConfig {
    sender_count_max: 3,
    delegated_count_max: 2,
    orderless_sender_count_max: 3,
    vouched_count_free: 2,
    count_max: 6,
    bytes_max: 1_300,
    parked_sender_count_max: 2,
    parked_count_max: 4,
    parked_bytes_max: 600,
    wide_gas: 1,
    wide_count_max: 2,
    parked_time_max: DurationMs(5),
    replacement_bump_percent: 10,
};
const SIGNERS: u64 = 5;
const NONCE_MAX: u64 = 8;

#[derive(Clone, Debug)]
enum Op {
    /// The draft's number counts from one below the account's.
    Insert(u64, Draft),
    /// The n-th transaction ever made, once more.
    InsertAgain(Index),
    /// A dearer or not quite dearer version of a pending one.
    Replace(Index, u128),
    Block {
        passed_ms: u64,
        base_fee: u128,
        changed: Vec<(u64, SenderState)>,
    },
    /// Transactions made before come back to accounts that stand this far below them, or above.
    Reinject(Vec<(Index, i8, u64)>),
    Remove(Index),
    /// A block has an orderless transaction with the pair of a pending one, which need not be that one.
    Use(Index),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    prop::collection::vec(op(), 1..80)
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        24 => (0..SIGNERS, drafts()).prop_map(|(signer, draft)| Op::Insert(signer, draft)),
        1 => any::<Index>().prop_map(Op::InsertAgain),
        3 => (any::<Index>(), 0..4u128).prop_map(|(which, rise)| Op::Replace(which, rise)),
        4 => (prop_oneof![12 => 0..4u64, 1 => 400..900u64], 0..24u128, prop::collection::vec((0..SIGNERS, accounts()), 0..3))
            .prop_map(|(passed_ms, base_fee, changed)| Op::Block { passed_ms, base_fee, changed }),
        2 => prop::collection::vec((any::<Index>(), -1..3i8, 0..300u64), 1..4).prop_map(Op::Reinject),
        1 => any::<Index>().prop_map(Op::Remove),
        1 => any::<Index>().prop_map(Op::Use),
    ]
}

fn drafts() -> impl Strategy<Value = Draft> {
    let input_len = prop_oneof![8 => Just(0), 2 => Just(150), 1 => Just(600), 1 => Just(1_400)];
    (
        prop_oneof![3 => 0..3u64, 1 => 3..6u64],
        1..20u128,
        prop::option::weighted(0.8, 0..24u128),
        1..3u64,
        0..20u64,
        input_len,
        prop::option::weighted(0.15, 1..4u64),
    )
        .prop_map(|(nonce, fee_cap, priority_fee, gas, value, input_len, orderless)| Draft {
            nonce,
            fee_cap,
            priority_fee,
            gas,
            value: U256::from(value),
            input_len,
            orderless,
        })
}

fn accounts() -> impl Strategy<Value = SenderState> {
    (0..NONCE_MAX / 2, 0..500u64, prop::bool::weighted(0.1))
        .prop_map(|(nonce, balance, is_delegated)| SenderState { is_delegated, ..account(nonce, balance) })
}

/// What happened over the whole run, so that a run in which nothing happens cannot pass.
#[derive(Debug, Default)]
struct Seen(BTreeMap<&'static str, usize>);

impl Seen {
    fn note(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }

    fn note_outcome(&mut self, outcome: &Result<Insertion, PoolError>, is_orderless: bool) {
        match outcome {
            Ok(insertion) if insertion.readiness == Readiness::Ready && is_orderless => {
                self.note("orderless");
            }
            Ok(insertion) => {
                self.note(if insertion.readiness == Readiness::Ready { "ready" } else { "parked" });
                if insertion.replaced.is_some() {
                    self.note("replaced");
                }
                match insertion.evicted.len() {
                    0 => {}
                    1 => self.note("evicted one"),
                    _ => self.note("evicted several"),
                }
            }
            Err(PoolError::AlreadyKnown { .. }) => self.note("already known"),
            Err(PoolError::NonceTooLow { .. }) => self.note("nonce too low"),
            Err(PoolError::TooLarge { .. }) => self.note("too large"),
            Err(PoolError::SenderFull { .. }) => self.note("sender full"),
            Err(PoolError::ReplacementUnderpriced { .. }) => self.note("replacement underpriced"),
            Err(PoolError::InsufficientFunds { .. }) => self.note("insufficient funds"),
            Err(PoolError::WideFull { .. }) => self.note("wide full"),
            // Nobody pays for others here.
            Err(PoolError::PayerFull { .. }) => self.note("payer full"),
            Err(PoolError::SenderParkedFull { .. }) => self.note("sender parked full"),
            Err(PoolError::ParkedFull { .. }) => self.note("parked full"),
            Err(PoolError::PoolFull { .. }) => self.note("pool full"),
            Err(PoolError::BehindCheapest { .. }) => self.note("behind cheapest"),
        }
    }
}

const EXPECTED: [&str; 29] = [
    "orderless",
    "orderless expired",
    "orderless used",
    "orderless beside sequence numbers",
    "wide full",
    "paid too little",
    "insufficient funds",
    "sender parked full",
    "parked full",
    "expired",
    "ready",
    "parked",
    "replaced",
    "evicted one",
    "evicted several",
    "crowded out",
    "already known",
    "nonce too low",
    "too large",
    "sender full",
    "replacement underpriced",
    "pool full",
    "behind cheapest",
    "promoted",
    "demoted",
    "reinjected",
    "reinjection refused",
    "removed",
    "left with a block",
];

/// Signing is the slow part, and the drafts are few.
#[derive(Default)]
struct Signatures {
    signed: HashMap<(u64, Draft), RecoveredTransaction>,
    drafts: HashMap<TxHash, (u64, Draft)>,
}

impl Signatures {
    fn sign(&mut self, signer: u64, draft: Draft) -> RecoveredTransaction {
        let tx = self.signed.entry((signer, draft)).or_insert_with(|| Signer(signer).sign(draft));
        self.drafts.insert(tx.hash(), (signer, draft));
        tx.clone()
    }
}

/// Both pools, and the chain that they follow.
struct Pair<'a> {
    clever: Pool,
    dull: DullPool,
    addresses: Vec<Address>,
    accounts: BTreeMap<Address, SenderState>,
    made: Vec<RecoveredTransaction>,
    signatures: &'a RefCell<Signatures>,
    seen: &'a RefCell<Seen>,
}

impl<'a> Pair<'a> {
    fn new(signatures: &'a RefCell<Signatures>, seen: &'a RefCell<Seen>, addresses: &[Address]) -> Self {
        Self {
            clever: Pool::new(CONFIG, GasPrice(5)),
            dull: DullPool::new(CONFIG, 5),
            addresses: addresses.to_vec(),
            accounts: addresses.iter().map(|address| (*address, account(0, 300))).collect(),
            made: Vec::new(),
            signatures,
            seen,
        }
    }

    fn apply(&mut self, op: &Op) {
        let (held_before, ready_before) = (self.held(), self.dull.ready());
        match op {
            Op::Insert(signer, draft) => {
                let account = self.accounts[&self.addresses[*signer as usize]];
                let below = if draft.orderless.is_some() { 0 } else { account.nonce };
                let nonce = (below + draft.nonce).saturating_sub(1);
                self.insert_new(*signer, Draft { nonce, ..*draft });
            }
            Op::InsertAgain(which) if !self.made.is_empty() => {
                let tx = which.get(&self.made).clone();
                self.insert(&tx);
            }
            Op::Replace(which, rise) if !self.dull.held.is_empty() => {
                let old = which.get(&self.dull.held).hash();
                let (signer, draft) = self.signatures.borrow().drafts[&old];
                let priority_fee = draft.priority_fee.map(|fee| fee + rise);
                self.insert_new(signer, Draft { fee_cap: draft.fee_cap + rise, priority_fee, ..draft });
            }
            Op::Block { passed_ms, base_fee, changed } => self.block(*passed_ms, *base_fee, changed),
            Op::Reinject(txs) if !self.made.is_empty() => self.reinject(txs),
            Op::Remove(which) if !self.dull.held.is_empty() => {
                let hash = which.get(&self.dull.held).hash();
                assert_eq!(self.clever.remove(hash), self.dull.remove(hash));
                self.seen.borrow_mut().note("removed");
            }
            Op::Use(which) if !self.dull.held.is_empty() => {
                let used = which.get(&self.dull.held).clone();
                if used.transaction().is_orderless() {
                    let pair = (used.sender(), used.transaction().nonce());
                    self.clever.use_nonces([pair]);
                    self.dull.use_nonce(pair.0, pair.1);
                    self.seen.borrow_mut().note("orderless used");
                }
            }
            Op::InsertAgain(_) | Op::Replace(..) | Op::Reinject(_) | Op::Remove(_) | Op::Use(_) => {}
        }
        if matches!(op, Op::Block { .. }) && self.dull.held.len() < held_before.len() {
            self.seen.borrow_mut().note("left with a block");
        }
        self.note_moves(&held_before, &ready_before);
    }

    fn insert_new(&mut self, signer: u64, draft: Draft) {
        let tx = self.signatures.borrow_mut().sign(signer, draft);
        self.made.push(tx.clone());
        self.insert(&tx);
    }

    fn insert(&mut self, tx: &RecoveredTransaction) {
        let sender = self.accounts[&tx.sender()];
        let is_full = self.clever.pending_of(tx.sender()).count() == CONFIG.sender_count_max;
        let ready_before = self.dull.ready();
        let checked =
            self.clever.clone().check(tx.transaction(), tx.sender(), sender, SenderState::default());
        let outcome = self.clever.insert(tx.clone(), sender);
        assert_eq!(checked, outcome.clone().map(drop), "a check says what inserting says");
        self.check_promises(tx, &outcome, &ready_before);
        assert_eq!(outcome, self.dull.insert(tx, sender));
        self.seen.borrow_mut().note_outcome(&outcome, tx.transaction().is_orderless());
        if is_full && outcome.is_ok_and(|insertion| insertion.replaced.is_none()) {
            self.seen.borrow_mut().note("crowded out");
        }
    }

    /// What the pool promises, whatever its rules are: a ready transaction leaves only for a ready one that pays
    /// more, and one that pays more than some other comes in.
    fn check_promises(
        &self,
        tx: &RecoveredTransaction,
        outcome: &Result<Insertion, PoolError>,
        ready_before: &BTreeSet<TxHash>,
    ) {
        let price = |tx: &RecoveredTransaction| {
            let transaction = tx.transaction();
            let tip = transaction.tip_at(GasPrice(self.dull.base_fee));
            (tip, if tip.is_none() { transaction.fee_cap() } else { GasPrice(0) })
        };
        let stands_for_many = tx.transaction().is_orderless()
            && self.clever.orderless_of(tx.sender()).count() >= CONFIG.vouched_count_free;
        let of_hash = |hash: &TxHash| self.made.iter().find(|made| made.hash() == *hash).unwrap();
        match outcome {
            Ok(insertion) => {
                let mut others = insertion.evicted.iter().filter(|hash| ready_before.contains(*hash));
                let is_ready = insertion.readiness == Readiness::Ready;
                assert!(
                    others.all(|hash| is_ready || of_hash(hash).sender() == tx.sender()),
                    "ready for parked"
                );
            }
            // Where neither bytes nor places for wide ones are what is short.
            Err(PoolError::PoolFull { .. })
                if tx.transaction().gas_limit() <= CONFIG.wide_gas
                    && !stands_for_many
                    && self.clever.bytes() + tx.transaction().encoded().len() <= CONFIG.bytes_max =>
            {
                assert_eq!(self.clever.parked_count(), 0, "a ready one displaces parked ones");
                let cheapest = ready_before.iter().map(|hash| price(of_hash(hash))).min();
                assert!(cheapest.is_some_and(|cheapest| price(tx) <= cheapest), "it paid more");
                self.seen.borrow_mut().note("paid too little");
            }
            Err(_) => {}
        }
    }

    fn block(&mut self, passed_ms: u64, base_fee: u128, changed: &[(u64, SenderState)]) {
        let changed: Vec<_> =
            changed.iter().map(|(signer, state)| (self.addresses[*signer as usize], *state)).collect();
        self.accounts.extend(changed.iter().copied());
        self.dull.base_fee = base_fee;
        self.dull.now.0 += passed_ms;
        for (sender, state) in &changed {
            self.dull.set_account(*sender, *state);
        }
        let orderless = self.dull.held.iter().filter(|tx| tx.transaction().is_orderless()).count();
        if self.dull.expire() > 0 {
            self.seen.borrow_mut().note("expired");
        }
        if self.dull.held.iter().filter(|tx| tx.transaction().is_orderless()).count() < orderless {
            self.seen.borrow_mut().note("orderless expired");
        }
        self.clever.on_block(self.dull.now, GasPrice(base_fee), changed);
    }

    fn reinject(&mut self, txs: &[(Index, i8, u64)]) {
        let txs: Vec<_> = txs
            .iter()
            .map(|(which, below, balance)| {
                let tx = which.get(&self.made).clone();
                let nonce = tx.transaction().nonce().saturating_add_signed(-i64::from(*below));
                (tx, account(nonce, *balance))
            })
            .collect();
        let outcome = self.clever.reinject(txs.clone());
        let mut returned = outcome.returned.into_iter();
        let mut refused = outcome.refused.into_iter();
        for (tx, state) in txs {
            self.accounts.insert(tx.sender(), state);
            let hash = tx.hash();
            match self.dull.insert(&tx, state) {
                Ok(insertion) => {
                    assert_eq!(returned.next(), Some((hash, insertion)));
                    self.seen.borrow_mut().note("reinjected");
                }
                Err(error) => {
                    assert_eq!(refused.next(), Some((hash, error)));
                    self.seen.borrow_mut().note("reinjection refused");
                }
            }
        }
        assert!(returned.next().is_none() && refused.next().is_none());
    }

    fn note_moves(&self, held_before: &BTreeSet<TxHash>, ready_before: &BTreeSet<TxHash>) {
        let (held, ready) = (self.held(), self.dull.ready());
        let mut seen = self.seen.borrow_mut();
        for hash in held.intersection(held_before) {
            match (ready_before.contains(hash), ready.contains(hash)) {
                (false, true) => seen.note("promoted"),
                (true, false) => seen.note("demoted"),
                _ => {}
            }
        }
    }

    fn held(&self) -> BTreeSet<TxHash> {
        self.dull.held.iter().map(|tx| tx.hash()).collect()
    }

    fn check(&self) {
        let (held, ready) = (self.held(), self.dull.ready());
        let mut listed = 0;
        for address in &self.addresses {
            let mut last = None;
            for (tx, readiness) in self.clever.pending_of(*address) {
                assert_eq!(tx.sender(), *address);
                assert!(last < Some(tx.transaction().nonce()), "in order of their numbers");
                last = Some(tx.transaction().nonce());
                assert!(held.contains(&tx.hash()));
                assert_eq!(readiness == Readiness::Ready, ready.contains(&tx.hash()));
                listed += 1;
            }
            assert!(self.clever.pending_of(*address).count() <= CONFIG.sender_count_max);
            listed += self.check_orderless(*address);
            for nonce in 0..=NONCE_MAX {
                assert_eq!(self.clever.next_nonce(*address, nonce), self.dull.next_nonce(*address, nonce));
            }
        }
        assert_eq!(listed, held.len());
        for tx in &self.made {
            assert_eq!(self.clever.contains(tx.hash()), held.contains(&tx.hash()));
            assert_eq!(self.clever.get(tx.hash()), held.contains(&tx.hash()).then_some(tx));
        }
        assert_eq!(self.clever.len(), held.len());
        assert_eq!(self.clever.is_empty(), held.is_empty());
        assert_eq!(self.clever.bytes(), self.dull.bytes());
        assert_eq!(self.clever.ready_count(), ready.len());
        assert_eq!(self.clever.parked_count(), held.len() - ready.len());
        assert!(self.clever.len() <= CONFIG.count_max && self.clever.bytes() <= CONFIG.bytes_max);
        assert!(self.clever.parked_count() <= CONFIG.parked_count_max);
        assert!(self.dull.wide_ready().len() <= CONFIG.wide_count_max);
        assert!(self.clever.parked_bytes() <= CONFIG.parked_bytes_max);
        self.check_best();
    }

    /// In order of arrival, and no coin is pending twice. Returns how many there are.
    fn check_orderless(&self, sender: Address) -> usize {
        let orderless: Vec<_> = self.clever.orderless_of(sender).cloned().collect();
        assert_eq!(orderless, self.dull.orderless_of(&self.dull.held, sender));
        let ready = self.clever.pending_of(sender).filter(|(_, readiness)| *readiness == Readiness::Ready);
        let ready: Vec<_> = ready.map(|(tx, _)| tx.clone()).collect();
        let needed = orderless.iter().chain(&ready).map(cost).sum::<U256>();
        assert!(needed <= self.accounts[&sender].balance.0, "{needed} is pending");
        if !orderless.is_empty() && !ready.is_empty() {
            self.seen.borrow_mut().note("orderless beside sequence numbers");
        }
        orderless.len()
    }

    fn check_best(&self) {
        assert_eq!(self.clever.base_fee(), GasPrice(self.dull.base_fee));
        let best: Vec<_> = self.clever.best().map(|tx| tx.hash()).collect();
        assert_eq!(best, self.dull.best(|_| false));
        // Every third transaction does not fit.
        let mut best = self.clever.best();
        let mut order = Vec::new();
        while let Some(tx) = best.next() {
            order.push(tx.hash());
            if order.len() % 3 == 0 {
                best.skip_after(tx);
            }
        }
        assert_eq!(order, self.dull.best(|given| given % 3 == 0));
    }
}

#[test]
fn agrees_with_the_dull_pool() {
    let seen = RefCell::new(Seen::default());
    let signatures = RefCell::new(Signatures::default());
    let addresses: Vec<_> = (0..SIGNERS).map(|signer| Signer(signer).address()).collect();
    let config = Config { cases: 1_000, source_file: Some(file!()), ..Config::default() };
    TestRunner::new(config)
        .run(&ops(), |ops| {
            let mut pair = Pair::new(&signatures, &seen, &addresses);
            for op in &ops {
                pair.apply(op);
                pair.check();
            }
            Ok(())
        })
        .unwrap();
    let seen = seen.into_inner();
    for what in EXPECTED {
        // The rarest happens about fifteen times: so few are drawn once in ten thousand runs.
        assert!(seen.0.get(what).is_some_and(|count| *count >= 3), "{what} hardly happened: {seen:?}");
    }
}
