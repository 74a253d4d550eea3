// Foundry's forge: deploys, runs a script that broadcasts, and tests on a fork of the node.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { accounts, check, finish, foundry, root, rpc, run, url } from "./check.mjs";

const [alice] = accounts;
const project = path.resolve("foundry");
const forge = (args, env = {}) =>
    run(foundry("forge"), args, { cwd: project, env: { ...process.env, NO_COLOR: "1", ...env } });
const word = async (to, data, block = "latest") => BigInt(await rpc("eth_call", { to, data }, block));
const VALUE = "0x3fa4f245";

await check("forge build, offline with npm's solc", async () => {
    fs.mkdirSync(path.join(project, "src"), { recursive: true });
    fs.copyFileSync(path.join(root, "contracts/examples/Counter.sol"), path.join(project, "src/Counter.sol"));
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
        await forge(["test", "--json", "--fork-url", url, "--no-storage-caching"], env),
    );
    const results = Object.values(report).flatMap((suite) => Object.entries(suite.test_results));
    assert.deepEqual(
        results.filter(([, r]) => r.status !== "Success").map(([name, r]) => `${name}: ${r.reason}`),
        [],
    );
    assert.equal(results.length, 4);
    assert.equal(await word(counter, VALUE), 10n, "the node itself has not changed");
});

finish();
