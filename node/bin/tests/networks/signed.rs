//! A transaction that waits for signatures, among real processes: made through one validator, signed through two others
//! (HEDERA-07, -12).

use crate::support::{Node, network::wait_for, number};
use alloy_primitives::{Address, B256, U256, address, b256};
use almanac_primitives::{
    Chain, ScheduleId, UserTransaction,
    testing::{CHAIN_ID, Person, signed::*},
};
use serde_json::{Value, json};

/// Gets what both signers pay.
const HEIR: Address = address!("0x00000000000000000000000000000000000000e1");
const BOB: Person = Person {
    secret: b256!("0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d"),
    address: address!("0x70997970C51812dc3A010C7d01b50e0d17dc79C8"),
};
const CAROL: Person = Person {
    secret: b256!("0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a"),
    address: address!("0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC"),
};
const DAVE: Person = Person {
    secret: b256!("0x7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6"),
    address: address!("0x90F79bf6EB2c4f870365E785982E1f101E93b906"),
};

/// A schedule that was executed: its id, the transactions that made, signed and completed it, and its run.
pub(crate) struct Executed {
    id: ScheduleId,
    hashes: [Value; 4],
}

/// Bob makes a schedule at one validator; Carol and Dave, who pay, sign at two others.
pub(crate) fn made_and_signed(nodes: &[Node]) -> Executed {
    let genesis = nodes[0].result("eth_getBlockByNumber", json!(["0x0", false]));
    let genesis: B256 = genesis["hash"].as_str().unwrap().parse().unwrap();
    let chain = Chain { id: CHAIN_ID, genesis };
    let pays =
        |who: Person, value| ServiceCall { value: U256::from(value), ..service_call(who.address, HEIR) };
    let wish = Wish::new(vec![pays(CAROL, 5), pays(DAVE, 7)]);

    let made = sent(&nodes[1], &to_service(BOB, 0, wish.create(vec![])));
    let id = ScheduleId(number(&made["logs"][0]["topics"][1]));
    // Each through a validator of its own, as soon as that one knows the schedule.
    let sign = |node: &Node, who: Person| {
        seen(node, &made["transactionHash"]);
        sent(node, &to_service(who, 0, signing(id, vec![wish.signed_on(&chain, who)])))
    };
    let (first, last) = (sign(&nodes[2], CAROL), sign(&nodes[3], DAVE));
    let block = nodes[3].result("eth_getBlockByNumber", json!([last["blockNumber"], false]));
    let next = usize::try_from(number(&last["transactionIndex"]) + 1).unwrap();
    let run = block["transactions"][next].clone();
    let [made, first, last] = [made, first, last].map(|receipt| receipt["transactionHash"].clone());
    Executed { id, hashes: [made, first, last, run] }
}

/// All validators have the same receipts and records of it, and its calls were made once.
pub(crate) fn shown_by_all(nodes: &[Node], executed: &Executed) {
    let run = &executed.hashes[3];
    for hash in &executed.hashes {
        let receipt = seen(&nodes[0], hash);
        let record = nodes[0].result("almanac_getRecord", json!([hash]));
        assert_eq!((&receipt["status"], &record["receipt"]["code"]), (&json!("0x1"), &json!(22)), "{record}");
        let of = &record["scheduleRef"]["idNumber"];
        assert_eq!(!of.is_null(), hash == run, "only the run names the schedule: {record}");
        for node in nodes {
            assert_eq!(seen(node, hash), receipt);
            assert_eq!(node.result("almanac_getRecord", json!([hash])), record);
        }
    }
    for node in nodes {
        let runs = node.result("almanac_getRuns", json!([format!("{:#x}", executed.id.0)]));
        let runs: Vec<_> = runs["runs"].as_array().unwrap().iter().collect();
        assert_eq!(runs.len(), 1, "{runs:?}");
        assert_eq!(runs[0]["receipt"]["transactionHash"], *run);
        assert_eq!(node.balance(&HEIR.to_string()), U256::from(12), "each paid once");
    }
}

/// Sends a transaction that must pass, and answers with its receipt.
fn sent(node: &Node, transaction: &UserTransaction) -> Value {
    let hash = node.send(transaction)["result"].clone();
    assert!(hash.is_string(), "{hash}");
    let receipt = seen(node, &hash);
    assert_eq!(receipt["status"], "0x1", "{receipt}");
    receipt
}

fn seen(node: &Node, hash: &Value) -> Value {
    wait_for("receipt", || {
        let receipt = node.result("eth_getTransactionReceipt", json!([hash]));
        (!receipt.is_null()).then_some(receipt)
    })
}
