//! Random bookings, releases, changes of the parts and searches.

use super::model::{Parts, Twin, unbounded};
use almanac_primitives::params::CAPACITY_SEARCH_READS_MAX;
use almanac_schedule::capacity::{Class, Reach, search_reads_exact};
use proptest::{collection::vec, prelude::*};

/// Between two of the longest stretches, so that all ranks take part.
const START: u64 = 32_768 * 52_000 - 150;
const SECONDS: u64 = 300;

#[derive(Clone, Copy, Debug)]
enum Act {
    Book {
        at: u64,
        class: Class,
        effort: u64,
    },
    /// Books so much in each of many seconds, which makes hints.
    Fill {
        at: u64,
        seconds: u64,
        class: Class,
        effort: u64,
    },
    Release {
        index: prop::sample::Index,
    },
    /// Releases all of some seconds.
    Empty {
        at: u64,
        seconds: u64,
    },
    SetParts(Parts),
    Search {
        at: u64,
        effort: u64,
        seconds: u64,
        reads: u64,
    },
}

fn class() -> impl Strategy<Value = Class> {
    prop_oneof![Just(Class::High), Just(Class::Medium)]
}

fn parts() -> impl Strategy<Value = Parts> {
    (0u64..8, 0u64..6, 0u64..6).prop_map(|(high, medium, shared)| Parts { high, medium, shared })
}

fn act() -> impl Strategy<Value = Act> {
    let at = 0..SECONDS;
    let effort = 1u64..8;
    prop_oneof![
        3 => (at.clone(), class(), effort.clone())
            .prop_map(|(at, class, effort)| Act::Book { at, class, effort }),
        4 => (at.clone(), 1..SECONDS, class(), effort.clone())
            .prop_map(|(at, seconds, class, effort)| Act::Fill { at, seconds, class, effort }),
        2 => any::<prop::sample::Index>().prop_map(|index| Act::Release { index }),
        1 => (at.clone(), 1u64..80).prop_map(|(at, seconds)| Act::Empty { at, seconds }),
        2 => parts().prop_map(Act::SetParts),
        4 => (at, effort, 0..2 * SECONDS, 0u64..20)
            .prop_map(|(at, effort, seconds, reads)| Act::Search { at, effort, seconds, reads }),
    ]
}

/// Searches that were not drawn, around the ends of stretches, with as many reads as they need.
fn search_all(twin: &mut Twin) {
    for effort in [1, 4] {
        for at in [0, 7, 145, 150, 299] {
            twin.search(START + at, effort, unbounded(2 * SECONDS));
        }
    }
}

fn play(twin: &mut Twin, act: Act) {
    match act {
        Act::Book { at, class, effort } => {
            twin.book(START + at, class, effort);
        }
        Act::Fill { at, seconds, class, effort } => {
            for second in START + at..START + SECONDS.min(at + seconds) {
                twin.book(second, class, effort);
            }
        }
        Act::Release { index } => {
            if !twin.held.is_empty() {
                twin.release(index.index(twin.held.len()));
            }
        }
        Act::Empty { at, seconds } => {
            let range = START + at..START + at + seconds;
            for index in (0..twin.held.len()).rev() {
                if range.contains(&twin.held[index].0) {
                    twin.release(index);
                }
            }
        }
        Act::SetParts(parts) => twin.set_parts(parts),
        Act::Search { at, effort, seconds, reads } => {
            twin.search(START + at, effort, Reach { seconds, reads });
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever governance does meanwhile: no search passes over room, no second is over its parts, and in the end
    /// no slot is left.
    #[test]
    fn flip330_21_parts_change_and_nothing_is_lost(first in parts(), acts in vec(act(), 1..40)) {
        let mut twin = Twin::new(first);
        for act in acts {
            play(&mut twin, act);
            search_all(&mut twin);
        }
        // Hints that were written under any own part of High.
        for high in 0..8 {
            twin.set_parts(Parts { high, ..twin.parts });
            search_all(&mut twin);
        }
        twin.release_all();
    }

    /// Where the parts stay, the search needs the reads that the door charges for and no more.
    #[test]
    fn with_constant_parts_no_search_is_stopped(first in parts(), acts in vec(act(), 1..40)) {
        let mut twin = Twin::new(first);
        for act in acts.into_iter().filter(|act| !matches!(act, Act::SetParts(_))) {
            if let Act::Search { at, effort, seconds, .. } = act {
                let exact = Reach { seconds, reads: search_reads_exact(seconds) };
                let searched = twin.search(START + at, effort, unbounded(seconds));
                prop_assert_eq!(twin.search(START + at, effort, exact), searched);
                prop_assert!(searched.0 <= CAPACITY_SEARCH_READS_MAX);
            } else {
                play(&mut twin, act);
            }
        }
        twin.release_all();
    }
}
