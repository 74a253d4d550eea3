//! `almanac send` against a real developer chain.

use crate::{
    native::{rotation, signed},
    support::*,
};
use alloy_primitives::{B256, U256, hex};
use almanac_primitives::testing::{
    Person,
    native::{Key, ed_person, threshold},
};
use serde_json::{Value, json};
use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Output};

const SEVEN: &str = "0x0707070707070707070707070707070707070707";
const EIGHT: &str = "0x0808080808080808080808080808080808080808";

/// The second developer account.
fn bob() -> Person {
    Person {
        secret: B256::from(hex!("59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d")),
        address: BOB.parse().unwrap(),
    }
}

fn send(node: &Node, arguments: &[&str]) -> Output {
    run(&[&["send", "--rpc-url", &format!("http://{}", node.address)], arguments].concat())
}

fn sent(node: &Node, arguments: &[&str]) -> String {
    let output = send(node, arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn sent_json(node: &Node, arguments: &[&str]) -> Value {
    serde_json::from_str(&sent(node, &[arguments, &["--json"]].concat())).unwrap()
}

fn refused(output: &Output) -> String {
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn secret_file(directory: &Path, name: &str, secret: &str) -> String {
    let path = directory.join(name);
    fs::write(&path, secret).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_transaction_is_orderless_unless_it_has_a_number() {
    let node = Node::start(&[]);
    let output = sent(&node, &["--dev-account", "0", "--to", SEVEN, "--value", "5", "--nonce", "77"]);
    let lines: Vec<&str> = output.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(lines, ["sent", "from", "kind", "call", "block", "status", "gas", "fee"], "{output}");
    assert!(output.contains(&format!("call       pays 0.000000000000000005 coins to {SEVEN}")), "{output}");
    assert!(output.contains("kind       orderless, nonce 77, expires 20"), "{output}");
    assert!(output.contains("status     success"), "{output}");
    assert_eq!(number(&node.result("eth_getTransactionCount", json!([ALICE, "latest"]))), 0);
    let again = refused(&send(&node, &["--dev-account", "0", "--to", SEVEN, "--nonce", "77"]));
    assert!(again.contains("NonceAlreadyUsed"), "{again}");
    // Two with a number, which the node knows.
    for n in 0..2 {
        let told = sent_json(&node, &["--dev-account", "0", "--to", SEVEN, "--sequence"]);
        let shown = node.result("eth_getTransactionByHash", json!([told["hash"]]));
        assert_eq!((&shown["almanacType"], number(&shown["nonce"])), (&json!("0x72"), n));
        assert_eq!(told["receipt"], node.receipt(&told["hash"]));
    }
    assert_eq!(node.balance(SEVEN), U256::from(5));
}

/// It neither read back nor took amounts, and an address with a wrong digit was paid.
#[test]
fn it_reads_back_what_goes_to_whom() {
    let node = Node::start(&[]);
    let to = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
    let payment = ["--dev-account", "0", "--to", to, "--value", "0.5coins", "--nonce", "7"];
    let before = (node.height(), node.balance(BOB));
    let dry = sent(&node, &[&payment[..], &["--dry-run"]].concat());
    assert!(dry.starts_with("from   0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266\nchain  31337, "), "{dry}");
    assert!(dry.contains(&format!("call   pays 0.5 coins to {to}\n")), "{dry}");
    assert!(dry.contains("kind   orderless, nonce 7, expires 40 s after you agree\n"), "{dry}");
    assert!(dry.ends_with("nothing was sent: leave out --dry-run to send it\n"), "{dry}");
    let told = sent_json(&node, &[&payment[..], &["--dry-run"]].concat());
    assert_eq!(told["calls"][0]["value"], "500000000000000000");
    assert_eq!((node.height(), node.balance(BOB)), before, "nothing was sent");
    let output = sent(&node, &[&payment[..], &["--yes"]].concat());
    assert!(output.contains("gas    ") && output.contains("status     success"), "{output}");
    assert_eq!(node.balance(BOB) - before.1, U256::from(500_000_000_000_000_000u64));
    for words in [
        &["--to", "0x70997970C51812dc3A010C7d01b50e0d17dc79C7"][..],
        &["--call", "0x70997970C51812dc3A010C7d01b50e0d17dc79C7:5"],
        &["--to", SEVEN, "--fee-payer", "0x70997970C51812dc3A010C7d01b50e0d17dc79C7"],
    ] {
        let wrong = refused(&send(&node, &[&["--dev-account", "0"], words].concat()));
        assert!(wrong.contains("WrongChecksum: 0x70997970C51812dc3A010C7d01b50e0d17dc79C7"), "{wrong}");
    }
}

#[test]
fn a_batch_is_all_or_nothing_and_says_which_call_failed() {
    let node = Node::start(&[]);
    let (one, two) = (format!("{SEVEN}:5"), format!("{EIGHT}:6:0x0102"));
    let told = sent_json(&node, &["--dev-account", "0", "--call", &one, "--call", &two]);
    let shown = node.result("eth_getTransactionByHash", json!([told["hash"]]));
    assert_eq!((&shown["calls"][1]["input"], &shown["calls"][1]["value"]), (&json!("0x0102"), &json!("0x6")));
    // The ledger refuses every call.
    let ledger = "0x000000000000000000000000000000000000a1ff";
    let batch = ["--dev-account", "0", "--call", &one, "--call", ledger];
    let estimate = refused(&send(&node, &batch));
    assert!(estimate.contains("it would fail") && estimate.contains("reverted: call 1"), "{estimate}");
    let output = send(&node, &[&batch[..], &["--gas-limit", "200000"]].concat());
    assert!(refused(&output).contains("call 1 failed and undid the others"), "{output:?}");
    assert!(String::from_utf8(output.stdout).unwrap().contains("status     failed"));
    assert_eq!(node.balance(SEVEN), U256::from(5));
    // Calls in a file; a contract is created alone.
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("calls.json");
    fs::write(&file, json!([{ "to": SEVEN, "value": "1" }, { "to": EIGHT, "data": "0x01" }]).to_string())
        .unwrap();
    sent(&node, &["--dev-account", "0", "--calls", file.to_str().unwrap()]);
    assert_eq!(node.balance(SEVEN), U256::from(6));
    let created = sent_json(&node, &["--dev-account", "0", "--call", ":0:0x600160005360016000f3"]);
    let contract = created["receipt"]["contractAddress"].clone();
    assert_eq!(node.result("eth_getCode", json!([contract, "latest"])), "0x01");
    let many = format!(":0:{}", "0x00");
    assert!(
        refused(&send(
            &node,
            &["--dev-account", "0", "--gas-limit", "100000", "--call", &one, "--call", &many]
        ))
        .contains("CreationNotAlone")
    );
}

#[test]
fn a_fee_payer_signs_a_file_and_pays() {
    let node = Node::start(&[]);
    let directory = tempfile::tempdir().unwrap();
    let key = secret_file(directory.path(), "new.key", &"31".repeat(32));
    let file = directory.path().join("tx.json");
    let file = file.to_str().unwrap();
    // An account without anything, of an Ed25519 key, whose gas Bob pays for.
    let output = sent(
        &node,
        &[
            "--key-file",
            &key,
            "--ed25519",
            "--to",
            SEVEN,
            "--fee-payer",
            BOB,
            "--gas-limit",
            "100000",
            "--out",
            file,
        ],
    );
    assert!(output.contains("the fee payer still has to sign"), "{output}");
    let early = refused(&send(&node, &["--file", file]));
    assert!(early.contains("not signed yet by the fee payer"), "{early}");
    let before = node.balance(BOB);
    let told = sent_json(&node, &["--file", file, "--dev-account", "1"]);
    assert_eq!(told["receipt"]["status"], "0x1");
    let price: U256 = serde_json::from_value(told["receipt"]["effectiveGasPrice"].clone()).unwrap();
    let fee = price * U256::from(number(&told["receipt"]["gasUsed"]));
    assert_eq!(before - node.balance(BOB), fee);
    let readable = secret_file(directory.path(), "open.key", &"31".repeat(32));
    fs::set_permissions(&readable, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(refused(&send(&node, &["--key-file", &readable, "--to", SEVEN])).contains("chmod 600"));
    assert!(refused(&send(&node, &["--to", SEVEN])).contains("nobody signs"));
    // The key in the environment.
    let by_variable = |key: &str| {
        let url = format!("http://{}", node.address);
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_almanac"));
        command
            .args(["send", "--rpc-url", &url, "--to", SEVEN, "--no-wait"])
            .env("ALMANAC_KEY", key)
            .output()
            .unwrap()
    };
    assert!(by_variable(ALICE_KEY).status.success());
    let wrong = refused(&by_variable("12"));
    assert!(wrong.contains("ALMANAC_KEY has no key") && !wrong.contains("12"), "{wrong}");
}

/// Two members of a key tree sign one after the other, the first one offline.
#[test]
fn members_of_a_key_tree_add_their_signatures() {
    let node = Node::start(&[]);
    let seed = hex::encode(alloy_primitives::keccak256([&b"ed25519"[..], &1u64.to_be_bytes()].concat()));
    let keys: [Key; 2] = [bob().into(), ed_person(1).into()];
    let tree = threshold(2, &[keys[0].encoded(), keys[1].encoded()]);
    let rotating = signed(&node, rotation(&node, &tree, &keys));
    assert_eq!(node.receipt(&node.send(&rotating)["result"])["status"], "0x1");
    let directory = tempfile::tempdir().unwrap();
    let (key, file) = (secret_file(directory.path(), "ed.key", &seed), directory.path().join("tx.json"));
    let file = file.to_str().unwrap();
    let genesis = node.result("eth_getBlockByNumber", json!(["0x0", false]))["hash"].clone();
    let offline = [
        "send",
        "--offline",
        "--chain-id",
        "31337",
        "--genesis",
        genesis.as_str().unwrap(),
        "--gas-limit",
        "100000",
        "--max-fee",
        "20000000000",
        "--key-file",
        &key,
        "--ed25519",
        "--from",
        ALICE,
        "--to",
        SEVEN,
        "--value",
        "5",
        "--out",
        file,
    ];
    let output = run(&offline);
    assert!(output.status.success(), "{output:?}");
    let alone = refused(&send(&node, &["--file", file]));
    assert!(alone.contains("KeyNotSatisfied"), "{alone}");
    sent(&node, &["--file", file, "--dev-account", "1", "--as", "sender"]);
    assert_eq!(node.balance(SEVEN), U256::from(5));
    // The old key is worth nothing.
    let old = refused(&send(&node, &["--dev-account", "0", "--to", SEVEN, "--gas-limit", "100000"]));
    assert!(old.contains("KeyNotSatisfied"), "{old}");
}

/// The help is compared with what was read and found good. `ALMANAC_BLESS=1` writes it anew.
#[test]
fn the_help_is_as_it_was_read() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/chain/send-help.txt");
    let help = String::from_utf8(run(&["send", "--help"]).stdout).unwrap();
    if std::env::var_os("ALMANAC_BLESS").is_some() {
        fs::write(&golden, &help).unwrap();
    }
    assert_eq!(help, fs::read_to_string(&golden).unwrap());
    let unknown = refused(&run(&["send", "--dev-account", "10", "--to", SEVEN]));
    assert!(unknown.contains("10 is not in 0..10"), "{unknown}");
}
