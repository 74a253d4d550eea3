//! An index that began with a copied state.

use crate::support::{Chain, KEYS, any_plan, apply, keeping, key, schedules::is_kept};
use almanac_index::{CopiedIndex, EndReason, Ending, Index, LogFilter, LogsError, Schedule, ScheduleFilter};
use almanac_primitives::{StateKey, StateRead as _};
use almanac_schedule::record::Status;
use proptest::prelude::*;
use std::path::Path;

/// Copies the state of a chain at a height, from its end, in pages that overlap.
fn copied(chain: &Chain, height: u64, path: &Path) -> Index {
    let floor = usize::try_from(height).unwrap();
    let state: Vec<_> = chain.states[floor].clone().into_iter().collect();
    let mut index = CopiedIndex::begin(path, &keeping(u64::MAX), chain.genesis.clone()).unwrap();
    let mut added = 0;
    for page in state.chunks(3).rev() {
        added += index.add(page.to_vec()).unwrap();
        assert_eq!(index.add(page.to_vec()).unwrap(), 0, "what is there is not added again");
    }
    assert_eq!(added, state.len() as u64);
    let header = chain.fed[floor - 1].block.header.clone();
    index.finish(header).unwrap();
    chain.open(path, keeping(u64::MAX)).unwrap()
}

/// A chain of so many blocks.
fn grown(plans: &[crate::support::Plan]) -> Chain {
    let mut chain = Chain::new();
    for plan in plans {
        chain.grow(plan);
    }
    chain
}

/// Of schedules that were born since everything is known; of those that lived then, what the state says.
fn check_schedules(chain: &Chain, floor: u64, index: &Index) {
    for whole in chain.known_schedules() {
        let (id, expected) = (whole.schedule.id, &whole.schedule);
        let found = index.schedule(id).unwrap();
        if id.block() > floor {
            assert_eq!(found, Some(whole));
            continue;
        }
        let ended = expected.end.as_ref().map(|end| end.location.number);
        if ended.is_some_and(|number| number <= floor) {
            if !is_kept(id) {
                assert_eq!(found, None, "it is in no state");
                continue;
            }
            let (found, end) = (found.expect("its end is kept"), expected.end.as_ref().unwrap());
            let kept = found.schedule.end.as_ref().expect("it has ended");
            assert_eq!((status_of(kept), kept.location.number), (status_of(end), floor));
            assert_eq!(kept.refunded, None, "the state does not tell");
            continue;
        }
        let found = found.expect("it lives in the state that was copied");
        assert_eq!((&found.body, &found.record), (&whole.body, &whole.record));
        let fixed = |one: &Schedule| (one.owner, one.target, one.lane, one.end.clone());
        assert_eq!(fixed(&found.schedule), fixed(expected));
        let mine = ScheduleFilter { owner: Some(expected.owner), ..ScheduleFilter::default() };
        assert!(index.schedules(&mine, None, 1_000).unwrap().schedules.contains(&found), "it is listed");
    }
}

fn status_of(ending: &Ending) -> Status {
    match ending.reason {
        EndReason::Ended(end) => end.status(),
        EndReason::Fault(_) => Status::Quarantined,
    }
}

fn all_names(chain: &Chain, index: &Index, page: usize) -> Vec<Vec<u8>> {
    let mut names: Vec<Vec<u8>> = Vec::new();
    let mut after: Option<StateKey> = None;
    loop {
        let found = index.names_after(after.as_ref(), page).unwrap();
        assert!(found.len() <= page);
        let Some(last) = found.last() else { return names };
        let state = chain.states.last().unwrap();
        after = state.keys().copied().find(|key| key.with_bytes(|bytes| bytes == last));
        assert!(after.is_some(), "a key of the state");
        names.extend(found);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// From the floor on it answers what an index with all blocks answers; before, nothing.
    #[test]
    fn it_answers_as_one_that_has_all_blocks(
        plans in proptest::collection::vec(any_plan(), 2..8),
        floor in 1..7u64,
    ) {
        let chain = grown(&plans);
        let floor = floor.min(chain.height() - 1);
        let directory = tempfile::tempdir().unwrap();
        let index = copied(&chain, floor, directory.path());
        prop_assert_eq!((index.height(), index.floor(), index.oldest_state()), (floor, floor, floor));
        for fed in &chain.fed[usize::try_from(floor).unwrap()..] {
            apply(&index, fed).unwrap();
        }
        drop(index);
        let index = chain.open(directory.path(), keeping(u64::MAX)).unwrap();
        let whole = chain.rebuilt(keeping(u64::MAX));
        prop_assert_eq!(index.height(), chain.height());
        for number in 0..=chain.height() {
            let expected = if (1..=floor).contains(&number) { None } else { whole.block(number).unwrap() };
            prop_assert_eq!(index.block(number).unwrap(), expected);
            let state = index.state_at(number);
            prop_assert_eq!(state.is_some(), number >= floor);
            let Some(state) = state else { continue };
            for key in (0..KEYS).map(key) {
                let expected = chain.states[usize::try_from(number).unwrap()].get(&key).cloned();
                prop_assert_eq!(state.read(key).unwrap(), expected);
            }
        }
        check_schedules(&chain, floor, &index);
        let filter = |from| LogFilter { from, to: chain.height(), ..LogFilter::default() };
        prop_assert_eq!(index.logs(&filter(floor + 1), 1_000), whole.logs(&filter(floor + 1), 1_000));
        let refused = LogsError::NotKept { from: floor, first: floor + 1 };
        prop_assert_eq!(index.logs(&filter(floor), 1_000), Err(refused));
        for height in 0..=chain.height() + 1 {
            let expected = if height > floor { whole.changed_in(height).unwrap() } else { None };
            prop_assert_eq!(index.changed_in(height).unwrap(), expected);
        }
        let names: Vec<Vec<u8>> =
            chain.states.last().unwrap().keys().map(|key| key.with_bytes(<[u8]>::to_vec)).collect();
        for page in 1..=names.len() + 1 {
            prop_assert_eq!(&all_names(&chain, &index, page), &names);
        }
    }
}

/// What a crash left of a copy is not taken for an index.
#[test]
fn an_unfinished_copy_does_not_count() {
    let directory = tempfile::tempdir().unwrap();
    let chain = grown(&[crate::support::Plan::default(), crate::support::Plan::default()]);
    let mut index = CopiedIndex::begin(directory.path(), &keeping(u64::MAX), chain.genesis.clone()).unwrap();
    index.add(chain.states[1].clone().into_iter().collect()).unwrap();
    drop(index);
    let opened = chain.open(directory.path(), keeping(u64::MAX)).unwrap();
    assert_eq!((opened.height(), opened.floor()), (0, 0), "it is begun again");
}
