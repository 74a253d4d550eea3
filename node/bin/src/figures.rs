//! The node's metrics, for Prometheus.

use crate::waiting::Waiting;
use almanac_consensus::{SharedPool, Sink, SinkError};
use almanac_exec::BlockOutput;
use almanac_index::Index;
use almanac_primitives::{
    Block, Lane, Receipt, RunTransaction, ScheduleId, StateKey, TimestampMs, addresses::LEDGER,
    state::decode_slot,
};
use almanac_schedule::record::{Head, head_slot};
use anyhow::Context as _;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use std::{sync::Arc, time::Duration};

/// Samples are put into their buckets this often, so that they do not pile up where nobody asks for them.
const UPKEEP: Duration = Duration::from_secs(5);

/// Bounds of the buckets that calls are sorted into by how long they took.
const SECONDS: [f64; 9] = [0.0002, 0.0005, 0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0];

/// Begins to count. Must be called on the runtime that serves requests.
pub(crate) fn start() -> anyhow::Result<PrometheusHandle> {
    let recorder = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)?
        .build_recorder();
    let handle = recorder.handle();
    metrics::set_global_recorder(recorder).context("metrics are recorded already")?;
    describe();
    let figures = handle.clone();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(UPKEEP).await;
            figures.run_upkeep();
        }
    });
    Ok(handle)
}

/// What each metric means; Prometheus shows it as HELP.
fn describe() {
    use metrics::{describe_counter as counter, describe_gauge as gauge, describe_histogram as histogram};
    gauge!("almanac_block_height", "Height of the last block.");
    gauge!("almanac_block_time_seconds", "Time of the last block, in Unix seconds.");
    gauge!("almanac_base_fee_wei", "Base fee of the last block, in wei per gas.");
    counter!("almanac_gas_used_total", "Gas used by blocks, callbacks included.");
    counter!("almanac_transactions_total", "User transactions in blocks.");
    counter!("almanac_failed_total", "User transactions and runs that failed.");
    counter!("almanac_runs_total", "Runs of schedules, by lane.");
    counter!("almanac_run_failures_total", "Runs of schedules that failed, by lane.");
    histogram!("almanac_run_lateness_seconds", "Time from when a run was due to its block, by lane.");
    gauge!("almanac_schedules_pending", "Schedules that wait for a run.");
    gauge!("almanac_pool_ready", "Transactions in the pool that can run.");
    gauge!("almanac_pool_parked", "Transactions in the pool that wait for a nonce or for funds.");
    counter!("almanac_rpc_calls_total", "JSON-RPC calls, by method and outcome.");
    histogram!("almanac_rpc_seconds", "Time from a JSON-RPC call to its answer, by method.");
    counter!("almanac_conflicting_votes_total", "Conflicting votes that were seen, by validator.");
}

/// Counts blocks and what is in them.
pub(crate) struct BlockFigures {
    pub(crate) pool: Arc<SharedPool>,
    pub(crate) index: Arc<Index>,
}

/// Counts the schedules that wait. A calendar that cannot be read keeps the last count: the chain itself pauses its
/// lane and reports that.
pub(crate) fn count_waiting(index: &Index) {
    if let Ok(waiting) = Waiting::read(index) {
        metrics::gauge!("almanac_schedules_pending").set(waiting.schedules as f64);
    }
}

impl Sink for BlockFigures {
    fn finalized(&self, block: &Arc<Block>, output: &Arc<BlockOutput>) -> Result<(), SinkError> {
        let header = &block.header;
        metrics::gauge!("almanac_block_height").set(header.number as f64);
        metrics::gauge!("almanac_block_time_seconds").set(header.timestamp.0 as f64 / 1e3);
        metrics::gauge!("almanac_base_fee_wei").set(header.base_fee.0 as f64);
        metrics::counter!("almanac_gas_used_total").increment(header.gas_used.0 + header.reserved_gas_used.0);
        metrics::counter!("almanac_transactions_total").increment(block.transactions.len() as u64);
        let failed = output.receipts.iter().filter(|receipt| !receipt.outcome.is_success()).count();
        metrics::counter!("almanac_failed_total").increment(failed as u64);
        count_runs(header.timestamp, output);
        count_waiting(&self.index);
        let pool = self.pool.lock();
        metrics::gauge!("almanac_pool_ready").set(pool.ready_count() as f64);
        metrics::gauge!("almanac_pool_parked").set(pool.parked_count() as f64);
        Ok(())
    }

    fn reverted(&self, height: u64) -> Result<(), SinkError> {
        metrics::gauge!("almanac_block_height").set(height as f64);
        count_waiting(&self.index);
        Ok(())
    }
}

/// Counts the runs of a block, those that failed, and how late each was, by lane: lateness is a fault where room was
/// booked, and no promise is broken by it in the spare lane.
fn count_runs(now: TimestampMs, output: &BlockOutput) {
    for lane in Lane::ALL {
        let name = lane_name(lane);
        let (mut count, mut failed) = (0, 0);
        for (run, receipt) in runs_of(lane, output) {
            count += 1;
            failed += u64::from(!receipt.outcome.is_success());
            if let Some(late) = due_before(output, run.schedule_ref.schedule).and_then(|due| now.since(due)) {
                metrics::histogram!("almanac_run_lateness_seconds", "lane" => name)
                    .record(late.0 as f64 / 1e3);
            }
        }
        metrics::counter!("almanac_runs_total", "lane" => name).increment(count);
        metrics::counter!("almanac_run_failures_total", "lane" => name).increment(failed);
    }
}

fn runs_of(lane: Lane, output: &BlockOutput) -> impl Iterator<Item = (&RunTransaction, &Receipt)> {
    let runs = output.transactions.iter().zip(&output.receipts);
    runs.filter_map(move |(ran, receipt)| Some((ran.run().filter(|run| run.lane == lane)?, receipt)))
}

/// A lane as labels and log lines have it.
pub(crate) fn lane_name(lane: Lane) -> &'static str {
    match lane {
        Lane::Reserved => "reserved",
        Lane::Cron => "cron",
        Lane::Market => "market",
        Lane::Spare => "spare",
        Lane::Signed => "signed",
    }
}

/// When a schedule was due that ran in a block: what its head said before.
fn due_before(output: &BlockOutput, schedule: ScheduleId) -> Option<TimestampMs> {
    let key = StateKey::Slot(LEDGER, head_slot(schedule));
    let changes = output.diff.changes();
    let old = changes[changes.binary_search_by_key(&key, |change| change.key).ok()?].old.as_ref()?;
    Head::from_word(decode_slot(old).ok()?).ok()?.due
}
