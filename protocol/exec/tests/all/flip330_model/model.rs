//! FLIP-330 as a list and loops, written from the spec. Slow and obvious.

use crate::support::callbacks::{Priority, Status};
use alloy_primitives::{Address, U256};
use almanac_primitives::params::*;

/// A callback that was taken.
#[derive(Clone, Debug)]
pub struct Callback {
    pub id: u64,
    pub owner: Address,
    pub handler: Address,
    pub data: Vec<u8>,
    pub priority: Priority,
    pub second: u64,
    pub effort: u64,
    pub base: U256,
    pub fee: U256,
    pub refund_bps: u64,
    pub status: Status,
    /// The block in which an ended one is taken away.
    pub until: u64,
}

/// An order with everything that the rules look at.
#[derive(Clone, Debug)]
pub struct Asked {
    pub owner: Address,
    pub handler: Address,
    pub is_allowed: bool,
    pub data: Vec<u8>,
    pub intrinsic_gas: u64,
    pub timestamp: u64,
    pub priority: Priority,
    pub effort: u64,
}

/// What a block brings.
#[derive(Clone, Debug)]
pub struct Now {
    pub number: u64,
    pub ms: u64,
    pub base_fee: u64,
    pub failed_views: u64,
    /// Until when the chain stood still or the door was held.
    pub held_until_ms: u64,
    pub parameters: Parameters,
}

impl Now {
    fn get(&self, parameter: Parameter) -> u64 {
        self.parameters.get(parameter)
    }

    fn second(&self) -> u64 {
        self.ms / 1_000
    }

    pub fn is_held(&self) -> bool {
        self.get(CALLBACK_ENABLED) == 0 || self.get(CALLBACK_PAUSED) == 1
    }
}

/// Who got the fee of a callback that ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Split {
    pub refund: U256,
    pub recipient: U256,
    pub burned: U256,
}

#[derive(Clone, Debug, Default)]
pub struct Model(pub Vec<Callback>);

impl Model {
    /// What is booked in a second by one priority.
    pub fn booked(&self, second: u64, priority: Priority) -> u64 {
        let those = self.0.iter().filter(|callback| {
            callback.status == Status::Scheduled && callback.second == second && callback.priority == priority
        });
        those.map(|callback| callback.effort).sum()
    }

    /// FLIP330-06: its own part and what the other left of the shared one.
    fn fits(&self, now: &Now, second: u64, priority: Priority, effort: u64) -> bool {
        let [high, medium, shared] =
            [SECOND_HIGH_EFFORT, SECOND_MEDIUM_EFFORT, SECOND_SHARED_EFFORT].map(|part| now.get(part));
        let (booked_high, booked_medium) =
            (self.booked(second, Priority::High), self.booked(second, Priority::Medium));
        match priority {
            Priority::High => booked_high + effort + booked_medium.saturating_sub(medium) <= high + shared,
            Priority::Medium => booked_medium + effort + booked_high.saturating_sub(high) <= medium + shared,
            _ => true,
        }
    }

    /// FLIP330-01 to -08: the callback that an order becomes, or the name of the error.
    pub fn ask(&self, now: &Now, asked: &Asked) -> Result<Callback, &'static str> {
        if !asked.is_allowed {
            return Err("HandlerNotAllowed");
        }
        if now.get(CALLBACK_ENABLED) == 0 {
            return Err("SchedulerDisabled");
        }
        if now.get(CALLBACK_PAUSED) == 1 {
            return Err("SchedulerPaused");
        }
        if asked.data.len() as u64 > now.get(CALLBACK_DATA_BYTES_MAX) {
            return Err("DataTooLong");
        }
        let wanted = if asked.timestamp == 0 { now.second() + 1 } else { asked.timestamp };
        if wanted <= now.second() {
            return Err("TimestampNotInFuture");
        }
        if wanted > now.second() + now.get(SCHEDULE_AHEAD_SECONDS_MAX) {
            return Err("TimestampBeyondHorizon");
        }
        let (effort, priority) = (asked.effort, asked.priority);
        if effort < now.get(CALLBACK_EFFORT_MIN) || effort * 2_100 < asked.intrinsic_gas {
            return Err("EffortTooLow");
        }
        if effort > now.get(CALLBACK_EFFORT_MAX)
            || (priority == Priority::Low && effort > now.get(CALLBACK_LOW_EFFORT_MAX))
        {
            return Err("EffortTooHigh");
        }
        let seconds = match priority {
            Priority::Medium => now.get(CALLBACK_SEARCH_SECONDS_MAX),
            _ => 1,
        };
        // Behind the last second that is booked they are all the same.
        let last = self.0.iter().map(|callback| callback.second).max().unwrap_or(0).max(wanted);
        let mut reach = wanted..(wanted + seconds).min(last + 2);
        let second = reach.find(|second| self.fits(now, *second, priority, effort)).ok_or("NoCapacity")?;
        let price = now.base_fee.max(now.get(CALLBACK_FEE_FLOOR_WEI));
        let percent = match priority {
            Priority::High => now.get(CALLBACK_HIGH_PERCENT),
            Priority::Medium => now.get(CALLBACK_MEDIUM_PERCENT),
            _ => now.get(CALLBACK_LOW_PERCENT),
        };
        let base = U256::from(effort) * U256::from(2_100) * U256::from(price);
        let hundredfold = base * U256::from(percent);
        let fee = (hundredfold + U256::from(99)) / U256::from(100);
        let Asked { owner, handler, data, .. } = asked.clone();
        let (refund_bps, status) = (now.get(CALLBACK_REFUND_BPS), Status::Scheduled);
        Ok(Callback {
            id: 0,
            owner,
            handler,
            data,
            priority,
            second,
            effort,
            base,
            fee,
            refund_bps,
            status,
            until: 0,
        })
    }

    /// FLIP330-11 to -14: what a block takes up, booked ones and Low ones, in order.
    pub fn take_up(&mut self, now: &Now) -> [Vec<u64>; 2] {
        if now.is_held() {
            return [vec![], vec![]];
        }
        let mut cap = now.get(RESERVED_BLOCK_GAS_MAX);
        for _ in 1..now.failed_views {
            cap = (cap / 2).max(9_999 * 2_100);
        }
        let (mut reserved, mut used) = (Vec::new(), 0);
        for callback in self.due(now, |priority| priority != Priority::Low) {
            used += callback.effort * 2_100;
            if used > cap {
                used -= callback.effort * 2_100;
                break;
            }
            reserved.push(callback.id);
        }
        let mut left = now.get(SPARE_BLOCK_GAS_MAX).saturating_sub(used);
        let mut spare = Vec::new();
        for callback in self.due(now, |priority| priority == Priority::Low).into_iter().take(100) {
            if callback.effort * 2_100 <= left {
                left -= callback.effort * 2_100;
                spare.push(callback.id);
            }
        }
        for id in reserved.iter().chain(&spare) {
            self.at(*id).unwrap().status = Status::Processed;
        }
        [reserved, spare]
    }

    /// FLIP330-12.
    fn due(&self, now: &Now, is_it: impl Fn(Priority) -> bool) -> Vec<Callback> {
        let due = |callback: &&Callback| {
            callback.status == Status::Scheduled
                && callback.second * 1_000 <= now.ms
                && is_it(callback.priority)
        };
        let mut due: Vec<_> = self.0.iter().filter(due).cloned().collect();
        due.sort_by_key(|callback| (callback.second, callback.priority as u8, callback.id));
        due
    }

    /// FLIP330-16 to -19: the end of a run.
    pub fn finish(&mut self, now: &Now, id: u64, is_success: bool) -> Split {
        let callback = self.at(id).expect("it was taken up");
        callback.status = if is_success { Status::Executed } else { Status::Failed };
        callback.until = now.number + now.get(ENDED_KEPT_BLOCKS);
        if callback.is_late(now) {
            return Split { refund: callback.fee, ..Split::default() };
        }
        Split { recipient: callback.base, burned: callback.fee - callback.base, refund: U256::ZERO }
    }

    /// FLIP330-18, -20.
    pub fn cancel(&mut self, now: &Now, id: u64, caller: Address) -> Result<Split, &'static str> {
        let Some(callback) = self.at(id) else { return Err("UnknownCallback") };
        if callback.owner != caller {
            return Err("NotOwner");
        }
        if callback.status != Status::Scheduled {
            return Err("NotScheduled");
        }
        callback.status = Status::Canceled;
        callback.until = now.number + now.get(ENDED_KEPT_BLOCKS);
        let refund = match callback.is_late(now) {
            true => callback.fee,
            false => callback.fee * U256::from(callback.refund_bps) / U256::from(10_000),
        };
        Ok(Split { refund, burned: callback.fee - refund, recipient: U256::ZERO })
    }

    /// FLIP330-17: ends are kept for a number of blocks. The start of a block takes them away.
    pub fn forget(&mut self, now: &Now) {
        let is_over = |callback: &Callback| callback.until != 0 && callback.until <= now.number;
        self.0.retain(|callback| !is_over(callback));
    }

    pub fn at(&mut self, id: u64) -> Option<&mut Callback> {
        self.0.iter_mut().find(|callback| callback.id == id)
    }

    /// Fees that are held.
    pub fn escrow(&self) -> U256 {
        let held = self.0.iter().filter(|callback| callback.status == Status::Scheduled);
        held.map(|callback| callback.fee).sum()
    }
}

impl Callback {
    fn is_late(&self, now: &Now) -> bool {
        let due_ms = self.second * 1_000;
        self.priority != Priority::Low && due_ms <= now.held_until_ms && now.ms > due_ms + 60_000
    }
}
