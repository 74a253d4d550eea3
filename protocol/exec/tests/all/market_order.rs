//! The order of a block's transactions: market runs are merged among them by price, for a proposer as for a verifier.

use crate::support::{contracts::*, runs::*, *};
use alloy_consensus::TxEip1559;
use alloy_primitives::{Bytes, TxKind};
use almanac_exec::{BlockBody, BlockError, Executed, TransactionError, execute};
use almanac_primitives::{GasPrice, Lane, Receipt, RecoveredTransaction, RunTransaction, run::RUN_TYPE};
use proptest::prelude::*;

/// AIP125-14: scheduled {500, 200, 300} and user [400, 100, 250] give 500, 400, 300, 200, 100, 250.
#[test]
fn aip125_14_market_runs_are_merged_by_price() {
    let mut chain = TestChain::new();
    // The lane's own order is by price.
    let runs = [500, 300, 200].map(|steps| priced(steps, price(&chain, steps)));
    chain.plant_runs(&runs);
    let users = [400, 100, 250];
    let transactions =
        users.iter().zip(0..).map(|(&steps, n)| paying(person(n), 0, price(&chain, steps), NOWHERE, 21_000));
    let transactions = transactions.collect();
    let base = base_fee_next(&chain);

    let output = chain.produce(transactions).output;

    // Each of the schedules is named after its bid.
    let bid = |receipt: &Receipt| receipt.schedule_ref.map(|run| u128::from(run.schedule.0));
    let paid = |receipt: &Receipt| (receipt.effective_gas_price.0 - base) / 1_000_000;
    let order: Vec<_> =
        output.receipts[1..].iter().map(|receipt| bid(receipt).unwrap_or_else(|| paid(receipt))).collect();
    assert_eq!(order, [500, 400, 300, 200, 100, 250]);
    assert_eq!(ran(&output), [500, 300, 200]);
    chain.replay();
}

#[test]
fn aip125_14_a_tie_goes_to_the_user_transaction() {
    let mut chain = TestChain::new();
    let (fee, above) = (price(&chain, 100), price(&chain, 100) + 1);
    chain.plant_runs(&[priced(1, above), priced(2, fee)]);
    let output = chain.produce(vec![paying(person(0), 0, fee, NOWHERE, 21_000)]).output;
    let kinds: Vec<_> = output.receipts[1..].iter().map(|receipt| receipt.transaction_type).collect();
    assert_eq!(kinds, [RUN_TYPE, 2, RUN_TYPE], "one wei more goes before, the same goes after");
}

/// What a transaction pays in this block decides, not what it would pay at most.
#[test]
fn aip125_14_the_price_is_the_effective_one() {
    let mut chain = TestChain::new();
    let fee = price(&chain, 100);
    chain.plant_runs(&[priced(1, fee)]);
    let tx = eip1559(0, TxKind::Call(NOWHERE), 0, Bytes::new(), 21_000);
    let modest = TxEip1559 { max_fee_per_gas: fee * 10, max_priority_fee_per_gas: 1, ..tx };
    let output = chain.produce(vec![sign(modest, person(0).secret)]).output;
    assert_eq!(output.receipts[1].transaction_type, RUN_TYPE, "a high cap with a low tip is a low price");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Said differently: a run stands directly before the first user transaction that pays less than it does.
    #[test]
    fn aip125_14_merging_agrees_with_the_written_rule(
        mut run_steps in proptest::collection::vec(0u64..8, 0..8),
        user_steps in proptest::collection::vec(0u64..8, 0..8),
    ) {
        run_steps.sort_unstable_by(|a, b| b.cmp(a));
        let mut chain = TestChain::new();
        let runs: Vec<_> = run_steps.iter().zip(0..).map(|(&steps, id)| priced(id, price(&chain, steps))).collect();
        chain.plant_runs(&runs);
        let users = user_steps.iter().zip(0..);
        let users = users.map(|(&steps, n)| paying(person(n), 0, price(&chain, steps), NOWHERE, 21_000)).collect();

        let output = chain.produce(users).output;

        let place = |steps: u64| user_steps.iter().position(|&user| user < steps).unwrap_or(user_steps.len());
        let mut expected: Vec<(usize, u8, usize)> =
            run_steps.iter().enumerate().map(|(n, &steps)| (place(steps), 0, n)).collect();
        expected.extend((0..user_steps.len()).map(|n| (n, 1, n)));
        expected.sort_unstable();
        let expected: Vec<_> = expected.into_iter().map(|(_, kind, n)| (kind, n)).collect();
        let order: Vec<_> = output.transactions[1..].iter().map(|executed| match executed {
            Executed::Run(run) => (0, usize::try_from(run.schedule_ref.schedule.0).unwrap()),
            Executed::User(user) => (1, (0..10).position(|n| person(n).address == user.sender()).unwrap()),
            Executed::Prologue(_) => unreachable!(),
        }).collect();
        prop_assert_eq!(order, expected);
    }
}

/// A chain on which the first two people can be emptied by a call of themselves: their accounts delegate.
pub(crate) fn with_delegates() -> TestChain {
    let mut genesis = genesis();
    for n in [0, 1] {
        let account = genesis.allocations.get_mut(&person(n).address).unwrap();
        account.code = [&[0xef, 0x01, 0x00], DESTRUCTIBLE.as_slice()].concat().into();
    }
    TestChain::from_genesis(&genesis)
}

/// A run that leaves its owner with nothing for the transaction behind it.
fn draining(id: u64, from: Person, price: u128) -> RunTransaction {
    RunTransaction {
        gas_price: GasPrice(price),
        input: to(NOWHERE, &[]),
        ..run(id, Lane::Market, from.address, from.address, 200_000)
    }
}

/// Runs go ahead of a transaction, which then is refused because of what they did. Whatever is chosen next must
/// stand behind them for a verifier too, who never sees the refused one.
#[test]
fn what_follows_a_transaction_that_its_own_run_emptied() {
    let mut chain = with_delegates();
    let at = |steps| price(&chain, steps);
    let runs = vec![draining(1, person(0), at(500)), priced(2, at(450)), priced(3, at(100))];
    let refused = paying(person(0), 1, at(400), NOWHERE, 21_000);
    let cheaper = paying(person(1), 1, at(300), NOWHERE, 21_000);
    let dearer_behind_it = paying(person(2), 0, at(900), NOWHERE, 21_000);
    chain.plant_runs(&runs);

    let produced = chain.produce(vec![refused.clone(), cheaper.clone(), dearer_behind_it.clone()]);

    let [(hash, TransactionError::InsufficientFunds { .. })] = &produced.refused[..] else {
        panic!("{:?}", produced.refused)
    };
    assert_eq!(*hash, refused.hash());
    let order: Vec<_> =
        produced.output.receipts[1..].iter().map(|receipt| receipt.transaction_hash).collect();
    let run_hash = |id| run_receipt(&produced.output, id).transaction_hash;
    assert_eq!(
        order,
        [run_hash(1), run_hash(2), cheaper.hash(), dearer_behind_it.hash(), run_hash(3)],
        "a cheaper one goes on behind the runs; behind it anything goes again"
    );
    chain.replay();
}

/// One that pays as much as a run that went ahead would, in a body without the refused one, stand before it.
#[test]
fn aip125_14_what_a_verifier_would_order_differently_is_left_for_later() {
    for (steps, is_chosen) in [(449, true), (450, false), (500, false), (501, false)] {
        let mut chain = with_delegates();
        let base = base_fee_next(&chain);
        let at = |steps| base + u128::from(steps as u64) * 1_000_000;
        let runs = vec![draining(1, person(0), at(500)), priced(2, at(450))];
        let refused = paying(person(0), 1, at(400), NOWHERE, 21_000);
        let next = paying(person(1), 1, at(steps), NOWHERE, 21_000);
        chain.plant_runs(&runs);

        // By construction: a body with it alone puts it before a run which had already gone ahead.
        let alone = vec![recovered(next.clone())];
        let verified =
            execute(&chain.state, &*chain.agenda, &chain.input(), &mut BlockBody::new(alone)).unwrap();
        let place =
            |hash| verified.receipts.iter().position(|receipt| receipt.transaction_hash == hash).unwrap();
        let last_run = place(run_receipt(&verified, 2).transaction_hash);
        assert_eq!(place(next.hash()) > last_run, is_chosen);

        let (price, ahead) = (GasPrice(at(steps)), GasPrice(at(450)));
        // The choice goes on behind it.
        let last = paying(person(2), 0, at(1), NOWHERE, 21_000);
        let produced = chain.produce(vec![refused, next, last]);
        let left: Vec<_> = produced.refused[1..].iter().map(|(_, error)| error.clone()).collect();
        let expected = if is_chosen { vec![] } else { vec![TransactionError::BehindRuns { price, ahead }] };
        assert_eq!(left, expected, "at {steps}");
        assert_eq!(produced.output.block_body().count(), 1 + usize::from(is_chosen), "at {steps}");
        assert_eq!(ran(&produced.output), [1, 2], "and all runs ran");
        chain.replay();
    }
}

/// Several refused in a row: the cheapest run that went ahead of any of them is the bound.
#[test]
fn refused_transactions_in_a_row_keep_the_lowest_bound() {
    let mut chain = with_delegates();
    let at = |steps| price(&chain, steps);
    let runs = vec![draining(1, person(0), at(500)), draining(2, person(1), at(300)), priced(3, at(100))];
    let candidates = vec![
        paying(person(0), 1, at(400), NOWHERE, 21_000),
        paying(person(1), 1, at(200), NOWHERE, 21_000),
        paying(person(2), 0, at(299), NOWHERE, 21_000),
        paying(person(3), 0, at(600), NOWHERE, 21_000),
    ];
    chain.plant_runs(&runs);
    let produced = chain.produce(candidates);
    assert_eq!(produced.refused.len(), 2);
    assert_eq!(produced.output.block_body().count(), 2);
    chain.replay();
}

/// One whose cap is below the base fee has no price; it must not draw the whole lane ahead of itself.
#[test]
fn a_transaction_without_a_price_moves_nothing() {
    let mut chain = TestChain::new();
    let fee = base_fee_next(&chain);
    chain.plant_runs(&[priced(1, fee + 100)]);
    let unpriced = paying(person(0), 0, fee - 1, NOWHERE, 21_000);
    let rich = paying(person(1), 0, fee + 200, NOWHERE, 21_000);
    let produced = chain.produce(vec![unpriced, rich.clone()]);
    let expected = TransactionError::FeeCapBelowBaseFee { cap: GasPrice(fee - 1), base_fee: GasPrice(fee) };
    assert_eq!(produced.refused[0].1, expected);
    assert_eq!(
        produced.output.receipts[1].transaction_hash,
        rich.hash(),
        "before the run, as its price says"
    );
}

#[test]
fn aip125_14_a_market_run_waits_where_the_gas_that_is_left_does_not_suffice() {
    let mut chain = TestChain::new();
    let fee = price(&chain, 0);
    let large = RunTransaction {
        gas_price: GasPrice(fee + 2),
        ..run(1, Lane::Market, owner(1), COUNTER, 20_000_000)
    };
    let small =
        RunTransaction { gas_price: GasPrice(fee + 1), ..run(2, Lane::Market, owner(2), COUNTER, 100_000) };
    chain.plant_runs(&[large, small]);
    let first = |gas| paying(person(0), 0, fee + 3, FAILER, gas);

    let (output, _) = build(&chain, vec![first(10_000_000)]);
    assert_eq!(ran(&output), [1, 2], "exactly enough is left");

    let output = chain.produce(vec![first(10_000_001)]).output;
    assert_eq!(ran(&output), [2], "one unit too little, and the small one goes on");
    assert_eq!(ran(&chain.produce(vec![]).output), [1], "it waited for the next block");
    chain.replay();
}

/// A run that does not fit leaves the lane to the next block also where the transaction behind it is refused.
#[test]
fn a_run_that_does_not_fit_and_a_refused_transaction() {
    let mut chain = TestChain::new();
    let at = |steps| price(&chain, steps);
    let run = RunTransaction {
        gas_price: GasPrice(at(500)),
        ..run(1, Lane::Market, owner(1), COUNTER, 20_000_001)
    };
    let filling = paying(person(0), 0, at(900), FAILER, 10_000_000);
    let refused = paying(person(1), 7, at(400), NOWHERE, 21_000);
    let dearer = paying(person(2), 0, at(600), NOWHERE, 21_000);
    chain.plant_runs(&[run]);

    let produced = chain.produce(vec![filling, refused, dearer]);

    assert!(matches!(produced.refused[..], [(_, TransactionError::NonceTooHigh { .. })]));
    assert_eq!(produced.output.block_body().count(), 2);
    assert_eq!(ran(&produced.output), [0u64; 0]);
    assert_eq!(ran(&chain.produce(vec![]).output), [1]);
    chain.replay();
}

/// A body is checked with its runs among it: one that the runs made impossible voids the block.
#[test]
fn a_body_with_a_transaction_that_a_run_emptied_is_invalid() {
    let mut chain = with_delegates();
    let fee = price(&chain, 400);
    let drain = draining(1, person(0), fee + 1);
    chain.plant_runs(&[drain]);
    let body: Vec<RecoveredTransaction> =
        [paying(person(1), 1, fee, NOWHERE, 21_000), paying(person(0), 1, fee, NOWHERE, 21_000)]
            .map(recovered)
            .into();
    let error = execute(&chain.state, &*chain.agenda, &chain.input(), &mut BlockBody::new(body)).unwrap_err();
    let BlockError::InvalidTransaction {
        index: 1,
        error: TransactionError::InsufficientFunds { sender, .. },
    } = error
    else {
        panic!("{error}")
    };
    assert_eq!(sender, person(0).address);
}
