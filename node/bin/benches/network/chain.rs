//! A chain under test: its processes, and what the system says about them.

use crate::{
    heads::Heads,
    support::{
        Node, exchange,
        network::{Network, wait_for},
    },
};
use serde_json::{Value, json};
use std::fs;
use tempfile::TempDir;

/// Time between blocks.
pub(crate) const BLOCK_TIME_MS: u64 = 100;

/// Clock ticks in a second, as /proc counts them: the same on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// One process, or four that agree.
pub(crate) enum Chain {
    Solo(Node, #[expect(dead_code, reason = "removes the chain at the end")] TempDir),
    Four(Network),
}

/// What has been used up to a moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    /// Processor time of all processes, in seconds.
    pub(crate) cpu_s: f64,
    /// Bytes that all processes sent to each other.
    pub(crate) wire_bytes: f64,
}

impl Chain {
    pub(crate) fn solo() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let block_time = format!("{BLOCK_TIME_MS}ms");
        let path = directory.path().join("chain");
        let node = Node::start(&["--block-time", &block_time, "--datadir", path.to_str().unwrap()]);
        Self::Solo(node, directory)
    }

    pub(crate) fn four() -> Self {
        Self::Four(Network::direct(BLOCK_TIME_MS))
    }

    pub(crate) fn nodes(&self) -> &[Node] {
        match self {
            Self::Solo(node, _) => std::slice::from_ref(node),
            Self::Four(network) => &network.nodes,
        }
    }

    /// Nodes that must have a block before it counts as final: one alone, 2f + 1 of 3f + 1.
    pub(crate) fn quorum(&self) -> usize {
        self.nodes().len() - (self.nodes().len() - 1) / 3
    }

    pub(crate) fn listen(&self) -> Heads {
        Heads::listen(self.nodes(), self.quorum())
    }

    pub(crate) fn block(&self, number: u64) -> Value {
        // The first node need not be one of the quorum that has it.
        wait_for("block", || {
            let block =
                self.nodes()[0].result("eth_getBlockByNumber", json!([format!("{number:#x}"), false]));
            (!block.is_null()).then_some(block)
        })
    }

    pub(crate) fn usage(&self) -> Usage {
        Usage {
            cpu_s: self.nodes().iter().map(cpu_s).sum(),
            wire_bytes: self.nodes().iter().map(sent_bytes).sum(),
        }
    }
}

impl Usage {
    pub(crate) fn since(self, before: Self) -> Self {
        Self { cpu_s: self.cpu_s - before.cpu_s, wire_bytes: self.wire_bytes - before.wire_bytes }
    }
}

/// Time that a process has used of processors, its own and the system's on its behalf.
fn cpu_s(node: &Node) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", node.child.id())).unwrap();
    // The name in brackets may hold anything; what follows is numbers.
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let ticks = |index: usize| fields.split_whitespace().nth(index).unwrap().parse::<f64>().unwrap();
    (ticks(11) + ticks(12)) / TICKS_PER_SECOND
}

/// What a validator says that it sent; a chain of one sends nothing.
fn sent_bytes(node: &Node) -> f64 {
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", node.address);
    let page = exchange(&node.address, request.as_bytes());
    let line = page.lines().find_map(|line| line.strip_prefix("runtime_outbound_bandwidth_total "));
    line.map_or(0.0, |value| value.trim().parse().unwrap())
}
