//! A history before it is played: numbers that are made fit for the block that they meet.

use crate::support::callbacks::Priority;
use almanac_primitives::params::*;
use proptest::{collection::vec, prelude::*, sample::select};

#[derive(Clone, Debug)]
pub struct BlockPlan {
    /// Milliseconds after the last block.
    pub elapsed_ms: u64,
    pub failed_views: u64,
    pub acts: Vec<Act>,
}

#[derive(Clone, Debug)]
pub enum Act {
    Schedule(OrderPlan),
    /// Who, and which of the newest callbacks. From 3 on it is the owner.
    Cancel {
        who: usize,
        which: usize,
    },
    Govern(Parameter, u64),
    Transfer,
}

#[derive(Clone, Debug)]
pub struct OrderPlan {
    /// 0 and 1 may book the probe, 2 may not.
    pub who: usize,
    pub is_own_handler: bool,
    pub data: DataPlan,
    pub time: TimePlan,
    pub priority: Priority,
    pub effort: u64,
    pub value: ValuePlan,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataPlan {
    Bytes(usize),
    Revert,
    Burn,
    /// Books three times from inside, so many seconds ahead, with so much effort.
    Book {
        ahead: u64,
        effort: u64,
    },
}

#[derive(Clone, Copy, Debug)]
pub enum TimePlan {
    Zero,
    /// Relative to the block, may lie before it.
    Near(i64),
    /// The next second that is a multiple of so many: orders meet there.
    Meeting(u64),
    /// Relative to the horizon.
    Horizon(i64),
}

#[derive(Clone, Copy, Debug)]
pub enum ValuePlan {
    Exact,
    OneShort,
    TooMuch,
}

pub fn history(blocks: usize) -> impl Strategy<Value = Vec<BlockPlan>> {
    vec(block(), blocks)
}

fn block() -> impl Strategy<Value = BlockPlan> {
    let elapsed = prop_oneof![
        12 => select(vec![100, 400, 1_000, 1_000, 2_000, 3_700]),
        3 => select(vec![9_000, 30_000]),
        1 => select(vec![61_000, 100_000]),
    ];
    let failed_views = prop_oneof![6 => Just(0), 1 => 1u64..6];
    (elapsed, failed_views, vec(act(), 0..6)).prop_map(|(elapsed_ms, failed_views, acts)| BlockPlan {
        elapsed_ms,
        failed_views,
        acts,
    })
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        10 => order().prop_map(Act::Schedule),
        4 => (0usize..8, any::<usize>()).prop_map(|(who, which)| Act::Cancel { who, which }),
        2 => change().prop_map(|(parameter, value)| Act::Govern(parameter, value)),
        1 => Just(Act::Transfer),
    ]
}

fn change() -> impl Strategy<Value = (Parameter, u64)> {
    let efforts = select(vec![0, 150, 1_000, 4_000, 6_000, 10_000, 20_000]);
    prop_oneof![
        3 => (select(vec![SECOND_HIGH_EFFORT, SECOND_MEDIUM_EFFORT, SECOND_SHARED_EFFORT]), efforts),
        2 => (
            select(vec![CALLBACK_HIGH_PERCENT, CALLBACK_MEDIUM_PERCENT, CALLBACK_LOW_PERCENT]),
            select(vec![110, 111, 200, 333, 1_000]),
        ),
        1 => (Just(CALLBACK_FEE_FLOOR_WEI), select(vec![1, 1_000_000_001, 2_000_000_000])),
        1 => (Just(CALLBACK_REFUND_BPS), select(vec![0, 3_333, 5_000, 9_000])),
        6 => (Just(CALLBACK_PAUSED), select(vec![0, 0, 0, 1])),
        5 => (Just(CALLBACK_ENABLED), select(vec![1, 1, 1, 1, 1, 1, 0])),
        1 => (Just(CALLBACK_EFFORT_MIN), select(vec![11, 12, 100])),
        1 => (Just(CALLBACK_EFFORT_MAX), select(vec![1_000, 9_999, 9_999])),
        1 => (Just(CALLBACK_LOW_EFFORT_MAX), select(vec![1_000, 5_000])),
        1 => (Just(CALLBACK_SEARCH_SECONDS_MAX), select(vec![1, 2, 86_400, 86_400, 86_400])),
        1 => (Just(CALLBACK_DATA_BYTES_MAX), select(vec![17, 100])),
        1 => (Just(ENDED_KEPT_BLOCKS), 1u64..9),
        1 => (Just(RESERVED_BLOCK_GAS_MAX), select(vec![36_000 * EFFORT_GAS, 40_000 * EFFORT_GAS])),
        1 => (Just(SPARE_BLOCK_GAS_MAX), select(vec![5_000 * EFFORT_GAS, 6_000 * EFFORT_GAS])),
    ]
}

fn order() -> impl Strategy<Value = OrderPlan> {
    let who = prop_oneof![9 => 0usize..2, 1 => Just(2usize)];
    let data = prop_oneof![
        6 => Just(DataPlan::Bytes(0)),
        2 => select(vec![1, 17, 18, 99, 100, 101]).prop_map(DataPlan::Bytes),
        2 => Just(DataPlan::Revert),
        1 => Just(DataPlan::Burn),
        2 => (1u64..12, efforts()).prop_map(|(ahead, effort)| DataPlan::Book { ahead, effort }),
    ];
    let time = prop_oneof![
        2 => Just(TimePlan::Zero),
        3 => (-1i64..8).prop_map(TimePlan::Near),
        12 => select(vec![10, 30, 30, 60]).prop_map(TimePlan::Meeting),
        1 => (-1i64..2).prop_map(TimePlan::Horizon),
    ];
    let priority = select(vec![
        Priority::High,
        Priority::High,
        Priority::Medium,
        Priority::Medium,
        Priority::Medium,
        Priority::Low,
    ]);
    let value = prop_oneof![
        5 => Just(ValuePlan::Exact),
        1 => Just(ValuePlan::OneShort),
        2 => Just(ValuePlan::TooMuch),
    ];
    (who, any::<bool>(), data, time, priority, efforts(), value).prop_map(
        |(who, is_own_handler, data, time, priority, effort, value)| {
            // What books from inside needs gas for that, and the probe's code.
            let (is_own_handler, effort) = match data {
                DataPlan::Book { .. } => (false, 2_000),
                _ => (is_own_handler, effort),
            };
            OrderPlan { who, is_own_handler, data, time, priority, effort, value }
        },
    )
}

/// Around every limit. None between 14 and 60: there the probe's gas decides, which is not the scheduler's business.
fn efforts() -> impl Strategy<Value = u64> {
    prop_oneof![
        2 => select(vec![10, 11, 12, 13, 14]),
        3 => select(vec![60, 100, 150, 151, 999, 1_000, 1_001, 3_000, 3_001]),
        4 => select(vec![4_999, 5_000, 5_001, 6_000, 7_500, 9_998, 9_999, 10_000, 1 << 40]),
    ]
}
