//! Makes histories: what is rare in them and what is not.

use super::{
    act::{Call, NOBODY, SCRIPTED},
    model::least_gas,
    plan::*,
};
use crate::support::{contracts::REVERTER, person};
use alloy_primitives::U256;
use almanac_primitives::{
    addresses::{CRON_REGISTRY, LEDGER},
    params::{
        CRON_BLOCK_EXHAUSTIONS_MAX, CRON_BLOCK_GAS_MAX, CRON_ENABLED, CRON_INTERVAL_SECONDS_MIN, CRON_PAUSED,
        CRON_RUN_GAS_MAX,
    },
};
use proptest::{collection::vec, option, prelude::*, sample::select};

/// Histories of so many blocks.
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
        2 => (Just(CRON_BLOCK_EXHAUSTIONS_MAX), select(vec![1, 2, 250])),
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
    let undone = done(depth).prop_map(|doing| DoingPlan::Undone(Box::new(doing)));
    prop_oneof![12 => done(depth), 1 => undone].boxed()
}

fn done(depth: u32) -> BoxedStrategy<DoingPlan> {
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
