//! `almanac_subscribe`: events of schedules, over WebSocket.
//!
//! Events arrive in execution order. If the chain is reverted, which only a developer chain can be, `reverted`
//! names the last block that is still valid: discard the events of later blocks.

use super::params::{self, Id, LaneName};
use crate::{
    error,
    heads::{ChainEvent, Heads},
    session::{Ended, Session, Sink, missed, next},
    types::{RpcScheduleId, RpcTime},
    view::View,
};
use alloy_primitives::{Address, BlockHash, TxHash, U64, U256};
use almanac_index::IndexedBlock;
use almanac_primitives::Receipt;
use almanac_schedule::{
    decide::End,
    life::{LifeEvent, What as Event},
};
use jsonrpsee::core::RpcResult;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::{sync::broadcast, task::consume_budget};

/// What a client subscribes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Kind {
    /// Changes of schedules: created, topped up, ended.
    Schedules,
    /// Runs of schedules.
    Runs,
}

/// Filters by schedule; omitted fields allow anything.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Wanted {
    owner: Option<Address>,
    target: Option<Address>,
    id: Option<Id>,
}

/// An event as sent to clients.
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
    Created { lane: LaneName, due: Option<RpcTime> },
    ToppedUp { amount: U256, escrow: U256 },
    Cancelled { refunded: U256 },
    Exhausted { reason: String, refunded: U256 },
    Quarantined { reason: String },
    Succeeded { refunded: U256 },
    Failed { refunded: U256 },
    Run { run: Option<U64>, success: bool, gas_used: U64, fee: U256 },
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Place {
    block_number: U64,
    block_hash: BlockHash,
    transaction_hash: TxHash,
    time: RpcTime,
}

/// The method name of notifications.
const MESSAGE: &str = "almanac_subscription";

/// Sends events to a client until it unsubscribes.
pub(super) fn subscribe(
    view: &View,
    heads: &Heads,
    session: &Session,
    kind: &Value,
    filter: Option<Value>,
) -> RpcResult<String> {
    let (kind, wanted) = (read_kind(kind)?, params::options::<Wanted>(filter, "filter")?);
    // Listen before answering the client: it then receives everything it causes afterwards.
    let (view, news) = (view.clone(), heads.listen());
    session.subscribe(MESSAGE, move |sink| tell(view, sink, news, kind, wanted))
}

async fn tell(
    view: View,
    sink: Sink,
    mut news: broadcast::Receiver<ChainEvent>,
    kind: Kind,
    wanted: Wanted,
) -> Result<(), Ended> {
    while let Some(head) = next(&mut news).await? {
        let block = match head {
            ChainEvent::New(block) => block,
            ChainEvent::Reverted(height) => {
                sink.send(&json!({ "event": "reverted", "blockNumber": U64::from(height) })).await?;
                continue;
            }
        };
        // One at a time: a block may have thousands of events, and there may be thousands of subscriptions.
        for nth in 0.. {
            let look = |block: &IndexedBlock| {
                block.events.get(nth).map(|event| told(&view, block, event, kind, &wanted))
            };
            let Some(told) = block.look(look).map_err(|_| missed(&news))? else { break };
            if let Some(told) = told.map_err(Ended::Failed)? {
                sink.send(&told).await?;
            }
            // Yield between events that do not match, so that other tasks run.
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

/// The notification of an event, if its schedule matches.
fn told(
    view: &View,
    block: &IndexedBlock,
    LifeEvent { index, event }: &LifeEvent,
    kind: Kind,
    wanted: &Wanted,
) -> Result<Option<Told>, String> {
    if wanted.id.is_some_and(|Id(id)| id != event.id) {
        return Ok(None);
    }
    // A schedule that was reverted with its block is no longer known.
    let Some(known) = view.index.schedule(event.id).map_err(|error| error.to_string())? else {
        return Ok(None);
    };
    let (owner, target) = (known.schedule.owner, known.schedule.target);
    let is_wanted = wanted.owner.is_none_or(|wanted| wanted == owner)
        && wanted.target.is_none_or(|wanted| wanted == target);
    let (Some(receipt), true) = (block.receipts.get(*index), is_wanted) else { return Ok(None) };
    let what = match kind {
        Kind::Runs => run(&event.what, receipt),
        Kind::Schedules => change(&event.what),
    };
    let (id, place) = (RpcScheduleId::new(event.id), Place::new(block, receipt));
    Ok(what.map(|what| Told { what, id, owner, target, place }))
}

/// The notification of a run.
fn run(event: &Event, receipt: &Receipt) -> Option<What> {
    let Event::Executed { is_success, gas_used, fee } = event else { return None };
    let run = receipt.schedule_ref.map(|run| U64::from(run.number));
    Some(What::Run { run, success: *is_success, gas_used: U64::from(gas_used.0), fee: fee.0 })
}

/// The notification of a change of the schedule itself.
fn change(event: &Event) -> Option<What> {
    Some(match event {
        Event::Created { lane, due, .. } => {
            What::Created { lane: (*lane).into(), due: due.map(RpcTime::new) }
        }
        Event::ToppedUp { amount, escrow } => What::ToppedUp { amount: amount.0, escrow: escrow.0 },
        Event::Ended { end: End::Succeeded, refunded, .. } => What::Succeeded { refunded: refunded.0 },
        Event::Ended { end: End::Failed, refunded, .. } => What::Failed { refunded: refunded.0 },
        Event::Ended { end: End::Cancelled, refunded, .. } => What::Cancelled { refunded: refunded.0 },
        Event::Ended {
            end: end @ (End::OutOfMoney | End::RunsReached | End::Expired | End::Shutdown),
            refunded,
            ..
        } => What::Exhausted { reason: end.to_string(), refunded: refunded.0 },
        Event::Quarantined { reason } => What::Quarantined { reason: reason.clone() },
        Event::Processed { .. } | Event::Executed { .. } => return None,
    })
}

impl Place {
    fn new(block: &IndexedBlock, receipt: &Receipt) -> Self {
        Self {
            block_number: U64::from(block.number()),
            block_hash: block.hash,
            transaction_hash: receipt.transaction_hash,
            time: RpcTime::new(block.block.header.timestamp),
        }
    }
}
