// What indexers (Blockscout) and debuggers read: geth's tracers under debug_, Parity's under trace_.

import assert from "node:assert/strict";
import { encodeErrorResult, keccak256, toHex } from "viem";
import { act, alice, bob, counterData as data, counterFile, deployCounter } from "./accounts-viem.mjs";
import { check, finish, rpc } from "./check.mjs";

const { address, receipt: deployed } = await deployCounter(100n, 50n);
const counter = address.toLowerCase();
const paid = await act({ to: counter, data: data("payBack", bob.address, 20n) });
const increased = await act({ to: counter, data: data("increase", 3n) });
const refused = await act({ to: counter, data: data("increase", 1000n), gas: 100_000n });
const reason = encodeErrorResult({ abi: counterFile.abi, errorName: "AboveLimit", args: [1003n, 100n] });
const from = alice.address.toLowerCase();
const SLOT = toHex(0, { size: 32 });

const trace = (receipt, tracer, tracerConfig = {}) =>
    rpc("debug_traceTransaction", receipt.transactionHash, { tracer, tracerConfig });

await check("callTracer shows nested calls with value", async () => {
    const top = await trace(paid, "callTracer");
    assert.deepEqual(
        [top.type, top.from, top.to, BigInt(top.gasUsed)],
        ["CALL", from, counter, paid.gasUsed],
    );
    assert.equal(top.input, data("payBack", bob.address, 20n));
    assert.equal(top.calls.length, 1);
    const [inner] = top.calls;
    assert.deepEqual(
        [inner.type, inner.from, inner.to, BigInt(inner.value)],
        ["CALL", counter, bob.address.toLowerCase(), 20n],
    );
});
await check("callTracer of a creation", async () => {
    const top = await trace(deployed, "callTracer");
    assert.deepEqual([top.type, top.to.toLowerCase(), BigInt(top.value)], ["CREATE", counter, 50n]);
    assert.equal(top.output.length, counterFile.deployedBytecode.length);
});
await check("callTracer with logs", async () => {
    const { logs } = await trace(increased, "callTracer", { withLog: true });
    assert.equal(logs.length, 1);
    assert.equal(logs[0].address, counter);
    assert.equal(BigInt(logs[0].data), 3n);
});
await check("callTracer with the top call only", async () => {
    assert.equal((await trace(paid, "callTracer", { onlyTopCall: true })).calls?.length ?? 0, 0);
});
await check("callTracer of a revert", async () => {
    const top = await trace(refused, "callTracer");
    assert.match(top.error, /revert/);
    assert.equal(top.output, reason);
});
await check("prestateTracer", async () => {
    const state = await trace(increased, "prestateTracer");
    assert.equal(BigInt(state[counter].balance), 30n);
    assert.equal(BigInt(state[counter].storage[SLOT] ?? 0), 0n);
    assert.equal(state[from].nonce, 2);
});
await check("prestateTracer with differences", async () => {
    const { pre, post } = await trace(increased, "prestateTracer", { diffMode: true });
    assert.equal(BigInt(post[counter].storage[SLOT]), 3n);
    assert.equal(post[from].nonce, 3);
    const spent = BigInt(pre[from].balance) - BigInt(post[from].balance);
    assert.equal(spent, increased.gasUsed * increased.effectiveGasPrice);
});
await check("4byteTracer counts selectors", async () => {
    const counts = await trace(increased, "4byteTracer");
    assert.deepEqual(counts, { [`${data("increase", 3n).slice(0, 10)}-32`]: 1 });
});
await check("steps without a tracer", async () => {
    const result = await rpc("debug_traceTransaction", increased.transactionHash, {});
    assert.equal(BigInt(result.gas), increased.gasUsed);
    assert.equal(result.failed, false);
    assert.equal(
        BigInt(result.returnValue.startsWith("0x") ? result.returnValue : `0x${result.returnValue}`),
        3n,
    );
    const [first] = result.structLogs;
    assert.deepEqual([first.pc, first.op, first.depth], [0, "PUSH1", 1]);
    const stores = result.structLogs.filter(({ op }) => op === "SSTORE");
    assert.equal(stores.length, 2);
    const without = await rpc("debug_traceTransaction", increased.transactionHash, {
        disableStack: true,
        disableStorage: true,
    });
    assert.ok(without.structLogs.every((step) => step.stack == null && step.storage == null));
});
await check("debug_traceCall with callTracer", async () => {
    const top = await rpc(
        "debug_traceCall",
        { from, to: counter, data: data("payBack", bob.address, 5n) },
        "latest",
        { tracer: "callTracer" },
    );
    assert.equal(BigInt(top.calls[0].value), 5n);
});
await check("debug_traceBlockByNumber and ByHash", async () => {
    const options = { tracer: "callTracer" };
    const byNumber = await rpc("debug_traceBlockByNumber", toHex(paid.blockNumber), options);
    assert.equal(byNumber.length, 1);
    assert.equal(byNumber[0].txHash, paid.transactionHash);
    assert.deepEqual(byNumber[0].result, await trace(paid, "callTracer"));
    assert.deepEqual(await rpc("debug_traceBlockByHash", paid.blockHash, options), byNumber);
});
await check("debug_getRawTransaction", async () => {
    assert.equal(keccak256(await rpc("debug_getRawTransaction", paid.transactionHash)), paid.transactionHash);
});
await check("trace_block", async () => {
    const traces = await rpc("trace_block", toHex(paid.blockNumber));
    const calls = traces.filter(({ type }) => type === "call");
    assert.deepEqual(
        calls.map((t) => [t.traceAddress, t.subtraces, t.transactionHash]),
        [
            [[], 1, paid.transactionHash],
            [[0], 0, paid.transactionHash],
        ],
    );
    assert.equal(calls[0].blockNumber, Number(paid.blockNumber));
    assert.equal(calls[0].transactionPosition, 0);
});
await check("trace_transaction of a creation and of a revert", async () => {
    const [created] = await rpc("trace_transaction", deployed.transactionHash);
    assert.equal(created.type, "create");
    assert.equal(created.result.address.toLowerCase(), counter);
    const [failed] = await rpc("trace_transaction", refused.transactionHash);
    assert.match(failed.error, /[Rr]evert/);
});
await check("trace_filter by receiver", async () => {
    const traces = await rpc("trace_filter", {
        fromBlock: "0x0",
        toBlock: toHex(refused.blockNumber),
        toAddress: [bob.address],
    });
    assert.deepEqual(
        traces.map((t) => t.transactionHash),
        [paid.transactionHash],
    );
});
await check("txpool_content when nothing is pending", async () => {
    assert.deepEqual(await rpc("txpool_content"), { pending: {}, queued: {} });
});

finish();
