//! The sequencer: when it makes blocks, and what it does with a pool that changes under it.

use crate::support::running::*;
use alloy_primitives::Address;
use almanac_consensus::{Clock, ControlError, Engine, EngineError, Mode, SinkError};
use almanac_primitives::{DurationMs, TimestampMs, UserTransaction, testing::*};
use std::time::Duration;

fn to_bob(nonce: u64) -> UserTransaction {
    transfer(person(0), nonce, person(1).address, 1)
}

#[tokio::test]
async fn on_demand_makes_a_block_per_submission_and_none_without() {
    let mut chain = start(Mode::OnDemand, nothing());
    chain.stays_quiet().await;
    for nonce in 0..3 {
        let hash = chain.submit(&to_bob(nonce)).unwrap();
        let (block, output) = chain.next_block().await;
        assert_eq!(block.header.number, nonce + 1);
        assert_eq!(output.receipts[1].transaction_hash, hash);
        assert!(output.receipts[1].outcome.is_success());
    }
    chain.stays_quiet().await;
    assert!(chain.admission.pool().lock().is_empty());
    chain.solo.stop().await.unwrap();
}

#[tokio::test]
async fn time_never_stands_still_between_blocks_even_if_the_clock_does() {
    let mut chain = start(Mode::OnDemand, nothing());
    let mut last = START;
    for nonce in 0..4 {
        chain.submit(&to_bob(nonce)).unwrap();
        let (block, _) = chain.next_block().await;
        assert!(block.header.timestamp > last);
        last = block.header.timestamp;
    }
    assert_eq!(last, TimestampMs(chain.clock.now().0 + 3), "a millisecond each");
}

#[tokio::test]
async fn a_gap_waits_and_closes() {
    let mut chain = start(Mode::OnDemand, nothing());
    chain.submit(&to_bob(1)).unwrap();
    chain.submit(&to_bob(2)).unwrap();
    chain.stays_quiet().await;
    chain.submit(&to_bob(0)).unwrap();
    let (block, _) = chain.next_block().await;
    assert_eq!(block.transactions.len(), 3);
}

#[tokio::test]
async fn interval_keeps_the_beat_and_does_not_make_up_for_missed_ones() {
    let mut chain = start(Mode::Interval(DurationMs(200)), nothing());
    chain.submit(&to_bob(0)).unwrap();
    chain.stays_quiet().await;
    let begin = chain.clock.now();
    chain.clock.advance(DurationMs(199));
    chain.stays_quiet().await;
    chain.clock.advance(DurationMs(1));
    let (block, _) = chain.next_block().await;
    assert_eq!(block.header.timestamp, TimestampMs(begin.0 + 200));
    assert_eq!(block.transactions.len(), 1);
    chain.clock.advance(DurationMs(200));
    assert_eq!(chain.next_block().await.0.transactions.len(), 0, "empty blocks keep the beat");
    chain.stays_quiet().await;

    chain.clock.advance(DurationMs(10_000));
    chain.next_block().await;
    chain.stays_quiet().await;
}

#[tokio::test]
async fn by_hand_makes_blocks_only_when_told_and_at_the_time_told() {
    let due = TimestampMs(START.0 + 5_000);
    let mut chain = start(Mode::Manual, &[due]);
    chain.submit(&to_bob(0)).unwrap();
    chain.clock.advance(DurationMs(60_000));
    chain.stays_quiet().await;

    let mined = chain.solo.controls().mine(Some(TimestampMs(START.0 + 2_000))).await.unwrap();
    let (block, output) = chain.next_block().await;
    assert_eq!((mined.number, mined.hash), (1, block.hash()));
    assert_eq!(block.header.timestamp, TimestampMs(START.0 + 2_000));
    assert_eq!(output.receipts.len(), 2, "prologue and transfer; nothing due yet");

    let tip = block.header.timestamp;
    for given in [START, tip] {
        let back = chain.solo.controls().mine(Some(given)).await;
        assert!(matches!(back, Err(ControlError::NotAfterTip { .. })), "never back in time");
    }
    chain.solo.controls().mine(Some(TimestampMs(tip.0 + 1))).await.unwrap();
    assert_eq!(chain.next_block().await.0.header.timestamp, TimestampMs(tip.0 + 1));

    // The clock goes on from the time that was told.
    chain.clock.advance(DurationMs(3_000));
    chain.solo.controls().mine(None).await.unwrap();
    let (_, output) = chain.next_block().await;
    assert!(output.receipts[1].schedule_ref.is_some(), "the clock is past the due time");
}

#[tokio::test]
async fn wakes_at_the_next_due_time_and_not_before() {
    let (first, second) = (TimestampMs(START.0 + 3_000), TimestampMs(START.0 + 3_500));
    let mut chain = start(Mode::OnDemand, &[first, second]);
    chain.stays_quiet().await;
    chain.clock.advance(DurationMs(1_999));
    chain.stays_quiet().await;
    for due in [first, second] {
        let wait = due.since(chain.clock.now()).unwrap();
        chain.clock.advance(wait);
        let (block, output) = chain.next_block().await;
        assert_eq!(block.header.timestamp, due);
        let runs = output.receipts.iter().filter(|receipt| receipt.schedule_ref.is_some()).count();
        assert_eq!(runs, 1);
        chain.stays_quiet().await;
    }
}

#[tokio::test]
async fn a_crowd_shares_blocks_instead_of_getting_one_each() {
    let transactions: Vec<_> = (0..10).flat_map(|n| (0..16).map(move |nonce| (n, nonce))).collect();
    let bob = person(1).address;
    let transactions: Vec<_> =
        transactions.into_iter().map(|(n, nonce)| transfer(person(n), nonce, bob, 1)).collect();
    let mut chain = start(Mode::OnDemand, nothing());
    // Two at once make a crowd; the others come one by one, and the sequencer has its turn after each.
    let (first, others) = transactions.split_at(2);
    for transaction in first {
        chain.submit(transaction).unwrap();
    }
    for transaction in others {
        tokio::task::yield_now().await;
        chain.submit(transaction).unwrap();
    }
    let (mut blocks, mut included) = (0, 0);
    while included < transactions.len() {
        included += chain.next_block().await.0.transactions.len();
        blocks += 1;
    }
    assert!(blocks < transactions.len() / 2, "{blocks} blocks for {included} transactions");
}

#[tokio::test]
async fn more_than_a_block_holds_goes_into_several() {
    let mut chain = start(Mode::OnDemand, nothing());
    // Each asks for most of a block and uses little of it; the sum of what they use decides.
    let big = |n: u64| call(person(n), 0, contracts::BURNER, vec![], 16_000_000);
    for n in 0..3 {
        chain.submit(&big(n)).unwrap();
    }
    let mut included = 0;
    while included < 3 {
        included += chain.next_block().await.0.transactions.len();
    }
    assert!(chain.admission.pool().lock().is_empty());
    chain.stays_quiet().await;
}

#[tokio::test]
async fn what_cannot_pay_any_more_leaves_the_pool_and_blocks_go_on() {
    let mut chain = start(Mode::Manual, nothing());
    let (alice, bob) = (person(0), person(1));
    let coins = 1_000_000_000_000_000_000u64;
    // Each alone is affordable; together they are not. The pool parks what the balance does not cover.
    for nonce in 0..2 {
        let mut tx = eip1559(nonce, alloy_primitives::TxKind::Call(bob.address), 0, vec![], 21_000);
        tx.value = alloy_primitives::U256::from(600) * alloy_primitives::U256::from(coins);
        chain.submit(&sign(tx, alice.secret)).unwrap();
    }
    chain.solo.controls().mine(None).await.unwrap();
    assert_eq!(chain.next_block().await.0.transactions.len(), 1);
    chain.solo.controls().mine(None).await.unwrap();
    assert_eq!(chain.next_block().await.0.transactions.len(), 0);
    assert!(chain.admission.pool().lock().is_empty(), "it would not be taken now");
}

#[tokio::test]
async fn bad_submissions_get_named_errors_and_change_nothing() {
    let chain = start(Mode::OnDemand, nothing());
    let stranger = person(99);
    let mut foreign = eip1559(0, alloy_primitives::TxKind::Call(Address::ZERO), 0, vec![], 21_000);
    foreign.chain_id = 1;
    let mut cheap = eip1559(0, alloy_primitives::TxKind::Call(Address::ZERO), 0, vec![], 21_000);
    (cheap.max_fee_per_gas, cheap.max_priority_fee_per_gas) = (99_999_999, 0);
    let cases = [
        (chain.admission.submit(&[]), "empty"),
        (chain.admission.submit(&[0x99; 40]), "type 153 is unknown"),
        (chain.admission.submit(&[3; 40]), "blob transactions"),
        (chain.admission.submit(&[2; 40]), "cannot be decoded"),
        (chain.admission.submit(&vec![2; 200_000]), "above the limit of 131072"),
        (chain.admission.submit(sign(foreign, stranger.secret).encoded()), "invalid chain id"),
        (chain.admission.submit(sign(cheap, person(0).secret).encoded()), "transaction underpriced"),
        (chain.admission.submit(transfer(stranger, 0, Address::ZERO, 0).encoded()), "insufficient funds"),
        (
            chain.admission.submit(call(person(0), 0, Address::ZERO, vec![], 30_000_001).encoded()),
            "exceeds block gas limit",
        ),
        (
            chain.admission.submit(call(person(0), 0, Address::ZERO, vec![], 20_999).encoded()),
            "intrinsic gas",
        ),
    ];
    for (result, expected) in cases {
        let error = result.unwrap_err().to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    }
    assert!(chain.admission.pool().lock().is_empty());
    let twice = to_bob(5);
    chain.submit(&twice).unwrap();
    assert!(chain.submit(&twice).unwrap_err().contains("already known"));
}

#[tokio::test]
async fn stop_ends_it_and_a_failing_listener_is_told() {
    let mut chain = start_on(&genesis(), Mode::OnDemand, nothing(), Some(2));
    chain.submit(&to_bob(0)).unwrap();
    chain.next_block().await;
    chain.submit(&to_bob(1)).unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(10), chain.solo.ended()).await.unwrap();
    assert!(matches!(ended, Err(EngineError::Sink(SinkError { number: 2, .. }))));
    assert!(matches!(chain.solo.controls().mine(None).await, Err(ControlError::Stopped)));

    let chain = start(Mode::Interval(DurationMs(1_000)), nothing());
    chain.solo.stop().await.unwrap();
}

#[tokio::test]
async fn snapshots_bring_back_state_blocks_and_pool_exactly() {
    let mut chain = start(Mode::Manual, nothing());
    let mine = async |chain: &mut Running| {
        chain.solo.controls().mine(None).await.unwrap();
        chain.next_block().await.0
    };
    chain.submit(&to_bob(0)).unwrap();
    let first = mine(&mut chain).await;
    chain.submit(&to_bob(2)).unwrap();
    let outer = chain.solo.controls().snapshot().await.unwrap();

    chain.submit(&to_bob(1)).unwrap();
    let second = mine(&mut chain).await;
    assert_eq!(second.transactions.len(), 2, "the gap is closed");
    let inner = chain.solo.controls().snapshot().await.unwrap();
    for _ in 0..10 {
        mine(&mut chain).await;
    }
    let back = chain.solo.controls().revert(inner).await.unwrap();
    assert_eq!((back.number, back.hash), (2, second.hash()));
    let gone = chain.solo.controls().revert(inner).await;
    assert!(matches!(gone, Err(ControlError::UnknownSnapshot { given }) if given == inner));

    let back = chain.solo.controls().revert(outer).await.unwrap();
    assert_eq!((back.number, back.hash), (1, first.hash()));
    assert_eq!(chain.admission.pool().lock().parked_count(), 1, "the parked transaction is parked again");
    chain.submit(&to_bob(1)).unwrap();
    let again = mine(&mut chain).await;
    assert_eq!(again.transactions, second.transactions);
    assert_eq!(again.header.commitment.state_root, second.header.commitment.state_root, "exact to the root");
    chain.solo.stop().await.unwrap();
}

#[tokio::test]
async fn a_snapshot_per_test_of_a_long_suite_costs_little_and_nothing_piles_up() {
    let mut chain = start(Mode::Manual, nothing());
    let base = chain.solo.controls().snapshot().await.unwrap();
    for round in 0..150u64 {
        let id = chain.solo.controls().snapshot().await.unwrap();
        chain.submit(&to_bob(0)).unwrap();
        for _ in 0..3 {
            chain.solo.controls().mine(None).await.unwrap();
            chain.next_block().await;
        }
        assert_eq!(chain.solo.controls().revert(id).await.unwrap().number, 0, "round {round}");
    }
    for _ in 0..120 {
        chain.solo.controls().snapshot().await.unwrap();
    }
    assert_eq!(
        chain.solo.controls().revert(base).await.unwrap().number,
        0,
        "over a hundred nested ones are kept"
    );
    chain.submit(&to_bob(0)).unwrap();
    chain.solo.controls().mine(None).await.unwrap();
    assert_eq!(chain.next_block().await.0.header.number, 1);
}

/// Both sides of the number of blocks that a snapshot can keep from being committed.
#[tokio::test]
async fn a_snapshot_is_given_up_when_too_much_is_held_above_it() {
    use almanac_consensus::snapshots::HELD_BLOCKS_MAX;
    for (blocks, is_kept) in [(HELD_BLOCKS_MAX, true), (HELD_BLOCKS_MAX + 1, false)] {
        let mut chain = start(Mode::Manual, nothing());
        let id = chain.solo.controls().snapshot().await.unwrap();
        for _ in 0..blocks {
            chain.solo.controls().mine(None).await.unwrap();
            chain.next_block().await;
        }
        let back = chain.solo.controls().revert(id).await;
        assert_eq!(back.is_ok_and(|block| block.number == 0), is_kept, "{blocks} blocks");
        chain.solo.stop().await.unwrap();
    }
}
