//! Log lines about final blocks.

use crate::{
    figures::lane_name,
    log_switch::LogSwitch,
    span::{coins, due_in, gwei},
    waiting::Waiting,
};
use alloy_primitives::U256;
use almanac_consensus::{Sink, SinkError};
use almanac_exec::{BlockOutput, Executed, fault_in};
use almanac_index::Index;
use almanac_primitives::{Block, Header, Lane, Outcome, Receipt, ScheduleId, TimestampMs};
use almanac_rpc::{revert, types::time::iso};
use almanac_schedule::life::{Event, LifeEvent, What};
use almanac_trace::printable;
use std::sync::Arc;

/// Writes a line per block.
pub(crate) struct BlockLog {
    pub(crate) switch: LogSwitch,
    pub(crate) index: Arc<Index>,
}

impl Sink for BlockLog {
    fn finalized(&self, block: &Arc<Block>, output: &Arc<BlockOutput>) -> Result<(), SinkError> {
        // Told to whoever runs the node, however quiet it is: nobody else can do anything about it.
        for fault in output.receipts.iter().flat_map(|receipt| &receipt.logs).filter_map(fault_in) {
            tracing::error!("block {}: a fault of the chain's own: {fault}", block.header.number);
        }
        if !self.switch.is_on() || !tracing::enabled!(tracing::Level::INFO) {
            return Ok(());
        }
        let (users, header) = (block.transactions.len(), &block.header);
        let failed = output.receipts.iter().filter(|receipt| !receipt.outcome.is_success()).count();
        let runs = output.transactions.iter().filter(|ran| ran.run().is_some()).count();
        tracing::info!(
            "block {} · {} · {}, {} ({failed} failed) · {} · base fee {}{} · {}",
            header.number,
            iso(header.timestamp),
            counted(users, "transaction"),
            runs_by_lane(output),
            gas(header),
            gwei(U256::from(header.base_fee.0)),
            self.next_due(header.timestamp),
            block.hash(),
        );
        let ran = output.transactions.iter().zip(&output.receipts).enumerate();
        for (index, (ran, receipt)) in ran.take(LINES_MAX + 1) {
            if !matches!(ran, Executed::Prologue(_)) {
                tracing::info!("  {}", describe(ran, receipt));
            }
            log_events(&output.events, index, header.timestamp);
        }
        let left = (users + runs).saturating_sub(LINES_MAX);
        if left > 0 {
            tracing::info!("  and {left} more");
        }
        Ok(())
    }

    fn reverted(&self, height: u64) -> Result<(), SinkError> {
        if self.switch.is_on() {
            tracing::info!("back at block {height}");
        }
        Ok(())
    }
}

impl BlockLog {
    /// When something is due next after a block of this time, if anything waits.
    fn next_due(&self, now: TimestampMs) -> String {
        let waiting = Waiting::read(&self.index).unwrap_or_default();
        waiting.next.map_or_else(String::new, |next| format!(" · next due {}", due_in(next, now)))
    }
}

/// The gas of a block, and beside it what callbacks used, which has room of its own.
fn gas(header: &Header) -> String {
    match header.reserved_gas_used.0 {
        0 => format!("{} gas", header.gas_used.0),
        own => format!("{} gas and {own} of callbacks", header.gas_used.0),
    }
}

/// How many runs a block has, and in which lanes: "3 runs: 2 reserved, 1 spare".
fn runs_by_lane(output: &BlockOutput) -> String {
    let lanes: Vec<Lane> =
        output.transactions.iter().filter_map(|ran| ran.run().map(|run| run.lane)).collect();
    let of_lane = |lane: Lane| lanes.iter().filter(|other| **other == lane).count();
    let parts = Lane::ALL.into_iter().filter(|lane| of_lane(*lane) > 0);
    let parts: Vec<String> = parts.map(|lane| format!("{} {}", of_lane(lane), lane_name(lane))).collect();
    let all = counted(lanes.len(), "run");
    if parts.is_empty() { all } else { format!("{all}: {}", parts.join(", ")) }
}

/// So many of something, as people say it.
fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Transactions of one block that get a line of their own; a busy chain would write nothing else.
const LINES_MAX: usize = 5;

/// Characters of a revert reason that are shown.
const REASON_CHARS_MAX: usize = 200;

/// Events of one transaction that get a line of their own.
const EVENTS_MAX: usize = 3;

/// What the transaction at a receipt index did to schedules.
fn log_events(events: &[LifeEvent], index: usize, now: TimestampMs) {
    let told: Vec<String> = events
        .iter()
        .filter(|event| event.index == index)
        .filter_map(|told| happened(&told.event, now))
        .collect();
    told.iter().take(EVENTS_MAX).for_each(|line| tracing::info!("    {line}"));
    if told.len() > EVENTS_MAX {
        tracing::info!("    and {} more", told.len() - EVENTS_MAX);
    }
}

/// An event of a schedule, with its id in both forms.
fn happened(event: &Event, now: TimestampMs) -> Option<String> {
    let ScheduleId(number) = event.id;
    let what = match &event.what {
        What::Created { due: Some(due), .. } => {
            format!("created · due {}, at {}", due_in(*due, now), iso(*due))
        }
        What::Created { due: None, .. } => "created".to_owned(),
        What::ToppedUp { amount, escrow } => {
            format!("topped up by {}, has {}", coins(*amount), coins(*escrow))
        }
        What::Executed { fee, .. } => format!("ran for {}", coins(*fee)),
        What::Ended { end, refunded, .. } => format!("ended, {end} · {} refunded", coins(*refunded)),
        // A mark before the run, and a fault that has a line of its own.
        What::Processed { .. } | What::Quarantined { .. } => return None,
    };
    Some(format!("schedule {} ({number}) {what}", event.id))
}

/// One transaction: who called whom, and what became of it.
fn describe(ran: &Executed, receipt: &Receipt) -> String {
    let to = match (ran.to(), receipt.contract_address) {
        (Some(to), _) => to.to_string(),
        (None, Some(created)) => format!("new contract {created}"),
        (None, None) => "no new contract".to_owned(),
    };
    let (outcome, gas) = (outcome(&receipt.outcome), receipt.gas_used.0);
    let who = match ran.run().map(|run| run.schedule_ref) {
        Some(run) => format!("run {} of schedule {}", run.number, run.schedule),
        None => ran.from().to_string(),
    };
    format!("{} · {who} → {to} · {gas} gas · {outcome}", receipt.transaction_hash)
}

fn outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Success => "ok".to_owned(),
        // A contract chose the words: with a line break it would write lines of this log.
        Outcome::Reverted(data) => {
            format!("reverted: {}", printable(&revert::explain(data), REASON_CHARS_MAX))
        }
        Outcome::Halted(halt) => format!("stopped: {halt:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_sol_types::{Revert, SolError as _};

    /// A revert reason with line breaks wrote lines of its own.
    #[test]
    fn a_contract_writes_one_line_at_most() {
        let told = |reason: &str| {
            outcome(&Outcome::Reverted(Revert { reason: reason.to_owned() }.abi_encode().into()))
        };
        assert_eq!(told("no\r\nINFO block 9\x1b[2J"), "reverted: no  INFO block 9 [2J");
        assert_eq!(told(&"a".repeat(300)).len(), "reverted: ".len() + REASON_CHARS_MAX);
    }

    #[test]
    fn one_is_not_many() {
        assert_eq!([0, 1, 2].map(|count| counted(count, "run")), ["0 runs", "1 run", "2 runs"]);
    }
}
