// Otterscan, the explorer that needs nothing but a node: every call that it makes, with the shape that it reads.

import assert from "node:assert/strict";
import { keccak256, toHex } from "viem";
import { act, alice, bob, counterData as data, counterFile, deployCounter } from "./accounts-viem.mjs";
import { check, finish, isAlmanac, onlyAlmanac, post, rpc } from "./check.mjs";

const HASH = /^0x[0-9a-f]{64}$/;
const ADDRESS = /^0x[0-9a-f]{40}$/i;
const QUANTITY = /^0x(0|[1-9a-f][0-9a-f]*)$/;
/** Left out to save bytes: null, or nothing in it. */
const isEmpty = (value) => value === null || value.length === 0 || /^0x0*$/.test(value);

const { address: counter, receipt: deployed } = await deployCounter(100n, 50n);
const paid = await act({ to: counter, data: data("payBack", bob.address, 20n) });
const refused = await act({ to: counter, data: data("increase", 1000n), gas: 100_000n });
const transfer = await act({ to: bob.address, value: 5n });

await check("ots_getApiLevel", async () => assert.ok((await rpc("ots_getApiLevel")) >= 8));
await check("ots_hasCode", async () => {
    assert.equal(await rpc("ots_hasCode", counter, "latest"), true);
    assert.equal(await rpc("ots_hasCode", counter, toHex(deployed.blockNumber - 1n)), false);
    assert.equal(await rpc("ots_hasCode", bob.address, "latest"), false);
});
await check("ots_getBlockDetails", async () => {
    const details = await rpc("ots_getBlockDetails", Number(transfer.blockNumber));
    assert.equal(details.block.hash, transfer.blockHash);
    assert.equal(details.block.transactionCount, 1);
    assert.ok(isEmpty(details.block.logsBloom), "no bloom");
    assert.equal(details.block.transactions, undefined);
    assert.equal(BigInt(details.totalFees), transfer.gasUsed * transfer.effectiveGasPrice);
    for (const field of ["blockReward", "uncleReward", "issuance"])
        assert.match(details.issuance[field], QUANTITY);
});
await check("ots_getBlockDetailsByHash", async () => {
    const byHash = await rpc("ots_getBlockDetailsByHash", transfer.blockHash);
    assert.deepEqual(byHash, await rpc("ots_getBlockDetails", Number(transfer.blockNumber)));
});
await check("ots_getBlockTransactions", async () => {
    const page = await rpc("ots_getBlockTransactions", Number(paid.blockNumber), 0, 10);
    assert.equal(page.fullblock.transactionCount, 1);
    assert.equal(page.fullblock.transactions.length, 1);
    assert.equal(page.fullblock.transactions[0].hash, paid.transactionHash);
    // Only the selector: the list shows no more of it.
    assert.equal(page.fullblock.transactions[0].input, data("payBack", bob.address, 20n).slice(0, 10));
    assert.equal(page.receipts.length, 1);
    assert.equal(page.receipts[0].transactionHash, paid.transactionHash);
    assert.ok(isEmpty(page.receipts[0].logs) && isEmpty(page.receipts[0].logsBloom), "no logs");
    const beyond = await rpc("ots_getBlockTransactions", Number(paid.blockNumber), 1, 10);
    assert.deepEqual(beyond.fullblock.transactions, []);
});
await check("ots_getInternalOperations", async () => {
    const operations = await rpc("ots_getInternalOperations", paid.transactionHash);
    assert.equal(operations.length, 1);
    const [{ type, from, to, value }] = operations;
    assert.deepEqual(
        [type, from.toLowerCase(), to.toLowerCase(), BigInt(value)],
        [0, counter.toLowerCase(), bob.address.toLowerCase(), 20n],
    );
    // The transfer itself is not internal. anvil 1.7.1 lists it all the same.
    if (isAlmanac) assert.deepEqual(await rpc("ots_getInternalOperations", transfer.transactionHash), []);
});
await check("ots_getTransactionError", async () => {
    const raw = await rpc("ots_getTransactionError", refused.transactionHash);
    assert.equal(raw.slice(0, 10), keccak256(toHex("AboveLimit(uint256,uint256)")).slice(0, 10));
    assert.equal(await rpc("ots_getTransactionError", transfer.transactionHash), "0x");
});
await check("ots_traceTransaction", async () => {
    const trace = await rpc("ots_traceTransaction", paid.transactionHash);
    assert.deepEqual(
        trace.map(({ type, depth }) => [type, depth]),
        [
            ["CALL", 0],
            ["CALL", 1],
        ],
    );
    assert.deepEqual(
        trace.map(({ to }) => to.toLowerCase()),
        [counter.toLowerCase(), bob.address.toLowerCase()],
    );
    assert.equal(BigInt(trace[1].value), 20n);
    assert.equal(trace[0].input, data("payBack", bob.address, 20n));
    assert.equal(trace[0].output, "0x");
});
await check("ots_getContractCreator", async () => {
    const creator = await rpc("ots_getContractCreator", counter);
    assert.equal(creator.hash, deployed.transactionHash);
    assert.equal(creator.creator.toLowerCase(), alice.address.toLowerCase());
    assert.equal(await rpc("ots_getContractCreator", bob.address), null);
});
await check("ots_getTransactionBySenderAndNonce", async () => {
    assert.equal(await rpc("ots_getTransactionBySenderAndNonce", alice.address, 1), paid.transactionHash);
    assert.equal(await rpc("ots_getTransactionBySenderAndNonce", alice.address, 99), null);
});
await check("ots_searchTransactionsBefore", async () => {
    const page = await rpc("ots_searchTransactionsBefore", counter, 0, 25);
    // Newest first.
    assert.deepEqual(
        page.txs.map((tx) => tx.hash),
        [refused, paid, deployed].map((r) => r.transactionHash),
    );
    assert.deepEqual(
        page.receipts.map((r) => r.transactionHash),
        page.txs.map((tx) => tx.hash),
    );
    assert.match(String(page.receipts[0].timestamp), /^(0x[0-9a-f]+|\d+)$/);
    assert.deepEqual([page.firstPage, page.lastPage], [true, true]);
    const older = await rpc("ots_searchTransactionsBefore", counter, Number(paid.blockNumber), 25);
    assert.deepEqual(
        older.txs.map((tx) => tx.hash),
        [deployed.transactionHash],
    );
});
await check("ots_searchTransactionsAfter", async () => {
    const page = await rpc("ots_searchTransactionsAfter", counter, Number(deployed.blockNumber), 25);
    assert.deepEqual(
        page.txs.map((tx) => tx.hash),
        [refused, paid].map((r) => r.transactionHash),
    );
});
await check("ots_searchTransactionsAfter finds receivers of internal payments", async () => {
    const bobs = await rpc("ots_searchTransactionsAfter", bob.address, 0, 25);
    assert.deepEqual(
        bobs.txs.map((tx) => tx.hash),
        [transfer, paid].map((r) => r.transactionHash),
    );
});
await check("erigon_getHeaderByNumber", async () => {
    const header = await rpc("erigon_getHeaderByNumber", Number(transfer.blockNumber));
    assert.equal(header.hash, transfer.blockHash);
    assert.equal(BigInt(header.number), transfer.blockNumber);
});
await onlyAlmanac("trace_replayTransaction with stateDiff", async () => {
    const { stateDiff, output } = await rpc("trace_replayTransaction", transfer.transactionHash, [
        "stateDiff",
    ]);
    const [, change] = Object.entries(stateDiff).find(
        ([address]) => address.toLowerCase() === bob.address.toLowerCase(),
    );
    const { from, to } = change.balance["*"];
    assert.equal(BigInt(to) - BigInt(from), 5n);
    assert.equal(output, "0x");
});
await check("trace_transaction", async () => {
    const traces = await rpc("trace_transaction", paid.transactionHash);
    assert.deepEqual(
        traces.map((t) => [t.type, t.traceAddress]),
        [
            ["call", []],
            ["call", [0]],
        ],
    );
    assert.equal(traces[1].action.to.toLowerCase(), bob.address.toLowerCase());
    assert.equal(BigInt(traces[1].action.value), 20n);
    assert.equal(traces[0].subtraces, 1);
});
await check("what its pages read besides, in one batch", async () => {
    const calls = [
        ["eth_chainId", [], QUANTITY],
        ["eth_blockNumber", [], QUANTITY],
        ["eth_getBlockByNumber", ["latest", false], (block) => HASH.test(block.hash)],
        ["eth_getTransactionByHash", [paid.transactionHash], (tx) => tx.hash === paid.transactionHash],
        ["eth_getTransactionReceipt", [paid.transactionHash], (receipt) => receipt.status === "0x1"],
        ["eth_getBalance", [bob.address, "latest"], QUANTITY],
        ["eth_getTransactionCount", [alice.address, "latest"], QUANTITY],
        ["eth_getCode", [counter, "latest"], (code) => code.length === counterFile.deployedBytecode.length],
        ["eth_getStorageAt", [counter, "0x0", "latest"], HASH],
        [
            "eth_call",
            [{ to: counter, data: data("owner") }, "latest"],
            (word) => ADDRESS.test(`0x${word.slice(26)}`),
        ],
        ["eth_gasPrice", [], QUANTITY],
        ["net_version", [], /^31337$/],
    ];
    const answers = await post(calls.map(([method, params], id) => ({ jsonrpc: "2.0", id, method, params })));
    assert.equal(answers.length, calls.length);
    for (const [id, [method, , shape]] of calls.entries()) {
        const { result, error } = answers.find((answer) => answer.id === id);
        assert.ok(!error, `${method}: ${error?.message}`);
        assert.ok(
            typeof shape === "function" ? shape(result) : shape.test(result),
            `${method}: ${JSON.stringify(result)}`,
        );
    }
});

finish();
