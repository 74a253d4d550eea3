//! Histories as a generator makes them: without ids and times, which depend on what happened before.

use super::{
    act::{Act, Call, Doing, NOBODY, Order, SCRIPTED},
    model::{Model, Now, least_gas},
    registry::HORIZON_SECONDS,
};
use crate::support::{contracts::REVERTER, person};
use alloy_primitives::{Address, Bytes, U256};
use almanac_primitives::{
    addresses::{CRON_REGISTRY, LEDGER},
    params::{
        CRON_BLOCK_EXHAUSTIONS_MAX, CRON_BLOCK_GAS_MAX, CRON_ENABLED, CRON_INTERVAL_SECONDS_MIN, CRON_PAUSED,
        CRON_RUN_GAS_MAX, Parameter,
    },
};
use proptest::{collection::vec, option, prelude::*, sample::select};

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

pub fn blocks(count: usize) -> impl Strategy<Value = Vec<BlockPlan>> {
    vec(block(), count)
}

fn block() -> impl Strategy<Value = BlockPlan> {
    let wait = prop_oneof![
        2 => (1u64..1_000).prop_map(Wait::Milliseconds),
        5 => (1_000u64..3_000).prop_map(Wait::Milliseconds),
        6 => select(vec![0, 0, 1]).prop_map(Wait::Minute),
        2 => (5_000u64..60_000).prop_map(Wait::Milliseconds),
        2 => (60_000u64..900_000).prop_map(Wait::Milliseconds),
        1 => (1u64..4).prop_map(|days| Wait::Milliseconds(days * 86_400_000 + 1)),
    ];
    (wait, vec(transaction(), 1..=4)).prop_map(|(wait, transactions)| BlockPlan { wait, transactions })
}

fn transaction() -> impl Strategy<Value = TransactionPlan> {
    let parameter = prop_oneof![
        1 => (Just(CRON_ENABLED), select(vec![0, 1, 1, 1])),
        1 => (Just(CRON_PAUSED), select(vec![0, 0, 0, 1])),
        1 => (Just(CRON_INTERVAL_SECONDS_MIN), select(vec![1, 60, 120])),
        1 => (Just(CRON_RUN_GAS_MAX), select(vec![4_000_000, 5_000_000])),
        2 => (Just(CRON_BLOCK_GAS_MAX), select(vec![5_000_000, 8_000_000, 15_000_000])),
        2 => (Just(CRON_BLOCK_EXHAUSTIONS_MAX), select(vec![1, 2, 100])),
    ];
    prop_oneof![
        24 => (0..PEOPLE, doing(1)).prop_map(|(who, doing)| TransactionPlan::Direct(who, doing)),
        16 => (0..PEOPLE, acts(1)).prop_map(|(who, acts)| TransactionPlan::Script(who, acts)),
        3 => parameter.prop_map(|(parameter, value)| TransactionPlan::Parameter(parameter, value)),
        3 => select(vec![100_000_000, 1_000_000_000, 10_000_000_000, 10_000_000_000_000])
            .prop_map(TransactionPlan::BaseFee),
    ]
}

/// `depth` is how deep scripts within scripts go.
fn acts(depth: u32) -> impl Strategy<Value = Vec<ActPlan>> {
    let act = (doing(depth), any::<bool>()).prop_map(|(doing, is_tolerated)| ActPlan(doing, is_tolerated));
    vec(act, 1..=3)
}

fn doing(depth: u32) -> BoxedStrategy<DoingPlan> {
    prop_oneof![
        10 => order(depth).prop_map(|order| DoingPlan::Schedule(Box::new(order))),
        7 => pick().prop_map(DoingPlan::Cancel),
        5 => (pick(), select(vec![0, 1, 1_000_000_000, 1_000_000_000_000_000]))
            .prop_map(|(pick, amount)| DoingPlan::TopUp(pick, amount)),
        1 => Just(DoingPlan::Fail),
    ]
    .boxed()
}

fn pick() -> impl Strategy<Value = Pick> {
    prop_oneof![
        6 => Just(Pick::Own),
        8 => (0usize..5).prop_map(Pick::Mine),
        4 => any::<usize>().prop_map(Pick::Live),
        2 => any::<usize>().prop_map(Pick::Ever),
        1 => select(vec![U256::ZERO, U256::from(u64::MAX), U256::MAX]).prop_map(Pick::Number),
    ]
}

fn order(depth: u32) -> impl Strategy<Value = OrderPlan> {
    let small = |call: CallPlan, gas: Vec<u64>| (Just(call), select(gas)).boxed();
    let script = match depth.checked_sub(1) {
        Some(depth) => (acts(depth).prop_map(CallPlan::Script), select(vec![4_000_000, 5_000_000])).boxed(),
        None => small(CallPlan::Count, vec![60_000]),
    };
    let nobody = least_gas(&Call::Nobody.data());
    let call = prop_oneof![
        4 => small(CallPlan::Count, vec![60_000, 2_500_000, 2_500_001, 5_000_000]),
        2 => small(CallPlan::Revert, vec![60_000, 5_000_000]),
        2 => small(CallPlan::Burn, vec![60_000, 3_000_001]),
        2 => small(CallPlan::Nobody, vec![21_000, nobody - 1, nobody, 5_000_000]),
        6 => script,
    ];
    let when = prop_oneof![
        2 => (1u64..10).prop_map(When::In),
        6 => (1u64..4).prop_map(When::OnMinute),
        1 => (10u64..100_000).prop_map(When::In),
    ];
    let refund_to = select(vec![person(0).address, NOBODY, REVERTER, SCRIPTED, LEDGER, CRON_REGISTRY]);
    let terms = (refund_to, select(vec![0u64, 1, 0x100, 0x101, 0x200, 0x201]));
    let interval = select(vec![0, 0, 60, 60, 61, 120, 10, 3_600]);
    let funds = (select(vec![1, 2, 3, 7, 100]), select(vec![0, 1, 100_000_000_000_000]));
    (
        (call, when, interval, select(vec![0, 0, 1, 2, 3, u64::MAX]), funds),
        (option::of(terms), any::<bool>(), option::weighted(0.12, defect())),
    )
        .prop_map(|(((call, gas), when, interval, runs_max, funds), (terms, is_by_method, defect))| {
            let is_by_method = is_by_method && matches!(call, CallPlan::Count);
            OrderPlan { call, when, interval, runs_max, gas, funds, terms, is_by_method, defect }
        })
}

fn defect() -> impl Strategy<Value = Defect> {
    select(vec![
        Defect::Now,
        Defect::BeyondHorizon,
        Defect::IntervalTooShort,
        Defect::IntervalTooLong,
        Defect::RunsTooMany,
        Defect::GasTooLow,
        Defect::GasTooHigh,
        Defect::OneWeiShort,
        Defect::UnknownOption,
        Defect::UnknownCatchUp,
        Defect::NoRefundTo,
        Defect::NoTarget,
        Defect::ShortInput,
    ])
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
