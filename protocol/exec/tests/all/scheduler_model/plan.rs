//! Histories as a generator makes them: without ids and times, which depend on what happened before.

use super::{
    act::{Act, Call, Doing, NOBODY, Order, SCRIPTED},
    model::{Model, Now},
    registry::HORIZON_SECONDS,
};
use alloy_primitives::{Address, Bytes, U256};
use almanac_primitives::params::Parameter;

/// How many people there are.
pub const PEOPLE: u64 = 3;

/// A block: when it comes, and what is in it.
#[derive(Clone, Debug)]
pub struct BlockPlan {
    pub wait: Wait,
    pub transactions: Vec<TransactionPlan>,
}

/// How long after the last block another one comes.
#[derive(Clone, Copy, Debug)]
pub enum Wait {
    Milliseconds(u64),
    /// Until a full minute, where jobs are due, or as many milliseconds before it.
    Minute(u64),
}

impl Wait {
    /// When the wait is over that begins at `start`.
    pub fn end(self, start: u64) -> u64 {
        match self {
            Self::Milliseconds(wait) => start + wait,
            Self::Minute(before) => ((start + before) / 60_000 + 1) * 60_000 - before,
        }
    }
}

/// A transaction.
#[derive(Clone, Debug)]
pub enum TransactionPlan {
    Direct(u64, DoingPlan),
    Script(u64, Vec<ActPlan>),
    Parameter(Parameter, u64),
    BaseFee(u64),
}

/// A call of a script, and whether the script goes on where it fails.
#[derive(Clone, Debug)]
pub struct ActPlan(pub DoingPlan, pub bool);

/// One thing that somebody does.
#[derive(Clone, Debug)]
pub enum DoingPlan {
    Schedule(Box<OrderPlan>),
    Cancel(Pick),
    TopUp(Pick, u64),
    Undone(Box<DoingPlan>),
    Fail,
}

/// Which job.
#[derive(Clone, Copy, Debug)]
pub enum Pick {
    /// The one that is being made: only its own script can mean that.
    Own,
    /// The n-th newest of whoever picks.
    Mine(usize),
    Live(usize),
    Ever(usize),
    Number(U256),
}

/// An order.
#[derive(Clone, Debug)]
pub struct OrderPlan {
    pub call: CallPlan,
    pub when: When,
    pub interval: u64,
    pub runs_max: u64,
    pub gas: u64,
    /// For how many runs there is money, and how much more.
    pub funds: (u64, u64),
    pub terms: Option<(Address, u64)>,
    pub is_by_method: bool,
    pub defect: Option<Defect>,
}

/// When a job is due first.
#[derive(Clone, Copy, Debug)]
pub enum When {
    In(u64),
    /// At a full minute, where many meet.
    OnMinute(u64),
}

/// What a job calls.
#[derive(Clone, Debug)]
pub enum CallPlan {
    Count,
    Revert,
    Burn,
    Nobody,
    Script(Vec<ActPlan>),
}

/// What is wrong with an order: just beyond each limit.
#[derive(Clone, Copy, Debug)]
pub enum Defect {
    Now,
    BeyondHorizon,
    IntervalTooShort,
    IntervalTooLong,
    RunsTooMany,
    GasTooLow,
    GasTooHigh,
    OneWeiShort,
    UnknownOption,
    UnknownCatchUp,
    NoRefundTo,
    NoTarget,
    ShortInput,
}

/// Settles what a script does, as far as that can be known before it runs.
pub fn settle_acts(plan: &[ActPlan], who: Address, own: Option<u64>, model: &Model, now: Now) -> Vec<Act> {
    let act = |ActPlan(doing, is_tolerated): &ActPlan| Act {
        doing: settle(doing, who, own, model, now),
        is_tolerated: *is_tolerated,
    };
    plan.iter().map(act).collect()
}

/// Settles one thing that `who` does in a job with the id `own`, or in a transaction.
pub fn settle(plan: &DoingPlan, who: Address, own: Option<u64>, model: &Model, now: Now) -> Doing {
    match plan {
        DoingPlan::Schedule(order) => {
            // Where the job is made by a job that runs later, nobody knows its id yet.
            let next = own.is_none().then(|| model.next_id(now));
            Doing::Schedule(Box::new(settle_order(order, next, model, now)))
        }
        DoingPlan::Cancel(pick) => Doing::Cancel(settle_pick(*pick, who, own, model)),
        DoingPlan::TopUp(pick, amount) => {
            Doing::TopUp(settle_pick(*pick, who, own, model), U256::from(*amount))
        }
        DoingPlan::Undone(doing) => Doing::Undone(Box::new(settle(doing, who, own, model, now))),
        DoingPlan::Fail => Doing::Fail,
    }
}

fn settle_pick(pick: Pick, who: Address, own: Option<u64>, model: &Model) -> U256 {
    let of = |ids: Vec<u64>, n: usize| U256::from(ids.get(n % ids.len().max(1)).copied().unwrap_or(7));
    let live = model.jobs.iter();
    match pick {
        Pick::Own => own.map_or(U256::from(7), U256::from),
        Pick::Mine(n) => of(live.rev().filter(|job| job.owner == who).map(|job| job.id).collect(), n),
        Pick::Live(n) => of(live.map(|job| job.id).collect(), n),
        Pick::Ever(n) => of(model.ever.clone(), n),
        Pick::Number(id) => id,
    }
}

fn settle_order(plan: &OrderPlan, own: Option<u64>, model: &Model, now: Now) -> Order {
    let call = match &plan.call {
        CallPlan::Count => Call::Count,
        CallPlan::Revert => Call::Revert,
        CallPlan::Burn => Call::Burn,
        CallPlan::Nobody => Call::Nobody,
        CallPlan::Script(acts) => {
            Call::Script(settle_acts(acts, SCRIPTED, Some(own.unwrap_or(7)), model, now))
        }
    };
    let at = match plan.when {
        When::In(seconds) => now.seconds() + seconds,
        When::OnMinute(n) => (now.seconds() / 60 + n) * 60,
    };
    let (times, more) = plan.funds;
    let mut order = Order {
        target: call.target(),
        data: call.data(),
        call,
        at: U256::from(at),
        interval: U256::from(plan.interval),
        runs_max: U256::from(plan.runs_max),
        gas: U256::from(plan.gas),
        terms: plan.terms.map(|(refund_to, options)| (refund_to, U256::from(options))),
        value: U256::from(plan.gas) * U256::from(now.base_fee) * U256::from(times) + U256::from(more),
        is_by_method: plan.is_by_method,
    };
    if let Some(defect) = plan.defect {
        spoil(&mut order, defect, model, now);
    }
    order
}

fn spoil(order: &mut Order, defect: Defect, model: &Model, now: Now) {
    let (number, refund_to) = (U256::from::<u64>, order.terms.map_or(NOBODY, |terms| terms.0));
    let horizon = number(HORIZON_SECONDS);
    match defect {
        Defect::Now => order.at = number(now.seconds()),
        Defect::BeyondHorizon => order.at = number(now.seconds() + 1) + horizon,
        Defect::IntervalTooShort => order.interval = number(model.rules.interval_min.max(2) - 1),
        Defect::IntervalTooLong => order.interval = horizon + U256::ONE,
        Defect::RunsTooMany => order.runs_max = number(u64::MAX) + U256::ONE,
        Defect::GasTooLow => order.gas = number(20_999),
        Defect::GasTooHigh => order.gas = number(model.rules.run_gas_max + 1),
        Defect::OneWeiShort => order.value = order.gas * number(now.base_fee) - U256::ONE,
        Defect::UnknownOption => order.terms = Some((refund_to, number(2))),
        Defect::UnknownCatchUp => order.terms = Some((refund_to, number(0x300))),
        Defect::NoRefundTo => order.terms = Some((Address::ZERO, U256::ZERO)),
        Defect::NoTarget => order.target = Address::ZERO,
        Defect::ShortInput => {
            (order.data, order.is_by_method) = (Bytes::from_static(&[1, 2, 3]), false);
        }
    }
}
