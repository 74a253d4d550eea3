//! A good request for every method that is served, to be spoilt.

use crate::support::{ALICE, BOB, Node, callbacks::SCHEDULER, cron::Job, to_bob};
use alloy_primitives::hex;
use serde_json::{Value, json};
use std::{collections::BTreeSet, path::Path};

/// A method and parameters that it takes.
pub(crate) type Request = (&'static str, Value);

/// Prepares a chain that has something of everything, and answers with requests about it.
pub(crate) fn corpus(node: &Node) -> Vec<Request> {
    // A contract that logs its calldata and returns it.
    let code = "0x365f5f37365fa0365ff3";
    node.result("anvil_setCode", json!([BOB, code]));
    let call = json!({ "from": ALICE, "to": BOB, "value": "0x1", "data": "0x1234" });
    let hash = node.result("eth_sendTransaction", json!([call]));
    let receipt = node.receipt(&hash);
    let (block, number) = (receipt["blockHash"].clone(), receipt["blockNumber"].clone());
    let (job, _) = Job::once(node, 10_000).every(60, 9).make(node);
    let raw = hex::encode_prefixed(to_bob(2).encoded());
    let mut all = about_blocks(&hash, &block, &number);
    all.extend(about_accounts());
    all.extend(calls(&call));
    all.extend(sending(&call, &raw));
    all.extend(traces(&call, &hash, &block, &number));
    all.extend(about_schedules(&job));
    all.push(("almanac_getTransaction", json!([hash])));
    all.extend(proofs(&job, &hash));
    all.extend(controls(&hash));
    all
}

fn about_schedules(job: &Value) -> Vec<Request> {
    let filter = json!({ "owner": ALICE, "target": BOB, "status": "pending", "lane": "cron", "dueFrom": "0x1",
        "dueTo": u64::MAX, "cursor": "1-0-0", "limit": 10 });
    vec![
        ("almanac_getSchedule", json!([job])),
        ("almanac_listSchedules", json!([filter])),
        ("almanac_getRuns", json!([job, { "order": "newest", "cursor": "9-1", "limit": 5 }])),
        ("almanac_agenda", json!([{ "from": 1, "to": "0xffffffffffffffff", "lanes": ["cron"], "limit": 3 }])),
        ("almanac_agenda", json!([{ "cursor": format!("0x01{:048x}", 7) }])),
        ("almanac_agendaBuckets", json!([{ "from": 1, "to": "0xffffffffffffffff", "buckets": 240 }])),
        ("almanac_capacity", json!([{ "from": 1_000, "to": 3_600_000 }])),
        ("almanac_preview", json!([job, 3])),
        ("almanac_preview", json!([{ "from": ALICE, "to": SCHEDULER, "value": "0x1", "data": "0x" }, 1])),
        (
            "almanac_estimateSchedule",
            json!([{ "time": 2_000_000_000_000u64, "gas": 100_000, "bid": "0xe8d4a51000", "value": "0x1",
            "data": "0x01", "expiryBlocks": 3 }]),
        ),
        ("almanac_runway", json!([job])),
        ("almanac_getRecord", json!([format!("0x{:064x}", 7)])),
        ("almanac_getParameters", json!([])),
        ("almanac_getAccount", json!([ALICE])),
        (
            "almanac_getTransactionSummaries",
            json!([ALICE, { "start_version": 0, "end_version": "0xffffffff", "limit": 5 }]),
        ),
    ]
}

fn proofs(job: &Value, hash: &Value) -> Vec<Request> {
    let wanted = [
        json!({ "account": ALICE }),
        json!({ "account": BOB, "slot": "0x0" }),
        json!({ "schedule": job }),
        json!({ "lane": "cron", "from": 1_000, "to": 2_000 }),
        json!({ "run": hash }),
        json!({ "transaction": hash }),
    ];
    wanted.into_iter().map(|wanted| ("almanac_getProof", json!([wanted]))).collect()
}

fn about_blocks(hash: &Value, block: &Value, number: &Value) -> Vec<Request> {
    let filter = json!([{ "fromBlock": "0x0", "toBlock": "latest", "address": BOB, "topics": [null, []] }]);
    vec![
        ("eth_blockNumber", json!([])),
        ("eth_getBlockByHash", json!([block, true])),
        ("eth_getBlockByNumber", json!([number, false])),
        ("eth_getBlockReceipts", json!([number])),
        ("eth_getBlockTransactionCountByHash", json!([block])),
        ("eth_getBlockTransactionCountByNumber", json!([number])),
        ("eth_getUncleCountByBlockHash", json!([block])),
        ("eth_getUncleCountByBlockNumber", json!([number])),
        ("eth_getUncleByBlockHashAndIndex", json!([block, "0x0"])),
        ("eth_getUncleByBlockNumberAndIndex", json!([number, "0x0"])),
        ("eth_getTransactionByHash", json!([hash])),
        ("eth_getTransactionByBlockHashAndIndex", json!([block, "0x0"])),
        ("eth_getTransactionByBlockNumberAndIndex", json!([number, "0x0"])),
        ("eth_getTransactionBySenderAndNonce", json!([ALICE, "0x0"])),
        ("eth_getRawTransactionByHash", json!([hash])),
        ("eth_getRawTransactionByBlockHashAndIndex", json!([block, "0x0"])),
        ("eth_getRawTransactionByBlockNumberAndIndex", json!([number, "0x0"])),
        ("eth_getTransactionReceipt", json!([hash])),
        ("eth_getLogs", filter.clone()),
        ("eth_newFilter", filter),
        ("eth_newBlockFilter", json!([])),
        ("eth_newPendingTransactionFilter", json!([])),
        ("eth_uninstallFilter", json!(["0x3"])),
        ("eth_getFilterChanges", json!(["0x2"])),
        ("eth_getFilterLogs", json!(["0x1"])),
        ("eth_gasPrice", json!([])),
        ("eth_maxPriorityFeePerGas", json!([])),
        ("eth_blobBaseFee", json!([])),
        ("eth_feeHistory", json!(["0x4", "latest", [5, 50.5, 95]])),
        ("eth_coinbase", json!([])),
        ("eth_chainId", json!([])),
        ("eth_syncing", json!([])),
        ("eth_protocolVersion", json!([])),
        ("eth_mining", json!([])),
        ("eth_hashrate", json!([])),
        ("net_version", json!([])),
        ("net_listening", json!([])),
        ("net_peerCount", json!([])),
        ("web3_clientVersion", json!([])),
        ("web3_sha3", json!(["0x1234"])),
        ("rpc_modules", json!([])),
        ("txpool_status", json!([])),
        ("txpool_content", json!([])),
        ("txpool_contentFrom", json!([ALICE])),
        ("txpool_inspect", json!([])),
    ]
}

fn about_accounts() -> Vec<Request> {
    vec![
        ("eth_accounts", json!([])),
        ("eth_getBalance", json!([ALICE, "latest"])),
        ("eth_getTransactionCount", json!([ALICE, "pending"])),
        ("eth_getCode", json!([BOB, { "blockNumber": "0x0" }])),
        ("eth_getStorageAt", json!([BOB, "0x0", "latest"])),
        ("eth_getAccountInfo", json!([BOB, "latest"])),
        ("eth_getProof", json!([BOB, ["0x0"], "latest"])),
        ("ots_hasCode", json!([BOB, "latest"])),
        ("ots_getContractCreator", json!([BOB])),
        ("ots_searchTransactionsBefore", json!([ALICE, 0, 25])),
        ("ots_searchTransactionsAfter", json!([ALICE, 0, 25])),
        ("ots_getTransactionBySenderAndNonce", json!([ALICE, 0])),
    ]
}

fn calls(call: &Value) -> Vec<Request> {
    let state = json!({ BOB: { "balance": "0x1", "nonce": "0x1", "code": "0x5f5ff3", "stateDiff": {} } });
    let block = json!({ "number": "0x10", "time": "0xffffffff", "gasLimit": "0x100000" });
    let block_calls = json!([{ "calls": [call, call], "stateOverrides": state, "blockOverrides": block }]);
    vec![
        ("eth_call", json!([call, "latest", state, block])),
        ("eth_estimateGas", json!([call, "pending", state])),
        ("eth_createAccessList", json!([call, "latest"])),
        (
            "eth_simulateV1",
            json!([{ "blockStateCalls": block_calls, "validation": false, "traceTransfers": true }, "latest"]),
        ),
        ("trace_call", json!([call, ["trace", "vmTrace", "stateDiff"], "latest"])),
        ("debug_traceCall", json!([call, "latest", { "tracer": "callTracer", "stateOverrides": state }])),
    ]
}

fn sending(call: &Value, raw: &str) -> Vec<Request> {
    let typed = json!({
        "types": { "EIP712Domain": [{ "name": "name", "type": "string" }], "Mail": [{ "name": "to", "type": "address" }] },
        "primaryType": "Mail", "domain": { "name": "mail" }, "message": { "to": BOB },
    });
    vec![
        ("eth_sendRawTransaction", json!([raw])),
        ("eth_sendRawTransactionSync", json!([raw, "0x10"])),
        ("eth_sendTransaction", json!([call])),
        ("eth_sendTransactionSync", json!([call, "0x10"])),
        ("eth_sendUnsignedTransaction", json!([call])),
        ("eth_fillTransaction", json!([call])),
        ("eth_signTransaction", json!([call])),
        ("eth_sign", json!([ALICE, "0x1234"])),
        ("personal_sign", json!(["0x1234", ALICE])),
        ("eth_signTypedData_v4", json!([ALICE, typed])),
    ]
}

fn traces(call: &Value, hash: &Value, block: &Value, number: &Value) -> Vec<Request> {
    let steps = json!({ "enableMemory": true, "enableReturnData": true, "limit": 10 });
    vec![
        ("debug_traceTransaction", json!([hash, steps])),
        (
            "debug_traceBlockByNumber",
            json!([number, { "tracer": "prestateTracer", "tracerConfig": { "diffMode": true } }]),
        ),
        ("debug_traceBlockByHash", json!([block, { "tracer": "flatCallTracer" }])),
        ("trace_transaction", json!([hash])),
        ("trace_block", json!([number])),
        ("trace_get", json!([hash, ["0x0"]])),
        ("trace_filter", json!([{ "fromBlock": "0x0", "toBlock": number, "fromAddress": [call["from"]] }])),
        ("trace_replayTransaction", json!([hash, ["trace", "stateDiff"]])),
        ("trace_replayBlockTransactions", json!([number, ["vmTrace"]])),
        ("ots_getApiLevel", json!([])),
        ("erigon_getHeaderByNumber", json!([number])),
        ("ots_getBlockDetails", json!([number])),
        ("ots_getBlockDetailsByHash", json!([block])),
        ("ots_getBlockTransactions", json!([number, 0, 25])),
        ("ots_getInternalOperations", json!([hash])),
        ("ots_getTransactionError", json!([hash])),
        ("ots_traceTransaction", json!([hash])),
    ]
}

fn controls(hash: &Value) -> Vec<Request> {
    vec![
        ("evm_mine", json!([{ "blocks": 2 }])),
        ("evm_mine_detailed", json!([{ "blocks": 2 }])),
        ("anvil_setBlockTimestampInterval", json!([5])),
        ("anvil_removeBlockTimestampInterval", json!([])),
        ("evm_setBlockGasLimit", json!(["0x1c9c380"])),
        ("anvil_setLoggingEnabled", json!([true])),
        ("anvil_setMinGasPrice", json!(["0x1"])),
        ("hardhat_setPrevRandao", json!([format!("0x{:064x}", 1)])),
        ("anvil_setChainId", json!([1])),
        ("anvil_reorg", json!([{ "depth": 1, "tx_block_pairs": [] }])),
        ("anvil_rollback", json!([1])),
        ("anvil_setRpcUrl", json!(["http://localhost"])),
        ("hardhat_mine", json!(["0x2", "0x1"])),
        ("anvil_mine", json!(["0x2", "0x1"])),
        ("anvil_getAutomine", json!([])),
        ("evm_setAutomine", json!([true])),
        ("anvil_getIntervalMining", json!([])),
        ("evm_setIntervalMining", json!([1])),
        ("anvil_setCoinbase", json!([BOB])),
        ("evm_increaseTime", json!(["0x1"])),
        ("almanac_increaseTime", json!(["0x1"])),
        ("evm_setTime", json!([2_000_000_000])),
        ("evm_setNextBlockTimestamp", json!([2_000_000_100])),
        ("evm_snapshot", json!([])),
        ("evm_revert", json!(["0x1"])),
        ("anvil_reset", json!([])),
        ("anvil_setBalance", json!([BOB, "0x1000"])),
        ("anvil_addBalance", json!([BOB, "0x1000"])),
        ("anvil_setCode", json!([BOB, "0x365f5f37365ff3"])),
        ("anvil_setNonce", json!([BOB, "0x10"])),
        ("anvil_setStorageAt", json!([BOB, "0x0", format!("0x{:064x}", 1)])),
        ("anvil_setNextBlockBaseFeePerGas", json!(["0x3b9aca00"])),
        ("anvil_impersonateAccount", json!([BOB])),
        ("anvil_stopImpersonatingAccount", json!([BOB])),
        ("anvil_autoImpersonateAccount", json!([true])),
        ("anvil_dropTransaction", json!([hash])),
        ("hardhat_dropTransaction", json!([hash])),
        ("anvil_dropAllTransactions", json!([])),
        ("anvil_removePoolTransactions", json!([ALICE])),
        ("anvil_dumpState", json!([])),
        (
            "anvil_loadState",
            json!([hex::encode_prefixed(format!(
                "{{\"accounts\":{{\"{BOB}\":{{\"nonce\":99,\"balance\":\"0x1\"}}}}}}"
            ))]),
        ),
        ("anvil_nodeInfo", json!([])),
        ("anvil_metadata", json!([])),
    ]
}

/// Requests that make sense over WebSocket only.
pub(crate) fn subscriptions() -> Vec<Request> {
    vec![
        ("eth_subscribe", json!(["logs", { "address": BOB }])),
        ("eth_subscribe", json!(["newHeads"])),
        ("eth_subscribe", json!(["newPendingTransactions", true])),
        ("almanac_subscribe", json!(["schedules", { "owner": ALICE, "target": BOB, "id": "1-0-0" }])),
        ("almanac_subscribe", json!(["runs"])),
        ("almanac_unsubscribe", json!(["0x00000000000000000000000000000000"])),
        ("eth_unsubscribe", json!(["0x00000000000000000000000000000000"])),
    ]
}

/// Only nodes of a network serve these.
const VALIDATORS_ONLY: [&str; 1] = ["almanac_getFinality"];

/// The methods that the sources of the server name and that have no request here.
pub(crate) fn missing(corpus: &[Request]) -> Vec<String> {
    let mut names = BTreeSet::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../rpc/src"), &mut names);
    assert!(names.len() > 100, "they are found where they are: {names:?}");
    names.retain(|name| !VALIDATORS_ONLY.contains(&name.as_str()));
    names.into_iter().filter(|name| corpus.iter().all(|(known, _)| known != name)).collect()
}

fn collect(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, names);
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for line in text.lines().map(str::trim) {
            let named = ["#[method(name = \"", "#[subscription(name = \""];
            let name = named.iter().find_map(|begin| line.strip_prefix(begin));
            names.extend(name.and_then(|rest| rest.split('"').next()).map(str::to_owned));
        }
    }
}
