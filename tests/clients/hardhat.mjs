// Hardhat 3 with its network helpers, on an HTTP network. Needs the Node that comes from npm.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { decodeFunctionResult, encodeFunctionData } from "viem";
import { artifact, check, finish, notes, onlyAlmanac, recorded, root } from "./check.mjs";

// Hardhat looks for its project in the working directory, and asks before it reports anything.
process.chdir("hardhat");
process.env.HARDHAT_DISABLE_TELEMETRY_PROMPT = "true";
// What a user has: the interfaces, the contracts on them, the examples; not what only tests need.
fs.cpSync(path.join(root, "contracts"), "contracts", {
    recursive: true,
    filter: (source) => !/contracts\/(artifacts|build|testing)/.test(source),
});
const { default: hre } = await import("hardhat");

let viem;
let helpers;
let provider;
let counter;
let client;

/** A write answers with the hash; its block may come a moment later. */
async function increase(step) {
    return client.waitForTransactionReceipt({ hash: await counter.write.increase([step]) });
}

await check("compiles with npm's solc", async () => {
    await hre.tasks.getTask("build").run({ quiet: true });
    const built = JSON.parse(fs.readFileSync("artifacts/contracts/examples/Counter.sol/Counter.json", "utf8"));
    assert.ok(built.bytecode.length > 1000);
});
await check("connects to an HTTP network", async () => {
    ({ viem, networkHelpers: helpers, provider } = await hre.network.connect("chain"));
    client = await viem.getPublicClient();
    assert.equal(await client.getChainId(), 31337);
    assert.equal((await viem.getWalletClients()).length, 10);
});
await check("deployContract with an account of the node", async () => {
    counter = await viem.deployContract("Counter", [1000n]);
    assert.equal(await counter.read.limit(), 1000n);
    const [first] = await viem.getWalletClients();
    assert.equal((await counter.read.owner()).toLowerCase(), first.account.address.toLowerCase());
});
await check("write and getContractAt", async () => {
    await increase(5n);
    const same = await viem.getContractAt("Counter", counter.address);
    assert.equal(await same.read.value(), 5n);
});
await check("mine and mineUpTo", async () => {
    const begin = await client.getBlockNumber();
    await helpers.mine(3);
    assert.equal(await client.getBlockNumber({ cacheTime: 0 }), begin + 3n);
    await helpers.mineUpTo(begin + 10n);
    assert.equal(await client.getBlockNumber({ cacheTime: 0 }), begin + 10n);
    const before = await helpers.time.latest();
    await helpers.mine(2, { interval: 600 });
    assert.ok((await helpers.time.latest()) - before >= 600);
});
await check("time.increase, increaseTo, setNextBlockTimestamp", async () => {
    const begin = await helpers.time.latest();
    await helpers.time.increase(1000);
    const passed = (await helpers.time.latest()) - begin;
    assert.ok(passed >= 1000 && passed < 1060, `${passed}`);
    await helpers.time.increaseTo(begin + 5000);
    assert.equal(await helpers.time.latest(), begin + 5000);
    await helpers.time.setNextBlockTimestamp(begin + 6000);
    await helpers.mine();
    assert.equal(await helpers.time.latest(), begin + 6000);
});
await check("takeSnapshot and restore", async () => {
    const snapshot = await helpers.takeSnapshot();
    await increase(10n);
    assert.equal(await counter.read.value(), 15n);
    await snapshot.restore();
    assert.equal(await counter.read.value(), 5n);
    await increase(1n);
    await snapshot.restore();
    assert.equal(await counter.read.value(), 5n);
});
await check("loadFixture runs once", async () => {
    let runs = 0;
    const fixture = async () => {
        runs += 1;
        await increase(1n);
        return counter.read.value();
    };
    assert.equal(await helpers.loadFixture(fixture), 6n);
    await increase(50n);
    assert.equal(await helpers.loadFixture(fixture), 6n);
    assert.equal(await counter.read.value(), 6n);
    assert.equal(runs, 1);
});
await check("setBalance, setNonce, setCode, setStorageAt, getStorageAt", async () => {
    const address = "0x00000000000000000000000000000000000000ab";
    await helpers.setBalance(address, 77n);
    assert.equal(await client.getBalance({ address }), 77n);
    await helpers.setNonce(address, 4);
    assert.equal(await client.getTransactionCount({ address }), 4);
    await helpers.setCode(address, "0x602a5f5260205ff3");
    assert.equal(BigInt((await client.call({ to: address })).data), 42n);
    await helpers.setStorageAt(counter.address, 0, 99);
    assert.equal(BigInt(await helpers.getStorageAt(counter.address, 0)), 99n);
    assert.equal(await counter.read.value(), 99n);
});
await check("impersonateAccount", async () => {
    const stranger = "0x00000000000000000000000000000000000000ac";
    await helpers.setBalance(stranger, 10n ** 18n);
    await helpers.impersonateAccount(stranger);
    const wallet = await viem.getWalletClient(stranger);
    const hash = await wallet.sendTransaction({ to: counter.address, value: 3n });
    assert.equal((await client.waitForTransactionReceipt({ hash })).from, stranger);
    await helpers.stopImpersonatingAccount(stranger);
    await assert.rejects(wallet.sendTransaction({ to: counter.address, value: 3n, gas: 50_000n }));
});
await check("setNextBlockBaseFeePerGas, setCoinbase, setPrevRandao", async () => {
    await helpers.setNextBlockBaseFeePerGas(2_000_000_000n);
    await helpers.setCoinbase("0x00000000000000000000000000000000000000ad");
    await helpers.mine();
    const block = await client.getBlock();
    assert.equal(block.baseFeePerGas, 2_000_000_000n);
    assert.equal(block.miner, "0x00000000000000000000000000000000000000ad");
});
// anvil 1.7.1 answers with the hash, which Hardhat does not take.
await onlyAlmanac("dropTransaction with automine off", async () => {
    await provider.request({ method: "evm_setAutomine", params: [false] });
    try {
        const [wallet] = await viem.getWalletClients();
        const hash = await wallet.sendTransaction({ to: counter.address, value: 1n, gas: 50_000n });
        await helpers.dropTransaction(hash);
        await helpers.mine();
        assert.deepEqual((await client.getBlock()).transactions, []);
    } finally {
        await provider.request({ method: "evm_setAutomine", params: [true] });
    }
});
await check("evm_revert of a snapshot that is gone is false", async () => {
    const id = await provider.request({ method: "evm_snapshot", params: [] });
    assert.equal(await provider.request({ method: "evm_revert", params: [id] }), true);
    assert.equal(await provider.request({ method: "evm_revert", params: [id] }), false);
});

let inProcess;
let doors;
let time;

/** A scenario in the in-process network; its blocks have the times that `time` counts. */
async function scenario(name, args, value = 0n) {
    const [wallet] = await inProcess.viem.getWalletClients();
    const reader = await inProcess.viem.getPublicClient();
    const { abi, bytecode } = artifact(name);
    const send = async (request) => {
        time += 1;
        // The price that the scenarios expect.
        await inProcess.provider.request({ method: "hardhat_setNextBlockBaseFeePerGas", params: ["0x3b9aca00"] });
        await inProcess.provider.request({ method: "evm_setNextBlockTimestamp", params: [time] });
        const receipt = await reader.waitForTransactionReceipt({ hash: await request() });
        assert.equal(receipt.status, "success");
        return receipt;
    };
    time = Number((await reader.getBlock()).timestamp) + 1_000;
    const { contractAddress: address } = await send(() => wallet.deployContract({ abi, bytecode, args, value }));
    const read = (functionName, args = []) => reader.readContract({ address, abi, functionName, args });
    const act = (step) =>
        send(() => wallet.writeContract({ address, abi, functionName: "act", args: [step], gas: 15_000_000n }));
    const setBaseFee = (gwei) =>
        inProcess.provider.request({ method: "hardhat_setNextBlockBaseFeePerGas", params: [`0x${(gwei * 10n ** 9n).toString(16)}`] });
    return { read, act, setBaseFee };
}

await check("the in-process network runs jobs and callbacks with the fakes of the doors", async () => {
    const { installDoors } = await import(path.join(root, "contracts/testing/hardhat.mjs"));
    inProcess = await hre.network.connect("inProcess");
    doors = await installDoors(inProcess.provider, { encodeFunctionData, decodeFunctionResult });
    const { read, act } = await scenario("Scenarios", [doors.cron], 50n * 10n ** 18n);
    // The later steps book more effort than a transaction of this network can have gas.
    for (let step = 0n; step < 5n; step++) {
        await act(step);
        time += Number(await read("pause", [step]));
        await doors.runUntil(time);
    }
    const found = notes(await read("outcome"));
    assert.deepEqual(found, recorded("Scenarios").slice(0, found.length));
    assert.ok(found.some((line) => line.startsWith("run 8 ")), "everything ran");
});
await check("the in-process network runs scheduled transactions with the fakes of the doors", async () => {
    const { read, act, setBaseFee } = await scenario("MarketScenarios", [doors.cron], 100n * 10n ** 18n);
    // The later steps need blocks that are less than a second apart, which this network does not have.
    for (let step = 0n; step < 6n; step++) {
        await act(step);
        time += Number(await read("pause", [step]));
        const fee = await read("feeAfter", [step]);
        await setBaseFee(fee);
        if (fee > 1n) {
            await doors.runUntil(time - 20);
            for (let i = await read("blocksAfter", [step]); i > 0n; i--) await doors.runBlock();
            // What waited for the price runs now.
            await setBaseFee(1n);
            await doors.runBlock();
        }
        await doors.runUntil(time);
    }
    const found = notes(await read("outcome"));
    assert.deepEqual(found, recorded("MarketScenarios").slice(0, found.length));
    assert.ok(found.some((line) => line.startsWith("run 32 ")), "everything ran");
});
await check("the in-process network checks keys with the fake of the door", async () => {
    const { read, act } = await scenario("AccountScenarios", []);
    for (let step = 0n; step < (await read("steps")); step++) await act(step);
    const found = notes(await read("outcome"));
    assert.deepEqual(found, recorded("AccountScenarios").slice(0, found.length));
    assert.equal(found.at(-1), "nothing 0 0");
});

finish();
