//! What the dashboard shows, as the node tells it.

use crate::client::{
    network,
    node::{NodeArgs, maybe_time, quantity, text, wei},
};
use alloy_primitives::U256;
use almanac_primitives::TimestampMs;
use serde_json::{Value, json};
use std::collections::VecDeque;

/// Entries of the agenda.
const NEXT: usize = 10;
/// Runs that are kept.
const PAST: usize = 50;
/// Blocks that are read at first, and at most between two looks.
const BLOCKS: u64 = 20;
/// Parts of the next hour: as many as a narrow terminal has room for.
const BUCKETS: usize = 40;

/// The chain at a moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Picture {
    pub(super) host: String,
    pub(super) version: String,
    pub(super) chain_id: u64,
    pub(super) block: u64,
    pub(super) block_time: TimestampMs,
    pub(super) now: TimestampMs,
    pub(super) base_fee: U256,
    pub(super) gas_used: u64,
    pub(super) gas_limit: u64,
    pub(super) pool: (u64, u64),
    /// Peers, and the last final block; of nodes of a network only.
    pub(super) network: Option<Network>,
    pub(super) lanes: Vec<Lane>,
    pub(super) next: Vec<Due>,
    /// The newest first.
    pub(super) past: VecDeque<Ran>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Network {
    /// Both are unknown where the node's pages are not reachable.
    pub(super) role: Option<String>,
    pub(super) peers: Option<usize>,
    pub(super) is_final: bool,
    pub(super) is_syncing: bool,
}

/// A lane and what is due in it within the hour.
#[derive(Clone, Debug, Default)]
pub(super) struct Lane {
    pub(super) name: String,
    pub(super) is_held: bool,
    pub(super) pending: u64,
    pub(super) overdue: u64,
    /// Runs by part of the hour.
    pub(super) parts: Vec<u64>,
}

#[derive(Clone, Debug)]
pub(super) struct Due {
    pub(super) at: TimestampMs,
    pub(super) id: String,
    pub(super) lane: String,
    pub(super) target: String,
    pub(super) gas: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Ran {
    pub(super) block: u64,
    pub(super) at: TimestampMs,
    pub(super) id: String,
    pub(super) run: u64,
    pub(super) is_success: bool,
    pub(super) gas: u64,
    pub(super) target: String,
}

impl Picture {
    pub(super) fn take(node: &NodeArgs) -> anyhow::Result<Self> {
        let version = text(&node.ask("web3_clientVersion", &json!([]))?);
        let chain_id = quantity(&node.ask("eth_chainId", &json!([]))?)?;
        let mut picture = Self { host: node.rpc.host().to_owned(), version, chain_id, ..Self::default() };
        picture.refresh(node)?;
        Ok(picture)
    }

    /// Looks again.
    pub(super) fn refresh(&mut self, node: &NodeArgs) -> anyhow::Result<()> {
        let head = node.ask("eth_getBlockByNumber", &json!(["latest", false]))?;
        let pending = node.ask("eth_getBlockByNumber", &json!(["pending", false]))?;
        let seen = std::mem::replace(&mut self.block, quantity(&head["number"])?);
        self.block_time = TimestampMs(quantity(&head["timestampMs"])?);
        self.now = TimestampMs(quantity(&pending["timestampMs"])?);
        self.base_fee = wei(&pending["baseFeePerGas"])?;
        (self.gas_used, self.gas_limit) = (quantity(&head["gasUsed"])?, quantity(&head["gasLimit"])?);
        let pool = node.ask("txpool_status", &json!([]))?;
        self.pool = (quantity(&pool["pending"])?, quantity(&pool["queued"])?);
        self.network = place(node, self.block);
        self.lanes = lanes(node, self.now)?;
        self.next = next(node)?;
        self.read_runs(node, seen)
    }

    /// Adds the runs of new blocks. A developer's chain may have gone back: then it begins anew.
    fn read_runs(&mut self, node: &NodeArgs, seen: u64) -> anyhow::Result<()> {
        if self.block < seen {
            self.past.clear();
        }
        let oldest = self.block.saturating_sub(BLOCKS - 1);
        let first = if self.block < seen { oldest } else { oldest.max(seen + 1) };
        for number in first..=self.block {
            let number_hex = format!("{number:#x}");
            let receipts = node.ask("eth_getBlockReceipts", &json!([number_hex]))?;
            let runs =
                receipts.as_array().into_iter().flatten().filter(|receipt| !receipt["scheduleRef"].is_null());
            let runs: Vec<&Value> = runs.collect();
            if runs.is_empty() {
                continue;
            }
            let block = node.ask("eth_getBlockByNumber", &json!([number_hex, false]))?;
            let at = TimestampMs(quantity(&block["timestampMs"])?);
            for receipt in runs {
                self.past.push_front(ran(receipt, number, at));
            }
        }
        self.past.truncate(PAST);
        Ok(())
    }

    pub(super) fn to_json(&self) -> Value {
        let lanes = self.lanes.iter().map(|lane| {
            json!({ "lane": lane.name, "isHeld": lane.is_held, "pending": lane.pending, "overdue": lane.overdue,
                "runsInNextHour": lane.parts })
        });
        let next = self.next.iter().map(|due| {
            json!({ "id": due.id, "lane": due.lane, "dueMs": due.at.0, "target": due.target, "gasLimit": due.gas })
        });
        let past = self.past.iter().map(|ran| {
            json!({ "id": ran.id, "run": ran.run, "block": ran.block, "timeMs": ran.at.0, "success": ran.is_success,
                "gasUsed": ran.gas, "target": ran.target })
        });
        json!({ "version": self.version, "chainId": self.chain_id, "block": self.block,
            "blockTimeMs": self.block_time.0, "nowMs": self.now.0, "baseFee": self.base_fee.to_string(),
            "gasUsed": self.gas_used, "gasLimit": self.gas_limit,
            "pool": { "ready": self.pool.0, "parked": self.pool.1 },
            "network": self.network.as_ref().map(|network| json!({ "role": network.role, "peers": network.peers, "isFinal": network.is_final,
                "isSyncing": network.is_syncing })),
            "lanes": lanes.collect::<Vec<_>>(), "next": next.collect::<Vec<_>>(), "ran": past.collect::<Vec<_>>() })
    }
}

/// What only nodes of a network tell.
fn place(node: &NodeArgs, block: u64) -> Option<Network> {
    let certificate = node.try_ask("almanac_getFinality", &json!([format!("{block:#x}")])).ok()?;
    let is_syncing =
        node.try_ask("eth_syncing", &json!([])).ok().is_some_and(|answer| answer != json!(false));
    let (role, peers) = (network::role(node), network::peers(node));
    Some(Network { role, peers, is_final: !certificate.is_null(), is_syncing })
}

fn lanes(node: &NodeArgs, now: TimestampMs) -> anyhow::Result<Vec<Lane>> {
    let span = json!({ "from": now.0, "to": now.0 + 3_600_000, "buckets": BUCKETS });
    let answer = node.ask("almanac_agendaBuckets", &json!([span]))?;
    let lane = |lane: &Value| {
        let mut parts = vec![0; BUCKETS];
        for bucket in lane["buckets"].as_array().into_iter().flatten() {
            let index = quantity(&bucket["index"]).ok().and_then(|index| usize::try_from(index).ok());
            if let Some(part) = index.and_then(|index| parts.get_mut(index)) {
                *part = quantity(&bucket["runs"]).unwrap_or_default();
            }
        }
        Lane {
            name: text(&lane["lane"]),
            is_held: lane["isHeld"] == true,
            pending: quantity(&lane["pending"]).unwrap_or_default(),
            overdue: quantity(&lane["overdue"]).unwrap_or_default(),
            parts,
        }
    };
    Ok(answer["lanes"].as_array().into_iter().flatten().map(lane).collect())
}

fn next(node: &NodeArgs) -> anyhow::Result<Vec<Due>> {
    let answer = node.ask("almanac_agenda", &json!([{ "limit": NEXT }]))?;
    let due = |entry: &Value| {
        Some(Due {
            at: maybe_time(&entry["due"])?,
            id: text(&entry["id"]),
            lane: text(&entry["lane"]),
            target: text(&entry["target"]),
            gas: quantity(&entry["gasLimit"]).unwrap_or_default(),
        })
    };
    Ok(answer["entries"].as_array().into_iter().flatten().filter_map(due).collect())
}

fn ran(receipt: &Value, block: u64, at: TimestampMs) -> Ran {
    let reference = &receipt["scheduleRef"];
    Ran {
        block,
        at,
        id: text(&reference["id"]),
        run: quantity(&reference["run"]).unwrap_or_default(),
        is_success: receipt["status"] == "0x1",
        gas: quantity(&receipt["gasUsed"]).unwrap_or_default(),
        target: text(&receipt["to"]),
    }
}
