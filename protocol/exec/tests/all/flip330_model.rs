//! The callback scheduler against a dull one: whatever people, handlers, governance, halts and failed views do, both
//! agree after every block.
//!
//! The model (`flip330_model/model.rs`) is a list and loops, written from the spec. It takes from the chain only what is
//! not the scheduler's: base fee, parameters, gas used, ids. Compared are what runs and in which order; every event and
//! error; every estimate with the order behind it in the same block; statuses; what is booked in each second; and
//! everybody's money. In the end all has run, and neither money nor a slot is left.
#![allow(unreachable_pub, reason = "parts of one test")]

mod model;
mod plan;
mod play;

use plan::BlockPlan;
use play::{Seen, play};
use proptest::{
    strategy::{Strategy, ValueTree},
    test_runner::TestRunner,
};
use std::panic::{catch_unwind, set_hook, take_hook};

/// Histories that a test run plays; `ALMANAC_MODEL_CASES` asks for others, and more.
const CASES: u32 = 20;
/// Blocks of a history, with up to five operations in each.
const BLOCKS: usize = 40;
/// One history in this many is verified twice at every block, and replayed.
const FULL_CARE_EVERY: u32 = 8;

/// What must have happened, so that the generator cannot become boring unnoticed.
const INTERESTING: [&str; 24] = [
    "DataTooLong",
    "EffortTooHigh",
    "EffortTooLow",
    "FeeTooLow",
    "HandlerNotAllowed",
    "NoCapacity",
    "NotOwner",
    "NotScheduled",
    "SchedulerDisabled",
    "SchedulerPaused",
    "TimestampBeyondHorizon",
    "TimestampNotInFuture",
    "UnknownCallback",
    "booked",
    "booked from inside",
    "cancelled",
    "carried over",
    "executed",
    "failed",
    "governed",
    "in time",
    "moved",
    "refunded for being late",
    "refused from inside",
];

#[test]
fn flip330_agrees_on_random_histories() {
    #[allow(clippy::disallowed_methods, reason = "how long to search is not part of any result")]
    let wanted = std::env::var("ALMANAC_MODEL_CASES");
    // The usual run is short, so its histories are always the same: else it would now and then miss something rare.
    let is_random = wanted.is_ok();
    let (cases, mut runner) = match wanted {
        Ok(cases) => (cases.parse().expect("a number of histories"), TestRunner::default()),
        Err(_) => (CASES, TestRunner::deterministic()),
    };
    let (histories, mut sum) = (plan::history(BLOCKS), Seen::new());
    for n in 0..cases {
        let is_careful = n % FULL_CARE_EVERY == 0;
        let history = histories.new_tree(&mut runner).unwrap().current();
        match catch_unwind(|| play(&history, is_careful)) {
            Ok(seen) => seen.into_iter().for_each(|(what, count)| *sum.entry(what).or_insert(0) += count),
            Err(_) => explain(history),
        }
    }
    println!("{sum:#?}");
    let missing: Vec<_> = INTERESTING.into_iter().filter(|what| !sum.contains_key(what)).collect();
    assert!(
        missing.is_empty() || (is_random && cases < 100),
        "in {cases} histories there was never: {missing:?}"
    );
}

/// Fails with a small part of a history that went wrong: blocks and acts are left out as long as it does.
fn explain(mut history: Vec<BlockPlan>) -> ! {
    let goes_wrong = |history: &[BlockPlan]| catch_unwind(|| play(history, false)).is_err();
    let hook = take_hook();
    set_hook(Box::new(|_| {}));
    for n in (0..history.len()).rev() {
        let mut shorter = history.clone();
        shorter.remove(n);
        if goes_wrong(&shorter) {
            history = shorter;
            continue;
        }
        for m in (0..history[n].acts.len()).rev() {
            let mut shorter = history.clone();
            shorter[n].acts.remove(m);
            if goes_wrong(&shorter) {
                history = shorter;
            }
        }
    }
    set_hook(hook);
    println!("model and chain disagree on this history:");
    history.iter().for_each(|block| println!("  {block:?}"));
    play(&history, true);
    unreachable!("it went wrong a moment ago");
}
