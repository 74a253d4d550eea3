//! Clients that send transactions to validators without a pause, and send again what got lost.

use super::{
    ALICE, BOB,
    cron::{job_in, series_in},
    post_within,
};
use alloy_primitives::{Address, B256, hex};
use alloy_signer_local::{MnemonicBuilder, coins_bip39::English};
use almanac_primitives::{UserTransaction, testing};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// Seconds between the runs of the one series that is made.
pub const SERIES_INTERVAL_S: u64 = 2;

/// Runs that it has at most.
pub const SERIES_RUNS: u64 = 1_000;

/// Seconds until its first run. A job whose time has come before it is included is refused, and the first block of a
/// network may be seconds away.
const SERIES_WAIT_S: u64 = 20;

/// Transactions of one client that are on their way at most.
const WINDOW: usize = 16;

/// Every so many transactions one makes a job.
const JOB_EVERY: u64 = 8;

/// Time that a client waits for an answer, and for its transactions to be included before it sends them again.
const ANSWER_PATIENCE: Duration = Duration::from_secs(2);

/// Clients at work, one for each node.
pub struct Load {
    is_over: Arc<AtomicBool>,
    clients: Vec<JoinHandle<Client>>,
}

/// An account and what it has signed, in order of nonces.
pub struct Client {
    pub account: Address,
    pub transactions: Vec<UserTransaction>,
    secret: B256,
    node: String,
}

/// The n-th account of a developer's chain.
pub fn account(index: usize) -> (Address, B256) {
    const MNEMONIC: &str = "test test test test test test test test test test test junk";
    let builder = MnemonicBuilder::<English>::default().phrase(MNEMONIC);
    let signer = builder.index(u32::try_from(index).unwrap()).unwrap().build().unwrap();
    (signer.address(), signer.to_bytes())
}

impl Load {
    /// Starts a client of its own for each of these nodes.
    pub fn start(nodes: impl Iterator<Item = String>) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let client = |(index, node)| {
            let ((account, secret), is_over) = (account(index), is_over.clone());
            let client = Client { account, secret, node, transactions: Vec::new() };
            thread::spawn(move || client.work(&is_over))
        };
        Self { clients: nodes.enumerate().map(client).collect(), is_over }
    }

    /// Stops when everything that was signed is included.
    pub fn stop(self) -> Vec<Client> {
        self.is_over.store(true, SeqCst);
        self.clients.into_iter().map(|client| client.join().expect("a client gets its work done")).collect()
    }
}

impl Client {
    fn work(mut self, is_over: &AtomicBool) -> Self {
        let (mut included, mut sent, mut moved) = (0, 0, Instant::now());
        let mut over_since = None;
        loop {
            if is_over.load(SeqCst) {
                let since = *over_since.get_or_insert_with(Instant::now);
                assert!(
                    since.elapsed() < super::network::PATIENCE,
                    "{} waits for its transactions",
                    self.node
                );
                if included == self.transactions.len() {
                    return self;
                }
            } else {
                self.sign(included + WINDOW);
            }
            match self.count() {
                Some(count) if count > included => (included, moved) = (count, Instant::now()),
                Some(_) if moved.elapsed() < ANSWER_PATIENCE => {}
                // Its node is gone, was, or has forgotten what it was told.
                _ => (sent, moved) = (included, Instant::now()),
            }
            sent = self.send(sent.max(included));
            thread::sleep(Duration::from_millis(50));
        }
    }

    fn sign(&mut self, count: usize) {
        for nonce in self.transactions.len() as u64..count as u64 {
            let transaction = if nonce == 0 && self.account == ALICE.parse::<Address>().unwrap() {
                series_in(nonce, SERIES_WAIT_S, SERIES_INTERVAL_S, SERIES_RUNS, self.secret)
            } else if nonce % JOB_EVERY == 1 {
                job_in(nonce, 4, self.secret)
            } else {
                testing::sign(testing::legacy(nonce, BOB.parse().unwrap(), 1), self.secret)
            };
            self.transactions.push(transaction);
        }
    }

    /// How many transactions of the account are in final blocks.
    fn count(&self) -> Option<usize> {
        let answer = self.ask(&request("eth_getTransactionCount", json!([self.account, "latest"])))?;
        usize::from_str_radix(answer["result"].as_str()?.strip_prefix("0x")?, 16).ok()
    }

    /// Sends what is signed from a nonce on. What the node has already, or does not take now, the count will tell.
    fn send(&self, from: usize) -> usize {
        let encoded = |transaction: &UserTransaction| hex::encode_prefixed(transaction.encoded());
        let batch: Vec<Value> = self.transactions[from..]
            .iter()
            .map(|transaction| request("eth_sendRawTransaction", json!([encoded(transaction)])))
            .collect();
        let is_sent = batch.is_empty() || self.ask(&json!(batch)).is_some();
        if is_sent { self.transactions.len() } else { from }
    }

    fn ask(&self, request: &Value) -> Option<Value> {
        let answer = post_within(ANSWER_PATIENCE, &self.node, &request.to_string()).ok()?;
        serde_json::from_str(&answer).ok()
    }
}

fn request(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}
