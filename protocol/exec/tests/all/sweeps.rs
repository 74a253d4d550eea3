//! Ends that stay readable for a while, and go: at their block, a bounded number each, and nothing else with them.

use crate::support::{contracts::COUNTER, ledger::records, runs::run, *};
use almanac_primitives::{
    ConsensusContext, Lane, ScheduleId, StateKey, TimestampMs, Wei, addresses::LEDGER,
    params::BLOCK_SWEEPS_MAX,
};
use almanac_schedule::{
    Calendar, Record,
    calendar::{Change, Entry, Priority, Queue},
    record::{Status, head_slot},
    testing::record,
};

/// A schedule that ended and is kept until a block.
fn ended(id: u64, status: Status, until: u64) -> Record {
    let mut record = record(TimestampMs(1), &run(id, Lane::Spare, person(1).address, COUNTER, 100_000));
    record.head.status = status;
    record.head.until = until;
    // Whatever it had was paid back.
    record.escrow = Wei::ZERO;
    record
}

fn kept(chain: &TestChain) -> Vec<u64> {
    records(&chain.state).iter().map(|record| record.id.0).collect()
}

#[test]
fn an_end_is_readable_until_its_block_and_gone_with_it() {
    let mut chain = TestChain::new();
    let all = [Status::Succeeded, Status::Failed, Status::Cancelled, Status::Expired, Status::Shutdown];
    chain.plant(all.into_iter().zip(1..).map(|(status, id)| ended(id, status, id)).collect());
    for number in 1..=5 {
        assert_eq!(kept(&chain), (number..=5).collect::<Vec<_>>(), "before block {number}");
        let output = chain.produce(vec![]).output;
        assert_eq!((output.events.len(), output.burned), (0, Wei::ZERO), "nobody is told, nobody pays");
    }
    assert_eq!(kept(&chain), [0u64; 0]);
    chain.replay();
}

/// Both sides of the bound, and of what is left of it where views fail.
#[test]
fn a_block_sweeps_so_many_oldest_first() {
    let more = BLOCK_SWEEPS_MAX + 1;
    let mut chain = TestChain::new();
    chain.plant((1..=more).map(|id| ended(id, Status::Failed, 1)).collect());
    let mut input = chain.input();
    chain.produce_once(&input, vec![]);
    assert_eq!(kept(&chain), [more], "one is left for the next block");
    input = chain.input();
    chain.produce_once(&input, vec![]);
    assert_eq!(kept(&chain), [0u64; 0]);

    chain.plant((1..=more).map(|id| ended(id, Status::Failed, 1)).collect());
    input = chain.input();
    input.consensus = ConsensusContext { view: 10, parent_view: 6, ..input.consensus };
    chain.produce_once(&input, vec![]);
    assert_eq!(kept(&chain).len() as u64, more - BLOCK_SWEEPS_MAX / 4, "three failed views, halved twice");
}

/// A fault of our own put a schedule that lives among the ends: the record is believed.
#[test]
fn a_schedule_that_lives_is_never_swept() {
    let mut chain = TestChain::new();
    let due = TimestampMs(chain.head.timestamp.0 + 60_000);
    chain.plant(vec![record(due, &run(1, Lane::Cron, person(1).address, COUNTER, 100_000))]);
    let stray = |id| {
        Change::Insert(Entry { queue: Queue::Kept, at: 1, priority: Priority(0), schedule: ScheduleId(id) })
    };
    for change in Calendar::new(&chain.state).apply(&[stray(1), stray(2)]).unwrap() {
        chain.state.0.insert(change.key, change.new.unwrap());
    }
    chain.produce(vec![]);
    assert_eq!(kept(&chain), [1]);
    assert!(chain.state.0.contains_key(&StateKey::Slot(LEDGER, head_slot(ScheduleId(1)))));
    let left = Calendar::new(&chain.state).due_from(Queue::Kept, u64::MAX, None, 9).unwrap();
    assert_eq!(left, [], "and the entries are gone");
}
