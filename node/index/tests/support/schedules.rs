//! Random lives of schedules, and what should be known of them, found by walking through everything again.

use super::{Chain, PEOPLE, State, someone};
use alloy_primitives::{Bytes, U256};
use almanac_index::{
    Direction, EndReason, Ending, Index, KnownSchedule, Location, PastRun, Schedule, ScheduleFilter,
    ScheduleStatus,
};
use almanac_primitives::{
    Gas, Lane, Outcome, Receipt, ScheduleId, ScheduleRef, StateKey, StateRead, StateReadError, TimestampMs,
    Wei,
    addresses::{CRON_REGISTRY, LEDGER},
    state::encode_slot,
};
use almanac_schedule::{
    Record,
    cron::{CatchUp, Charge, CronTerms},
    decide::End,
    life::{Event, LifeEvent, What},
    record::{Body, Call, Door, Head, LastRun, Status, Terms, Trigger, escrow_slot, head_slot},
};
use std::{collections::BTreeMap, num::NonZeroU64};

/// A step of a schedule's life as numbers: in which transaction, what, and whose.
pub type SchedulePlan = (u8, u8, u8);
pub const ACTS: u8 = 7;

/// A step of a schedule's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Happened {
    pub id: ScheduleId,
    pub location: Location,
    pub act: Act,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    Create { n: u8 },
    TopUp,
    Run { is_success: bool, is_last: bool },
    Cancel,
    Exhaust,
    Quarantine,
}

/// What a block does to schedules that live before it: what happens, and the state after that.
pub fn live(
    chain: &Chain,
    plans: &[SchedulePlan],
    receipts: &mut [Receipt],
    state: &mut State,
) -> Vec<Happened> {
    let number = chain.height() + 1;
    let mut plans: Vec<_> = plans.iter().filter(|_| !receipts.is_empty()).copied().collect();
    plans.sort_by_key(|plan| usize::from(plan.0) % receipts.len());
    let mut all: Vec<Happened> = chain.fed.iter().flat_map(|fed| fed.schedules.clone()).collect();
    let old = all.len();
    let mut nth = 0;
    for (place, act, which) in plans {
        let index = usize::from(place) % receipts.len();
        let location = Location { number, index };
        let living: Vec<_> = dull(&all).into_values().filter(|one| one.end.is_none()).collect();
        let chosen = living.get(usize::from(which) % living.len().max(1));
        let act = match (act % ACTS, chosen) {
            (0 | 1, _) => Act::Create { n: which },
            (_, None) => continue,
            (2, _) => Act::TopUp,
            (3, Some(one)) => Act::Run { is_success: which % 3 > 0, is_last: is_single(&all, one.id) },
            (4, _) => Act::Cancel,
            (5, _) => Act::Exhaust,
            _ => Act::Quarantine,
        };
        let id = match (act, chosen) {
            (Act::Create { .. }, _) => {
                nth += 1;
                ScheduleId::new(number, index as u32, nth).unwrap()
            }
            (_, Some(chosen)) => chosen.id,
            (_, None) => continue,
        };
        let receipt = &mut receipts[index];
        if let Act::Run { is_success, .. } = act {
            // Nothing runs in the block that made it, and a receipt is of one run.
            if id.block() == number || receipt.schedule_ref.is_some() {
                continue;
            }
            receipt.schedule_ref = Some(ScheduleRef { schedule: id, number: 7 });
            receipt.outcome = if is_success { Outcome::Success } else { Outcome::Reverted(Bytes::new()) };
        }
        let happened = Happened { id, location, act };
        all.push(happened);
        keep(state, happened, dull(&all)[&id].end.is_some());
    }
    all.split_off(old)
}

fn is_single(all: &[Happened], id: ScheduleId) -> bool {
    all.iter().any(|one| one.id == id && matches!(one.act, Act::Create { n } if n % 2 == 1))
}

/// Everything that is known after these steps.
pub fn dull(all: &[Happened]) -> BTreeMap<ScheduleId, Schedule> {
    let mut known = BTreeMap::<ScheduleId, Schedule>::new();
    for happened @ Happened { id, location, act } in all {
        if let Act::Create { n } = act {
            known.insert(*id, created(*id, *n));
        }
        let one = known.get_mut(id).unwrap();
        if let Act::Run { is_success, .. } = act {
            one.runs += 1;
            one.runs_failed += u64::from(!is_success);
            one.fees = Wei(one.fees.0 + happened.fee().0);
        }
        if let Some(end) = happened.end() {
            let (reason, refunded) = (EndReason::Ended(end), Some(Wei(U256::from(id.0))));
            one.end = Some(Ending { reason, refunded, location: *location });
        }
        if *act == Act::Quarantine && one.quarantine.is_none() {
            let reason = EndReason::Fault("odd".into());
            one.quarantine = Some(Ending { reason, refunded: None, location: *location });
        }
    }
    known
}

fn created(id: ScheduleId, n: u8) -> Schedule {
    Schedule {
        id,
        owner: someone(n),
        target: someone(n / 2),
        lane: Lane::Cron,
        door: Some(Door::Cron),
        first_due: Some(TimestampMs(1_000 * u64::from(n))),
        runs: 0,
        runs_failed: 0,
        fees: Wei::ZERO,
        quarantine: None,
        end: None,
    }
}

fn body(n: u8) -> Body {
    Body {
        owner: someone(n),
        refund_to: someone(n),
        gas_limit: Gas(100_000),
        trigger: Trigger::Time,
        terms: Terms::Cron(CronTerms {
            interval_ms: if n % 2 == 1 { None } else { NonZeroU64::new(60_000) },
            runs_max: None,
            catch_up: CatchUp::All,
            charge: Charge::GasLimit,
        }),
        calls: vec![Call {
            from: CRON_REGISTRY,
            to: someone(n / 2),
            value: Wei::ZERO,
            input: vec![n; 4].into(),
        }],
    }
}

impl Happened {
    /// What the chain tells of it.
    pub fn events(&self) -> Vec<LifeEvent> {
        let wei = Wei(U256::from(self.id.0));
        let what = match self.act {
            Act::Create { n } => {
                let Schedule { owner, target, lane, first_due, .. } = created(self.id, n);
                What::Created { owner, target, lane, due: first_due, gas_limit: Gas(0), priority: 0 }
            }
            Act::TopUp => What::ToppedUp { amount: wei, escrow: wei },
            Act::Run { is_success, .. } => What::Executed { is_success, gas_used: Gas(7), fee: self.fee() },
            Act::Cancel | Act::Exhaust => self.ended(),
            Act::Quarantine => What::Quarantined { reason: "odd".into() },
        };
        let is_last = matches!(self.act, Act::Run { is_last: true, .. });
        let all = [what].into_iter().chain(is_last.then(|| self.ended()));
        let event = |what| LifeEvent {
            index: self.location.index,
            event: Event { id: self.id, door: Some(Door::Cron), what },
        };
        all.map(event).collect()
    }

    /// Another one for every run.
    fn fee(&self) -> Wei {
        Wei(U256::from(self.location.number * 1_000 + self.location.index as u64 + 1))
    }

    /// What is kept of it, if it is a run.
    fn past_run(&self) -> Option<PastRun> {
        let Act::Run { is_success, .. } = self.act else { return None };
        let result = if is_success { LastRun::Succeeded } else { LastRun::Reverted };
        Some(PastRun { location: self.location, fee: self.fee(), result })
    }

    fn ended(&self) -> What {
        What::Ended { end: self.end().unwrap(), owner: someone(0), refunded: Wei(U256::from(self.id.0)) }
    }

    fn end(&self) -> Option<End> {
        match self.act {
            Act::Run { is_success: true, is_last: true } => Some(End::Succeeded),
            Act::Run { is_success: false, is_last: true } => Some(End::Failed),
            Act::Cancel => Some(End::Cancelled),
            Act::Exhaust => Some(End::OutOfMoney),
            Act::Create { .. } | Act::TopUp | Act::Run { .. } | Act::Quarantine => None,
        }
    }
}

/// Whether the end of a schedule stays in the state, as that of a callback does.
pub fn is_kept(id: ScheduleId) -> bool {
    id.block().is_multiple_of(2)
}

/// What the chain would keep of a schedule after a step.
fn keep(state: &mut State, happened: Happened, has_ended: bool) {
    let Happened { id, act, .. } = happened;
    let [head, escrow] = [head_slot(id), escrow_slot(id)].map(|slot| StateKey::Slot(LEDGER, slot));
    let body_key = StateKey::Body(id);
    if has_ended && !is_kept(id) {
        [head, escrow, body_key].iter().for_each(|key| drop(state.remove(key)));
        return;
    }
    let mut record = match act {
        Act::Create { n } => Record {
            id,
            head: Head {
                status: Status::Pending,
                lane: Lane::Cron,
                last: LastRun::None,
                due: Some(TimestampMs(1_000 * u64::from(n))),
                priority: 0,
                runs: 0,
                until: 0,
            },
            escrow: Wei(U256::from(5)),
            body: body(n),
        },
        _ => Record::read(&Dull(state), id).unwrap().unwrap(),
    };
    match act {
        Act::Run { .. } => record.head.due = record.head.due.map(|due| TimestampMs(due.0 + 3_000)),
        Act::TopUp => record.escrow.0 += U256::ONE,
        Act::Quarantine => record.head.status = Status::Quarantined,
        Act::Create { .. } | Act::Cancel | Act::Exhaust => {}
    }
    if let Some(end) = happened.end() {
        (record.head.status, record.escrow) = (end.status(), Wei::ZERO);
    }
    state.insert(head, encode_slot(record.head.to_word()).unwrap());
    match encode_slot(record.escrow.0) {
        Some(word) => drop(state.insert(escrow, word)),
        None => drop(state.remove(&escrow)),
    }
    state.insert(body_key, record.body.encode());
}

struct Dull<'s>(&'s State);

impl StateRead for Dull<'_> {
    fn read(&self, key: StateKey) -> Result<Option<Bytes>, StateReadError> {
        Ok(self.0.get(&key).cloned())
    }
}

impl Chain {
    fn happened(&self) -> Vec<Happened> {
        self.fed.iter().flat_map(|fed| fed.schedules.clone()).collect()
    }

    /// What should be known of every schedule, by birth.
    pub fn known_schedules(&self) -> Vec<KnownSchedule> {
        let happened = self.happened();
        let known = dull(&happened).into_values().map(|schedule| {
            let id = schedule.id;
            let made = happened.iter().find(|one| one.id == id).unwrap();
            let Act::Create { n } = made.act else { panic!("nothing comes before a birth") };
            let ended_at_once = schedule.end.as_ref().is_some_and(|end| end.location.number == id.block());
            let body = (!ended_at_once || is_kept(id)).then(|| body(n));
            let record = Record::read(&Dull(self.states.last().unwrap()), id).unwrap();
            let ran = happened.iter().rev().filter(|one| one.id == id).find_map(Happened::past_run);
            let last_run = match &record {
                Some(record) => record.head.last,
                None => ran.map_or(LastRun::None, |run| run.result),
            };
            KnownSchedule { schedule, body, record, last_run }
        });
        known.collect()
    }

    /// Compares every schedule, every list of them and all their runs.
    pub fn check_schedules(&self, index: &Index) {
        let known = self.known_schedules();
        for one in &known {
            let id = one.schedule.id;
            assert_eq!(index.schedule(id).unwrap().as_ref(), Some(one));
            let happened = self.happened().into_iter().filter(|happened| happened.id == id);
            let mut runs: Vec<_> = happened.filter_map(|happened| happened.past_run()).collect();
            let whole = Location::first_of(0)..=Location::last_of(u64::MAX);
            assert_eq!(index.runs_of(id, &whole, Direction::Ascending, 100).unwrap(), runs);
            runs.reverse();
            runs.truncate(1);
            assert_eq!(index.runs_of(id, &whole, Direction::Descending, 1).unwrap(), runs);
        }
        assert_eq!(index.schedule(ScheduleId(u64::MAX)).unwrap(), None);
        for filter in filters() {
            let expected: Vec<_> = known.iter().filter(|one| is_asked_for(&filter, one)).cloned().collect();
            for limit in [1, 2, 1_000] {
                assert_eq!(paged(index, &filter, limit), expected, "{filter:?} by {limit}");
            }
        }
    }
}

pub fn paged(index: &Index, filter: &ScheduleFilter, limit: usize) -> Vec<KnownSchedule> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = index.schedules(filter, after, limit).unwrap();
        assert!(page.schedules.len() <= limit);
        found.extend(page.schedules);
        after = page.next;
        if after.is_none() {
            return found;
        }
    }
}

fn filters() -> Vec<ScheduleFilter> {
    let all = ScheduleFilter::default;
    let due = TimestampMs(2_000)..=TimestampMs(5_000);
    let mut filters = vec![
        all(),
        ScheduleFilter { lane: Some(Lane::Cron), ..all() },
        ScheduleFilter { lane: Some(Lane::Spare), ..all() },
        ScheduleFilter { due: Some(due.clone()), ..all() },
        ScheduleFilter { due: Some(due.clone()), target: Some(someone(1)), ..all() },
        ScheduleFilter { due: Some(due), status: Some(ScheduleStatus::Quarantined), ..all() },
    ];
    for n in 0..PEOPLE {
        filters.push(ScheduleFilter { owner: Some(someone(n)), ..all() });
        filters.push(ScheduleFilter { target: Some(someone(n)), ..all() });
        let status = Some(ScheduleStatus::Pending);
        filters.push(ScheduleFilter { owner: Some(someone(n)), target: Some(someone(1)), status, ..all() });
    }
    filters.extend(ScheduleStatus::ALL.map(|status| ScheduleFilter { status: Some(status), ..all() }));
    filters
}

fn is_asked_for(filter: &ScheduleFilter, one: &KnownSchedule) -> bool {
    let schedule = &one.schedule;
    let due = match &one.record {
        Some(record) if record.head.status == Status::Pending => record.head.due,
        _ => None,
    };
    let mut is_wanted = filter.owner.is_none() || filter.owner == Some(schedule.owner);
    is_wanted &= filter.target.is_none() || filter.target == Some(schedule.target);
    is_wanted &= filter.status.is_none() || filter.status == Some(schedule.status());
    is_wanted &= filter.lane.is_none() || filter.lane == Some(schedule.lane);
    if let Some(times) = &filter.due {
        is_wanted &= due.is_some_and(|due| due >= *times.start() && due <= *times.end());
    }
    is_wanted
}
