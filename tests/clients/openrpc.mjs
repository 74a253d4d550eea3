// Every eth_ method that the node serves, against the JSON schemas of Ethereum's own specification.

import assert from "node:assert/strict";
import { encodeDeployData, toHex } from "viem";
import { alice, bob, counterData, counterFile, included, wallet } from "./accounts-viem.mjs";
import { check, finish, isAlmanac, onlyAlmanac, post, rpc, rpcError } from "./check.mjs";
import { known, validator } from "./schemas.mjs";

const fees = { maxFeePerGas: 100_000_000_000n, maxPriorityFeePerGas: 1_000_000_000n, gas: 1_000_000n };
let nonce = 0;
/** Sends without asking the node for anything, so that a missing method fails only its own check. */
async function act(request) {
    const raw = await wallet.signTransaction({
        chainId: 31337,
        nonce: nonce++,
        ...("gasPrice" in request ? { gas: fees.gas } : fees),
        ...request,
    });
    return included(await rpc("eth_sendRawTransaction", raw));
}
const deployed = await act({ data: encodeDeployData({ ...counterFile, args: [100n] }) });
const counter = deployed.contractAddress;
const data = counterData("increase", 1n);
const increased = await act({ to: counter, data });
const failed = await act({ to: counter, data: counterData("fail") });
const legacy = await act({ to: bob.address, value: 1n, gasPrice: fees.maxFeePerGas });
const listed = await act({
    to: counter,
    data,
    type: "eip2930",
    gasPrice: fees.maxFeePerGas,
    accessList: [{ address: counter, storageKeys: [toHex(0, { size: 32 })] }],
});
const authorization = await bob.signAuthorization({ address: counter, chainId: 31337, nonce: 0 });
const delegated = await act({ to: bob.address, type: "eip7702", authorizationList: [authorization] });
const receipts = { deployed, increased, failed, legacy, listed, delegated };

const block = toHex(increased.blockNumber);
const call = { from: alice.address, to: counter, data };
const nothing = toHex(1, { size: 32 });
const raw = async () => wallet.signTransaction({ chainId: 31337, nonce: nonce++, to: bob.address, ...fees });
const filters = {};
const typed = {
    domain: { name: "Almanac", chainId: 31337 },
    types: {
        EIP712Domain: [
            { name: "name", type: "string" },
            { name: "chainId", type: "uint256" },
        ],
        Word: [{ name: "text", type: "string" }],
    },
    primaryType: "Word",
    message: { text: "hello" },
};

/** Requests that must be answered; several of one method cover its shapes. Functions are called just before. */
const requests = [
    ["eth_chainId"],
    ["eth_blockNumber"],
    ["eth_gasPrice"],
    ["eth_maxPriorityFeePerGas"],
    ["eth_blobBaseFee"],
    ["eth_syncing"],
    ["eth_accounts"],
    ["eth_coinbase"],
    ["eth_getBalance", alice.address, "latest"],
    ["eth_getBalance", alice.address, "earliest"],
    ["eth_getTransactionCount", alice.address, "pending"],
    ["eth_getTransactionCount", bob.address, { blockNumber: block }],
    ["eth_getCode", counter, "latest"],
    ["eth_getCode", alice.address, "latest"],
    ["eth_getCode", bob.address, "latest"],
    ["eth_getStorageAt", counter, "0x0", "latest"],
    ["eth_getStorageAt", counter, nothing, { blockHash: increased.blockHash }],
    ["eth_call", call, "latest"],
    ["eth_call", { to: bob.address }, "safe"],
    ["eth_estimateGas", call],
    ["eth_createAccessList", call, "latest"],
    ["eth_feeHistory", "0x4", "latest", [10, 50.5]],
    ["eth_feeHistory", "0x1", "earliest", []],
    ...[
        "0x0",
        block,
        "latest",
        "pending",
        "finalized",
        "safe",
        toHex(delegated.blockNumber),
        toHex(legacy.blockNumber),
        toHex(listed.blockNumber),
    ].flatMap((number) => [
        ["eth_getBlockByNumber", number, false],
        ["eth_getBlockByNumber", number, true],
    ]),
    ["eth_getBlockByNumber", "0xfffffff", false],
    ["eth_getBlockByHash", increased.blockHash, true],
    ["eth_getBlockByHash", nothing, false],
    ["eth_getBlockReceipts", block],
    ["eth_getBlockReceipts", "0xfffffff"],
    ["eth_getBlockTransactionCountByNumber", block],
    ["eth_getBlockTransactionCountByHash", increased.blockHash],
    ["eth_getBlockTransactionCountByHash", nothing],
    ["eth_getUncleCountByBlockNumber", block],
    ["eth_getUncleCountByBlockHash", increased.blockHash],
    ...Object.values(receipts).flatMap(({ transactionHash }) => [
        ["eth_getTransactionByHash", transactionHash],
        ["eth_getTransactionReceipt", transactionHash],
        ["eth_getRawTransactionByHash", transactionHash],
    ]),
    ["eth_getTransactionByHash", nothing],
    ["eth_getTransactionReceipt", nothing],
    ["eth_getTransactionByBlockNumberAndIndex", block, "0x0"],
    ["eth_getTransactionByBlockNumberAndIndex", block, "0x9"],
    ["eth_getTransactionByBlockHashAndIndex", increased.blockHash, "0x0"],
    ["eth_getRawTransactionByBlockNumberAndIndex", block, "0x0"],
    ["eth_getRawTransactionByBlockHashAndIndex", increased.blockHash, "0x0"],
    ["eth_getLogs", { fromBlock: "0x0", toBlock: "latest" }],
    ["eth_getLogs", { blockHash: increased.blockHash }],
    ["eth_newFilter", { fromBlock: "0x0" }],
    ["eth_newBlockFilter"],
    ["eth_newPendingTransactionFilter"],
    ["eth_sendRawTransaction", raw],
    ["eth_getFilterChanges", () => filters.eth_newFilter],
    ["eth_getFilterChanges", () => filters.eth_newBlockFilter],
    ["eth_getFilterChanges", () => filters.eth_newPendingTransactionFilter],
    ["eth_getFilterLogs", () => filters.eth_newFilter],
    ["eth_uninstallFilter", () => filters.eth_newFilter],
    ["eth_sendTransaction", { from: bob.address, to: alice.address, value: "0x1", gas: "0x186a0" }],
    ["eth_sendRawTransactionSync", raw],
    ["eth_sendTransactionSync", { from: bob.address, to: alice.address, value: "0x1", gas: "0x186a0" }],
    ["eth_fillTransaction", { from: bob.address, to: alice.address, value: "0x1" }],
    [
        "eth_signTransaction",
        {
            from: alice.address,
            to: bob.address,
            gas: "0x5208",
            gasPrice: toHex(fees.maxFeePerGas),
            value: "0x1",
            nonce: "0x99",
        },
    ],
    ["eth_sign", alice.address, "0x68656c6c6f"],
    ["eth_signTypedData_v4", alice.address, typed],
    ["eth_getAccountInfo", counter, "latest"],
    ["eth_getTransactionBySenderAndNonce", alice.address, "0x1"],
    ["eth_getUncleByBlockHashAndIndex", increased.blockHash, "0x0"],
    ["eth_getUncleByBlockNumberAndIndex", block, "0x0"],
    ["eth_requestAccounts"],
    ["eth_mining"],
    ["eth_hashrate"],
    ["eth_protocolVersion"],
    ["eth_simulateV1", { blockStateCalls: [{ calls: [call, { ...call, data: "0xdeadbeef" }] }] }, "latest"],
];

const methods = [...new Set(requests.map(([method]) => method))];
const answers = new Map(methods.map((method) => [method, []]));
for (const [method, ...given] of requests) {
    const params = await Promise.all(given.map((value) => (typeof value === "function" ? value() : value)));
    const answer = await post({ jsonrpc: "2.0", id: 1, method, params });
    if (method.startsWith("eth_new")) filters[method] = answer.result;
    answers.get(method).push({ params, answer });
}

const isServed = (method) => answers.get(method).every(({ answer }) => answer.error?.code !== -32601);
for (const method of methods) {
    // Another node may leave out what is not in the specification.
    if (!isAlmanac && !isServed(method)) continue;
    await check(method, async () => {
        const validate = validator(method);
        for (const { params, answer } of answers.get(method)) {
            const asked = `${method} ${JSON.stringify(params)}`;
            assert.ok(!answer.error, `${asked}: ${answer.error?.code} ${answer.error?.message}`);
            assert.ok("result" in answer, asked);
            // As geth does: what is not there yet has no hash, which the schema does not foresee.
            if (params[0] === "pending" && answer.result?.hash === null) answer.result.hash = nothing;
            if (params[0] === "pending" && answer.result?.nonce === null) answer.result.nonce = `0x${"0".repeat(16)}`;
            const problems = validate(answer.result);
            assert.equal(
                problems,
                "",
                `${asked}: ${problems} in ${JSON.stringify(answer.result).slice(0, 2000)}`,
            );
        }
    });
}

await onlyAlmanac("no eth_ method of the specification is served without being asked above", async () => {
    // Proofs are of another kind here; subscriptions need a socket.
    const elsewhere = ["eth_getProof", "eth_subscribe", "eth_unsubscribe"];
    for (const method of known.filter((name) => !answers.has(name) && !elsewhere.includes(name))) {
        assert.equal((await rpcError(method)).code, -32601, method);
    }
});

// What was answered is also about the right thing: a schema takes a null for a block that exists.
await check("found what exists, and null for what does not", async () => {
    for (const [method, known, unknown] of [
        ["eth_getBlockByNumber", [block, false], ["0xfffffff", false]],
        ["eth_getBlockByHash", [increased.blockHash, false], [nothing, false]],
        ["eth_getTransactionByHash", [increased.transactionHash], [nothing]],
        ["eth_getTransactionReceipt", [increased.transactionHash], [nothing]],
        ["eth_getBlockReceipts", [block], ["0xfffffff"]],
        ["eth_getTransactionByBlockNumberAndIndex", [block, "0x0"], [block, "0x9"]],
    ]) {
        assert.notEqual(await rpc(method, ...known), null, method);
        assert.equal(await rpc(method, ...unknown), null, method);
    }
});

const revertData = "0x4e487b710000000000000000000000000000000000000000000000000000000000000001";
for (const [name, method, params, expected] of [
    [
        "a revert is code 3 with the raw bytes",
        "eth_call",
        [{ to: counter, data: counterData("fail") }, "latest"],
        { code: 3, data: revertData },
    ],
    [
        "a revert of an estimate too",
        "eth_estimateGas",
        [{ to: counter, data: counterData("fail") }],
        { code: 3, data: revertData },
    ],
    ["an unknown method is −32601", "eth_noSuchMethod", [], { code: -32601 }],
    ["an address that is too short is −32602", "eth_getBalance", ["0x12", "latest"], { code: -32602 }],
    ["a missing parameter is −32602", "eth_getBalance", [], { code: -32602 }],
    ["a hash that is too long is −32602", "eth_getTransactionByHash", [`${nothing}00`], { code: -32602 }],
]) {
    await check(name, async () => {
        const error = await rpcError(method, ...params);
        for (const [field, value] of Object.entries(expected))
            assert.equal(error[field], value, JSON.stringify(error));
    });
}
await check("a request without method is −32600", async () => {
    assert.equal((await post({ jsonrpc: "2.0", id: 1 })).error.code, -32600);
});
await onlyAlmanac("text that is not JSON is −32700", async () => {
    assert.equal((await post("{")).error.code, -32700);
});

finish();
