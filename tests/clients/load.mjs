// Many at once: large batches, and subscriptions while hundreds of transactions arrive. Nothing lost, order kept.

import assert from "node:assert/strict";
import WebSocket from "ws";
import { encodeDeployData, encodeFunctionData, keccak256, parseGwei } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { accounts, artifact, check, finish, post, rpc, until, wsUrl } from "./check.mjs";

const senders = accounts.map(({ key }) => privateKeyToAccount(key));
const counterFile = artifact("Counter");
const BATCH = 100;
const EACH = 100;
const CONNECTIONS = 8;

async function signed(sender, nonce, fields) {
    return sender.signTransaction({
        type: "eip1559",
        chainId: 31337,
        nonce,
        gas: 200_000n,
        maxFeePerGas: parseGwei("100"),
        maxPriorityFeePerGas: parseGwei("1"),
        ...fields,
    });
}
const receiptOf = (hash) => until(`receipt of ${hash}`, () => rpc("eth_getTransactionReceipt", hash));

/** A socket with its notifications by subscription, in order of arrival. */
async function open() {
    const socket = new WebSocket(wsUrl);
    const answers = new Map();
    const heard = new Map();
    let next = 1;
    socket.on("message", (text) => {
        const message = JSON.parse(text);
        if (message.method === "eth_subscription") {
            const { subscription, result } = message.params;
            if (!heard.has(subscription)) heard.set(subscription, []);
            heard.get(subscription).push(result);
        } else answers.get(message.id)(message);
    });
    await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject));
    const request = (method, ...params) =>
        new Promise((resolve, reject) => {
            const id = next++;
            answers.set(id, ({ result, error }) =>
                error ? reject(new Error(`${method}: ${error.message}`)) : resolve(result),
            );
            socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
        });
    return { socket, request, heard: (id) => heard.get(id) ?? [] };
}

let counter;
await check("a batch of 100 reads is answered in full", async () => {
    const requests = Array.from({ length: BATCH }, (_, id) => ({
        jsonrpc: "2.0",
        id,
        method: "eth_getBalance",
        params: [senders[id % senders.length].address, "latest"],
    }));
    const answers = await post(requests);
    assert.deepEqual(
        answers.map(({ id }) => id).sort((a, b) => a - b),
        requests.map(({ id }) => id),
    );
    assert.ok(answers.every(({ result }) => BigInt(result) === 10_000n * 10n ** 18n));
});
await check("a batch mixes answers, errors and notifications", async () => {
    const answers = await post([
        { jsonrpc: "2.0", id: "a", method: "eth_chainId", params: [] },
        { jsonrpc: "2.0", id: "b", method: "eth_noSuchMethod", params: [] },
        { jsonrpc: "2.0", id: "c", method: "eth_getBalance", params: ["not an address", "latest"] },
    ]);
    const byId = Object.fromEntries(answers.map((answer) => [answer.id, answer]));
    assert.equal(byId.a.result, "0x7a69");
    assert.equal(byId.b.error.code, -32601);
    assert.equal(byId.c.error.code, -32602);
});
await check("a batch of 100 transactions is included in order", async () => {
    const deploy = await signed(senders[0], 0, {
        gas: 2_000_000n,
        data: encodeDeployData({ ...counterFile, args: [10n ** 9n] }),
    });
    counter = (await receiptOf(await rpc("eth_sendRawTransaction", deploy))).contractAddress;
    const raws = await Promise.all(
        Array.from({ length: BATCH }, (_, n) =>
            signed(senders[0], 1 + n, { to: senders[1].address, value: 1n, gas: 21_000n }),
        ),
    );
    const answers = await post(
        raws.map((raw, id) => ({ jsonrpc: "2.0", id, method: "eth_sendRawTransaction", params: [raw] })),
    );
    assert.deepEqual(answers.map(({ result }) => result).sort(), raws.map((raw) => keccak256(raw)).sort());
    const receipts = await Promise.all(raws.map((raw) => receiptOf(keccak256(raw))));
    const places = receipts.map((r) => [Number(r.blockNumber), Number(r.transactionIndex)]);
    assert.deepEqual(
        places,
        [...places].sort(([a, b], [c, d]) => a - c || b - d),
    );
    assert.equal(await rpc("eth_getTransactionCount", senders[0].address, "latest"), "0x65");
});
await check("500 transactions of one sender that arrive in reverse order are all included", async () => {
    const count = 500;
    const sender = senders[4];
    const raws = await Promise.all(
        Array.from({ length: count }, (_, n) =>
            signed(sender, n, { to: senders[1].address, value: 1n, gas: 21_000n }),
        ),
    );
    for (let end = count; end > 0; end -= BATCH) {
        const batch = raws.slice(end - BATCH, end).reverse();
        const answers = await post(
            batch.map((raw, id) => ({ jsonrpc: "2.0", id, method: "eth_sendRawTransaction", params: [raw] })),
        );
        assert.deepEqual(
            answers.filter(({ error }) => error),
            [],
        );
    }
    await until(
        "the last of them",
        async () => Number(await rpc("eth_getTransactionCount", sender.address, "latest")) === count,
    );
});
await check("newHeads, logs and newPendingTransactions lose nothing under load", async () => {
    const { socket, request, heard } = await open();
    const heads = await request("eth_subscribe", "newHeads");
    const logs = await request("eth_subscribe", "logs", { address: counter });
    const pending = await request("eth_subscribe", "newPendingTransactions");
    for (const id of [heads, logs, pending]) assert.match(id, /^0x[0-9a-f]+$/, "an id is a quantity in hex");
    const begin = Number(await rpc("eth_blockNumber"));

    const data = encodeFunctionData({ abi: counterFile.abi, functionName: "increase", args: [1n] });
    const first = await Promise.all(
        senders.map(async ({ address }) => Number(await rpc("eth_getTransactionCount", address, "latest"))),
    );
    const raws = [];
    for (let n = 0; n < EACH; n++) {
        for (const [i, sender] of senders.entries())
            raws.push(await signed(sender, first[i] + n, { to: counter, data }));
    }
    const hashes = raws.map((raw) => keccak256(raw));
    let at = 0;
    await Promise.all(
        Array.from({ length: CONNECTIONS }, async () => {
            while (at < raws.length) {
                const mine = at++;
                assert.equal(await rpc("eth_sendRawTransaction", raws[mine]), hashes[mine]);
            }
        }),
    );
    await until(
        "every transaction is included",
        async () => {
            const counts = await Promise.all(
                senders.map(({ address }) => rpc("eth_getTransactionCount", address, "latest")),
            );
            return counts.every((count, i) => Number(count) === first[i] + EACH);
        },
        25_000,
    );
    const tip = Number(await rpc("eth_blockNumber"));
    await until(
        "the last notification",
        () => heard(logs).length >= raws.length && Number(heard(heads).at(-1)?.number) >= tip,
    );

    const seen = heard(heads).filter((head) => Number(head.number) <= tip);
    assert.deepEqual(
        seen.map((head) => Number(head.number)),
        Array.from({ length: tip - begin }, (_, i) => begin + 1 + i),
    );
    for (let i = 1; i < seen.length; i++) assert.equal(seen[i].parentHash, seen[i - 1].hash);
    for (const head of [seen[0], seen.at(-1)])
        assert.equal((await rpc("eth_getBlockByNumber", head.number, false)).hash, head.hash);

    const stored = await rpc("eth_getLogs", {
        address: counter,
        fromBlock: `0x${(begin + 1).toString(16)}`,
        toBlock: "latest",
    });
    assert.equal(stored.length, raws.length);
    const place = (log) => `${Number(log.blockNumber)}/${Number(log.logIndex)}/${log.transactionHash}`;
    assert.deepEqual(heard(logs).map(place), stored.map(place));
    // Each log carries the counter's value: 1, 2, 3, … in chain order.
    assert.deepEqual(
        heard(logs).map((log) => BigInt(log.data)),
        raws.map((_, i) => BigInt(i + 1)),
    );

    assert.deepEqual([...heard(pending)].sort(), [...hashes].sort());
    assert.equal(await request("eth_unsubscribe", heads), true);
    assert.equal(await request("eth_unsubscribe", heads), false);
    socket.terminate();
});
await check("batches work over the WebSocket", async () => {
    const socket = new WebSocket(wsUrl);
    await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject));
    const answer = new Promise((resolve) => socket.once("message", (text) => resolve(JSON.parse(text))));
    socket.send(
        JSON.stringify(
            Array.from({ length: BATCH }, (_, id) => ({
                jsonrpc: "2.0",
                id,
                method: "eth_chainId",
                params: [],
            })),
        ),
    );
    const answers = await answer;
    assert.equal(answers.length, BATCH);
    assert.ok(answers.every(({ result }) => result === "0x7a69"));
    socket.terminate();
});

finish();
