//! Hears from every node of every block, and notes when.

use crate::support::{Node, number, socket::Socket};
use serde_json::json;
use std::{
    collections::BTreeMap,
    io::ErrorKind,
    sync::{Arc, Mutex},
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// When blocks were heard of, in milliseconds by this machine's clock, by block number.
#[derive(Clone)]
pub(crate) struct Heads {
    arrivals: Arc<Mutex<BTreeMap<u64, Vec<f64>>>>,
    quorum: usize,
}

/// Longest wait for a block.
const PATIENCE: Duration = Duration::from_secs(180);

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs_f64() * 1e3
}

impl Heads {
    /// Listens until the nodes end.
    pub(crate) fn listen(nodes: &[Node], quorum: usize) -> Self {
        let heads = Self { arrivals: Arc::default(), quorum };
        for node in nodes {
            let (arrivals, mut socket) = (heads.arrivals.clone(), Socket::open(&node.address));
            socket.call("eth_subscribe", json!(["newHeads"]));
            thread::spawn(move || {
                loop {
                    let message = match socket.receive() {
                        Ok(message) => message,
                        // No block for long; the node may still make one.
                        Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                        Err(_) => return,
                    };
                    let now = now_ms();
                    let message: serde_json::Value = serde_json::from_slice(&message).unwrap();
                    let block = number(&message["params"]["result"]["number"]);
                    arrivals.lock().unwrap().entry(block).or_default().push(now);
                }
            });
        }
        heads
    }

    /// When a quorum had the block, in milliseconds. Waits for it.
    pub(crate) fn final_at(&self, block: u64) -> f64 {
        let begin = now_ms();
        loop {
            let arrivals = self.arrivals.lock().unwrap().get(&block).cloned().unwrap_or_default();
            if let Some(moment) = arrivals.get(self.quorum - 1) {
                return *moment;
            }
            assert!(now_ms() - begin < PATIENCE.as_secs_f64() * 1e3, "nobody tells of block {block}");
            thread::sleep(Duration::from_millis(5));
        }
    }
}
