//! Proofs about schedules, for whoever trusts a block hash and nothing else.
//!
//! Of a schedule: its head, its escrow and its body. Of a span of time: the leaves of the calendar that answer for it,
//! which prove what is due then and that nothing else is. The store makes them, between two blocks; this only says
//! which values to prove.

use super::params::{self, Id, LaneName};
use crate::{
    error,
    types::{Number, RpcScheduleId, RpcTime, proof::ProofJson},
    view::View,
};
use alloy_primitives::{BlockHash, U64};
use almanac_consensus::{ControlError, Controls, Proven};
use almanac_index::HistoricalState;
use almanac_primitives::{Lane, ScheduleId, StateKey, TimestampMs, Wei, addresses::LEDGER};
use almanac_schedule::{
    Calendar, Record,
    calendar::Entry,
    record::{escrow_slot, head_slot},
};
use jsonrpsee::core::RpcResult;
use serde::{Deserialize, Serialize};
use std::{future::Future, pin::Pin};

/// Most leaves of one answer.
const LEAVES_MAX: usize = 64;
/// A block may come between looking and proving; then it is tried again, so often.
const TRIES_MAX: usize = 5;

/// Makes proofs of the state after the last block.
pub trait Prover: Send + Sync {
    /// Proves values, or says why that cannot be.
    fn prove(
        &self,
        keys: Vec<StateKey>,
    ) -> Pin<Box<dyn Future<Output = Result<Proven, ControlError>> + Send + '_>>;
}

impl Prover for Controls {
    fn prove(
        &self,
        keys: Vec<StateKey>,
    ) -> Pin<Box<dyn Future<Output = Result<Proven, ControlError>> + Send + '_>> {
        Box::pin(self.prove(keys))
    }
}

/// What a client wants proven: a schedule, or what a lane has due in a span.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Wanted {
    schedule: Option<Id>,
    lane: Option<LaneName>,
    from: Option<Number>,
    to: Option<Number>,
}

/// Proofs, all of the state after one block.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Proofs {
    block_number: U64,
    block_hash: BlockHash,
    /// What a lane has due in the span, and nothing else; `null` where a schedule was asked for.
    entries: Option<Vec<ProvenEntry>>,
    proofs: Vec<NamedProof>,
}

/// A schedule that the leaves have in the span.
#[derive(Clone, Debug, Serialize)]
struct ProvenEntry {
    #[serde(flatten)]
    id: RpcScheduleId,
    due: RpcTime,
}

/// A proof, and what it is of.
#[derive(Clone, Debug, Serialize)]
struct NamedProof {
    what: &'static str,
    #[serde(flatten)]
    proof: ProofJson,
}

/// What has to be proven, as the state after the last block has it.
struct Plan {
    keys: Vec<(&'static str, StateKey)>,
    entries: Option<Vec<Entry>>,
}

/// Proves what is wanted.
pub(super) async fn prove(view: &View, prover: &dyn Prover, wanted: Wanted) -> RpcResult<Proofs> {
    for _ in 0..TRIES_MAX {
        let (block, state) = view.state(None)?;
        let plan = plan(&state, wanted)?;
        let keys = plan.keys.iter().map(|(_, key)| *key).collect();
        let Proven { header, proofs } = prover.prove(keys).await.map_err(error::refused)?;
        if header.hash() != block.hash {
            continue;
        }
        let named = plan.keys.iter().zip(&proofs);
        let named =
            named.map(|((what, _), proof)| NamedProof { what, proof: ProofJson::new(&header, proof) });
        let shown = |entry: Entry| ProvenEntry {
            id: RpcScheduleId::new(entry.schedule),
            due: RpcTime::new(entry.due),
        };
        return Ok(Proofs {
            block_number: U64::from(header.number),
            block_hash: block.hash,
            entries: plan.entries.map(|entries| entries.into_iter().map(shown).collect()),
            proofs: named.collect(),
        });
    }
    Err(error::refused(format!("blocks came faster than proofs, {TRIES_MAX} times: ask again")))
}

fn plan(state: &HistoricalState, wanted: Wanted) -> RpcResult<Plan> {
    match wanted {
        Wanted { schedule: Some(Id(id)), lane: None, from: None, to: None } => of_schedule(state, id),
        Wanted { schedule: None, lane: Some(lane), from: Some(from), to: Some(to) } => {
            of_span(state, lane.into(), params::time(from), params::time(to))
        }
        _ => Err(error::invalid("give either { schedule } or { lane, from, to }, times in milliseconds")),
    }
}

fn of_schedule(state: &HistoricalState, id: ScheduleId) -> RpcResult<Plan> {
    let record = Record::read(state, id).map_err(error::internal)?;
    let record = record.ok_or_else(|| {
        error::refused(format!("schedule {id} is not in the state: only what is there can be proven"))
    })?;
    let mut keys = vec![("head", StateKey::Slot(LEDGER, head_slot(id))), ("body", StateKey::Body(id))];
    // An empty slot is no value, and cannot be proven.
    if record.escrow > Wei::ZERO {
        keys.push(("escrow", StateKey::Slot(LEDGER, escrow_slot(id))));
    }
    Ok(Plan { keys, entries: None })
}

fn of_span(state: &HistoricalState, lane: Lane, from: TimestampMs, to: TimestampMs) -> RpcResult<Plan> {
    if from > to {
        return Err(error::invalid(format!("the span ends at {to}, before it begins at {from}")));
    }
    let leaves = Calendar::new(state).leaves(lane, from, to, LEAVES_MAX + 1).map_err(error::internal)?;
    if leaves.len() > LEAVES_MAX {
        return Err(error::limit(format!(
            "the span needs more than {LEAVES_MAX} leaves of the calendar: make it shorter"
        )));
    }
    let entries = leaves.iter().flat_map(|(_, leaf)| leaf.entries()).copied();
    let entries = entries.filter(|entry| entry.lane == lane && (from..=to).contains(&entry.due)).collect();
    let keys = leaves.iter().map(|(node, _)| ("calendar", StateKey::Calendar(*node))).collect();
    Ok(Plan { keys, entries: Some(entries) })
}
