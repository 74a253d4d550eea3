//! One schedule of each kind, from words to its end.

use super::{chain, command, compare, json_of, printed, refusal};
use crate::support::{
    callbacks,
    cron::{COUNTER, TARGET, set_code},
    *,
};
use serde_json::json;

const DAILY: &str = "schedule every \"day at 09:00 UTC, 3 times\" --to 0x00000000000000000000000000000000000c0de1 \
                     --method \"increase(uint256)\" --arg 5 --dev-account 0";
const MONTHLY: &str = "schedule every \"month on the 1st at 09:00 UTC, 2 times\" \
                       --to 0x00000000000000000000000000000000000c0de1 --data 0xd09de08a --gas 100000 --dev-account 0";

/// CLI-01: words become exact parameters, which are read back, sent, listed, shown, watched and ended.
#[test]
fn cli_01_a_schedule_from_words_to_its_end() {
    let node = chain();
    set_code(&node, COUNTER);
    compare("agenda-empty", &node, &printed(&node, "agenda"));
    compare("list-empty", &node, &printed(&node, "schedule list"));
    compare("every-dry", &node, &printed(&node, &format!("{DAILY} --dry-run")));
    assert_eq!(json_of(&node, "schedule list")["schedules"], json!([]), "nothing was sent");
    compare("every", &node, &printed(&node, &format!("{DAILY} --yes")));
    let at =
        format!("schedule at \"2026-12-24 18:00 UTC\" --to {TARGET} --data 0xd09de08a --dev-account 1 --yes");
    compare("at", &node, &printed(&node, &at));
    compare("months", &node, &printed(&node, &format!("{MONTHLY} --yes")));
    compare("list", &node, &printed(&node, "schedule list"));
    compare("agenda", &node, &printed(&node, "agenda"));
    compare("account", &node, &without(&["balance"], &printed(&node, "account --dev-account 0")));
    compare("show", &node, &printed(&node, "schedule show 3-1-0"));
    let topped = printed(&node, "schedule topup 3-1-0 0.001coins --dev-account 1 --yes");
    compare("topup", &node, &topped);
    compare("cancel", &node, &printed(&node, "schedule cancel 4-1-0 --dev-account 1 --yes"));
    node.result("evm_increaseTime", json!([3 * 86_400]));
    compare("watch", &node, &printed(&node, "schedule watch 3-1-0"));
    compare("show-ended", &node, &printed(&node, "schedule show 3-1-0"));
    compare("top", &node, &without_ages(&printed(&node, "top --once")));
    assert_eq!(
        node.result("eth_getStorageAt", json!([TARGET, "0x0", "latest"])),
        json!(format!("{:#066x}", 4))
    );
}

/// Lines that begin with these words depend on what transactions cost, or on the second.
fn without(names: &[&str], text: &str) -> String {
    let kept = text.lines().filter(|line| !names.iter().any(|name| line.starts_with(name)));
    kept.map(|line| format!("{line}\n")).collect()
}

/// How long ago the last block was differs from run to run.
fn without_ages(text: &str) -> String {
    let line = |line: &str| match line.split_once(" (") {
        Some((before, after)) if line.starts_with("block ") => {
            format!("{before} (AGE){}", after.split_once(')').map_or("", |(_, rest)| rest))
        }
        _ => line.to_owned(),
    };
    text.lines().map(|text| line(text) + "\n").collect()
}

/// CLI-02: programs get the same in JSON, and ids in every form that a node reads.
#[test]
fn cli_02_json_for_programs_and_ids_in_every_form() {
    let node = chain();
    set_code(&node, COUNTER);
    let dry = json_of(&node, &format!("{DAILY} --dry-run"));
    assert_eq!(
        (&dry["intervalSeconds"], &dry["times"], &dry["door"]),
        (&json!(86_400), &json!(3), &json!("cron"))
    );
    assert_eq!(dry["runs"][0]["iso"], "2026-11-30T09:00:00.000Z");
    assert_eq!((&dry["runs"].as_array().unwrap().len(), &dry["preview"]["success"]), (&3, &json!(true)));
    let made = json_of(&node, &format!("{MONTHLY} --yes"));
    let (first, second) = (&made["schedules"][0], &made["schedules"][1]);
    assert_eq!((&first["id"], &second["id"]), (&json!("3-1-0"), &json!("3-1-1")), "one transaction");
    assert_eq!(made["runs"][1]["iso"], "2027-01-01T09:00:00.000Z");
    let number = number(&second["idNumber"]);
    let padded = format!("0x{number:064x}");
    for id in ["3-1-1", &number.to_string(), &format!("{number:#x}"), &padded] {
        let shown = json_of(&node, &format!("schedule show {id}"));
        assert_eq!(shown["schedule"]["id"], "3-1-1", "{id}");
    }
    assert_eq!(json_of(&node, "agenda")["entries"].as_array().unwrap().len(), 2);
    assert_eq!(json_of(&node, "account --dev-account 0")["pending"].as_array().unwrap().len(), 2);
    let top = json_of(&node, "top");
    assert_eq!(
        (&top["chainId"], &top["network"], &top["next"][0]["id"]),
        (&json!(31_337), &json!(null), &json!("3-1-0"))
    );
    let listed = json_of(&node, "schedule list --limit 1");
    assert_eq!((listed["schedules"].as_array().unwrap().len(), &listed["isWhole"]), (1, &json!(false)));
    let escrow = json_of(&node, "schedule show 3-1-1")["schedule"]["escrow"].clone();
    let cancelled = json_of(&node, "schedule cancel 3-1-1 --dev-account 0 --yes");
    assert_eq!(cancelled["refunded"], escrow, "{cancelled}");
}

/// CLI-03: callbacks and scheduled transactions take the same words; a series becomes one of them for each run.
#[test]
fn cli_03_the_other_doors() {
    let node = chain();
    callbacks::let_alice_book(&node);
    set_code(&node, COUNTER);
    let line =
        format!("schedule at \"2026-12-01 09:00 UTC\" --to {TARGET} --door callback --dev-account 0 --yes");
    compare("callback", &node, &printed(&node, &line));
    let line = format!(
        "schedule every \"week on friday at 09:00 UTC, 2 times\" --to {SEVEN} --door market --value 0.5coins --dev-account 0"
    );
    let dry = json_of(&node, &format!("{line} --dry-run"));
    assert_eq!((&dry["value"], &dry["sent"]), (&json!("500000000000000000"), &dry["paid"]), "{dry}");
    compare("market", &node, &printed(&node, &format!("{line} --yes")));
    let listed = json_of(&node, "schedule list");
    let doors: Vec<_> =
        listed["schedules"].as_array().unwrap().iter().map(|one| one["terms"]["door"].clone()).collect();
    assert_eq!(doors, ["callback", "market", "market"]);
    let id = listed["schedules"][2]["id"].as_str().unwrap();
    let deposit = listed["schedules"][2]["escrow"].clone();
    let cancelled = json_of(&node, &format!("schedule cancel {id} --dev-account 0 --yes"));
    assert_eq!(cancelled["refunded"], deposit, "all of it");
    let paid = refusal(&command(&node, &format!("schedule topup {id} 1 --dev-account 0 --yes")));
    assert!(paid.contains("NoEscrow") && paid.contains("market door"), "{paid}");
    node.result("evm_increaseTime", json!([5 * 86_400]));
    assert_eq!(node.balance(SEVEN).to_string(), "500000000000000000");
    let callback = listed["schedules"][0]["id"].as_str().unwrap();
    let watched = printed(&node, &format!("schedule watch {callback}"));
    assert!(
        watched.contains("run 1  2026-12-01 09:00 UTC  succeeded") && watched.contains("succeeded"),
        "{watched}"
    );
}

const SEVEN: &str = "0x0707070707070707070707070707070707070707";

/// CLI-04: allowance and subscription in one transaction, and the chain charges.
#[test]
fn cli_04_a_subscription() {
    let node = chain();
    let artifact = |name: &str| {
        let path = format!("{}/../../contracts/artifacts/{name}.json", env!("CARGO_MANIFEST_DIR"));
        let artifact: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        artifact["bytecode"].as_str().unwrap().to_owned()
    };
    let deploy = |code: String| {
        let request = json!({ "from": ALICE, "data": code, "gas": "0x500000" });
        let receipt = node.receipt(&node.result("eth_sendTransaction", json!([request])));
        receipt["contractAddress"].as_str().unwrap().to_owned()
    };
    let token = deploy(format!("{}{:064x}", artifact("PlainToken"), 1_000));
    let contract = deploy(artifact("Subscriptions"));
    let line = format!(
        "subscribe --contract {contract} --token {token} --merchant {BOB} --amount 100 --every \"30 days\" --times 3 \
         --dev-account 0"
    );
    let dry = printed(&node, &format!("{line} --dry-run"));
    compare("subscribe-dry", &node, &without(&["first charge", "gas"], &dry));
    let made = json_of(&node, &format!("{line} --yes"));
    assert_eq!(made["intervalSeconds"], 30 * 86_400);
    node.result("evm_increaseTime", json!([31 * 86_400]));
    let data = format!("0x70a08231{:0>64}", BOB.trim_start_matches("0x"));
    let balance = node.result("eth_call", json!([{ "to": token, "data": data }, "latest"]));
    assert_eq!(balance, json!(format!("{:#066x}", 100)));
    let poor = refusal(&command(&node, &line.replace("--amount 100", "--amount 5000")));
    assert!(poor.contains("BalanceTooLow"), "{poor}");
    let wrong = refusal(&command(&node, &line.replace(&contract, SEVEN)));
    assert!(wrong.contains("NoSubscriptions"), "{wrong}");
}
