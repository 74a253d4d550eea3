//! The market lane against a dull model of it, on random histories: inserts, cancels, cancelAll, pauses, halts, changes of
//! parameters, failed views, a base fee that jumps, and user transactions of any price beside the runs.
//!
//! `TestChain` builds every block, verifies it twice from its bytes, and checks money, calendar and records after it.

use crate::support::{contracts::*, cron::paid_call, market::*, *};
use alloy_primitives::U256;
use alloy_sol_types::SolCall;
use almanac_exec::{BlockOutput, Executed};
use almanac_primitives::{
    Gas, GasPrice, Lane, Outcome, ScheduleId, UserTransaction,
    addresses::{PARAMETERS, SCHEDULED_TRANSACTIONS},
    params::{MARKET_EXPIRIES_MAX, MARKET_LOOKS_MAX, MARKET_PAUSED, MARKET_READY_MAX, Parameter, Parameters},
};
use almanac_schedule::{Record, budget, record::Status as Held};
use proptest::prelude::*;
use std::{cmp::Reverse, collections::BTreeMap};

/// What happens before a block is made, or in it.
#[derive(Clone, Debug)]
enum Act {
    /// Due after so many milliseconds, with so many steps of price, waiting for so many blocks. Some use all their gas.
    Insert {
        sender: u64,
        after: u64,
        steps: u64,
        expiry: u32,
        burns: bool,
    },
    Cancel(usize),
    CancelAll(u64),
    Set(Parameter, u64),
    /// A transfer that pays so many steps above the base fee.
    Pay(u64),
}

#[derive(Clone, Debug)]
struct Step {
    acts: Vec<Act>,
    wait: u64,
    failed_views: u64,
    /// The base fee, in steps.
    fee: u64,
}

/// One step of price.
const STEP: u64 = 100_000_000;
/// Gas of those that use all of it.
const BURN_GAS: u64 = 4_000_000;

fn acts() -> impl Strategy<Value = Act> {
    prop_oneof![
        8 => (0..2u64, 1..900u64, 0..12u64, 1..5u32, any::<bool>())
            .prop_map(|(sender, after, steps, expiry, burns)| Act::Insert { sender, after, steps, expiry, burns }),
        2 => (0..40usize).prop_map(Act::Cancel),
        1 => (0..2u64).prop_map(Act::CancelAll),
        1 => (0..2u64).prop_map(|value| Act::Set(MARKET_PAUSED, value)),
        1 => (1..5u64).prop_map(|value| Act::Set(MARKET_READY_MAX, value)),
        1 => (1..5u64).prop_map(|value| Act::Set(MARKET_LOOKS_MAX, value)),
        1 => (1..3u64).prop_map(|value| Act::Set(MARKET_EXPIRIES_MAX, value)),
        4 => (0..12u64).prop_map(Act::Pay),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let wait = prop_oneof![1..200u64, 200..2_000u64, Just(86_400_000u64)];
    let step = (proptest::collection::vec(acts(), 0..6), wait, 0..5u64, 1..12u64)
        .prop_map(|(acts, wait, failed_views, fee)| Step { acts, wait, failed_views, fee });
    proptest::collection::vec(step, 1..25)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Pending,
    Waiting { until: u64 },
    Ended(Held),
}

#[derive(Clone, Debug)]
struct Item {
    id: ScheduleId,
    key: ScheduleMapKey,
    sender: u64,
    epoch: u64,
    due: u64,
    bid: u64,
    gas: u64,
    burns: bool,
    expiry: u64,
    state: State,
}

impl Item {
    fn order(&self) -> impl Ord + use<> {
        (Reverse(self.bid), self.due, self.id)
    }
}

/// The lane, said as dully as can be.
#[derive(Default)]
struct Model {
    items: Vec<Item>,
    epochs: BTreeMap<u64, u64>,
    clock: u64,
    parameters: Parameters,
    /// Changes that are in force from the next block.
    upcoming: Vec<(Parameter, u64)>,
}

fn halved(full: u64, failed: u64) -> u64 {
    (0..failed.saturating_sub(1)).fold(full, |full, _| full / 2).max(1)
}

impl Model {
    fn is_stale(&self, item: &Item) -> bool {
        self.epochs.get(&item.sender).copied().unwrap_or(0) > item.epoch
    }

    /// Which items the start of a block makes ready, in order. Ends and moves the others.
    fn start(&mut self, now: u64, fee: u64, failed: u64) -> Ready {
        for (parameter, value) in std::mem::take(&mut self.upcoming) {
            self.parameters.load(parameter, value);
        }
        if self.parameters.get(MARKET_PAUSED) == 1 {
            return Ready::default();
        }
        let bound = |parameter| usize::try_from(halved(self.parameters.get(parameter), failed)).unwrap();
        let (ready, looks, expiries) =
            (bound(MARKET_READY_MAX), bound(MARKET_LOOKS_MAX), bound(MARKET_EXPIRIES_MAX));
        let waiting: Vec<usize> = self.indices(|item| matches!(item.state, State::Waiting { .. }));
        if !waiting.is_empty() {
            self.clock += 1;
        }
        let until = |item: &Item| match item.state {
            State::Waiting { until } => until,
            _ => u64::MAX,
        };
        let mut over: Vec<usize> =
            waiting.iter().copied().filter(|n| until(&self.items[*n]) < self.clock).collect();
        over.sort_by_key(|n| (until(&self.items[*n]), self.items[*n].id));
        over.truncate(expiries);
        let mut met: Vec<usize> = waiting.into_iter().filter(|n| self.items[*n].bid >= fee).collect();
        met.sort_by_key(|n| self.items[*n].order());
        met.truncate(ready);
        let mut due = self.indices(|item| item.state == State::Pending && item.due <= now);
        due.sort_by_key(|n| (self.items[*n].due, Reverse(self.items[*n].bid), self.items[*n].id));
        due.truncate(looks);
        for n in &over {
            self.end(*n, Held::Expired);
        }
        met.extend(due);
        met.retain(|n| !over.contains(n));
        met.sort_by_key(|n| self.items[*n].order());
        let mut found = Ready { places: ready, ..Ready::default() };
        for n in met {
            let item = self.items[n].clone();
            if self.is_stale(&item) || until(&item) < self.clock {
                self.end(n, Held::Expired);
            } else if item.bid >= fee {
                found.in_order.push(n);
            } else {
                self.wait(n);
            }
        }
        found
    }

    fn indices(&self, is_wanted: impl Fn(&Item) -> bool) -> Vec<usize> {
        (0..self.items.len()).filter(|n| is_wanted(&self.items[*n])).collect()
    }

    /// Ends one without a run. What is stale was cancelled.
    fn end(&mut self, n: usize, how: Held) {
        let how = if self.is_stale(&self.items[n].clone()) { Held::Cancelled } else { how };
        self.items[n].state = State::Ended(how);
    }

    fn wait(&mut self, n: usize) {
        if self.items[n].state == State::Pending {
            self.items[n].state = State::Waiting { until: self.clock + self.items[n].expiry };
        }
    }
}

/// Those that can run in a block, the highest bid first, and how many of them have a place.
#[derive(Default)]
struct Ready {
    in_order: Vec<usize>,
    places: usize,
}

/// What a block has used so far.
struct Used {
    shared: u64,
    market: u64,
    budget: u64,
}

impl Model {
    /// Takes the turn of every run that bids more than a price.
    fn run_above(&mut self, ready: &mut Ready, price: Option<u64>, used: &mut Used) -> Vec<ScheduleId> {
        let mut ran = Vec::new();
        while let Some(n) = ready
            .in_order
            .first()
            .copied()
            .filter(|n| ready.places > 0 && price.is_none_or(|price| self.items[*n].bid > price))
        {
            ready.in_order.remove(0);
            let item = self.items[n].clone();
            if item.gas > (30_000_000 - used.shared).min(used.budget - used.market) {
                self.wait(n);
            } else if matches!(item.state, State::Ended(_)) || self.is_stale(&item) {
                // Cancelled earlier in this block.
            } else {
                // Only what runs takes a place.
                ready.places -= 1;
                let gas = if item.burns { item.gas } else { 21_000 };
                used.shared += gas;
                used.market += gas;
                self.items[n].state = State::Ended(if item.burns { Held::Failed } else { Held::Succeeded });
                ran.push(item.id);
            }
        }
        ran
    }
}

/// A history, played on a chain and by the model.
struct Play {
    market: Market,
    model: Model,
}

impl Play {
    fn new() -> Self {
        let mut market = Market::with_parameters(&[("market_ready_max", 3), ("market_looks_max", 4)]);
        market.produce_in(1, vec![]);
        let mut model = Model::default();
        model.parameters.load(MARKET_READY_MAX, 3);
        model.parameters.load(MARKET_LOOKS_MAX, 4);
        Self { market, model }
    }

    fn step(&mut self, step: &Step) {
        // The header decides the next base fee: half a block of gas leaves it as it is.
        (self.market.chain.head.base_fee, self.market.chain.head.gas_used) =
            (GasPrice((step.fee * STEP).into()), Gas(15_000_000));
        self.market.failed_views = step.failed_views;
        let now = self.market.now() + step.wait;
        let fee = step.fee * STEP;
        assert_eq!(self.market.base_fee(), u128::from(fee));
        let mut nonces: BTreeMap<u64, u64> = BTreeMap::new();
        let acts: Vec<_> =
            step.acts.iter().map(|act| (act.clone(), self.transaction(act, now, fee, &mut nonces))).collect();
        let transactions = acts.iter().filter_map(|(_, transaction)| transaction.clone()).collect();
        let output = self.market.block(now, transactions).output;
        self.follow(&acts, &output, now, fee, step.failed_views);
        self.compare();
    }

    /// The transaction of an act, from a person of its own so that nonces are simple.
    fn transaction(
        &self,
        act: &Act,
        now: u64,
        fee: u64,
        nonces: &mut BTreeMap<u64, u64>,
    ) -> Option<UserTransaction> {
        let mut nonce = |n: u64| {
            let nonce = nonces.entry(n).or_insert_with(|| self.market.chain.nonce(person(n).address));
            *nonce += 1;
            *nonce - 1
        };
        let door = |from: u64, nonce, call: Vec<u8>| {
            Some(paid_call(person(from), nonce, SCHEDULED_TRANSACTIONS, U256::ZERO, call))
        };
        match act {
            Act::Insert { sender, .. } => {
                let txn = order(act, now, fee)?;
                Some(self.market.insertion(person(*sender), nonce(*sender), &txn))
            }
            Act::Cancel(n) => {
                let item = self.model.items.get(*n)?;
                let call = IScheduledTransactions::cancelCall { key: item.key.clone() }.abi_encode();
                door(item.sender, nonce(item.sender), call)
            }
            Act::CancelAll(sender) => {
                door(*sender, nonce(*sender), IScheduledTransactions::cancelAllCall {}.abi_encode())
            }
            Act::Set(parameter, value) => {
                let set = callbacks::IParameters::setCall {
                    name: parameter.name_word(),
                    value: U256::from(*value),
                };
                Some(paid_call(governor(), nonce(8), PARAMETERS, U256::ZERO, set.abi_encode()))
            }
            Act::Pay(steps) => {
                let price = u128::from(fee + steps * STEP);
                Some(runs::paying(person(5), nonce(5), price, person(7).address, 21_000))
            }
        }
    }

    /// The model does what the block did, transaction by transaction.
    fn follow(
        &mut self,
        acts: &[(Act, Option<UserTransaction>)],
        output: &BlockOutput,
        now: u64,
        fee: u64,
        failed: u64,
    ) {
        let mut runs = self.model.start(now, fee, failed);
        let budget = budget(Lane::Market, &self.model.parameters, Gas::ZERO, failed).0;
        let mut used = Used { shared: 0, market: 0, budget };
        let mut expected = Vec::new();
        for (act, transaction) in acts {
            let Some(transaction) = transaction else { continue };
            let place =
                output.receipts.iter().position(|receipt| receipt.transaction_hash == transaction.hash());
            // A transaction that is left out is the proposer's choice; none of these is.
            let receipt = &output.receipts[place.expect("it is in the block")];
            let price = u64::try_from(receipt.effective_gas_price.0).unwrap();
            expected.extend(self.model.run_above(&mut runs, Some(price), &mut used));
            used.shared += receipt.gas_used.0;
            self.act(act, receipt, now, fee);
        }
        expected.extend(self.model.run_above(&mut runs, None, &mut used));
        for n in runs.in_order {
            let item = self.model.items[n].clone();
            if !matches!(item.state, State::Ended(_)) {
                self.model.wait(n);
            }
        }
        let ran: Vec<_> = output
            .transactions
            .iter()
            .filter_map(Executed::run)
            .map(|run| run.schedule_ref.schedule)
            .collect();
        assert_eq!(ran, expected, "at {now} with a base fee of {fee}");
        self.check_prices(output, fee);
    }

    fn act(&mut self, act: &Act, receipt: &almanac_primitives::Receipt, now: u64, fee: u64) {
        let is_success = receipt.outcome == Outcome::Success;
        match act {
            Act::Insert { sender, expiry, burns, .. } => {
                let is_open = self.model.parameters.get(MARKET_PAUSED) == 0;
                assert_eq!(is_success, is_open, "{:?}", receipt.outcome);
                if let (true, Some(txn)) = (is_open, order(act, now, fee)) {
                    let said = only::<TransactionScheduledEvent>(&receipt.logs);
                    self.model.items.push(Item {
                        id: ScheduleId(said.id.to()),
                        key: said.key,
                        sender: *sender,
                        epoch: self.model.epochs.get(sender).copied().unwrap_or(0),
                        due: txn.scheduledTimeMs.div_ceil(100) * 100,
                        bid: txn.maxGasUnitPrice,
                        gas: txn.maxGasAmount,
                        burns: *burns,
                        expiry: (*expiry).into(),
                        state: State::Pending,
                    });
                }
            }
            Act::Cancel(n) => {
                let item = &self.model.items[*n];
                let can = !matches!(item.state, State::Ended(_)) && !self.model.is_stale(item);
                assert_eq!(is_success, can, "{item:?}");
                if can {
                    self.model.items[*n].state = State::Ended(Held::Cancelled);
                }
            }
            Act::CancelAll(sender) => *self.model.epochs.entry(*sender).or_default() += 1,
            Act::Set(parameter, value) => self.model.upcoming.push((*parameter, *value)),
            Act::Pay(_) => {}
        }
    }

    /// AIP125-15, computed again: every run pays the least of its bid and the highest user price.
    fn check_prices(&self, output: &BlockOutput, fee: u64) {
        let users = output.receipts.iter().filter(|receipt| receipt.transaction_type < 0x70);
        let top = users.map(|receipt| receipt.effective_gas_price.0).max().unwrap_or(0).max(fee.into());
        for receipt in output.receipts.iter() {
            let Some(reference) = receipt.schedule_ref else { continue };
            let item = self.model.items.iter().find(|item| item.id == reference.schedule).unwrap();
            assert_eq!(receipt.effective_gas_price.0, top.min(item.bid.into()));
            let said = only::<TransactionExecutedEvent>(&receipt.logs);
            let paid = U256::from(receipt.gas_used.0) * U256::from(receipt.effective_gas_price.0);
            let deposit = U256::from(item.gas) * U256::from(item.bid);
            assert_eq!(said.refunded, deposit - paid, "deposited = burned + refunded");
        }
    }

    /// Every record is where the model says.
    fn compare(&self) {
        for item in &self.model.items {
            let head = Record::read(&self.market.chain.state, item.id).unwrap().expect("ends are kept").head;
            let expected = match item.state {
                State::Pending => (Held::Pending, None),
                State::Waiting { until } => (Held::Waiting, Some(until)),
                State::Ended(how) => (how, None),
            };
            let until = (head.status == Held::Waiting).then_some(head.until);
            assert_eq!((head.status, until), expected, "{item:?}");
        }
    }
}

/// What an insert asks for. Its price is never below the base fee of the block that inserts.
fn order(act: &Act, now: u64, fee: u64) -> Option<ScheduledTransaction> {
    let Act::Insert { sender, after, steps, expiry, burns } = act else { return None };
    Some(ScheduledTransaction {
        senderAddr: person(*sender).address,
        to: if *burns { FAILER } else { person(9).address },
        maxGasAmount: if *burns { BURN_GAS } else { 30_000 },
        maxGasUnitPrice: fee + steps * STEP,
        expiryBlocks: *expiry,
        ..txn(now + after)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn the_market_lane_does_what_a_dull_one_would(steps in steps()) {
        let mut play = Play::new();
        for step in &steps {
            play.step(step);
        }
    }
}
