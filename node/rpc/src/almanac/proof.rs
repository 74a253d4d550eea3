//! Proofs for whoever trusts a block hash, or only the genesis, and nothing else.
//!
//! Of an account or a slot: the value. Of a schedule: its head, its escrow and its body. Of a span of time: the leaves
//! of the calendar that answer for it, which prove what is due then and that nothing else is. Of a run or any other
//! transaction: its receipt. Values are proven by the store, after the last block; this only says which. Receipts are
//! proven from the index, in any block.

use super::{
    Almanac,
    params::{self, Id, LaneName},
    receipt_proof::{ReceiptProofError, prove_ran},
};
use crate::{answer::Answer, error, types::Number, view::View};
use alloy_primitives::{Address, TxHash, U256};
use almanac_consensus::{ControlError, Controls, Proven};
use almanac_index::HistoricalState;
use almanac_primitives::{Header, StateKey};
use almanac_proof::{Plan, PlanError, ProofJson, StateSubject, Subject};
use jsonrpsee::core::RpcResult;
use serde::Deserialize;
use std::{future::Future, pin::Pin, time::Duration};

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

/// Proves something in the state after the last block.
///
/// Which values have to be proven is looked up in the index, which may be a block behind the store or ahead of what was
/// proven: what counts is what it says of the very block that the proofs are of.
pub(super) async fn of_state(almanac: &Almanac, subject: StateSubject) -> RpcResult<Answer<ProofJson>> {
    let mut planned = almanac.work(move |view| plan(&view.state_only(None)?, subject)).await?;
    for _ in 0..TRIES_MAX {
        let proven = almanac.prover.prove(planned.keys.clone()).await;
        let Proven { header, proofs } = proven.map_err(error::refused)?;
        let state = state_after(&almanac.view, &header).await?;
        let Plan { claim, keys, entries } = almanac.work(move |_| plan(&state, subject)).await?;
        if keys == planned.keys {
            let proof = ProofJson { entries, ..ProofJson::of_values(claim, &header, &proofs) };
            return almanac.answer(move |_| Ok(proof)).await;
        }
        planned.keys = keys;
    }
    Err(error::refused(format!("what has to be proven changed {TRIES_MAX} times meanwhile: ask again")))
}

/// The state after a block that the store has, as soon as the index has it too.
async fn state_after(view: &View, header: &Header) -> RpcResult<HistoricalState> {
    let (number, hash) = (header.number, header.hash());
    for _ in 0..LOOKS_MAX {
        if view.index.hash(number).map_err(error::internal)? == Some(hash) {
            return view.index.state_at(number).ok_or_else(|| error::unknown_block(number));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Err(error::refused(format!("the index does not have block {number} yet: ask again")))
}

/// Proves that something ran, and what became of it.
pub(super) fn of_ran(view: &View, hash: TxHash, is_run: bool) -> RpcResult<ProofJson> {
    prove_ran(&view.index, hash, is_run).map_err(|error| match error {
        ReceiptProofError::NotFound { hash } => error::unknown_transaction(hash),
        ReceiptProofError::NoRun { .. } => error::refused(error),
        ReceiptProofError::Misplaced { .. } | ReceiptProofError::Index(_) => error::internal(error),
    })
}

fn plan(state: &HistoricalState, subject: StateSubject) -> RpcResult<Plan> {
    almanac_proof::plan(state, subject).map_err(|error| match error {
        PlanError::Backwards { .. } => error::invalid(error),
        PlanError::TooManyLeaves => error::limit(error),
        PlanError::NoSchedule { .. } | PlanError::NoCalendar => error::refused(error),
        PlanError::State { .. } => error::internal(error),
    })
}
