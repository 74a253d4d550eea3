//! The scheduler against a dull one: whatever people, runs, governance and time do, both agree after every block.
//!
//! The model (`scheduler_model/model.rs`) is a list and a loop, written from the spec. It takes from the chain only
//! what is not the scheduler's: base fee and gas used. Compared are the runs and their order, success and numbers;
//! every event; every escrow, due time and balance; what is burned; and what `getJob` says. A failure prints the
//! smallest history that a search finds for it.
#![allow(unreachable_pub, reason = "parts of one test")]

mod support;

#[path = "scheduler_model/act.rs"]
mod act;
#[path = "scheduler_model/model.rs"]
mod model;
#[path = "scheduler_model/plan.rs"]
mod plan;
#[path = "scheduler_model/play.rs"]
mod play;

use play::{Care, play};
use proptest::{prelude::*, test_runner::TestRunner};
use std::{cell::RefCell, collections::BTreeMap};

/// Blocks of a history: with more than four operations each on average, more than 500 operations.
const BLOCKS: usize = 120;

#[test]
fn agrees_on_random_histories() {
    let seen = search(cases(), Care::Once);
    println!("{seen:#?}");
}

#[test]
fn agrees_when_every_block_is_verified_and_replayed() {
    search(cases().div_ceil(16), Care::Full);
}

/// `ALMANAC_MODEL_CASES` asks for more.
fn cases() -> u32 {
    std::env::var("ALMANAC_MODEL_CASES").map_or(16, |cases| cases.parse().expect("a number of cases"))
}

/// Plays histories and answers with what happened in them.
fn search(cases: u32, care: Care) -> BTreeMap<&'static str, u64> {
    let seen = RefCell::new(BTreeMap::new());
    let config =
        ProptestConfig { cases, max_shrink_iters: 1_000, failure_persistence: None, ..Default::default() };
    TestRunner::new(config)
        .run(&plan::blocks(BLOCKS), |plans| {
            let mut seen = seen.borrow_mut();
            for (what, count) in play(&plans, care) {
                *seen.entry(what).or_insert(0) += count;
            }
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
    seen.into_inner()
}
