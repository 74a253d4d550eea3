//! Forks of a running chain: `almanac dev --fork-url`. The origin is a node of ours; `tests/clients/fork.mjs` forks anvil.

use crate::support::{
    cron::{COUNTER, Job, TARGET, mine_at, now, set_code},
    *,
};
use alloy_primitives::{U256, hex};
use serde_json::{Value, json};

/// Writes its first word of calldata to slot 0, and answers with what was there: PUSH0 SLOAD PUSH0 MSTORE PUSH0
/// CALLDATALOAD PUSH0 SSTORE PUSH1 32 PUSH0 RETURN.
const REGISTER: &str = "0x5f545f525f355f5560205ff3";

/// A second contract of the origin, which no test reads before its node is gone.
const UNREAD: &str = "0x00000000000000000000000000000000000c0de2";

const ZERO: &str = "0x0000000000000000000000000000000000000000000000000000000000000000";

fn url(origin: &Node) -> String {
    format!("http://{}", origin.address)
}

fn fork(origin: &Node, arguments: &[&str]) -> Node {
    Node::start(&[&["--fork-url", &url(origin)], arguments].concat())
}

fn slot_at(node: &Node, address: &str, block: &str) -> U256 {
    node.result("eth_getStorageAt", json!([address, "0x0", block])).as_str().unwrap().parse().unwrap()
}

fn slot(node: &Node) -> u64 {
    slot_at(node, TARGET, "latest").to()
}

/// Calls the target as Alice.
fn call_target(node: &Node, data: &str) -> Value {
    let request = json!([{ "from": ALICE, "to": TARGET, "data": data, "gas": "0x30000" }]);
    let receipt = node.receipt(&node.result("eth_sendTransaction", request));
    assert_eq!(receipt["status"], "0x1", "{receipt}");
    receipt
}

fn word(value: u64) -> String {
    format!("0x{value:064x}")
}

/// A chain with a contract that has the given value in slot 0.
fn origin_with(code: &str, value: u64, arguments: &[&str]) -> Node {
    let origin = Node::start(arguments);
    set_code(&origin, code);
    origin.result("anvil_setStorageAt", json!([TARGET, "0x0", word(value)]));
    origin
}

fn message(answer: &Value) -> &str {
    answer["error"]["message"].as_str().unwrap_or_else(|| panic!("an error: {answer}"))
}

/// What `almanac dev` says when it does not start.
fn refusal(arguments: &[&str]) -> String {
    let output = run(&[&["dev", "--port", "0"], arguments].concat());
    assert!(!output.status.success(), "{arguments:?} started");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The deed that no other fork can do: a contract of the origin is scheduled by our door, and runs.
#[test]
fn fork_20_a_schedule_runs_a_contract_of_the_origin() {
    let origin = origin_with(COUNTER, 41, &["--chain-id", "4242", "--timestamp", "1700000000"]);
    let sent = number(&origin.result("eth_getTransactionCount", json!([ALICE, "latest"])));
    call_target(&origin, "0x");
    Job::once(&origin, 10_000).make(&origin);
    let pinned = origin.height();
    call_target(&origin, "0x");

    let fork = fork(&origin, &["--fork-block", &pinned.to_string()]);
    assert!(fork.banner.contains(&format!("fork of   block {pinned} of chain 4242")), "{}", fork.banner);
    assert_eq!(number(&fork.result("eth_chainId", json!([]))), 4242, "the origin's, as anvil does");
    assert!((1_700_000_000..1_700_000_100).contains(&now(&fork)), "the clock goes on from the block");
    assert_eq!(slot(&fork), 42, "as of the block, not of later ones");
    let nonce = number(&fork.result("eth_getTransactionCount", json!([ALICE, "latest"])));
    assert_eq!(nonce, sent + 2, "what Alice deploys must not meet what she deployed there");
    assert_eq!(fork.result("eth_getCode", json!([TARGET, "latest"])), COUNTER);
    let waiting = fork.result("almanac_listSchedules", json!([{}]));
    assert_eq!(waiting["schedules"], json!([]), "the origin's schedules stay there");

    let call = fork.result("eth_call", json!([{ "to": TARGET, "data": "0x" }, "latest"]));
    assert_eq!((call, slot(&fork)), (json!("0x"), 42), "a call changes nothing");
    let (id, _) = Job::once(&fork, 60).every(60, 2).make(&fork);
    fork.result("evm_increaseTime", json!([130]));
    assert_eq!(slot(&fork), 44);
    let schedule = fork.result("almanac_getSchedule", json!([id]));
    assert_eq!(schedule["runs"], json!("0x2"), "{schedule}");
    assert_eq!(slot(&origin), 43, "nothing goes back to the origin");

    let receipt = call_target(&fork, "0x");
    let trace = fork.result(
        "debug_traceTransaction",
        json!([receipt["transactionHash"], { "tracer": "prestateTracer", "tracerConfig": { "diffMode": true } }]),
    );
    assert_eq!(trace["post"][TARGET]["storage"][ZERO], word(45), "{trace}");
    let info = fork.result("anvil_nodeInfo", json!([]));
    assert_eq!(info["forkConfig"]["forkBlockNumber"], json!(pinned), "{info}");
    let metadata = fork.result("hardhat_metadata", json!([]));
    assert_eq!(metadata["forkedNetwork"]["chainId"], json!(4242), "{metadata}");
    assert_eq!(
        metadata["forkedNetwork"]["forkBlockHash"],
        origin.result("eth_getBlockByNumber", json!([format!("{pinned:#x}"), false]))["hash"]
    );
}

/// A slot that a block of the fork sets to zero is zero, although the origin has a value; going back shows it again.
#[test]
fn fork_21_edits_snapshots_and_old_blocks_over_an_origin() {
    let origin = origin_with(REGISTER, 5, &[]);
    origin.result("anvil_setBalance", json!([TARGET, "0x64"]));
    let fork = fork(&origin, &["--chain-id", "31338"]);
    assert_eq!(number(&fork.result("eth_chainId", json!([]))), 31_338);
    let before = format!("{:#x}", fork.height());
    let outer = fork.result("evm_snapshot", json!([]));
    call_target(&fork, ZERO);
    assert_eq!(slot(&fork), 0);
    let answer = fork.result("eth_call", json!([{ "to": TARGET, "data": ZERO }, "latest"]));
    assert_eq!(answer, ZERO);
    let inner = fork.result("evm_snapshot", json!([]));
    call_target(&fork, &word(9));
    fork.result("anvil_setBalance", json!([TARGET, "0x0"]));
    assert_eq!((slot(&fork), fork.balance(TARGET)), (9, U256::ZERO));
    assert_eq!(slot_at(&fork, TARGET, &before), U256::from(5), "as it was before our blocks");
    assert_eq!(fork.result("evm_revert", json!([inner])), true);
    assert_eq!((slot(&fork), fork.balance(TARGET)), (0, U256::from(100)), "removed by us, not by the origin");
    let answer = fork.result("eth_call", json!([{ "to": TARGET, "data": ZERO }, "latest"]));
    assert_eq!(answer, ZERO);
    assert_eq!(fork.result("evm_revert", json!([outer])), true);
    assert_eq!(slot(&fork), 5);
    call_target(&fork, &word(7));
    assert_eq!((slot(&fork), slot(&origin)), (7, 5));
    fork.result("anvil_setCode", json!([TARGET, COUNTER]));
    call_target(&fork, "0x");
    assert_eq!(slot(&fork), 8, "other code over the origin's storage");
    fork.result("anvil_reset", json!([]));
    assert_eq!(slot(&fork), 5);
}

/// What was read before needs no origin. What was not fails with the reason, and the chain goes on.
#[test]
fn fork_22_a_restart_needs_no_origin_for_what_was_read() {
    let mut origin = origin_with(COUNTER, 1, &[]);
    origin.result("anvil_setCode", json!([UNREAD, COUNTER]));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("fork");
    let path = path.to_str().unwrap();
    let mut node = fork(&origin, &["--datadir", path]);
    call_target(&node, "0x");
    let root = node.result("eth_getBlockByNumber", json!(["latest", false]))["stateRoot"].clone();
    node.signal("-TERM");
    assert!(node.wait().success());
    let digest = digest_line(&run(&["index", "digest", "--datadir", path]));
    assert_eq!(
        digest_line(&run(&["index", "rebuild", "--datadir", path])),
        digest,
        "offline, from the blocks"
    );

    let address = url(&origin);
    origin.signal("-KILL");
    origin.wait();
    let node = Node::start(&["--datadir", path, "--fork-url", &address]);
    assert_eq!(node.result("eth_getBlockByNumber", json!(["latest", false]))["stateRoot"], root);
    call_target(&node, "0x");
    assert_eq!(slot(&node), 3);
    let refused = node.call("eth_getBalance", json!([UNREAD, "latest"]));
    assert!(message(&refused).contains("the origin cannot be reached, after 4 attempts"), "{refused}");
    drop(node);

    let node = Node::start(&["--datadir", path]);
    assert!(node.banner.contains("without a node"), "{}", node.banner);
    let refused = node.call("eth_call", json!([{ "to": UNREAD }, "latest"]));
    assert!(message(&refused).contains("start it with --fork-url"), "{refused}");
    // A run that needs such a value holds up its block, and does not end the chain.
    node.result("evm_mine", json!([]));
    let unread = Job { target: UNREAD.parse().unwrap(), ..Job::once(&node, 4) };
    unread.make(&node);
    let height = node.height();
    std::thread::sleep(std::time::Duration::from_secs(6));
    assert_eq!(node.height(), height, "the block is tried again, and comes when the value does");
    let refused = node.call("evm_increaseTime", json!([100]));
    assert!(message(&refused).contains("start it with --fork-url"), "{refused}");
    assert_eq!(slot(&node), 3, "it still answers");
    node.result("evm_snapshot", json!([]));
    drop(node);
    let backup = directory.path().join("backup");
    let backup = backup.to_str().unwrap();
    assert!(run(&["db", "export", "--datadir", path, "--out", backup]).status.success());
    let other = directory.path().join("other");
    let refused = run(&["db", "import", "--file", backup, "--datadir", other.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("copy its data directory"), "{said}");
    let refused = refusal(&["--datadir", path, "--fork-url", &address, "--fork-block", "77"]);
    assert!(refused.contains("holds a fork of block"), "{refused}");
}

#[test]
fn fork_23_what_cannot_be_forked_is_refused_with_what_to_do() {
    let origin = origin_with(COUNTER, 1, &["--history", "1"]);
    let address = url(&origin);
    for (arguments, expected) in [
        (&["--fork-url", "http://127.0.0.1:1"][..], "the origin cannot be reached, after 4 attempts"),
        (&["--fork-url", "https://example.com"], "https:// is not supported"),
        (&["--fork-url", &address, "--fork-block", "99"], "has no block 99"),
        (&["--fork-block", "1"], "--fork-url"),
    ] {
        let said = refusal(arguments);
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
    // Blocks go on until the state of the forked one is dropped.
    let fork = fork(&origin, &[]);
    for second in 1..8 {
        let next = now(&origin) + second;
        mine_at(&origin, next);
    }
    let refused = fork.call("eth_getBalance", json!([UNREAD, "latest"]));
    assert!(message(&refused).contains("an archive node"), "{refused}");

    let directory = tempfile::tempdir().unwrap();
    let plain = directory.path().join("plain");
    let plain = plain.to_str().unwrap();
    drop(Node::start(&["--datadir", plain]));
    let said = refusal(&["--datadir", plain, "--fork-url", &address]);
    assert!(said.contains("holds a chain that is no fork"), "{said}");
    let forked = directory.path().join("forked");
    let forked = forked.to_str().unwrap();
    drop(Node::start(&["--datadir", forked, "--fork-url", &address]));
    let other = Node::start(&["--timestamp", "1600000000"]);
    (0..origin.height()).for_each(|_| drop(other.result("evm_mine", json!([]))));
    let said = refusal(&["--datadir", forked, "--fork-url", &url(&other)]);
    assert!(said.contains("it is another chain, or one that was reorganised"), "{said}");
    let other = Node::start(&["--chain-id", "77"]);
    let said = refusal(&["--datadir", forked, "--fork-url", &url(&other)]);
    assert!(said.contains("has the chain id 77"), "{said}");
}

/// Doors are ours on a fork of our own chain too, and a developer's accounts hold what the flags say.
#[test]
fn fork_24_doors_and_accounts_are_our_own() {
    let origin = Node::start(&[]);
    origin.result("anvil_setBalance", json!([BOB, "0x7"]));
    // A delegation of Bob's, which must not take what the fork gives him.
    origin.result("anvil_setCode", json!([BOB, format!("0xef0100{}", hex::encode([7; 20]))]));
    let fork = fork(&origin, &["--balance", "3"]);
    assert_eq!(fork.balance(BOB), U256::from(3) * U256::from(10).pow(U256::from(18)));
    assert_eq!(fork.result("eth_getCode", json!([BOB, "latest"])), "0x");
    let code = |node: &Node, address: &str| node.result("eth_getCode", json!([address, "latest"]));
    let multicall = "0xca11bde05977b3631167028862be2a173976ca11";
    assert_eq!(code(&fork, multicall), code(&origin, multicall));
    let (id, _) = Job { target: BOB.parse().unwrap(), ..Job::once(&fork, 30) }.make(&fork);
    fork.result("evm_increaseTime", json!([40]));
    let runs = fork.result("almanac_getSchedule", json!([id]))["runs"].clone();
    assert_eq!(runs, json!("0x1"));
}
