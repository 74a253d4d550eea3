//! What is taken, what is refused, and what a held state goes through.

use crate::support::{Chain, Plan, apply, keeping, key, schedules::paged, someone, topic, value};
use alloy_primitives::{Address, B256};
use almanac_index::{
    ApplyError, Direction, IndexConfig, LogFilter, LogsError, OpenError, Parties, RevertError,
    ScheduleFilter, ScheduleStatus,
};
use almanac_primitives::{Lane, ScheduleId, StateChange, StateDiff, StateRead as _, TimestampMs};
use almanac_schedule::record::Door;
use std::sync::Arc;

fn write(n: u8, new: Option<u8>) -> Plan {
    Plan { writes: vec![(n, new)], ..Plan::default() }
}

fn logging(logs: &[(u8, &[u8])]) -> Plan {
    let logs = logs.iter().map(|(who, topics)| (*who, topics.to_vec())).collect();
    Plan { transactions: vec![(0, None, logs)], ..Plan::default() }
}

#[test]
fn takes_blocks_in_order_and_each_once() {
    let mut chain = Chain::new();
    for n in 0..4 {
        chain.grow(&write(n, Some(n)));
    }
    let index = chain.in_memory(keeping(u64::MAX));
    let [first, second, third, ..] = &chain.fed[..] else { panic!("four blocks") };

    assert_eq!(apply(&index, second), Err(ApplyError::Gap { tip: 0, given: 2 }));
    apply(&index, first).unwrap();
    apply(&index, second).unwrap();
    let before = index.digest().unwrap();
    apply(&index, first).unwrap();
    apply(&index, second).unwrap();

    let mut other = first.clone();
    Arc::make_mut(&mut other.block).header.timestamp = TimestampMs(7);
    let (known, given) = (first.block.hash(), other.block.hash());
    assert_eq!(apply(&index, &other), Err(ApplyError::OtherBlock { number: 1, known, given }));

    let mut orphan = third.clone();
    Arc::make_mut(&mut orphan.block).header.parent_hash = B256::ZERO;
    let (parent, known) = (B256::ZERO, second.block.hash());
    assert_eq!(apply(&index, &orphan), Err(ApplyError::OtherParent { number: 3, parent, known }));

    let mut uneven = third.clone();
    uneven.parties.push(Parties { from: Address::ZERO, to: None, run: None });
    assert_eq!(apply(&index, &uneven), Err(ApplyError::Uneven { number: 3, receipts: 0, parties: 1 }));
    assert_eq!(index.digest().unwrap(), before, "nothing of all that changed anything");
    chain.feed(&index);
    chain.check_blocks(&index);
    assert!(index.block_by_hash(B256::ZERO).unwrap().is_none());
    assert!(index.transaction(B256::ZERO).unwrap().is_none());
}

#[test]
fn a_held_state_does_not_change_and_then_says_that_it_is_gone() {
    let mut chain = Chain::new();
    let index = chain.in_memory(keeping(1));
    let held = index.state_at(0).unwrap();
    apply(&index, chain.grow(&write(0, Some(2)))).unwrap();
    assert_eq!(held.read(key(0)), Ok(Some(value(9))));
    apply(&index, chain.grow(&write(0, None))).unwrap();
    let gone = held.read(key(0)).unwrap_err().to_string();
    assert!(gone.contains("block 0 is no longer kept, the oldest is 1: ask for a later block"), "{gone}");
    assert_eq!(index.state_at(1).unwrap().read(key(0)), Ok(Some(value(2))));
    assert_eq!(index.tip_state().read(key(0)), Ok(None));
}

#[test]
fn a_held_state_says_that_its_block_was_taken_back() {
    let mut chain = Chain::new();
    let index = chain.in_memory(keeping(u64::MAX));
    for n in 1..=3 {
        apply(&index, chain.grow(&write(0, Some(n)))).unwrap();
    }
    let held: Vec<_> = (0..=3).map(|height| index.state_at(height).unwrap()).collect();
    chain.revert_to(2);
    index.revert_to(2).unwrap();
    apply(&index, chain.grow(&write(0, Some(7)))).unwrap();
    for (state, expected) in held.iter().zip(&chain.states).take(3) {
        assert_eq!(state.read(key(0)).unwrap().as_ref(), expected.get(&key(0)));
    }
    let gone = held[3].read(key(0)).unwrap_err().to_string();
    assert!(gone.contains("block 3 was taken back, to block 2: ask anew"), "{gone}");
    assert_eq!(index.state_at(3).unwrap().read(key(0)), Ok(Some(value(7))), "a new one knows the new block");
}

#[test]
fn goes_back_exactly() {
    let mut chain = Chain::new();
    let index = chain.in_memory(keeping(u64::MAX));
    let mut digests = vec![index.digest().unwrap()];
    for n in 1..=9u8 {
        let mut plan = logging(&[(n, &[n, n + 1]), (n + 1, &[])]);
        plan.writes = vec![(n, Some(n)), (n + 1, None), (0, Some(n))];
        apply(&index, chain.grow(&plan)).unwrap();
        digests.push(index.digest().unwrap());
    }
    assert_eq!(index.revert_to(10), Err(RevertError::AboveTip { given: 10, tip: 9 }));
    index.revert_to(9).unwrap();
    for height in (0..9).rev() {
        // Two blocks of another branch on top.
        let mut ahead = chain.clone();
        for _ in 0..2 {
            apply(&index, ahead.grow(&write(1, Some(5)))).unwrap();
        }
        chain.revert_to(height);
        index.revert_to(height).unwrap();
        assert_eq!(index.digest().unwrap(), digests[height as usize], "at {height}");
        chain.check_blocks(&index);
        chain.check_states(&index);
    }
}

#[test]
fn does_not_go_back_to_where_state_is_forgotten() {
    let mut chain = Chain::new();
    let index = chain.in_memory(keeping(3));
    for n in 1..=8 {
        apply(&index, chain.grow(&write(0, Some(n)))).unwrap();
    }
    assert_eq!(index.revert_to(4), Err(RevertError::Pruned { given: 4, oldest: 5 }));
    assert_eq!(index.height(), 8, "a refusal changes nothing");
    chain.revert_to(5);
    index.revert_to(5).unwrap();
    assert_eq!(index.oldest_state(), 5, "what is forgotten stays so");
    chain.check_states(&index);
}

#[test]
fn a_smaller_depth_is_caught_up_with_bit_by_bit() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index");
    let mut chain = Chain::new();
    for n in 1..=20 {
        chain.grow(&write(n % 3, (n % 2 == 0).then_some(n % 9)));
    }
    chain.feed(&chain.open(&path, keeping(u64::MAX)).unwrap());

    let index = chain.open(&path, keeping(2)).unwrap();
    assert_eq!(index.oldest_state(), 18);
    assert!(index.state_at(17).is_none());
    let mut blocks = 0;
    loop {
        apply(&index, chain.grow(&write(0, Some(blocks)))).unwrap();
        blocks += 1;
        chain.check_states(&index);
        let fresh = chain.rebuilt(keeping(2));
        if index.digest().unwrap() == fresh.digest().unwrap() {
            break;
        }
        assert!(blocks < 20, "it never catches up");
    }
    assert!(blocks > 2, "not all in one go");
}

/// One receipt may be megabytes, and few of them may match: what is read counts, and what does not fit ends it.
#[test]
fn a_search_stops_at_its_bytes() {
    let mut chain = Chain::new();
    for _ in 0..50 {
        chain.grow(&logging(&[(0, &[0]), (1, &[1])]));
    }
    let everything = LogFilter { to: u64::MAX, ..LogFilter::default() };
    let index = chain.rebuilt(IndexConfig { search_bytes_max: 2_000, ..keeping(u64::MAX) });
    let Err(LogsError::TooHeavy { bytes: 2_001.., complete_to: Some(to) }) = index.logs(&everything, 1_000)
    else {
        panic!("the search should have stopped")
    };
    let narrower = LogFilter { to, ..everything.clone() };
    assert_eq!(index.logs(&narrower, 1_000).unwrap(), chain.logs(&narrower), "the advice works");

    let index = chain.rebuilt(keeping(u64::MAX));
    let mut room = 5;
    let stopped = index.search_logs(&everything, 1_000, |_| {
        room -= 1;
        room >= 0
    });
    assert_eq!(stopped, Err(LogsError::TooLarge { complete_to: Some(2) }));
    assert_eq!(room, -1, "nothing is read after what does not fit");
}

#[test]
fn a_search_stops_at_its_limits() {
    let mut chain = Chain::new();
    // Both parts of the filter are in every receipt, and never in one log.
    for _ in 0..50 {
        chain.grow(&logging(&[(0, &[0]), (1, &[1])]));
    }
    chain.grow(&logging(&[(0, &[1])]));
    let index = chain.rebuilt(IndexConfig { search_rows_max: 120, ..keeping(u64::MAX) });
    let mut filter = LogFilter { to: u64::MAX, addresses: vec![someone(0)], ..LogFilter::default() };
    filter.topics[0] = vec![topic(1)];
    let Err(LogsError::TooWide { looked_at: 121, complete_to: Some(to) }) = index.logs(&filter, 10) else {
        panic!("the search should have stopped")
    };
    assert!((30..50).contains(&to), "{to}");
    filter.to = to;
    assert_eq!(index.logs(&filter, 10), Ok(Vec::new()), "the advice works");
    filter.from = 40;
    filter.to = u64::MAX;
    assert_eq!(index.logs(&filter, 10).unwrap(), chain.logs(&filter));
    assert_eq!(chain.logs(&filter).len(), 1);

    let all = LogFilter { from: 49, to: 50, ..LogFilter::default() };
    assert_eq!(index.logs(&all, 4).unwrap().len(), 4);
    let too_many = LogsError::TooMany { max: 3, complete_to: Some(49) };
    assert_eq!(index.logs(&all, 3), Err(too_many.clone()));
    assert_eq!(too_many.to_string(), "more than 3 logs match: end the range at block 49");
}

#[test]
fn a_directory_belongs_to_one_chain_and_one_process() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index");
    let chain = Chain::new();
    let index = chain.open(&path, keeping(9)).unwrap();
    assert!(matches!(chain.open(&path, keeping(9)), Err(OpenError::InUse { .. })));
    drop(index);

    let mut other = Chain::new();
    other.genesis.timestamp = TimestampMs(1);
    let refused = other.open(&path, keeping(9)).unwrap_err();
    let (found, expected) = (chain.genesis.hash(), other.genesis.hash());
    let path_text = path.display().to_string();
    assert_eq!(refused, OpenError::OtherChain { path: path_text, found, expected });
    assert!(refused.to_string().ends_with("delete that directory and run `almanac index rebuild`"));
    chain.open(&path, keeping(9)).unwrap();
}

#[test]
fn what_was_applied_survives_a_clean_stop() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index");
    let mut chain = Chain::new();
    let index = chain.open(&path, keeping(u64::MAX)).unwrap();
    for n in 1..=5 {
        apply(&index, chain.grow(&logging(&[(n, &[n])]))).unwrap();
    }
    drop(index);
    let index = chain.open(&path, keeping(u64::MAX)).unwrap();
    chain.check_blocks(&index);
    assert_eq!(index.digest().unwrap(), chain.rebuilt(keeping(u64::MAX)).digest().unwrap());
}

/// The same blocks with one thing changed beside them, a thing at a time.
#[test]
fn the_digest_sees_every_part() {
    let mut chain = Chain::new();
    let mut plan = logging(&[(0, &[0, 1])]);
    plan.writes = vec![(1, Some(3)), (2, Some(4))];
    plan.bodies = 1;
    chain.grow(&plan);
    let digest = |chain: &Chain| chain.rebuilt(keeping(u64::MAX)).digest().unwrap();
    let mut digests = vec![digest(&chain)];
    let mut with = |change: &dyn Fn(&mut crate::support::Fed)| {
        let mut other = chain.clone();
        change(&mut other.fed[0]);
        digests.push(digest(&other));
    };
    let diff = |new: &[u8]| {
        let change = |key, new: &[u8]| StateChange { key, old: None, new: Some(new.to_vec().into()) };
        StateDiff::new(vec![change(key(1), &value(3)), change(key(2), new)])
    };
    with(&|fed| fed.diff = diff(b"else"));
    with(&|fed| fed.diff = StateDiff::default());
    with(&|fed| fed.parties[0].from = someone(2));
    with(&|fed| fed.parties[0].to = Some(someone(2)));
    with(&|fed| fed.parties[0].run = Some(crate::support::a_run(1)));
    with(&|fed| fed.receipts[0].gas_used.0 += 1);
    with(&|fed| fed.receipts[0].transaction_hash = B256::ZERO);
    with(&|fed| fed.receipts[0].logs[0].address = someone(2));
    with(&|fed| Arc::make_mut(&mut fed.block).header.timestamp.0 += 1);
    with(&|fed| Arc::make_mut(&mut fed.block).transactions.clear());
    let distinct: std::collections::BTreeSet<_> = digests.iter().collect();
    assert_eq!(distinct.len(), digests.len(), "{digests:?}");
}

/// Long enough that rows are written, moved, replaced and removed many times over on disk.
#[test]
fn a_long_life_on_disk_leaves_what_a_short_one_in_memory_does() {
    let directory = tempfile::tempdir().unwrap();
    let mut chain = Chain::new();
    let index = chain.open(directory.path(), keeping(50)).unwrap();
    for round in 0..400u64 {
        for n in 0..6 {
            let n = u8::try_from((round * 7 + n * 13) % 240).unwrap();
            let mut plan = logging(&[(n, &[n, n / 2, n / 3]), (n / 5, &[n])]);
            plan.writes = (0..8).map(|key| (key ^ (n % 8), (n % (key + 2) != 0).then_some(n))).collect();
            apply(&index, chain.grow(&plan)).unwrap();
        }
        let height = chain.height() - round % 6;
        chain.revert_to(height);
        index.revert_to(height).unwrap();
    }
    // As high as ever, so that as much is forgotten as without going back.
    for n in 0..6 {
        apply(&index, chain.grow(&write(n, Some(n)))).unwrap();
    }
    chain.check_blocks(&index);
    chain.check_states(&index);
    assert_eq!(index.digest().unwrap(), chain.rebuilt(keeping(50)).digest().unwrap());
}

/// A filter that hardly anything matches costs a page what it costs, and no more: the client goes on from there.
#[test]
fn a_page_of_schedules_looks_at_so_many_and_says_from_where_to_go_on() {
    let mut chain = Chain::new();
    let create = |n| (0, 0, n);
    let schedules = vec![create(0), create(1), create(0), create(0), create(1)];
    chain.grow(&Plan { transactions: vec![(0, None, vec![])], schedules, ..Plan::default() });
    let rare = ScheduleFilter { owner: Some(someone(1)), ..ScheduleFilter::default() };
    let by_lane = ScheduleFilter { lane: Some(Lane::Spare), ..ScheduleFilter::default() };
    for looked_at_max in [0, 1, 2, 5, 6] {
        let index = chain.rebuilt(IndexConfig { search_rows_max: looked_at_max, ..keeping(u64::MAX) });
        assert_eq!(paged(&index, &rare, 10).len(), 2);
        let first = index.schedules(&by_lane, None, 10).unwrap();
        assert_eq!(first.schedules, []);
        assert_eq!(first.next.is_some(), looked_at_max < 5, "{looked_at_max}");
        assert_eq!(paged(&index, &by_lane, 10), []);
    }
    let index = chain.rebuilt(keeping(u64::MAX));
    let of_door = |door| ScheduleFilter {
        door: Some(door),
        status: Some(ScheduleStatus::Pending),
        ..ScheduleFilter::default()
    };
    assert_eq!(paged(&index, &of_door(Door::Cron), 2).len(), 5);
    assert_eq!(paged(&index, &ScheduleFilter { status: None, ..of_door(Door::Signed) }, 2), []);
    // A door has a list of its own: those of others are not even looked at.
    let index = chain.rebuilt(IndexConfig { search_rows_max: 1, ..keeping(u64::MAX) });
    assert_eq!(index.schedules(&of_door(Door::Signed), None, 10).unwrap().next, None);
    let index = chain.rebuilt(keeping(u64::MAX));
    let last = index.schedules(&ScheduleFilter::default(), None, 10).unwrap().schedules[4].schedule.id;
    assert_eq!(index.schedules(&ScheduleFilter::default(), Some(last), 10).unwrap().schedules, []);
    let newest = ScheduleFilter { order: Direction::Descending, ..ScheduleFilter::default() };
    for filter in [ScheduleFilter::default(), rare, of_door(Door::Cron)] {
        let mut turned = paged(&index, &filter, 2);
        turned.reverse();
        let filter = ScheduleFilter { order: Direction::Descending, ..filter };
        for limit in [1, 2, 10] {
            assert_eq!(paged(&index, &filter, limit), turned, "{filter:?}");
        }
    }
    assert_eq!(index.schedules(&newest, Some(ScheduleId(0)), 10).unwrap().next, None);
    let end = ScheduleId(u64::MAX);
    assert_eq!(index.schedules(&ScheduleFilter::default(), Some(end), 10).unwrap().next, None);
}
