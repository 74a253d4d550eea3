//! The reference: a list of jobs, a loop over it, and plain arithmetic. Written from the spec, to be obvious.

use super::act::{Act, Call, NOBODY, Order, SCRIPTED};
use crate::support::contracts::{COUNTER, FAILER, REVERTER};
use alloy_primitives::{Address, U256};
use almanac_primitives::addresses::{CRON_REGISTRY, LEDGER};
use std::{collections::BTreeMap, sync::Arc};

/// A job.
#[derive(Clone, Debug)]
pub struct Job {
    pub id: u64,
    pub owner: Address,
    pub refund_to: Address,
    pub order: Arc<Order>,
    pub at: u64,
    pub interval: u64,
    pub runs_max: u64,
    pub gas: u64,
    pub runs: u64,
    pub escrow: U256,
    pub catch_up: u8,
    pub is_unused_refunded: bool,
    pub is_in_last_run: bool,
}

/// What governance decides.
#[derive(Clone, Debug)]
pub struct Rules {
    pub is_enabled: bool,
    pub is_paused: bool,
    pub interval_min: u64,
    pub run_gas_max: u64,
    pub block_gas: u64,
    pub exhaustions_max: u64,
}

/// The block that is being made.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    pub number: u64,
    pub milliseconds: u64,
    pub base_fee: u64,
}

/// What the registry tells the world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Scheduled { id: u64, owner: Address, target: Address, at: U256 },
    Executed { id: u64, is_success: bool, gas_used: u64 },
    Cancelled { id: u64, owner: Address, refunded: U256 },
    ToppedUp { id: u64, amount: U256, total: U256 },
    Exhausted { id: u64, reason: String },
}

/// A run as it must have been.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    pub id: u64,
    pub number: u64,
    pub is_success: bool,
    pub events: Vec<Event>,
}

/// Everything that the scheduler knows.
#[derive(Clone, Debug)]
pub struct Model {
    pub jobs: Vec<Job>,
    pub balances: BTreeMap<Address, U256>,
    pub burned: U256,
    pub rules: Rules,
    pub rules_next: Rules,
    /// Ids of all jobs that ever were.
    pub ever: Vec<u64>,
    /// How often something happened that a history should have.
    pub seen: BTreeMap<&'static str, u64>,
    /// Receipt index of what runs, and how many jobs it has made.
    pub place: (u64, u64),
    /// Due jobs before this time and id did not run when their turn came, and wait for their end.
    pub mark: Option<(u64, u64)>,
    /// But for these, which have a run to come.
    pub late: Vec<(u64, u64)>,
    /// The pass of the block that is being made.
    pub pass: Pass,
}

/// How far the pass through what is due has come.
#[derive(Clone, Debug, Default)]
pub struct Pass {
    /// Times and ids of what was due when the block began.
    due: Vec<(u64, u64)>,
    looks_left: u64,
    gas_left: u64,
    endings_left: u64,
    has_aside: bool,
    next: Option<(u64, u64)>,
    /// Times and ids of jobs with a run to come in a later block.
    kept: Vec<(u64, u64)>,
    /// Those of them that the blocks before have left, and this one has not met.
    late: Vec<(u64, u64)>,
}

/// Most that one block looks at, where the lane's gas does not allow more: one for so much gas.
const LOOKED_AT_MAX: u64 = 6_000;
const GAS_PER_LOOK: u64 = 2_500;

impl Job {
    /// Whether it has missed a time and wants none of those.
    fn is_skipping(&self, now: Now) -> bool {
        self.catch_up == 2 && self.interval > 0 && self.at + self.interval <= now.seconds()
    }
}

impl Now {
    pub fn seconds(&self) -> u64 {
        self.milliseconds / 1_000
    }
}

impl Model {
    pub fn new(balances: BTreeMap<Address, U256>) -> Self {
        let rules = Rules {
            is_enabled: true,
            is_paused: false,
            interval_min: 60,
            run_gas_max: 5_000_000,
            block_gas: 15_000_000,
            exhaustions_max: 250,
        };
        Self {
            jobs: Vec::new(),
            balances,
            burned: U256::ZERO,
            rules_next: rules.clone(),
            rules,
            ever: Vec::new(),
            seen: BTreeMap::new(),
            place: (0, 0),
            mark: None,
            late: Vec::new(),
            pass: Pass::default(),
        }
    }

    pub fn saw(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    /// Goes back to what was. That it happened stays counted.
    pub fn undo(&mut self, before: Self) {
        *self = Self { seen: std::mem::take(&mut self.seen), ..before };
    }

    pub fn job(&self, id: U256) -> Option<&Job> {
        self.jobs.iter().find(|job| U256::from(job.id) == id)
    }

    /// Begins what has this receipt index.
    pub fn enter(&mut self, index: usize) {
        self.place = (index as u64, 0);
    }

    /// The id of the next job that is made (block, index, how many before it).
    pub fn next_id(&self, now: Now) -> u64 {
        now.number << 28 | self.place.0 << 10 | self.place.1
    }

    /// The start of a block: what ends, what waits for later, and which jobs shall run, with their gas.
    pub fn open(&mut self, now: Now) -> (Vec<Event>, Vec<(u64, u64)>) {
        self.rules = self.rules_next.clone();
        self.pass = Pass {
            due: self.due(now),
            looks_left: LOOKED_AT_MAX.max(self.rules.block_gas / GAS_PER_LOOK),
            gas_left: self.rules.block_gas,
            endings_left: self.rules.exhaustions_max,
            next: self.mark,
            late: self.late.clone(),
            ..Pass::default()
        };
        let mut events = Vec::new();
        for (at, id) in self.pass.due.clone() {
            if self.mark.is_some_and(|mark| (at, id) < mark) && !self.late.contains(&(at, id)) {
                self.end_or_set_aside(id, now, &mut events);
            }
        }
        let chosen = self.choose(now, &mut events);
        self.pass.endings_left = 0;
        (events, chosen)
    }

    /// What is due, in order; nothing while governance holds the lane.
    fn due(&self, now: Now) -> Vec<(u64, u64)> {
        if !self.rules.is_enabled || self.rules.is_paused {
            return Vec::new();
        }
        let due = self.jobs.iter().filter(|job| job.at <= now.seconds());
        let mut due: Vec<_> = due.map(|job| (job.at, job.id)).collect();
        due.sort_unstable();
        due
    }

    /// The jobs that run next, in order, until one does not fit.
    pub fn choose(&mut self, now: Now, events: &mut Vec<Event>) -> Vec<(u64, u64)> {
        let mut chosen = Vec::new();
        for (at, id) in self.pass.due.clone() {
            let is_late = self.pass.late.contains(&(at, id));
            if self.pass.next.is_some_and(|next| (at, id) < next) && !is_late {
                continue;
            }
            if self.pass.looks_left == 0 {
                break;
            }
            let Some(job) = self.job(U256::from(id)) else { continue };
            let gas = job.gas;
            if job.is_skipping(now) || job.escrow < cost(job.gas, now) {
                self.end_or_set_aside(id, now, events);
            } else if gas > self.pass.gas_left {
                self.saw("rolled over");
                break;
            } else {
                self.pass.gas_left -= gas;
                chosen.push((id, gas));
            }
            self.pass.looks_left -= 1;
            if is_late {
                self.pass.late.retain(|late| *late != (at, id));
                self.saw("late");
            } else {
                self.pass.next = Some((at, id + 1));
            }
        }
        chosen
    }

    /// Gives the room of a job that was cancelled before its turn to those behind it.
    pub fn give_back(&mut self, gas: u64) {
        self.pass.gas_left += gas;
        self.saw("room given back");
    }

    /// Ends a job whose turn has come and that does not run, or lets it wait for another time if it skips.
    fn end_or_set_aside(&mut self, id: u64, now: Now, events: &mut Vec<Event>) {
        if self.pass.endings_left == 0 {
            self.pass.has_aside = true;
            self.saw("set aside");
            return;
        }
        self.pass.endings_left -= 1;
        let place = self.jobs.iter().position(|job| job.id == id).unwrap();
        if self.jobs[place].is_skipping(now) {
            let job = &mut self.jobs[place];
            while job.at <= now.seconds() {
                job.at += job.interval;
            }
            self.saw("skipped");
        } else {
            self.end(place);
            events.push(Event::Exhausted { id, reason: "insufficient escrow".into() });
            self.saw("exhausted");
        }
    }

    /// The end of the runs of a block.
    pub fn close(&mut self) {
        if !self.rules.is_enabled || self.rules.is_paused {
            return;
        }
        let Pass { has_aside, next, kept, late, .. } = std::mem::take(&mut self.pass);
        self.mark = next.filter(|_| has_aside);
        let before = |waiting: &(u64, u64)| self.mark.is_some_and(|mark| *waiting < mark);
        self.late = late.into_iter().chain(kept).filter(before).collect();
    }

    /// A run, if it takes place. `gas_used` is what the chain says: gas is the EVM's business.
    pub fn run(&mut self, id: u64, now: Now, gas_used: impl FnOnce(u64) -> u64) -> Option<Ran> {
        let Some(job) = self.jobs.iter_mut().find(|job| job.id == id) else {
            self.saw("cancelled before its turn");
            return None;
        };
        job.escrow -= cost(job.gas, now);
        let mut at = job.at;
        if job.catch_up == 1 {
            while job.interval > 0 && at + job.interval <= now.seconds() {
                at += job.interval;
            }
        }
        let number = job.runs;
        job.runs += 1;
        job.is_in_last_run = job.interval == 0 || job.runs == job.runs_max;
        if !job.is_in_last_run {
            job.at = at + job.interval;
        }
        let (is_late, has_jumped) = (now.seconds() >= job.at, at != now.seconds());
        let job = job.clone();
        if !job.is_in_last_run {
            self.pass.kept.push((job.at, id));
        }
        if is_late && !job.is_in_last_run {
            self.saw("behind");
        }
        if job.catch_up == 1 && has_jumped {
            self.saw("latest");
        }

        let mut events = Vec::new();
        let before = self.clone();
        let is_success = self.call(&job, now, &mut events);
        if !is_success {
            self.undo(before);
            events.clear();
        }
        self.saw(if is_success { "succeeded" } else { "failed" });
        if events.iter().any(|event| matches!(event, Event::Scheduled { .. })) {
            self.saw("made by a run");
        }

        let gas_used = gas_used(job.gas);
        assert!(gas_used <= job.gas, "run of {id} used {gas_used} of {}", job.gas);
        let whole = cost(job.gas, now);
        let half = whole / U256::from(2) + whole % U256::from(2);
        let taken = if job.is_unused_refunded { cost(gas_used, now).max(half) } else { whole };
        let unused = cost(job.gas, now) - taken;
        self.burned += taken;
        *self.balances.get_mut(&LEDGER).unwrap() -= taken;
        events.push(Event::Executed { id, is_success, gas_used });
        match self.jobs.iter().position(|job| job.id == id) {
            None => {
                self.credit(job.refund_to, unused);
                self.saw("cancelled in its own run");
            }
            Some(place) => {
                self.jobs[place].escrow += unused;
                if job.is_in_last_run {
                    self.end(place);
                    if job.interval > 0 {
                        events.push(Event::Exhausted { id, reason: "max runs reached".into() });
                        self.saw("ran out of runs");
                    }
                }
            }
        }
        Some(Ran { id, number, is_success, events })
    }

    /// What the call of a job does.
    fn call(&mut self, job: &Job, now: Now, events: &mut Vec<Event>) -> bool {
        if job.gas < least_gas(&job.order.data) {
            self.saw("less than intrinsic gas");
            return false;
        }
        match &job.order.call {
            Call::Count | Call::Nobody => true,
            Call::Revert | Call::Burn => false,
            Call::Script(acts) => self.script(acts, now, events),
        }
    }

    /// Does what a script says, from the scripted contract. Where it fails, the caller takes everything back.
    pub fn script(&mut self, acts: &[Act], now: Now, events: &mut Vec<Event>) -> bool {
        for act in acts {
            match self.act(SCRIPTED, &act.doing, now) {
                Ok(told) => events.extend(told),
                Err(_) if act.is_tolerated => {}
                Err(_) => return false,
            }
        }
        true
    }

    /// Takes a job away and pays its escrow back.
    pub fn end(&mut self, place: usize) {
        let job = self.jobs.remove(place);
        self.credit(job.refund_to, job.escrow);
    }

    pub fn pay(&mut self, from: Address, amount: U256) {
        *self.balances.get_mut(&from).unwrap() -= amount;
        *self.balances.get_mut(&LEDGER).unwrap() += amount;
    }

    fn credit(&mut self, to: Address, amount: U256) {
        *self.balances.get_mut(&LEDGER).unwrap() -= amount;
        *self.balances.get_mut(&to).unwrap() += amount;
    }
}

fn cost(gas: u64, now: Now) -> U256 {
    U256::from(gas) * U256::from(now.base_fee)
}

/// EIP-2028 and EIP-7623: what a call must bring before its first step.
pub fn least_gas(data: &[u8]) -> u64 {
    let zeros = data.iter().filter(|byte| **byte == 0).count() as u64;
    let tokens = zeros + 4 * (data.len() as u64 - zeros);
    21_000 + 10 * tokens
}

/// Accounts whose money the model knows, beside those of people.
pub const TARGETS: [Address; 7] = [LEDGER, CRON_REGISTRY, SCRIPTED, NOBODY, COUNTER, REVERTER, FAILER];
