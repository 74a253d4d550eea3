//! The pool under attack: four validators, real sockets, and a user who wants nothing but a transfer.

use crate::support::{
    load::account,
    network::{Network, VALIDATORS, agree_at, wait_for},
    number, post,
};
use alloy_consensus::{TxEip1559, TxEip7702};
use alloy_primitives::{Address, TxKind, U256, hex};
use almanac_primitives::{UserTransaction, testing};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use testing::Person;

const GWEI: u128 = 1_000_000_000;

/// Small pools, so that a test can fill them; a tenth may be parked.
const POOL_MAX: usize = 600;
const PARKED_MAX: usize = POOL_MAX / 10;

/// Together they sign more than the pool holds.
const ATTACKERS: u64 = 16;
const GAPPED_EACH: u64 = 40;

/// An attacker's price, two hundred times the user's.
const SPAM_PRICE: u128 = 400 * GWEI;
const USER_PRICE: u128 = 2 * GWEI;

/// Blocks after which a user must be served.
const BLOCKS_MAX: u64 = 8;

fn attacker(index: u64) -> Person {
    testing::person(1_000 + index)
}

fn coin() -> U256 {
    U256::from(10).pow(U256::from(18))
}

fn payment(from: Person, nonce: u64, value: U256, price: u128) -> UserTransaction {
    let tx = TxEip1559 {
        chain_id: testing::CHAIN_ID,
        nonce,
        gas_limit: 21_000,
        max_fee_per_gas: price,
        max_priority_fee_per_gas: price / 2,
        to: TxKind::Call(Address::repeat_byte(9)),
        value,
        ..Default::default()
    };
    testing::sign(tx, from.secret)
}

fn user(index: usize) -> Person {
    let (address, secret) = account(index);
    Person { address, secret }
}

/// Sends many in one request; answers with how many were taken, and with what one of the others was told.
fn send_all(net: &Network, node: usize, transactions: &[UserTransaction]) -> (usize, Option<String>) {
    let calls: Vec<Value> = transactions
        .iter()
        .map(|tx| {
            let encoded = hex::encode_prefixed(tx.encoded());
            json!({ "jsonrpc": "2.0", "id": 1, "method": "eth_sendRawTransaction", "params": [encoded] })
        })
        .collect();
    let answers: Vec<Value> =
        serde_json::from_str(&post(&net.nodes[node].address, &json!(calls).to_string())).unwrap();
    let taken = answers.iter().filter(|answer| answer["result"].is_string()).count();
    let refused = answers.iter().find_map(|answer| answer["error"]["message"].as_str());
    (taken, refused.map(str::to_owned))
}

/// Ready and parked transactions of a node.
fn pool(net: &Network, node: usize) -> (usize, usize) {
    let status = net.nodes[node].result("txpool_status", json!([]));
    let count = |name: &str| usize::try_from(number(&status[name])).unwrap();
    (count("pending"), count("queued"))
}

/// Sends a user's payment to a node, and answers with the number of blocks until all nodes have it.
fn is_served(net: &Network, node: usize, payment: &UserTransaction) -> u64 {
    let before = net.nodes[node].height();
    let sent = net.nodes[node].send(payment);
    assert!(sent["result"].is_string(), "v{node} refuses a user who pays {USER_PRICE}: {sent}");
    let included = net.nodes.iter().map(|node| {
        let receipt = wait_for("receipt of the user's payment", || {
            let receipt = node.result("eth_getTransactionReceipt", json!([sent["result"]]));
            (!receipt.is_null()).then_some(receipt)
        });
        number(&receipt["blockNumber"])
    });
    included.max().unwrap().saturating_sub(before)
}

/// Accounts with a coin each sign what cannot run, at a price that nobody will ever charge. It used to fill the pools of
/// all validators for good, so that a user was refused everywhere, and the coins could be moved away afterwards.
#[test]
fn a_flood_of_gapped_transactions_locks_nobody_out() {
    let net = Network::with(300, |genesis, config| {
        config["poolMax"] = json!(POOL_MAX);
        for index in 0..ATTACKERS {
            let address = attacker(index).address.to_string();
            genesis["allocations"][address] = json!({ "balance": format!("{:#x}", coin()) });
        }
    });
    agree_at(&net.nodes, 2);
    let mut taken = 0;
    let mut refusal = None;
    for index in 0..ATTACKERS {
        let one = U256::from(1);
        let gapped: Vec<_> =
            (1..=GAPPED_EACH).map(|nonce| payment(attacker(index), nonce, one, SPAM_PRICE)).collect();
        let (count, refused) = send_all(&net, 0, &gapped);
        taken += count;
        refusal = refusal.or(refused);
    }
    // Long enough for the others to hear of it.
    std::thread::sleep(Duration::from_secs(3));
    let pools: Vec<_> = (0..VALIDATORS).map(|node| pool(&net, node)).collect();
    println!("{taken} of {} taken by v0, (ready, parked) of each: {pools:?}", ATTACKERS * GAPPED_EACH);
    println!("the others were told: {refusal:?}");

    let blocks: Vec<_> = (0..VALIDATORS)
        .map(|node| is_served(&net, node, &payment(user(node), 0, U256::from(1), USER_PRICE)))
        .collect();
    println!("users of v0 to v3 were served after {blocks:?} blocks");
    assert!(blocks.iter().all(|blocks| *blocks <= BLOCKS_MAX), "{blocks:?}");
    assert!(pools.iter().all(|(_, parked)| *parked <= PARKED_MAX), "bounded: {pools:?}");
    assert!(pools[1..].iter().all(|pool| *pool == (0, 0)), "what cannot run is not passed on: {pools:?}");
    assert!(refusal.is_some_and(|refusal| refusal.contains("nonce 0 first")));

    // All coins but the gas go elsewhere; what follows could be paid for no more.
    for index in 0..ATTACKERS {
        let gas = U256::from(21_000) * U256::from(SPAM_PRICE);
        let away = payment(attacker(index), 0, coin() - gas, SPAM_PRICE);
        let (count, refused) = send_all(&net, 0, &[away]);
        assert_eq!(count, 1, "{refused:?}");
    }
    wait_for("empty pool", || (pool(&net, 0) == (0, 0)).then_some(()));
}

/// Authorisations in a transaction, nearly as many as fit, and transactions.
const AUTHORIZATIONS: usize = 1_100;
const LISTS: u64 = 10;

/// A stranger without a coin sends long lists of authorisations: they used to be recovered before anyone asked for the
/// money. Compared with transactions of the same size that have no list.
#[test]
fn authorizations_of_a_stranger_cost_a_validator_nothing() {
    let net = Network::direct(300);
    agree_at(&net.nodes, 2);
    let stranger = testing::person(4_242);
    let signed = testing::authorize(testing::person(5), 0, Address::repeat_byte(7));
    let lists: Vec<_> = (0..LISTS)
        .map(|nonce| {
            let list = vec![signed.clone(); AUTHORIZATIONS];
            let tx: TxEip7702 = testing::eip7702(nonce, Address::ZERO, list, 28_000_000);
            testing::sign(tx, stranger.secret)
        })
        .collect();
    let bytes = lists[0].encoded().len();
    let plain: Vec<_> = (0..LISTS)
        .map(|nonce| testing::call(stranger, nonce, Address::ZERO, vec![1; bytes], 8_000_000))
        .collect();
    // The fastest of each: the machine may be busy with other things for a while.
    let took = |transactions: &[UserTransaction]| {
        let times = transactions.iter().map(|transaction| {
            let begin = Instant::now();
            let refused = net.nodes[0].send(transaction);
            let message = refused["error"]["message"].as_str().unwrap_or_default();
            assert!(message.contains("insufficient funds"), "{refused}");
            begin.elapsed()
        });
        times.min().unwrap()
    };
    let (plain, lists) = (took(&plain), took(&lists));
    println!(
        "{bytes} bytes refused in {plain:?} without a list, in {lists:?} with {AUTHORIZATIONS} authorisations"
    );
    // Recovering a list takes many times as long as anything else that is done with either.
    assert!(lists < 3 * plain + Duration::from_millis(10), "{lists:?} against {plain:?}");
}
