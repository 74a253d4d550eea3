//! Plays a history on a chain and in the model, and compares them after every block.

use super::{
    model::{Asked, Model, Now, Split},
    plan::{Act, BlockPlan, DataPlan, OrderPlan, TimePlan, ValuePlan},
};
use crate::support::{callbacks::*, contracts::ECHO, *};
use alloy_primitives::{Address, TxKind, U256};
use alloy_sol_types::{SolCall as _, SolInterface as _};
use almanac_exec::{BlockInput, Environment};
use almanac_primitives::{
    Outcome, Receipt, TimestampMs, UserTransaction,
    addresses::{CALLBACKS, LEDGER, PARAMETERS},
    params::*,
    run::RUN_TYPE,
};
use std::collections::BTreeMap;

pub type Seen = BTreeMap<&'static str, u64>;

/// Coins that the probe has for what it books itself.
const PROBE_COINS: u64 = 100;
/// Gas of a user's transaction: an order, and a long search.
const TX_GAS: u64 = 1_000_000;

struct Play {
    callbacks: Callbacks,
    model: Model,
    /// Every callback that was ever made.
    ids: Vec<u64>,
    seen: Seen,
    /// Until when the chain stood still or the door was held.
    held_until_ms: u64,
    is_careful: bool,
    people: [Person; 3],
}

/// What is expected of money in one block.
#[derive(Default)]
struct Money {
    gains: BTreeMap<Address, U256>,
    losses: BTreeMap<Address, U256>,
    burned: U256,
}

/// One user's transaction, and what it is about.
enum Sent {
    Estimate(Asked),
    Schedule(Asked, U256),
    Cancel(Address, u64),
    Govern,
    Transfer,
}

pub fn play(history: &[BlockPlan], is_careful: bool) -> Seen {
    // Seconds that are soon full, and a lane that a few of them fill.
    let callbacks = Callbacks::with_parameters(&[
        (ENDED_KEPT_BLOCKS.name, 6),
        (SECOND_HIGH_EFFORT.name, 6_000),
        (SECOND_MEDIUM_EFFORT.name, 3_000),
        (SECOND_SHARED_EFFORT.name, 4_000),
    ]);
    let people = [booker(), person(1), person(2)];
    let (model, ids, seen) = (Model::default(), Vec::new(), Seen::new());
    let mut play = Play { callbacks, model, ids, seen, held_until_ms: 0, is_careful, people };
    play.set_up();
    history.iter().for_each(|block| play.block(block));
    play.end();
    play.seen
}

impl Play {
    fn set_up(&mut self) {
        let (probe, scheduler) = (self.callbacks.probe, self.people[1].address);
        self.callbacks.send(
            person(5),
            probe,
            U256::ZERO,
            CallbackProbe::allowCall { scheduler, allowed: true },
        );
        let coins = U256::from(PROBE_COINS) * U256::from(10u64.pow(18));
        assert!(self.callbacks.chain.send(person(6), probe, coins, vec![]).outcome.is_success());
    }

    fn block(&mut self, plan: &BlockPlan) {
        let ms = self.callbacks.chain.head.timestamp.0 + plan.elapsed_ms;
        let mut input = self.callbacks.chain.input_at(TimestampMs(ms));
        input.consensus.view = plan.failed_views + 1;
        let now = self.now(&input);
        self.held_until_ms = now.held_until_ms;
        let (mut transactions, mut sent) = (Vec::new(), Vec::new());
        for act in &plan.acts {
            self.compile(act, &now, &mut transactions, &mut sent);
        }
        self.produce(&input, &now, transactions, sent);
    }

    fn now(&self, input: &BlockInput) -> Now {
        let environment = Environment::derive(input, &self.callbacks.chain.state).unwrap();
        let mut now = Now {
            number: environment.number,
            ms: environment.timestamp.0,
            base_fee: u64::try_from(environment.base_fee.0).unwrap(),
            failed_views: input.consensus.view.saturating_sub(1),
            held_until_ms: self.held_until_ms,
            parameters: environment.parameters,
        };
        // FLIP330-18: a minute without a block, or a door that is held.
        if now.is_held() || now.ms - input.parent.timestamp.0 > 60_000 {
            now.held_until_ms = now.ms;
        }
        now
    }

    fn produce(
        &mut self,
        input: &BlockInput,
        now: &Now,
        transactions: Vec<UserTransaction>,
        sent: Vec<Sent>,
    ) {
        let known: Vec<Address> = self.accounts();
        let before: Vec<U256> = known.iter().map(|who| self.callbacks.chain.balance(*who)).collect();
        self.model.forget(now);
        let [reserved, spare] = self.model.take_up(now);
        let count = transactions.len();
        let produced = match self.is_careful {
            true => self.callbacks.chain.produce_with(input, transactions),
            false => self.callbacks.chain.produce_once(input, transactions),
        };
        assert!(produced.refused.is_empty(), "{:?}", produced.refused);
        let receipts = produced.output.receipts.clone();
        self.check_order(&receipts, &reserved, count, &spare);
        let (mut money, mut users) = (Money::default(), sent.into_iter());
        for receipt in &receipts[1..] {
            if receipt.transaction_type == RUN_TYPE {
                self.follow_run(now, receipt, &mut money);
                continue;
            }
            let sender = produced.output.transactions.iter().find(|tx| tx.hash() == receipt.transaction_hash);
            let (sender, gas) = (sender.unwrap().from(), U256::from(receipt.gas_used.0));
            let (price, base_fee) = (U256::from(receipt.effective_gas_price.0), U256::from(now.base_fee));
            *money.losses.entry(sender).or_default() += gas * price;
            *money.gains.entry(FEE_RECIPIENT).or_default() += gas * (price - base_fee);
            money.burned += gas * base_fee;
            self.follow_user(now, receipt, users.next().expect("one for each receipt"), &mut money);
        }
        assert_eq!(produced.output.burned.0, money.burned, "what is burned");
        for (who, before) in known.iter().zip(before) {
            let [gained, lost] =
                [&money.gains, &money.losses].map(|of| of.get(who).copied().unwrap_or_default());
            assert_eq!(self.callbacks.chain.balance(*who) + lost, before + gained, "money of {who}");
        }
        self.compare();
    }

    /// FLIP330-12, -13, -15: the prologue names what the block takes up; booked ones, users, Low ones.
    fn check_order(&mut self, receipts: &[Receipt], reserved: &[u64], users: usize, spare: &[u64]) {
        let id = |receipt: &Receipt| receipt.schedule_ref.map(|run| run.schedule.0);
        let order: Vec<_> = receipts[1..].iter().map(id).collect();
        let expected: Vec<_> = (reserved.iter().copied().map(Some))
            .chain(std::iter::repeat_n(None, users))
            .chain(spare.iter().copied().map(Some))
            .collect();
        assert_eq!(order, expected, "what runs, and when");
        let processed: Vec<_> = events::<CallbackProcessed>(&receipts[0].logs);
        let expected: Vec<_> = reserved
            .iter()
            .chain(spare)
            .map(|id| CallbackProcessed { id: *id, executionEffort: self.model.at(*id).unwrap().effort })
            .collect();
        assert_eq!(processed, expected);
    }

    fn follow_run(&mut self, now: &Now, receipt: &Receipt, money: &mut Money) {
        let id = receipt.schedule_ref.unwrap().schedule.0;
        let callback = self.model.at(id).unwrap().clone();
        let is_success = callback.handler != self.callbacks.probe
            || (callback.effort >= 60 && !matches!(callback.data.first(), Some(b'r' | b'g')));
        assert_eq!(receipt.outcome.is_success(), is_success, "{callback:?}");
        self.see(if is_success { "executed" } else { "failed" });
        if callback.data.first() == Some(&b'b') {
            self.follow_booking_run(now, &callback.data, receipt, money);
        }
        let split = self.model.finish(now, id, is_success);
        match is_success {
            true => assert_eq!(only::<CallbackExecuted>(&receipt.logs).id, id),
            false => assert_eq!(only::<CallbackFailed>(&receipt.logs).id, id),
        }
        let refunds: Vec<_> = events::<CallbackRefunded>(&receipt.logs);
        let told = (split.refund > U256::ZERO).then_some(CallbackRefunded { id, amount: split.refund });
        assert_eq!(refunds, Vec::from_iter(told.clone()));
        self.see(if told.is_some() { "refunded for being late" } else { "in time" });
        pay(money, split, callback.owner);
    }

    /// The probe asks three times for the same.
    fn follow_booking_run(&mut self, now: &Now, data: &[u8], receipt: &Receipt, money: &mut Money) {
        let [timestamp, effort] = [1, 9].map(|at| u64::from_be_bytes(data[at..at + 8].try_into().unwrap()));
        let mut told = events::<CallbackScheduled>(&receipt.logs).into_iter();
        for _ in 0..3 {
            let order = Asked {
                owner: self.callbacks.probe,
                handler: self.callbacks.probe,
                is_allowed: true,
                data: vec![],
                intrinsic_gas: intrinsic_gas(&[]),
                timestamp,
                priority: Priority::High,
                effort,
            };
            match self.model.ask(now, &order) {
                Err(_) => self.see("refused from inside"),
                Ok(callback) => {
                    let said = told.next().expect("it was booked");
                    self.see("booked from inside");
                    *money.losses.entry(order.owner).or_default() += callback.fee;
                    self.keep(callback, &said);
                }
            }
        }
        assert_eq!(told.next(), None);
    }

    fn keep(&mut self, mut callback: super::model::Callback, said: &CallbackScheduled) {
        callback.id = said.id;
        let timestamp = if callback.priority == Priority::Low { 0 } else { callback.second };
        let expected = CallbackScheduled {
            id: said.id,
            owner: callback.owner,
            handler: callback.handler,
            timestamp,
            priority: callback.priority,
            executionEffort: callback.effort,
        };
        assert_eq!(*said, expected);
        assert!(self.ids.iter().all(|id| *id < said.id), "ids rise");
        self.ids.push(said.id);
        self.model.0.push(callback);
    }

    fn follow_user(&mut self, now: &Now, receipt: &Receipt, sent: Sent, money: &mut Money) {
        match sent {
            Sent::Estimate(asked) => {
                let estimated =
                    ICallbackScheduler::estimateCall::abi_decode_returns(&receipt.logs[0].data.data).unwrap();
                match self.model.ask(now, &asked) {
                    Ok(callback) => {
                        let timestamp = if asked.priority == Priority::Low { 0 } else { callback.second };
                        assert_eq!((estimated.fee, estimated.timestamp), (callback.fee, timestamp));
                        assert!(estimated.reason.is_empty());
                    }
                    Err(error) => assert_eq!(name(&estimated.reason), error),
                }
            }
            Sent::Schedule(asked, value) => self.follow_order(now, receipt, &asked, value, money),
            Sent::Cancel(who, id) => match self.model.cancel(now, id, who) {
                Err(error) => {
                    assert_eq!(reverted(receipt), error);
                    self.see(error);
                }
                Ok(split) => {
                    let said = only::<CallbackCanceled>(&receipt.logs);
                    assert_eq!(said, CallbackCanceled { id, refunded: split.refund });
                    self.see("cancelled");
                    pay(money, split, who);
                }
            },
            Sent::Govern => self.see(if receipt.outcome.is_success() { "governed" } else { "not governed" }),
            Sent::Transfer => assert!(receipt.outcome.is_success()),
        }
    }

    fn follow_order(&mut self, now: &Now, receipt: &Receipt, asked: &Asked, value: U256, money: &mut Money) {
        let answer = self
            .model
            .ask(now, asked)
            .and_then(|callback| if value < callback.fee { Err("FeeTooLow") } else { Ok(callback) });
        match answer {
            Err(error) => {
                assert_eq!(reverted(receipt), error, "{asked:?}");
                self.see(error);
            }
            Ok(callback) => {
                assert_eq!(receipt.outcome, Outcome::Success, "{asked:?}");
                let said = only::<CallbackScheduled>(&receipt.logs);
                let is_moved = asked.timestamp != 0 && callback.second != asked.timestamp;
                self.see(if is_moved { "moved" } else { "booked" });
                *money.losses.entry(asked.owner).or_default() += callback.fee;
                self.keep(callback, &said);
            }
        }
    }

    fn compile(&mut self, act: &Act, now: &Now, out: &mut Vec<UserTransaction>, sent: &mut Vec<Sent>) {
        let mut push = |chain: &TestChain, from: Person, to, value: U256, input: Vec<u8>, what| {
            let earlier = out.iter().filter(|tx| recovered((*tx).clone()).sender() == from.address).count();
            let nonce = chain.nonce(from.address) + earlier as u64;
            let mut tx = eip1559(nonce, TxKind::Call(to), 0, input, TX_GAS);
            tx.value = value;
            out.push(sign(tx, from.secret));
            sent.push(what);
        };
        let chain = &self.callbacks.chain;
        match act {
            Act::Schedule(plan) => {
                let asked = self.asked(plan, now);
                let order = CallbackOrder {
                    data: asked.data.clone().into(),
                    timestamp: asked.timestamp,
                    priority: asked.priority,
                    effort: asked.effort,
                    value: self.value(plan, &asked, now),
                };
                let estimate = ICallbackScheduler::estimateCall {
                    data: order.data.clone(),
                    timestamp: order.timestamp,
                    priority: order.priority,
                    executionEffort: order.effort,
                };
                let echo = [CALLBACKS.into_word().as_slice(), &estimate.abi_encode()].concat();
                let anyone = Asked { is_allowed: true, ..asked.clone() };
                push(chain, person(5), ECHO, U256::ZERO, echo, Sent::Estimate(anyone));
                let (from, value) = (self.people[plan.who], order.value);
                let input = order.call(asked.handler).abi_encode();
                push(chain, from, CALLBACKS, value, input, Sent::Schedule(asked, value));
            }
            Act::Cancel { who, which } => {
                let id = match self.ids.len() {
                    0 => 7,
                    // The newest are the ones that may still be cancelled.
                    count => self.ids[count - 1 - which % count.min(8)],
                };
                let owner =
                    self.model.0.iter().find(|callback| callback.id == id).map(|callback| callback.owner);
                let is_owner = |person: &&Person| Some(person.address) == owner;
                let from = self.people.get(*who).or_else(|| self.people.iter().find(is_owner));
                let (from, input) =
                    (*from.unwrap_or(&self.people[0]), ICallbackScheduler::cancelCall { id }.abi_encode());
                push(chain, from, CALLBACKS, U256::ZERO, input, Sent::Cancel(from.address, id));
            }
            Act::Govern(parameter, value) => {
                let call = IParameters::setCall { name: parameter.name_word(), value: U256::from(*value) };
                push(chain, governor(), PARAMETERS, U256::ZERO, call.abi_encode(), Sent::Govern);
            }
            Act::Transfer => {
                push(chain, person(4), person(7).address, U256::ONE, vec![], Sent::Transfer);
            }
        }
    }

    fn asked(&self, plan: &OrderPlan, now: &Now) -> Asked {
        let (second, owner) = (now.ms / 1_000, self.people[plan.who].address);
        let timestamp = match plan.time {
            TimePlan::Zero => 0,
            TimePlan::Near(offset) => second.saturating_add_signed(offset),
            TimePlan::Meeting(every) => (second / every + 1) * every,
            TimePlan::Horizon(offset) => {
                (second + now.parameters.get(SCHEDULE_AHEAD_SECONDS_MAX)).saturating_add_signed(offset)
            }
        };
        let data = match plan.data {
            DataPlan::Bytes(count) => vec![7; count],
            DataPlan::Revert => b"r".to_vec(),
            DataPlan::Burn => b"g".to_vec(),
            DataPlan::Book { ahead, effort } => {
                [b"b".as_slice(), &(second + ahead).to_be_bytes(), &effort.to_be_bytes()].concat()
            }
        };
        Asked {
            owner,
            handler: if plan.is_own_handler { owner } else { self.callbacks.probe },
            is_allowed: plan.is_own_handler || plan.who < 2,
            intrinsic_gas: intrinsic_gas(&data),
            data,
            timestamp,
            priority: plan.priority,
            effort: plan.effort,
        }
    }

    /// The fee does not depend on room, so an empty model knows it.
    fn value(&self, plan: &OrderPlan, asked: &Asked, now: &Now) -> U256 {
        let fee = Model::default().ask(now, asked).map_or(U256::from(10u64.pow(17)), |callback| callback.fee);
        match plan.value {
            ValuePlan::Exact => fee,
            ValuePlan::OneShort => fee - U256::ONE,
            ValuePlan::TooMuch => fee + U256::from(123),
        }
    }

    fn accounts(&self) -> Vec<Address> {
        let people = self.people.map(|person| person.address);
        people.into_iter().chain([self.callbacks.probe, FEE_RECIPIENT]).collect()
    }

    /// Statuses, bookings and the money that is held.
    fn compare(&mut self) {
        let chain = &self.callbacks.chain;
        assert_eq!(chain.balance(LEDGER), self.model.escrow(), "what the ledger holds");
        let newest: Vec<u64> = self.ids.iter().rev().take(8).copied().collect();
        for id in newest {
            let status = self.model.at(id).map_or(Status::Unknown, |callback| callback.status);
            assert_eq!(self.callbacks.status(id), status, "{id}");
        }
        for callback in self.model.0.iter().filter(|callback| callback.status == Status::Scheduled) {
            let booked = self.callbacks.booked(callback.second);
            let expected = [Priority::High, Priority::Medium]
                .map(|priority| self.model.booked(callback.second, priority));
            assert_eq!([booked.high, booked.medium].map(u64::from), expected, "second {}", callback.second);
        }
        let waiting = self.model.0.iter().any(|callback| {
            callback.status == Status::Scheduled
                && callback.second < self.callbacks.now()
                && callback.priority != Priority::Low
        });
        if waiting {
            self.see("carried over");
        }
    }

    /// Lets everything run: afterwards nothing is left.
    fn end(&mut self) {
        let plan = |acts| BlockPlan { elapsed_ms: 1_000, failed_views: 0, acts };
        self.block(&plan(vec![Act::Govern(CALLBACK_PAUSED, 0), Act::Govern(CALLBACK_ENABLED, 1)]));
        for _ in 0..200 {
            let waiting = self.model.0.iter().filter(|callback| callback.status == Status::Scheduled);
            let Some(next) = waiting.map(|callback| callback.second).min() else { break };
            let elapsed = (next * 1_000).saturating_sub(self.callbacks.chain.head.timestamp.0).max(100);
            self.block(&BlockPlan { elapsed_ms: elapsed, failed_views: 0, acts: vec![] });
        }
        for _ in 0..9 {
            self.block(&plan(vec![]));
        }
        let chain = &self.callbacks.chain;
        assert_eq!(chain.balance(LEDGER), U256::ZERO);
        // The check after each block finds slots of capacity that no record explains.
        assert!(self.model.0.is_empty() && ledger::records(&chain.state).is_empty());
        if self.is_careful {
            chain.replay();
        }
    }

    fn see(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }
}

fn pay(money: &mut Money, split: Split, owner: Address) {
    *money.gains.entry(owner).or_default() += split.refund;
    *money.gains.entry(FEE_RECIPIENT).or_default() += split.recipient;
    money.burned += split.burned;
}

/// EIP-2028 and EIP-7623 for `executeCallback(id, data)`, with all bytes of the id as if they were not zero.
fn intrinsic_gas(data: &[u8]) -> u64 {
    let is_zero = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == 0).count() as u64;
    let words = data.len().div_ceil(32) * 32;
    // Selector and id, the offset 0x40, the length, and the data with what fills its last word.
    let nonzero = 4 + 8 + 1 + u64::from(!data.is_empty()) + data.len() as u64 - is_zero(data);
    let all = 4 + 32 + 32 + 32 + words as u64;
    let tokens = (all - nonzero) + 4 * nonzero;
    21_000 + 10 * tokens
}

fn reverted(receipt: &Receipt) -> String {
    match &receipt.outcome {
        Outcome::Reverted(reason) => name(reason),
        other => panic!("not refused: {other:?}"),
    }
}

fn name(reason: &[u8]) -> String {
    let error = format!("{:?}", CallbackError::abi_decode(reason).expect("an error of the scheduler"));
    error.split('(').next().unwrap().to_owned()
}
