//! Transactions that wait for signatures: three people, files, lines to paste, and the page that tells about it.

use super::{chain, command, compare, json_of, printed, refusal};
use crate::support::*;
use alloy_primitives::{Address, hex};
use serde_json::{Value, json};
use std::{fs, path::Path, process::Command};

const CAROL: &str = "0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc";
const SEVEN: &str = "0x0707070707070707070707070707070707070707";
const ACCOUNTS_DOOR: &str = "0x000000000000000000000000000000000000a104";
const COIN: u128 = 1_000_000_000_000_000_000;

fn bare(address: &str) -> &str {
    address.trim_start_matches("0x")
}

/// An account with money that two of Alice, Bob and Carol control.
fn treasury(node: &Node) -> String {
    let key = format!("030302{}", [ALICE, BOB, CAROL].map(|one| format!("01{}", bare(one))).concat());
    // createAccount(bytes,bytes32)
    let bytes = key.len() / 2;
    let selector = hex::encode(&alloy_primitives::keccak256("createAccount(bytes,bytes32)")[..4]);
    let data = format!("0x{selector}{:064x}{:064x}{bytes:064x}{key:0<192}", 64, 0);
    let request = json!({ "from": ALICE, "to": ACCOUNTS_DOOR, "data": data, "gas": "0x100000" });
    let receipt = node.receipt(&node.result("eth_sendTransaction", json!([request])));
    assert_eq!(receipt["status"], "0x1", "{receipt}");
    let topic = receipt["logs"][0]["topics"][1].as_str().unwrap();
    let account = format!("0x{}", &topic[26..]);
    let funds = json!({ "from": ALICE, "to": account, "value": format!("{:#x}", 10 * COIN) });
    node.receipt(&node.result("eth_sendTransaction", json!([funds])));
    account.parse::<Address>().unwrap().to_string()
}

fn line(told: &Value, name: &str) -> String {
    told[name].as_str().unwrap_or_else(|| panic!("{name} in {told}")).to_owned()
}

fn missing(told: &Value) -> usize {
    told["missing"].as_array().unwrap().len()
}

/// Runs a command without any node: the address is one where nobody listens.
fn away(line: &str) -> std::process::Output {
    let mut arguments = super::words(line);
    arguments.extend(["--rpc", "http://127.0.0.1:1"]);
    run(&arguments)
}

fn told_away(line: &str) -> Value {
    let output = away(&format!("{line} --json"));
    assert!(output.status.success(), "{line}: {output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// CLI-12: HEDERA-24. Two of three pay from their treasury: each step is read back, shown, and found by those it waits for.
#[test]
fn cli_12_three_people_sign_on_the_chain() {
    let node = chain();
    let treasury = treasury(&node);
    let create = format!(
        "schedule create --from {treasury} --to {SEVEN} --value 1.5coins --memo rent --until \"2026-12-01 09:00 UTC\" \
         --admin \"2 of {ALICE}, {BOB}, {CAROL}\" --max-fee 10gwei --dev-account 0"
    );
    let text = |line: &str| printed(&node, line).replace(&treasury, "TREASURY");
    compare("create-dry", &node, &text(&format!("{create} --dry-run")));
    assert_eq!(json_of(&node, "schedule list")["schedules"], json!([]), "nothing was sent");
    compare("create", &node, &without_lines(&text(&format!("{create} --yes"))));
    let id = line(&json_of(&node, "schedule list")["schedules"][0], "id");
    compare("show-signed", &node, &without_lines(&text(&format!("schedule show {id}"))));
    assert_eq!(
        without_lines(&text(&format!("schedule info {id}"))),
        without_lines(&text(&format!("schedule show {id}")))
    );
    // The same again is the same one.
    let again = json_of(&node, &format!("{create} --yes"));
    assert_eq!((line(&again, "id"), line(&again, "waitsAs"), missing(&again)), (id.clone(), id.clone(), 1));
    compare("waiting", &node, &text("schedule waiting --dev-account 1"));
    assert!(
        text("schedule waiting --dev-account 0").contains("nothing waits for 0xf39Fd6"),
        "she has signed"
    );
    let waiting = json_of(&node, &format!("schedule waiting {CAROL}"));
    assert_eq!((&waiting["waiting"][0]["id"], &waiting["isWhole"]), (&json!(id), &json!(true)));
    for (line, expected) in [
        (format!("schedule sign {id} --dev-account 0 --yes"), "AlreadySigned: 0xf39Fd6"),
        (format!("schedule sign {id} --dev-account 3 --yes"), "NotAsked: "),
        (format!("schedule sign {id} --dev-account 1"), "NotConfirmed"),
        (
            "schedule sign 9-9-9 --dev-account 1 --yes".to_owned(),
            "UnknownSchedule: no transaction 9-9-9 waits",
        ),
        (
            "schedule sign rent.json --dev-account 1".to_owned(),
            "NothingToSign: \"rent.json\" is neither an id",
        ),
        ("schedule sign almanac:sign:AAAA --dev-account 1".to_owned(), "LineBroken: the line is cut off"),
        (format!("schedule cancel {id} --dev-account 0 --yes"), "NotAdmin: "),
        (format!("{create} --to {SEVEN}"), "cannot be used multiple times"),
        ("schedule create --dev-account 0".to_owned(), "required"),
        (
            format!("schedule create --to {SEVEN} --from {SEVEN} --value 5coins --dev-account 0 --yes"),
            "GasUnknown: call 1 fails now",
        ),
        (format!("schedule create --call \"pay {SEVEN}\" --dev-account 0"), "CallUnclear"),
        (format!("schedule create --to {SEVEN} --admin me --dev-account 0"), "KeyUnclear"),
        (format!("schedule create --to {SEVEN} --until \"2026-12-01\" --dev-account 0"), "NoTimeOfDay"),
        (
            format!("schedule create --to {SEVEN} --at \"2027-12-01 09:00 UTC\" --dev-account 0 --yes"),
            "OrderRefused",
        ),
    ] {
        let said = refusal(&command(&node, &line));
        assert!(said.contains(expected), "{line}: {said}");
    }
    let dry = text(&format!("schedule sign {id} --dev-account 1 --dry-run"));
    assert!(dry.contains("then        all have signed: it runs at once"), "{dry}");
    let signed = json_of(&node, &format!("schedule sign {id} --dev-account 1 --yes"));
    assert_eq!(
        (&signed["status"], &signed["run"]["success"]),
        (&json!("executed"), &json!(true)),
        "{signed}"
    );
    assert_eq!(node.balance(SEVEN).to_string(), (COIN * 3 / 2).to_string());
    let shown = text(&format!("schedule show {id}"));
    assert!(shown.contains("succeeded") && shown.contains("Last runs"), "{shown}");
    let watched = text(&format!("schedule watch {id}"));
    assert!(watched.contains("succeeded"), "{watched}");
    let late = refusal(&command(&node, &format!("schedule sign {id} --dev-account 2 --yes")));
    assert!(late.contains(&format!("AlreadyEnded: {id} was executed")), "{late}");
    assert_eq!(json_of(&node, &format!("schedule waiting {CAROL}"))["waiting"], json!([]));
}

/// The lines to paste depend on the genesis of the chain, which is new each time.
fn without_lines(text: &str) -> String {
    let word = |word: &str| match word.split_once("almanac:sign:") {
        Some((before, _)) => format!("{before}LINE"),
        None => word.to_owned(),
    };
    let line = |line: &str| line.split(' ').map(word).collect::<Vec<_>>().join(" ") + "\n";
    text.lines().map(line).collect()
}

/// CLI-13: a line goes to a colleague, who has no node, and comes back; whoever sends does not have to be one of them.
#[test]
fn cli_13_signatures_by_lines_that_people_paste() {
    let node = chain();
    let treasury = treasury(&node);
    let create = |more: &str| {
        let create = format!(
            "schedule create --from {treasury} --to {SEVEN} --value 1coins --gas 40000 --max-fee 10gwei --dev-account 3 --yes {more}"
        );
        json_of(&node, &create)
    };
    let made = create("");
    let (id, request) = (line(&made, "id"), line(&made, "request"));
    assert_eq!(line(&json_of(&node, &format!("schedule sign {id} --request")), "request"), request);
    assert_eq!(printed(&node, &format!("schedule sign {id} --request")), format!("{request}\n"));
    let read = away(&format!("schedule sign {request} --dev-account 0 --dry-run"));
    let read = String::from_utf8(read.stdout).unwrap();
    assert!(
        read.contains(&format!("{treasury} pays 1 coins to {SEVEN}"))
            && read.contains(&format!("schedule {id}"))
    );
    let [alice, carol, dave] = [0, 2, 3].map(|n| {
        let told = told_away(&format!("schedule sign {request} --dev-account {n} --yes"));
        line(&told, "signature")
    });
    let silent = refusal(&away(&format!("schedule sign {request} --dev-account 0")));
    assert!(silent.contains("NotConfirmed"), "{silent}");
    let send = |more: &str| format!("schedule sign {id} --dev-account 4 {more}");
    for (line, expected) in [
        (send(&format!("--with {dave} --yes")), "NotAsked: "),
        (send(&format!("--with {request} --yes")), "NotASignature: this line asks for a signature"),
        (send(&format!("--with {} --yes", &alice[..alice.len() - 3])), "LineBroken"),
        (send("--yes"), "NotAsked: "),
        (format!("schedule sign {alice} --dev-account 0"), "NotARequest: this line is a signature"),
        (format!("schedule sign {request} --with {alice} --dev-account 0"), "NotOnChain"),
    ] {
        let said = refusal(&command(&node, &line));
        assert!(said.contains(expected), "{line}: {said}");
    }
    let first = json_of(&node, &send(&format!("--with {alice} --with {alice} --yes")));
    assert_eq!((line(&first, "status"), missing(&first)), ("pending".to_owned(), 1), "{first}");
    let second = json_of(&node, &send(&format!("--with {carol} --yes")));
    assert_eq!((line(&second, "status"), &second["run"]["success"]), ("executed".to_owned(), &json!(true)));
    assert_eq!(node.balance(SEVEN).to_string(), COIN.to_string());
    // Made once more, it is in its second round: what was signed before moves nothing.
    let again = create("");
    assert_eq!(again["round"], 1);
    let replayed = refusal(&command(
        &node,
        &format!("schedule sign {} --with {alice} --dev-account 4 --yes", line(&again, "id")),
    ));
    assert!(replayed.contains("SignatureOfAnother"), "{replayed}");
    // Two of three delete it, one of them elsewhere.
    let guarded = create(&format!("--nonce 7 --admin \"2 of {ALICE}, {BOB}, {CAROL}\""));
    let id = line(&guarded, "id");
    let nobody =
        refusal(&command(&node, &format!("schedule delete {} --dev-account 3 --yes", line(&again, "id"))));
    assert!(nobody.contains("NoAdminKey: "), "{nobody}");
    let ask = line(&json_of(&node, &format!("schedule delete {id} --request")), "request");
    let told = told_away(&format!("schedule sign {ask} --dev-account 2 --yes"));
    assert_eq!(told["isDeletion"], true);
    let carol = line(&told, "signature");
    let deleted = printed(&node, &format!("schedule delete {id} --with {carol} --dev-account 1 --yes"));
    assert!(deleted.contains(&format!("deleted {id}")), "{deleted}");
    assert!(printed(&node, &format!("schedule show {id}")).contains("deleted"));
}

/// CLI-14: a file goes from one to the next; a wallet signs its typed data; an Ed25519 key signs too. Several calls from
/// several accounts run together, at a time.
#[test]
fn cli_14_signatures_in_files_and_a_swap_at_a_time() {
    let node = chain();
    let treasury = treasury(&node);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pay.json").to_str().unwrap().to_owned();
    let create =
        format!("schedule create --from {treasury} --to {SEVEN} --value 2coins --dev-account 3 --yes");
    let id = line(&json_of(&node, &create), "id");
    let wrote = printed(&node, &format!("schedule sign {id} --out {file}"));
    assert!(wrote.contains(&format!("almanac schedule sign {file}")), "{wrote}");
    let empty = refusal(&command(&node, &format!("schedule sign {id} --with {file} --dev-account 4 --yes")));
    assert!(empty.contains("NotSigned"), "{empty}");
    // A wallet's answer, by the node's own implementation of EIP-712.
    let typed: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let wallet =
        line(&json!({ "s": node.result("eth_signTypedData_v4", json!([BOB, typed["typedData"]])) }), "s");
    let signed = away(&format!("schedule sign {file} --dev-account 2 --yes"));
    let signed = String::from_utf8(signed.stdout).unwrap();
    assert!(signed.contains("which has 1 signature now"), "{signed}");
    let done =
        json_of(&node, &format!("schedule sign {id} --with {file} --with {wallet} --dev-account 4 --yes"));
    assert_eq!(
        (line(&done, "status"), &done["run"]["success"]),
        ("executed".to_owned(), &json!(true)),
        "{done}"
    );
    assert_eq!(node.balance(SEVEN).to_string(), (2 * COIN).to_string());
    // A file that somebody changed is refused.
    let changed = fs::read_to_string(&file).unwrap().replace("2000000000000000000", "9000000000000000000");
    fs::write(&file, changed).unwrap();
    let changed = refusal(&away(&format!("schedule sign {file} --dev-account 0 --yes")));
    assert!(changed.contains("WrongSignature"), "{changed}");
    // Two accounts, one of an Ed25519 key, exchange at a given time.
    let seed = directory.path().join("seed").to_str().unwrap().to_owned();
    fs::write(&seed, "11".repeat(32)).unwrap();
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(&seed, fs::Permissions::from_mode(0o600)).unwrap();
    let ed = line(&json_of(&node, &format!("account --key-file {seed} --ed25519"))["account"], "address");
    node.result("anvil_setBalance", json!([ed, format!("{:#x}", 5 * COIN)]));
    let swap = json_of(
        &node,
        &format!(
            "schedule create --call \"to {ed} value 3coins\" --call \"from {ed} to {ALICE} value 1coins\" \
             --at \"2026-12-01 09:00 UTC\" --memo swap --dev-account 0 --yes"
        ),
    );
    assert_eq!((missing(&swap), &swap["waitForExpiry"]), (1, &json!(true)));
    let id = line(&swap, "id");
    assert_eq!(json_of(&node, &format!("schedule waiting {ed}"))["waiting"][0]["id"], json!(id));
    let told =
        told_away(&format!("schedule sign {} --key-file {seed} --ed25519 --yes", line(&swap, "request")));
    let signature = line(&told, "signature");
    let text = printed(&node, &format!("schedule sign {id} --with {signature} --dev-account 4 --yes"));
    assert!(text.contains("all have signed: it runs at 2026-12-01 09:00 UTC"), "{text}");
    node.result("evm_increaseTime", json!([2 * 86_400]));
    assert_eq!(node.balance(&ed).to_string(), (7 * COIN).to_string());
    let watched = printed(&node, &format!("schedule watch {id}"));
    assert!(watched.contains("2026-12-01 09:00 UTC  succeeded"), "{watched}");
}

/// CLI-15: the page about signatures shows what people type. Its commands run as they stand, each variable set by the
/// command that the page says.
#[test]
fn cli_15_the_page_about_signatures_runs() {
    let node = chain();
    let treasury = treasury(&node);
    let page =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/signatures.md")).unwrap();
    let section = page.split("\n## On the command line\n").nth(1).expect("the page has the section");
    let section = section.split("\n## ").next().unwrap();
    let blocks: Vec<&str> =
        section.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(blocks.len() >= 3, "{section}");
    let directory = tempfile::tempdir().unwrap();
    let script = format!(
        "set -euo pipefail\nalmanac() {{ '{}' \"$@\" --rpc http://{}; }}\nTREASURY={treasury}\n{}",
        env!("CARGO_BIN_EXE_almanac"),
        node.address,
        blocks.concat()
    );
    let output = Command::new("bash").args(["-c", &script]).current_dir(directory.path()).output().unwrap();
    assert!(output.status.success(), "{}\n{output:?}", blocks.concat());
    // Two payments of the page have been made.
    assert_eq!(node.balance(SEVEN).to_string(), (2 * COIN).to_string());
}

/// CLI-16: the price that is read back for a time is what the chain takes, with the keys of all who sign. It was that of
/// the run alone: with eight accounts no flag led past the refusal.
#[test]
fn cli_16_a_time_costs_what_was_read_back() {
    let node = chain();
    let treasury = treasury(&node);
    let people = node.result("eth_accounts", json!([]));
    let pays = |n: usize| format!("--call \"from {} to {SEVEN} value 1\" ", people[n].as_str().unwrap());
    let many: String = (1..8).map(pays).collect();
    let at = "--at \"2026-12-01 09:00 UTC\" --max-fee 10gwei --dev-account 0";
    for (calls, gas) in [
        (format!("--to {SEVEN} --value 1"), 40_000),
        (format!("--from {treasury} --to {SEVEN} --value 1"), 80_000),
        (format!("--call \"to {SEVEN} value 1\" {many}"), 120_000),
    ] {
        let create = format!("schedule create {calls} --gas {gas} {at}");
        let read = json_of(&node, &format!("{create} --dry-run"));
        let text = printed(&node, &format!("{create} --dry-run"));
        assert!(text.contains("what is above the price in its block returns at once"), "{text}");
        assert!(text.contains("tried now   it succeeds, with "), "{text}");
        let used = read["preview"]["gasUsed"].as_u64().unwrap();
        assert!(used <= gas, "{used} gas of {gas}");
        let made = json_of(&node, &format!("{create} --yes"));
        let taken = node.result("almanac_getSchedule", json!([made["id"]]))["escrow"].clone();
        let taken: alloy_primitives::U256 = serde_json::from_value(taken).unwrap();
        assert_eq!(made["paid"], json!(taken.to_string()), "{made}");
        // The same again pays nothing.
        assert_eq!(json_of(&node, &format!("{create} --dry-run"))["sent"], "0");
    }
}
