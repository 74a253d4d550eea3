//! `almanac_getProof`: proofs for clients that trust only a block hash, or only the genesis.
//!
//! - Account or slot: its value.
//! - Schedule: its head, escrow and body.
//! - Span of time: the calendar leaves that cover it, which prove what is due in it and that nothing else is.
//! - Run or other transaction: its receipt.
//!
//! The store proves values after the last block; this module selects the keys. Receipts are proven from the
//! index, in any block.

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

/// Most attempts: the values to prove may change between planning and proving.
const TRIES_MAX: usize = 5;
/// The index gets a block slightly after the store. Poll for it at this interval.
const LOOK_EVERY: Duration = Duration::from_millis(20);
const LOOKS_MAX: usize = 100;

/// Proves values of the state after the last block.
pub trait Prover: Send + Sync {
    /// Proves values, or returns why it cannot.
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

/// What a client requests a proof of.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Wanted {
    account: Option<Address>,
    /// A slot of `account`.
    slot: Option<U256>,
    schedule: Option<Id>,
    /// With `from` and `to`: all that is due in it then.
    lane: Option<LaneName>,
    /// Milliseconds since 1970, included.
    from: Option<Number>,
    /// Milliseconds since 1970, included.
    to: Option<Number>,
    /// The hash of a run.
    run: Option<TxHash>,
    /// The hash of a transaction.
    transaction: Option<TxHash>,
}

impl Wanted {
    /// The requested subject; an error unless there is exactly one.
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
/// The keys to prove are looked up in the index, which may be a block behind the store or ahead of the proven
/// block. So the lookup is repeated on the state of exactly the block that the proof is for.
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

/// The state after a block of the store, as soon as the index has it too.
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

/// Proves that a transaction ran, and its outcome.
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
