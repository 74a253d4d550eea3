//! Flags that users of anvil type, and what a chain has from its start.

use crate::support::*;
use alloy_primitives::{U256, hex, keccak256};
use serde_json::{Value, json};

const CREATE2_DEPLOYER: &str = "0x4e59b44847b379578588920ca78fbf26c0b4956c";
const MULTICALL3: &str = "0xca11bde05977b3631167028862be2a173976ca11";

fn block(node: &Node, which: &str) -> Value {
    node.result("eth_getBlockByNumber", json!([which, false]))
}

#[test]
fn a_chain_starts_as_its_flags_say() {
    let directory = tempfile::tempdir().unwrap();
    let facts = directory.path().join("facts.json");
    let phrase = "legal winner thank year wave sausage worth useful legal winner thank yellow";
    let node = Node::start(&[
        "-a",
        "3",
        "--balance",
        "7",
        "-m",
        phrase,
        "--gas-limit",
        "40000000",
        "--base-fee",
        "2000000000",
        "--timestamp",
        "1600000000",
        "--no-mining",
        "--auto-impersonate",
        "--host",
        "127.0.0.1",
        "--config-out",
        facts.to_str().unwrap(),
    ]);
    let accounts = node.result("eth_accounts", json!([]));
    assert_eq!(accounts.as_array().unwrap().len(), 3);
    assert_eq!(
        node.balance(accounts[2].as_str().unwrap()),
        U256::from(7) * U256::from(10).pow(U256::from(18))
    );
    let told: Value = serde_json::from_str(&std::fs::read_to_string(&facts).unwrap()).unwrap();
    assert_eq!((&told["accounts"].as_array().unwrap().len(), &told["mnemonic"]), (&3, &json!(phrase)));
    assert_eq!(number(&block(&node, "0x0")["timestamp"]), 1_600_000_000);
    let height = node.height();
    let request = json!([{ "from": ALICE, "to": BOB, "gas": "0x5208", "gasPrice": "0x0" }]);
    assert!(node.call("eth_sendTransaction", request)["error"]["message"].as_str().unwrap().contains("fee"));
    let hash =
        node.result("eth_sendTransaction", json!([{ "from": accounts[0], "to": BOB, "value": "0x1" }]));
    assert_eq!(node.height(), height, "blocks come on request only");
    node.result("evm_mine", json!([]));
    let mined = block(&node, "latest");
    assert_eq!((&mined["transactions"][0], number(&mined["gasLimit"])), (&hash, 40_000_000));
    assert_eq!(number(&mined["baseFeePerGas"]), 2_000_000_000);
    assert!(
        (1_600_000_000..1_600_000_300).contains(&number(&mined["timestamp"])),
        "the clock goes on from there"
    );
}

#[test]
fn accounts_are_kept_in_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("accounts.json");
    let arguments = ["--state", file.to_str().unwrap()];
    let mut node = Node::start(&arguments);
    node.receipt(&node.send(&to_bob(0))["result"]);
    let balance = node.balance(BOB);
    node.signal("-TERM");
    assert!(node.wait().success());
    let again = Node::start(&arguments);
    assert_eq!(again.balance(BOB), balance);
    let missing = run(&["dev", "--port", "0", "--load-state", directory.path().join("no").to_str().unwrap()]);
    let message = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert!(!missing.status.success() && message.contains("--load-state"), "{message}");
}

#[test]
fn flags_that_make_no_sense_are_refused_with_what_is_allowed() {
    for (arguments, expected) in [
        (&["--gas-limit", "1"][..], "10000000..=120000000"),
        (&["--mnemonic", "test test"], "--mnemonic"),
        (&["--no-mining", "--block-time", "1s"], "cannot be used with"),
        (&["--accounts", "0"], "1..=1000"),
        (&["--timestamp", "99999999999999999"], "too far in the future"),
    ] {
        let output = run(&[&["dev", "--port", "0"], arguments].concat());
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && message.contains(expected), "{arguments:?}: {message}");
    }
}

/// A project folder is not filled with a chain, and causes are told once.
#[test]
fn a_directory_with_something_else_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("package.json"), "{}").unwrap();
    let path = directory.path().to_str().unwrap();
    let output = run(&["dev", "--port", "0", "--datadir", path]);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && message.contains("is not empty and holds no chain"), "{message}");
    assert_eq!(std::fs::read_dir(path).unwrap().count(), 1, "nothing was written");
    let log = tempfile::NamedTempFile::new().unwrap();
    let fresh = directory.path().join("chain");
    let (node, _) = Node::start_for_programs(&["--datadir", fresh.to_str().unwrap()], log.as_file());
    assert_eq!(std::fs::read_to_string(log.path()).unwrap(), "", "a first start has nothing to warn of");
    let taken = run(&["dev", "--port", node.address.rsplit(':').next().unwrap()]);
    let message = String::from_utf8_lossy(&taken.stderr).into_owned();
    assert_eq!(message.matches("in use").count(), 1, "{message}");
}

#[test]
fn tools_find_the_contracts_that_they_expect() {
    let node = Node::start(&[]);
    // The deployer: a salt, then init code that returns one byte of code, STOP.
    let init = hex!("600160005360016000f3");
    let data = [&[0; 32][..], &init].concat();
    let request = json!([{ "from": ALICE, "to": CREATE2_DEPLOYER, "data": hex::encode_prefixed(&data), "gas": "0x186a0" }]);
    assert_eq!(node.receipt(&node.result("eth_sendTransaction", request))["status"], "0x1");
    let deployer: alloy_primitives::Address = CREATE2_DEPLOYER.parse().unwrap();
    let made = deployer.create2([0; 32], keccak256(init));
    assert_eq!(node.result("eth_getCode", json!([made, "latest"])), "0x01");
    // getEthBalance(address) of the second account.
    let data = format!("0x4d2301cc{:0>64}", &BOB[2..]);
    let balance = node.result("eth_call", json!([{ "to": MULTICALL3, "data": data }, "latest"]));
    assert_eq!(balance, format!("{:#066x}", node.balance(BOB)));
}
