//! The scheduler against a dull one: whatever people, runs, governance and time do, both agree after every block.
//!
//! The model (`scheduler_model/model.rs`) is a list and a loop, written from the spec. It takes from the chain only
//! what is not the scheduler's: base fee and gas used. Compared are the runs and their order, success and numbers;
//! every event; every escrow, due time and balance; what is burned; and what `getJob` says. A failure prints a
//! small history that goes wrong in the same way.
#![allow(unreachable_pub, reason = "parts of one test")]

mod act;
mod compare;
mod generate;
mod model;
mod plan;
mod play;
mod reduce;
mod registry;

use plan::BlockPlan;
use play::{Care, play};
use proptest::{
    strategy::{Strategy, ValueTree},
    test_runner::TestRunner,
};
use reduce::reduce;
use std::{
    collections::BTreeMap,
    panic::{catch_unwind, set_hook, take_hook},
    sync::Mutex,
    thread::{available_parallelism, scope},
};

/// Histories that a test run plays; `ALMANAC_MODEL_CASES` asks for more.
const CASES: u32 = 256;

/// Blocks of a history. With three and a half operations in each, and the time that passes before it, more than
/// 500 operations.
const BLOCKS: usize = 120;

/// One history in this many is verified twice at every block, and replayed.
const FULL_CARE_EVERY: u32 = 16;

/// What must have happened in a hundred histories, so that the generator cannot become boring unnoticed.
const INTERESTING: [&str; 34] = [
    "CronDisabled",
    "CronPaused",
    "EscrowTooLow",
    "GasLimitOutOfBounds",
    "InputTooShort",
    "IntervalTooLong",
    "IntervalTooShort",
    "RefundToIsZero",
    "RunsTooMany",
    "TargetIsZero",
    "TimeBeyondHorizon",
    "TimeNotInFuture",
    "UnknownCatchUp",
    "UnknownOptions",
    "behind",
    "cancelled",
    "cancelled before its turn",
    "cancelled by another",
    "cancelled in its last run",
    "cancelled in its own run",
    "exhausted",
    "failed",
    "late",
    "latest",
    "less than intrinsic gas",
    "made by a run",
    "ran out of runs",
    "rolled over",
    "room given back",
    "set aside",
    "skipped",
    "succeeded",
    "topped up",
    "undone",
];

#[test]
fn agrees_on_random_histories() {
    #[allow(clippy::disallowed_methods, reason = "how long to search is not part of any result")]
    let wanted = std::env::var("ALMANAC_MODEL_CASES");
    let cases = wanted.map_or(CASES, |cases| cases.parse().expect("a number of histories"));
    let threads = u32::try_from(available_parallelism().unwrap().get()).unwrap();
    let seen = scope(|scope| {
        let searches: Vec<_> =
            (0..threads).map(|_| scope.spawn(|| search(cases.div_ceil(threads)))).collect();
        // A search that fails has said why.
        searches.into_iter().map(|search| search.join().expect("model and chain agree")).fold(
            BTreeMap::new(),
            |mut sum, seen| {
                seen.into_iter().for_each(|(what, count)| *sum.entry(what).or_insert(0) += count);
                sum
            },
        )
    });
    println!("{seen:#?}");
    if cases >= 100 {
        let missing: Vec<_> = INTERESTING.into_iter().filter(|what| !seen.contains_key(what)).collect();
        assert!(missing.is_empty(), "in {cases} histories there was never: {missing:?}");
        assert!(seen["operations"] >= 500 * u64::from(cases), "{} operations", seen["operations"]);
    }
}

/// Plays histories and answers with what happened in them.
fn search(cases: u32) -> BTreeMap<&'static str, u64> {
    let mut sum = BTreeMap::new();
    let (mut runner, histories) = (TestRunner::default(), generate::blocks(BLOCKS));
    for n in 0..cases {
        let care = if n % FULL_CARE_EVERY == 0 { Care::Full } else { Care::Once };
        let history = histories.new_tree(&mut runner).unwrap().current();
        match catch_unwind(|| play(&history, care)) {
            Ok(seen) => seen.into_iter().for_each(|(what, count)| *sum.entry(what).or_insert(0) += count),
            Err(_) => explain(history, care),
        }
    }
    sum
}

/// Fails with a small part of a history that went wrong.
fn explain(history: Vec<BlockPlan>, care: Care) -> ! {
    // One at a time: the hook, which would print every try, is everybody's.
    static EXPLAINING: Mutex<()> = Mutex::new(());
    let _guard = EXPLAINING.lock();
    let hook = take_hook();
    set_hook(Box::new(|_| {}));
    let small = reduce(history, |history| catch_unwind(|| play(history, care)).is_err());
    set_hook(hook);
    println!("model and chain disagree on this history:");
    small.iter().for_each(|block| println!("  {block:?}"));
    play(&small, care);
    unreachable!("it went wrong a moment ago");
}
