//! Records of transactions that waited for signatures, over JSON-RPC and REST (HEDERA-12 … -15). What all records of a
//! block say about an account is compared with its balance.

use crate::{
    record::{LEDGER, balance_at, record, timestamp},
    support::{
        cron::{mine_at, now},
        *,
    },
};
use alloy_primitives::{Address, Bytes, I256, U256, hex};
use alloy_sol_types::{SolCall, SolValue as _, sol};
use serde_json::{Value, json};

sol!("../../contracts/IScheduleService.sol");
use IScheduleService::{Body, Call, createScheduleCall, fundCall, signScheduleCall};
sol! {
    /// contracts/examples/HederaAlarm.sol
    function set(uint256 second, uint256 gasLimit) external returns (int64);
}

const SERVICE: &str = "0x000000000000000000000000000000000000a103";
const CAROL: &str = "0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc";
const SHOP: &str = "0x00000000000000000000000000000000000005e1";

const FORWARDER: &str = "0x00000000000000000000000000000000000f0de1";
/// Calls the account in the first word with the rest: SUB of CALLDATASIZE and 32, CALLDATACOPY, CALL, STOP.
const FORWARDER_CODE: &str = "0x602036038060205f375f5f915f5f5f355af100";

/// Carol pays a shop.
fn body() -> Body {
    let call = Call {
        from: CAROL.parse().unwrap(),
        to: SHOP.parse().unwrap(),
        value: U256::from(5),
        data: Bytes::new(),
    };
    Body {
        calls: vec![call],
        gasLimit: 60_000,
        maxFeePerGas: U256::MAX,
        memo: "rent".to_owned(),
        nonce: 77,
        executionTime: 0,
        waitForExpiry: false,
    }
}

fn sent(node: &Node, from: &str, to: &str, value: u64, input: &[u8]) -> Value {
    let request = json!({ "from": from, "to": to, "value": format!("{value:#x}"), "gas": "0x200000",
        "data": hex::encode_prefixed(input) });
    let receipt = node.receipt(&node.result("eth_sendTransaction", json!([request])));
    assert_eq!(receipt["status"], "0x1", "{receipt}");
    receipt
}

fn create(node: &Node, from: &str, body: &Body, payer: Option<&str>, value: u64) -> Value {
    let create = createScheduleCall {
        transactionBody: body.abi_encode().into(),
        adminKey: Bytes::new(),
        payer: payer.map_or(Address::ZERO, |payer| payer.parse().unwrap()),
        sigMap: vec![],
    };
    sent(node, from, SERVICE, value, &create.abi_encode())
}

/// The number of the schedule that a record says was created.
fn created(node: &Node, receipt: &Value) -> Value {
    record(node, &receipt["transactionHash"])["receipt"]["scheduleID"]["idNumber"].clone()
}

/// Signs by calling.
fn sign(node: &Node, from: &str, id: &Value) -> Value {
    sent(node, from, SERVICE, 0, &signScheduleCall { scheduleID: number(id), sigMap: vec![] }.abi_encode())
}

/// The records of a block, after checking that they say together what these accounts have more or less.
fn records_of(node: &Node, block: &Value, accounts: &[&str]) -> Vec<Value> {
    let shown = node.result("eth_getBlockByNumber", json!([block, false]));
    let hashes = shown["transactions"].as_array().unwrap();
    let records: Vec<Value> = hashes.iter().map(|hash| record(node, hash)).collect();
    let number = number(block);
    for account in accounts {
        let [before, after] =
            [number - 1, number].map(|number| I256::from_raw(balance_at(node, account, number)));
        let said = records
            .iter()
            .filter_map(|record| amount(record, account))
            .fold(I256::ZERO, |sum, one| sum + one);
        assert_eq!(said, after - before, "{account}: {records:?}");
    }
    records
}

/// The record of a run, in a block whose start has one too: it took the schedule up.
fn run_in(records: &[Value]) -> &Value {
    let [_, run] = records else { panic!("two records: {records:?}") };
    assert!(run["scheduleRef"].is_object(), "{run}");
    run
}

/// What a record says that an account has more, or less.
fn amount(record: &Value, account: &str) -> Option<I256> {
    let list = record["transferList"].as_array().unwrap();
    let found = list.iter().find(|one| one["accountID"] == account);
    found.map(|one| one["amount"].as_str().unwrap().parse().unwrap())
}

fn fee(record: &Value) -> I256 {
    record["transactionFee"].as_str().unwrap().parse().unwrap()
}

const ALL: [&str; 5] = [ALICE, BOB, CAROL, SHOP, LEDGER];

/// HEDERA-12, -13: two records a nanosecond apart; the second has the ids of the creation, memo and nonce of the body.
/// HEDERA-15: the creator pays.
#[test]
fn hedera_13_a_signed_run_has_the_ids_of_its_creation_and_its_payer() {
    let node = Node::start(&[]);
    let creation = create(&node, BOB, &body(), None, 0);
    let id = created(&node, &creation);
    let signing = sign(&node, CAROL, &id);
    let [trigger, run] = &records_of(&node, &signing["blockNumber"], &ALL)[..] else { panic!("two records") };
    let nanos = |record: &Value| number_of(&record["consensusTimestamp"]["nanos"]);
    assert_eq!(nanos(run) - nanos(trigger), 1);
    assert_eq!((&trigger["memo"], &trigger["scheduleRef"]), (&json!(""), &Value::Null));
    assert_eq!(trigger["receipt"]["scheduleID"], Value::Null, "it created none");
    assert_eq!((&run["memo"], &run["receipt"]["status"]), (&json!("rent"), &json!("SUCCESS")));
    assert_eq!(run["scheduleRef"]["idNumber"], id);
    let expected = json!({
        "transactionValidStart": timestamp(&node, &creation["blockNumber"], 1),
        "accountID": BOB, "scheduled": true, "nonce": 77,
    });
    assert_eq!(run["transactionID"], expected);
    let five = Some(I256::unchecked_from(5));
    assert_eq!(
        [BOB, CAROL, SHOP, LEDGER].map(|one| amount(run, one)),
        [Some(-fee(run)), five.map(|n| -n), five, None]
    );
    assert!(fee(run) > I256::ZERO);
}

/// A payer that is not the creator pays, and a schedule that its creation triggers has a record like any other.
#[test]
fn hedera_15_another_payer_and_a_creation_that_triggers_have_records() {
    let node = Node::start(&[]);
    let id = created(&node, &create(&node, BOB, &body(), Some(ALICE), 0));
    sign(&node, ALICE, &id);
    let signing = sign(&node, CAROL, &id);
    let records = records_of(&node, &signing["blockNumber"], &ALL);
    assert_eq!([ALICE, BOB].map(|one| amount(&records[1], one)), [Some(-fee(&records[1])), None]);
    let creation = create(&node, CAROL, &Body { nonce: 78, memo: "at once".to_owned(), ..body() }, None, 0);
    let [trigger, run] = &records_of(&node, &creation["blockNumber"], &ALL)[..] else {
        panic!("two records")
    };
    assert_eq!(trigger["receipt"]["scheduleID"]["idNumber"], run["scheduleRef"]["idNumber"]);
    assert_eq!((&run["memo"], &run["transactionID"]["nonce"]), (&json!("at once"), &json!(78)));
    assert_eq!(run["transactionID"]["transactionValidStart"], trigger["consensusTimestamp"]);
}

/// HEDERA-04: who creates what waits already is told its id.
#[test]
fn hedera_04_the_record_of_an_equal_creation_has_the_id() {
    let node = Node::start(&[]);
    let id = created(&node, &create(&node, BOB, &body(), None, 0));
    assert_eq!(created(&node, &create(&node, ALICE, &body(), None, 0)), id);
    // Also where it brings the last signature.
    let last = create(&node, CAROL, &body(), None, 0);
    assert_eq!(created(&node, &last), id);
    let [_, run] = &records_of(&node, &last["blockNumber"], &ALL)[..] else { panic!("two records") };
    assert_eq!(run["transactionID"]["accountID"], BOB, "the first one created it");
}

/// HEDERA-14, -15: one that its payer cannot pay moves nothing, one whose value is missing costs its fee.
#[test]
fn hedera_14_a_failed_run_moves_its_fee_at_most() {
    let node = Node::start(&[]);
    let set_balance = |amount: &str| {
        node.result("anvil_setBalance", json!([BOB, amount]));
        node.result("evm_mine", json!([]));
    };
    let unpaid = created(&node, &create(&node, BOB, &body(), None, 0));
    let mut dear = body();
    dear.calls[0].value = U256::from(10).pow(U256::from(40));
    let too_dear = created(&node, &create(&node, BOB, &dear, None, 0));
    for (id, balance, is_paid) in [(&unpaid, "0x64", false), (&too_dear, "0x8ac7230489e80000", true)] {
        set_balance(balance);
        let signing = sign(&node, CAROL, id);
        let [trigger, run] = &records_of(&node, &signing["blockNumber"], &ALL)[..] else {
            panic!("two records")
        };
        assert_eq!(trigger["receipt"]["status"], "SUCCESS", "the signature stands");
        assert_eq!(run["receipt"]["status"], "INSUFFICIENT_PAYER_BALANCE");
        let paid = is_paid.then(|| -fee(run));
        assert_eq!(ALL.map(|one| amount(run, one)), [None, paid, None, None, None]);
        assert_eq!(fee(run) > I256::ZERO, is_paid);
    }
}

/// HEDERA-21: a payer that is not the creator returns what the creator prepaid, if it can.
#[test]
fn hedera_21_a_timed_run_is_paid_by_its_payer() {
    let node = Node::start(&[]);
    let second = now(&node) + 100;
    for (nonce, payer, is_paid) in [(1, None, true), (2, Some(ALICE), true), (3, Some(ALICE), false)] {
        let body = Body { nonce, executionTime: second + u64::from(nonce), waitForExpiry: true, ..body() };
        let id = created(&node, &create(&node, BOB, &body, payer, 1_000_000_000_000_000_000));
        payer.into_iter().chain([CAROL]).for_each(|party| drop(sign(&node, party, &id)));
        if !is_paid {
            node.result("anvil_setBalance", json!([ALICE, "0x64"]));
            node.result("evm_mine", json!([]));
        }
        mine_at(&node, second + u64::from(nonce));
        let runs = node.result("almanac_getRuns", json!([id]));
        let block = &runs["runs"][0]["receipt"]["blockNumber"];
        let records = records_of(&node, block, &ALL);
        let run = run_in(&records);
        assert_eq!((&run["memo"], &run["transactionID"]["nonce"]), (&json!("rent"), &json!(nonce)));
        let (fee, status) = (fee(run), run["receipt"]["status"].as_str().unwrap());
        assert_eq!(status, if is_paid { "SUCCESS" } else { "INSUFFICIENT_PAYER_BALANCE" });
        let expected = match payer.filter(|_| is_paid) {
            None => [None, None, Some(-fee)],
            Some(_) => [Some(-fee), Some(fee), Some(-fee)],
        };
        assert_eq!([ALICE, BOB, LEDGER].map(|one| amount(run, one)), expected, "{run}");
    }
}

/// HEDERA-15, -22: a contract pays from its fund, which is money of the ledger.
#[test]
fn hedera_22_a_contracts_fund_pays_for_its_run() {
    let node = Node::start(&[]);
    let artifact = include_str!("../../../../contracts/artifacts/HederaAlarm.json");
    let artifact: Value = serde_json::from_str(artifact).unwrap();
    let request = json!({ "from": ALICE, "data": artifact["bytecode"], "gas": "0x200000" });
    let receipt = node.receipt(&node.result("eth_sendTransaction", json!([request])));
    let alarm = receipt["contractAddress"].as_str().unwrap();
    let fund = fundCall { account: alarm.parse().unwrap() }.abi_encode();
    sent(&node, BOB, SERVICE, 1_000_000_000_000_000_000, &fund);
    let second = now(&node) + 100;
    let set = setCall { second: U256::from(second), gasLimit: U256::from(100_000) };
    let id = created(&node, &sent(&node, ALICE, alarm, 0, &set.abi_encode()));
    mine_at(&node, second);
    let runs = node.result("almanac_getRuns", json!([id]));
    let block = &runs["runs"][0]["receipt"]["blockNumber"];
    let records = records_of(&node, block, &[ALICE, BOB, LEDGER, alarm]);
    let run = run_in(&records);
    assert_eq!(
        (&run["receipt"]["status"], &run["transactionID"]["accountID"]),
        (&json!("SUCCESS"), &json!(alarm))
    );
    assert_eq!([LEDGER, alarm].map(|one| amount(run, one)), [Some(-fee(run)), None]);
}

/// HEDERA-15: value that a contract agreed to by a nested call comes from its fund too.
#[test]
fn hedera_15_value_from_a_fund_is_the_ledgers() {
    let node = Node::start(&[]);
    node.result("anvil_setCode", json!([FORWARDER, FORWARDER_CODE]));
    let forwarder: Address = FORWARDER.parse().unwrap();
    sent(&node, BOB, SERVICE, 1_000_000_000_000_000_000, &fundCall { account: forwarder }.abi_encode());
    let mut body = body();
    body.calls[0].from = forwarder;
    let create = createScheduleCall {
        transactionBody: body.abi_encode().into(),
        adminKey: Bytes::new(),
        payer: Address::ZERO,
        sigMap: vec![],
    };
    let service: Address = SERVICE.parse().unwrap();
    let forwarded = [service.into_word().as_slice(), &create.abi_encode()].concat();
    let creation = sent(&node, ALICE, FORWARDER, 0, &forwarded);
    let accounts = [ALICE, BOB, SHOP, LEDGER, FORWARDER];
    let [_, run] = &records_of(&node, &creation["blockNumber"], &accounts)[..] else { panic!("two records") };
    let five = I256::unchecked_from(5);
    let expected = [None, None, Some(five), Some(-fee(run) - five), None];
    assert_eq!(accounts.map(|one| amount(run, one)), expected, "{run}");
}

/// A number in JSON.
fn number_of(value: &Value) -> u64 {
    value.as_u64().unwrap()
}
