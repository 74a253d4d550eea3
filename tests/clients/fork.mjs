// A developer chain over the state of anvil: contracts that only anvil knows are called, scheduled and changed here.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { Contract, ContractFactory, Interface, JsonRpcProvider, NonceManager, Wallet, parseEther } from "ethers";
import { accounts, artifact, finish, foundry, onlyAlmanac, root } from "./check.mjs";

const almanac = process.env.ALMANAC ?? path.join(root, "target/debug/almanac");
const [alice, bob] = accounts;
const REGISTRY = "0x0000000000000000000000000000000000000006";
const CHAIN_ID = 5_151;
const cron = new Interface(artifact("ICronRegistry").abi);
const processes = [];

/** Starts a node; gives its address once it has said it, and how to end it. */
function start(program, args) {
    const child = spawn(program, [...args, "--port", "0"], { stdio: ["ignore", "pipe", "ignore"] });
    processes.push(child);
    const ended = new Promise((resolve) => child.once("close", resolve));
    const stop = () => (child.kill("SIGTERM"), ended);
    return new Promise((resolve, reject) => {
        let said = "";
        child.once("error", reject);
        child.once("exit", (code) => reject(new Error(`${program} ended with ${code}`)));
        child.stdout.on("data", (data) => {
            said += data;
            const address = said.match(/(?:http:\/\/|Listening on )([\d.]+:\d+)/)?.[1];
            if (address) resolve({ url: `http://${address}`, stop });
        });
    });
}

function client({ url }) {
    const provider = new JsonRpcProvider(url, undefined, { cacheTimeout: -1, polling: true, pollingInterval: 50 });
    return { provider, signer: new NonceManager(new Wallet(alice.key, provider)) };
}

const directory = fs.mkdtempSync(path.join(os.tmpdir(), "fork-"));
const counterOf = (address, runner) => new Contract(address, artifact("Counter").abi, runner);
let anvil, fork, counter;

await onlyAlmanac("a contract of anvil is there, with its storage", async () => {
    anvil = await start(foundry("anvil"), ["--chain-id", `${CHAIN_ID}`]);
    const origin = client(anvil);
    const { abi, bytecode } = artifact("Counter");
    const deployed = await (await new ContractFactory(abi, bytecode, origin.signer).deploy(1_000)).waitForDeployment();
    counter = await deployed.getAddress();
    await (await deployed.increase(7)).wait();
    fork = await start(almanac, ["dev", "--fork-url", anvil.url, "--datadir", path.join(directory, "chain")]);
    // What the origin does later is not seen.
    await (await deployed.increase(100)).wait();
    const { provider } = client(fork);
    assert.equal(await counterOf(counter, provider).value(), 7n);
    assert.equal(BigInt(await provider.send("eth_chainId", [])), BigInt(CHAIN_ID));
});
await onlyAlmanac("a schedule of our door runs it", async () => {
    const { provider, signer } = client(fork);
    const { timestamp } = await provider.getBlock("latest");
    const data = cron.encodeFunctionData("schedule", [
        counter,
        "increase(uint256)",
        `0x${"5".padStart(64, "0")}`,
        timestamp + 60,
        60,
        3,
        100_000,
    ]);
    await (await signer.sendTransaction({ to: REGISTRY, data, value: parseEther("0.001") })).wait();
    await provider.send("evm_increaseTime", [300]);
    assert.equal(await counterOf(counter, provider).value(), 22n);
    assert.equal(await counterOf(counter, client(anvil).provider).value(), 107n, "anvil knows nothing of it");
});
await onlyAlmanac("what a developer changes lies over anvil's state", async () => {
    const { provider, signer } = client(fork);
    const snapshot = await provider.send("evm_snapshot", []);
    await provider.send("anvil_setBalance", [counter, "0x5"]);
    await provider.send("anvil_setStorageAt", [counter, "0x0", `0x${"0".repeat(64)}`]);
    assert.equal(await provider.getBalance(counter), 5n);
    assert.equal(BigInt(await provider.getStorage(counter, 0)), 0n);
    assert.equal(await provider.send("evm_revert", [snapshot]), true);
    assert.equal(await counterOf(counter, provider).value(), 22n);
    await (await signer.sendTransaction({ to: bob.address, value: 1n })).wait();
});
await onlyAlmanac("a restart needs no anvil for what was read", async () => {
    await fork.stop();
    await anvil.stop();
    fork = await start(almanac, ["dev", "--datadir", path.join(directory, "chain")]);
    const { provider } = client(fork);
    assert.equal(await counterOf(counter, provider).value(), 22n);
    const unread = "0x00000000000000000000000000000000000000ff";
    await assert.rejects(provider.getBalance(unread), /start it with --fork-url/);
});

processes.forEach((child) => child.kill("SIGKILL"));
fs.rmSync(directory, { recursive: true, force: true });
finish();
