//! Runs as Ethereum's methods show them.

use crate::almanac::{block, wei};
use crate::support::{
    ALICE, Node,
    cron::{COUNTER, ICronRegistry, Job, REGISTRY, TARGET, mine_at, set_code},
    number,
    socket::Socket,
    to_bob,
};
use alloy_primitives::{U256, hex};
use alloy_sol_types::SolCall;
use serde_json::{Value, json};

/// A call is tried as the first transaction of the block to come, so the id that it answers with is the one that the job
/// gets. Calls of a simulated block follow each other there. All of them used to get the same id, of a block that was
/// there already and of the place of its prologue.
#[test]
fn predicted_ids_are_those_that_jobs_get() {
    let node = Node::start(&[]);
    let job = Job::once(&node, 1_000);
    let request = json!({ "from": ALICE, "to": REGISTRY, "value": format!("{:#x}", job.value),
        "data": hex::encode_prefixed(job.call()), "gas": "0x200000" });
    for block in ["latest", "pending"] {
        let predicted = node.result("eth_call", json!([request, block]));
        assert_eq!(wei(&predicted), wei(&job.make(&node).0), "on {block}");
    }
    let placed = node.result("eth_call", json!([request, "latest", {}, { "number": "0x64" }]));
    assert_eq!(wei(&placed), U256::from(100u64 << 28 | 1 << 10), "100-1-0");

    let blocks = json!([{ "calls": [request, request] }, { "calls": [request] }]);
    let simulated = node.result("eth_simulateV1", json!([{ "blockStateCalls": blocks }, "latest"]));
    let ids = [&simulated[0]["calls"][0], &simulated[0]["calls"][1], &simulated[1]["calls"][0]]
        .map(|call| wei(&call["returnData"]));
    node.result("evm_setAutomine", json!([false]));
    let send = || node.result("eth_sendTransaction", json!([request]));
    let mut sent = vec![send(), send()];
    node.result("evm_mine", json!([]));
    sent.push(send());
    node.result("evm_mine", json!([]));
    let made: Vec<_> = sent.iter().map(|hash| wei(&Job::made(node.receipt(hash)).0)).collect();
    assert_eq!(ids[..], made[..], "in the order of their calls");
}

/// Runs that are due in the next block and transactions that wait for it come before one that is sent now. They were
/// not counted, so that the id that `pending` answered with was that of another transaction.
#[test]
fn predicted_ids_count_what_comes_before_in_the_block() {
    let node = Node::start(&[]);
    set_code(&node, COUNTER);
    let (job, soon) = (Job::once(&node, 1_000), Job::once(&node, 100));
    let request = json!({ "from": ALICE, "to": REGISTRY, "value": format!("{:#x}", job.value),
        "data": hex::encode_prefixed(job.call()), "gas": "0x200000" });
    let predicted = || {
        let called = wei(&node.result("eth_call", json!([request, "pending"])));
        let blocks = json!({ "blockStateCalls": [{ "calls": [request, request] }] });
        let simulated = node.result("eth_simulateV1", json!([blocks, "pending"]));
        let ids = [0, 1].map(|nth: usize| wei(&simulated[0]["calls"][nth]["returnData"]));
        assert_eq!(ids, [called, called + U256::from(1 << 10)]);
        called
    };
    soon.make(&node);
    soon.make(&node);
    node.result("evm_setNextBlockTimestamp", json!([soon.at]));
    let due = predicted();
    assert_eq!(due, wei(&job.make(&node).0), "behind two runs");
    node.result("evm_setAutomine", json!([false]));
    node.result("eth_sendTransaction", json!([{ "from": ALICE, "to": TARGET, "value": "0x1" }]));
    let queued = predicted();
    let sent = node.result("eth_sendTransaction", json!([request]));
    node.result("evm_mine", json!([]));
    assert_eq!(queued, wei(&Job::made(node.receipt(&sent)).0), "behind a transaction that waits");
}

/// Both jobs of a simulated block are there for the calls after them.
#[test]
fn jobs_of_one_simulated_block_do_not_replace_each_other() {
    let node = Node::start(&[]);
    let job = Job::once(&node, 1_000);
    let order = |gas: u64| {
        let job = Job { gas, ..job.clone() };
        json!({ "from": ALICE, "to": REGISTRY, "value": format!("{:#x}", job.value),
            "data": hex::encode_prefixed(job.call()) })
    };
    let next = node.height() + 1;
    let ask = |index: u64| {
        let id = U256::from(next << 28 | index << 10);
        json!({ "from": ALICE, "to": REGISTRY,
            "data": hex::encode_prefixed(ICronRegistry::getJobCall { id }.abi_encode()) })
    };
    let calls = json!([order(50_000), order(60_000), ask(1), ask(2)]);
    let simulated =
        node.result("eth_simulateV1", json!([{ "blockStateCalls": [{ "calls": calls }] }, "latest"]));
    let gas = [2, 3].map(|call| {
        let answer = hex::decode(simulated[0]["calls"][call]["returnData"].as_str().unwrap()).unwrap();
        ICronRegistry::getJobCall::abi_decode_returns(&answer).unwrap().gasLimit
    });
    assert_eq!(gas, [50_000, 60_000].map(U256::from), "{simulated}");
}

/// A job that cannot pay ends in the prologue. Its log is as good as any other, so its transaction is shown, with
/// the same place and the same logs in every answer.
#[test]
fn a_prologue_with_logs_is_shown_everywhere() {
    let node = Node::start(&[]);
    set_code(&node, COUNTER);
    let job = Job::once(&node, 100);
    let (poor, _) = Job { value: U256::from(200_000_000_000_000u64), ..job.clone() }.every(60, 0).make(&node);
    let (rich, _) = job.make(&node);
    let filter = node.result("eth_newFilter", json!([{ "address": REGISTRY }]));
    let mut socket = Socket::open(&node.address);
    socket.call("eth_subscribe", json!(["logs", { "address": REGISTRY }]));
    node.result("evm_setAutomine", json!([false]));
    let sent = node.send(&to_bob(number(&node.result("eth_getTransactionCount", json!([ALICE, "latest"])))))
        ["result"]
        .clone();
    node.result("anvil_setNextBlockBaseFeePerGas", json!(["0x12a05f200"]));
    mine_at(&node, job.at);
    let shown = block(&node, true);
    let transactions = shown["transactions"].as_array().unwrap();
    assert_eq!(transactions.len(), 3, "prologue, run, transfer: {shown}");
    let [prologue, run, user] = &transactions[..] else { panic!("{shown}") };
    assert_eq!((&prologue["type"], &prologue["almanacType"]), (&json!("0x0"), &json!("0x70")));
    assert_eq!(user["hash"], sent);
    let expected = json!({ "id": node.result("almanac_getSchedule", json!([rich]))["id"], "idNumber": rich, "run": "0x0" });
    assert_eq!(run["scheduleRef"], expected);
    assert_eq!((&run["r"], &run["s"], &run["v"]), (&json!("0x1"), &json!("0x1"), &json!("0x1b")));
    assert_eq!((&run["from"], &run["to"], &run["type"]), (&json!(REGISTRY), &json!(TARGET), &json!("0x0")));
    assert_eq!((&run["almanacType"], &user["almanacType"]), (&json!("0x71"), &Value::Null));

    let receipts = node.result("eth_getBlockReceipts", json!([shown["number"]]));
    let mut logs = Vec::new();
    for (index, transaction) in transactions.iter().enumerate() {
        let place = json!(format!("{index:#x}"));
        let hash = &transaction["hash"];
        assert_eq!(transaction["transactionIndex"], place);
        assert_eq!(node.result("eth_getTransactionByHash", json!([hash])), *transaction);
        let by_index =
            node.result("eth_getTransactionByBlockNumberAndIndex", json!([shown["number"], place]));
        assert_eq!(by_index, *transaction);
        let receipt = node.result("eth_getTransactionReceipt", json!([hash]));
        assert_eq!(receipt, receipts[index]);
        assert_eq!(receipt["transactionIndex"], place);
        for log in receipt["logs"].as_array().unwrap() {
            assert_eq!(log["logIndex"], format!("{:#x}", logs.len()));
            assert_eq!((&log["transactionIndex"], &log["transactionHash"]), (&place, hash));
            logs.push(log.clone());
        }
    }
    assert_eq!(receipts[1]["scheduleRef"], expected);
    assert_eq!(logs.len(), 4, "one is exhausted, one was executed, and each has a refund");
    assert_eq!(logs[0]["topics"][1], format!("{:#066x}", wei(&poor)));
    let count = node.result("eth_getBlockTransactionCountByNumber", json!([shown["number"]]));
    assert_eq!(count, "0x3");
    assert_eq!(node.result("eth_getLogs", json!([{ "blockHash": shown["hash"] }])), json!(logs));
    // Those two ask for what the registry says; the ledger names the refunds.
    logs.retain(|log| log["address"] == REGISTRY);
    assert_eq!(node.result("eth_getFilterChanges", json!([filter])), json!(logs));
    assert_eq!([socket.news(), socket.news()], [logs[0].clone(), logs[1].clone()]);

    let traces =
        node.result("debug_traceBlockByNumber", json!([shown["number"], { "tracer": "callTracer" }]));
    let hashes: Vec<_> = transactions.iter().map(|transaction| transaction["hash"].clone()).collect();
    let traced: Vec<_> = traces.as_array().unwrap().iter().map(|trace| trace["txHash"].clone()).collect();
    assert_eq!(traced, hashes);
    assert_eq!(traces[1]["result"]["to"], TARGET);
    let replays = node.result("trace_replayBlockTransactions", json!([shown["number"], ["trace"]]));
    let replayed: Vec<_> =
        replays.as_array().unwrap().iter().map(|trace| trace["transactionHash"].clone()).collect();
    assert_eq!(replayed, hashes);
    for trace in node.result("trace_block", json!([shown["number"]])).as_array().unwrap() {
        let at = trace["transactionPosition"].as_u64().unwrap() as usize;
        assert_eq!(trace["transactionHash"], hashes[at]);
    }
    let details = node.result("ots_getBlockDetails", json!([shown["number"]]));
    assert_eq!(details["block"]["transactionCount"], 3);
    let page = node.result("ots_getBlockTransactions", json!([shown["number"], 0, 10]));
    let paged: Vec<_> =
        page["fullblock"]["transactions"].as_array().unwrap().iter().map(|tx| tx["hash"].clone()).collect();
    assert_eq!(paged, hashes);

    // The next one has nothing to say, and is not shown.
    mine_at(&node, job.at + 30);
    assert_eq!(block(&node, true)["transactions"], json!([]));
}

/// A job whose gas does not even cover its calldata has a receipt and so a trace, like everybody else.
#[test]
fn a_run_that_never_began_is_traced_too() {
    let node = Node::start(&[]);
    set_code(&node, COUNTER);
    let job = Job::once(&node, 100);
    Job { gas: 21_000, ..job.clone() }.make(&node);
    job.make(&node);
    mine_at(&node, job.at);
    let shown = block(&node, false);
    let receipts = node.result("eth_getBlockReceipts", json!([shown["number"]]));
    assert_eq!((&receipts[0]["status"], &receipts[1]["status"]), (&json!("0x0"), &json!("0x1")));
    assert_eq!(receipts[0]["gasUsed"], "0x5208");
    for tracer in ["callTracer", "prestateTracer", "flatCallTracer", "4byteTracer", "noopTracer"] {
        let traces = node.result("debug_traceBlockByNumber", json!([shown["number"], { "tracer": tracer }]));
        let traced: Vec<_> = traces.as_array().unwrap().iter().map(|trace| trace["txHash"].clone()).collect();
        assert_eq!(json!(traced), shown["transactions"], "{tracer}");
    }
    let steps = node.result("debug_traceTransaction", json!([shown["transactions"][0]]));
    assert_eq!((&steps["failed"], &steps["structLogs"]), (&json!(true), &json!([])));
    let calls =
        node.result("debug_traceTransaction", json!([shown["transactions"][1], { "tracer": "callTracer" }]));
    assert_eq!(calls["to"], TARGET);
    let replays =
        node.result("trace_replayBlockTransactions", json!([shown["number"], ["trace", "stateDiff"]]));
    assert_eq!(replays.as_array().unwrap().len(), 2);
    assert!(!node.result("ots_traceTransaction", json!([shown["transactions"][1]])).is_null());
    node.result("ots_traceTransaction", json!([shown["transactions"][0]]));
}
