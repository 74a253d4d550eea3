//! A proposer that tries candidates, some of which its own market runs make fail, until its time is up: a verifier of
//! the body that comes out of it does the same, transaction by transaction.

use crate::{
    market_order::with_delegates,
    support::{contracts::*, runs::*, *},
};
use almanac_exec::{
    BlockError, BlockOutput, Candidates, Executed, Room, TransactionError, TransactionSource, execute,
};
use almanac_primitives::{Block, GasPrice, Lane, RecoveredTransaction, RunTransaction, UserTransaction};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Candidates until the deadline, which comes after so many tries.
struct UntilDeadline {
    candidates: Candidates,
    tries_left: usize,
}

impl TransactionSource for UntilDeadline {
    fn next(&mut self, room: Room) -> Option<RecoveredTransaction> {
        self.tries_left = self.tries_left.checked_sub(1)?;
        self.candidates.next(room)
    }

    fn refused(&mut self, tried: RecoveredTransaction, error: TransactionError) -> Result<(), BlockError> {
        self.candidates.refused(tried, error)
    }
}

/// A market run that is due: it bids so many steps above the base fee, and may empty one of the first two people.
#[derive(Clone, Copy, Debug)]
struct RunPlan {
    steps: u64,
    drains: Option<u64>,
    is_large: bool,
}

/// A candidate of one of six people, which pays so many steps above the base fee.
#[derive(Clone, Copy, Debug)]
struct UserPlan {
    sender: u64,
    steps: u64,
    is_large: bool,
}

fn run_plan() -> impl Strategy<Value = RunPlan> {
    let drains = prop_oneof![2 => Just(None), 1 => (0..2u64).prop_map(Some)];
    (0..8u64, drains, prop::bool::weighted(0.2)).prop_map(|(steps, drains, is_large)| RunPlan {
        steps,
        drains,
        is_large,
    })
}

fn user_plan() -> impl Strategy<Value = UserPlan> {
    (0..6u64, 0..8u64, prop::bool::weighted(0.2)).prop_map(|(sender, steps, is_large)| UserPlan {
        sender,
        steps,
        is_large,
    })
}

fn planned_run(id: u64, plan: &RunPlan, price: u128) -> RunTransaction {
    let gas_price = GasPrice(price);
    match plan.drains {
        Some(n) => {
            let owner = person(n).address;
            let drain = run(id, Lane::Market, owner, owner, 200_000);
            RunTransaction { gas_price, input: to(NOWHERE, &[]), ..drain }
        }
        None if plan.is_large => {
            RunTransaction { gas_price, ..run(id, Lane::Market, person(7).address, FAILER, 5_000_000) }
        }
        None => priced(id, price),
    }
}

fn planned_user(chain: &TestChain, nonces: &mut BTreeMap<u64, u64>, plan: &UserPlan) -> UserTransaction {
    let sender = person(plan.sender);
    let nonce = nonces.entry(plan.sender).or_insert_with(|| chain.nonce(sender.address));
    let (target, gas) = if plan.is_large { (FAILER, 11_000_000) } else { (NOWHERE, 21_000) };
    let transaction = paying(sender, *nonce, price(chain, plan.steps), target, gas);
    *nonce += 1;
    transaction
}

/// What stood where: the bid of a run, or the price of a transaction.
fn places(output: &BlockOutput, bids: &BTreeMap<u64, u128>) -> Vec<(bool, u128)> {
    let ran = output.transactions.iter().zip(&output.receipts);
    let ran = ran.filter(|(executed, _)| !matches!(executed, Executed::Prologue(_)));
    ran.map(|(_, receipt)| match receipt.schedule_ref {
        Some(run) => (true, bids[&run.schedule.0]),
        None => (false, receipt.effective_gas_price.0),
    })
    .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn aip125_14_a_verifier_does_what_the_proposer_did(
        runs in proptest::collection::vec(run_plan(), 0..7),
        users in proptest::collection::vec(user_plan(), 0..12),
        tries_left in 0..14usize,
    ) {
        let mut chain = with_delegates();
        let planned: Vec<_> =
            (1..).zip(&runs).map(|(id, plan)| planned_run(id, plan, price(&chain, plan.steps))).collect();
        chain.plant_runs(&planned);
        let bids: BTreeMap<_, _> =
            planned.iter().map(|run| (run.schedule_ref.schedule.0, run.gas_price.0)).collect();
        let mut nonces = BTreeMap::new();
        let users: Vec<_> = users.iter().map(|plan| planned_user(&chain, &mut nonces, plan)).collect();
        let candidates = Candidates::new(users.into_iter().map(recovered).collect());
        let mut source = UntilDeadline { candidates, tries_left };

        let built = execute(&chain.state, &*chain.agenda, &chain.input(), &mut source).unwrap();
        let mut next = chain.state.clone();
        next.apply(&built.diff);
        let block = built.block(next.commitment());
        let received = Block::decode(&block.encode()).unwrap();
        prop_assert_eq!(chain.verify(&received).unwrap(), built.clone());

        let places = places(&built, &bids);
        prop_assert!(built.block_body().count() <= tries_left);
        for (at, (is_run, price)) in places.iter().enumerate() {
            let later = places[at + 1..].iter().filter(|(is_run, _)| *is_run);
            let mut above = later.filter(|(_, bid)| bid > price);
            prop_assert!(above.next().is_none(), "{is_run} at {price} stands before a run that bids more: {places:?}");
        }
    }
}
