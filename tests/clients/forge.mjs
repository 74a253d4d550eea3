// Foundry's forge: deploys, runs scripts that broadcast, tests on a fork of the node, and tests what is scheduled in its
// own EVM, whose doors are compared with those of the node.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import {
    Contract, ContractFactory, JsonRpcProvider, NonceManager, SigningKey, Wallet, concat, parseEther, toBeHex,
} from "ethers";
import {
    accounts, artifact, check, finish, foundry, notes, onlyAlmanac, recorded, root, rpc, run, url,
} from "./check.mjs";

const [alice, bob] = accounts;
const project = path.resolve("foundry");
const forge = (args, env = {}) =>
    run(foundry("forge"), args, { cwd: project, env: { ...process.env, NO_COLOR: "1", ...env } });
const word = async (to, data, block = "latest") => BigInt(await rpc("eth_call", { to, data }, block));
const VALUE = "0x3fa4f245";
const REGISTRY = "0x0000000000000000000000000000000000000006";
const KEYS = "0x000000000000000000000000000000000000a104";

await check("forge build, offline with npm's solc", async () => {
    fs.mkdirSync(path.join(project, "src"), { recursive: true });
    fs.copyFileSync(path.join(root, "contracts/examples/Counter.sol"), path.join(project, "src/Counter.sol"));
    fs.cpSync(path.join(root, "contracts"), path.join(project, "almanac"), {
        recursive: true,
        filter: (source) => !/contracts\/(artifacts|build|examples)/.test(source),
    });
    await forge(["build"]);
    assert.ok(fs.existsSync(path.join(project, "out/Counter.sol/Counter.json")));
});
await check("forge create", async () => {
    const created = JSON.parse(
        await forge([
            "create",
            "src/Counter.sol:Counter",
            "--json",
            "--broadcast",
            "--rpc-url",
            url,
            "--private-key",
            alice.key,
            "--constructor-args",
            "100",
        ]),
    );
    assert.equal(created.deployer, alice.address);
    assert.equal(await word(created.deployedTo, "0xa4d66daf"), 100n);
    assert.equal((await rpc("eth_getTransactionReceipt", created.transactionHash)).status, "0x1");
});

let counter;
let last;
await check("forge script --broadcast", async () => {
    // --slow: one after the other, so that each has a block of its own to fork at.
    await forge([
        "script",
        "script/Deploy.s.sol",
        "--broadcast",
        "--slow",
        "--rpc-url",
        url,
        "--private-key",
        alice.key,
    ]);
    const record = JSON.parse(
        fs.readFileSync(path.join(project, "broadcast/Deploy.s.sol/31337/run-latest.json"), "utf8"),
    );
    assert.deepEqual(
        record.receipts.map((receipt) => receipt.status),
        ["0x1", "0x1", "0x1"],
    );
    counter = record.receipts[0].contractAddress;
    last = BigInt(record.receipts[2].blockNumber);
    assert.equal(await word(counter, VALUE), 10n);
});
await check("forge script --resume finds that all is done", async () => {
    const nonce = await rpc("eth_getTransactionCount", alice.address, "latest");
    await forge([
        "script",
        "script/Deploy.s.sol",
        "--broadcast",
        "--resume",
        "--rpc-url",
        url,
        "--private-key",
        alice.key,
    ]);
    assert.equal(await rpc("eth_getTransactionCount", alice.address, "latest"), nonce);
});
await check("forge test on a fork", async () => {
    const env = { COUNTER: counter, BEFORE: String(last - 1n) };
    const report = JSON.parse(
        await forge(["test", "--json", "--fork-url", url, "--no-storage-caching", "--match-contract", "ForkTest"], env),
    );
    const results = Object.values(report).flatMap((suite) => Object.entries(suite.test_results));
    assert.deepEqual(
        results.filter(([, r]) => r.status !== "Success").map(([name, r]) => `${name}: ${r.reason}`),
        [],
    );
    assert.equal(results.length, 5);
    assert.equal(await word(counter, VALUE), 10n, "the node itself has not changed");
});

await check("forge test with scheduled jobs, callbacks, scheduled transactions and keys", async () => {
    const report = JSON.parse(await forge(["test", "--json", "--match-contract", "DoorsTest"]));
    const results = Object.values(report).flatMap((suite) => Object.entries(suite.test_results));
    assert.deepEqual(
        results.filter(([, r]) => r.status !== "Success").map(([name, r]) => `${name}: ${r.reason}`),
        [],
    );
    assert.equal(results.length, 7);
});

const provider = new JsonRpcProvider(url, undefined, { cacheTimeout: -1, pollingInterval: 20 });
const signer = new NonceManager(new Wallet(alice.key, provider));
let time;

/** What a scenario came to in forge's EVM, which is what is recorded for the other fakes. */
function inForge(name) {
    const noted = fs.readFileSync(path.join(project, `out/${name}.txt`), "utf8").slice(2);
    const found = notes(noted.match(/.{64}/g).map((word) => `0x${word}`));
    assert.deepEqual(found, recorded(name), "what is recorded for the other fakes");
    return found;
}

/** Makes a scenario on the node, in a block of the next second. */
async function deployed(name, ...args) {
    const { abi, bytecode } = artifact(name);
    time = Math.max(time ?? 0, (await provider.getBlock("pending")).timestamp) + 1_000;
    await rpc("evm_setNextBlockTimestamp", time);
    const made = await new ContractFactory(abi, bytecode, signer).deploy(...args);
    await made.waitForDeployment();
    return new Contract(made.target, abi, signer);
}

/** A step, in a block of the next second. */
async function act(scenarios, step) {
    time += 1;
    await rpc("evm_setNextBlockTimestamp", time);
    const fees = { gasLimit: 20_000_000n, maxFeePerGas: 100n * GWEI, maxPriorityFeePerGas: 1n };
    const receipt = await (await scenarios.act(step, fees)).wait();
    assert.equal(receipt.status, 1, `step ${step}`);
}

const GWEI = 10n ** 9n;
const setBaseFee = (gwei) => rpc("anvil_setNextBlockBaseFeePerGas", `0x${(gwei * GWEI).toString(16)}`);

await onlyAlmanac("jobs and callbacks in forge's EVM do what the real ones do", async () => {
    const scenarios = await deployed("Scenarios", REGISTRY, { value: parseEther("100") });
    for (let step = 0n; step < (await scenarios.steps()); step++) {
        await act(scenarios, step);
        time += Number(await scenarios.pause(step));
        await rpc("evm_setTime", time);
    }
    assert.deepEqual(notes(await scenarios.outcome()), inForge("Scenarios"));
});
await onlyAlmanac("scheduled transactions in forge's EVM do what the real ones do", async () => {
    const scenarios = await deployed("MarketScenarios", REGISTRY, { value: parseEther("100") });
    for (let step = 0n; step < (await scenarios.steps()); step++) {
        await setBaseFee(1n);
        await act(scenarios, step);
        time += Number(await scenarios.pause(step));
        const fee = await scenarios.feeAfter(step);
        await setBaseFee(fee);
        await rpc("evm_setTime", time);
        for (let i = await scenarios.blocksAfter(step); i > 0n; i--) await rpc("evm_mine");
        if (fee === 1n) continue;
        // What waited for the price runs now.
        await setBaseFee(1n);
        await rpc("evm_mine");
    }
    assert.deepEqual(notes(await scenarios.outcome()), inForge("MarketScenarios"));
});
await onlyAlmanac("keys in forge's EVM do what the real ones do", async () => {
    const scenarios = await deployed("AccountScenarios");
    for (let step = 0n; step < (await scenarios.steps()); step++) await act(scenarios, step);
    const account = Wallet.createRandom().connect(provider);
    await (await signer.sendTransaction({ to: account.address, value: parseEther("1") })).wait();
    const door = new Contract(KEYS, artifact("IAccounts").abi, account);
    const key = await scenarios.key();
    const digest = await door.rotationDigest(account.address, key);
    const proofs = [bob, alice].map(({ key }) => {
        const { r, s, yParity } = new SigningKey(key).sign(digest);
        return concat([r, s, toBeHex(yParity)]);
    });
    assert.equal((await (await door.rotateKey(key, proofs)).wait()).status, 1);
    await (await scenarios.rotated(account.address)).wait();
    assert.deepEqual(notes(await scenarios.outcome()), inForge("AccountScenarios"));
});
await onlyAlmanac("forge script --broadcast that schedules", async () => {
    const args = ["script", "script/Schedule.s.sol", "--broadcast", "--skip-simulation", "--slow"];
    await forge([...args, "--rpc-url", url, "--private-key", alice.key]);
    const record = JSON.parse(
        fs.readFileSync(path.join(project, "broadcast/Schedule.s.sol/31337/run-latest.json"), "utf8"),
    );
    assert.deepEqual(record.receipts.map((receipt) => receipt.status), ["0x1", "0x1"]);
    await rpc("evm_increaseTime", 3_600);
    assert.equal(await word(record.receipts[0].contractAddress, VALUE), 10n, "two runs of five");
});

finish();
