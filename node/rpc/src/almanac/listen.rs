//! What happens to schedules, as it happens, over WebSocket.
//!
//! Events come in the order of blocks and of logs within them. Where the chain goes back, which only a developer's
//! does, `reverted` names the last block that still counts: what was told of later ones did not happen.

use super::params::{self, Id, LaneName};
use crate::{
    error,
    heads::{Head, Heads},
    session::{Ended, Session, Sink, missed, next},
    types::{RpcScheduleId, RpcTime},
    view::View,
};
use alloy_primitives::{Address, BlockHash, TxHash, U64, U256};
use almanac_index::{IndexedBlock, LogEntry, ScheduleEvent};
use jsonrpsee::core::RpcResult;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::{sync::broadcast, task::consume_budget};

/// What a client wants to hear of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Kind {
    /// Schedules come, change and go.
    Schedules,
    /// Schedules run.
    Runs,
}

/// Whose schedules a client wants to hear of; what is left out allows anyone's.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Wanted {
    owner: Option<Address>,
    target: Option<Address>,
    id: Option<Id>,
}

/// Something that happened.
#[derive(Clone, Debug, Serialize)]
struct Told {
    #[serde(flatten)]
    what: What,
    #[serde(flatten)]
    id: RpcScheduleId,
    owner: Address,
    target: Address,
    #[serde(flatten)]
    place: Place,
}

#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "camelCase", rename_all_fields = "camelCase")]
enum What {
    Created { lane: LaneName, due: RpcTime },
    ToppedUp { amount: U256, escrow: U256 },
    Cancelled { refunded: U256 },
    Exhausted { reason: String },
    Quarantined { reason: String },
    Succeeded,
    Failed,
    Run { run: Option<U64>, success: bool, gas_used: U64 },
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Place {
    block_number: U64,
    block_hash: BlockHash,
    transaction_hash: TxHash,
    log_index: U64,
    time: RpcTime,
}

/// What messages of these subscriptions are called.
const MESSAGE: &str = "almanac_subscription";

/// Tells a client until it has enough.
pub(super) fn subscribe(
    view: &View,
    heads: &Heads,
    session: &Session,
    kind: &Value,
    filter: Option<Value>,
) -> RpcResult<String> {
    let (kind, wanted) = (read_kind(kind)?, params::options::<Wanted>(filter, "filter")?);
    // News is listened to before the client is answered: whatever it causes after that, it hears of.
    let (view, news) = (view.clone(), heads.listen());
    session.subscribe(MESSAGE, move |sink| tell(view, sink, news, kind, wanted))
}

async fn tell(
    view: View,
    sink: Sink,
    mut news: broadcast::Receiver<Head>,
    kind: Kind,
    wanted: Wanted,
) -> Result<(), Ended> {
    while let Some(head) = next(&mut news).await? {
        let block = match head {
            Head::New(block) => block,
            Head::Reverted(height) => {
                sink.send(&json!({ "event": "reverted", "blockNumber": U64::from(height) })).await?;
                continue;
            }
        };
        // One at a time: a block may have thousands, and there may be thousands of subscriptions.
        let mut logs = block.logs();
        let look = |block: &IndexedBlock, entry: LogEntry| of_log(&view, block, &entry, kind, &wanted);
        while let Some(told) = logs.next(look).map_err(|_| missed(&news))? {
            if let Some(told) = told.map_err(Ended::Failed)? {
                sink.send(&told).await?;
            }
            // Others have their turn between those that are not wanted.
            consume_budget().await;
        }
    }
    Ok(())
}

fn read_kind(given: &Value) -> RpcResult<Kind> {
    serde_json::from_value(given.clone()).map_err(|_| {
        error::invalid(format!("there is no subscription to {given}; there are schedules and runs"))
    })
}

/// What a log tells of a schedule that is wanted.
fn of_log(
    view: &View,
    block: &IndexedBlock,
    entry: &LogEntry,
    kind: Kind,
    wanted: &Wanted,
) -> Result<Option<Told>, String> {
    let Some(event) = ScheduleEvent::of_log(&entry.log) else { return Ok(None) };
    if wanted.id.is_some_and(|Id(id)| id != event.id()) {
        return Ok(None);
    }
    // One that is gone again with its block is nobody's.
    let Some(known) = view.index.schedule(event.id()).map_err(|error| error.to_string())? else {
        return Ok(None);
    };
    let schedule = &known.schedule;
    let is_wanted = wanted.owner.is_none_or(|owner| owner == schedule.owner)
        && wanted.target.is_none_or(|target| target == schedule.target);
    if !is_wanted {
        return Ok(None);
    }
    let id = RpcScheduleId::new(event.id());
    let told = what(event, kind, schedule.is_single, block, entry);
    let (owner, target) = (schedule.owner, schedule.target);
    Ok(told.map(|what| Told { what, id, owner, target, place: Place::new(entry) }))
}

/// An event in the words of a subscription, if it is one that this kind tells of.
fn what(
    event: ScheduleEvent,
    kind: Kind,
    is_single: bool,
    block: &IndexedBlock,
    entry: &LogEntry,
) -> Option<What> {
    match (kind, event) {
        (Kind::Runs, ScheduleEvent::Executed { is_success, gas_used, .. }) => {
            let receipt = block.receipts.get(entry.location.index);
            let run = receipt.and_then(|receipt| receipt.schedule_ref).map(|run| U64::from(run.number));
            Some(What::Run { run, success: is_success, gas_used: U64::from(gas_used.0) })
        }
        (Kind::Runs, _) => None,
        (Kind::Schedules, event) => match event {
            ScheduleEvent::Created { lane, due, .. } => {
                Some(What::Created { lane: lane.into(), due: RpcTime::new(due) })
            }
            ScheduleEvent::ToppedUp { amount, escrow, .. } => {
                Some(What::ToppedUp { amount: amount.0, escrow: escrow.0 })
            }
            ScheduleEvent::Cancelled { refunded, .. } => Some(What::Cancelled { refunded: refunded.0 }),
            ScheduleEvent::Exhausted { reason, .. } => Some(What::Exhausted { reason }),
            ScheduleEvent::Quarantined { reason, .. } => Some(What::Quarantined { reason }),
            // A single run is the end.
            ScheduleEvent::Executed { is_success, .. } if is_single => {
                Some(if is_success { What::Succeeded } else { What::Failed })
            }
            ScheduleEvent::Executed { .. } => None,
        },
    }
}

impl Place {
    fn new(entry: &LogEntry) -> Self {
        Self {
            block_number: U64::from(entry.location.number),
            block_hash: entry.block_hash,
            transaction_hash: entry.transaction_hash,
            log_index: U64::from(entry.log_index),
            time: RpcTime::new(entry.timestamp),
        }
    }
}
