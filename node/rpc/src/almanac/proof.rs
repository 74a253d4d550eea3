//! Proofs for whoever trusts a block hash, or only the genesis, and nothing else.
//!
//! Of an account or a slot: the value. Of a schedule: its head, its escrow and its body. Of a span of time: the leaves
//! of the calendar that answer for it, which prove what is due then and that nothing else is. Of a run or any other
//! transaction: its receipt. Values are proven by the store, after the last block; this only says which. Receipts are
//! proven from the index, in any block.

use super::params::{self, Id, LaneName};
use crate::{
    error,
    types::{
        Number, encoded_transaction,
        proof::{ClaimJson, EntryJson, ProofJson},
    },
    view::View,
};
use alloy_primitives::{Address, TxHash, U64, U256};
use almanac_consensus::{ControlError, Controls, Proven};
use almanac_index::HistoricalState;
use almanac_primitives::{
    Header, Lane, ReceiptProof, ScheduleId, StateKey, StateRead as _, TimestampMs, Wei,
};
use almanac_schedule::{
    Calendar, Record,
    calendar::{Leaf, due_in},
};
use jsonrpsee::core::RpcResult;
use serde::Deserialize;
use std::{future::Future, pin::Pin, time::Duration};

/// Most leaves of one answer.
const LEAVES_MAX: usize = 64;
/// What has to be proven may change between looking and proving; then it is tried again, so often.
const TRIES_MAX: usize = 5;
/// The index hears of a block a little after the store: it is waited for so long, look by look.
const LOOK_EVERY: Duration = Duration::from_millis(20);
const LOOKS_MAX: usize = 100;

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

/// What a client wants proven, as it says it.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Wanted {
    account: Option<Address>,
    slot: Option<U256>,
    schedule: Option<Id>,
    lane: Option<LaneName>,
    from: Option<Number>,
    to: Option<Number>,
    run: Option<TxHash>,
    transaction: Option<TxHash>,
}

/// What has to be proven.
#[derive(Clone, Copy, Debug)]
pub(super) enum Subject {
    /// Something in the state after the last block.
    State(StateSubject),
    /// Something that ran.
    Ran { hash: TxHash, is_run: bool },
}

/// Something in a state.
#[derive(Clone, Copy, Debug)]
pub(super) enum StateSubject {
    Value(StateKey),
    Schedule(ScheduleId),
    Span { lane: LaneName, from: TimestampMs, to: TimestampMs },
}

impl Wanted {
    /// What is wanted, if it is one thing.
    pub(super) fn subject(self) -> RpcResult<Subject> {
        let Self { account, slot, schedule, lane, from, to, run, transaction } = self;
        Ok(match (account, slot, schedule, lane, from, to, run, transaction) {
            (Some(address), None, None, None, None, None, None, None) => {
                Subject::State(StateSubject::Value(StateKey::Account(address)))
            }
            (Some(address), Some(slot), None, None, None, None, None, None) => {
                Subject::State(StateSubject::Value(StateKey::Slot(address, slot)))
            }
            (None, None, Some(Id(id)), None, None, None, None, None) => {
                Subject::State(StateSubject::Schedule(id))
            }
            (None, None, None, Some(lane), Some(from), Some(to), None, None) => {
                let (from, to) = (params::time(from), params::time(to));
                Subject::State(StateSubject::Span { lane, from, to })
            }
            (None, None, None, None, None, None, Some(hash), None) => Subject::Ran { hash, is_run: true },
            (None, None, None, None, None, None, None, Some(hash)) => Subject::Ran { hash, is_run: false },
            _ => {
                return Err(error::invalid(
                    "give one of { account }, { account, slot }, { schedule }, { run }, { transaction } and \
                     { lane, from, to }, times in milliseconds",
                ));
            }
        })
    }
}

/// What has to be proven, as the state after the last block has it.
struct Plan {
    claim: ClaimJson,
    keys: Vec<StateKey>,
    entries: Option<Vec<EntryJson>>,
}

/// Proves something in the state after the last block.
///
/// Which values have to be proven is looked up in the index, which may be a block behind the store or ahead of what was
/// proven: what counts is what it says of the very block that the proofs are of.
pub(super) async fn of_state(
    view: &View,
    prover: &dyn Prover,
    subject: StateSubject,
) -> RpcResult<ProofJson> {
    let mut planned = plan(&view.state(None)?.1, subject)?;
    for _ in 0..TRIES_MAX {
        let Proven { header, proofs } = prover.prove(planned.keys.clone()).await.map_err(error::refused)?;
        let Plan { claim, keys, entries } = plan(&state_after(view, &header).await?, subject)?;
        if keys == planned.keys {
            return Ok(ProofJson { entries, ..ProofJson::of_values(claim, &header, &proofs) });
        }
        planned.keys = keys;
    }
    Err(error::refused(format!("what has to be proven changed {TRIES_MAX} times meanwhile: ask again")))
}

/// The state after a block that the store has, as soon as the index has it too.
async fn state_after(view: &View, header: &Header) -> RpcResult<HistoricalState> {
    let (number, hash) = (header.number, header.hash());
    for _ in 0..LOOKS_MAX {
        let indexed = view.index.block(number).map_err(error::internal)?;
        if indexed.is_some_and(|block| block.hash == hash) {
            return view.index.state_at(number).ok_or_else(|| error::unknown_block(number));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Err(error::refused(format!("the index does not have block {number} yet: ask again")))
}

/// Proves that something ran, and what became of it.
pub(super) fn of_ran(view: &View, hash: TxHash, is_run: bool) -> RpcResult<ProofJson> {
    let found = view.index.transaction(hash).map_err(error::internal)?;
    let (location, block) = found.ok_or_else(|| error::unknown_transaction(hash))?;
    let missing = || error::internal(format!("{hash} is not where the index says"));
    let receipt = block.receipts.get(location.index).ok_or_else(missing)?;
    if is_run && receipt.schedule_ref.is_none() {
        return Err(error::refused(format!("{hash} is no run of a schedule: ask with {{ transaction }}")));
    }
    let transaction = encoded_transaction(&block, location.index).ok_or_else(missing)?;
    let index = u32::try_from(location.index).map_err(error::internal)?;
    let proof = ReceiptProof::new(&block.receipts, index, transaction).ok_or_else(missing)?;
    let claim = if is_run { ClaimJson::Run { hash } } else { ClaimJson::Transaction { hash } };
    Ok(ProofJson::of_receipt(claim, &block.block.header, proof))
}

fn plan(state: &HistoricalState, subject: StateSubject) -> RpcResult<Plan> {
    match subject {
        StateSubject::Value(key) => Ok(Plan { claim: ClaimJson::Value {}, keys: vec![key], entries: None }),
        StateSubject::Schedule(id) => of_schedule(state, id),
        StateSubject::Span { lane, from, to } => of_span(state, lane, from, to),
    }
}

fn of_schedule(state: &HistoricalState, id: ScheduleId) -> RpcResult<Plan> {
    let record = Record::read(state, id).map_err(error::internal)?;
    let record = record.ok_or_else(|| {
        error::refused(format!("schedule {id} is not in the state: only what is there can be proven"))
    })?;
    let [head, escrow, body] = Record::keys(id);
    let mut keys = vec![head, body];
    // An empty slot is no value, and cannot be proven.
    if record.escrow > Wei::ZERO {
        keys.push(escrow);
    }
    Ok(Plan { claim: ClaimJson::Schedule { schedule: id.to_string() }, keys, entries: None })
}

fn of_span(state: &HistoricalState, lane: LaneName, from: TimestampMs, to: TimestampMs) -> RpcResult<Plan> {
    if from > to {
        return Err(error::invalid(format!("the span ends at {to}, before it begins at {from}")));
    }
    if state.read(StateKey::Calendar(0)).map_err(error::internal)?.is_none() {
        return Err(error::refused(
            "nothing was ever scheduled here: the calendar is not in the state, and only what is there can be proven",
        ));
    }
    let calendar = Calendar::new(state);
    let leaves = calendar.leaves(lane.into(), from, to, LEAVES_MAX + 1).map_err(error::internal)?;
    if leaves.len() > LEAVES_MAX {
        return Err(error::limit(format!(
            "the span needs more than {LEAVES_MAX} leaves of the calendar: make it shorter"
        )));
    }
    let (nodes, leaves): (Vec<u64>, Vec<Leaf>) = leaves.into_iter().unzip();
    let due = due_in(&leaves, Lane::from(lane), from, to).map_err(error::internal)?;
    Ok(Plan {
        claim: ClaimJson::Span { lane, from: U64::from(from.0), to: U64::from(to.0) },
        keys: nodes.into_iter().map(StateKey::Calendar).collect(),
        entries: Some(due.iter().map(EntryJson::from).collect()),
    })
}
