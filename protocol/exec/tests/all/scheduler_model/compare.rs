//! Compares a block of the chain with what the model makes of it.

use super::{
    model::{Event, Job, Model, Now, Ran},
    play::{Deed, TIP, open_block, perform, sender},
};
use crate::support::{cron::*, *};
use alloy_primitives::{Address, Log, U256};
use alloy_sol_types::{SolEventInterface, SolInterface};
use almanac_primitives::{Outcome, Receipt, addresses::CRON_REGISTRY};

/// Lets the model do what was done in a block, and compares what was told.
pub fn compare_block(chain: &TestChain, model: &mut Model, now: Now, deeds: &[Deed], receipts: &[Receipt]) {
    let (prologue, rest) = receipts.split_first().unwrap();
    let run_count = rest.len() - deeds.len();
    let (run_receipts, deed_receipts) = rest.split_at(run_count);

    let (events, ran) = open_block(model, now, |_, nth| {
        run_receipts.get(nth).map_or_else(|| panic!("run {nth} did not take place"), |run| run.gas_used.0)
    });
    assert_eq!(told(&prologue.logs), events, "the start of block {}", now.number);
    let really_ran: Vec<_> = run_receipts.iter().map(as_ran).collect();
    assert_eq!(really_ran, ran, "the runs of block {}", now.number);

    for (n, (deed, receipt)) in deeds.iter().zip(deed_receipts).enumerate() {
        model.enter(1 + run_count + n);
        model.saw("operations");
        let expected = perform(model, deed, now);
        let really = match &receipt.outcome {
            Outcome::Success => Ok(told(&receipt.logs)),
            Outcome::Reverted(reason) => Err(error_name(reason)),
            Outcome::Halted(halt) => panic!("{deed:?} was stopped: {halt:?}"),
        };
        if let Deed::Script(_, acts) = deed {
            assert_eq!(really.is_ok(), expected.is_ok(), "{deed:?}");
            (1..acts.len()).for_each(|_| model.saw("operations"));
        }
        match expected {
            Ok(events) => assert_eq!(really, Ok(events), "{deed:?}"),
            Err("" | "Fail" | "Undone") => assert!(really.is_err(), "{deed:?}"),
            Err(name) => assert_eq!(really, Err(name.into()), "{deed:?}"),
        }
        pay_fee(model, sender(deed), receipt, now);
    }
    assert_eq!(chain.head.number, now.number);
}

fn pay_fee(model: &mut Model, sender: Address, receipt: &Receipt, now: Now) {
    let gas = U256::from(receipt.gas_used.0);
    let (burned, tip) = (gas * U256::from(now.base_fee), gas * U256::from(TIP));
    *model.balances.get_mut(&sender).unwrap() -= burned + tip;
    *model.balances.get_mut(&FEE_RECIPIENT).unwrap() += tip;
    model.burned += burned;
}

fn as_ran(receipt: &Receipt) -> Ran {
    let reference = receipt.schedule_ref.expect("a run");
    Ran {
        id: reference.schedule.0,
        number: reference.number,
        is_success: receipt.outcome.is_success(),
        events: told(&receipt.logs),
    }
}

/// What the registry told in logs.
fn told(logs: &[Log]) -> Vec<Event> {
    use ICronRegistry::ICronRegistryEvents as Told;
    let id = |id: U256| id.to::<u64>();
    let ours = logs.iter().filter(|log| log.address == CRON_REGISTRY);
    let event = |log: &Log| match Told::decode_raw_log(log.topics(), &log.data.data).unwrap() {
        Told::JobScheduled(e) => {
            Event::Scheduled { id: id(e.id), owner: e.owner, target: e.target, at: e.nextRunAt }
        }
        Told::JobExecuted(e) => {
            Event::Executed { id: id(e.id), is_success: e.success, gas_used: e.gasUsed.to() }
        }
        Told::JobCancelled(e) => Event::Cancelled { id: id(e.id), owner: e.owner, refunded: e.refunded },
        Told::JobToppedUp(e) => Event::ToppedUp { id: id(e.id), amount: e.amount, total: e.totalEscrow },
        Told::JobExhausted(e) => Event::Exhausted { id: id(e.id), reason: e.reason },
    };
    ours.map(event).collect()
}

fn error_name(reason: &[u8]) -> String {
    CronError::abi_decode(reason).map_or_else(
        |_| String::new(),
        |error| format!("{error:?}").split('(').next().unwrap_or_default().to_owned(),
    )
}

/// Compares everything that outlasts the block.
pub fn compare_state(chain: &TestChain, model: &Model, now: Now) {
    for (account, balance) in &model.balances {
        assert_eq!(chain.balance(*account), *balance, "balance of {account} in block {}", now.number);
    }
    let mut jobs: Vec<_> = model.jobs.iter().collect();
    jobs.sort_unstable_by_key(|job| job.id);
    let records = ledger::records(&chain.state);
    let really: Vec<_> = records
        .iter()
        .map(|record| (record.id.0, record.head.due.unwrap().0, u64::from(record.head.runs), record.escrow.0))
        .collect();
    let expected: Vec<_> = jobs.iter().map(|job| (job.id, job.at * 1_000, job.runs, job.escrow)).collect();
    assert_eq!(really, expected, "the jobs after block {}", now.number);
    // A call costs as much as a block, so one job is asked for, another one each time.
    if let Some(id) = model.ever.get(now.number as usize % model.ever.len().max(1)) {
        compare_job(chain, model, U256::from(*id));
    }
}

/// What `getJob` says of a job, dead or alive.
pub fn compare_job(chain: &TestChain, model: &Model, id: U256) {
    let told = chain.job(id);
    let Some(job) = model.job(id) else {
        assert_eq!((told.id, told.owner, told.gasEscrow), (U256::ZERO, Address::ZERO, U256::ZERO));
        return;
    };
    let Job { owner, at, interval, runs_max, gas, runs, escrow, .. } = *job;
    let number = U256::from::<u64>;
    assert_eq!(
        (told.id, told.owner, told.target, told.nextRunAt, told.intervalSec, told.maxRuns),
        (id, owner, job.order.target, number(at), number(interval), number(runs_max))
    );
    assert_eq!(told.runsLeft, number(runs_max.saturating_sub(runs)));
    assert_eq!((told.gasLimit, told.gasEscrow), (number(gas), escrow));
    assert_eq!([told.selector.as_slice(), &told.args].concat(), job.order.data.to_vec());
}
