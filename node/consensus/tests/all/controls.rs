//! What a developer asks of a sequencer: blocks, time, edits, and everything back as it was.

use crate::support::{application_of, running::*};
use alloy_primitives::{Address, Bytes, TxKind, U256};
use almanac_consensus::{
    Clock, ControlError, Controls, Deadline, Engine, Mode, Proposal,
    solo::{REQUEST_BLOCKS_MAX, TIME_MAX},
};
use almanac_exec::{Edit, EditError, TransactionError};
use almanac_primitives::{
    Account, Block, DurationMs, Genesis, StateKey, TimestampMs,
    addresses::DEVELOPER,
    params::{CODE_BYTES_MAX, DEVELOPER_TREASURY},
    testing::{contracts::COUNTER, *},
};
use std::sync::Arc;

const NOBODY: Address = Address::repeat_byte(0x99);
const DAY: DurationMs = DurationMs(24 * 60 * 60 * 1_000);

fn at(ms: u64) -> TimestampMs {
    TimestampMs(START.0 + ms)
}

fn controls(chain: &Running) -> Controls {
    chain.solo.controls().clone()
}

fn balance(wei: u64) -> Edit {
    Edit::Balance { account: NOBODY, balance: U256::from(wei) }
}

fn account(chain: &Running, address: Address) -> Account {
    let stored = chain.listener.state().remove(&StateKey::Account(address));
    stored.map_or_else(Account::default, |bytes| Account::decode(&bytes).unwrap())
}

async fn blocks(chain: &mut Running, count: usize) -> Vec<Arc<Block>> {
    let mut blocks = Vec::new();
    for _ in 0..count {
        blocks.push(chain.next_block().await.0);
    }
    chain.stays_quiet().await;
    blocks
}

// ---- Time ----

/// The same schedule, once waited for and once travelled through: the same blocks, to the hash.
#[tokio::test]
async fn travelling_makes_the_very_blocks_of_a_chain_that_waits() {
    let due = vec![at(3_000), at(3_000), at(3_001), at(60_000), at(DAY.0), at(DAY.0 + 5_000)];
    for mode in [Mode::OnDemand, Mode::Interval(DurationMs(100 * DAY.0))] {
        let mut waiting = start(mode, &due);
        let mut waited = Vec::new();
        for moment in [3_000, 3_001, 60_000, DAY.0] {
            waiting.clock.advance(at(moment).since(waiting.clock.now()).unwrap());
            waited.extend(blocks(&mut waiting, 1).await);
        }

        let mut travelling = start(mode, &due);
        let travel = controls(&travelling).travel_by(DurationMs(DAY.0 + 2_000)).await.unwrap();
        let travelled = blocks(&mut travelling, 4).await;
        assert_eq!(travelled, waited);
        let ids: Vec<_> = travelled.iter().map(|block| (block.header.number, block.hash())).collect();
        assert_eq!(travel.blocks.iter().map(|id| (id.number, id.hash)).collect::<Vec<_>>(), ids);
        assert_eq!((travel.runs, travel.offset_ms), (5, DAY.0 as i64 + 2_000));

        // The clock goes on from there: the last run is two seconds away.
        travelling.clock.advance(DurationMs(1_999));
        travelling.stays_quiet().await;
        travelling.clock.advance(DurationMs(1));
        assert_eq!(travelling.next_block().await.0.header.timestamp, at(DAY.0 + 5_000));
    }
}

#[tokio::test]
async fn by_hand_time_moves_without_blocks() {
    let mut chain = start(Mode::Manual, &[at(3_000), at(4_000)]);
    let travel = controls(&chain).travel_by(DAY).await.unwrap();
    assert_eq!((travel.blocks.len(), travel.runs, travel.offset_ms), (0, 0, DAY.0 as i64));
    chain.stays_quiet().await;
    controls(&chain).mine(None).await.unwrap();
    let (block, output) = chain.next_block().await;
    assert_eq!(block.header.timestamp, at(1_000 + DAY.0));
    assert_eq!(output.receipts.iter().filter(|receipt| receipt.schedule_ref.is_some()).count(), 2);
}

#[tokio::test]
async fn travels_add_up_and_go_where_they_are_told() {
    let mut chain = start(Mode::OnDemand, nothing());
    let hand = controls(&chain);
    for n in 1..=3 {
        assert_eq!(hand.travel_by(DurationMs(1_500)).await.unwrap().offset_ms, n * 1_500);
    }
    assert_eq!(hand.travel_to(at(100_000)).await.unwrap().offset_ms, 99_000);
    assert_eq!(hand.travel_to(at(50_000)).await.unwrap().offset_ms, 49_000, "back, but not behind the tip");
    chain.submit(&transfer(person(0), 0, NOBODY, 1)).unwrap();
    assert_eq!(chain.next_block().await.0.header.timestamp, at(50_000));
    let (given, tip) = (at(50_000), at(50_000));
    let refused = hand.travel_to(given).await.unwrap_err();
    assert!(matches!(refused, ControlError::NotAfterTip { given: g, tip: t } if (g, t) == (given, tip)));
    assert!(refused.to_string().contains("is lower than or equal to previous block's timestamp"));
    hand.travel_to(at(50_001)).await.unwrap();

    assert!(matches!(hand.travel_by(DurationMs(u64::MAX)).await, Err(ControlError::TooLate)));
    assert!(matches!(hand.travel_to(TimestampMs(TIME_MAX.0 + 1)).await, Err(ControlError::TooLate)));
    hand.travel_to(TIME_MAX).await.unwrap();
    chain.submit(&transfer(person(0), 1, NOBODY, 1)).unwrap();
    assert_eq!(chain.next_block().await.0.header.timestamp, TIME_MAX);
    chain.solo.stop().await.unwrap();
}

/// A schedule that would keep the chain busy for years does not keep the request busy for years.
#[tokio::test]
async fn a_travel_through_too_much_stops_on_the_way_and_can_go_on() {
    let count = REQUEST_BLOCKS_MAX + 10;
    let due: Vec<_> = (0..count).map(|n| at(2_000 + n * 1_000)).collect();
    let mut chain = start(Mode::OnDemand, &due);
    let asked = at(2_000 + count * 1_000);
    let error = controls(&chain).travel_to(asked).await.unwrap_err();
    let last = at(1_000 + REQUEST_BLOCKS_MAX * 1_000);
    assert!(
        matches!(error, ControlError::TravelTooLong { reached, asked: a, .. } if (reached, a) == (last, asked)),
        "{error}"
    );
    for _ in 0..REQUEST_BLOCKS_MAX {
        chain.next_block().await;
    }
    chain.stays_quiet().await;
    assert_eq!(controls(&chain).travel_to(asked).await.unwrap().blocks.len(), 10);
}

#[tokio::test]
async fn the_next_block_has_the_time_it_was_given_and_the_clock_goes_on_from_there() {
    let mut chain = start(Mode::OnDemand, nothing());
    let hand = controls(&chain);
    assert_eq!(hand.next_time(), at(1_000), "what the clock says");
    hand.set_next_timestamp(at(500)).await.unwrap();
    assert_eq!(hand.next_time(), at(500));
    chain.stays_quiet().await;
    chain.submit(&transfer(person(0), 0, NOBODY, 1)).unwrap();
    assert_eq!(chain.next_block().await.0.header.timestamp, at(500), "before the clock, after the tip");
    chain.clock.advance(DurationMs(7));
    assert_eq!(hand.next_time(), at(507));
    chain.submit(&transfer(person(0), 1, NOBODY, 1)).unwrap();
    assert_eq!(chain.next_block().await.0.header.timestamp, at(507));

    let refused = hand.set_next_timestamp(at(507)).await;
    assert!(matches!(refused, Err(ControlError::NotAfterTip { .. })));
    hand.set_next_timestamp(at(508)).await.unwrap();
    assert!(matches!(hand.set_next_timestamp(TimestampMs(TIME_MAX.0 + 1)).await, Err(ControlError::TooLate)));
    // A later word replaces an earlier one, and a block at a time replaces both.
    hand.set_next_timestamp(at(DAY.0)).await.unwrap();
    hand.mine(Some(at(600))).await.unwrap();
    hand.mine(None).await.unwrap();
    let times: Vec<_> = blocks(&mut chain, 2).await.iter().map(|block| block.header.timestamp).collect();
    assert_eq!(times, [at(600), at(601)]);
}

#[tokio::test]
async fn many_blocks_at_once() {
    let mut chain = start(Mode::Manual, nothing());
    let hand = controls(&chain);
    chain.submit(&transfer(person(0), 0, NOBODY, 1)).unwrap();
    hand.mine_many(3, None).await.unwrap();
    let made = blocks(&mut chain, 3).await;
    assert_eq!(made.iter().map(|block| block.transactions.len()).collect::<Vec<_>>(), [1, 0, 0]);
    let last = hand.mine_many(4, Some(DurationMs(12_000))).await.unwrap();
    let times: Vec<_> = blocks(&mut chain, 4).await.iter().map(|block| block.header.timestamp.0).collect();
    assert_eq!(times.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<_>>(), [12_000; 3]);
    assert_eq!(last.number, 7);
    hand.mine(None).await.unwrap();
    assert_eq!(blocks(&mut chain, 1).await[0].header.timestamp.0, times[3] + 1, "time goes on from there");

    assert_eq!(hand.mine_many(0, None).await.unwrap().number, 8);
    let too_many = hand.mine_many(REQUEST_BLOCKS_MAX + 1, None).await;
    assert!(
        matches!(too_many, Err(ControlError::TooManyBlocks { given, .. }) if given == REQUEST_BLOCKS_MAX + 1)
    );
    let too_late = hand.mine_many(2, Some(DurationMs(u64::MAX / 2))).await;
    assert!(matches!(too_late, Err(ControlError::TooLate)));
    assert_eq!(hand.mine_many(REQUEST_BLOCKS_MAX, None).await.unwrap().number, 8 + REQUEST_BLOCKS_MAX);
}

#[tokio::test]
async fn the_mode_changes_while_it_runs() {
    let mut chain = start(Mode::OnDemand, nothing());
    let hand = controls(&chain);
    assert_eq!(hand.mode().await.unwrap(), Mode::OnDemand);
    hand.set_mode(Mode::Manual).await.unwrap();
    chain.submit(&transfer(person(0), 0, NOBODY, 1)).unwrap();
    chain.stays_quiet().await;
    hand.set_mode(Mode::OnDemand).await.unwrap();
    assert_eq!(chain.next_block().await.0.transactions.len(), 1, "what had to wait comes in at once");

    let interval = Mode::Interval(DurationMs(1_000));
    hand.set_mode(interval).await.unwrap();
    assert_eq!(hand.mode().await.unwrap(), interval);
    chain.submit(&transfer(person(0), 1, NOBODY, 1)).unwrap();
    chain.clock.advance(DurationMs(999));
    chain.stays_quiet().await;
    chain.clock.advance(DurationMs(1));
    assert_eq!(chain.next_block().await.0.transactions.len(), 1);
    // Moving time starts the beat anew instead of making up for what was skipped.
    hand.travel_by(DAY).await.unwrap();
    chain.stays_quiet().await;
    chain.clock.advance(DurationMs(1_000));
    chain.next_block().await;
    hand.set_mode(Mode::Manual).await.unwrap();
    chain.clock.advance(DAY);
    chain.stays_quiet().await;
}

#[tokio::test]
async fn tips_go_where_they_are_told() {
    let mut chain = start(Mode::OnDemand, nothing());
    controls(&chain).set_fee_recipient(NOBODY).await.unwrap();
    chain.submit(&transfer(person(0), 0, person(1).address, 1)).unwrap();
    assert_eq!(chain.next_block().await.0.header.fee_recipient, NOBODY);
    assert_eq!(account(&chain, NOBODY).balance, U256::from(21_000u64 * 1_000_000_000));
}

// ---- Edits ----

#[tokio::test]
async fn an_edit_is_a_block_of_its_own_at_once_in_every_mode() {
    for mode in [Mode::OnDemand, Mode::Interval(DAY), Mode::Manual] {
        let mut chain = start_developer(mode, nothing());
        let hand = controls(&chain);
        if mode != Mode::OnDemand {
            chain.submit(&transfer(person(0), 0, person(1).address, 1)).unwrap();
        }
        hand.set_next_timestamp(at(77_000)).await.unwrap();
        for n in 1..=3 {
            assert_eq!(hand.edit(vec![balance(n * 100)]).await.unwrap().number, n);
            let (block, output) = chain.next_block().await;
            assert_eq!(block.header.timestamp, at(n), "a millisecond after the tip");
            assert_eq!(block.transactions.len(), 1, "nothing but the edit");
            let receipt = &output.receipts[1];
            assert_eq!(receipt.effective_gas_price, block.header.base_fee, "at what the block asks");
            assert_eq!(account(&chain, NOBODY).balance, U256::from(n * 100));
        }
        hand.mine(None).await.unwrap();
        let (block, _) = chain.next_block().await;
        assert_eq!(block.header.timestamp, at(77_000), "edits do not use up a time that was set");
        assert_eq!(block.transactions.len(), usize::from(mode != Mode::OnDemand));
        chain.solo.stop().await.unwrap();
    }
}

#[tokio::test]
async fn every_kind_of_edit_arrives() {
    let mut chain = start_developer(Mode::OnDemand, nothing());
    let code = Bytes::from(vec![0x5b; CODE_BYTES_MAX]);
    let edits = vec![
        Edit::Code { account: NOBODY, code: code.clone() },
        balance(5),
        Edit::Nonce { account: NOBODY, nonce: 9 },
        Edit::Storage { account: NOBODY, slot: U256::MAX, value: U256::from(3) },
    ];
    assert_eq!(controls(&chain).edit(edits).await.unwrap().number, 1, "all in one block");
    assert_eq!(chain.next_block().await.0.transactions.len(), 4);
    let edited = account(&chain, NOBODY);
    assert_eq!((edited.nonce, edited.balance), (9, U256::from(5)));
    assert_eq!(edited.code_hash, alloy_primitives::keccak256(&code));
    assert_eq!(chain.listener.state()[&StateKey::Slot(NOBODY, U256::MAX)][..], [3]);
}

#[tokio::test]
async fn more_edits_than_a_block_holds_take_several() {
    let mut chain = start_developer(Mode::Manual, nothing());
    let slots = 2_000u64;
    let edits =
        (1..=slots).map(|n| Edit::Storage { account: NOBODY, slot: U256::from(n), value: U256::from(n) });
    let last = controls(&chain).edit(edits.collect()).await.unwrap();
    let made = blocks(&mut chain, usize::try_from(last.number).unwrap()).await;
    assert_eq!(made.iter().map(|block| block.transactions.len() as u64).sum::<u64>(), slots);
    assert!((2..=5).contains(&last.number), "{} blocks", last.number);
    let state = chain.listener.state();
    for n in 1..=slots {
        assert!(state.contains_key(&StateKey::Slot(NOBODY, U256::from(n))), "{n}");
    }
}

#[tokio::test]
async fn an_edit_that_fails_makes_no_block_and_says_why() {
    let mut chain = start_developer(Mode::OnDemand, nothing());
    let hand = controls(&chain);
    hand.edit(vec![Edit::Nonce { account: NOBODY, nonce: 5 }]).await.unwrap();
    let treasury = Edit::Balance { account: NOBODY, balance: DEVELOPER_TREASURY.0 };
    let too_large = Edit::Code { account: NOBODY, code: vec![0; CODE_BYTES_MAX + 1].into() };
    type IsExpected = fn(&EditError) -> bool;
    let cases: [(Edit, IsExpected); 4] = [
        (treasury, |error| matches!(error, EditError::TreasuryTooSmall { .. })),
        (Edit::Nonce { account: NOBODY, nonce: 4 }, |error| {
            *error == EditError::NonceTooLow { given: 4, current: 5 }
        }),
        (Edit::Nonce { account: DEVELOPER, nonce: 4 }, |error| {
            *error == EditError::NotEditable { account: DEVELOPER }
        }),
        (too_large, |error| matches!(error, EditError::CodeTooLarge { .. })),
    ];
    for (edit, is_expected) in cases {
        // One bad edit takes the others of its block with it.
        let error = hand.edit(vec![balance(1), edit.clone()]).await.unwrap_err();
        assert!(matches!(&error, ControlError::Edit(error) if is_expected(error)), "{edit:?}: {error}");
    }
    let monster = Edit::Code { account: NOBODY, code: vec![0; 200_000].into() };
    assert!(matches!(hand.edit(vec![monster]).await, Err(ControlError::NotATransaction(_))));
    assert_eq!(account(&chain, NOBODY).balance, U256::ZERO);
    assert_eq!(blocks(&mut chain, 1).await[0].header.number, 1);
}

#[tokio::test]
async fn what_waited_for_an_edit_comes_in_at_once() {
    let mut chain = start_developer(Mode::OnDemand, nothing());
    let alice = person(0);
    chain.submit(&transfer(alice, 5, NOBODY, 1)).unwrap();
    chain.stays_quiet().await;
    controls(&chain).edit(vec![Edit::Nonce { account: alice.address, nonce: 5 }]).await.unwrap();
    let made = blocks(&mut chain, 2).await;
    assert_eq!(made[1].transactions, [transfer(alice, 5, NOBODY, 1)]);
    // And what an edit made impossible is gone.
    chain.submit(&transfer(alice, 7, NOBODY, 1)).unwrap();
    controls(&chain).edit(vec![Edit::Nonce { account: alice.address, nonce: 8 }]).await.unwrap();
    blocks(&mut chain, 1).await;
    assert!(chain.admission.pool().lock().is_empty());
}

#[tokio::test]
async fn elsewhere_nothing_is_edited() {
    let mut chain = start(Mode::OnDemand, nothing());
    let refused = controls(&chain).edit(vec![balance(1)]).await.unwrap_err();
    assert!(matches!(refused, ControlError::NotIncluded(TransactionError::NotSigned { sender: DEVELOPER })));
    chain.stays_quiet().await;
}

// ---- Impersonation ----

#[tokio::test]
async fn impersonated_transactions_come_from_tools_and_never_as_they_are() {
    let tx = impersonate(COUNTER, eip1559(1, TxKind::Call(NOBODY), 0, Bytes::new(), 21_000));
    let network = start(Mode::OnDemand, nothing());
    assert!(network.submit(&tx).unwrap_err().contains("did not sign"));
    assert!(network.admission.admit(tx.clone()).unwrap_err().to_string().contains("did not sign"));

    let mut chain = start_developer(Mode::OnDemand, nothing());
    let money = Edit::Balance { account: COUNTER, balance: U256::from(10).pow(U256::from(18)) };
    controls(&chain).edit(vec![money]).await.unwrap();
    chain.next_block().await;
    assert!(chain.submit(&tx).unwrap_err().contains("did not sign"), "not by eth_sendRawTransaction");
    assert_eq!(chain.admission.admit(tx.clone()).unwrap(), tx.hash());
    let (block, output) = chain.next_block().await;
    assert_eq!(block.transactions, [tx]);
    assert!(output.receipts[1].outcome.is_success());
}

// ---- Back ----

#[tokio::test]
async fn snapshots_bring_the_clock_back_too() {
    let mut chain = start_developer(Mode::Manual, nothing());
    let hand = controls(&chain);
    hand.travel_by(DurationMs(10_000)).await.unwrap();
    hand.set_next_timestamp(at(20_000)).await.unwrap();
    hand.edit(vec![balance(7)]).await.unwrap();
    blocks(&mut chain, 1).await;
    let mut lives = Vec::new();
    for _ in 0..2 {
        let snapshot = hand.snapshot().await.unwrap();
        hand.mine(None).await.unwrap();
        hand.edit(vec![balance(9)]).await.unwrap();
        hand.travel_by(DAY).await.unwrap();
        hand.mine(None).await.unwrap();
        lives.push(blocks(&mut chain, 3).await);
        let later = hand.snapshot().await.unwrap();
        assert_eq!(hand.revert(snapshot).await.unwrap().number, 1);
        assert!(matches!(hand.revert(later).await, Err(ControlError::UnknownSnapshot { .. })));
        assert_eq!(account(&chain, NOBODY).balance, U256::from(7));
    }
    assert_eq!(lives[0], lives[1], "the same acts make the same blocks again");
    // The clock follows the edit, which came a millisecond after the tip.
    let times = [at(20_000), at(20_001), at(20_001 + DAY.0)];
    assert_eq!(lives[0].iter().map(|block| block.header.timestamp).collect::<Vec<_>>(), times);
}

#[tokio::test]
async fn a_chain_starts_anew_from_its_first_block() {
    let mut chain = start_developer(Mode::Manual, nothing());
    let hand = controls(&chain);
    let act = async |chain: &mut Running| {
        hand.edit(vec![balance(7)]).await.unwrap();
        chain.submit(&transfer(person(0), 0, NOBODY, 1)).unwrap();
        hand.mine(None).await.unwrap();
        blocks(chain, 2).await
    };
    let first = act(&mut chain).await;
    let snapshot = hand.snapshot().await.unwrap();
    hand.travel_by(DAY).await.unwrap();
    hand.set_next_timestamp(at(2 * DAY.0)).await.unwrap();
    chain.submit(&transfer(person(0), 1, NOBODY, 1)).unwrap();
    hand.mine_many(3, None).await.unwrap();
    blocks(&mut chain, 3).await;
    chain.submit(&transfer(person(0), 2, NOBODY, 1)).unwrap();

    hand.reset().await.unwrap();
    assert_eq!(chain.listener.state(), developer_genesis().state().unwrap());
    assert!(chain.admission.pool().lock().is_empty());
    assert!(matches!(hand.revert(snapshot).await, Err(ControlError::UnknownSnapshot { .. })));
    assert_eq!(hand.next_time(), chain.clock.now());
    assert_eq!(act(&mut chain).await, first, "the same acts make the same blocks again");
    hand.reset().await.unwrap();
    assert_eq!(act(&mut chain).await, first);
    chain.solo.stop().await.unwrap();
}

/// A chain with everything on it, executed again from its blocks: the same roots.
#[tokio::test]
async fn edited_chains_replay() {
    let mut chain = start_developer(Mode::OnDemand, &[at(5_000), at(90_000)]);
    let hand = controls(&chain);
    hand.edit(vec![Edit::Balance { account: COUNTER, balance: U256::from(10).pow(U256::from(18)) }])
        .await
        .unwrap();
    hand.edit(vec![Edit::Code { account: NOBODY, code: vec![0x5b, 0x00].into() }, balance(3)]).await.unwrap();
    hand.travel_by(DAY).await.unwrap();
    chain
        .admission
        .admit(impersonate(COUNTER, eip1559(1, TxKind::Call(NOBODY), 4, Bytes::new(), 50_000)))
        .unwrap();
    let made = blocks(&mut chain, 5).await;
    let (application, mut tip) = application_of(&developer_genesis(), &[at(5_000), at(90_000)]);
    for block in made {
        let received = Block::decode(&block.encode()).unwrap();
        let replayed = application.verify(&tip, received).await.unwrap();
        application.commit(&replayed).await.unwrap();
        tip = replayed.tip;
    }
    assert_eq!(tip.header.number, 5);
}

/// The same edits mean nothing to a chain whose genesis does not allow them, whoever proposes the block.
#[tokio::test]
async fn a_network_refuses_a_block_with_an_edit() {
    let genesis = Genesis { developer: false, ..developer_genesis() };
    let (network, tip) = application_of(&genesis, nothing());
    let transaction = impersonate(DEVELOPER, eip1559(0, TxKind::Call(NOBODY), 1, Bytes::new(), 21_000));
    let proposal = Proposal {
        timestamp: at(1),
        fee_recipient: FEE_RECIPIENT,
        consensus: Default::default(),
        candidates: vec![recovered(transaction)],
        more: almanac_consensus::More::NONE,
        deadline: Deadline::NEVER,
    };
    let forged = network.propose(&tip, proposal).await.unwrap();
    assert_eq!(forged.block.transactions.len(), 1, "a dishonest proposer skips the rule");
    let refused = network.verify(&tip, (*forged.block).clone()).await.unwrap_err();
    assert!(refused.to_string().contains("did not sign"), "{refused}");
}
