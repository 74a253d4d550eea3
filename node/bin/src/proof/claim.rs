//! Checks the claim of a proof against its block, and describes it.

use super::{description::Description, file::ProofFile};
use almanac_primitives::{
    Header, Lane, ScheduleId, StateKey, TimestampMs, addresses::LEDGER, inclusion::Ran,
};
use almanac_rpc::types::proof::{ClaimJson, EntryJson};
use almanac_schedule::{
    calendar::{Leaf, Queue, due_in},
    record::{Body, Head, escrow_slot, head_slot},
};
use almanac_state::{ProvenValue, verify};
use anyhow::{Context as _, bail, ensure};

/// Checks that everything in the file holds in the block with this header, and shows what it claims: no less and no
/// more. Says what is proven.
pub(super) fn check(file: &ProofFile, header: &Header) -> anyhow::Result<Description> {
    let values = file.values()?;
    let proven = values.iter().map(|value| verify(header, value)).collect::<Result<Vec<_>, _>>()?;
    let receipt = file.receipt()?.map(|receipt| receipt.verify(header)).transpose()?;
    let is_span = matches!(file.claim(), ClaimJson::Span { .. });
    ensure!(is_span || file.entries().is_none(), "the file lists due entries, but its claim is not a span");
    match (file.claim(), &proven[..], receipt) {
        (ClaimJson::Value {}, [value], None) => Description::of_value(value),
        (ClaimJson::Schedule { schedule }, values, None) => {
            check_schedule(schedule.parse().context("the claim names no schedule")?, values)
        }
        (ClaimJson::Span { lane, from, to }, leaves, None) => {
            let (from, to) = (TimestampMs(from.to()), TimestampMs(to.to()));
            check_span(Lane::from(*lane), from, to, leaves, file.entries(), header)
        }
        (ClaimJson::Run { hash } | ClaimJson::Transaction { hash }, [], Some((receipt, ran))) => {
            let found = receipt.transaction_hash;
            ensure!(found == *hash, "the file claims {hash}, but its receipt is of {found}");
            let is_run = matches!(ran, Ran::Run(_));
            ensure!(
                is_run || !matches!(file.claim(), ClaimJson::Run { .. }),
                "{hash} is no run of a schedule"
            );
            Ok(Description::of_receipt(&receipt, &ran, header.number))
        }
        (claim, values, receipt) => bail!(
            "the file claims {claim:?}, which {} values and {} receipts do not prove",
            values.len(),
            usize::from(receipt.is_some())
        ),
    }
}

fn check_schedule(id: ScheduleId, values: &[ProvenValue]) -> anyhow::Result<Description> {
    let (head, body, escrow) = match values {
        [head, body] => (head, body, None),
        [head, body, escrow] => (head, body, Some(escrow)),
        _ => bail!("{} values do not prove a schedule: expected head, body and escrow", values.len()),
    };
    let head = Head::from_word(head.slot(LEDGER, head_slot(id))?)
        .with_context(|| format!("the head of schedule {id} cannot be read"))?;
    let body = Body::decode(body.value_of(StateKey::Body(id))?)
        .with_context(|| format!("the body of schedule {id} cannot be read"))?;
    let escrow = escrow.map(|escrow| escrow.slot(LEDGER, escrow_slot(id))).transpose()?;
    let block = values.first().map_or(0, ProvenValue::block_number);
    Ok(Description::of_schedule(id, &head, &body, escrow, block))
}

fn check_span(
    lane: Lane,
    from: TimestampMs,
    to: TimestampMs,
    values: &[ProvenValue],
    shown: Option<&[EntryJson]>,
    header: &Header,
) -> anyhow::Result<Description> {
    let leaves = values.iter().map(leaf).collect::<anyhow::Result<Vec<Leaf>>>()?;
    let due = due_in(&leaves, Queue::of_lane(lane), from, to)
        .context("the leaves do not tell everything that is due")?;
    let expected: Vec<EntryJson> = due.iter().map(EntryJson::from).collect();
    if let Some(shown) = shown {
        ensure!(*shown == expected, "the file lists other due entries than its leaves: {expected:?}");
    }
    Ok(Description::of_span(lane, from, to, &due, header.number))
}

fn leaf(value: &ProvenValue) -> anyhow::Result<Leaf> {
    let key @ StateKey::Calendar(node) = value.key() else {
        bail!("{:?} is not a leaf of the calendar", value.key())
    };
    Leaf::decode(value.value_of(key)?).with_context(|| format!("node {node} of the calendar is not a leaf"))
}
