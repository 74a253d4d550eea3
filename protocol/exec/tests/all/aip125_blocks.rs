//! AIP-125 in blocks: who is ready, in which order they run, what they pay, and how they end.

use crate::support::{contracts::*, market::*, runs::*, *};
use alloy_primitives::{Address, Bytes, U256};
use almanac_exec::{BlockOutput, Executed};
use almanac_primitives::{
    Gas, GasPrice, Genesis, Halt, Lane, Outcome, ScheduleId, StateKey, TimestampMs,
    addresses::{LEDGER, SCHEDULED_TRANSACTIONS},
    params::{
        MARKET_EXPIRIES_MAX, MARKET_LOOKS_MAX, MARKET_PAUSED, MARKET_READY_MAX, MARKET_RUN_GAS_LARGEST,
    },
    run::RUN_TYPE,
};
use almanac_schedule::{
    Agenda as _, Calendar, CalendarAgenda,
    calendar::Queue,
    decide::End,
    life::What,
    record::{LastRun, Status as Held},
};

/// Bids in millions of wei above the next base fee.
fn bid(market: &Market, steps: u64) -> u64 {
    u64::try_from(market.base_fee()).unwrap() + steps * 1_000_000
}

fn bidding(at_ms: u64, price: u64) -> ScheduledTransaction {
    ScheduledTransaction { maxGasUnitPrice: price, ..txn(at_ms) }
}

fn waiting(market: &Market) -> usize {
    Calendar::new(&market.chain.state).due_from(Queue::Waiting, u64::MAX, None, usize::MAX).unwrap().len()
}

#[test]
fn aip125_04_a_run_is_never_early_and_less_than_100_ms_late() {
    let mut market = Market::new();
    let base = (market.next() + 10_000).next_multiple_of(100);
    for past in [1, 50, 99, 100] {
        let key = market.insert(&txn(base + past)).unwrap();
        assert_eq!(market.record(&key).head.due, Some(TimestampMs(base + 100)));
    }
    assert_eq!(market.at(base + 99).len(), 0, "a millisecond too early");
    assert_eq!(market.at(base + 100).len(), 4);
    market.chain.replay();
}

#[test]
fn aip125_09_nothing_scheduled_in_a_block_runs_in_it() {
    let mut market = Market::new();
    let now = market.next();
    // Due a millisecond after the block that inserts it, and a scheduled one that inserts another.
    let key = market.insert(&txn(now + 1)).unwrap();
    assert_eq!(market.now(), now);
    assert_eq!(ran_last(&market), [0u64; 0]);
    assert_eq!(market.at(now + 100), [market.id(&key)]);
}

fn ran_last(market: &Market) -> Vec<u64> {
    ran(market.chain.outputs.last().unwrap())
}

fn ids(market: &Market, keys: &[ScheduleMapKey]) -> Vec<ScheduleId> {
    keys.iter().map(|key| market.id(key)).collect()
}

fn ran(output: &BlockOutput) -> Vec<u64> {
    runs::ran(output)
}

/// At the source's limit of 100: the best hundred run, and the others wait by price, whatever their time.
#[test]
fn aip125_10_the_limit_goes_to_the_highest_bids() {
    let mut market = Market::with_parameters(&[("market_ready_max", 100)]);
    let due = market.next() + 20_000;
    // The first hundred in time are the cheapest.
    let txns: Vec<_> = (0..120).map(|n| bidding(due + n * 100, 5 * GWEI + n)).collect();
    let keys = market.insert_all(sender(), &txns);
    let ran = market.at(due + 20_000);
    let expected: Vec<_> = ids(&market, &keys[20..]).into_iter().rev().collect();
    assert_eq!(ran, expected, "the hundred that bid most, highest first");
    assert_eq!(waiting(&market), 20);
    assert!(keys[..20].iter().all(|key| market.status(key) == Status::Waiting));
    let expected: Vec<_> = ids(&market, &keys[..20]).into_iter().rev().collect();
    assert_eq!(market.step(), expected);
    assert_eq!(MARKET_READY_MAX.default, 1_000);
    market.chain.replay();
}

/// At equal bids the older goes first, then the one that was inserted first.
#[test]
fn aip125_10_ties_go_by_time_and_birth() {
    let mut market = Market::new();
    let due = market.next() + 10_000;
    let txns = [due + 200, due, due + 100, due, due + 100].map(txn);
    let keys = market.insert_all(sender(), &txns);
    let expected = [1, 3, 2, 4, 0].map(|n| market.id(&keys[n]));
    assert_eq!(market.at(due + 1_000), expected);
}

/// Those that cannot pay use up no place, are kept by price, and come back when the base fee reaches them.
#[test]
fn aip125_10_those_below_the_base_fee_stand_in_nobodys_way() {
    let mut market = Market::with_parameters(&[("market_ready_max", 3)]);
    let due = market.next() + 10_000;
    let mut txns = vec![bidding(due, GWEI); 8];
    txns.extend([bidding(due + 100, 4 * GWEI), bidding(due + 100, 3 * GWEI)]);
    let keys = market.insert_all(sender(), &txns);
    market.congest(u128::from(2 * GWEI));
    let base = market.base_fee();
    assert!(base < u128::from(3 * GWEI));
    assert_eq!(market.at(due + 1_000), ids(&market, &keys[8..]));
    assert_eq!(waiting(&market), 8);
    let mut came = Vec::new();
    while came.len() < 8 {
        let base = market.base_fee();
        let ran = market.step();
        assert_eq!(ran.is_empty(), base > u128::from(GWEI), "they run where the base fee is {base}");
        assert!(ran.len() <= 3);
        came.extend(ran);
    }
    assert_eq!(came, ids(&market, &keys[..8]));
    market.chain.replay();
}

/// A block meets a bounded number for the first time; the next block goes on.
#[test]
fn aip125_10_looks_are_bounded() {
    let mut market = Market::with_parameters(&[("market_looks_max", 5)]);
    let due = market.next() + 10_000;
    let keys = market.insert_all(sender(), &vec![txn(due); 12]);
    let ids = ids(&market, &keys);
    let at = due + 100;
    assert_eq!(market.at(at), ids[..5]);
    assert_eq!(market.at(at + 1), ids[5..10]);
    assert_eq!(market.at(at + 2), ids[10..]);
    assert_eq!(MARKET_LOOKS_MAX.default, 5_000);
}

/// Both sides of the window: with an expiry of n it can run in the n-th block after the one that met it, and in that
/// after it is gone.
#[test]
fn aip125_11_it_expires_after_its_window_and_not_before() {
    for (blocks, given) in [(3, 3), (100, 0)] {
        for is_last_chance in [true, false] {
            let mut market = Market::new();
            let due = market.next() + 10_000;
            let asked = ScheduledTransaction { expiryBlocks: given, ..bidding(due, GWEI) };
            let key = market.insert(&asked).unwrap();
            let id = market.id(&key);
            // Above its bid, and held there by full blocks.
            market.congest(u128::from(GWEI));
            let fill = |market: &mut Market, n: u64| {
                let price = market.base_fee() + 1;
                let filling = market.filling(5, price, 15_000_000);
                let produced = market.block(due + n, vec![filling]);
                assert!(produced.refused.is_empty(), "{:?}", produced.refused);
                produced
            };
            fill(&mut market, 1);
            assert_eq!(market.status(&key), Status::Waiting, "met");
            for n in 1..blocks {
                assert_eq!(runs::ran(&fill(&mut market, 1 + n).output), [0u64; 0]);
                assert_eq!(market.status(&key), Status::Waiting, "block {n} after it");
            }
            let before = market.chain.balance(sender().address);
            if is_last_chance {
                // The base fee comes down by hand: the last block of the window.
                market.lower_base_fee(u128::from(GWEI));
                assert_eq!(market.at(due + 1 + blocks), [id]);
                continue;
            }
            fill(&mut market, 1 + blocks);
            assert_eq!(market.status(&key), Status::Waiting, "the last block of its window");
            fill(&mut market, 2 + blocks);
            let said = market.said::<TransactionFailedEvent>();
            assert_eq!(said.len(), 1);
            assert_eq!((said[0].cancelledTxnCode, &said[0].key), (CancelledTxnCode::Expired, &key));
            assert_eq!((said[0].senderAddr, said[0].id), (sender().address, U256::from(id.0)));
            assert_eq!(market.status(&key), Status::Expired);
            assert_eq!(market.chain.balance(sender().address) - before, deposit(&asked), "in full");
        }
    }
}

impl Market {
    /// Changes the header's base fee, as if earlier blocks had been empty.
    fn lower_base_fee(&mut self, below: u128) {
        self.chain.head.base_fee = GasPrice(below / 2);
        self.chain.head.gas_used = Gas(0);
    }
}

/// A pause and a halt expire nothing: only blocks of an open lane count.
#[test]
fn aip125_11_a_pause_does_not_count() {
    let mut market = Market::new();
    let due = market.next() + 10_000;
    let key = market.insert(&ScheduledTransaction { expiryBlocks: 2, ..bidding(due, GWEI) }).unwrap();
    market.congest(u128::from(4 * GWEI));
    market.at(due + 1);
    assert_eq!(market.status(&key), Status::Waiting);
    // The block that pauses is still open: the first of two.
    market.govern(MARKET_PAUSED, 1);
    for _ in 0..5 {
        market.at(market.now() + 1);
    }
    market.congest(u128::from(4 * GWEI));
    market.at(market.now() + 86_400_000);
    assert_eq!(market.status(&key), Status::Waiting, "neither a pause nor a halt expires it");
    market.congest(u128::from(4 * GWEI));
    // The block that unpauses is still paused.
    market.govern(MARKET_PAUSED, 0);
    let clock = |market: &Market| market.record(&key).head.until;
    let until = clock(&market);
    market.at(market.now() + 1);
    assert_eq!((market.status(&key), clock(&market)), (Status::Waiting, until), "the second");
    market.at(market.now() + 1);
    assert_eq!(market.status(&key), Status::Expired);
    market.chain.replay();
}

#[test]
fn aip125_11_expiries_of_a_block_are_bounded_and_no_expired_one_runs() {
    let mut market = Market::with_parameters(&[("market_expiries_max", 2)]);
    let due = market.next() + 10_000;
    let keys =
        market.insert_all(sender(), &vec![ScheduledTransaction { expiryBlocks: 1, ..bidding(due, GWEI) }; 7]);
    market.congest(u128::from(4 * GWEI));
    for n in 1..=2 {
        market.at(due + n);
        assert_eq!(waiting(&market), 7);
    }
    market.at(due + 3);
    assert_eq!((market.said::<TransactionFailedEvent>().len(), waiting(&market)), (2, 5));
    // The others have had their time as well: where the base fee reaches them now, they end and do not run.
    market.lower_base_fee(u128::from(GWEI));
    assert_eq!(market.at(due + 4), []);
    assert_eq!((market.said::<TransactionFailedEvent>().len(), waiting(&market)), (5, 0));
    assert!(keys.iter().all(|key| market.status(key) == Status::Expired));
    assert_eq!(market.chain.balance(LEDGER), U256::ZERO);
    assert_eq!(MARKET_EXPIRIES_MAX.default, 100);
}

/// The status is the removal table: it changes with the run, the calendar at the end of the block.
#[test]
fn aip125_12_an_executed_key_cannot_run_again() {
    let mut market = Market::new();
    let due = market.next() + 5_000;
    let key = market.insert(&txn(due)).unwrap();
    let id = market.id(&key);
    assert_eq!(market.at(due + 100), [id]);
    let record = market.record(&key);
    assert_eq!(
        (record.head.status, record.head.runs, record.head.last),
        (Held::Succeeded, 1, LastRun::Succeeded)
    );
    let calendar = Calendar::new(&market.chain.state);
    for queue in [Queue::Market, Queue::Waiting, Queue::Expiring] {
        assert_eq!(calendar.count(queue).unwrap(), 0, "{queue:?}");
    }
    for _ in 0..5 {
        assert_eq!(market.step(), []);
    }
    assert_eq!(count_of(&market.chain.state, sender().address), U256::from(1));
    market.chain.replay();
}

/// Ends stay readable, and then leave nothing behind.
#[test]
fn aip125_12_ends_are_kept_and_swept() {
    let mut market = Market::with_parameters(&[("ended_kept_blocks", 3)]);
    let due = market.next() + 5_000;
    let key = market.insert(&txn(due)).unwrap();
    market.at(due + 100);
    for n in 0..2 {
        assert_eq!(market.status(&key), Status::Succeeded, "{n}");
        market.step();
    }
    market.step();
    assert_eq!(market.status(&key), Status::Unknown);
    let left = market
        .chain
        .state
        .0
        .keys()
        .filter(|key| matches!(key, StateKey::Slot(LEDGER, _) | StateKey::Body(_)));
    assert_eq!(left.count(), 0, "no head, no escrow, no name");
}

/// A block reads no more because more is pending.
#[test]
fn aip125_13_finding_the_ready_ones_does_not_depend_on_what_is_pending() {
    let mut counts = Vec::new();
    for pending in [1u64, 10, 1_000] {
        let mut market = Market::new();
        let due = market.next() + 10_000;
        let far = due + 3_600_000;
        let runs: Vec<_> = (0..pending)
            .map(|n| {
                almanac_schedule::testing::record(
                    TimestampMs(far + n * 100),
                    &priced(1_000 + n, 5_000_000_000),
                )
            })
            .collect();
        market.chain.plant(runs);
        let key = market.insert(&txn(due)).unwrap();
        let id = market.id(&key);
        let input = market.chain.input_at(TimestampMs(due + 100));
        let counting = Counting { state: &market.chain.state, reads: Default::default() };
        let output = almanac_exec::execute(
            &counting,
            &CalendarAgenda,
            &input,
            &mut almanac_exec::BlockBody::new(vec![]),
        )
        .unwrap();
        assert_eq!(ran(&output), [id.0]);
        counts.push(counting.reads.into_inner());
    }
    // Deeper trees have longer ways down: a node for every sixteenfold at most.
    assert!(counts[2] <= counts[0] + 12, "{counts:?}");
}

/// The vector of the specification, through the door.
#[test]
fn aip125_14_the_vector() {
    let mut market = Market::new();
    let due = market.next() + 10_000;
    let first = bid(&market, 0);
    let txns = [500, 200, 300].map(|steps| bidding(due, first + steps * 1_000_000));
    let keys = market.insert_all(sender(), &txns);
    let base = market.base_fee();
    let at = |steps: u64| u128::from(first + steps * 1_000_000);
    assert!(base <= u128::from(first));
    let users = [400, 100, 250].into_iter().zip(1..).map(|(steps, n)| market.paying(n, at(steps))).collect();
    let output = market.block(due + 100, users).output;
    let steps: Vec<_> = output.transactions[1..]
        .iter()
        .zip(&output.receipts[1..])
        .map(|(executed, receipt)| match executed {
            Executed::Run(run) => {
                let place = keys.iter().position(|key| market.id(key) == run.schedule_ref.schedule).unwrap();
                [500, 200, 300][place]
            }
            _ => (receipt.effective_gas_price.0 - u128::from(first)) / 1_000_000,
        })
        .collect();
    assert_eq!(steps, [500, 400, 300, 200, 100, 250]);
    // AIP125-15: each pays its bid or the highest user price, 400.
    let paid = |n: usize| market.run(market.id(&keys[n])).effective_gas_price.0;
    assert_eq!([paid(0), paid(1), paid(2)], [at(400), at(200), at(300)]);
    market.chain.replay();
}

/// One that does not fit waits, and cheaper ones go on.
#[test]
fn aip125_14_one_that_does_not_fit_waits() {
    let mut market = Market::new();
    let due = market.next() + 10_000;
    let large = ScheduledTransaction { maxGasAmount: MARKET_RUN_GAS_LARGEST, ..bidding(due, 6 * GWEI) };
    let keys = market.insert_all(sender(), &[large, bidding(due, 5 * GWEI)]);
    for (gas, waits) in [(25_000_001, true), (25_000_000, false)] {
        let input = market.chain.input_at(TimestampMs(due + 100));
        let filling = market.filling(1, u128::from(7 * GWEI), gas);
        let mut source = almanac_exec::Candidates::new(vec![recovered(filling)]);
        let output =
            almanac_exec::execute(&market.chain.state, &CalendarAgenda, &input, &mut source).unwrap();
        let expected = if waits {
            vec![market.id(&keys[1]).0]
        } else {
            ids(&market, &keys).iter().map(|id| id.0).collect()
        };
        assert_eq!(ran(&output), expected, "{gas}");
    }
    let filling = market.filling(1, u128::from(7 * GWEI), 25_000_001);
    market.block(due + 100, vec![filling]);
    assert_eq!(market.status(&keys[0]), Status::Waiting);
    assert_eq!(market.step(), [market.id(&keys[0])]);
    market.chain.replay();
}

#[test]
fn aip125_15_alone_in_a_block_it_pays_the_base_fee() {
    let mut market = Market::new();
    let due = market.next() + 10_000;
    let asked = ScheduledTransaction { to: WITNESS, maxGasAmount: 200_000, ..txn(due) };
    let key = market.insert(&asked).unwrap();
    let id = market.id(&key);
    let (before, base) = (market.chain.balance(sender().address), market.base_fee());
    let output = market.block(due + 100, vec![]).output;
    let receipt = market.run(id).clone();
    assert_eq!(receipt.effective_gas_price, GasPrice(base));
    let said = only::<TransactionExecutedEvent>(&receipt.logs);
    let paid = receipt.gas_used.cost(GasPrice(base));
    assert_eq!(said.gasUnitPriceCharged, U256::from(base));
    assert_eq!((said.gasUsed, said.refunded), (U256::from(receipt.gas_used.0), deposit(&asked) - paid.0));
    assert_eq!(output.burned, paid, "all of it is burned");
    assert_eq!(market.chain.balance(sender().address) - before, said.refunded);
    assert_eq!(market.chain.state.slot(WITNESS, 3), U256::from(base), "GASPRICE is the base fee");
    assert_eq!(market.chain.balance(FEE_RECIPIENT), market.chain.balance(FEE_RECIPIENT));
    market.chain.replay();
}

/// A dear user transaction anywhere in the block raises the price, up to the bid; GASPRICE stays the base fee, and the
/// proposer gets none of it.
#[test]
fn aip125_15_the_highest_user_price_is_paid_and_burned() {
    for (top, expected) in [(3 * GWEI, 3 * GWEI), (5 * GWEI, 5 * GWEI), (9 * GWEI, 5 * GWEI)] {
        let mut market = Market::new();
        let due = market.next() + 10_000;
        let key =
            market.insert(&ScheduledTransaction { to: WITNESS, maxGasAmount: 200_000, ..txn(due) }).unwrap();
        let id = market.id(&key);
        let (base, tips) = (market.base_fee(), market.chain.balance(FEE_RECIPIENT));
        let users = vec![market.paying(1, base), market.paying(2, u128::from(top))];
        let output = market.block(due + 100, users).output;
        let receipt = market.run(id);
        assert_eq!(receipt.effective_gas_price, GasPrice(expected.into()));
        assert_eq!(market.chain.state.slot(WITNESS, 3), U256::from(base));
        let run = receipt.gas_used.cost(GasPrice(expected.into())).0;
        assert_eq!(output.burned.0, run + Gas(42_000).cost(GasPrice(base)).0);
        let tip = U256::from(21_000) * (U256::from(top) - U256::from(base));
        assert_eq!(market.chain.balance(FEE_RECIPIENT) - tips, tip, "the tips of transactions alone");
        market.chain.replay();
    }
}

/// Proposed and verified give the same receipts root, which has price and door logs in it.
#[test]
fn aip125_16_gas_really_used_is_charged_and_the_rest_returns_in_the_block() {
    let mut market = Market::new();
    let due = market.next() + 10_000;
    let nothing = ScheduledTransaction { to: stranger(1), ..txn(due) };
    let key = market.insert(&nothing).unwrap();
    let before = market.chain.balance(sender().address);
    let base = market.base_fee();
    market.at(due + 100);
    let receipt = market.run(market.id(&key));
    assert_eq!(receipt.gas_used, Gas(21_000), "intrinsic gas included");
    let paid = U256::from(21_000) * U256::from(base);
    assert_eq!(market.chain.balance(sender().address) - before, deposit(&nothing) - paid);
    assert_eq!(market.chain.balance(LEDGER), U256::ZERO);
    let output = market.chain.outputs.last().unwrap();
    assert_eq!(output.receipts_root, almanac_primitives::block::receipts_root(&output.receipts));
    let told: Vec<_> = output.events.iter().map(|told| (told.index, told.event.what.clone())).collect();
    let refunded = almanac_primitives::Wei(deposit(&nothing) - paid);
    assert_eq!(
        told,
        [
            (
                1,
                What::Executed {
                    is_success: true,
                    gas_used: Gas(21_000),
                    fee: almanac_primitives::Wei(paid)
                }
            ),
            (1, What::Ended { end: End::Succeeded, owner: sender().address, refunded }),
        ]
    );
}

#[test]
fn aip125_17_a_failed_call_pays_is_not_retried_and_keeps_its_reason() {
    let mut market = Market::new();
    let due = market.next() + 10_000;
    let to_reverter = ScheduledTransaction { to: REVERTER, ..txn(due) };
    let to_burner = ScheduledTransaction { to: BURNER, ..txn(due) };
    let keys = market.insert_all(sender(), &[to_reverter, to_burner]);
    let ran = market.at(due + 100);
    assert_eq!(ran, ids(&market, &keys));
    let word = Bytes::from(U256::from(42).to_be_bytes_vec());
    let out_of_gas: Bytes =
        alloy_sol_types::SolError::abi_encode(&alloy_sol_types::Revert::from(Halt::OutOfGas.to_string()))
            .into();
    for (id, outcome, reason) in [
        (ran[0], Outcome::Reverted(word.clone()), word),
        (ran[1], Outcome::Halted(Halt::OutOfGas), out_of_gas),
    ] {
        let receipt = market.run(id);
        assert_eq!(receipt.outcome, outcome);
        let failed = only::<TransactionFailedEvent>(&receipt.logs);
        assert_eq!((failed.cancelledTxnCode, failed.reason), (CancelledTxnCode::Failed, reason));
        let executed = only::<TransactionExecutedEvent>(&receipt.logs);
        assert!(!executed.success);
        assert_eq!(executed.gasUsed, U256::from(receipt.gas_used.0));
    }
    assert_eq!(market.run(ran[1]).gas_used, Gas(100_000), "all of it");
    for key in &keys {
        assert_eq!(market.status(key), Status::Failed);
    }
    for _ in 0..3 {
        assert_eq!(market.step(), [], "no retry");
    }
    market.chain.replay();
}

/// Value goes along; where the call fails it is with its sender again, whoever made the call.
#[test]
fn aip125_17_the_value_of_a_failed_call_returns() {
    for passes_signer in [true, false] {
        for (target, arrives) in [(stranger(2), true), (REVERTER, false)] {
            let mut market = Market::new();
            let due = market.next() + 10_000;
            let asked = ScheduledTransaction {
                value: U256::from(1_234_567),
                passSigner: passes_signer,
                to: target,
                ..txn(due)
            };
            let key = market.insert(&asked).unwrap();
            let (before, base) = (market.chain.balance(sender().address), market.base_fee());
            market.at(due + 100);
            let receipt = market.run(market.id(&key));
            assert_eq!(receipt.outcome.is_success(), arrives);
            let gas = receipt.gas_used.cost(GasPrice(base)).0;
            let spent = if arrives { asked.value } else { U256::ZERO };
            assert_eq!(market.chain.balance(sender().address) - before, deposit(&asked) - gas - spent);
            assert_eq!(market.chain.balance(target), spent);
            assert_eq!(market.chain.balance(SCHEDULED_TRANSACTIONS), U256::ZERO, "the door keeps nothing");
            market.chain.replay();
        }
    }
}

/// `pass_signer` decides who calls (AIP125-01), and origin follows.
#[test]
fn aip125_01_pass_signer_decides_who_calls() {
    for (passes_signer, caller) in [(true, sender().address), (false, SCHEDULED_TRANSACTIONS)] {
        let mut market = Market::new();
        let due = market.next() + 10_000;
        let asked = ScheduledTransaction {
            passSigner: passes_signer,
            to: WITNESS,
            maxGasAmount: 200_000,
            ..txn(due)
        };
        let nonce = market.chain.nonce(sender().address) + 1;
        market.insert(&asked).unwrap();
        market.at(due + 100);
        let address = |word: U256| Address::from_word(word.into());
        assert_eq!(address(market.chain.state.slot(WITNESS, 0)), caller);
        assert_eq!(address(market.chain.state.slot(WITNESS, 1)), caller);
        assert_eq!(market.chain.nonce(sender().address), nonce, "nobody's nonce is used");
    }
}

/// A contract that is called by its run inserts its successor, with value that it brings.
#[test]
fn aip125_18_a_run_may_insert_its_successor() {
    let mut market = Market::new();
    let due = market.next() + 10_000;
    // The forwarder calls the door with all of the value of its call, as itself.
    let successor = ScheduledTransaction { senderAddr: FORWARDER, ..txn(due + 5_000) };
    let call =
        alloy_sol_types::SolCall::abi_encode(&IScheduledTransactions::insertCall { txn: successor.clone() });
    let first = ScheduledTransaction {
        to: FORWARDER,
        value: deposit(&successor),
        maxGasAmount: 500_000,
        data: to(SCHEDULED_TRANSACTIONS, &call),
        ..txn(due)
    };
    let key = market.insert(&first).unwrap();
    let id = market.id(&key);
    assert_eq!(market.at(due + 100), [id]);
    let said = only::<TransactionScheduledEvent>(&market.run(id).logs);
    assert_eq!((said.senderAddr, said.to), (FORWARDER, COUNTER), "whoever calls is the sender");
    let next = market.id(&said.key);
    assert_eq!(market.at(due + 5_000), [next]);
    assert_eq!(count_of(&market.chain.state, FORWARDER), U256::from(1));
    let refund = market.chain.balance(FORWARDER);
    assert!(refund > U256::ZERO && refund < deposit(&successor));
    market.chain.replay();
}

#[test]
fn aip125_19_a_run_is_a_transaction_that_is_linked_both_ways() {
    let mut market = Market::new();
    let due = market.next() + 10_000;
    let key = market.insert(&txn(due)).unwrap();
    let id = market.id(&key);
    market.at(due + 100);
    let receipt = market.run(id).clone();
    let output = market.chain.outputs.last().unwrap();
    let run = output.transactions.iter().find_map(Executed::run).unwrap();
    assert_eq!((receipt.transaction_type, receipt.transaction_hash), (RUN_TYPE, run.hash()));
    assert_eq!((run.lane, run.schedule_ref.schedule, run.schedule_ref.number), (Lane::Market, id, 0));
    assert_eq!(receipt.schedule_ref, Some(run.schedule_ref));
    let said = only::<TransactionExecutedEvent>(&receipt.logs);
    assert_eq!((said.id, &said.key, said.success), (U256::from(id.0), &key, true));
    assert_eq!(market.read(IScheduledTransactions::keyOfCall { id: said.id }), key);
}

/// A solo sequencer makes blocks for those that wait and can pay, and for a shutdown; else waiting makes none.
#[test]
fn aip125_10_waiting_makes_blocks_only_where_the_next_base_fee_is_reached() {
    let mut market = Market::new();
    let due = market.next() + 10_000;
    let key = market.insert(&bidding(due, GWEI)).unwrap();
    let next = |market: &Market, fee: u64| {
        let parameters = almanac_exec::environment::read_parameters(&market.chain.state).unwrap();
        CalendarAgenda.next_due(&market.chain.state, &parameters, GasPrice(fee.into())).unwrap()
    };
    assert_eq!(next(&market, 1), Some(TimestampMs(due.next_multiple_of(100))));
    market.congest(u128::from(2 * GWEI));
    market.at(due + 1_000);
    assert_eq!(market.status(&key), Status::Waiting);
    assert_eq!(next(&market, GWEI + 1), None);
    assert_eq!(next(&market, GWEI), Some(TimestampMs(0)), "at once");
    market.govern(MARKET_PAUSED, 1);
    assert_eq!(next(&market, GWEI), None, "a pause makes none");
    market.govern(MARKET_PAUSED, 0);
    market.govern(almanac_primitives::params::MARKET_SHUTDOWN, 1);
    assert_eq!(next(&market, u64::MAX), Some(TimestampMs(0)));
    market.step();
    market.step();
    assert_eq!((market.service(), next(&market, 1)), (Service::ShutdownComplete, None));
}

/// Mandatory work halves with failed views: ready, looks, and gas.
#[test]
fn aip125_10_work_halves_with_failed_views() {
    let mut market = Market::with_parameters(&[("market_ready_max", 8)]);
    let due = market.next() + 10_000;
    market.insert_all(sender(), &vec![txn(due); 30]);
    let mut at = due;
    for (failed, expected) in [(0, 8), (1, 8), (2, 4), (3, 2), (4, 1), (70, 1)] {
        market.failed_views = failed;
        at += 100;
        assert_eq!(market.at(at).len(), expected, "after {failed}");
    }
    let mut market = Market::from_genesis(Genesis { ..genesis() }, &[]);
    let due = market.next() + 10_000;
    let heavy =
        ScheduledTransaction { to: FAILER, maxGasAmount: 5_000_000, maxGasUnitPrice: GWEI, ..txn(due) };
    market.insert_all(sender(), &vec![heavy; 6]);
    market.failed_views = 3;
    assert_eq!(market.at(due + 100).len(), 1, "7.5 M gas hold one of 5 M");
    market.failed_views = 90;
    market.lower_base_fee(u128::from(GWEI));
    assert_eq!(market.at(due + 200).len(), 1, "never less than the largest single run");
    assert_eq!(waiting(&market), 4);
}

/// A transfer of nothing, for exactly its gas: a thousand of them fit a block.
fn smallest(at_ms: u64) -> ScheduledTransaction {
    ScheduledTransaction { maxGasAmount: 21_000, to: person(7).address, ..txn(at_ms) }
}

/// More transfers than a block holds, at a price below every bid.
fn more_than_a_block_holds(market: &Market) -> Vec<almanac_primitives::UserTransaction> {
    let price = market.base_fee() + 1;
    let of = |n: u64| {
        let first = market.chain.nonce(person(n).address);
        (first..first + 300).map(move |nonce| paying(person(n), nonce, price, person(7).address, 21_000))
    };
    (1..6).flat_map(of).collect()
}

/// In gas: beside a thousand runs, users lose what the runs use and less than 2 % more.
#[test]
fn aip125_p1_users_lose_the_gas_that_runs_use_and_no_more() {
    let mut market = Market::new();
    let due = market.next() + 60_000;
    let keys = market.insert_all(sender(), &vec![smallest(due); 1_000]);
    let alone = market.block(due - 1_000, more_than_a_block_holds(&market)).output.gas_used.0;
    let beside = market.block(due + 100, more_than_a_block_holds(&market));
    assert_eq!(ran(&beside.output).len(), keys.len());
    let runs = 21_000 * keys.len() as u64;
    let lost = alone - (beside.output.gas_used.0 - runs);
    assert!(lost <= runs + runs / 50, "{lost} of {alone} lost beside runs of {runs}");
}

/// Hundreds in every block, 100 ms apart: each runs in the block that it is due in, and none is left.
#[test]
fn aip125_p2_hundreds_in_every_block_are_sustained() {
    let mut market = Market::new();
    let first = (market.next() + 60_000).next_multiple_of(100);
    let times: Vec<_> = (0..3).flat_map(|block| vec![first + block * 100; 300]).collect();
    let keys = market.insert_all(sender(), &times.into_iter().map(smallest).collect::<Vec<_>>());
    for (block, keys) in (0..).zip(keys.chunks(300)) {
        assert_eq!(market.at(first + 100 * block), ids(&market, keys), "block {block}");
    }
    assert_eq!(waiting(&market), 0);
}
