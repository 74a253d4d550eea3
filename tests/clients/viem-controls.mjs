// viem's test client: snapshots, time, balances, impersonation and the rest of what a developer may do to a chain.

import assert from "node:assert/strict";
import fs from "node:fs";
import { createTestClient, http, parseEther, parseGwei, publicActions, toHex, walletActions } from "viem";
import { alice, bob, carol, common, deployCounter, included, reader, wallet } from "./accounts-viem.mjs";
import { artifact, check, finish, onlyAlmanac, until, url } from "./check.mjs";

const test = createTestClient({ ...common, mode: "anvil", transport: http(url) })
    .extend(publicActions)
    .extend(walletActions);
const { address, read: call, write } = await deployCounter(1000n);

await check("snapshot and revert", async () => {
    const before = { value: await call("value"), block: await reader.getBlockNumber() };
    const id = await test.snapshot();
    await write("increase", [20n]);
    assert.equal(await call("value"), before.value + 20n);
    await test.revert({ id });
    assert.equal(await call("value"), before.value);
    assert.equal(await reader.getBlockNumber(), before.block);
});
await check("increaseTime", async () => {
    const { timestamp } = await reader.getBlock();
    await test.increaseTime({ seconds: 3600 });
    await test.mine({ blocks: 1 });
    const passed = (await reader.getBlock()).timestamp - timestamp;
    assert.ok(passed >= 3600n && passed < 3660n, `${passed} s`);
    assert.equal(await call("time"), (await reader.getBlock()).timestamp);
});
await check("setNextBlockTimestamp", async () => {
    const { timestamp } = await reader.getBlock();
    await test.setNextBlockTimestamp({ timestamp: timestamp + 500n });
    const receipt = await write("note", ["later"]);
    assert.equal((await reader.getBlock({ blockNumber: receipt.blockNumber })).timestamp, timestamp + 500n);
});
await check("mine several blocks with an interval", async () => {
    const before = await reader.getBlock();
    await test.mine({ blocks: 5, interval: 100 });
    const after = await reader.getBlock();
    assert.equal(after.number, before.number + 5n);
    const times = await Promise.all(
        [4n, 3n, 2n, 1n, 0n].map(
            async (n) => (await reader.getBlock({ blockNumber: after.number - n })).timestamp,
        ),
    );
    for (let i = 1; i < times.length; i++) assert.equal(times[i] - times[i - 1], 100n);
});
await check("setBalance, setNonce, setCode, setStorageAt", async () => {
    const nobody = "0x00000000000000000000000000000000000000bb";
    await test.setBalance({ address: nobody, value: parseEther("5") });
    assert.equal(await reader.getBalance({ address: nobody }), parseEther("5"));
    await test.setNonce({ address: nobody, nonce: 9 });
    assert.equal(await reader.getTransactionCount({ address: nobody }), 9);
    await test.setCode({ address: nobody, bytecode: "0x602a5f5260205ff3" });
    assert.equal(BigInt((await reader.call({ to: nobody })).data), 42n);
    await test.setStorageAt({ address, index: 0, value: toHex(500, { size: 32 }) });
    assert.equal(await call("value"), 500n);
});
await check("impersonateAccount", async () => {
    const stranger = "0x00000000000000000000000000000000000000cc";
    await test.setBalance({ address: stranger, value: parseEther("2") });
    await test.impersonateAccount({ address: stranger });
    const hash = await test.sendTransaction({ account: stranger, to: bob.address, value: parseEther("1") });
    const receipt = await included(hash);
    assert.equal(receipt.from, stranger);
    assert.equal(receipt.status, "success");
    await test.stopImpersonatingAccount({ address: stranger });
    await assert.rejects(
        test.sendTransaction({ account: stranger, to: bob.address, value: 1n, gas: 21_000n }),
    );
});
await check("automine off, mine by hand, txpool in between", async () => {
    assert.equal(await test.getAutomine(), true);
    await test.setAutomine(false);
    try {
        const height = await reader.getBlockNumber();
        const nonce = await reader.getTransactionCount({ address: alice.address });
        const first = await wallet.sendTransaction({ to: carol.address, value: 1n, nonce, gas: 21_000n });
        const second = await wallet.sendTransaction({
            to: carol.address,
            value: 2n,
            nonce: nonce + 1,
            gas: 21_000n,
        });
        assert.deepEqual(await test.getTxpoolStatus(), { pending: 2, queued: 0 });
        assert.equal(
            await reader.getTransactionCount({ address: alice.address, blockTag: "pending" }),
            nonce + 2,
        );
        assert.equal((await reader.getTransaction({ hash: first })).blockNumber, null);
        const { pending } = await test.getTxpoolContent();
        assert.deepEqual(
            Object.values(
                Object.entries(pending).find(([who]) => who.toLowerCase() === alice.address.toLowerCase())[1],
            ).map((tx) => tx.hash),
            [first, second],
        );
        await test.dropTransaction({ hash: second });
        await test.mine({ blocks: 1 });
        const block = await reader.getBlock();
        assert.equal(block.number, height + 1n);
        assert.deepEqual(block.transactions, [first]);
    } finally {
        await test.setAutomine(true);
    }
});
await check("setNextBlockBaseFeePerGas, setCoinbase", async () => {
    await test.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei("3") });
    await test.setCoinbase({ address: carol.address });
    await test.mine({ blocks: 1 });
    const block = await reader.getBlock();
    assert.equal(block.baseFeePerGas, parseGwei("3"));
    assert.equal(block.miner, carol.address.toLowerCase());
});
await check("dumpState and loadState", async () => {
    const state = await test.dumpState();
    assert.match(state, /^0x[0-9a-f]{100,}$/);
    const value = await call("value");
    await test.setStorageAt({ address, index: 0, value: toHex(value + 1n, { size: 32 }) });
    assert.equal(await call("value"), value + 1n);
    await test.loadState({ state });
    assert.equal(await call("value"), value);
});

await check("console.log of a contract is shown by the node", async () => {
    const { abi, bytecode } = artifact("Console");
    const { contractAddress } = await included(await wallet.deployContract({ abi, bytecode }));
    const receipt = await included(
        await wallet.writeContract({
            address: contractAddress,
            abi,
            functionName: "say",
            args: ["the answer is", 42n],
        }),
    );
    assert.equal(receipt.status, "success");
    const log = process.env.CLIENT_TEST_NODE_LOG;
    await until(
        "the message in the node's output",
        () => fs.readFileSync(log, "utf8").includes("the answer is 42"),
        3_000,
    );
});
// viem repeats by itself what it gave up waiting for; each repetition used to add the whole span.
await onlyAlmanac("increaseTime that is repeated moves the clock once", async () => {
    const { abi } = artifact("ICronRegistry");
    const registry = { address: "0x0000000000000000000000000000000000000006", abi };
    const { timestamp: start } = await reader.getBlock({ blockTag: "pending" });
    const order = [address, "0x12345678", start + 60n, 60n, 0n, 100_000n];
    const receipt = await included(
        await wallet.writeContract({ ...registry, functionName: "scheduleCalldata", args: order, value: parseEther("1") }),
    );
    assert.equal(receipt.status, "success");
    const impatient = createTestClient({
        ...common,
        mode: "anvil",
        transport: http(url, { timeout: 300, retryCount: 100, retryDelay: 1 }),
    });
    const { timestamp: before } = await reader.getBlock({ blockTag: "pending" });
    await impatient.increaseTime({ seconds: 60 * 1_000 });
    const passed = (await reader.getBlock({ blockTag: "pending" })).timestamp - before;
    assert.ok(passed >= 60_000n && passed < 60_060n, `${passed} s`);
});

finish();
