//! Records of transactions and runs, over JSON-RPC and REST (HEDERA-12, -13). Every amount is compared with balances.

use crate::{
    native::{alice, batch, now, signed},
    rest,
    support::{
        callbacks::{Priority, book, let_alice_book},
        cron::{Job, REVERTER, TARGET, mine_at, set_code},
        market, *,
    },
};
use alloy_primitives::{U256, hex};
use almanac_primitives::testing::native::orderless;
use serde_json::{Value, json};

pub(crate) const LEDGER: &str = "0x000000000000000000000000000000000000a1ff";
/// Logs that 0x11 sent 5 tokens to 0x22, then stops.
const TOKEN: &str = "0x60055f5260226011\
    7fddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef60205fa300";

pub(crate) fn record(node: &Node, hash: &Value) -> Value {
    let record = node.result("almanac_getRecord", json!([hash]));
    assert_eq!(record["transactionHash"], *hash, "{record}");
    // One shape of the answer, whoever asks.
    assert_eq!(rest::found(node, &format!("/v1/records/{}", hash.as_str().unwrap())), record);
    record
}

/// Sends as Alice, and answers with the receipt and the record.
fn sent(node: &Node, to: &str, value: &str) -> (Value, Value) {
    let request = json!({ "from": ALICE, "to": to, "value": value, "gas": "0x20000" });
    let receipt = node.receipt(&node.result("eth_sendTransaction", json!([request])));
    let record = record(node, &receipt["transactionHash"]);
    (receipt, record)
}

/// The record of the first run of a schedule, and its receipt.
fn of_run(node: &Node, id: &Value) -> (Value, Value) {
    let runs = node.result("almanac_getRuns", json!([id]));
    let receipt = runs["runs"][0]["receipt"].clone();
    let record = record(node, &receipt["transactionHash"]);
    (receipt, record)
}

pub(crate) fn balance_at(node: &Node, account: &str, block: u64) -> U256 {
    let block = format!("{block:#x}");
    node.result("eth_getBalance", json!([account, block])).as_str().unwrap().parse().unwrap()
}

/// Compares each transfer with the balances before and after its block, in which nothing else moved money. Answers with
/// the amounts of these accounts.
fn amounts<const N: usize>(
    node: &Node,
    receipt: &Value,
    record: &Value,
    accounts: [&str; N],
) -> [Option<String>; N] {
    let block = number(&receipt["blockNumber"]);
    let list = record["transferList"].as_array().unwrap();
    for one in list {
        let (account, amount) = (one["accountID"].as_str().unwrap(), one["amount"].as_str().unwrap());
        let (before, after) = (balance_at(node, account, block - 1), balance_at(node, account, block));
        let shown = match amount.strip_prefix('-') {
            Some(less) => before - less.parse::<U256>().unwrap(),
            None => before + amount.parse::<U256>().unwrap(),
        };
        assert_eq!(shown, after, "{account}: {record}");
    }
    accounts.map(|account| {
        let found = list.iter().find(|one| one["accountID"] == account);
        found.map(|one| one["amount"].as_str().unwrap().to_owned())
    })
}

fn fee(receipt: &Value) -> U256 {
    U256::from(number(&receipt["gasUsed"])) * U256::from(number(&receipt["effectiveGasPrice"]))
}

/// The timestamp of what ran in a block at an index that counts the hidden prologue.
pub(crate) fn timestamp(node: &Node, block: &Value, index: u64) -> Value {
    let block = node.result("eth_getBlockByNumber", json!([block, false]));
    let ms = number(&block["timestampMs"]);
    json!({ "seconds": (ms / 1_000).to_string(), "nanos": ms % 1_000 * 1_000_000 + index })
}

#[test]
fn hedera_12_a_transfer_has_a_record() {
    let node = Node::start(&[]);
    let (receipt, record) = sent(&node, BOB, "0x7");
    assert_eq!(record["receipt"], json!({ "status": "SUCCESS", "code": 22, "scheduleID": null }));
    let time = timestamp(&node, &receipt["blockNumber"], 1);
    assert_eq!(record["consensusTimestamp"], time);
    let id = json!({ "transactionValidStart": time, "accountID": ALICE, "scheduled": false, "nonce": 0 });
    assert_eq!(record["transactionID"], id);
    assert_eq!(record["transactionFee"], fee(&receipt).to_string());
    assert_eq!((&record["memo"], &record["scheduleRef"]), (&json!(""), &Value::Null));
    assert_eq!(record["tokenTransferList"], json!([]));
    let paid = format!("-{}", fee(&receipt) + U256::from(7));
    let amounts = amounts(&node, &receipt, &record, [ALICE, BOB]);
    assert_eq!(amounts, [Some(paid), Some("7".to_owned())]);
    let nothing = node.result("almanac_getRecord", json!([format!("0x{}", "11".repeat(32))]));
    assert_eq!(nothing, Value::Null);
    assert_eq!(rest::get(&node, &format!("/v1/records/0x{}", "11".repeat(32))).0, 404);
    assert_eq!(rest::get(&node, "/v1/records/0x11").0, 400);
}

#[test]
fn hedera_14_a_failed_call_says_how_and_pays_its_fee_alone() {
    let node = Node::start(&[]);
    for (code, name, number) in [
        (REVERTER, "CONTRACT_REVERT_EXECUTED", 33),
        ("0xfe", "CONTRACT_EXECUTION_EXCEPTION", 34),
        // JUMPDEST PUSH0 JUMP: it jumps until its gas is gone.
        ("0x5b5f56", "INSUFFICIENT_GAS", 30),
    ] {
        set_code(&node, code);
        let (receipt, record) = sent(&node, TARGET, "0x5");
        assert_eq!(
            (&record["receipt"]["status"], &record["receipt"]["code"]),
            (&json!(name), &json!(number))
        );
        let paid = Some(format!("-{}", fee(&receipt)));
        assert_eq!(amounts(&node, &receipt, &record, [ALICE, TARGET]), [paid, None]);
    }
}

#[test]
fn hedera_12_tokens_are_listed_by_their_logs() {
    let node = Node::start(&[]);
    set_code(&node, TOKEN);
    let (_, record) = sent(&node, TARGET, "0x0");
    let account = |n: u8| format!("0x{n:040x}");
    let transfers = json!([
        { "accountID": account(0x11), "amount": "-5" },
        { "accountID": account(0x22), "amount": "5" },
    ]);
    assert_eq!(record["tokenTransferList"], json!([{ "token": TARGET, "transfers": transfers }]));
}

#[test]
fn hedera_12_an_orderless_batch_has_a_record() {
    let node = Node::start(&[]);
    let transaction = signed(&node, orderless(alice().address, u64::MAX, now(&node) + 30, batch()));
    assert_eq!(node.send(&transaction)["result"], transaction.hash().to_string());
    let receipt = node.receipt(&json!(transaction.hash().to_string()));
    let record = record(&node, &receipt["transactionHash"]);
    assert_eq!(record["transactionID"]["accountID"], ALICE);
    let seven = format!("0x{}", "07".repeat(20));
    let eight = format!("0x{}", "08".repeat(20));
    let paid = format!("-{}", fee(&receipt) + U256::from(11));
    let expected = [Some(paid), Some("5".to_owned()), Some("6".to_owned())];
    assert_eq!(amounts(&node, &receipt, &record, [ALICE, &seven, &eight]), expected);
}

/// The run's id is inherited from what created its schedule, and its money is the ledger's.
#[test]
fn hedera_13_a_run_of_each_door_has_a_record() {
    let node = Node::start(&[]);
    let_alice_book(&node);
    set_code(&node, "0x00");
    let begin = crate::support::cron::now(&node);
    let (cron, creation) = Job::once(&node, 100).make(&node);
    let created = record(&node, &creation["transactionHash"]);
    assert_eq!(created["receipt"]["scheduleID"]["idNumber"], cron);
    let callback = book(&node, begin + 200, Priority::High, 100);
    let mut txn = market::txn(&node, 300_000, 20 * market::GWEI);
    txn.value = U256::from(9);
    let (scheduled, _) = market::insert(&node, &txn);
    for second in [begin + 100, begin + 200, begin + 400] {
        mine_at(&node, second);
    }
    let all = [&cron, &callback, &scheduled].map(|id| of_run(&node, id));
    for ((receipt, record), id) in all.iter().zip([&cron, &callback, &scheduled]) {
        assert_eq!(record["receipt"]["status"], "SUCCESS", "{record}");
        assert_eq!((&record["scheduleRef"]["idNumber"], &record["scheduleRef"]["run"]), (id, &json!("0x0")));
        assert_eq!(record["scheduleRef"], receipt["scheduleRef"]);
        let schedule = node.result("almanac_getSchedule", json!([id]));
        let valid_start = timestamp(&node, &schedule["created"]["blockNumber"], 1);
        let expected = json!({
            "transactionValidStart": valid_start, "accountID": ALICE, "scheduled": true, "nonce": 0,
        });
        assert_eq!(record["transactionID"], expected);
        let fees: U256 = schedule["feesTotal"].as_str().unwrap().parse().unwrap();
        assert_eq!(record["transactionFee"], fees.to_string());
    }
    let escrow = |amount: U256| Some(format!("-{amount}"));
    // Cron's whole escrow goes: its fee is burned, the rest returns.
    let (receipt, record) = &all[0];
    let [ledger, owner] = amounts(&node, receipt, record, [LEDGER, ALICE]);
    assert_eq!(ledger, escrow(Job::once(&node, 0).value));
    assert!(owner.is_some_and(|amount| !amount.starts_with('-')), "{record}");
    // A callback's fee is all that it has.
    let (receipt, record) = &all[1];
    let paid: U256 = record["transactionFee"].as_str().unwrap().parse().unwrap();
    assert_eq!(amounts(&node, receipt, record, [LEDGER, ALICE]), [escrow(paid), None]);
    // Value and fee of a scheduled transaction come from its deposit.
    let (receipt, record) = &all[2];
    let [ledger, target, owner] = amounts(&node, receipt, record, [LEDGER, TARGET, ALICE]);
    assert_eq!((ledger, target), (escrow(market::deposit(&txn)), Some("9".to_owned())));
    assert!(owner.is_some(), "{record}");
}

/// The money that a node cannot compute any more is missing, not wrong.
#[test]
fn hedera_12_without_the_state_there_is_no_list_of_transfers() {
    let node = Node::start(&["--history", "2"]);
    let (_, old) = sent(&node, BOB, "0x7");
    assert!(old["transferList"].is_array(), "{old}");
    node.result("anvil_mine", json!(["0x8"]));
    let pruned = record(&node, &old["transactionHash"]);
    assert_eq!(pruned["transferList"], Value::Null);
    assert_eq!(pruned["transactionFee"], old["transactionFee"]);
    assert_eq!(hex::decode(pruned["transactionHash"].as_str().unwrap()).unwrap().len(), 32);
}
