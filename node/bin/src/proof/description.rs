//! Describes what is proven, as text.

use crate::span::coins;
use alloy_primitives::{Bytes, KECCAK256_EMPTY, U256};
use almanac_primitives::{
    Lane, Outcome, Receipt, ScheduleId, StateKey, TimestampMs, Wei, inclusion::Ran, state::Meta,
};
use almanac_proof::{Proven, time::iso};
use almanac_rpc::revert;
use almanac_schedule::{
    calendar::Entry,
    record::{Body, Head, LastRun, Status},
};
use almanac_state::ProvenValue;
use std::fmt::{Display, Write as _};

/// Lines for people.
#[derive(Debug, Default)]
pub(super) struct Description(String);

impl Description {
    pub(super) fn line(&mut self, text: impl Display) {
        writeln!(self.0, "{text}").expect("a String takes any text");
    }

    pub(super) fn fact(&mut self, name: &str, value: impl Display) {
        self.line(format_args!("  {name:<11} {value}"));
    }

    pub(super) fn finish(self) -> String {
        self.0
    }

    /// What is proven of a block.
    pub(super) fn of(proven: &Proven, block: u64) -> anyhow::Result<Self> {
        match proven {
            Proven::Value(value) => Self::of_value(value),
            Proven::Schedule { id, head, body, escrow } => {
                Ok(Self::of_schedule(*id, head, body, *escrow, block))
            }
            Proven::Span { lane, from, to, due } => Ok(Self::of_span(*lane, *from, *to, due, block)),
            Proven::Ran { receipt, ran } => Ok(Self::of_receipt(receipt, ran, block)),
        }
    }

    /// A single value.
    fn of_value(proven: &ProvenValue) -> anyhow::Result<Self> {
        let mut words = Self::default();
        let number = proven.block_number();
        let key = proven.key();
        match key {
            StateKey::Account(address) => {
                let account = proven.account(address)?;
                words.line(format_args!("Proven: account {address} after block {number}"));
                words.fact("balance", money(account.balance));
                words.fact("nonce", account.nonce);
                match account.code_hash {
                    KECCAK256_EMPTY => words.fact("code", "none"),
                    hash => words.fact("code", hash),
                }
            }
            StateKey::Slot(address, slot) => {
                let value = proven.slot(address, slot)?;
                words.line(format_args!("Proven: slot {slot} of {address} after block {number}"));
                words.fact("value", format_args!("{value} ({value:#x})"));
            }
            StateKey::Code(hash) => {
                words.line(format_args!("Proven: code {hash} after block {number}"));
                words.fact("bytes", shown(proven.code(hash)?));
            }
            StateKey::Body(schedule) => {
                words.line(format_args!("Proven: body of schedule {schedule} after block {number}"));
                words.fact("bytes", shown(proven.value_of(key)?));
            }
            StateKey::Calendar(node) => {
                words.line(format_args!("Proven: calendar node {node} after block {number}"));
                words.fact("bytes", shown(proven.value_of(key)?));
            }
            StateKey::Meta(Meta::NonceSweep)
            | StateKey::Nonce(..)
            | StateKey::NonceLog(..)
            | StateKey::AccountKey(_) => {
                words.line(format_args!("Proven: {key:?} after block {number}"));
                words.fact("bytes", shown(proven.value_of(key)?));
            }
            StateKey::Meta(Meta::Genesis) => {
                words.line(format_args!(
                    "Proven: start of the chain, as the state after block {number} has it"
                ));
                words.fact("bytes", shown(proven.value_of(key)?));
            }
        }
        Ok(words)
    }

    /// A schedule.
    fn of_schedule(id: ScheduleId, head: &Head, body: &Body, escrow: Option<U256>, block: u64) -> Self {
        let mut words = Self::default();
        words.line(format_args!("Proven: schedule {id} after block {block}"));
        words.fact("status", status(head.status));
        words.fact("owner", body.owner);
        words.fact("door", body.door().name());
        words.fact("target", body.call().to);
        words.fact("lane", lane_name(head.lane));
        words.fact("next due", head.due.map_or_else(|| "at no time".to_owned(), moment));
        let how_often = match (body.terms.interval(), body.terms.runs_max()) {
            (None, _) => "once".to_owned(),
            (Some(every), None) => format!("every {every}, while the escrow pays"),
            (Some(every), Some(max)) => format!("every {every}, {max} times"),
        };
        words.fact("how often", how_often);
        words.fact("runs so far", head.runs);
        words.fact("last run", last(head.last));
        words.fact("gas limit", body.gas_limit.0);
        words.fact("calldata", shown(&body.call().input));
        match escrow {
            Some(wei) => words.fact("escrow", money(wei)),
            None => words.fact("escrow", "not shown; an empty one cannot be"),
        }
        words
    }

    /// What is due in a span.
    fn of_span(lane: Lane, from: TimestampMs, to: TimestampMs, due: &[Entry], block: u64) -> Self {
        let mut words = Self::default();
        let lane = lane_name(lane);
        words.line(format_args!(
            "Proven: what is due in the {lane} lane after block {block}, and nothing else"
        ));
        words.fact("from", moment(from));
        words.fact("to", moment(to));
        for entry in due {
            words.fact("due", format_args!("{}: schedule {}", moment(entry.due()), entry.schedule));
        }
        if due.is_empty() {
            words.fact("due", "nothing");
        }
        words
    }

    /// Something that ran.
    fn of_receipt(receipt: &Receipt, ran: &Ran, block: u64) -> Self {
        let mut words = Self::default();
        match ran {
            Ran::Run(run) => {
                let (number, schedule) = (run.schedule_ref.number, run.schedule_ref.schedule);
                words.line(format_args!("Proven: run {number} of schedule {schedule} is in block {block}"));
                words.fact("lane", lane_name(run.lane));
                words.fact("sender", run.from);
                words.fact("target", run.to);
                words.fact("value", money(run.value.0));
                words.fact("calldata", shown(&run.input));
            }
            Ran::User(_) => words.line(format_args!("Proven: a transaction is in block {block}")),
            Ran::Prologue(_) => words.line(format_args!("Proven: the prologue of block {block}")),
        }
        words.fact("hash", receipt.transaction_hash);
        words.fact("result", result(&receipt.outcome));
        words.fact("gas used", receipt.gas_used.0);
        if let Some(contract) = receipt.contract_address {
            words.fact("created", contract);
        }
        words.fact("logs", receipt.logs.len());
        words
    }
}

/// A moment for people and for machines.
pub(super) fn moment(time: TimestampMs) -> String {
    format!("{} ({} ms)", iso(time), time.0)
}

fn money(wei: U256) -> String {
    format!("{} ({wei} wei)", coins(Wei(wei)))
}

/// Bytes for people: code can be as long as a book.
fn shown(bytes: &Bytes) -> String {
    const SHOWN_BYTES_MAX: usize = 64;
    let count = bytes.len();
    match count {
        0..=SHOWN_BYTES_MAX => format!("{bytes} ({count} in all)"),
        _ => format!("{}… ({count} in all)", bytes.slice(..SHOWN_BYTES_MAX)),
    }
}

fn lane_name(lane: Lane) -> &'static str {
    match lane {
        Lane::Reserved => "reserved",
        Lane::Cron => "cron",
        Lane::Market => "market",
        Lane::Spare => "spare",
        Lane::Signed => "signed",
    }
}

fn status(status: Status) -> &'static str {
    match status {
        Status::Pending => "pending",
        Status::Running => "its last run is under way",
        Status::Quarantined => "put aside by a fault; its owner may cancel it",
        Status::Waiting => "waits for a better price",
        Status::Processed => "its run is under way",
        Status::Succeeded => "ended: its run succeeded",
        Status::Failed => "ended: its run failed",
        Status::Cancelled => "ended: its owner cancelled it",
        Status::Expired => "ended: it waited too long",
        Status::Shutdown => "ended: its door was shut down",
    }
}

fn last(run: LastRun) -> String {
    match run {
        LastRun::None => "none yet".to_owned(),
        LastRun::Succeeded => "succeeded".to_owned(),
        LastRun::Reverted => "reverted".to_owned(),
        LastRun::Halted(halt) => format!("stopped: {halt:?}"),
    }
}

fn result(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Success => "succeeded".to_owned(),
        // A contract chose the words: none of them may steer a terminal.
        Outcome::Reverted(data) => format!("reverted: {}", revert::explain(data).escape_debug()),
        Outcome::Halted(halt) => format!("stopped: {halt:?}"),
    }
}
