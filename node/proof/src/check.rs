//! Checks the claim of a proof against the header of a block, and reads what it proves.

use crate::{ClaimJson, EntryJson, MalformedProof, ProofJson};
use alloy_primitives::{TxHash, U256};
use almanac_primitives::{
    Header, Lane, Receipt, ScheduleId, StateKey, TimestampMs,
    addresses::LEDGER,
    codec::DecodeError,
    ids::ScheduleIdError,
    inclusion::{InclusionError, Ran},
};
use almanac_schedule::{
    calendar::{Entry, Leaf, NodeError, Queue, SpanError, due_in},
    record::{Body, Head, escrow_slot, head_slot},
};
use almanac_state::{ContentError, ProvenValue, VerifyError, verify};

/// What a proof proves of a block.
#[derive(Clone, Debug)]
pub enum Proven {
    /// A value of the state after it.
    Value(ProvenValue),
    /// A schedule in that state.
    Schedule {
        /// Which.
        id: ScheduleId,
        /// What changes.
        head: Head,
        /// What stays.
        body: Box<Body>,
        /// Its money. An empty escrow cannot be shown.
        escrow: Option<U256>,
    },
    /// All that a lane has due in a span of time, both ends included.
    Span {
        /// The lane.
        lane: Lane,
        /// The beginning.
        from: TimestampMs,
        /// The end.
        to: TimestampMs,
        /// What is due.
        due: Vec<Entry>,
    },
    /// Something that ran in it.
    Ran {
        /// What became of it.
        receipt: Box<Receipt>,
        /// What it was.
        ran: Box<Ran>,
    },
}

/// Why a proof does not prove its claim.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages have the words")]
pub enum CheckError {
    #[error(transparent)]
    Malformed(#[from] MalformedProof),
    #[error(transparent)]
    State(#[from] VerifyError),
    #[error(transparent)]
    Receipt(#[from] InclusionError),
    #[error(transparent)]
    Content(#[from] ContentError),
    #[error("the file lists due entries, but its claim is not a span")]
    EntriesWithoutSpan,
    #[error("the claim names no schedule")]
    ScheduleId(#[source] ScheduleIdError),
    #[error("the file claims {claimed}, but its receipt is of {found}")]
    OtherTransaction { claimed: TxHash, found: TxHash },
    #[error("{hash} is no run of a schedule")]
    NoRun { hash: TxHash },
    #[error("the file claims {claim:?}, which {values} values and {receipts} receipts do not prove")]
    Unproven { claim: ClaimJson, values: usize, receipts: usize },
    #[error("{given} values do not prove a schedule: expected head, body and escrow")]
    ScheduleValues { given: usize },
    #[error("the head of schedule {id} cannot be read")]
    Head { id: ScheduleId, source: DecodeError },
    #[error("the body of schedule {id} cannot be read")]
    Body { id: ScheduleId, source: DecodeError },
    #[error("{key:?} is not a leaf of the calendar")]
    OtherKey { key: StateKey },
    #[error("node {node} of the calendar is not a leaf")]
    Leaf { node: u64, source: NodeError },
    #[error("the leaves do not tell everything that is due")]
    Span(#[source] SpanError),
    #[error("the file lists other due entries than its leaves: {expected:?}")]
    OtherEntries { expected: Vec<EntryJson> },
}

impl ProofJson {
    /// Checks that everything in the proof holds in the block with this header and shows what is claimed, no less and
    /// no more.
    ///
    /// The answer is worth as much as the header: compare its hash with one that you trust, or check that it is final.
    pub fn check(&self, header: &Header) -> Result<Proven, CheckError> {
        let values = self.decode_values()?;
        let proven = values.iter().map(|value| verify(header, value)).collect::<Result<Vec<_>, _>>()?;
        let receipt = self.decode_receipt()?.map(|receipt| receipt.verify(header)).transpose()?;
        let is_span = matches!(self.claim, ClaimJson::Span { .. });
        if !is_span && self.entries.is_some() {
            return Err(CheckError::EntriesWithoutSpan);
        }
        match (&self.claim, &proven[..], receipt) {
            (ClaimJson::Value {}, [value], None) => Ok(Proven::Value(value.clone())),
            (ClaimJson::Schedule { schedule }, values, None) => {
                check_schedule(schedule.parse().map_err(CheckError::ScheduleId)?, values)
            }
            (ClaimJson::Span { lane, from, to }, leaves, None) => {
                let (from, to) = (TimestampMs(from.to()), TimestampMs(to.to()));
                check_span(Lane::from(*lane), from, to, leaves, self.entries.as_deref())
            }
            (ClaimJson::Run { hash }, [], Some((receipt, ran))) => {
                let proven = check_ran(*hash, receipt, ran)?;
                let is_run = matches!(&proven, Proven::Ran { ran, .. } if matches!(**ran, Ran::Run(_)));
                if is_run { Ok(proven) } else { Err(CheckError::NoRun { hash: *hash }) }
            }
            (ClaimJson::Transaction { hash }, [], Some((receipt, ran))) => check_ran(*hash, receipt, ran),
            (claim, values, receipt) => Err(CheckError::Unproven {
                claim: claim.clone(),
                values: values.len(),
                receipts: usize::from(receipt.is_some()),
            }),
        }
    }
}

fn check_ran(claimed: TxHash, receipt: Receipt, ran: Ran) -> Result<Proven, CheckError> {
    let found = receipt.transaction_hash;
    if found != claimed {
        return Err(CheckError::OtherTransaction { claimed, found });
    }
    Ok(Proven::Ran { receipt: Box::new(receipt), ran: Box::new(ran) })
}

fn check_schedule(id: ScheduleId, values: &[ProvenValue]) -> Result<Proven, CheckError> {
    let (head, body, escrow) = match values {
        [head, body] => (head, body, None),
        [head, body, escrow] => (head, body, Some(escrow)),
        _ => return Err(CheckError::ScheduleValues { given: values.len() }),
    };
    let head = Head::from_word(head.slot(LEDGER, head_slot(id))?)
        .map_err(|source| CheckError::Head { id, source })?;
    let body =
        Body::decode(body.value_of(StateKey::Body(id))?).map_err(|source| CheckError::Body { id, source })?;
    let escrow = escrow.map(|escrow| escrow.slot(LEDGER, escrow_slot(id))).transpose()?;
    Ok(Proven::Schedule { id, head, body: Box::new(body), escrow })
}

fn check_span(
    lane: Lane,
    from: TimestampMs,
    to: TimestampMs,
    values: &[ProvenValue],
    shown: Option<&[EntryJson]>,
) -> Result<Proven, CheckError> {
    let leaves = values.iter().map(leaf).collect::<Result<Vec<Leaf>, _>>()?;
    let due = due_in(&leaves, Queue::of_lane(lane), from, to).map_err(CheckError::Span)?;
    let expected: Vec<EntryJson> = due.iter().map(EntryJson::from).collect();
    if shown.is_some_and(|shown| *shown != expected) {
        return Err(CheckError::OtherEntries { expected });
    }
    Ok(Proven::Span { lane, from, to, due })
}

fn leaf(value: &ProvenValue) -> Result<Leaf, CheckError> {
    let key @ StateKey::Calendar(node) = value.key() else {
        return Err(CheckError::OtherKey { key: value.key() });
    };
    Leaf::decode(value.value_of(key)?).map_err(|source| CheckError::Leaf { node, source })
}
