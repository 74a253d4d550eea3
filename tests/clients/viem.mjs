// viem with contracts: deploy, read, write, errors that decode, overrides and simulations.

import assert from "node:assert/strict";
import {
    BaseError,
    ContractFunctionRevertedError,
    encodeAbiParameters,
    encodeDeployData,
    keccak256,
    parseEther,
    toHex,
} from "viem";
import {
    alice,
    bob,
    carol,
    counterData,
    counterFile,
    deployCounter,
    included,
    reader,
    wallet,
} from "./accounts-viem.mjs";
import { check, finish, isAlmanac, isNetwork, onlyAlmanac } from "./check.mjs";

const { abi } = counterFile;
let address;
let call;
let write;
let grown;

await check("getChainId", async () => assert.equal(await reader.getChainId(), 31337));
await check("deployContract", async () => {
    const counter = await deployCounter(1000n, parseEther("1"));
    ({ address, read: call, write } = counter);
    assert.equal(counter.receipt.status, "success");
    assert.equal(counter.receipt.type, "eip1559");
    assert.equal(counter.receipt.to, null);
    assert.equal(await reader.getBalance({ address }), parseEther("1"));
});
await check("getCode is what was compiled, but for immutables", async () => {
    const code = await reader.getCode({ address });
    assert.equal(code.length, counterFile.deployedBytecode.length);
    assert.equal(await reader.getCode({ address: bob.address }), undefined);
});
await check("readContract", async () => {
    assert.equal(await call("limit"), 1000n);
    assert.equal(await call("owner"), alice.address);
});
await check("simulateContract gives request and result", async () => {
    const { request, result } = await reader.simulateContract({
        address,
        abi,
        functionName: "increase",
        args: [5n],
        account: alice,
    });
    assert.equal(result, 5n);
    grown = await included(await wallet.writeContract(request));
    assert.equal(grown.status, "success");
    assert.equal(await call("value"), 5n);
});
await check("readContract at an earlier block", async () => {
    const { blockNumber } = grown;
    assert.equal(await call("value", [], { blockNumber }), 5n);
    assert.equal(await call("value", [], { blockNumber: blockNumber - 1n }), 0n);
});
await check("the log of a receipt decodes", async () => {
    const { logs } = await write("increase", [2n]);
    const [{ args, blockTimestamp }] = await reader.getContractEvents({
        address,
        abi,
        eventName: "Increased",
        blockHash: logs[0].blockHash,
    });
    assert.deepEqual(args, { by: alice.address, step: 2n, value: 7n });
    const block = await reader.getBlock({ blockHash: logs[0].blockHash });
    assert.equal(BigInt(blockTimestamp), block.timestamp);
});

await onlyAlmanac("a block has its time in milliseconds", async () => {
    for (const blockTag of ["latest", "pending"]) {
        const { timestamp, timestampMs } = await reader.getBlock({ blockTag });
        assert.equal(BigInt(timestampMs) / 1000n, timestamp);
    }
});

async function reverts(promise) {
    const error = await promise.then(
        () => assert.fail("was to revert"),
        (error) => error,
    );
    assert.ok(error instanceof BaseError, `${error}`);
    const cause = error.walk((e) => e instanceof ContractFunctionRevertedError);
    assert.ok(cause, `no revert in ${error.message}`);
    return cause;
}
await check("a custom error of a call decodes", async () => {
    const { data } = await reverts(call("increase", [5000n]));
    assert.equal(data.errorName, "AboveLimit");
    assert.deepEqual(data.args, [5007n, 1000n]);
});
await check("a custom error of an estimate decodes", async () => {
    const { data } = await reverts(
        reader.estimateContractGas({ address, abi, functionName: "set", args: [1n], account: bob }),
    );
    assert.equal(data.errorName, "NotOwner");
    assert.deepEqual(data.args, [bob.address]);
});
await check("a custom error of a write decodes", async () => {
    const { data } = await reverts(
        wallet.writeContract({ address, abi, functionName: "set", args: [1n], account: bob }),
    );
    assert.equal(data.errorName, "NotOwner");
});
await check("a reason and a panic decode", async () => {
    assert.equal((await reverts(call("refuse", ["not today"]))).reason, "not today");
    const { data } = await reverts(call("fail"));
    assert.equal(data.errorName, "Panic");
    assert.deepEqual(data.args, [1n]);
});
await check("a transaction that reverts in its block has a receipt that says so", async () => {
    const receipt = await write("increase", [5000n], { gas: 100_000n });
    assert.equal(receipt.status, "reverted");
    assert.deepEqual(receipt.logs, []);
});

await check("getStorageAt", async () => {
    const slot = keccak256(
        encodeAbiParameters([{ type: "address" }, { type: "uint256" }], [alice.address, 1n]),
    );
    assert.equal(BigInt(await reader.getStorageAt({ address, slot })), 7n);
    assert.equal(BigInt(await reader.getStorageAt({ address, slot: toHex(0) })), await call("value"));
});
await check("call with state overrides", async () => {
    const result = await reader.readContract({
        address,
        abi,
        functionName: "value",
        stateOverride: [
            { address, stateDiff: [{ slot: toHex(0, { size: 32 }), value: toHex(321, { size: 32 }) }] },
        ],
    });
    assert.equal(result, 321n);
});
await check("call of code that is nowhere deployed", async () => {
    const { data } = await reader.call({
        code: encodeDeployData({ ...counterFile, args: [77n] }),
        data: counterData("limit"),
    });
    assert.equal(BigInt(data), 77n);
});

await check("simulateCalls carries state from call to call", async () => {
    const { results } = await reader.simulateCalls({
        account: alice,
        calls: [
            { to: address, abi, functionName: "set", args: [40n] },
            { to: address, abi, functionName: "increase", args: [2n] },
            { to: address, abi, functionName: "increase", args: [5000n] },
        ],
    });
    assert.deepEqual(
        results.map((r) => r.status),
        ["success", "success", "failure"],
    );
    assert.equal(results[1].result, 42n);
    assert.equal(results[1].logs.length, 1);
    assert.match(results[2].error.message, /AboveLimit/);
    assert.notEqual(await call("value"), 42n);
});
await check("a simulation shows transfers of value as logs", async () => {
    const [{ calls }] = await reader.simulateBlocks({
        blocks: [
            {
                calls: [
                    { account: alice.address, to: address, data: counterData("payBack", bob.address, 4n) },
                ],
            },
        ],
        traceTransfers: true,
    });
    const [log] = calls[0].logs;
    assert.equal(log.address, `0x${"ee".repeat(20)}`);
    assert.deepEqual(
        log.topics.slice(1).map((topic) => `0x${topic.slice(26)}`),
        [address, bob.address].map((a) => a.toLowerCase()),
    );
    assert.equal(BigInt(log.data), 4n);
});
// anvil 1.7.1 cannot simulate the creation that viem asks for here.
await onlyAlmanac("simulateCalls tells which balances change", async () => {
    const { assetChanges } = await reader.simulateCalls({
        account: alice.address,
        calls: [{ to: carol.address, value: parseEther("1") }],
        traceAssetChanges: true,
    });
    const ether = assetChanges.find(({ token }) => token.symbol === "ETH");
    assert.equal(ether.value.diff, -parseEther("1"));
});
await check("simulateBlocks with overrides in two blocks", async () => {
    const { number, timestamp } = await reader.getBlock();
    const rich = "0x00000000000000000000000000000000000000ee";
    const blocks = await reader.simulateBlocks({
        blocks: [
            {
                blockOverrides: { time: timestamp + 1000n },
                stateOverrides: [{ address: rich, balance: parseEther("9") }],
                calls: [
                    { account: rich, to: carol.address, value: parseEther("1") },
                    { account: rich, to: address, data: counterData("time") },
                ],
            },
            { calls: [{ account: rich, to: address, data: counterData("time") }] },
        ],
    });
    // anvil 1.7.1 gives the first of them the number of its parent.
    if (isAlmanac) assert.ok(isNetwork ? blocks[0].number > number : blocks[0].number === number + 1n);
    assert.equal(blocks[1].number, blocks[0].number + 1n);
    assert.deepEqual(
        blocks[0].calls.map((c) => c.status),
        ["success", "success"],
    );
    assert.equal(BigInt(blocks[0].calls[1].data), timestamp + 1000n);
    assert.equal(BigInt(blocks[1].calls[0].data), blocks[1].timestamp);
    assert.ok(blocks[1].timestamp > timestamp + 1000n);
});
await check("a batch of reads through deployless multicall", async () => {
    const data = encodeDeployData({ ...counterFile, args: [1n] });
    const { data: code } = await reader.call({ data });
    assert.equal(code.length, counterFile.deployedBytecode.length);
});

finish();
