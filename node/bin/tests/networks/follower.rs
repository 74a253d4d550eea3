//! Nodes without a vote, as real processes on loopback.

use crate::support::{
    cron::{self, Job},
    network::*,
    *,
};
use alloy_consensus::TxLegacy;
use alloy_primitives::{Address, hex};
use almanac_primitives::testing;
use serde_json::{Value, json};
use std::{
    path::Path,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

/// Reads a setting of a configuration.
fn setting(config: &str, name: &str) -> String {
    let json: Value = serde_json::from_str(&std::fs::read_to_string(config).unwrap()).unwrap();
    json[name].as_str().unwrap().to_owned()
}

/// Sends transfers, one after the other, until it is told to stop. Answers with how many.
fn load(address: &str, first: u64) -> (Arc<AtomicBool>, JoinHandle<u64>) {
    let stop = Arc::new(AtomicBool::new(false));
    let (stopped, address) = (stop.clone(), address.to_owned());
    let sender = thread::spawn(move || {
        for nonce in first.. {
            let signed = hex::encode_prefixed(to_bob(nonce).encoded());
            let body =
                json!({ "jsonrpc": "2.0", "id": 1, "method": "eth_sendRawTransaction", "params": [signed] });
            loop {
                if stopped.load(Ordering::Relaxed) {
                    return nonce;
                }
                let answer: Value = serde_json::from_str(&post(&address, &body.to_string())).unwrap();
                thread::sleep(Duration::from_millis(20));
                if answer["result"].is_string() {
                    break;
                }
                // On a machine with more to do, blocks may be slower than this.
                let reason = answer["error"]["message"].as_str().unwrap();
                assert!(reason.contains("100 pending transactions"), "{answer}");
            }
        }
        unreachable!("there is always a next nonce")
    });
    (stop, sender)
}

/// A follower that starts late fetches every block, serves the same RPC, passes transactions on, and comes back
/// after it was killed. The validators do not need it.
#[test]
fn a_follower_fetches_all_blocks_and_serves_them() {
    let directory = tempfile::tempdir().unwrap();
    let configs = with_followers(&directory.path().join("net"), 200, 1);
    set(&configs[4], "sync", Some(json!("blocks")));
    let mut nodes: Vec<Node> = configs[..4].iter().map(|config| start(config)).collect();
    agree_at(&nodes, 3);
    transfer_seen_by_all(&nodes, 0, 0);

    nodes.push(start(&configs[4]));
    for height in 1..=nodes[0].height() {
        agree_at(&nodes, height);
    }
    assert_eq!(nodes[4].balance(BOB), nodes[0].balance(BOB));
    transfer_seen_by_all(&nodes, 4, 1);
    transfer_seen_by_all(&nodes, 2, 2);
    let finality = nodes[4].result("almanac_getFinality", json!(["0x2"]));
    assert!(finality["certificate"].is_string(), "it has the certificates too: {finality}");

    kill_and_start_last(&mut nodes, &configs[4]);
    let height = nodes[0].height();
    agree_at(&nodes, height + 2);
    transfer_seen_by_all(&nodes, 4, 3);
    nodes[4].signal("-TERM");
    assert!(nodes[4].wait().success(), "a follower stops in good order");
}

/// Validators do not talk to a node that they were not told of.
#[test]
fn a_stranger_hears_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let configs = with_followers(&directory.path().join("net"), 200, 1);
    for config in &configs[..4] {
        set(config, "followers", None);
    }
    set(&configs[4], "sync", None);
    let nodes: Vec<Node> = configs.iter().map(|config| start(config)).collect();
    agree_at(&nodes[..4], 10);
    assert_eq!(nodes[4].height(), 0);
}

/// A fifth node that has nothing, while transactions come in, copies the state after a recent block, goes on from
/// there, and serves what it has. Being killed on the way, or later, costs it nothing but time.
#[test]
fn a_fresh_node_copies_the_state_under_load() {
    let directory = tempfile::tempdir().unwrap();
    let configs = with_followers(&directory.path().join("net"), 200, 1);
    let mut nodes: Vec<Node> = configs[..4].iter().map(|config| start(config)).collect();
    agree_at(&nodes, 2);
    let old = transfer_seen_by_all(&nodes, 0, 0);
    let job = make_job(&nodes[0], 1);
    let (stop, sender) = load(&nodes[0].address, 2);
    agree_at(&nodes, 12);

    for delay_ms in [100, 400, 900] {
        kill_after(&configs[4], Duration::from_millis(delay_ms));
    }
    nodes.push(start(&configs[4]));
    let first = first_block(&nodes[4]);
    assert!(first > 10, "it did not fetch all blocks: block {first} is its first");
    check_what_it_lacks(&nodes[4], first, &old);
    check_what_it_has(&nodes[4], &nodes[0], first, &job);
    let height = nodes[4].height();
    for height in first..=height + 5 {
        agree_at(&nodes, height);
    }

    // Killed and started again, it goes on from the same block.
    kill_and_start_last(&mut nodes, &configs[4]);
    assert_eq!(first_block(&nodes[4]), first);
    stop.store(true, Ordering::Relaxed);
    let nonce = sender.join().unwrap();
    let receipt = transfer_seen_by_all(&nodes, 4, nonce);
    let at = json!([BOB, receipt["blockNumber"]]);
    let balance = nodes[0].result("eth_getBalance", at.clone());
    assert_eq!(nodes[4].result("eth_getBalance", at), balance);
    let number = receipt["blockNumber"].as_str().unwrap();
    assert!(nodes[4].result("almanac_getFinality", json!([number]))["certificate"].is_string());
    nodes[4].signal("-TERM");
    assert!(nodes[4].wait().success(), "a follower stops in good order");
    check_commands(&directory.path().join("net/f0/data"), first);
}

/// Who copies a state says so while it does, in its log and where its RPC will be: first that it looks for a final
/// block, which there is none of before the validators run.
#[test]
fn a_copy_can_be_watched() {
    let directory = tempfile::tempdir().unwrap();
    let configs = with_followers(&directory.path().join("net"), 200, 1);
    let address = setting(&configs[4], "rpc");
    let child = launch(&configs[4], "info");
    let follower = Node { child, address, banner: String::new() };
    let health_of = |status: &str| {
        wait_for(&format!("health that says {status}"), || {
            health(&follower.address).filter(|health| health["status"] == status)
        })
    };
    let copying = health_of("copying");
    assert_eq!(copying["phase"], "header and certificate", "{copying}");
    let metrics = page(&follower.address, "/metrics").unwrap();
    assert!(metrics.contains("almanac_copy_phase{phase=\"header and certificate\"} 1"), "{metrics}");

    let _validators: Vec<Node> = configs[..4].iter().map(|config| start(config)).collect();
    assert!(health_of("ok")["block"].as_u64() > Some(0), "the same page, once there is a chain");
    let log = std::fs::read_to_string(log_of(&configs[4])).unwrap();
    let steps = log.lines().filter_map(|line| line.split_once("copying, step ")).map(|(_, step)| step);
    let steps: Vec<char> = steps.filter_map(|step| step.chars().next()).collect();
    assert!(steps.is_sorted() && ('1'..='5').all(|step| steps.contains(&step)), "{log}");
}

/// A follower that was away for longer than its configuration says copies the state again, and goes on from there.
/// Being killed on the way costs time only. One that wants all blocks fetches them, however many there are.
#[test]
fn a_follower_that_is_far_behind_copies_the_state_again() {
    let directory = tempfile::tempdir().unwrap();
    let configs = with_followers(&directory.path().join("net"), 200, 1);
    set(&configs[4], "syncBehindBlocks", Some(json!(20)));
    let mut nodes: Vec<Node> = configs[..4].iter().map(|config| start(config)).collect();
    agree_at(&nodes, 5);
    nodes.push(start(&configs[4]));
    let first = first_block(&nodes[4]);
    kill_and_start_last(&mut nodes, &configs[4]);
    assert_eq!(first_block(&nodes[4]), first, "a few blocks are fetched");

    let left = stay_away(&mut nodes, 30);
    for delay_ms in [200, 600, 1_200] {
        kill_after(&configs[4], Duration::from_millis(delay_ms));
    }
    nodes.push(start(&configs[4]));
    let copied = first_block(&nodes[4]);
    assert!(copied > left + 20, "it left at {left}, and its first block is {copied}");
    let data = directory.path().join("net/f0/data");
    assert!(!data.join("fresh").exists() && !data.join("replacing").exists());
    transfer_seen_by_all(&nodes, 4, 0);
    for height in copied..=nodes[0].height() {
        agree_at(&nodes, height);
    }

    set(&configs[4], "sync", Some(json!("blocks")));
    stay_away(&mut nodes, 30);
    nodes.push(start(&configs[4]));
    assert_eq!(first_block(&nodes[4]), copied, "it keeps what it has");
    let height = nodes[0].height();
    agree_at(&nodes, height);
}

/// A validator that copies the state again has no votes of before there, so it is silent first.
#[test]
fn a_validator_that_is_far_behind_copies_the_state_and_is_silent_first() {
    let directory = tempfile::tempdir().unwrap();
    let configs = new_network(&directory.path().join("net"), 200);
    let mut nodes: Vec<Node> = configs.iter().map(|config| start(config)).collect();
    agree_at(&nodes, 3);
    set(&configs[3], "sync", Some(json!("state")));
    set(&configs[3], "syncBehindBlocks", Some(json!(20)));
    let left = stay_away(&mut nodes, 30);
    nodes.push(start(&configs[3]));
    let role = |node: &Node| health(&node.address).map(|health| health["role"].clone());
    assert_eq!(role(&nodes[3]), Some(json!("silent")));
    assert!(first_block(&nodes[3]) > left + 20);
    // A block that is ten seconds later than its start ends that. It restarts itself, so it is not there for a moment.
    thread::sleep(Duration::from_secs(10));
    wait_for("vote", || (role(&nodes[3]) == Some(json!("validator"))).then_some(()));
    let height = nodes[0].height();
    agree_at(&nodes, height + 5);
}

/// Ends the last node, and lets the others make so many blocks. Answers with the height that it left at.
fn stay_away(nodes: &mut Vec<Node>, blocks: u64) -> u64 {
    let mut last = nodes.pop().unwrap();
    let height = last.height();
    last.signal("-TERM");
    assert!(last.wait().success());
    // Step by step: where a validator is away, its turns take long.
    for height in (height..=height + blocks).step_by(5) {
        agree_at(nodes, height);
    }
    height
}

/// Kills the last node, and starts it again when the others are five blocks on.
fn kill_and_start_last(nodes: &mut Vec<Node>, config: &str) {
    let mut killed = nodes.pop().unwrap();
    killed.signal("-KILL");
    killed.wait();
    let height = nodes[0].height();
    agree_at(nodes, height + 5);
    nodes.push(start(config));
}

/// Makes a job with runs far ahead, signed by Alice with this nonce. Answers with its number.
fn make_job(node: &Node, nonce: u64) -> Value {
    let job = Job::once(node, 3_600).every(3_600, 3);
    let registry: Address = cron::REGISTRY.parse().unwrap();
    let transaction = TxLegacy {
        value: job.value,
        input: job.call().into(),
        gas_limit: 0x0020_0000,
        ..testing::legacy(nonce, registry, 0)
    };
    let signed = testing::sign(transaction, ALICE_KEY.parse().unwrap());
    let hash = node.send(&signed)["result"].clone();
    Job::made(node.receipt(&hash)).0
}

/// What lives in the copied state is there, its schedules listed; and the first block can be looked into.
fn check_what_it_has(node: &Node, validator: &Node, first: u64, job: &Value) {
    let schedule = |node: &Node| node.result("almanac_getSchedule", json!([job]));
    let (found, mut expected) = (schedule(node), schedule(validator));
    assert!(expected["created"]["blockHash"].is_string());
    for unknown in ["blockHash", "transactionHash", "transactionIndex", "time"] {
        expected["created"][unknown] = Value::Null;
    }
    assert_eq!(found, expected, "of the block that made it only the number is known");
    let fees = node.result("eth_feeHistory", json!(["0x40", "latest", []]));
    assert_eq!(number(&fees["oldestBlock"]), first, "{fees}");
    let block = json!([format!("{first:#x}"), { "tracer": "callTracer" }]);
    let traces = |node: &Node| node.result("debug_traceBlockByNumber", block.clone());
    assert_eq!(traces(node), traces(validator));
}

/// Starts a node, and kills it in the middle of whatever it does then.
fn kill_after(config: &str, delay: Duration) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_almanac"))
        .args(["node", "--config", config])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    thread::sleep(delay);
    child.kill().unwrap();
    child.wait().unwrap();
}

/// The first block after the genesis that a node has.
fn first_block(node: &Node) -> u64 {
    let has =
        |height: &u64| !node.result("eth_getBlockByNumber", json!([format!("{height:#x}"), false])).is_null();
    assert!(has(&0), "the genesis is known to everyone");
    (1..=node.height()).find(has).expect("a block")
}

/// What is before the first block is not there, and nothing pretends that it never was.
fn check_what_it_lacks(node: &Node, first: u64, old: &Value) {
    let block = |height: u64| json!([format!("{height:#x}"), true]);
    for height in [1, first - 1] {
        assert_eq!(node.result("eth_getBlockByNumber", block(height)), Value::Null, "block {height}");
    }
    assert_eq!(node.result("eth_getTransactionReceipt", json!([old["transactionHash"]])), Value::Null);
    let balance = node.call("eth_getBalance", json!([BOB, "0x1"]));
    assert!(balance["error"].is_object(), "{balance}");
    let logs = node.call("eth_getLogs", json!([{ "fromBlock": "0x1", "toBlock": "latest" }]));
    assert!(logs["error"]["message"].as_str().unwrap().contains(&format!("from {first} on")), "{logs}");
    let logs = node.call("eth_getLogs", json!([{ "fromBlock": format!("{first:#x}"), "toBlock": "latest" }]));
    assert!(logs["result"].is_array(), "{logs}");
}

/// Commands that need all blocks say that they are not here.
fn check_commands(data: &Path, first: u64) {
    let data = data.to_str().unwrap();
    let rebuilt = run(&["index", "rebuild", "--datadir", data]);
    let said = String::from_utf8_lossy(&rebuilt.stderr);
    assert!(
        !rebuilt.status.success() && said.contains(&format!("lacks the blocks up to {}", first - 1)),
        "{said}"
    );
    let proof = run(&["proof", "get", "--datadir", data, "--account", BOB]);
    assert!(proof.status.success(), "{proof:?}");
}
