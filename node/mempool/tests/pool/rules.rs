//! Each rule of the pool by its smallest example.

use crate::signing::{BusySigner, Draft, Signer, account, draft, rich, sign_as_stranger};
use alloy_primitives::{Address, TxHash, U256};
use almanac_mempool::{Insertion, Pool, PoolConfig, PoolError, Readiness, SenderState};
use almanac_primitives::{GasPrice, RecoveredTransaction, TimestampMs, Wei};

const ALICE: Signer = Signer(1);
const BOB: Signer = Signer(2);
const CAROL: Signer = Signer(3);

/// Where time does not matter.
const NOW: TimestampMs = TimestampMs(0);

fn pool() -> Pool {
    Pool::new(PoolConfig::default(), GasPrice(0))
}

fn pool_of(count_max: usize) -> Pool {
    let config = PoolConfig { count_max, ..PoolConfig::default() };
    Pool::new(config, GasPrice(0))
}

fn pool_of_bytes(bytes_max: usize) -> Pool {
    let config = PoolConfig { bytes_max, ..PoolConfig::default() };
    Pool::new(config, GasPrice(0))
}

/// What a full pool answers, at a base fee of zero, to one whose cap is its tip.
fn full(given: u128, needed: u128) -> PoolError {
    let (given, needed) = (GasPrice(given), GasPrice(needed));
    PoolError::PoolFull { given_cap: given, needed_cap: needed, given_tip: given, needed_tip: needed }
}

/// One that tips as much as its cap, at a base fee of zero.
fn paying(nonce: u64, price: u128) -> Draft {
    draft(nonce, price, price)
}

/// Inserts for an account that stands at 0 and can pay anything.
fn add(pool: &mut Pool, signer: Signer, draft: Draft) -> TxHash {
    let tx = signer.sign(draft);
    pool.insert(tx.clone(), rich(0)).unwrap();
    tx.hash()
}

fn best(pool: &Pool) -> Vec<TxHash> {
    pool.best().map(RecoveredTransaction::hash).collect()
}

fn held(pool: &Pool, sender: Address) -> Vec<(u64, Readiness)> {
    pool.pending_of(sender).map(|(tx, readiness)| (tx.transaction().nonce(), readiness)).collect()
}

fn ready(nonces: impl IntoIterator<Item = u64>) -> Vec<(u64, Readiness)> {
    nonces.into_iter().map(|nonce| (nonce, Readiness::Ready)).collect()
}

fn parked(nonces: impl IntoIterator<Item = u64>) -> Vec<(u64, Readiness)> {
    nonces.into_iter().map(|nonce| (nonce, Readiness::Parked)).collect()
}

/// Regression: an id that was predicted while the pool still had the transactions of the last block counted them again.
#[test]
fn what_a_block_has_included_does_not_wait() {
    let mut pool = pool();
    let [first, second, parked] = [0, 1, 3].map(|nonce| ALICE.sign(paying(nonce, 10)));
    for transaction in [&first, &second, &parked] {
        pool.insert(transaction.clone(), rich(0)).unwrap();
    }
    let included = [&first, &parked, &BOB.sign(paying(0, 10))].map(|known| known.transaction().clone());
    assert_eq!((pool.ready_count_except(&[]), pool.ready_count_except(&included)), (2, 1));
}

#[test]
fn a_gap_parks_and_its_closing_readies() {
    let mut pool = pool();
    let third = pool.insert(ALICE.sign(draft(7, 100, 10)), rich(5)).unwrap();
    let second = pool.insert(ALICE.sign(draft(6, 100, 10)), rich(5)).unwrap();
    assert_eq!((third.readiness, second.readiness), (Readiness::Parked, Readiness::Parked));
    assert_eq!((pool.ready_count(), pool.parked_count()), (0, 2));
    assert!(best(&pool).is_empty());
    assert_eq!(pool.next_nonce(ALICE.address(), 5), 5);

    let first = pool.insert(ALICE.sign(draft(5, 100, 10)), rich(5)).unwrap();
    assert_eq!(first, Insertion { readiness: Readiness::Ready, replaced: None, evicted: vec![] });
    assert_eq!(held(&pool, ALICE.address()), ready(5..8));
    assert_eq!((pool.ready_count(), pool.parked_count()), (3, 0));
    assert_eq!(pool.next_nonce(ALICE.address(), 5), 8);
    assert_eq!(pool.next_nonce(BOB.address(), 3), 3);
}

/// The cost is value plus gas limit times fee cap, summed over all before it.
#[test]
fn money_is_counted_over_all_ready_ones() {
    let mut pool = pool();
    for nonce in 0..3 {
        let each_100 = Draft { nonce, fee_cap: 30, gas: 3, value: U256::from(10), ..Draft::default() };
        pool.insert(ALICE.sign(each_100), account(0, 299)).unwrap();
    }
    let alice = ALICE.address();
    assert_eq!(held(&pool, alice), [ready(0..2), parked(2..3)].concat());
    assert_eq!(pool.next_nonce(alice, 0), 3, "a number is taken whether or not it is affordable");

    pool.on_block(NOW, GasPrice(0), [(alice, account(0, 300))]);
    assert_eq!(held(&pool, alice), ready(0..3));
    pool.on_block(NOW, GasPrice(0), [(alice, account(0, 100))]);
    assert_eq!(held(&pool, alice), [ready(0..1), parked(1..3)].concat());
    pool.on_block(NOW, GasPrice(0), [(alice, account(1, 200))]);
    assert_eq!(held(&pool, alice), ready(1..3));
    pool.on_block(NOW, GasPrice(0), [(alice, account(1, 99))]);
    assert!(pool.is_empty(), "not even one of them is covered: none would be admitted");
}

#[test]
fn a_cost_beyond_all_money_is_never_covered() {
    let mut pool = pool();
    let unfunded = |signer: Signer, needed| PoolError::InsufficientFunds {
        sender: signer.address(),
        needed: Wei(needed),
        balance: Wei(U256::MAX),
    };
    let overflowing = Draft { value: U256::MAX, ..Draft::default() };
    assert_eq!(pool.insert(ALICE.sign(overflowing), rich(0)), Err(unfunded(ALICE, U256::MAX)));
    let almost = Draft { value: U256::MAX - U256::from(101), ..Draft::default() };
    assert_eq!(pool.insert(BOB.sign(almost), rich(0)).unwrap().readiness, Readiness::Ready);
    // Each alone is affordable, their sum overflows.
    let second = Draft { nonce: 1, ..almost };
    assert_eq!(pool.insert(BOB.sign(second), rich(0)).unwrap().readiness, Readiness::Parked);
    add(&mut pool, CAROL, draft(0, 100, 10));
    let refused = pool.insert(CAROL.sign(Draft { value: U256::MAX, ..draft(0, 110, 11) }), rich(0));
    assert_eq!(refused, Err(unfunded(CAROL, U256::MAX)));
}

#[test]
fn a_dearer_replacement_parks_from_the_end() {
    let mut pool = pool();
    let state = account(0, 420);
    for nonce in 0..4 {
        pool.insert(ALICE.sign(draft(nonce, 100, 10)), state).unwrap();
    }
    assert_eq!(held(&pool, ALICE.address()), ready(0..4));
    pool.insert(ALICE.sign(draft(1, 121, 11)), state).unwrap();
    assert_eq!(held(&pool, ALICE.address()), [ready(0..3), parked(3..4)].concat(), "421 is too much");
    let refused = pool.insert(ALICE.sign(draft(1, 321, 20)), state);
    let (sender, needed, balance) = (ALICE.address(), Wei(U256::from(421)), state.balance);
    assert_eq!(
        refused,
        Err(PoolError::InsufficientFunds { sender, needed, balance }),
        "421 with the one before: it would park what it replaces"
    );
    pool.insert(ALICE.sign(draft(1, 320, 20)), state).unwrap();
    assert_eq!(held(&pool, ALICE.address()), [ready(0..2), parked(2..4)].concat(), "420");
    // Dearer per gas and cheaper in all: money is free again.
    pool.insert(ALICE.sign(Draft { gas: 0, ..draft(1, 400, 30) }), state).unwrap();
    assert_eq!(held(&pool, ALICE.address()), ready(0..4));
}

#[test]
fn a_cleared_pool_is_a_new_one_with_the_same_limits() {
    let mut pool = Pool::new(PoolConfig { count_max: 2, ..PoolConfig::default() }, GasPrice(60));
    let hash = add(&mut pool, ALICE, paying(0, 100));
    add(&mut pool, BOB, paying(3, 100));
    pool.clear();
    assert!(pool.is_empty() && !pool.contains(hash) && best(&pool).is_empty());
    assert_eq!((pool.bytes(), pool.ready_count(), pool.parked_count()), (0, 0, 0));
    assert_eq!(pool.base_fee(), GasPrice(60));
    add(&mut pool, ALICE, paying(0, 100));
    add(&mut pool, BOB, paying(0, 100));
    let at_60 = PoolError::PoolFull {
        given_cap: GasPrice(100),
        needed_cap: GasPrice(101),
        given_tip: GasPrice(100),
        needed_tip: GasPrice(41),
    };
    assert_eq!(pool.insert(CAROL.sign(paying(0, 100)), rich(0)), Err(at_60));
}

#[test]
fn the_last_number_of_all_does_not_overflow() {
    let mut pool = pool();
    let last = u64::MAX;
    let alice = ALICE.address();
    pool.insert(ALICE.sign(draft(last, 100, 10)), rich(last)).unwrap();
    assert_eq!(held(&pool, alice), ready([last]));
    assert_eq!(best(&pool).len(), 1);
    assert_eq!(pool.next_nonce(alice, last), last);
    pool.insert(ALICE.sign(draft(last - 1, 100, 10)), rich(last - 1)).unwrap();
    assert_eq!(held(&pool, alice), ready([last - 1, last]));
    assert_eq!(best(&pool).len(), 2);
    pool.on_block(NOW, GasPrice(0), [(alice, account(last - 1, 100))]);
    assert_eq!(held(&pool, alice), [ready([last - 1]), parked([last])].concat());
    pool.on_block(NOW, GasPrice(0), [(alice, rich(last))]);
    assert_eq!(held(&pool, alice), ready([last]));
}

#[test]
fn refusals_name_what_clients_look_for() {
    let mut pool = pool_of(1);
    let tx = ALICE.sign(draft(3, 100, 10));
    pool.insert(tx.clone(), rich(3)).unwrap();
    let refusal = |pool: &mut Pool, tx: RecoveredTransaction, state: SenderState| {
        pool.insert(tx, state).unwrap_err().to_string()
    };
    assert!(refusal(&mut pool, tx.clone(), rich(3)).starts_with("already known"));
    assert_eq!(
        refusal(&mut pool, ALICE.sign(draft(2, 100, 10)), rich(3)),
        "nonce too low: 2 is below 3, the next of the account"
    );
    let underpriced = refusal(&mut pool, ALICE.sign(draft(3, 109, 11)), rich(3));
    assert!(underpriced.starts_with("replacement transaction underpriced"), "{underpriced}");
    assert!(underpriced.contains("109") && underpriced.contains("110"), "{underpriced}");
    assert!(refusal(&mut pool, BOB.sign(draft(0, 100, 10)), rich(0)).starts_with("txpool is full"));
    assert!(refusal(&mut pool, ALICE.sign(draft(4, 900, 10)), rich(3)).starts_with("txpool is full"));
    assert_eq!(pool.len(), 1);
    assert_eq!(pool.get(tx.hash()), Some(&tx));
}

#[test]
fn the_account_number_decides_what_is_stale() {
    let mut pool = pool();
    assert!(pool.insert(ALICE.sign(draft(5, 100, 10)), rich(5)).is_ok());
    let refused = pool.insert(ALICE.sign(draft(4, 100, 10)), rich(5));
    assert_eq!(refused, Err(PoolError::NonceTooLow { given: 4, account: 5 }));
    // A refused newcomer still brings news of the account.
    let refused = pool.insert(ALICE.sign(draft(5, 100, 10)), rich(6));
    assert_eq!(refused, Err(PoolError::NonceTooLow { given: 5, account: 6 }));
    assert!(pool.is_empty());
    assert_eq!(pool.bytes(), 0);
}

#[test]
fn replacement_needs_both_prices_raised() {
    let mut pool = pool();
    let old = add(&mut pool, ALICE, draft(0, 1_000, 100));
    let refused = |cap, tip| PoolError::ReplacementUnderpriced {
        old,
        given_cap: GasPrice(cap),
        needed_cap: GasPrice(1_100),
        given_tip: GasPrice(tip),
        needed_tip: GasPrice(110),
    };
    for (cap, tip) in [(1_099, 110), (1_100, 109), (1_000, 110), (5_000, 100), (1_099, 1_099)] {
        assert_eq!(pool.insert(ALICE.sign(draft(0, cap, tip)), rich(0)), Err(refused(cap, tip)));
        assert!(pool.contains(old));
    }
    let new = ALICE.sign(draft(0, 1_100, 110));
    let insertion = pool.insert(new.clone(), rich(0)).unwrap();
    assert_eq!(insertion, Insertion { readiness: Readiness::Ready, replaced: Some(old), evicted: vec![] });
    assert_eq!((pool.len(), pool.contains(old)), (1, false));
    assert_eq!(pool.bytes(), new.transaction().encoded().len());
    assert_eq!(best(&pool), [new.hash()]);
}

#[test]
fn a_legacy_price_is_cap_and_tip_at_once() {
    let mut pool = pool();
    let legacy = |fee_cap| Draft { fee_cap, priority_fee: None, ..Draft::default() };
    add(&mut pool, ALICE, legacy(100));
    let tip_too_low = pool.insert(ALICE.sign(draft(0, 200, 109)), rich(0)).unwrap_err();
    assert!(matches!(tip_too_low, PoolError::ReplacementUnderpriced { needed_tip: GasPrice(110), .. }));
    add(&mut pool, ALICE, draft(0, 110, 110));
    add(&mut pool, ALICE, legacy(121));
    assert_eq!(pool.len(), 1);
}

#[test]
fn a_sender_has_its_share_and_no_more() {
    let mut pool = Pool::new(PoolConfig { sender_count_max: 3, ..PoolConfig::default() }, GasPrice(0));
    let alice = ALICE.address();
    for nonce in [1, 2] {
        add(&mut pool, ALICE, draft(nonce, 100, 10));
    }
    let last = add(&mut pool, ALICE, draft(9, 100, 10));
    let full = pool.insert(ALICE.sign(draft(10, 900, 90)), rich(0));
    assert_eq!(full, Err(PoolError::SenderFull { sender: alice, max: 3 }));

    // Replacing takes no more room.
    let dearer = add(&mut pool, ALICE, draft(9, 110, 11));
    assert!(!pool.contains(last));
    let closing = pool.insert(ALICE.sign(draft(0, 1, 1)), rich(0)).unwrap();
    assert_eq!(closing, Insertion { readiness: Readiness::Ready, replaced: None, evicted: vec![dearer] });
    assert_eq!(held(&pool, alice), ready(0..3));
    assert!(pool.insert(BOB.sign(draft(0, 100, 10)), rich(0)).is_ok());
}

#[test]
fn a_share_of_one_passes_to_the_lower_number() {
    let mut pool = Pool::new(PoolConfig { sender_count_max: 1, ..PoolConfig::default() }, GasPrice(0));
    let late = add(&mut pool, ALICE, draft(4, 100, 10));
    let insertion = pool.insert(ALICE.sign(draft(0, 100, 10)), rich(0)).unwrap();
    assert_eq!(insertion, Insertion { readiness: Readiness::Ready, replaced: None, evicted: vec![late] });
    assert_eq!(held(&pool, ALICE.address()), ready([0]));
    let nobody = PoolConfig { sender_count_max: 0, ..PoolConfig::default() };
    let refused = Pool::new(nobody, GasPrice(0)).insert(ALICE.sign(draft(0, 100, 10)), rich(0));
    assert_eq!(refused, Err(PoolError::SenderFull { sender: ALICE.address(), max: 0 }));
}

#[test]
fn the_cheapest_sender_loses_its_last() {
    let mut pool = pool_of(4);
    let cheap = add(&mut pool, ALICE, paying(0, 10));
    let middle = add(&mut pool, ALICE, paying(1, 500));
    let last = add(&mut pool, ALICE, paying(2, 900));
    add(&mut pool, BOB, paying(0, 20));

    let newcomer = pool.insert(CAROL.sign(paying(0, 11)), rich(0)).unwrap();
    assert_eq!(newcomer.evicted, [last], "no gap is torn into the sender");
    let refused = pool.insert(CAROL.sign(paying(1, 10)), rich(0));
    assert_eq!(refused, Err(full(10, 11)));
    assert!(pool.contains(cheap) && pool.contains(middle), "a refused one has cost nobody a place");
    assert_eq!(pool.len(), 4);
}

#[test]
fn of_equally_cheap_ones_the_latest_leaves() {
    let mut pool = pool_of(2);
    let first = add(&mut pool, ALICE, draft(0, 10, 5));
    let second = add(&mut pool, BOB, draft(0, 99, 5));
    let newcomer = pool.insert(CAROL.sign(draft(0, 11, 6)), rich(0)).unwrap();
    assert_eq!(newcomer.evicted, [second]);
    assert!(pool.contains(first));
}

#[test]
fn nobody_hides_behind_an_own_cheap_one() {
    let mut pool = pool_of(2);
    add(&mut pool, ALICE, paying(0, 10));
    add(&mut pool, BOB, paying(0, 20));
    let refused = pool.insert(ALICE.sign(paying(1, 999)), rich(0));
    assert_eq!(refused, Err(PoolError::BehindCheapest { nonce: 0, fee_cap: GasPrice(10) }));
    assert_eq!(pool.len(), 2);
    // With the cheap one raised, the next may push out another's.
    add(&mut pool, ALICE, paying(0, 21));
    add(&mut pool, ALICE, paying(1, 999));
    assert_eq!(held(&pool, ALICE.address()), ready(0..2));
}

#[test]
fn one_that_closes_a_gap_pushes_out_its_own_last() {
    let mut pool = pool_of(2);
    let last = add(&mut pool, ALICE, paying(1, 10));
    let others = add(&mut pool, BOB, paying(0, 20));
    let insertion = pool.insert(ALICE.sign(paying(0, 15)), rich(0)).unwrap();
    assert_eq!(insertion.evicted, [last]);
    assert!(pool.contains(others));
}

/// A transaction of exactly this many bytes. Tries, because signatures vary in length by a byte or two.
fn sized(signer: Signer, bytes: usize, draft: Draft) -> RecoveredTransaction {
    let drafts = (0..20).flat_map(|value| (0..24).map(move |input_len| (U256::from(value), input_len)));
    let mut tries = drafts.map(|(value, input_len)| signer.sign(Draft { value, input_len, ..draft }));
    tries.find(|tx| tx.transaction().encoded().len() == bytes).unwrap()
}

#[test]
fn bytes_are_bounded_and_no_more_leaves_than_must() {
    let mut pool = pool_of_bytes(330);
    let small = |number: u64| sized(Signer(number), 110, paying(0, number.into()));
    let txs: Vec<_> = (10..14).map(small).collect();
    for tx in &txs[..3] {
        pool.insert(tx.clone(), rich(0)).unwrap();
    }
    assert_eq!((pool.len(), pool.bytes()), (3, 330), "exactly full");
    assert_eq!(pool.insert(txs[3].clone(), rich(0)).unwrap().evicted, [txs[0].hash()]);

    // Two of 11, 12 and 13 must go, so 12 is the price to beat.
    let large = |fee_cap| sized(BOB, 111, paying(0, fee_cap));
    for fee_cap in [11, 12] {
        let refused = pool.insert(large(fee_cap), rich(0));
        assert_eq!(refused, Err(full(fee_cap, 13)));
        assert_eq!(pool.len(), 3, "half a plan is none");
    }
    assert_eq!(pool.insert(large(13), rich(0)).unwrap().evicted, [txs[1].hash(), txs[2].hash()]);
    assert_eq!((pool.len(), pool.bytes()), (2, 221));
    // 109 bytes are free, and that is one too few.
    let last = pool.insert(sized(CAROL, 110, paying(0, 14)), rich(0)).unwrap();
    assert_eq!(last.evicted.len(), 1);
    assert_eq!(pool.len(), 2);
}

#[test]
fn one_transaction_may_fill_the_pool_but_not_more() {
    let tx = sized(ALICE, 110, paying(0, 90));
    let refused = pool_of_bytes(109).insert(tx.clone(), rich(0));
    assert_eq!(refused, Err(PoolError::TooLarge { given: 110, max: 109 }));
    let mut pool = pool_of_bytes(110);
    pool.insert(tx, rich(0)).unwrap();
    assert_eq!((pool.len(), pool.bytes()), (1, 110));
}

#[test]
fn a_larger_replacement_must_find_room_too() {
    let mut pool = pool_of_bytes(220);
    let old = sized(ALICE, 110, paying(0, 100));
    pool.insert(old.clone(), rich(0)).unwrap();
    let other = sized(BOB, 110, paying(0, 120));
    pool.insert(other.clone(), rich(0)).unwrap();
    let larger = |fee_cap| sized(ALICE, 111, paying(0, fee_cap));
    assert_eq!(pool.insert(larger(120), rich(0)), Err(full(120, 121)));
    assert!(pool.contains(old.hash()), "the old one stays until the new one is in");
    let insertion = pool.insert(larger(121), rich(0)).unwrap();
    assert_eq!((insertion.replaced, insertion.evicted), (Some(old.hash()), vec![other.hash()]));
}

#[test]
fn a_pool_without_room_admits_nothing() {
    let refused = pool_of(0).insert(ALICE.sign(paying(0, 100)), rich(0));
    assert!(matches!(refused, Err(PoolError::PoolFull { .. })));
}

#[test]
fn the_highest_tip_at_the_base_fee_goes_first() {
    let mut pool = Pool::new(PoolConfig::default(), GasPrice(50));
    let tip_limited = add(&mut pool, ALICE, draft(0, 100, 20));
    let cap_limited = add(&mut pool, BOB, draft(0, 80, 80));
    assert_eq!(best(&pool), [cap_limited, tip_limited], "30 over 20");
    pool.on_block(NOW, GasPrice(60), []);
    assert_eq!(best(&pool), [tip_limited, cap_limited], "both 20: who came first");
    pool.on_block(NOW, GasPrice(80), []);
    assert_eq!(best(&pool), [tip_limited, cap_limited], "20 over 0: the last base fee that can be paid");
    pool.on_block(NOW, GasPrice(81), []);
    assert_eq!(best(&pool), [tip_limited], "19 left of the cap of the one, less than nothing of the other");
    pool.on_block(NOW, GasPrice(101), []);
    assert!(best(&pool).is_empty());
    assert_eq!(pool.ready_count(), 2, "they wait for a lower base fee, not for their sender");
    pool.on_block(NOW, GasPrice(0), []);
    assert_eq!(best(&pool), [cap_limited, tip_limited]);
}

#[test]
fn a_sender_stays_in_order_and_an_underpriced_one_blocks_it() {
    let mut pool = Pool::new(PoolConfig::default(), GasPrice(50));
    let low = add(&mut pool, ALICE, draft(0, 100, 1));
    let high = add(&mut pool, ALICE, draft(1, 100, 40));
    add(&mut pool, ALICE, draft(2, 49, 49));
    add(&mut pool, ALICE, draft(3, 100, 50));
    let middle = add(&mut pool, BOB, draft(0, 100, 20));
    assert_eq!(best(&pool), [middle, low, high]);
    pool.on_block(NOW, GasPrice(49), []);
    assert_eq!(best(&pool).len(), 5);
}

#[test]
fn a_skipped_sender_is_out_for_this_pass_only() {
    let mut pool = pool();
    let alices = [0, 1].map(|nonce| add(&mut pool, ALICE, draft(nonce, 100, 30)));
    let bobs = [0, 1].map(|nonce| add(&mut pool, BOB, draft(nonce, 100, 20)));
    let mut pass = pool.best();
    assert_eq!(pass.next().map(RecoveredTransaction::hash), Some(alices[0]));
    pass.skip_sender(ALICE.address());
    assert_eq!(pass.map(RecoveredTransaction::hash).collect::<Vec<_>>(), bobs);
    let mut pass = pool.best();
    pass.skip_sender(BOB.address());
    assert_eq!(pass.map(RecoveredTransaction::hash).collect::<Vec<_>>(), alices);
    assert_eq!(best(&pool).len(), 4);
}

#[test]
fn a_dropped_block_gives_its_transactions_back() {
    let mut pool = pool();
    let alice = ALICE.address();
    let txs: Vec<_> = (0..4).map(|nonce| ALICE.sign(draft(nonce, 100, 10))).collect();
    for tx in &txs {
        pool.insert(tx.clone(), rich(0)).unwrap();
    }
    pool.on_block(NOW, GasPrice(0), [(alice, rich(2))]);
    assert_eq!(held(&pool, alice), ready(2..4));

    // The block is gone: the account stands at 0 again, and what waited waits behind a gap.
    pool.on_block(NOW, GasPrice(0), [(alice, rich(0))]);
    assert_eq!(held(&pool, alice), parked(2..4));
    let outcome = pool.reinject(txs[..2].iter().map(|tx| (tx.clone(), rich(0))));
    assert_eq!(outcome.returned.len(), 2);
    assert_eq!(outcome.refused, []);
    assert_eq!(held(&pool, alice), ready(0..4));
    assert_eq!(best(&pool), txs.iter().map(RecoveredTransaction::hash).collect::<Vec<_>>());
}

#[test]
fn what_does_not_come_back_says_why() {
    let mut pool = pool();
    let txs: Vec<_> = (0..3).map(|nonce| ALICE.sign(draft(nonce, 100, 10))).collect();
    pool.insert(txs[1].clone(), rich(1)).unwrap();
    let dearer = add(&mut pool, BOB, draft(0, 200, 20));
    let bobs = BOB.sign(draft(0, 100, 10));
    let outcome = pool.reinject([
        (txs[0].clone(), rich(1)),
        (txs[1].clone(), rich(1)),
        (txs[2].clone(), rich(1)),
        (bobs.clone(), rich(0)),
    ]);
    let refused: Vec<_> = outcome.refused.iter().map(|(hash, _)| *hash).collect();
    assert_eq!(refused, [txs[0].hash(), txs[1].hash(), bobs.hash()]);
    assert_eq!(outcome.refused[0].1, PoolError::NonceTooLow { given: 0, account: 1 });
    assert_eq!(outcome.refused[1].1, PoolError::AlreadyKnown { hash: txs[1].hash() });
    assert!(matches!(outcome.refused[2].1, PoolError::ReplacementUnderpriced { old, .. } if old == dearer));
    assert_eq!(outcome.returned.len(), 1);
    assert_eq!(held(&pool, ALICE.address()), ready(1..3));
}

#[test]
fn a_removed_one_leaves_a_gap() {
    let mut pool = pool();
    let txs = [0, 1, 2].map(|nonce| add(&mut pool, ALICE, draft(nonce, 100, 10)));
    assert_eq!(pool.remove(txs[1]).map(|tx| tx.hash()), Some(txs[1]));
    assert_eq!(pool.remove(txs[1]), None);
    assert_eq!(held(&pool, ALICE.address()), [ready([0]), parked([2])].concat());
    assert_eq!(best(&pool), [txs[0]]);
    add(&mut pool, ALICE, draft(1, 50, 5));
    assert_eq!(held(&pool, ALICE.address()), ready(0..3));
}

/// News of accounts that have nothing pending leaves no trace.
#[test]
fn strangers_are_not_remembered() {
    let mut pool = pool();
    let strangers = (0..100u8).map(|number| (Address::repeat_byte(number), rich(7)));
    pool.on_block(NOW, GasPrice(3), strangers);
    assert!(pool.is_empty());
    assert_eq!(pool.base_fee(), GasPrice(3));
}

fn config() -> PoolConfig {
    PoolConfig { sender_count_max: 100, ..PoolConfig::default() }
}

fn parked_full(count: usize, bytes: usize) -> PoolError {
    PoolError::ParkedFull { count, bytes, next: 0 }
}

/// The flood of old: accounts fill the pool with dear transactions that cannot run. They used to keep out a user who
/// paid ten times as much.
#[test]
fn parked_ones_never_keep_a_ready_one_out() {
    let mut pool = Pool::new(PoolConfig { parked_count_max: 10, count_max: 20, ..config() }, GasPrice(1));
    let mut admitted = 0;
    for attacker in 100..140 {
        for nonce in 1..4 {
            admitted += usize::from(pool.insert(Signer(attacker).sign(paying(nonce, 400)), rich(0)).is_ok());
        }
    }
    assert!(admitted >= 10);
    assert_eq!((pool.ready_count(), pool.parked_count()), (0, 10), "they have their own room");
    let users: Vec<_> = (0..20).map(|user| add(&mut pool, Signer(user), paying(0, 2))).collect();
    assert_eq!(
        (pool.ready_count(), pool.parked_count()),
        (20, 0),
        "ready ones displace them, whatever they offer"
    );
    let late = pool.insert(Signer(100).sign(paying(1, 9_999)), rich(0));
    assert_eq!(late, Err(parked_full(0, 0)), "and they displace no ready one");
    assert!(users.iter().all(|user| pool.is_ready(*user)));
}

#[test]
fn parked_ones_are_bounded_for_each_sender() {
    let mut pool = Pool::new(PoolConfig { parked_sender_count_max: 2, ..config() }, GasPrice(0));
    let alice = ALICE.address();
    add(&mut pool, ALICE, paying(5, 10));
    let last = add(&mut pool, ALICE, paying(7, 10));
    let refused = pool.insert(ALICE.sign(paying(8, 99)), rich(0));
    assert_eq!(refused, Err(PoolError::SenderParkedFull { sender: alice, max: 2, next: 0 }));
    // Nearer to what can run is worth more, whatever it pays.
    let nearer = pool.insert(ALICE.sign(paying(6, 1)), rich(0)).unwrap();
    assert_eq!(nearer.evicted, [last]);
    // Ready ones do not count.
    for nonce in 0..5 {
        add(&mut pool, ALICE, paying(nonce, 10));
    }
    assert_eq!(held(&pool, alice), ready(0..7));
}

#[test]
fn parked_ones_are_bounded_in_bytes() {
    let config = PoolConfig { parked_bytes_max: 2_000, ..config() };
    let mut pool = Pool::new(config, GasPrice(0));
    let wide = |signer: Signer, nonce, input_len| signer.sign(Draft { input_len, ..paying(nonce, 10) });
    let refused = pool.insert(wide(ALICE, 1, 2_000), rich(0));
    assert_eq!(refused, Err(parked_full(0, 0)), "more than there is room for");
    pool.insert(wide(ALICE, 1, 1_500), rich(0)).unwrap();
    // It takes more of the room than what is there, so it is not the other that gives way.
    let bytes = pool.parked_bytes();
    assert_eq!(
        pool.insert(wide(BOB, 1, 1_800), rich(0)).map(|i| i.evicted.len()),
        Ok(1),
        "the same weight: the first goes"
    );
    assert!(pool.parked_bytes() > bytes);
    assert_eq!(pool.insert(wide(CAROL, 1, 100), rich(0)).unwrap().evicted.len(), 1, "the larger gives way");
    assert_eq!(pool.insert(wide(BOB, 1, 1_800), rich(0)), Err(parked_full(1, pool.parked_bytes())));
    assert!(pool.insert(wide(ALICE, 0, 2_000), rich(0)).is_ok(), "ready ones have the whole pool");
}

/// One account cannot crowd the others out, and many cannot keep a newcomer out.
#[test]
fn of_parked_ones_the_largest_holder_gives_way_then_the_first() {
    let mut pool = Pool::new(PoolConfig { parked_count_max: 4, ..config() }, GasPrice(0));
    let [_, _, third] = [1, 2, 3].map(|nonce| add(&mut pool, ALICE, paying(nonce, 900)));
    let bobs = add(&mut pool, BOB, paying(1, 1));
    let newcomer = pool.insert(CAROL.sign(paying(1, 1)), rich(0)).unwrap();
    assert_eq!(newcomer.evicted, [third], "Alice holds most");
    let refused = pool.insert(ALICE.sign(paying(3, 900)), rich(0));
    let bytes = pool.parked_bytes();
    assert_eq!(refused, Err(parked_full(4, bytes)), "she would again");
    pool.insert(Signer(7).sign(paying(1, 1)), rich(0)).unwrap();
    assert_eq!(pool.pending_of(ALICE.address()).count(), 1);
    let last = pool.insert(Signer(8).sign(paying(1, 1)), rich(0)).unwrap();
    assert_eq!(last.evicted.len(), 1, "all hold one: the first that came goes");
    assert!(pool.pending_of(ALICE.address()).count() == 0 && pool.contains(bobs));
}

/// Blocks until so much more time has passed, none more than ten seconds after the one before.
fn pass(pool: &mut Pool, time: &mut u64, ms: u64) {
    let end = *time + ms;
    while *time < end {
        *time = end.min(*time + 10_000);
        pool.on_block(TimestampMs(*time), GasPrice(0), []);
    }
}

#[test]
fn what_is_parked_too_long_leaves() {
    let (mut pool, mut time) = (Pool::new(config(), GasPrice(0)), 1_700_000_000_000);
    let limit = config().parked_time_max.0;
    pool.on_block(TimestampMs(time), GasPrice(0), []);
    let gapped = add(&mut pool, ALICE, paying(1, 10));
    let ready = add(&mut pool, BOB, paying(0, 10));
    pass(&mut pool, &mut time, limit - 1);
    assert!(pool.contains(gapped));
    // Parked anew, by a balance that covers it alone and not with the one before.
    let second = BOB.sign(paying(1, 10));
    pool.insert(second.clone(), rich(0)).unwrap();
    time += 1;
    pool.on_block(TimestampMs(time), GasPrice(0), [(BOB.address(), account(0, 19))]);
    assert!(!pool.contains(gapped), "its time is over");
    assert!(pool.is_ready(ready) && !pool.is_ready(second.hash()) && pool.contains(second.hash()));
    pass(&mut pool, &mut time, limit - 1);
    assert!(pool.contains(second.hash()), "counted from when it was parked, not from when it came");
    pass(&mut pool, &mut time, 1);
    assert!(!pool.contains(second.hash()) && pool.is_ready(ready), "what can run stays");
    // A chain that goes back in time drops nothing and breaks nothing.
    add(&mut pool, ALICE, paying(1, 10));
    pool.on_block(TimestampMs(5), GasPrice(0), []);
    assert_eq!(pool.parked_count(), 1);
}

/// Ready for a moment is ready: its time begins anew, although the bound on wide ones parks it again at once.
#[test]
fn what_a_newcomer_makes_ready_for_a_moment_is_parked_anew() {
    let mut pool = Pool::new(PoolConfig { wide_gas: 1, wide_count_max: 1, ..config() }, GasPrice(0));
    let (mut time, limit) = (1_700_000_000_000, config().parked_time_max.0);
    pool.on_block(TimestampMs(time), GasPrice(0), []);
    add(&mut pool, BOB, Draft { gas: 2, ..paying(0, 10) });
    let wide = add(&mut pool, ALICE, Draft { gas: 2, ..paying(1, 10) });
    let last = add(&mut pool, ALICE, Draft { gas: 1, ..paying(2, 10) });
    pass(&mut pool, &mut time, limit - 1);
    let closing = pool.insert(ALICE.sign(Draft { gas: 1, ..paying(0, 10) }), rich(0)).unwrap();
    assert_eq!(closing.evicted, [wide], "there is one wide one already");
    pass(&mut pool, &mut time, limit - 1);
    assert!(pool.contains(last) && !pool.is_ready(last));
    pass(&mut pool, &mut time, 1);
    assert!(!pool.contains(last));
}

/// A node that has just started knows no time, and one that was away hears of hours at once.
#[test]
fn a_first_block_and_one_after_a_halt_let_nothing_expire() {
    let mut pool = Pool::new(config(), GasPrice(0));
    let gapped = add(&mut pool, ALICE, paying(1, 10));
    let (day, limit) = (24 * 60 * 60 * 1_000, config().parked_time_max.0);
    // Each counts for ten seconds.
    for block in 1..limit / 10_000 {
        pool.on_block(TimestampMs(1_700_000_000_000 + block * day), GasPrice(0), []);
        assert!(pool.contains(gapped), "block {block}");
    }
    pool.on_block(TimestampMs(1_800_000_000_000), GasPrice(0), []);
    assert!(!pool.contains(gapped));
}

/// More than a few thousand leave over several blocks, so that none of them holds the pool for long.
#[test]
fn a_crowd_expires_in_parts() {
    let (mut pool, mut time, count) = (Pool::new(config(), GasPrice(0)), 0, 5_000);
    for index in 0..count {
        let draft = Draft { value: U256::from(index), ..paying(1, 10) };
        pool.insert(sign_as_stranger(draft), rich(0)).unwrap();
    }
    pass(&mut pool, &mut time, config().parked_time_max.0);
    assert_eq!(pool.parked_count(), count - 4_096);
    pass(&mut pool, &mut time, 1);
    assert!(pool.is_empty());
}

/// Moving the coins away used to leave a full pool behind.
#[test]
fn moving_coins_away_empties_the_pool() {
    let mut pool = pool();
    let attackers: Vec<_> = (100..110).map(Signer).collect();
    for attacker in &attackers {
        for nonce in 0..20 {
            pool.insert(attacker.sign(paying(nonce, 10)), account(0, 200)).unwrap();
        }
    }
    assert_eq!(pool.ready_count(), 200);
    let moved = |balance| attackers.iter().map(move |attacker| (attacker.address(), account(0, balance)));
    pool.on_block(NOW, GasPrice(0), moved(10));
    assert_eq!(pool.ready_count(), 10, "one each is covered");
    pool.on_block(NOW, GasPrice(0), moved(9));
    assert!(pool.is_empty() && pool.bytes() == 0);
}

/// Others can empty a delegated account, and void all that it has signed, in one transaction.
#[test]
fn a_delegated_sender_has_a_smaller_share() {
    let mut pool = Pool::new(PoolConfig { delegated_count_max: 2, ..config() }, GasPrice(0));
    let delegated = SenderState { is_delegated: true, ..rich(0) };
    for nonce in 0..2 {
        pool.insert(ALICE.sign(paying(nonce, 10)), delegated).unwrap();
    }
    let full = pool.insert(ALICE.sign(paying(2, 10)), delegated);
    assert_eq!(full, Err(PoolError::SenderFull { sender: ALICE.address(), max: 2 }));
    for nonce in 0..5 {
        pool.insert(BOB.sign(paying(nonce, 10)), rich(0)).unwrap();
    }
    pool.on_block(NOW, GasPrice(0), [(BOB.address(), delegated)]);
    assert_eq!(held(&pool, BOB.address()), ready(0..2), "also when it comes to be one");
}

/// What a block earns now decides, not what a transaction would pay at another base fee.
#[test]
fn the_tip_at_the_base_fee_decides_who_leaves() {
    let mut pool = Pool::new(PoolConfig { count_max: 2, ..config() }, GasPrice(50));
    let no_tip = add(&mut pool, ALICE, draft(0, 9_999, 0));
    add(&mut pool, BOB, draft(0, 60, 10));
    let refused = pool.insert(CAROL.sign(draft(0, 99_999, 0)), rich(0));
    let full = |given_cap, given_tip, needed_cap, needed_tip| PoolError::PoolFull {
        given_cap: GasPrice(given_cap),
        needed_cap: GasPrice(needed_cap),
        given_tip: GasPrice(given_tip),
        needed_tip: GasPrice(needed_tip),
    };
    assert_eq!(refused, Err(full(99_999, 0, 51, 1)), "a high cap alone buys nothing");
    assert_eq!(pool.insert(CAROL.sign(draft(0, 51, 1)), rich(0)).unwrap().evicted, [no_tip]);
    // Now the cheapest is Carol's, by what the base fee leaves of the cap; above it, Carol's cannot run at all.
    pool.on_block(NOW, GasPrice(55), []);
    let refused = pool.insert(ALICE.sign(draft(0, 51, 51)), rich(0));
    assert_eq!(refused, Err(full(51, 51, 52, 0)), "nor can this one");
    assert!(pool.insert(ALICE.sign(draft(0, 52, 0)), rich(0)).is_ok());
    let includable = pool.insert(Signer(9).sign(draft(0, 55, 0)), rich(0)).unwrap();
    assert_eq!(includable.evicted.len(), 1, "one that can run displaces one that cannot");
}

/// A thousand accounts with a hundred dear transactions each, and a user who pays a wei more.
#[test]
fn who_pays_more_than_a_full_pool_gets_in() {
    let config = PoolConfig { count_max: 2_000, ..PoolConfig::default() };
    let mut pool = Pool::new(config, GasPrice(100));
    for attacker in 0..20 {
        let signer = BusySigner::new(Signer(1_000 + attacker));
        for nonce in 0..100 {
            pool.insert(signer.sign(draft(nonce, 500, 400)), rich(0)).unwrap();
        }
    }
    assert_eq!(pool.len(), 2_000);
    let refused = pool.insert(ALICE.sign(draft(0, 500, 400)), rich(0));
    assert!(matches!(refused, Err(PoolError::PoolFull { needed_tip: GasPrice(401), .. })), "{refused:?}");
    assert!(pool.insert(ALICE.sign(draft(0, 501, 401)), rich(0)).is_ok());
    assert_eq!(pool.best().next().map(RecoveredTransaction::sender), Some(ALICE.address()));
}

/// Each asks for a whole block and uses next to nothing, so that a block takes one of them: they would fill the pool for
/// hours at hardly any price.
#[test]
fn wide_ones_have_a_part_of_the_places_and_compete_for_it() {
    let config = PoolConfig { wide_gas: 10, wide_count_max: 2, count_max: 4, ..config() };
    let mut pool = Pool::new(config, GasPrice(0));
    let wide = |signer: Signer, nonce, price| signer.sign(Draft { gas: 11, ..paying(nonce, price) });
    let narrow = |signer: Signer, price| signer.sign(Draft { gas: 10, ..paying(0, price) });
    let first = wide(ALICE, 0, 50);
    pool.insert(first.clone(), rich(0)).unwrap();
    pool.insert(wide(BOB, 0, 60), rich(0)).unwrap();
    assert_eq!(
        pool.insert(wide(CAROL, 0, 50), rich(0)),
        Err(full(50, 51)),
        "though there is room for others"
    );
    assert!(
        pool.insert(narrow(Signer(7), 1), rich(0)).is_ok()
            && pool.insert(narrow(Signer(8), 1), rich(0)).is_ok()
    );
    let newcomer = pool.insert(wide(CAROL, 0, 51), rich(0)).unwrap();
    assert_eq!(newcomer.evicted, [first.hash()], "the cheapest of its kind, not the cheapest of all");
    let behind = pool.insert(wide(CAROL, 1, 99), rich(0));
    assert_eq!(behind, Err(PoolError::BehindCheapest { nonce: 0, fee_cap: GasPrice(51) }));
    // One that was narrow does not become wide by the back door; a wide one may be replaced.
    let widened = pool.insert(wide(Signer(7), 0, 99), rich(0));
    assert_eq!(widened, Err(PoolError::WideFull { max: 2, gas: 10 }));
    assert!(pool.insert(wide(CAROL, 0, 57), rich(0)).unwrap().replaced.is_some());
    // Nor by closing a gap.
    let mut pool = Pool::new(config, GasPrice(0));
    pool.insert(wide(ALICE, 0, 50), rich(0)).unwrap();
    for nonce in [1, 2] {
        pool.insert(wide(BOB, nonce, 99), rich(0)).unwrap();
    }
    assert_eq!(pool.insert(narrow(BOB, 99), rich(0)).unwrap().evicted.len(), 1);
    assert_eq!(held(&pool, BOB.address()), ready(0..2));
}
