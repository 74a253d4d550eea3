//! Attacks with times, orders and names: what runs when, in which order, and what is told of it.

use crate::attacks::{FLOODER, cheap_order, fill, flood, flooder_data, wide_chain};
use crate::support::{contracts::*, cron::*, *};
use alloy_primitives::{Bytes, U256};
use alloy_sol_types::{SolCall, SolError};
use almanac_exec::{BlockError, Call, Candidates, Environment, execute, simulate};
use almanac_primitives::{
    Gas, GasPrice, Genesis, Outcome, StateRead, TimestampMs,
    addresses::CRON_REGISTRY,
    ids::ID_NTH_MAX,
    params::{Parameters, SCHEDULE_AHEAD_SECONDS_MAX},
};
use almanac_schedule::{
    Agenda, CalendarAgenda,
    calendar::{CalendarError, Entry, Queue},
};
use std::collections::BTreeSet;

alloy_sol_types::sol!("../../contracts/IDoor.sol");

/// Equal orders of one transaction, one block and two blocks are different jobs; a transaction has an end.
#[test]
fn attack_12_id_collision() {
    let mut chain = wide_chain();
    let order = cheap_order(&chain);
    let most = u64::from(ID_NTH_MAX) + 1;
    let twice =
        [flood(&chain, person(0), 3, &order, 1_000_000), flood(&chain, person(1), 3, &order, 1_000_000)];
    let produced = chain.produce(twice.to_vec());
    let mut ids: Vec<_> = events::<JobScheduled>(&produced.logs()).iter().map(|event| event.id).collect();
    assert_eq!(ids.len(), 6);
    ids.extend(fill(&mut chain, 3, &order));

    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "no id twice");

    // No block has the gas for so many, so they are tried out.
    let attempt = |count| {
        let (value, data) =
            (order.value * U256::from(count), flooder_data(count, order.value, &order.calldata()));
        let from = person(0).address;
        let call = Call {
            from,
            to: Some(FLOODER),
            value,
            input: data,
            gas_limit: Gas(400_000_000),
            ..Call::default()
        };
        simulate(&chain.state, &chain.input(), call).unwrap()
    };
    let all = attempt(most);
    let ids: BTreeSet<_> = events::<JobScheduled>(&all.logs).into_iter().map(|event| event.id).collect();
    assert_eq!(ids.len() as u64, most, "{:?}", all.outcome);
    let error = IDoor::TooManySchedules { given: U256::from(most), max: U256::from(ID_NTH_MAX) };
    assert_eq!(attempt(most + 1).outcome, Outcome::Reverted(error.abi_encode().into()));
}

/// Times are compared as numbers: 999 comes before 1000, where text would have it behind.
#[test]
fn attack_13_text_sorted_time_keys() {
    let mut chain = TestChain::from_genesis(&Genesis { timestamp_ms: TimestampMs(900_000), ..genesis() });
    let orders = [1_000, 999, 1_001, 9_999, 10_000].map(|at| order(&chain).at(at));
    let [thousand, before, after, last, first_of_five] =
        orders.map(|order| chain.schedule(person(0), &order).unwrap());
    assert_eq!(chain.at(10_000).ran(), [before, thousand, after, last, first_of_five]);
}

/// Time only goes forward; however slowly, nothing runs before it is due, and then at once.
#[test]
fn attack_14_proposer_moves_time() {
    let mut chain = TestChain::new();
    let due = chain.next_seconds() + 1;
    let id = chain.schedule(person(0), &order(&chain).at(due)).unwrap();
    let input = chain.input_at(TimestampMs(due * 1_000 - 20));
    chain.produce_with(&input, vec![]);
    for back in [0, 1, 1_000] {
        let input = chain.input_at(TimestampMs(chain.head.timestamp.0 - back));
        let refused = Environment::derive(&input, &chain.state);
        assert!(matches!(refused, Err(BlockError::TimeNotAfterParent { .. })));
    }
    for millisecond in due * 1_000 - 19..due * 1_000 {
        assert_eq!(
            chain.produce_with(&chain.input_at(TimestampMs(millisecond)), vec![]).ran(),
            [U256::ZERO; 0]
        );
    }
    assert_eq!(chain.produce_with(&chain.input_at(TimestampMs(due * 1_000)), vec![]).ran(), [id]);
}

/// Every number at its extremes, and milliseconds where seconds belong: refused by name, never cut off.
#[test]
fn attack_15_overflow_and_unit_confusion() {
    let mut chain = TestChain::new();
    let now = chain.next_seconds();
    let good = order(&chain);
    let (huge, max) = (U256::from(u64::MAX), U256::MAX);
    let wrapped = U256::from(now + HOUR) + (U256::ONE << 64);
    for at in [huge, max, wrapped, U256::from(now * 1_000)] {
        let refused = chain.schedule(person(0), &JobOrder { next_run_at: at, ..good.clone() });
        assert!(matches!(refused, Err(CronError::TimeBeyondHorizon(_))), "{at}: {refused:?}");
    }
    for at in [U256::ZERO, U256::ONE] {
        let refused = chain.schedule(person(0), &JobOrder { next_run_at: at, ..good.clone() });
        assert!(matches!(refused, Err(CronError::TimeNotInFuture(_))), "{at}: {refused:?}");
    }
    let ahead = U256::from(SCHEDULE_AHEAD_SECONDS_MAX.default);
    for interval in [huge, max, ahead + U256::ONE, U256::from(60) + (U256::ONE << 64)] {
        let refused = chain.schedule(person(0), &JobOrder { interval, ..good.clone() });
        assert!(matches!(refused, Err(CronError::IntervalTooLong(_))), "{interval}: {refused:?}");
    }
    for gas_limit in [U256::ZERO, huge, max, U256::from(RUN_GAS) + (U256::ONE << 64)] {
        let refused = chain.schedule(person(0), &JobOrder { gas_limit, ..good.clone() });
        assert!(matches!(refused, Err(CronError::GasLimitOutOfBounds(_))), "{gas_limit}: {refused:?}");
    }
    for max_runs in [max, huge + U256::ONE] {
        let refused = chain.schedule(person(0), &JobOrder { max_runs, ..good.clone() });
        assert!(matches!(refused, Err(CronError::RunsTooMany(_))), "{max_runs}: {refused:?}");
    }
    for id in [huge, max, U256::from(1) << 64] {
        assert!(matches!(chain.cancel(person(0), id), Err(CronError::UnknownJob(_))));
        assert!(matches!(chain.top_up(person(0), id, U256::ONE), Err(CronError::UnknownJob(_))));
        assert_eq!(chain.job(id).id, U256::ZERO);
    }
    // The largest that pass run like any other.
    let largest = JobOrder { interval: ahead, max_runs: huge, ..good };
    let id = chain.schedule(person(0), &largest).unwrap();
    let due = largest.next_run_at.to();
    assert_eq!(chain.at(due).ran(), [id]);
    let job = chain.job(id);
    assert_eq!((job.nextRunAt, job.runsLeft), (U256::from(due) + ahead, huge - U256::ONE));
}

/// The agenda of a proposer who does something to what is due.
struct Tampered(fn(&mut Vec<Entry>));

impl Agenda for Tampered {
    fn due_from(
        &self,
        state: &dyn StateRead,
        queue: Queue,
        until: u64,
        from: Option<Entry>,
        count_max: usize,
    ) -> Result<Vec<Entry>, CalendarError> {
        let mut due = CalendarAgenda.due_from(state, queue, until, from, count_max)?;
        (self.0)(&mut due);
        Ok(due)
    }

    fn next_due(
        &self,
        _: &dyn StateRead,
        _: &Parameters,
        _: GasPrice,
    ) -> Result<Option<TimestampMs>, CalendarError> {
        Ok(None)
    }
}

/// Everybody derives the runs from the parent's state: a block with fewer of them, or in another order, is none.
#[test]
fn attack_16_proposer_drops_or_reorders() {
    let mut chain = TestChain::new();
    let due = chain.next_seconds() + HOUR;
    for n in [0, 1] {
        let order = order(&chain).at(due).calling(FORWARDER, to(COUNTER, &[n]));
        chain.schedule(person(n.into()), &order).unwrap();
    }
    let input = chain.input_at(TimestampMs(due * 1_000));
    let tampering: [fn(&mut Vec<Entry>); 3] = [Vec::clear, |due| due.reverse(), |_| {}];
    let verdicts = tampering.map(|tamper| {
        let built = execute(&chain.state, &Tampered(tamper), &input, &mut Candidates::default()).unwrap();
        let mut next = chain.state.clone();
        next.apply(&built.diff);
        chain.verify(&built.block(next.commitment()))
    });
    assert!(verdicts[0].is_err() && verdicts[1].is_err(), "dropped and reordered");
    assert!(verdicts[2].is_ok(), "the honest one");
}

/// Whoever cancels in the block where the job is due comes after the run, and gets what is left.
#[test]
fn attack_17_cancel_and_execute_race() {
    let mut chain = TestChain::new();
    let order = order(&chain).every(MINUTE);
    let due = order.next_run_at.to::<u64>();
    let id = chain.schedule(person(0), &order).unwrap();
    let cancel =
        paid_call(person(0), chain.nonce(person(0).address), CRON_REGISTRY, U256::ZERO, cancel_data(id));
    let produced = chain.produce_with(&chain.input_at(TimestampMs(due * 1_000)), vec![cancel]);
    assert_eq!(produced.ran(), [id]);
    let cost = U256::from(RUN_GAS) * U256::from(base_fee(&produced.output).0);
    assert_eq!(only::<JobCancelled>(&produced.logs()).refunded, order.value - cost);
    assert!(chain.at(due + MINUTE).ran().is_empty());
}

/// What a job reads of itself and of others while it runs: nothing is told before it is true.
#[test]
fn attack_18_executed_before_execution() {
    let mut chain = TestChain::new();
    let due = chain.next_seconds() + HOUR;
    // The first transaction of the next block is at index 1.
    let own = U256::from((chain.head.number + 1) << 28 | 1 << 10);
    let other = U256::from((chain.head.number + 2) << 28 | 1 << 10);
    let look = |id: U256| to(CRON_REGISTRY, &ICronRegistry::getJobCall { id }.abi_encode());
    let looking = order(&chain).at(due).calling(ECHO, look(own)).gas(200_000);
    assert_eq!(chain.schedule(person(0), &looking).unwrap(), own);
    let looking_at_next = order(&chain).at(due - 1).calling(ECHO, look(own)).gas(200_000);
    assert_eq!(chain.schedule(person(0), &looking_at_next).unwrap(), other);

    let produced = chain.at(due);
    assert_eq!(produced.ran(), [other, own]);
    let seen: Vec<_> = produced.runs().iter().map(|run| seen(&run.logs[0].data.data)).collect();
    // Before its turn: all there. In its last run: begun and paid, not gone.
    assert_eq!((seen[0].id, seen[0].gasEscrow, seen[0].nextRunAt), (own, looking.value, U256::from(due)));
    let cost = looking.gas_limit * U256::from(base_fee(&produced.output).0);
    assert_eq!((seen[1].id, seen[1].gasEscrow), (own, looking.value - cost));
    // The event is the last that the run tells, and there is nothing to see afterwards.
    for run in produced.runs() {
        assert_eq!(run.logs.len(), 3, "with what the ledger says of the refund");
        assert!(only::<JobExecuted>(&run.logs[1..]).success);
    }
    assert_eq!(chain.job(own).id, U256::ZERO);
}

fn seen(data: &Bytes) -> ICronRegistry::Job {
    ICronRegistry::getJobCall::abi_decode_returns(data).unwrap()
}
