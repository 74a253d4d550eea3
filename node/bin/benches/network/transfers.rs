//! Signed transactions of many accounts, and sending them at a rate.

use crate::{
    chain::Chain,
    heads::now_ms,
    support::{cron::ICronRegistry, load::account, number, post_within},
};
use alloy_primitives::{Address, TxHash, TxKind, U256, address, hex};
use alloy_sol_types::SolCall as _;
use almanac_primitives::{
    UserTransaction,
    addresses::CRON_REGISTRY,
    testing::{self, Person},
};
use serde_json::{Value, json};
use std::{
    collections::{HashMap, VecDeque},
    thread,
    time::{Duration, Instant},
};

/// Accounts that send. A pool takes a hundred transactions of each.
pub(crate) const SENDERS: usize = 256;

const RECIPIENT: Address = address!("0x00000000000000000000000000000000000000f0");

/// Time between two batches of one client.
const TICK: Duration = Duration::from_millis(20);

/// Most transactions in one request.
const BATCH_MAX: usize = 100;

/// Longest wait for an answer, and for everything to be included.
const PATIENCE: Duration = Duration::from_secs(180);

/// People without money at first, and the next nonce of all of them.
pub(crate) struct Senders {
    people: Vec<Person>,
    next_nonce: u64,
}

impl Senders {
    pub(crate) fn new() -> Self {
        Self { people: (0..SENDERS as u64).map(testing::person).collect(), next_nonce: 0 }
    }

    /// Goes on after so many transactions of each that were signed before.
    pub(crate) fn skip(&mut self, each: u64) {
        self.next_nonce += each;
    }

    /// What gives each of them a coin.
    pub(crate) fn funding(&self) -> Vec<UserTransaction> {
        const DONORS: usize = 10;
        let coin = U256::from(10u64.pow(18));
        let donors: Vec<_> = (0..DONORS).map(account).collect();
        let gift = |(index, person): (usize, &Person)| {
            let nonce = (index / DONORS) as u64;
            let mut transfer = testing::legacy(nonce, person.address, 0);
            transfer.value = coin;
            testing::sign(transfer, donors[index % DONORS].1)
        };
        self.people.iter().enumerate().map(gift).collect()
    }

    /// So many transfers of each, in the order to send them.
    pub(crate) fn transfers(&mut self, each: u64) -> Vec<UserTransaction> {
        self.sign(each, |nonce| testing::legacy(nonce, RECIPIENT, 1))
    }

    /// So many jobs of each, all due in the same second, each with the least gas that a call takes.
    pub(crate) fn jobs(&mut self, each: u64, due_s: u64) -> Vec<UserTransaction> {
        self.sign(each, |nonce| {
            let order = ICronRegistry::scheduleCalldataCall {
                target: RECIPIENT,
                data: hex!("01020304").into(),
                nextRunAt: U256::from(due_s),
                intervalSec: U256::ZERO,
                maxRuns: U256::ZERO,
                gasLimit: U256::from(25_000),
            };
            let mut call =
                testing::eip1559(nonce, TxKind::Call(CRON_REGISTRY), 0, order.abi_encode(), 400_000);
            call.value = U256::from(10u64.pow(14));
            call
        })
    }

    fn sign<T>(&mut self, each: u64, make: impl Fn(u64) -> T) -> Vec<UserTransaction>
    where
        T: alloy_consensus::SignableTransaction<alloy_primitives::Signature>,
        alloy_consensus::Signed<T>: alloy_eips::eip2718::Encodable2718,
    {
        let first = self.next_nonce;
        self.next_nonce += each;
        let one = |nonce| self.people.iter().map(move |person| (nonce, *person));
        let turns = (first..first + each).flat_map(one);
        turns.map(|(nonce, person)| testing::sign(make(nonce), person.secret)).collect()
    }
}

/// When each transaction was sent, in milliseconds.
pub(crate) type Sent = HashMap<TxHash, f64>;

/// Sends transactions to all nodes at once, so many a second, or as fast as they are taken. The transactions of an
/// account go to the same node.
pub(crate) fn send(chain: &Chain, transactions: &[UserTransaction], per_second: Option<f64>) -> Sent {
    const CLIENTS: usize = 4;
    let nodes = chain.nodes();
    thread::scope(|scope| {
        let client = |index: usize| {
            let mine: Vec<_> = transactions.iter().skip(index).step_by(CLIENTS).collect();
            let address = &nodes[index % nodes.len()].address;
            let rate = per_second.map(|rate| rate / CLIENTS as f64);
            scope.spawn(move || send_from_one(address, &mine, rate))
        };
        let clients: Vec<_> = (0..CLIENTS).map(client).collect();
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    })
}

fn send_from_one(address: &str, transactions: &[&UserTransaction], per_second: Option<f64>) -> Sent {
    let (begin, mut sent) = (Instant::now(), Sent::new());
    let (mut left, mut taken) = (transactions.iter().copied().collect::<VecDeque<_>>(), 0);
    while !left.is_empty() {
        let by_now = per_second.map_or(usize::MAX, |rate| (begin.elapsed().as_secs_f64() * rate) as usize);
        let count = by_now.saturating_sub(taken).min(left.len()).min(BATCH_MAX);
        if count == 0 {
            thread::sleep(TICK);
            continue;
        }
        let batch: Vec<_> = left.drain(..count).collect();
        let moment = now_ms();
        for transaction in &batch {
            // One that was refused has been waiting since it was sent first.
            sent.entry(transaction.hash()).or_insert(moment);
        }
        let refused = submit(address, &batch);
        taken += count - refused.len();
        if !refused.is_empty() {
            assert!(begin.elapsed() < PATIENCE, "{address} does not take transactions");
            thread::sleep(TICK);
        }
        // To the front: the transactions behind them need them.
        refused.into_iter().rev().for_each(|transaction| left.push_front(transaction));
    }
    sent
}

/// Sends transactions, and answers with those that were refused: a pool takes so many of one sender.
fn submit<'a>(address: &str, batch: &[&'a UserTransaction]) -> Vec<&'a UserTransaction> {
    let request = |(id, transaction): (usize, &&UserTransaction)| {
        json!({ "jsonrpc": "2.0", "id": id, "method": "eth_sendRawTransaction",
            "params": [hex::encode_prefixed(transaction.encoded())] })
        .to_string()
    };
    let body = format!("[{}]", batch.iter().enumerate().map(request).collect::<Vec<_>>().join(","));
    let answer = post_within(PATIENCE, address, &body).unwrap();
    // Nearly every answer is good, and looking for a word is much cheaper than parsing.
    if !answer.contains("\"error\"") {
        return Vec::new();
    }
    let answers: Vec<Value> = serde_json::from_str(&answer).unwrap();
    let failed = answers.iter().filter(|answer| !answer["error"].is_null());
    // Where a gap was refused, what came behind it may have been taken.
    let again = failed.filter(|answer| !answer["error"]["message"].to_string().contains("already"));
    again.map(|answer| batch[usize::try_from(answer["id"].as_u64().unwrap()).unwrap()]).collect()
}

/// Waits until every transaction is in a block that all nodes have, and answers with the last block's number.
pub(crate) fn included(chain: &Chain, senders: &Senders) -> u64 {
    let nonces = |address: Address| json!([address, "latest"]);
    for node in chain.nodes() {
        for person in &senders.people {
            let begin = Instant::now();
            while number(&node.result("eth_getTransactionCount", nonces(person.address))) < senders.next_nonce
            {
                assert!(begin.elapsed() < PATIENCE, "transactions of {} are not included", person.address);
                thread::sleep(Duration::from_millis(20));
            }
        }
    }
    chain.nodes().iter().map(crate::support::Node::height).max().expect("there are nodes")
}
