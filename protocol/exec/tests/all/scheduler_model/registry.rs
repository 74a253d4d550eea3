//! The reference's registry: what it refuses, and what its methods do.

use super::{
    act::{Doing, Order},
    model::{Event, Job, Model, Now},
};
use alloy_primitives::{Address, U256};
use std::sync::Arc;

pub const HORIZON_SECONDS: u64 = 10 * 31_557_600;

impl Model {
    /// One thing that somebody does, or the name of the error with which it changes nothing.
    pub fn act(&mut self, caller: Address, doing: &Doing, now: Now) -> Result<Option<Event>, &'static str> {
        match doing {
            Doing::Schedule(order) => self.schedule(caller, order, now).map(Some),
            Doing::Cancel(id) => self.cancel(caller, *id).map(Some),
            Doing::TopUp(id, amount) => self.top_up(caller, *id, *amount).map(Some),
            Doing::Undone(_) => {
                self.saw("undone");
                Err("Undone")
            }
            Doing::Fail => Err("Fail"),
        }
    }

    fn schedule(&mut self, owner: Address, order: &Order, now: Now) -> Result<Event, &'static str> {
        let refused = self.refusal(order, now);
        if let Some(name) = refused {
            self.saw(name);
            return Err(name);
        }
        let (refund_to, options) = order.terms.unwrap_or((owner, U256::ZERO));
        let id = self.next_id(now);
        self.place.1 += 1;
        self.pay(owner, order.value);
        self.ever.push(id);
        self.jobs.push(Job {
            id,
            owner,
            refund_to,
            order: Arc::new(order.clone()),
            at: order.at.to(),
            interval: order.interval.to(),
            runs_max: order.runs_max.to(),
            gas: order.gas.to(),
            runs: 0,
            escrow: order.value,
            catch_up: options.byte(1),
            is_unused_refunded: options.bit(0),
            is_in_last_run: false,
        });
        Ok(Event::Scheduled { id, owner, target: order.target, at: order.at })
    }

    fn refusal(&self, order: &Order, now: Now) -> Option<&'static str> {
        let rules = &self.rules;
        let (refund_to, options) = order.terms.unwrap_or((Address::repeat_byte(1), U256::ZERO));
        let number = U256::from::<u64>;
        let is_interval = order.interval.is_zero() || order.interval >= number(rules.interval_min);
        let gas = number(21_000)..=number(rules.run_gas_max);
        let checks = [
            (!rules.is_enabled, "CronDisabled"),
            (rules.is_paused, "CronPaused"),
            (order.target.is_zero(), "TargetIsZero"),
            (refund_to.is_zero(), "RefundToIsZero"),
            (order.data.len() < 4, "InputTooShort"),
            (order.at <= number(now.seconds()), "TimeNotInFuture"),
            (order.at > number(now.seconds() + HORIZON_SECONDS), "TimeBeyondHorizon"),
            (!is_interval, "IntervalTooShort"),
            (order.interval > number(HORIZON_SECONDS), "IntervalTooLong"),
            (order.runs_max > number(u64::MAX), "RunsTooMany"),
            (!gas.contains(&order.gas), "GasLimitOutOfBounds"),
            (options & !number(0x301) != U256::ZERO, "UnknownOptions"),
            (options >> 8 == number(3), "UnknownCatchUp"),
            (order.value < order.gas.saturating_mul(number(now.base_fee)), "EscrowTooLow"),
        ];
        checks.iter().find(|(is_broken, _)| *is_broken).map(|(_, name)| *name)
    }

    fn cancel(&mut self, caller: Address, id: U256) -> Result<Event, &'static str> {
        let place = self.jobs.iter().position(|job| U256::from(job.id) == id).ok_or("UnknownJob")?;
        let Job { id, owner, escrow, is_in_last_run, .. } = self.jobs[place];
        if caller != owner {
            self.saw("cancelled by another");
            return Err("NotJobOwner");
        }
        if is_in_last_run {
            self.saw("cancelled in its last run");
            return Err("JobInLastRun");
        }
        self.end(place);
        self.saw("cancelled");
        Ok(Event::Cancelled { id, owner, refunded: escrow })
    }

    fn top_up(&mut self, caller: Address, id: U256, amount: U256) -> Result<Event, &'static str> {
        let place = self.jobs.iter().position(|job| U256::from(job.id) == id).ok_or("UnknownJob")?;
        self.pay(caller, amount);
        self.saw("topped up");
        let job = &mut self.jobs[place];
        job.escrow += amount;
        Ok(Event::ToppedUp { id: job.id, amount, total: job.escrow })
    }
}
