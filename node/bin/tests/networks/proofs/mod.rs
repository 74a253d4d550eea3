//! Proofs from a network of four, checked when it is gone: from its genesis file and nothing else.
#![allow(clippy::needless_pass_by_value, reason = "requests are written in place")]

mod forgeries;
mod network;
use crate::support::{network::wait_for, *};
use alloy_primitives::{Address, B256};
use network::Network;
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::LazyLock,
};

/// What a network left behind.
struct Fixture {
    directory: PathBuf,
    genesis: PathBuf,
    /// The schedule.
    id: String,
    account: PathBuf,
    slot: PathBuf,
    schedule: PathBuf,
    span: PathBuf,
    run: PathBuf,
    transfer: PathBuf,
    /// What shows that the two blocks above the run's are final.
    above_run: [Value; 2],
    /// What the command that ran the network said.
    said: String,
}

/// Made once: a network takes its time.
static FIXTURE: LazyLock<Fixture> = LazyLock::new(|| {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("proofs");
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    collect(Network::start(&directory))
});

/// A transfer, and a schedule that has run once; all that can be proven of them, and then the end of the network.
fn collect(mut network: Network) -> Fixture {
    wait_for("network", || {
        network.try_result("eth_blockNumber", json!([])).filter(|height| number(height) > 1)
    });
    let transfer = network.send(0, BOB, 1, Vec::new());
    let id = network.schedule(1);
    let ran = wait_for("run", || network.result("almanac_getRuns", json!([id]))["runs"].get(0).cloned());
    assert_eq!(ran["success"], true, "{ran}");
    let receipt = &ran["receipt"];
    let due = number(&network.result("almanac_getSchedule", json!([id]))["nextRun"]["ms"]);
    let hash = |receipt: &Value| receipt["transactionHash"].as_str().unwrap().to_owned();
    let ledger = "0x000000000000000000000000000000000000a1ff";
    let schedule = network.prove("schedule.json", &["--schedule", &id]);
    let head_slot = read(&schedule)["values"][0]["key"]["slot"].as_str().unwrap().to_owned();
    let above_run = [1, 2].map(|above| {
        let height = format!("{:#x}", number(&receipt["blockNumber"]) + above);
        wait_for("finality", || {
            let finality = network.result("almanac_getFinality", json!([height]));
            (!finality.is_null()).then_some(finality)
        })
    });
    let said = wait_for("word of what is due", || {
        fs::read_to_string(network.directory.join("said")).ok().filter(|said| said.contains(&id))
    });
    let fixture = Fixture {
        account: network.prove("account.json", &["--account", BOB]),
        slot: network.prove("slot.json", &["--account", ledger, "--slot", &head_slot]),
        span: network.prove("span.json", &["--span", &format!("cron,{},{}", due - 1_000, due + 1_000)]),
        run: network.prove("run.json", &["--run", &hash(receipt)]),
        transfer: network.prove("transfer.json", &["--transaction", &hash(&transfer)]),
        directory: network.directory.clone(),
        genesis: network.genesis(),
        id,
        schedule,
        above_run,
        said,
    };
    let rpc = format!("http://{}", network.address);
    let refused = run(&["proof", "get", "--rpc", &rpc, "--run", receipt["blockHash"].as_str().unwrap()]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("transaction not found"), "{refused:?}");
    network.stop();
    let gone = run(&["proof", "get", "--rpc", &rpc, "--account", BOB]);
    assert_eq!(gone.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&gone.stderr).contains("no node answers"), "{gone:?}");
    fixture
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

#[test]
fn a_balance_a_slot_a_schedule_a_span_and_a_run_hold_when_the_network_is_gone() {
    let id = &FIXTURE.id;
    let balance = "10000.000000000000000001 coins (10000000000000000000001 wei)";
    let run = format!("Proven: run 0 of schedule {id} is in block");
    let schedule = format!("Proven: schedule {id} after block");
    let cases: [(&Path, &[&str]); 6] = [
        (&FIXTURE.account, &["Proven: account 0x70997970", balance]),
        (&FIXTURE.slot, &["Proven: slot", "of 0x000000000000000000000000000000000000A1Ff"]),
        (
            &FIXTURE.schedule,
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
            &FIXTURE.span,
            &["Proven: what is due in the cron lane", "and nothing else", &format!("schedule {id}")],
        ),
        (&FIXTURE.run, &[&run, "result      succeeded", "calldata    0x01020304"]),
        (&FIXTURE.transfer, &["Proven: a transaction is in block", "gas used    21000"]),
    ];
    for (path, expected) in cases {
        let words = judge(path, &FIXTURE.genesis).unwrap();
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
#[test]
fn a_stopped_validator_proves_from_its_directory() {
    let path = FIXTURE.directory.join("offline.json");
    let data = FIXTURE.directory.join("net/v0/data");
    let get = |what: &[&str]| {
        let place = ["proof", "get", "--datadir", data.to_str().unwrap(), "--out", path.to_str().unwrap()];
        run(&[&place, what].concat())
    };
    let claim = |online: &Path, field: &str| read(online)["claim"][field].as_str().unwrap().to_owned();
    let (from, to) = (claim(&FIXTURE.span, "from"), claim(&FIXTURE.span, "to"));
    let span = format!("cron,{},{}", number(&json!(from)), number(&json!(to)));
    for what in [["--schedule", &FIXTURE.id], ["--span", &span]] {
        let said = get(&what);
        assert!(said.status.success(), "{said:?}");
        let judged = judge(&path, &FIXTURE.genesis);
        let is_final = judged.as_ref().is_ok_and(|words| words.contains("Final: block"));
        let is_honest = judged.as_ref().is_err_and(|error| error.contains("does not prove its block final"));
        assert!(is_final || is_honest, "{judged:?}");
    }
    // Receipts are of a block in the past, which a certificate above it covers where it has none of its own.
    for (what, online) in [("--run", &FIXTURE.run), ("--transaction", &FIXTURE.transfer)] {
        let said = get(&[what, &claim(online, "hash")]);
        assert!(said.status.success(), "{said:?}");
        let words = judge(&path, &FIXTURE.genesis).unwrap();
        assert!(words.contains("Final: block"), "{words}");
        for field in ["claim", "header", "receipt"] {
            assert_eq!(read(&path)[field], read(online)[field], "the same as a node proves");
        }
    }
    for (what, reason) in [
        (["--run", &claim(&FIXTURE.transfer, "hash")], "is no run of a schedule"),
        (["--run", &B256::ZERO.to_string()], "no block has 0x00"),
        (["--schedule", "77-0-0"], "schedule 77-0-0 is not in the state"),
        (["--span", "cron,2,1"], "before it begins"),
    ] {
        let said = get(&what);
        assert_eq!(said.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&said.stderr).contains(reason), "{said:?}");
    }
}

#[test]
fn network_up_says_heights_and_what_is_due() {
    let said = &FIXTURE.said;
    assert!(said.contains(&format!("due {} at 20", FIXTURE.id)), "{said}");
    assert!(said.lines().any(|line| line.starts_with("v0 ") && line.contains("v3 ")), "{said}");
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
