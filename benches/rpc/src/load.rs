//! One load on one node: everything is sent over 32 connections while two more read.

use crate::{
    BenchError,
    http::{Connection, request},
    node::Running,
    transfers::{COUNT, SENDERS, Transfers},
};
use serde_json::Value;
use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    net::SocketAddr,
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

const CONNECTIONS: usize = 32;
const LOAD_MAX: Duration = Duration::from_secs(60);
/// Pause of a reader between two questions: it is to measure the load, not to be one.
const READ_PAUSE: Duration = Duration::from_millis(2);
/// Pause after a refusal, so that the node can make room.
const REFUSED_PAUSE: Duration = Duration::from_millis(5);

/// What one load showed.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Until the last transaction was accepted.
    pub(crate) submitted_in: Duration,
    /// Until the last transaction was in a block.
    pub(crate) included_in: Duration,
    /// How often the node asked to come back later.
    pub(crate) refusals: usize,
    /// Latencies of `eth_call` under the load, in order of size.
    pub(crate) call: Vec<Duration>,
    /// Latencies of `eth_getBalance`, likewise.
    pub(crate) balance: Vec<Duration>,
    /// Resident memory afterwards, in bytes.
    pub(crate) memory: u64,
}

/// A load that is ready to go.
pub(crate) struct Load<'a> {
    node: &'a Running,
    transfers: Arc<Transfers>,
    contract: String,
    batch: usize,
}

/// What the connections share: the work that is left.
struct Queue {
    transfers: Arc<Transfers>,
    left: RefCell<VecDeque<Vec<usize>>>,
    begin: Instant,
    refusals: Cell<usize>,
    is_done: Cell<bool>,
}

impl<'a> Load<'a> {
    /// Deploys the contract that is read from.
    pub(crate) async fn new(
        node: &'a Running,
        transfers: Arc<Transfers>,
        batch: usize,
    ) -> Result<Self, BenchError> {
        let mut connection = Connection::open(node.address).await?;
        let body = request(1, "eth_sendRawTransaction", &format!("[\"{}\"]", transfers.deploy));
        let sent: Value = parse("eth_sendRawTransaction", connection.post(&body).await?)?;
        let body = request(1, "eth_getTransactionReceipt", &format!("[{}]", sent["result"]));
        let begin = Instant::now();
        loop {
            let answer: Value = parse("eth_getTransactionReceipt", connection.post(&body).await?)?;
            if let Some(contract) = answer["result"]["contractAddress"].as_str() {
                let contract = contract.to_owned();
                return Ok(Self { node, transfers, contract, batch });
            }
            if begin.elapsed() > LOAD_MAX {
                let answer = answer.to_string();
                return Err(BenchError::Answer { method: "eth_getTransactionReceipt", answer });
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Sends everything and waits until it is included.
    pub(crate) async fn run(self) -> Result<Outcome, BenchError> {
        let address = self.node.address;
        let indexes: Vec<usize> = (0..COUNT).collect();
        let queue = Rc::new(Queue {
            transfers: self.transfers.clone(),
            left: RefCell::new(indexes.chunks(self.batch).map(<[usize]>::to_vec).collect()),
            begin: Instant::now(),
            refusals: Cell::new(0),
            is_done: Cell::new(false),
        });
        let call = format!("[{{\"to\":\"{}\"}},\"latest\"]", self.contract);
        let balance = format!("[\"{}\",\"latest\"]", self.transfers.senders[1]);

        let local = tokio::task::LocalSet::new();
        local
            .run_until(async {
                let calls = tokio::task::spawn_local(read(queue.clone(), address, "eth_call", call));
                let balances =
                    tokio::task::spawn_local(read(queue.clone(), address, "eth_getBalance", balance));
                let begin = queue.begin;
                let senders: Vec<_> = (0..CONNECTIONS)
                    .map(|_| tokio::task::spawn_local(submit(queue.clone(), address)))
                    .collect();
                for sender in senders {
                    sender.await.expect("no task panics")?;
                }
                let submitted_in = begin.elapsed();
                // Reads are measured as long as transactions arrive, not while a node waits for its next block.
                queue.is_done.set(true);
                wait_for_inclusion(address, &self.transfers, begin).await?;
                let included_in = begin.elapsed();
                Ok(Outcome {
                    submitted_in,
                    included_in,
                    refusals: queue.refusals.get(),
                    call: calls.await.expect("no task panics")?,
                    balance: balances.await.expect("no task panics")?,
                    memory: self.node.memory().unwrap_or_default(),
                })
            })
            .await
    }
}

/// One connection: takes from the queue until nothing is left.
async fn submit(queue: Rc<Queue>, address: SocketAddr) -> Result<(), BenchError> {
    let mut connection = Connection::open(address).await?;
    loop {
        let Some(indexes) = queue.left.borrow_mut().pop_front() else { return Ok(()) };
        let requests: Vec<_> = indexes.iter().map(|&index| queue.request(index)).collect();
        let body =
            if let [only] = &requests[..] { only.clone() } else { format!("[{}]", requests.join(",")) };
        let answer = connection.post(&body).await?;
        let refused = refused(answer)?;
        if !refused.is_empty() {
            if queue.begin.elapsed() > LOAD_MAX {
                let answer = String::from_utf8_lossy(answer).into_owned();
                return Err(BenchError::Answer { method: "eth_sendRawTransaction", answer });
            }
            queue.refusals.set(queue.refusals.get() + refused.len());
            tokio::time::sleep(REFUSED_PAUSE).await;
            // To the front: the transactions behind them need them.
            queue.left.borrow_mut().push_front(refused);
        }
    }
}

impl Queue {
    fn request(&self, index: usize) -> String {
        request(index, "eth_sendRawTransaction", &format!("[\"{}\"]", self.transfers.raw[index]))
    }
}

/// The transactions that have to be sent again.
fn refused(answer: &[u8]) -> Result<Vec<usize>, BenchError> {
    // Nearly every answer is good, and looking for a word is much cheaper than parsing.
    if !answer.windows(7).any(|window| window == b"\"error\"") {
        return Ok(Vec::new());
    }
    let answer = parse("eth_sendRawTransaction", answer)?;
    let answers = answer.as_array().cloned().unwrap_or_else(|| vec![answer.clone()]);
    let failed = answers.iter().filter(|answer| !answer["error"].is_null());
    // Sent a second time, a transaction may be known: then it has arrived.
    let again = failed.filter(|answer| !answer["error"]["message"].to_string().contains("already"));
    again
        .map(|answer| {
            let id = answer["id"].as_u64().and_then(|id| usize::try_from(id).ok());
            id.ok_or_else(|| BenchError::Answer {
                method: "eth_sendRawTransaction",
                answer: answer.to_string(),
            })
        })
        .collect()
}

/// Asks the same thing again and again until everything is submitted; gives the latencies in order of size.
async fn read(
    queue: Rc<Queue>,
    address: SocketAddr,
    method: &'static str,
    params: String,
) -> Result<Vec<Duration>, BenchError> {
    let mut connection = Connection::open(address).await?;
    let body = request(1, method, &params);
    let mut latencies = Vec::new();
    while !queue.is_done.get() {
        let begin = Instant::now();
        let answer = connection.post(&body).await?;
        latencies.push(begin.elapsed());
        if !answer.windows(8).any(|window| window == b"\"result\"") {
            return Err(BenchError::Answer { method, answer: String::from_utf8_lossy(answer).into_owned() });
        }
        tokio::time::sleep(READ_PAUSE).await;
    }
    latencies.sort_unstable();
    Ok(latencies)
}

/// Until the nonces say that every transfer is in a block.
async fn wait_for_inclusion(
    address: SocketAddr,
    transfers: &Transfers,
    begin: Instant,
) -> Result<(), BenchError> {
    let mut connection = Connection::open(address).await?;
    let counts: Vec<_> = (0..SENDERS)
        .map(|n| request(n, "eth_getTransactionCount", &format!("[\"{}\",\"latest\"]", transfers.senders[n])))
        .collect();
    let body = format!("[{}]", counts.join(","));
    loop {
        let answer = parse("eth_getTransactionCount", connection.post(&body).await?)?;
        let missing: usize = (0..SENDERS)
            .map(|n| transfers.final_nonce(n) - nonce(&answer, n).min(transfers.final_nonce(n)))
            .sum();
        if missing == 0 {
            return Ok(());
        }
        if begin.elapsed() > LOAD_MAX {
            return Err(BenchError::Unfinished {
                included: COUNT - missing,
                sent: COUNT,
                s: LOAD_MAX.as_secs(),
            });
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn nonce(answers: &Value, sender: usize) -> usize {
    let answer = answers.as_array().and_then(|answers| answers.iter().find(|answer| answer["id"] == sender));
    let text = answer.and_then(|answer| answer["result"].as_str()).unwrap_or("0x0");
    usize::from_str_radix(text.trim_start_matches("0x"), 16).unwrap_or_default()
}

fn parse(method: &'static str, answer: &[u8]) -> Result<Value, BenchError> {
    serde_json::from_slice(answer)
        .map_err(|_| BenchError::Answer { method, answer: String::from_utf8_lossy(answer).into_owned() })
}
