// Foundry's cast: the command line that most people try a chain with first.

import assert from "node:assert/strict";
import {
    accounts,
    artifact,
    check,
    finish,
    foundry,
    isAlmanac,
    isNetwork,
    onlyAlmanac,
    onlyDeveloper,
    passUntil,
    run,
    until,
    url,
    wait,
} from "./check.mjs";

const [alice, bob, carol] = accounts;
const counter = artifact("Counter");
const cron = "0x0000000000000000000000000000000000000006";
const parameters = "0x000000000000000000000000000000000000a105";
const env = { ...process.env, ETH_RPC_URL: url, NO_COLOR: "1" };

const cast = (...args) => run(foundry("cast"), args, { env });
const send = async (...args) => JSON.parse(await cast("send", "--private-key", alice.key, "--json", ...args));
/** Without the remark in brackets that cast puts behind large numbers. */
const plain = (text) => text.replace(/ \[.*\]$/, "");

async function refused(words, ...args) {
    await assert.rejects(cast(...args), (error) => {
        assert.match(error.stderr, words);
        return true;
    });
}

await check("chain-id", async () => assert.equal(await cast("chain-id"), "31337"));
await onlyDeveloper("block-number at genesis", async () => assert.equal(await cast("block-number"), "0"));
await check("balance of a funded account", async () => {
    assert.equal(await cast("balance", "--ether", alice.address), "10000.000000000000000000");
});
await check("client", async () => assert.match(await cast("client"), /^(almanac|anvil)\/v\d/));
await onlyDeveloper("rpc eth_accounts", async () => {
    const given = JSON.parse(await cast("rpc", "eth_accounts"));
    assert.equal(given.length, 10);
    assert.deepEqual(
        given.slice(0, 3),
        accounts.slice(0, 3).map((a) => a.address.toLowerCase()),
    );
});

let transfer;
await check("send, with the fees that cast proposes", async () => {
    transfer = await send("--value", "1ether", bob.address);
    assert.equal(transfer.status, "0x1");
    assert.equal(transfer.type, "0x2");
    assert.equal(transfer.gasUsed, "0x5208");
});
await onlyDeveloper("the first transaction makes the first block", async () => {
    assert.equal(transfer.blockNumber, "0x1");
    assert.equal(await cast("block-number"), "1");
});
await check("receipt", async () => {
    const receipt = JSON.parse(await cast("receipt", "--json", transfer.transactionHash));
    assert.equal(receipt.status, "0x1");
    assert.equal(receipt.blockNumber, transfer.blockNumber);
    assert.equal(receipt.from, alice.address.toLowerCase());
    assert.equal(receipt.to, bob.address.toLowerCase());
    assert.equal(BigInt(receipt.cumulativeGasUsed), 21_000n);
});
await check("balance after", async () => {
    assert.equal(await cast("balance", "--ether", bob.address), "10001.000000000000000000");
});
await check("balance before", async () => {
    assert.equal(await cast("balance", "--ether", "--block", "0", bob.address), "10000.000000000000000000");
});
await check("nonce", async () => assert.equal(await cast("nonce", alice.address), "1"));
await check("send --legacy", async () => {
    const receipt = await send("--legacy", "--value", "1", bob.address);
    assert.equal(receipt.type, "0x0");
    assert.equal(receipt.status, "0x1");
});
await check("tx", async () => {
    const tx = JSON.parse(await cast("tx", "--json", transfer.transactionHash));
    assert.equal(tx.hash, transfer.transactionHash);
    assert.equal(BigInt(tx.value), 10n ** 18n);
    assert.equal(Number(tx.nonce), 0);
});
await check("tx --raw and its hash", async () => {
    const raw = await cast("tx", "--raw", transfer.transactionHash);
    assert.equal(await cast("keccak", raw), transfer.transactionHash);
});
await check("block", async () => {
    const block = JSON.parse(await cast("block", "--json", `${Number(transfer.blockNumber)}`));
    assert.equal(block.hash, transfer.blockHash);
    assert.deepEqual(block.transactions, [transfer.transactionHash]);
    assert.equal(BigInt(block.gasUsed), 21_000n);
});
await check("block by hash, one field", async () => {
    assert.equal(await cast("block", transfer.blockHash, "--field", "number"), `${Number(transfer.blockNumber)}`);
});
await check("age and basefee", async () => {
    assert.match(await cast("age", "0"), /\d{4}/);
    assert.ok(BigInt(plain(await cast("base-fee", "1"))) > 0n);
});
await check("gas-price", async () => assert.ok(BigInt(await cast("gas-price")) > 0n));

let created;
await check("send --create, and call it", async () => {
    // Init code that deploys `return 42`.
    const receipt = await send("--create", "0x6008600b5f3960085ff300602a5f5260205ff3");
    assert.equal(receipt.status, "0x1");
    assert.equal(await cast("to-dec", await cast("call", receipt.contractAddress)), "42");
});
await check("send --create with constructor arguments", async () => {
    const receipt = await send("--create", counter.bytecode, "constructor(uint256)", "100");
    created = receipt.contractAddress;
    assert.equal(plain(await cast("call", created, "limit()(uint256)")), "100");
});
await check("code and codesize", async () => {
    const code = await cast("code", created);
    assert.equal(code.length, counter.deployedBytecode.length);
    assert.equal(await cast("codesize", created), String((code.length - 2) / 2));
    assert.equal(await cast("code", bob.address), "0x");
});
await check("codehash, which is a proof that only anvil has", async () => {
    if (isAlmanac) return refused(/almanac_getProof/, "codehash", created);
    assert.equal(await cast("codehash", created), await cast("keccak", await cast("code", created)));
});
await check("compute-address", async () => {
    const address = await cast("compute-address", "--nonce", "3", alice.address);
    assert.equal(address.toLowerCase(), `computed address: ${created.toLowerCase()}`);
});
await check("send a call; storage holds the result", async () => {
    assert.equal((await send(created, "increase(uint256)", "7")).status, "0x1");
    assert.equal(await cast("to-dec", await cast("storage", created, "0")), "7");
});
await check("estimate", async () => {
    const gas = BigInt(await cast("estimate", created, "increase(uint256)", "1"));
    assert.ok(gas > 21_000n && gas < 60_000n, `${gas}`);
    assert.equal(await cast("estimate", "--from", alice.address, bob.address, "--value", "1"), "21000");
});
await check("access-list", async () => {
    const list = JSON.parse(await cast("access-list", "--json", created, "increase(uint256)", "1"));
    const own = list.accessList.find((entry) => entry.address.toLowerCase() === created.toLowerCase());
    assert.ok(own.storageKeys.includes(`0x${"0".repeat(64)}`));
});
await check("logs by signature", async () => {
    const logs = JSON.parse(
        await cast(
            "logs",
            "--json",
            "--from-block",
            "0",
            "--address",
            created,
            "Increased(address indexed,uint256 indexed,uint256)",
        ),
    );
    assert.equal(logs.length, 1);
    assert.equal(BigInt(logs[0].topics[2]), 7n);
    assert.equal(BigInt(logs[0].data), 7n);
});
await check("logs with a topic that does not occur", async () => {
    const step = `0x${(8).toString(16).padStart(64, "0")}`;
    const logs = await cast(
        "logs",
        "--json",
        "--from-block",
        "0",
        "--address",
        created,
        "Increased(address indexed,uint256 indexed,uint256)",
        "",
        step,
    );
    assert.deepEqual(JSON.parse(logs), []);
});
await check("call with overridden balance and code", async () => {
    const nobody = "0x00000000000000000000000000000000000000aa";
    // Code that returns its own balance.
    const answer = await cast(
        "call",
        nobody,
        "--override-balance",
        `${nobody}:77`,
        "--override-code",
        `${nobody}:0x475f5260205ff3`,
    );
    assert.equal(BigInt(answer), 77n);
});
await onlyDeveloper("send --unlocked", async () => {
    const receipt = JSON.parse(
        await cast("send", "--json", "--unlocked", "--from", bob.address, "--value", "1", carol.address),
    );
    assert.equal(receipt.status, "0x1");
    assert.equal(receipt.from, bob.address.toLowerCase());
});
await check("publish a transaction signed by mktx", async () => {
    const raw = await cast("mktx", "--private-key", bob.key, "--value", "5", carol.address);
    const receipt = JSON.parse(await cast("publish", raw));
    assert.equal(receipt.status, "0x1");
});
await check("rpc with raw parameters", async () => {
    const fees = JSON.parse(await cast("rpc", "--raw", "eth_feeHistory", '["0x2", "latest", [50]]'));
    assert.equal(fees.baseFeePerGas.length, 3);
    assert.equal(fees.gasUsedRatio.length, 2);
    assert.equal(fees.reward.length, 2);
});
await check("tx-pool status", async () => {
    const status = JSON.parse(await cast("tx-pool", "status"));
    assert.equal(BigInt(status.pending), 0n);
    assert.equal(BigInt(status.queued), 0n);
});
await check("run replays a transaction", async () => {
    const { transactionHash } = await send(created, "increase(uint256)", "3");
    const trace = await cast("run", transactionHash);
    assert.match(trace, /Transaction successfully executed/);
    assert.match(trace, new RegExp(created, "i"));
});
await onlyAlmanac("block --full, tx, receipt and run of a scheduled run", async () => {
    const now = Number(await cast("block", isNetwork ? "latest" : "pending", "--field", "timestamp"));
    const due = now + wait.first;
    const step = await cast("abi-encode", "f(uint256)", "2");
    const signature = "schedule(address,string,bytes,uint256,uint256,uint256,uint256)";
    const order = [created, "increase(uint256)", step, `${due}`, "0", "0", "100000"];
    const { logs } = await send("--value", "0.01ether", cron, signature, ...order);
    await passUntil(due);
    const { runs } = await until("the run", async () => {
        const found = JSON.parse(await cast("rpc", "almanac_getRuns", BigInt(logs[0].topics[1]).toString()));
        return found.runs.length === 1 && found;
    });
    const { transactionHash, blockNumber } = runs[0].receipt;
    const block = JSON.parse(await cast("block", "--full", "--json", `${Number(blockNumber)}`));
    const shown = block.transactions.find(({ hash }) => hash === transactionHash);
    assert.deepEqual([shown.type, shown.almanacType, BigInt(shown.r)], ["0x0", "0x71", 1n]);
    assert.equal(JSON.parse(await cast("tx", "--json", transactionHash)).from, cron);
    assert.equal(JSON.parse(await cast("receipt", "--json", transactionHash)).status, "0x1");
    assert.match(await cast("run", transactionHash), new RegExp(created, "i"));
});
await onlyDeveloper("run replays a transaction behind a scheduled run", async () => {
    if (!isAlmanac) return;
    const due = Number(await cast("block", "pending", "--field", "timestamp")) + 50;
    const step = await cast("abi-encode", "f(uint256)", "2");
    const signature = "schedule(address,string,bytes,uint256,uint256,uint256,uint256)";
    const order = [created, "increase(uint256)", step, `${due}`, "0", "0", "100000"];
    await send("--value", "0.01ether", cron, signature, ...order);
    await cast("rpc", "evm_setNextBlockTimestamp", `${due}`);
    const { transactionHash, transactionIndex } = await send(created, "increase(uint256)", "1");
    assert.equal(transactionIndex, "0x1");
    assert.match(await cast("run", transactionHash), /Transaction successfully executed/);
});
// docs/testing-contracts.md says so: Foundry's EVM has no doors. What it names instead shows what happened.
await onlyAlmanac("run cannot replay a transaction that schedules, and the node's trace does", async () => {
    const now = Number(await cast("block", isNetwork ? "latest" : "pending", "--field", "timestamp"));
    const signature = "schedule(address,string,bytes,uint256,uint256,uint256,uint256)";
    const order = [created, "increase(uint256)", await cast("abi-encode", "f(uint256)", "2"), `${now + 3_600}`, "0", "0", "100000"];
    const { transactionHash, status, logs } = await send("--value", "0.01ether", cron, signature, ...order);
    assert.equal(status, "0x1");
    assert.match(await cast("run", transactionHash), /ecadd[^]*PrecompileError/);
    const options = '{"tracer":"callTracer","tracerConfig":{"withLog":true}}';
    const trace = JSON.parse(await cast("rpc", "debug_traceTransaction", transactionHash, options));
    assert.deepEqual([trace.to, trace.error, trace.logs[0].topics], [cron, undefined, logs[0].topics]);
    assert.equal(BigInt(trace.output), BigInt(logs[0].topics[1]), "the id");
    const found = JSON.parse(await cast("rpc", "almanac_getSchedule", BigInt(trace.output).toString()));
    assert.equal(found.target, created.toLowerCase());
    await send(cron, "cancel(uint256)", BigInt(trace.output).toString());
});
await check("call --trace", async () => {
    assert.match(await cast("call", "--trace", created, "value()(uint256)"), /Gas used: \d+/);
});
await check("find-block", async () => {
    const time = await cast("block", "1", "--field", "timestamp");
    const found = await cast("find-block", time);
    assert.equal(await cast("block", found, "--field", "timestamp"), time);
});

await onlyAlmanac("block has its time in milliseconds", async () => {
    const { timestamp, timestampMs } = JSON.parse(await cast("block", "latest", "--json"));
    assert.equal(BigInt(timestampMs) / 1000n, BigInt(timestamp));
});

await onlyAlmanac("parameters are read by anyone and set by the owner", async () => {
    const floor = await cast("format-bytes32-string", "base_fee_floor_wei");
    const get = async () => plain(await cast("call", parameters, "get(bytes32)(uint256)", floor));
    assert.equal(await get(), "100000000");
    assert.equal(await cast("call", parameters, "owner()(address)"), alice.address);
    assert.equal((await send(parameters, "set(bytes32,uint256)", floor, "200000000")).status, "0x1");
    assert.equal(await get(), "200000000");
    await refused(
        /execution reverted/,
        "call",
        "--from",
        bob.address,
        parameters,
        "set(bytes32,uint256)",
        floor,
        "5",
    );
});
await check("a custom error reaches the client with its data", async () => {
    await refused(
        /execution reverted.*data: "0x[0-9a-f]{136}"/s,
        "call",
        created,
        "increase(uint256)",
        "1000",
    );
});
await onlyAlmanac("errors of every door are in words", async () => {
    const door = (last) => `0x${last.padStart(40, "0")}`;
    const key = `(1,2,0x${"5".padStart(64, "0")})`;
    for (const [words, ...call] of [
        [/UnknownJob: there is no job 0-0-5 \(5\)/, cron, "cancel(uint256)", "5"],
        [/UnknownKey: there is no scheduled transaction 0x0+5/, door("a101"), "cancel((uint64,uint64,bytes32))", key],
        [/UnknownCallback: there is no callback 0-0-5 \(5\)/, door("a102"), "cancel(uint64)", "5"],
        [/KeyRefused: not a key, from byte 0 on: unknown tag/, door("a104"), "createAccount(bytes,bytes32)", "0x04", `0x${"0".repeat(64)}`],
        [/UnknownMethod: the door of account keys \(contracts\/IAccounts.sol\)/, door("a104"), "nope()"],
        [/UnknownMethod: the door of scheduled transactions \(contracts/, door("a101"), "nope()"],
    ]) {
        await refused(words, "call", ...call);
    }
});
await check("a stale nonce is refused", async () => {
    await refused(
        /nonce too low/,
        "send",
        "--private-key",
        alice.key,
        "--nonce",
        "0",
        "--value",
        "1",
        bob.address,
    );
});
await check("too little money is refused", async () => {
    await refused(
        /[Ii]nsufficient funds/,
        "send",
        "--private-key",
        alice.key,
        "--value",
        "20000ether",
        bob.address,
    );
});
await check("an unknown method is refused", async () => {
    await refused(/-32601/, "rpc", "eth_noSuchMethod");
});

finish();
