//! Attacks on transactions that wait for signatures: work that a block must do and nobody has booked.

use crate::attacks::{Counted, wide_chain};
use crate::{
    keys::rotating,
    support::{contracts::*, native::*, signed::*, *},
};
use alloy_primitives::{Bytes, TxKind, U256};
use alloy_sol_types::SolEvent as _;
use almanac_exec::{BlockInput, Candidates, execute};
use almanac_primitives::{
    ConsensusContext, ScheduleId, StateKey, TimestampMs,
    addresses::{ACCOUNTS, LEDGER, SCHEDULE_SERVICE},
    params::EFFORT_GAS,
};
use std::cell::RefCell;

const COIN: u64 = 1_000_000_000_000_000_000;

/// What Medium costs per gas at the floor.
const MEDIUM_WEI: u64 = 5_000_000_000;

/// Least gas of a run of two calls.
const RUN_GAS: u64 = 23_600;

/// What a block's booked runs may ask for at least, after any number of failed views.
const LARGEST_GAS: u64 = 9_999 * EFFORT_GAS;

/// Keys of the widest tree of the n-th account.
fn leaves(n: u64) -> Vec<Key> {
    (0..32).map(|leaf| ed_person(100 * n + leaf).into()).collect()
}

/// A chain on which persons 1 and 2 have keys of 32 leaves, all of which must sign.
fn with_wide_keys() -> TestChain {
    let mut chain = wide_chain();
    let rotations = [1, 2].map(|n| {
        let keys = leaves(n);
        let tree = threshold(32, &keys.iter().map(Key::encoded).collect::<Vec<Bytes>>());
        rotating(person(n), 0, &tree, 1, &keys)
    });
    let produced = chain.produce(rotations.into());
    assert!(produced.output.receipts.iter().all(|receipt| receipt.outcome.is_success()));
    chain
}

/// The least run of both, at a second: 64 leaves must sign.
fn at(second: u64, nonce: u32) -> Wish {
    let calls = [1, 2].map(|n| service_call(person(n).address, COUNTER));
    let mut wish = Wish::new(calls.into());
    (wish.body.executionTime, wish.body.waitForExpiry) = (second, true);
    (wish.body.gasLimit, wish.body.nonce) = (RUN_GAS, nonce);
    wish
}

/// Creates schedules in one block. Returns their ids, and the gas that they booked together.
fn book(chain: &mut TestChain, wishes: &[Wish]) -> (Vec<ScheduleId>, u64) {
    let (from, before) = (person(0), chain.balance(person(0).address));
    let nonce = chain.nonce(from.address);
    let orders = (nonce..).zip(wishes).map(|(nonce, wish)| {
        let mut tx = eip1559(nonce, TxKind::Call(SCHEDULE_SERVICE), 0, wish.create(vec![]), PLENTY_GAS);
        tx.value = U256::from(COIN);
        sign(tx, from.secret)
    });
    let produced = chain.produce(orders.collect());
    let receipts = &produced.output.receipts[1..];
    let gas = receipts.iter().map(|receipt| receipt.gas_used.cost(receipt.effective_gas_price).0);
    let fees = before - chain.balance(from.address) - gas.sum::<U256>();
    (receipts.iter().map(created).collect(), (fees / U256::from(MEDIUM_WEI)).to())
}

/// Slots and keys that the next block reads at a second.
fn reads_at(chain: &TestChain, second: u64) -> u64 {
    let counted = Counted { state: &chain.state, read: RefCell::default() };
    let input = chain.input_at(TimestampMs(second * 1_000));
    execute(&counted, &*chain.agenda, &input, &mut Candidates::new(vec![])).unwrap();
    let is_read = |key: &StateKey| {
        matches!(key, StateKey::Slot(LEDGER | ACCOUNTS, _) | StateKey::Body(_) | StateKey::AccountKey(_))
    };
    counted.read.into_inner().iter().filter(|key| is_read(key)).count() as u64
}

/// The start of a block counts the signatures of what waited for its second, and nobody pays gas there. It was free
/// room: schedules of the least gas with 63 of 64 signatures made the block of their second read twelve times as much as
/// the gas that they had booked pays for.
#[test]
fn attack_01_judging_signatures_was_booked() {
    let mut chain = with_wide_keys();
    let second = chain.next_seconds() + 600;
    let wish = at(second, 0);
    let (ids, booked_gas) = book(&mut chain, std::slice::from_ref(&wish));
    let keys: Vec<Key> = leaves(1).into_iter().chain(leaves(2)).take(63).collect();
    for part in keys.chunks(21) {
        let entries = part.iter().map(|key| wish.signed(*key)).collect();
        let nonce = chain.nonce(person(9).address);
        let produced = chain.produce(vec![call(
            person(9),
            nonce,
            SCHEDULE_SERVICE,
            signing(ids[0], entries),
            8_000_000,
        )]);
        assert_eq!(code(produced.receipt(0)), 22);
    }
    assert_eq!(chain.info(ids[0]).1.signers.len(), 63);
    let idle = reads_at(&chain, second - 1);
    let reads = reads_at(&chain, second) - idle;
    assert!(reads > 2 * 63, "signatures and their keys are read: {reads}");
    assert!(reads * 2_100 <= booked_gas, "{reads} reads for {booked_gas} gas");
}

/// What is not ready runs nothing, but looking at it was work: such a block must end too, when views fail because blocks
/// take too long.
#[test]
fn attack_08_what_is_not_ready_uses_up_room_of_its_block() {
    // As many as Medium's part of a second holds, nearly.
    const COUNT: u32 = 36;
    let mut chain = with_wide_keys();
    let second = chain.next_seconds() + 600;
    let wishes: Vec<_> = (0..COUNT).map(|nonce| at(second, nonce)).collect();
    let (first, second_half) = wishes.split_at(20);
    let (_, gas) = book(&mut chain, first);
    chain.produce(vec![]);
    book(&mut chain, second_half);
    let each = gas / 20;
    let (mut left, mut blocks) = (u64::from(COUNT), 0);
    while left > 0 {
        let input = chain.input_at(TimestampMs(second * 1_000 + u64::from(COUNT) - left));
        // So many views failed that a block takes no more than its largest single run.
        let before = input.parent.consensus;
        let consensus = ConsensusContext { view: before.view + 65, parent_view: before.view, ..before };
        let produced = chain.produce_with(&BlockInput { consensus, ..input }, vec![]);
        let logs = &produced.output.receipts[0].logs;
        let ended = logs.iter().filter(|log| ScheduleExpired::decode_log(log).is_ok()).count() as u64;
        let judged_gas = (ended.max(1) - 1) * (each - RUN_GAS) + each;
        assert!(ended > 0 && judged_gas <= LARGEST_GAS, "{ended} of {each} gas in a block");
        left -= ended;
        blocks += 1;
    }
    assert_eq!(blocks, 2, "no more than are needed");
    chain.replay();
}

/// Attack 40: a stranger creates what others are about to create, as somebody who has nothing, and so is the one who
/// pays. Their run cannot be paid, and it spent all the signatures that they had collected, for the price of a creation.
#[test]
fn attack_40_a_stranger_who_cannot_pay_spends_no_signatures() {
    let mut chain = TestChain::new();
    let wish = Wish::new(vec![1, 2].into_iter().map(|n| service_call(person(n).address, COUNTER)).collect());
    // Anybody can make the forwarder create it. Its fund is empty.
    let strangers = to(SCHEDULE_SERVICE, &wish.create(vec![]));
    let produced = chain.produce(vec![call(person(6), 0, FORWARDER, strangers, PLENTY_GAS)]);
    let strange = created(produced.receipt(0));
    let entries = || vec![wish.signed(person(1)), wish.signed(person(2))];
    let (id, produced) = chain.serve_created(person(0), &wish, entries());
    assert_eq!((id, run_codes(&produced)), (None, vec![(strange.0, 10)]), "theirs is the stranger's");
    assert_eq!(chain.round_of(&wish), 0);
    let (id, produced) = chain.serve_created(person(0), &wish, entries());
    assert_eq!(run_codes(&produced), [(id.expect("it is made anew").0, 22)]);
    // And once: what has run is spent.
    let produced = chain.serve(person(0), wish.create(entries()));
    assert_eq!((code(produced.receipt(0)), chain.round_of(&wish)), (10_001, 1));
    chain.replay();
}

impl TestChain {
    /// Creates a schedule, or finds that it is there. Answers with its id if it is new.
    fn serve_created(
        &mut self,
        from: Person,
        wish: &Wish,
        entries: Vec<SignatureEntry>,
    ) -> (Option<ScheduleId>, Produced) {
        let produced = self.serve(from, wish.create(entries));
        assert_eq!(code(produced.receipt(0)), 22);
        let logs = &produced.receipt(0).logs;
        let id = logs.iter().find_map(|log| ScheduleCreated::decode_log(log).ok());
        (id.map(|log| ScheduleId(log.id)), produced)
    }
}
