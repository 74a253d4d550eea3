//! Work that the chain runs by itself: each client has a series of calls, and none may be lost or done twice.

use crate::sim::{client::final_value, market, opened::Store, signed};
use alloy_primitives::{Address, Bytes, TxKind, U256};
use alloy_sol_types::{SolCall as _, SolEvent as _};
use almanac_bft::Replica;
use almanac_primitives::{
    Receipt, ScheduleId, ScheduleRef, StateKey, TimestampMs, UserTransaction,
    addresses::CRON_REGISTRY,
    state::decode_slot,
    testing::{Person, contracts::COUNTER, eip1559, sign},
};
use almanac_state::ArchivedBlock;
use std::{collections::BTreeMap, time::Duration};

alloy_sol_types::sol!("../../contracts/ICronRegistry.sol");

/// Runs of each series, one a second.
pub const RUNS: u64 = 3;

/// Gas that a run asks for.
pub const RUN_GAS: u64 = 100_000;

/// Blocks after the first one at or after a run's time by which it must have run: those of its series that were due
/// at the same time go before it, one a block.
pub const LATE_BLOCKS_MAX: usize = 3;

/// A series of runs.
pub struct Job {
    pub owner: Address,
    /// The second at which its first run is due.
    first: u64,
}

impl Job {
    /// The second at which a run is due.
    fn due(&self, number: u64) -> u64 {
        self.first + number
    }
}

/// Orders a series that begins at a second.
pub fn schedule(owner: Person, nonce: u64, first: u64, run_gas: u64) -> UserTransaction {
    let call = ICronRegistry::scheduleCalldataCall {
        target: COUNTER,
        data: Bytes::from_static(&[1, 2, 3, 4]),
        nextRunAt: U256::from(first),
        intervalSec: U256::from(1),
        maxRuns: U256::from(RUNS),
        gasLimit: U256::from(run_gas),
    };
    let mut transaction = eip1559(nonce, TxKind::Call(CRON_REGISTRY), 0, call.abi_encode(), 1_000_000);
    // A hundred times what the runs cost; the rest comes back.
    transaction.value = U256::from(10).pow(U256::from(17));
    sign(transaction, owner.secret)
}

/// How many runs the contract that they call has counted. `None` where the node has stopped.
pub async fn counted(replica: &Replica<Store>) -> Option<U256> {
    calls_of(replica, CRON_REGISTRY).await
}

/// How many calls of an account that contract has counted.
pub async fn calls_of(replica: &Replica<Store>, caller: Address) -> Option<U256> {
    Some(decode_calls(final_value(replica, calls_slot(caller)).await?))
}

/// Where it has counted them.
pub fn calls_slot(caller: Address) -> StateKey {
    StateKey::Slot(COUNTER, caller.into_word().into())
}

pub fn decode_calls(stored: Option<Bytes>) -> U256 {
    stored.map_or(U256::ZERO, |bytes| decode_slot(&bytes).unwrap())
}

/// How many runs were due at `begin` or later, and have happened.
pub fn due_since(chain: &[ArchivedBlock], begin: TimestampMs) -> Result<usize, String> {
    let jobs = scheduled(chain);
    let is_due = |run: &&ScheduleRef| jobs[&run.schedule].due(run.number) * 1_000 >= begin.0;
    Ok(runs(chain)?.keys().filter(is_due).count())
}

/// `every_due_run_settles_once`: each run of each series that was due before the end has happened, once, not before
/// its time, and without delay. Answers with the number of runs.
pub fn check(chain: &[ArchivedBlock]) -> Result<usize, String> {
    check_within(chain, LATE_BLOCKS_MAX)
}

/// The same where a run may be so many blocks late.
pub fn check_within(chain: &[ArchivedBlock], late_blocks_max: usize) -> Result<usize, String> {
    let jobs = scheduled(chain);
    let runs = runs(chain)?;
    for (run, position) in &runs {
        let job = jobs.get(&run.schedule).ok_or_else(|| format!("{run:?} belongs to no job"))?;
        let (due, ran) = (job.due(run.number), chain[*position].block.header.timestamp.seconds());
        if ran < due {
            return Err(format!("{run:?} was due at {due} s and ran at {ran} s"));
        }
    }
    for (&schedule, job) in &jobs {
        for number in 0..RUNS {
            let is_due =
                |archived: &ArchivedBlock| archived.block.header.timestamp.seconds() >= job.due(number);
            let Some(eligible) = chain.iter().position(is_due) else { continue };
            let latest = eligible + late_blocks_max;
            let ran = runs.get(&ScheduleRef { schedule, number });
            if latest < chain.len() && ran.is_none_or(|ran| *ran > latest) {
                return Err(format!("run {number} of {schedule:?}, due in block {eligible}, ran in {ran:?}"));
            }
        }
    }
    Ok(runs.len())
}

/// `none_late_after_healing`: no run happens later than `delay` after its time, or after the last fault.
pub fn check_delay(chain: &[ArchivedBlock], healed: TimestampMs, delay: Duration) -> Result<(), String> {
    let jobs = scheduled(chain);
    for (run, position) in runs(chain)? {
        let ran = chain[position].block.header.timestamp.seconds();
        let due = jobs[&run.schedule].due(run.number);
        if ran > due.max(healed.seconds() + 1) + delay.as_secs() {
            return Err(format!("{run:?} was due at {due} s and ran at {ran} s, healed at {healed}"));
        }
    }
    Ok(())
}

/// The jobs that some blocks have orders of.
pub fn scheduled(chain: &[ArchivedBlock]) -> BTreeMap<ScheduleId, Job> {
    let logs = chain.iter().flat_map(|archived| &archived.receipts).flat_map(|receipt| &receipt.logs);
    logs.filter(|log| log.address == CRON_REGISTRY)
        .filter_map(|log| ICronRegistry::JobScheduled::decode_log(log).ok())
        .map(|event| (ScheduleId(event.id.to()), Job { owner: event.owner, first: event.nextRunAt.to() }))
        .collect()
}

/// The position of the block in which each run happened.
fn runs(chain: &[ArchivedBlock]) -> Result<BTreeMap<ScheduleRef, usize>, String> {
    let mut runs = BTreeMap::new();
    for (position, archived) in chain.iter().enumerate() {
        let is_job = |receipt: &&Receipt| !market::is_run(receipt) && !signed::is_run(receipt);
        let of_jobs = archived.receipts.iter().filter(is_job);
        for run in of_jobs.filter_map(|receipt| receipt.schedule_ref) {
            if let Some(before) = runs.insert(run, position) {
                return Err(format!("{run:?} happened in blocks {before} and {position}"));
            }
        }
    }
    Ok(runs)
}
