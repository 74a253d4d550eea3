//! The `almanac_` methods, and runs as Ethereum's methods show them: real requests to a real process.

mod support;

use alloy_primitives::{U256, hex};
use alloy_sol_types::{SolCall, sol};
use serde_json::{Value, json};
use support::{
    cron::{
        COUNTER, ICronRegistry, Job, REGISTRY, REVERTER, TARGET, TIRES, cancel, mine_at, now, set_code,
        top_up,
    },
    socket::Socket,
    *,
};

sol!("../../contracts/IParameters.sol");

#[track_caller]
fn refused(node: &Node, method: &str, params: Value, code: i64, expected: &str) {
    let answer = node.call(method, params);
    let message = answer["error"]["message"].as_str().unwrap_or_default().to_owned();
    assert!(answer["error"]["code"] == code && message.contains(expected), "{method}: {answer}");
}

fn wei(value: &Value) -> U256 {
    value.as_str().unwrap().parse().unwrap()
}

fn block(node: &Node, is_full: bool) -> Value {
    node.result("eth_getBlockByNumber", json!(["latest", is_full]))
}

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
    assert_eq!(prologue["type"], "0x70");
    assert_eq!(user["hash"], sent);
    let expected = json!({ "id": node.result("almanac_getSchedule", json!([rich]))["id"], "idNumber": rich, "run": "0x0" });
    assert_eq!(run["scheduleRef"], expected);
    assert_eq!((&run["r"], &run["s"], &run["v"]), (&json!("0x0"), &json!("0x0"), &json!("0x0")));
    assert_eq!((&run["from"], &run["to"], &run["type"]), (&json!(REGISTRY), &json!(TARGET), &json!("0x71")));

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
    assert_eq!(logs.len(), 2, "one is exhausted, one was executed");
    assert_eq!(logs[0]["topics"][1], format!("{:#066x}", wei(&poor)));
    let count = node.result("eth_getBlockTransactionCountByNumber", json!([shown["number"]]));
    assert_eq!(count, "0x3");
    assert_eq!(node.result("eth_getLogs", json!([{ "blockHash": shown["hash"] }])), json!(logs));
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

#[test]
fn a_schedule_from_birth_to_end() {
    let node = Node::start(&[]);
    set_code(&node, COUNTER);
    let job = Job { options: 1, ..Job::once(&node, 100) }.every(60, 3);
    let (id, made) = job.make(&node);
    let schedule = node.result("almanac_getSchedule", json!([id]));
    let text = schedule["id"].clone();
    let by_text = node.result("almanac_getSchedule", json!([text]));
    let by_number = node.result("almanac_getSchedule", json!([number(&id)]));
    assert_eq!((&by_text, &by_number), (&schedule, &schedule));
    assert_eq!(schedule["idNumber"], id);
    assert_eq!((&schedule["status"], &schedule["lane"]), (&json!("pending"), &json!("cron")));
    assert_eq!((&schedule["owner"], &schedule["target"]), (&json!(ALICE), &json!(TARGET)));
    assert_eq!(schedule["nextRun"]["ms"], format!("{:#x}", job.at * 1_000));
    assert!(schedule["nextRun"]["iso"].as_str().unwrap().ends_with(".000Z"));
    assert_eq!(wei(&schedule["escrow"]), job.value);
    assert_eq!((&schedule["runs"], &schedule["runsLeft"]), (&json!("0x0"), &json!("0x3")));
    assert_eq!(schedule["created"]["transactionHash"], made["transactionHash"]);
    assert_eq!(schedule["created"]["transactionIndex"], made["transactionIndex"]);
    let terms = &schedule["terms"];
    assert_eq!((&terms["gasLimit"], &terms["intervalMs"]), (&json!("0x186a0"), &json!("0xea60")));
    assert_eq!(
        (&terms["charge"], &terms["catchUp"], &terms["input"]),
        (&json!("gasUsed"), &json!("all"), &json!("0x01020304"))
    );
    assert_eq!((&schedule["end"], &schedule["lastRun"]), (&json!(null), &json!(null)));

    mine_at(&node, job.at);
    set_code(&node, REVERTER);
    mine_at(&node, job.at + 60);
    let schedule = node.result("almanac_getSchedule", json!([id]));
    assert_eq!((&schedule["runs"], &schedule["runsFailed"]), (&json!("0x2"), &json!("0x1")));
    assert_eq!((&schedule["lastRun"], &schedule["runsLeft"]), (&json!("reverted"), &json!("0x1")));
    let page = node.result("almanac_getRuns", json!([text, { "limit": 1 }]));
    assert_eq!(page["runs"].as_array().unwrap().len(), 1);
    assert_eq!((&page["runs"][0]["run"], &page["runs"][0]["success"]), (&json!("0x0"), &json!(true)));
    let rest = node.result("almanac_getRuns", json!([text, { "limit": 1, "cursor": page["cursor"] }]));
    assert_eq!((&rest["runs"][0]["run"], &rest["cursor"]), (&json!("0x1"), &json!(null)));
    assert_eq!(rest["runs"][0]["error"], "execution reverted: no reason given");
    let hash = &rest["runs"][0]["receipt"]["transactionHash"];
    assert_eq!(node.result("eth_getTransactionReceipt", json!([hash])), rest["runs"][0]["receipt"]);
    let newest = node.result("almanac_getRuns", json!([text, { "order": "newest", "limit": 1 }]));
    assert_eq!(newest["runs"], rest["runs"]);
    let older = node.result(
        "almanac_getRuns",
        json!([text, { "order": "newest", "limit": 1, "cursor": newest["cursor"] }]),
    );
    assert_eq!((&older["runs"], &older["cursor"]), (&page["runs"], &json!(null)));

    mine_at(&node, job.at + 120);
    let schedule = node.result("almanac_getSchedule", json!([id]));
    assert_eq!((&schedule["status"], &schedule["nextRun"]), (&json!("exhausted"), &json!(null)));
    assert_eq!(
        (&schedule["end"]["reason"], &schedule["escrow"]),
        (&json!("max runs reached"), &json!("0x0"))
    );
    assert_eq!(schedule["end"]["transactionHash"], block(&node, false)["transactions"][0]);
    assert_eq!(schedule["terms"], *terms, "kept after the end");
    assert_eq!((&schedule["runs"], &schedule["runsLeft"]), (&json!("0x3"), &json!("0x0")));

    assert_eq!(node.result("almanac_getSchedule", json!(["7-7-7"])), Value::Null);
    refused(
        &node,
        "almanac_getSchedule",
        json!(["seven"]),
        -32_602,
        "neither a number nor of the form 1042-3-0",
    );
    refused(&node, "almanac_getSchedule", json!([[7]]), -32_602, "is no schedule id");
    refused(&node, "almanac_getSchedule", json!(["0x10000000000000000"]), -32_602, "below 2^64");
    refused(&node, "almanac_getRuns", json!(["7-7-7"]), -32_000, "there never was a schedule 7-7-7");
    refused(&node, "almanac_getRuns", json!([id, { "limit": 0 }]), -32_602, "limit 0 is not in 1..=100");
    refused(&node, "almanac_getRuns", json!([id, { "limit": 101 }]), -32_602, "limit 101 is not in 1..=100");
    refused(&node, "almanac_getRuns", json!([id, { "cursor": "x" }]), -32_602, "is no cursor");
    refused(
        &node,
        "almanac_getRuns",
        json!([id, { "order": "best" }]),
        -32_602,
        "expected `oldest` or `newest`",
    );
}

/// ARC21-10: whose jobs there are is the node's to say, not the state's.
#[test]
fn arc21_10_every_end_has_its_status_and_lists_find_them() {
    let node = Node::start(&[]);
    set_code(&node, COUNTER);
    let job = Job::once(&node, 100);
    let (succeeded, _) = job.make(&node);
    let reverter = "0x00000000000000000000000000000000000c0de2";
    node.result("anvil_setCode", json!([reverter, REVERTER]));
    let (failed, _) = Job { target: reverter.parse().unwrap(), ..job.clone() }.make(&node);
    let (cancelled, _) = job.make(&node);
    assert_eq!(cancel(&node, &cancelled)["status"], "0x1");
    let (exhausted, _) = Job { value: U256::from(200_000_000_000_000u64), ..job.clone() }.make(&node);
    let (pending, _) = Job { at: job.at + 1_000, ..job.clone() }.make(&node);
    node.result("anvil_setNextBlockBaseFeePerGas", json!(["0x12a05f200"]));
    mine_at(&node, job.at);
    let status = |id: &Value| node.result("almanac_getSchedule", json!([id]))["status"].clone();
    for (id, expected) in [
        (&succeeded, "succeeded"),
        (&failed, "failed"),
        (&cancelled, "cancelled"),
        (&exhausted, "exhausted"),
        (&pending, "pending"),
    ] {
        assert_eq!(status(id), expected);
        let found = list(&node, json!({ "status": expected }));
        assert_eq!(found, json!([id]), "{expected}");
    }
    let end = &node.result("almanac_getSchedule", json!([exhausted]))["end"];
    assert_eq!(end["reason"], "insufficient escrow");
    assert_eq!(
        (&end["transactionHash"], &end["transactionIndex"]),
        (&block(&node, false)["transactions"][0], &json!("0x0"))
    );
    let all = json!([succeeded, failed, cancelled, exhausted, pending]);
    assert_eq!(list(&node, json!({})), all);
    assert_eq!(list(&node, json!({ "owner": ALICE, "lane": "cron" })), all);
    assert_eq!(list(&node, json!({ "owner": BOB })), json!([]));
    assert_eq!(list(&node, json!({ "lane": "spare" })), json!([]));
    assert_eq!(list(&node, json!({ "target": reverter })), json!([failed]));
    assert_eq!(list(&node, json!({ "target": TARGET, "status": "cancelled" })), json!([cancelled]));
    let (from, to) = ((job.at + 1_000) * 1_000, (job.at + 1_000) * 1_000);
    assert_eq!(list(&node, json!({ "dueFrom": from, "dueTo": to })), json!([pending]));
    assert_eq!(list(&node, json!({ "dueFrom": format!("{:#x}", from + 1) })), json!([]));
    assert_eq!(list(&node, json!({ "dueTo": to - 1 })), json!([]));
    refused(
        &node,
        "almanac_listSchedules",
        json!([{ "ownr": ALICE }]),
        -32_602,
        "unknown field `ownr`, expected one of `owner`",
    );
    refused(&node, "almanac_listSchedules", json!([{ "status": "done" }]), -32_602, "unknown variant `done`");
    refused(
        &node,
        "almanac_listSchedules",
        json!([{ "dueFrom": 2, "dueTo": 1 }]),
        -32_602,
        "dueTo 1 is before dueFrom 2",
    );
    refused(
        &node,
        "almanac_listSchedules",
        json!([{ "limit": 101 }]),
        -32_602,
        "limit 101 is not in 1..=100",
    );
    refused(&node, "almanac_listSchedules", json!([{ "cursor": "?" }]), -32_602, "neither a number");
}

/// The numbers of all schedules that a filter asks for, two at a time.
fn list(node: &Node, filter: Value) -> Value {
    let (mut found, mut filter) = (Vec::new(), filter);
    filter["limit"] = json!(2);
    loop {
        let page = node.result("almanac_listSchedules", json!([filter]));
        found.extend(page["schedules"].as_array().unwrap().iter().map(|one| one["idNumber"].clone()));
        if page["cursor"].is_null() {
            return json!(found);
        }
        filter["cursor"] = page["cursor"].clone();
    }
}

#[test]
fn going_back_takes_schedules_and_ends_back() {
    let node = Node::start(&[]);
    set_code(&node, COUNTER);
    let job = Job::once(&node, 100);
    let (first, _) = job.make(&node);
    let before = node.result("almanac_getSchedule", json!([first]));
    let snapshot = node.result("evm_snapshot", json!([]));
    let (second, _) = job.make(&node);
    mine_at(&node, job.at);
    assert_eq!(node.result("almanac_getSchedule", json!([first]))["status"], "succeeded");
    let mut socket = Socket::open(&node.address);
    socket.call("almanac_subscribe", json!(["runs"]));
    node.result("evm_revert", json!([snapshot]));
    assert_eq!(socket.news()["event"], "reverted");
    assert_eq!(node.result("almanac_getSchedule", json!([first])), before);
    assert_eq!(node.result("almanac_getSchedule", json!([second])), Value::Null);
    assert_eq!(node.result("almanac_getRuns", json!([first]))["runs"], json!([]));
    assert_eq!(list(&node, json!({})), json!([first]));
}

#[test]
fn the_agenda_and_what_it_asks_for() {
    let node = Node::start(&[]);
    set_code(&node, COUNTER);
    let job = Job::once(&node, 100);
    let (late, _) = Job { at: job.at + 7, ..job.clone() }.make(&node);
    let (early, _) = job.clone().every(60, 2).make(&node);
    let (same, _) = Job { gas: 5_000_000, value: job.value * U256::from(100), ..job.clone() }.make(&node);
    let ids = |page: &Value| -> Value {
        page["entries"].as_array().unwrap().iter().map(|entry| entry["idNumber"].clone()).collect()
    };
    let page = node.result("almanac_agenda", json!([{ "limit": 2 }]));
    assert_eq!(ids(&page), json!([early, same]), "by time, then by birth");
    assert_eq!(
        (&page["entries"][0]["owner"], &page["entries"][1]["gasLimit"]),
        (&json!(ALICE), &json!("0x4c4b40"))
    );
    assert_eq!(
        (&page["heldLanes"], &page["blockNumber"]),
        (&json!([]), &json!(format!("{:#x}", node.height())))
    );
    let rest = node.result("almanac_agenda", json!([{ "limit": 2, "cursor": page["cursor"] }]));
    assert_eq!((ids(&rest), &rest["cursor"]), (json!([late]), &json!(null)));
    let from = node.result("almanac_agenda", json!([{ "from": (job.at + 1) * 1_000 }]));
    assert_eq!(ids(&from), json!([late]));
    let to = node.result("almanac_agenda", json!([{ "to": job.at * 1_000 }]));
    assert_eq!((ids(&to), &to["cursor"]), (json!([early, same]), &json!(null)));
    assert_eq!(ids(&node.result("almanac_agenda", json!([{ "lanes": ["spare"] }]))), json!([]));
    refused(&node, "almanac_agenda", json!([{ "cursor": "0x01" }]), -32_602, "this is no cursor");
    refused(
        &node,
        "almanac_agenda",
        json!([{ "cursor": page["cursor"], "from": 1 }]),
        -32_602,
        "both cursor and from",
    );
    refused(&node, "almanac_agenda", json!([{ "lanes": ["fast"] }]), -32_602, "unknown variant `fast`");

    let span = json!([{ "from": job.at * 1_000, "to": (job.at + 60) * 1_000 }]);
    let capacity = node.result("almanac_capacity", span);
    let cron = &capacity["lanes"][1];
    assert_eq!(
        (&cron["lane"], &cron["blockGasMax"], &cron["isHeld"]),
        (&json!("cron"), &json!("0xe4e1c0"), &json!(false))
    );
    let seconds: Vec<_> = cron["seconds"]
        .as_array()
        .unwrap()
        .iter()
        .map(|second| {
            (
                number(&second["time"]["ms"]) / 1_000 - job.at,
                number(&second["runs"]),
                number(&second["gas"]),
                number(&second["blocksNeeded"]),
            )
        })
        .collect();
    assert_eq!(seconds, [(0, 2, 5_100_000, 1), (7, 1, 100_000, 1), (60, 1, 100_000, 1)]);
    // The series has two runs: nothing is due after that.
    let later = node
        .result("almanac_capacity", json!([{ "from": (job.at + 61) * 1_000, "to": (job.at + 200) * 1_000 }]));
    assert_eq!(later["lanes"][1]["seconds"], json!([]));
    assert_eq!(later["lanes"].as_array().unwrap().len(), 4);
    refused(&node, "almanac_capacity", json!([{ "from": 2_000, "to": 1_000 }]), -32_602, "before it begins");
    refused(
        &node,
        "almanac_capacity",
        json!([{ "from": 0, "to": 3_600_000 }]),
        -32_005,
        "3601 seconds is above the limit of 3600",
    );
    node.result("almanac_capacity", json!([{ "from": 0, "to": 3_599_999 }]));
}

/// What a preview says is what then happens.
#[test]
fn a_preview_says_what_will_happen() {
    let node = Node::start(&[]);
    set_code(&node, TIRES);
    let job = Job { options: 1, ..Job::once(&node, 100) }.every(60, 4);
    let (id, _) = job.make(&node);
    let preview = node.result("almanac_preview", json!([id, 10]));
    let runs = preview["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 4);
    assert_eq!(
        (&preview["escrowSuffices"], &preview["end"]["reason"]),
        (&json!(true), &json!("max runs reached"))
    );
    let successes: Vec<_> = runs.iter().map(|run| run["success"].as_bool().unwrap()).collect();
    assert_eq!(successes, [true, true, false, false], "each on what the ones before left");
    assert_eq!(node.result("eth_getStorageAt", json!([TARGET, "0x0", "latest"])), format!("{:#066x}", 0));
    for (nth, run) in (0u64..).zip(runs) {
        node.result("anvil_setNextBlockBaseFeePerGas", json!([preview["baseFee"]]));
        let at = job.at + 60 * nth;
        assert_eq!(number(&run["time"]["ms"]), at * 1_000);
        // At most half of the charge returns.
        let paid = wei(&run["gasUsed"]).max(U256::from(job.gas / 2));
        assert_eq!(wei(&run["fee"]), paid * wei(&preview["baseFee"]));
        mine_at(&node, at);
        let page = node.result("almanac_getRuns", json!([id, { "order": "newest", "limit": 1 }]));
        let real = &page["runs"][0];
        assert_eq!(
            (&real["run"], &real["success"], &real["error"]),
            (&run["run"], &run["success"], &run["error"])
        );
        assert_eq!(real["receipt"]["gasUsed"], run["gasUsed"]);
        assert_eq!(node.result("almanac_getSchedule", json!([id]))["escrow"], run["escrowAfter"]);
        let logs: Vec<_> =
            real["receipt"]["logs"].as_array().unwrap().iter().map(|log| log["data"].clone()).collect();
        let previewed: Vec<_> =
            run["logs"].as_array().unwrap().iter().map(|log| log["data"].clone()).collect();
        assert_eq!(logs, previewed);
    }
    let preview = node.result("almanac_preview", json!([id]));
    assert_eq!((&preview["runs"], &preview["end"]["status"]), (&json!([]), &json!("exhausted")));
    refused(&node, "almanac_preview", json!([id, 0]), -32_602, "0 runs are not in 1..=10");
    refused(&node, "almanac_preview", json!([id, 11]), -32_602, "11 runs are not in 1..=10");
    refused(&node, "almanac_preview", json!(["7-7-7"]), -32_000, "there never was");
}

#[test]
fn money_that_does_not_suffice_is_foreseen() {
    let node = Node::start(&[]);
    set_code(&node, COUNTER);
    let base_fee = wei(&block(&node, false)["baseFeePerGas"]);
    let charge = U256::from(100_000) * base_fee;
    let job = Job { value: charge * U256::from(2), ..Job::once(&node, 100) }.every(60, 0);
    let (id, _) = job.make(&node);
    let runway = node.result("almanac_runway", json!([id]));
    let now_fee = wei(&runway["baseFee"]);
    let paid = job.value / (U256::from(100_000) * now_fee);
    assert_eq!(wei(&runway["runs"]), paid);
    assert_eq!((&runway["limitedBy"], &runway["isLeast"]), (&json!("escrow"), &json!(false)));
    let last = job.at + 60 * (paid.to::<u64>() - 1);
    assert_eq!(number(&runway["lastRun"]["ms"]), last * 1_000);
    assert_eq!(number(&runway["runsDry"]["ms"]), (last + 60) * 1_000);
    let preview = node.result("almanac_preview", json!([id, 10]));
    assert_eq!(preview["runs"].as_array().unwrap().len() as u64, paid.to::<u64>(), "as the runway says");
    assert_eq!(
        (&preview["escrowSuffices"], &preview["end"]["reason"]),
        (&json!(false), &json!("insufficient escrow"))
    );
    top_up(&node, &id, 1_000_000_000_000_000);
    assert_eq!(node.result("almanac_preview", json!([id, 10]))["escrowSuffices"], true);

    let (counted, _) = Job::once(&node, 100).make(&node);
    let runway = node.result("almanac_runway", json!([counted]));
    assert_eq!(
        (&runway["runs"], &runway["limitedBy"], &runway["runsDry"]),
        (&json!("0x1"), &json!("runs"), &json!(null))
    );
    cancel(&node, &counted);
    refused(&node, "almanac_runway", json!([counted]), -32_000, "does not run any more: it is Cancelled");
    refused(&node, "almanac_runway", json!(["7-7-7"]), -32_000, "there never was");
}

#[test]
fn parameters_with_value_bounds_and_reason() {
    let node = Node::start(&[]);
    let parameters = node.result("almanac_getParameters", json!([]));
    let named =
        |name: &str| parameters.as_array().unwrap().iter().find(|one| one["name"] == name).unwrap().clone();
    let cron = named("cron_block_gas_max");
    assert_eq!((&cron["value"], &cron["default"]), (&json!("0xe4e1c0"), &json!("0xe4e1c0")));
    assert!(number(&cron["min"]) < number(&cron["value"]) && number(&cron["value"]) < number(&cron["max"]));
    assert!(!cron["reason"].as_str().unwrap().is_empty());
    assert_eq!(named("cron_paused")["value"], "0x0");
    assert_eq!(node.result("rpc_modules", json!([]))["almanac"], "1.0");
    assert_eq!(node.call("almanac_nothing", json!([]))["error"]["code"], -32_601);
}

#[test]
fn subscriptions_tell_what_happens_in_order() {
    let node = Node::start(&[]);
    set_code(&node, COUNTER);
    let mut everything = Socket::open(&node.address);
    let subscribed = everything.call("almanac_subscribe", json!(["schedules"]));
    assert!(!subscribed["result"].is_null(), "{subscribed}");
    let mut nobody = Socket::open(&node.address);
    nobody.call("almanac_subscribe", json!(["schedules", { "owner": BOB }]));
    let job = Job::once(&node, 100);
    let (single, _) = job.make(&node);
    let (series, _) = job.clone().every(60, 2).make(&node);
    let mut runs = Socket::open(&node.address);
    runs.call("almanac_subscribe", json!(["runs", { "id": series, "target": TARGET, "owner": ALICE }]));
    top_up(&node, &single, 7);
    mine_at(&node, job.at);
    mine_at(&node, job.at + 60);
    let (cancelled, made) = Job { at: job.at + 600, ..job.clone() }.make(&node);
    cancel(&node, &cancelled);
    let told: Vec<(Value, Value)> = (0..7)
        .map(|_| {
            let news = everything.news();
            (news["event"].clone(), news["idNumber"].clone())
        })
        .collect();
    let expected = [
        ("created", &single),
        ("created", &series),
        ("toppedUp", &single),
        ("succeeded", &single),
        ("exhausted", &series),
        ("created", &cancelled),
        ("cancelled", &cancelled),
    ];
    let expected: Vec<_> = expected.into_iter().map(|(event, id)| (json!(event), id.clone())).collect();
    assert_eq!(told, expected);
    for run in ["0x0", "0x1"] {
        let news = runs.news();
        assert_eq!(
            (&news["event"], &news["run"], &news["success"]),
            (&json!("run"), &json!(run), &json!(true))
        );
        assert_eq!((&news["owner"], &news["idNumber"]), (&json!(ALICE), &series));
        assert!(number(&news["gasUsed"]) > 21_000);
        let receipt = node.result("eth_getTransactionReceipt", json!([news["transactionHash"]]));
        assert_eq!(receipt["scheduleRef"]["run"], run);
        assert_eq!(receipt["blockHash"], news["blockHash"]);
    }
    // Bob's subscription heard nothing of all that: the next thing it says is its own answer.
    let answer = nobody.call("eth_blockNumber", json!([]));
    assert_eq!(answer["result"], format!("{:#x}", node.height()));
    let answer = everything.call("almanac_unsubscribe", json!([subscribed["result"]]));
    assert_eq!(answer["result"], true);
    assert_eq!(made["status"], "0x1");
    assert!(now(&node) >= job.at);

    refused(&node, "almanac_subscribe", json!(["runs"]), -32_601, "subscribe over WebSocket");
    let refusal = everything.call("almanac_subscribe", json!(["everything"]));
    assert!(
        refusal["error"]["message"].as_str().unwrap().contains("there are schedules and runs"),
        "{refusal}"
    );
    let refusal = everything.call("almanac_subscribe", json!(["runs", { "who": 1 }]));
    assert!(refusal["error"]["message"].as_str().unwrap().contains("unknown field `who`"), "{refusal}");
}

/// Proofs from a running node hold against a block hash alone, as another process sees them.
#[test]
fn proofs_of_schedules_and_of_empty_spans() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("chain");
    let node = Node::start(&["--datadir", path.to_str().unwrap()]);
    set_code(&node, COUNTER);
    let job = Job::once(&node, 10_000);
    let (id, made) = job.make(&node);
    let tip = block(&node, false);
    let verify = |proof: &Value, hash: &Value| {
        let file = directory.path().join("proof.json");
        std::fs::write(&file, proof.to_string()).unwrap();
        let output = run(&[
            "proof",
            "verify",
            "--proof",
            file.to_str().unwrap(),
            "--block-hash",
            hash.as_str().unwrap(),
        ]);
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let proof = node.result("almanac_getProof", json!([{ "schedule": id }]));
    assert_eq!((&proof["header"]["hash"], &proof["header"]["number"]), (&tip["hash"], &tip["number"]));
    let kinds: Vec<_> =
        proof["values"].as_array().unwrap().iter().map(|value| &value["key"]["kind"]).collect();
    assert_eq!(kinds, ["slot", "body", "slot"], "head, body, escrow");
    let (is_good, text) = verify(&proof, &tip["hash"]);
    assert!(is_good && text.contains("Proven: schedule"), "{text}");
    assert!(text.contains(&format!("({} wei)", job.value)), "{text}");
    assert!(!verify(&proof, &tip["parentHash"]).0, "another block is another state");
    let mut forged = proof.clone();
    forged["values"][2]["value"] = json!("0x01");
    assert!(!verify(&forged, &tip["hash"]).0);

    for (wanted, expected) in [
        (json!({ "account": ALICE }), "Proven: account 0xf39Fd6e5"),
        (json!({ "account": TARGET }), "Proven: account 0x00000000000000000000000000000000000c0dE1"),
        (
            json!({ "account": "0x000000000000000000000000000000000000a1ff", "slot": proof["values"][0]["key"]["slot"] }),
            "Proven: slot",
        ),
    ] {
        let value = node.result("almanac_getProof", json!([wanted]));
        let (is_good, text) = verify(&value, &tip["hash"]);
        assert!(is_good && text.contains(expected), "{text}");
    }

    let span = |from: u64, to: u64| json!([{ "lane": "cron", "from": from * 1_000, "to": to * 1_000 }]);
    let due = node.result("almanac_getProof", span(job.at, job.at + 60));
    assert_eq!((&due["entries"][0]["idNumber"], due["entries"].as_array().unwrap().len()), (&id, 1));
    let (is_good, text) = verify(&due, &tip["hash"]);
    assert!(is_good && text.contains("and nothing else"), "{text}");
    let nothing = node.result("almanac_getProof", span(job.at + 1, job.at + 60));
    assert_eq!(nothing["entries"], json!([]));
    let (is_good, text) = verify(&nothing, &tip["hash"]);
    assert!(is_good && text.contains("due         nothing"), "{text}");
    assert_eq!(nothing["values"][0]["key"]["kind"], "calendarNode");

    let transaction = made["transactionHash"].clone();
    let ran = node.result("almanac_getProof", json!([{ "transaction": transaction }]));
    assert_eq!(ran["header"]["hash"], made["blockHash"], "a receipt of any block");
    let (is_good, text) = verify(&ran, &made["blockHash"]);
    assert!(is_good && text.contains("Proven: a transaction is in block"), "{text}");
    refused(&node, "almanac_getProof", json!([{ "run": transaction }]), -32_000, "is no run of a schedule");
    refused(&node, "almanac_getProof", json!([{ "run": tip["hash"] }]), -32_000, "transaction not found");

    let snapshot = node.result("evm_snapshot", json!([]));
    node.result("evm_mine", json!([]));
    refused(
        &node,
        "almanac_getProof",
        json!([{ "schedule": id }]),
        -32_000,
        "only the last committed state can be proven",
    );
    node.result("evm_revert", json!([snapshot]));
    cancel(&node, &id);
    refused(&node, "almanac_getProof", json!([{ "schedule": id }]), -32_000, "is not in the state");
    refused(
        &node,
        "almanac_getProof",
        json!([{}]),
        -32_602,
        "give one of { account }, { account, slot }, { schedule }",
    );
    for mixed in [
        json!({ "schedule": id, "lane": "cron" }),
        json!({ "slot": "0x0" }),
        json!({ "run": tip["hash"], "account": ALICE }),
    ] {
        refused(&node, "almanac_getProof", json!([mixed]), -32_602, "give one of");
    }
    refused(&node, "almanac_getProof", span(2, 1), -32_602, "before it begins");

    let in_memory = Node::start(&[]);
    let (id, _) = Job::once(&in_memory, 10_000).make(&in_memory);
    refused(
        &in_memory,
        "almanac_getProof",
        json!([{ "schedule": id }]),
        -32_000,
        "start it with --datadir DIR",
    );
}

#[test]
fn banner_and_figures_say_what_waits() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    let mut node = Node::start(&["--datadir", path]);
    assert!(node.banner.contains("schedules none waiting"), "{}", node.banner);
    set_code(&node, COUNTER);
    let job = Job::once(&node, 1_000);
    job.clone().every(60, 0).make(&node);
    // Figures follow the block that a receipt is of.
    support::network::wait_for("figure of a waiting job", || {
        figures(&node).contains("almanac_schedules_pending 1").then_some(())
    });
    Job { gas: 21_000, ..job.clone() }.make(&node);
    // Two seconds late.
    mine_at(&node, job.at + 2);
    for line in [
        "almanac_schedules_pending 1",
        "almanac_runs_total 2",
        "almanac_run_failures_total 1",
        "almanac_run_lateness_seconds_sum 4",
        "almanac_run_lateness_seconds_count 2",
    ] {
        support::network::wait_for(line, || figures(&node).lines().any(|found| found == line).then_some(()));
    }
    let next = node.result("almanac_agenda", json!([]))["entries"][0]["due"]["iso"].clone();
    node.signal("-TERM");
    node.wait();
    let node = Node::start(&["--datadir", path]);
    let expected = format!("schedules 1 waiting, the next is due at {}", next.as_str().unwrap());
    assert!(node.banner.contains(&expected), "{}", node.banner);
    assert!(figures(&node).contains("almanac_schedules_pending 1"));
}

fn figures(node: &Node) -> String {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(&node.address).unwrap();
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// What governance holds back is on the agenda still, and a preview says why nothing runs.
#[test]
fn a_pause_is_seen() {
    let node = Node::start(&[]);
    set_code(&node, COUNTER);
    let job = Job::once(&node, 100);
    let (id, _) = job.make(&node);
    let mut name = [0; 32];
    name[..11].copy_from_slice(b"cron_paused");
    let call = IParameters::setCall { name: name.into(), value: U256::ONE }.abi_encode();
    let request = json!({ "from": ALICE, "to": "0x000000000000000000000000000000000000a105",
        "data": hex::encode_prefixed(call) });
    assert_eq!(node.receipt(&node.result("eth_sendTransaction", json!([request])))["status"], "0x1");
    let agenda = node.result("almanac_agenda", json!([]));
    assert_eq!((&agenda["heldLanes"], &agenda["entries"][0]["idNumber"]), (&json!(["cron"]), &id));
    assert_eq!(node.result("almanac_capacity", json!([]))["lanes"][1]["isHeld"], true);
    let preview = node.result("almanac_preview", json!([id]));
    assert_eq!((&preview["runs"], &preview["end"]), (&json!([]), &json!(null)));
    assert!(preview["waits"].as_str().unwrap().contains("paused"), "{preview}");
    let parameters = node.result("almanac_getParameters", json!([]));
    let paused = parameters.as_array().unwrap().iter().find(|one| one["name"] == "cron_paused").unwrap();
    assert_eq!(paused["value"], "0x1");
    mine_at(&node, job.at);
    assert_eq!(node.result("almanac_getSchedule", json!([id]))["status"], "pending");
}
