//! `almanac_getRecord`: what became of a transaction or a run, with the fields of Hedera's `TransactionRecord`
//! (HEDERA-12, -13). REST and gRPC answer with the same.

mod parties;
mod status;
mod transfers;

pub use status::ReceiptStatus;

use crate::{
    answer::Answer, error, own_errors::interfaces::IScheduleService::ScheduleFound, retrace::Retrace,
    types::RpcScheduleRef, view::View,
};
use alloy_primitives::{Address, TxHash};
use alloy_sol_types::SolEvent as _;
use almanac_index::{IndexedBlock, KnownSchedule, Location};
use almanac_primitives::{Receipt, ScheduleId, ScheduleRef, TimestampMs, addresses::SCHEDULE_SERVICE};
use almanac_proof::RpcScheduleId;
use almanac_schedule::{life::What, signed::SignedTerms};
use almanac_trace::{BalanceChanges, TraceError};
use jsonrpsee::{core::RpcResult, proc_macros::rpc};
use serde::Serialize;
use transfers::{AccountAmount, Sums, TokenTransferList};

/// How to ask for less.
const LESS: &str = "read the receipt instead, with eth_getTransactionReceipt";

/// Records.
#[rpc(server)]
pub(crate) trait RecordApi {
    /// The record of a transaction or a run, or null where there is none in a block.
    #[method(name = "almanac_getRecord")]
    async fn record(&self, hash: TxHash) -> RpcResult<Answer<Option<RpcRecord>>>;
}

/// What became of a transaction or a run. The names are Hedera's.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RpcRecord {
    receipt: RecordReceipt,
    transaction_hash: TxHash,
    consensus_timestamp: Timestamp,
    #[serde(rename = "transactionID")]
    transaction_id: TransactionId,
    memo: String,
    /// What it cost, in wei: of the sender or fee payer, or of the schedule.
    transaction_fee: String,
    /// `null` where this node has no state to run the block on again.
    transfer_list: Option<Vec<AccountAmount>>,
    token_transfer_list: Vec<TokenTransferList>,
    /// The run that it was.
    schedule_ref: Option<RpcScheduleRef>,
}

#[derive(Clone, Debug, Serialize)]
struct RecordReceipt {
    status: &'static str,
    code: u32,
    /// The first schedule that it created, or that a creation found pending already (HEDERA-04).
    #[serde(rename = "scheduleID")]
    schedule_id: Option<RpcScheduleId>,
}

/// The block's milliseconds, and the position in the block as nanoseconds. So records of one block differ, in the order
/// of execution: a block has fewer receipts than a millisecond has nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct Timestamp {
    /// In decimal, as a string.
    #[serde(serialize_with = "decimal")]
    seconds: u64,
    nanos: u32,
}

/// What a client knows it by. That of a run is inherited from the transaction that created its schedule.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct TransactionId {
    transaction_valid_start: Option<Timestamp>,
    #[serde(rename = "accountID")]
    account: Address,
    scheduled: bool,
    nonce: u64,
}

fn decimal<S: serde::Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(number)
}

#[jsonrpsee::core::async_trait]
impl RecordApiServer for Retrace {
    async fn record(&self, hash: TxHash) -> RpcResult<Answer<Option<RpcRecord>>> {
        let view = self.view.clone();
        self.heavy.answer(LESS, move || find(&view, hash)).await
    }
}

fn find(view: &View, hash: TxHash) -> RpcResult<Option<RpcRecord>> {
    let found = view.index.transaction(hash).map_err(error::internal)?;
    found.map(|(location, block)| record(view, &block, location)).transpose()
}

fn record(view: &View, block: &IndexedBlock, location: Location) -> RpcResult<RpcRecord> {
    let missing = || error::internal(format!("there is no receipt at {location:?}"));
    let receipt = block.receipts.get(location.index).ok_or_else(missing)?;
    let from = block.parties.get(location.index).ok_or_else(missing)?.from;
    let status = ReceiptStatus::of(&receipt.outcome);
    let run = match receipt.schedule_ref {
        Some(run) => view.index.schedule(run.schedule).map_err(error::internal)?.map(|known| (run, known)),
        None => None,
    };
    let consensus_timestamp = Timestamp::new(block.block.header.timestamp, location.index);
    Ok(RpcRecord {
        receipt: RecordReceipt {
            status: status.name(),
            code: status as u32,
            schedule_id: created(block, location.index).or_else(|| found(receipt)).map(RpcScheduleId::new),
        },
        transaction_hash: receipt.transaction_hash,
        consensus_timestamp,
        transaction_id: match &run {
            Some((run, known)) => TransactionId::of_run(view, *run, known)?,
            None => TransactionId {
                transaction_valid_start: Some(consensus_timestamp),
                account: from,
                scheduled: false,
                nonce: 0,
            },
        },
        memo: run
            .as_ref()
            .and_then(|(_, known)| terms(known))
            .map_or_else(String::new, |one| one.memo.clone()),
        transaction_fee: fee(block, location.index, receipt),
        transfer_list: transfers(view, block, location, run.as_ref())?,
        token_transfer_list: transfers::of_tokens(&receipt.logs),
        schedule_ref: receipt.schedule_ref.map(RpcScheduleRef::new),
    })
}

impl Timestamp {
    fn new(time: TimestampMs, index: usize) -> Self {
        let position = u32::try_from(index).unwrap_or(u32::MAX).min(999_999);
        let ms = u32::try_from(time.0 % 1_000).expect("below a thousand");
        Self { seconds: time.seconds(), nanos: ms * 1_000_000 + position }
    }
}

impl TransactionId {
    fn of_run(view: &View, run: ScheduleRef, known: &KnownSchedule) -> RpcResult<Self> {
        let created = known.schedule.created();
        // A node that copied the state has no earlier blocks.
        let is_known = !(1..=view.index.floor()).contains(&created.number);
        let place = is_known.then(|| view.index.place(created)).transpose().map_err(error::internal)?;
        Ok(Self {
            transaction_valid_start: place.map(|place| Timestamp::new(place.timestamp, created.index)),
            account: known.schedule.owner,
            scheduled: true,
            // Of a body that was signed: what makes it differ from equal ones (HEDERA-13).
            nonce: terms(known).map_or(run.number, |terms| terms.nonce.into()),
        })
    }
}

/// What the parties of a schedule signed, if it waited for signatures.
fn terms(known: &KnownSchedule) -> Option<&SignedTerms> {
    known.body.as_ref().and_then(|body| body.terms.signed())
}

/// The first schedule that a transaction created.
fn created(block: &IndexedBlock, index: usize) -> Option<ScheduleId> {
    let events = block.events.iter().filter(|one| one.index == index);
    let mut created = events.filter(|one| matches!(one.event.what, What::Created { .. }));
    created.next().map(|one| one.event.id)
}

/// The first schedule that a creation found pending already.
fn found(receipt: &Receipt) -> Option<ScheduleId> {
    let logs = receipt.logs.iter().filter(|log| log.address == SCHEDULE_SERVICE);
    logs.filter_map(|log| ScheduleFound::decode_log(log).ok()).map(|log| ScheduleId(log.id)).next()
}

/// What a transaction cost its sender or fee payer, and a run its schedule.
fn fee(block: &IndexedBlock, index: usize, receipt: &Receipt) -> String {
    let Some(run) = receipt.schedule_ref else {
        return receipt.gas_used.cost(receipt.effective_gas_price).0.to_string();
    };
    let events = block.events.iter().filter(|one| one.index == index && one.event.id == run.schedule);
    let fees = events.map(|one| &one.event.what).filter_map(|what| match what {
        What::Executed { fee, .. } => Some(fee.0),
        _ => None,
    });
    // None, where a fault of the chain's own kept it from running.
    fees.map(|fee| fee.to_string()).next().unwrap_or_else(|| "0".to_owned())
}

/// What accounts have more, or less. `None` where the state before the block is gone.
fn transfers(
    view: &View,
    block: &IndexedBlock,
    location: Location,
    run: Option<&(ScheduleRef, KnownSchedule)>,
) -> RpcResult<Option<Vec<AccountAmount>>> {
    let changes = match view.retrace_one(block, &BalanceChanges, location) {
        Ok(changes) => changes,
        Err(TraceError::StateGone { .. }) => return Ok(None),
        Err(other) => return Err(error::trace(&other)),
    };
    let mut sums = Sums::of_balances(&changes);
    if let Some((run, known)) = run {
        sums.add_ledger(run.schedule, location.index, known, &block.events);
        if terms(known).is_some() {
            let Some(state) = view.index.state_at(location.number) else { return Ok(None) };
            let added = parties::add(&mut sums, run.schedule, location.index, known, &block.events, &state);
            added.map_err(error::internal)?;
        }
    }
    Ok(Some(sums.list()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_timestamp_has_the_milliseconds_and_the_place() {
        let shown = |ms, index| serde_json::to_value(Timestamp::new(TimestampMs(ms), index)).unwrap();
        assert_eq!(shown(1_794_798_275_123, 7), json!({ "seconds": "1794798275", "nanos": 123_000_007 }));
        assert_eq!(shown(999, 0), json!({ "seconds": "0", "nanos": 999_000_000 }));
        // The position never reaches the next millisecond.
        assert_eq!(shown(1_000, 1 << 18), json!({ "seconds": "1", "nanos": 262_144 }));
        assert_eq!(shown(1_000, usize::MAX), json!({ "seconds": "1", "nanos": 999_999 }));
    }
}
