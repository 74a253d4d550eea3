//! Proofs from a network of four, checked when it is gone: from its genesis file and nothing else.

#![allow(clippy::needless_pass_by_value, reason = "requests are written in place")]

mod support;

use alloy_primitives::{Address, TxKind, U256, hex};
use alloy_sol_types::SolCall;
use almanac_primitives::testing;
use serde_json::{Value, json};
use std::{
    fs::{self, File},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};
use support::{
    cron::{ICronRegistry, REGISTRY, TARGET},
    *,
};
use tempfile::TempDir;

/// Longest wait for anything, on a machine with other work.
const PATIENCE: Duration = Duration::from_secs(60);

/// A network on loopback that one command runs.
struct Network {
    directory: TempDir,
    up: Child,
    address: String,
}

impl Network {
    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let first = free_ports(8);
        new_network(&directory.path().join("net"), first);
        let said = File::create(directory.path().join("said")).unwrap();
        let up = Command::new(env!("CARGO_BIN_EXE_almanac"))
            .args(["network", "up", "--dir", directory.path().join("net").to_str().unwrap()])
            .stdout(said)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { directory, up, address: format!("127.0.0.1:{}", first + 4) }
    }

    fn genesis(&self) -> PathBuf {
        self.directory.path().join("net/genesis.json")
    }

    /// The result of a call to the first validator, or nothing where it does not answer.
    fn try_result(&self, method: &str, params: Value) -> Option<Value> {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let answer: Value = serde_json::from_str(&try_post(&self.address, &body.to_string()).ok()?).ok()?;
        assert!(answer["error"].is_null(), "{method}: {answer}");
        Some(answer["result"].clone())
    }

    fn result(&self, method: &str, params: Value) -> Value {
        self.try_result(method, params).expect("the validator answers")
    }

    fn send(&self, nonce: u64, to: &str, value: u64, input: Vec<u8>) -> Value {
        let to = TxKind::Call(to.parse().unwrap());
        let transaction =
            testing::sign(testing::eip1559(nonce, to, value, input, 2_000_000), ALICE_KEY.parse().unwrap());
        let hash =
            self.result("eth_sendRawTransaction", json!([hex::encode_prefixed(transaction.encoded())]));
        let receipt = wait_for("receipt", || {
            let receipt = self.result("eth_getTransactionReceipt", json!([hash]));
            (!receipt.is_null()).then_some(receipt)
        });
        assert_eq!(receipt["status"], "0x1", "{receipt}");
        receipt
    }

    /// A job that runs in two seconds and then every minute.
    fn schedule(&self, nonce: u64) -> String {
        let last = self.result("eth_getBlockByNumber", json!(["latest", false]));
        let call = ICronRegistry::scheduleWithCall {
            target: TARGET.parse().unwrap(),
            data: hex!("01020304").into(),
            nextRunAt: U256::from(number(&last["timestamp"]) + 2),
            intervalSec: U256::from(60),
            maxRuns: U256::ZERO,
            gasLimit: U256::from(100_000),
            refundTo: ALICE.parse().unwrap(),
            options: U256::ZERO,
        };
        let receipt = self.send(nonce, REGISTRY, 1_500_000_000_000_000, call.abi_encode());
        let number: U256 = receipt["logs"][0]["topics"][1].as_str().unwrap().parse().unwrap();
        let id = self.result("almanac_getSchedule", json!([format!("{number:#x}")]))["id"].clone();
        id.as_str().unwrap().to_owned()
    }

    /// Gets a proof with the command, and answers with the file.
    fn prove(&self, name: &str, what: &[&str]) -> PathBuf {
        let path = self.directory.path().join(name);
        let rpc = format!("http://{}", self.address);
        let out = path.to_str().unwrap();
        let said = run(&[&["proof", "get", "--rpc", &rpc, "--out", out], what].concat());
        assert!(said.status.success() && said.stderr.is_empty(), "{what:?}: {said:?}");
        path
    }

    /// Stops everything. What was proven stays.
    fn stop(&mut self) {
        let pid = self.up.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &pid]).status();
        let begin = Instant::now();
        while matches!(self.up.try_wait(), Ok(None)) && begin.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Network {
    /// Asked first: killed, it would leave its validators behind.
    fn drop(&mut self) {
        if matches!(self.up.try_wait(), Ok(None)) {
            self.stop();
        }
        let _ = self.up.kill();
        let _ = self.up.wait();
    }
}

fn new_network(directory: &Path, first: u16) {
    let (p2p, rpc) = (first.to_string(), (first + 4).to_string());
    let path = directory.to_str().unwrap();
    let made = run(&[
        "network",
        "new",
        "--dir",
        path,
        "--p2p-port",
        &p2p,
        "--rpc-port",
        &rpc,
        "--block-time-ms",
        "200",
    ]);
    assert!(made.status.success(), "{made:?}");
}

/// The first of so many ports in a row that nobody uses now, away from where other tests look first.
fn free_ports(count: u16) -> u16 {
    let start = 33_000 + u16::try_from(std::process::id() % 20_000).unwrap();
    let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    (start..60_000)
        .step_by(usize::from(count))
        .find(|first| (*first..first + count).all(is_free))
        .expect("free ports")
}

fn wait_for<T>(what: &str, mut check: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = check() {
            return found;
        }
        assert!(begin.elapsed() < PATIENCE, "no {what} after {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// What the command says of a file: that it holds, or why not.
fn judge(proof: &Path, genesis: &Path) -> Result<String, String> {
    let said =
        run(&["proof", "verify", "--proof", proof.to_str().unwrap(), "--genesis", genesis.to_str().unwrap()]);
    match said.status.code() {
        Some(0) => {
            assert!(said.stderr.is_empty(), "{said:?}");
            Ok(String::from_utf8(said.stdout).unwrap())
        }
        Some(1) => Err(String::from_utf8(said.stderr).unwrap()),
        other => panic!("{other:?}: {said:?}"),
    }
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Everything that the tests prove, got while the network ran.
struct Files {
    account: PathBuf,
    slot: PathBuf,
    schedule: PathBuf,
    span: PathBuf,
    run: PathBuf,
    transfer: PathBuf,
}

fn collect(network: &Network) -> (Files, String, Value) {
    wait_for("network", || {
        network.try_result("eth_blockNumber", json!([])).filter(|height| number(height) > 1)
    });
    let transfer = network.send(0, BOB, 1, Vec::new());
    let id = network.schedule(1);
    let ran = wait_for("run", || network.result("almanac_getRuns", json!([id]))["runs"].get(0).cloned());
    assert_eq!(ran["success"], true, "{ran}");
    let due = network.result("almanac_getSchedule", json!([id]))["nextRun"]["ms"].clone();
    let due = number(&due);
    let hash = |receipt: &Value| receipt["transactionHash"].as_str().unwrap().to_owned();
    let ledger = "0x000000000000000000000000000000000000a1ff";
    let schedule = network.prove("schedule.json", &["--schedule", &id]);
    let head_slot = read(&schedule)["values"][0]["key"]["slot"].as_str().unwrap().to_owned();
    let files = Files {
        account: network.prove("account.json", &["--account", BOB]),
        slot: network.prove("slot.json", &["--account", ledger, "--slot", &head_slot]),
        span: network.prove("span.json", &["--span", &format!("cron,{},{}", due - 1_000, due + 1_000)]),
        run: network.prove("run.json", &["--run", &hash(&ran["receipt"])]),
        transfer: network.prove("transfer.json", &["--transaction", &hash(&transfer)]),
        schedule,
    };
    (files, id, ran["receipt"].clone())
}

/// The balance, the schedule, the run and the span are shown with no node anywhere, and every forgery is refused with
/// its reason.
#[test]
fn proofs_outlive_the_network_and_forgeries_fail() {
    let mut network = Network::start();
    let (files, id, receipt) = collect(&network);
    let above = {
        let height = number(&receipt["blockNumber"]);
        [height + 1, height + 2].map(|height| {
            wait_for("finality", || {
                let finality = network.result("almanac_getFinality", json!([format!("{height:#x}")]));
                (!finality.is_null()).then_some(finality)
            })
        })
    };
    let said = fs::read_to_string(network.directory.path().join("said")).unwrap();
    assert!(said.contains(&format!("due {id} at 20")), "`network up` says what is due: {said}");
    let refused = run(&[
        "proof",
        "get",
        "--rpc",
        &format!("http://{}", network.address),
        "--run",
        receipt["blockHash"].as_str().unwrap(),
    ]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("transaction not found"), "{refused:?}");
    network.stop();
    let gone = run(&["proof", "get", "--rpc", &format!("http://{}", network.address), "--account", BOB]);
    assert_eq!(gone.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&gone.stderr).contains("no node answers"), "{gone:?}");

    all_hold(&files, &network.genesis(), &id);
    from_a_stopped_validator(&network, &id);
    below_a_certified_block(&files.run, &network.genesis(), &above);
    wrong_genesis(&files.account, &network);
    forged_values(&files, &network.genesis());
    forged_finality(&files, &network.genesis());
    omitted_leaf_and_other_span(&files.span, &network.genesis());
    forged_runs(&files, &network.genesis());
}

fn all_hold(files: &Files, genesis: &Path, id: &str) {
    let balance = "10000.000000000000000001 coins (10000000000000000000001 wei)";
    let run = format!("Proven: run 0 of schedule {id} is in block");
    let schedule = format!("Proven: schedule {id} after block");
    let cases: [(&Path, &[&str]); 6] = [
        (&files.account, &["Proven: account 0x70997970", balance]),
        (&files.slot, &["Proven: slot", "of 0x000000000000000000000000000000000000A1Ff"]),
        (
            &files.schedule,
            &[
                &schedule,
                "owner       0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
                "target      0x00000000000000000000000000000000000c0dE1",
                "lane        cron",
                "status      pending",
                "runs so far 1",
                "last run    succeeded",
                "how often   every 60000 ms, while the escrow pays",
                "escrow      0.001",
                "next due    20",
            ],
        ),
        (
            &files.span,
            &["Proven: what is due in the cron lane", "and nothing else", &format!("schedule {id}")],
        ),
        (&files.run, &[&run, "result      succeeded", "calldata    0x01020304"]),
        (&files.transfer, &["Proven: a transaction is in block", "gas used    21000"]),
    ];
    for (path, expected) in cases {
        let words = judge(path, genesis).unwrap();
        for part in expected {
            assert!(words.contains(part), "{part:?} is not in:\n{words}");
        }
        let signed =
            ["3 of 4", "4 of 4"].map(|count| format!("was signed by {count} validators of chain 31337."));
        let is_signed = signed.iter().any(|sentence| words.contains(sentence));
        assert!(words.contains("Final: block ") && is_signed, "{words}");
    }
}

/// The archive has the certificate of the last block, if that one got its own.
fn from_a_stopped_validator(network: &Network, id: &str) {
    let path = network.directory.path().join("offline.json");
    let data = network.directory.path().join("net/v0/data");
    let said = run(&[
        "proof",
        "get",
        "--datadir",
        data.to_str().unwrap(),
        "--schedule",
        id,
        "--out",
        path.to_str().unwrap(),
    ]);
    assert!(said.status.success(), "{said:?}");
    let judged = judge(&path, &network.genesis());
    let is_final = judged.as_ref().is_ok_and(|words| words.contains("Final: block"));
    let is_honest = judged.as_ref().is_err_and(|error| error.contains("does not say why its block is final"));
    assert!(is_final || is_honest, "{judged:?}");
}

/// A later certificate covers the blocks below it, as long as the headers lead down to them without a gap.
fn below_a_certified_block(run: &Path, genesis: &Path, above: &[Value; 2]) {
    let whole = read(run);
    let own = whole["finality"]["headers"][0].clone();
    let headers = json!([own, above[0]["headers"][0], above[1]["headers"][0]]);
    let mut later = whole;
    later["finality"]["headers"] = headers;
    later["finality"]["certificate"] = above[1]["certificate"].clone();
    let words = judged(&later, run, genesis).unwrap();
    assert!(words.contains("comes before block"), "{words}");

    let mut gap = later.clone();
    gap["finality"]["headers"].as_array_mut().unwrap().remove(1);
    expect(&gap, run, genesis, "does not name the header before it as its parent");
    let mut short = later.clone();
    short["finality"]["headers"].as_array_mut().unwrap().pop();
    expect(&short, run, genesis, "the headers end at");
    let mut empty = later;
    empty["finality"]["headers"] = json!([]);
    expect(&empty, run, genesis, "has no header");
}

fn wrong_genesis(account: &Path, network: &Network) {
    let other = network.directory.path().join("other");
    new_network(&other, free_ports(8));
    let error = judge(account, &other.join("genesis.json")).unwrap_err();
    assert!(error.contains("is not shown to be final on chain 31337 of"), "other validators: {error}");
    assert!(error.contains("not by the 4 validators of this genesis"), "{error}");

    // The same validators, and somebody a little richer.
    let mut richer = read(&network.genesis());
    richer["allocations"]["0x00000000000000000000000000000000000000ff"] = json!({ "balance": "0x1" });
    let path = network.directory.path().join("richer.json");
    fs::write(&path, richer.to_string()).unwrap();
    let error = judge(account, &path).unwrap_err();
    assert!(error.contains("not by the 4 validators of this genesis"), "another start: {error}");

    let missing = judge(account, &network.directory.path().join("no.json")).unwrap_err();
    assert!(missing.contains("cannot read"), "{missing}");
    let no_genesis = judge(account, account).unwrap_err();
    assert!(no_genesis.contains("is no genesis file"), "{no_genesis}");
}

fn forged_values(files: &Files, genesis: &Path) {
    let whole = read(&files.account);
    let mut richer = whole.clone();
    let value = richer["values"][0]["value"].as_str().unwrap().to_owned();
    let greedy = flipped(&value, value.len() / 2 - 2);
    richer["values"][0]["value"] = json!(greedy);
    expect(&richer, &files.account, genesis, "another value than its proof has");
    let encoded = richer["values"][0]["encoded"].as_str().unwrap().to_owned();
    let consistent = encoded.replace(value.trim_start_matches("0x"), greedy.trim_start_matches("0x"));
    assert_ne!(consistent, encoded);
    richer["values"][0]["encoded"] = json!(consistent);
    expect(&richer, &files.account, genesis, "does not lead from Account");

    let mut header = whole.clone();
    let encoded = header["header"]["encoded"].as_str().unwrap().to_owned();
    header["header"]["encoded"] = json!(flipped(&encoded, 60));
    expect(&header, &files.account, genesis, "other facts than its header has");

    // A proof of an earlier block, with its own header and finality.
    let other = read(&files.transfer);
    let mut mixed = whole.clone();
    mixed["header"] = other["header"].clone();
    mixed["finality"] = other["finality"].clone();
    expect(&mixed, &files.account, genesis, "the proof is for block");
    let mut foreign = whole.clone();
    foreign["finality"] = other["finality"].clone();
    expect(&foreign, &files.account, genesis, "begins with another block");

    for format in ["almanac-proof-1", "almanac-proof-3"] {
        let mut version = whole.clone();
        version["format"] = json!(format);
        expect(&version, &files.account, genesis, "is of another version");
    }
    let mut schedule = read(&files.schedule);
    schedule["claim"]["schedule"] = json!("77-0-0");
    expect(&schedule, &files.schedule, genesis, "was asked for");
    schedule["claim"]["schedule"] = read(&files.schedule)["claim"]["schedule"].clone();
    schedule["values"].as_array_mut().unwrap().swap(0, 1);
    expect(&schedule, &files.schedule, genesis, "was asked for");
}

fn forged_finality(files: &Files, genesis: &Path) {
    let whole = read(&files.account);
    let certificate = whole["finality"]["certificate"].as_str().unwrap().to_owned();
    let forge = |certificate: String, reason: &str| {
        let mut forged = whole.clone();
        forged["finality"]["certificate"] = json!(certificate);
        expect(&forged, &files.account, genesis, reason);
    };
    forge(two_signatures(&certificate), "has 2 signatures: 3 of the 4 validators are a quorum");
    forge(flipped(&certificate, certificate.len() / 2 - 3), "not by the 4 validators");
    forge("0x".to_owned(), "these 0 bytes are no certificate");

    let mut none = whole.clone();
    none["finality"] = Value::Null;
    expect(&none, &files.account, genesis, "does not say why its block is final");
    let mut named = whole.clone();
    named["finality"]["number"] = json!("0x1");
    expect(&named, &files.account, genesis, "the file says that block 1");
    let other = read(&files.transfer);
    let mut borrowed = whole.clone();
    borrowed["finality"]["certificate"] = other["finality"]["certificate"].clone();
    expect(&borrowed, &files.account, genesis, "the certificate is for");
}

fn omitted_leaf_and_other_span(span: &Path, genesis: &Path) {
    let whole = read(span);
    let mut silent = whole.clone();
    silent["entries"] = json!([]);
    expect(&silent, span, genesis, "something else is due than its leaves have");
    let mut omitted = whole.clone();
    omitted["values"] = json!([]);
    expect(&omitted, span, genesis, "no leaf answers for the beginning of the span");
    let mut twice = whole.clone();
    let leaf = twice["values"][0].clone();
    twice["values"].as_array_mut().unwrap().push(leaf);
    expect(&twice, span, genesis, "does not begin where the one before it ends");
    let mut lane = whole.clone();
    lane["claim"]["lane"] = json!("market");
    expect(&lane, span, genesis, "something else is due");
    let mut backwards = whole;
    backwards["claim"]["to"] = json!("0x0");
    expect(&backwards, span, genesis, "before it begins");
}

fn forged_runs(files: &Files, genesis: &Path) {
    let whole = read(&files.run);
    let bytes = |value: &Value| value.as_str().unwrap().to_owned();
    let mut result = whole.clone();
    let receipt = bytes(&result["receipt"]["encoded"]);
    result["receipt"]["encoded"] = json!(flipped(&receipt, receipt.len() / 2 - 3));
    expect(&result, &files.run, genesis, "does not lead from receipt");
    let mut target = whole.clone();
    let transaction = bytes(&target["receipt"]["transaction"]);
    target["receipt"]["transaction"] = json!(flipped(&transaction, transaction.len() / 2 - 3));
    expect(&target, &files.run, genesis, "the receipt is that of transaction");
    let mut place = whole.clone();
    place["receipt"]["index"] = json!("0x0");
    expect(&place, &files.run, genesis, "does not lead from receipt 0");
    let mut huge = whole.clone();
    huge["receipt"]["index"] = json!("0x100000000");
    expect(&huge, &files.run, genesis, "not below 2^32");
    let mut hash = whole;
    hash["claim"]["hash"] = json!(alloy_primitives::B256::ZERO);
    expect(&hash, &files.run, genesis, "its receipt is that of");
    let mut run = read(&files.transfer);
    run["claim"]["kind"] = json!("run");
    expect(&run, &files.transfer, genesis, "is no run of a schedule");
}

fn judged(proof: &Value, beside: &Path, genesis: &Path) -> Result<String, String> {
    let path = beside.with_extension("forged.json");
    fs::write(&path, proof.to_string()).unwrap();
    judge(&path, genesis)
}

fn expect(forged: &Value, beside: &Path, genesis: &Path, reason: &str) {
    let error = judged(forged, beside, genesis).expect_err(reason);
    assert!(error.contains(reason), "{reason:?} is not in: {error}");
}

/// The bytes with one bit changed.
fn flipped(bytes: &str, position: usize) -> String {
    let mut bytes = hex::decode(bytes).unwrap();
    bytes[position] ^= 1;
    hex::encode_prefixed(bytes)
}

/// A certificate without its last signatures. It ends with a bitmap of those who signed, in one byte for four, their
/// number, and 64 bytes for each.
fn two_signatures(certificate: &str) -> String {
    let mut bytes = hex::decode(certificate).unwrap();
    let count = (3..=4).find(|count| bytes[bytes.len() - 64 * count - 1] == *count as u8).unwrap();
    let place = bytes.len() - 64 * count - 1;
    assert_eq!(bytes[place - 1].count_ones() as usize, count);
    while bytes[place - 1].count_ones() > 2 {
        let last = bytes[place - 1].ilog2();
        bytes[place - 1] ^= 1 << last;
    }
    bytes[place] = 2;
    bytes.truncate(place + 1 + 2 * 64);
    hex::encode_prefixed(bytes)
}

/// Whoever has no validators gets proofs without finality, and is told so.
#[test]
fn a_developers_chain_proves_runs_and_values_without_finality() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("chain");
    let node = Node::start(&["--datadir", data.to_str().unwrap()]);
    let receipt = node.receipt(&node.send(&to_bob(0))["result"]);
    let (hash, rpc) = (receipt["transactionHash"].as_str().unwrap(), format!("http://{}", node.address));
    for (what, expected) in [
        (["--account", BOB], "Proven: account"),
        (["--transaction", hash], "Proven: a transaction is in block 1"),
    ] {
        let path = directory.path().join("proof.json");
        let out = path.to_str().unwrap();
        let said = run(&[&["proof", "get", "--rpc", &rpc, "--out", out], &what[..]].concat());
        assert!(said.status.success(), "{said:?}");
        assert!(String::from_utf8_lossy(&said.stderr).contains("has no validators"), "{said:?}");
        let block = receipt["blockHash"].as_str().unwrap();
        let said = run(&["proof", "verify", "--proof", out, "--block-hash", block]);
        let words = String::from_utf8_lossy(&said.stdout).into_owned();
        assert!(words.contains(expected) && words.contains("whose hash you gave"), "{said:?}");
        let said = run(&["proof", "verify", "--proof", out]);
        assert!(String::from_utf8_lossy(&said.stdout).contains("final was not checked"), "{said:?}");
        let error = judge(&path, &data.join("genesis.json")).unwrap_err();
        assert!(error.contains("nobody signs the blocks of chain 31337"), "{error}");
    }
    let none = run(&["proof", "get", "--rpc", &rpc, "--span", "cron,1,2"]);
    assert!(String::from_utf8_lossy(&none.stderr).contains("nothing was ever scheduled here"), "{none:?}");
    let absent = run(&["proof", "get", "--rpc", &rpc, "--account", &Address::repeat_byte(9).to_string()]);
    assert!(String::from_utf8_lossy(&absent.stderr).contains("cannot be proven"), "{absent:?}");
    let run_of = run(&["proof", "get", "--rpc", &rpc, "--run", hash]);
    assert!(String::from_utf8_lossy(&run_of.stderr).contains("is no run of a schedule"), "{run_of:?}");
}
