// viem hears of things: logs, filters, and watching over HTTP (which polls filters) and WebSocket (which subscribes).

import assert from "node:assert/strict";
import { createPublicClient, createWalletClient, http, webSocket } from "viem";
import { bob, common, counterFile, deployCounter, included, reader } from "./accounts-viem.mjs";
import { check, finish, isNetwork, until, url, wsUrl } from "./check.mjs";

const { abi } = counterFile;
const socket = createPublicClient({ ...common, transport: webSocket(wsUrl, { reconnect: false }) });
const { address, write } = await deployCounter(1000n);

await write("increase", [5n]);
await write("increase", [2n]);
const asBob = createWalletClient({ ...common, account: bob, transport: http(url) });
await included(await asBob.writeContract({ address, abi, functionName: "increase", args: [1n] }));

await check("getLogs by event, argument and range", async () => {
    const filter = { address, abi, eventName: "Increased", fromBlock: 0n };
    const all = await reader.getContractEvents(filter);
    assert.deepEqual(
        all.map((log) => log.args.step),
        [5n, 2n, 1n],
    );
    const bobs = await reader.getContractEvents({ ...filter, args: { by: bob.address } });
    assert.equal(bobs.length, 1);
    const either = await reader.getContractEvents({ ...filter, args: { step: [5n, 2n] } });
    assert.equal(either.length, 2);
    assert.deepEqual(await reader.getContractEvents({ ...filter, toBlock: 1n }), []);
});
await check("filters of events, blocks, pending transactions, uninstall", async () => {
    const events = await reader.createContractEventFilter({ address, abi, eventName: "Increased" });
    const blocks = await reader.createBlockFilter();
    const pending = await reader.createPendingTransactionFilter();
    const receipt = await write("increase", [9n]);
    const changes = await reader.getFilterChanges({ filter: events });
    assert.deepEqual(
        changes.map((log) => log.args.step),
        [9n],
    );
    assert.deepEqual(await reader.getFilterChanges({ filter: events }), []);
    // Without a range it is about the last block, and a network has made others meanwhile.
    if (!isNetwork) assert.equal((await reader.getFilterLogs({ filter: events })).length, 1);
    const hashes = await reader.getFilterChanges({ filter: blocks });
    assert.deepEqual(
        hashes.filter((hash) => !isNetwork || hash === receipt.blockHash),
        [receipt.blockHash],
    );
    assert.deepEqual(await reader.getFilterChanges({ filter: pending }), [receipt.transactionHash]);
    assert.equal(await reader.uninstallFilter({ filter: events }), true);
    assert.equal(await reader.uninstallFilter({ filter: events }), false);
});

/** Watches with both clients, lets something happen, and gives what each heard. */
async function watch(start, happen, count) {
    const heard = { http: [], ws: [] };
    const errors = [];
    const stops = [
        start(
            reader,
            (items) => heard.http.push(...items),
            (e) => errors.push(e),
        ),
        start(
            socket,
            (items) => heard.ws.push(...items),
            (e) => errors.push(e),
        ),
    ];
    // A filter is in place once the node has answered; there is nothing to wait for but time.
    await new Promise((resolve) => setTimeout(resolve, 300));
    await happen();
    try {
        await until(
            `${count} messages on each`,
            () => heard.http.length >= count && heard.ws.length >= count,
            5_000,
        );
    } catch (error) {
        throw new Error(
            `${error.message}: HTTP ${heard.http.length}, WebSocket ${heard.ws.length}; ${errors.join(", ")}`,
        );
    } finally {
        stops.forEach((stop) => stop());
    }
    assert.deepEqual(errors, []);
    return heard;
}
await check("watchContractEvent over HTTP and WebSocket", async () => {
    const heard = await watch(
        (client, onLogs, onError) =>
            client.watchContractEvent({ address, abi, eventName: "Increased", onLogs, onError }),
        async () => {
            await write("increase", [11n]);
            await write("increase", [12n]);
        },
        2,
    );
    for (const logs of Object.values(heard))
        assert.deepEqual(
            logs.map((log) => log.args.step),
            [11n, 12n],
        );
});
await check("watchBlockNumber over HTTP and WebSocket", async () => {
    const begin = await reader.getBlockNumber();
    const heard = await watch(
        (client, take, onError) =>
            client.watchBlockNumber({
                onBlockNumber: (n) => n > begin && take([n]),
                onError,
                poll: client === reader,
            }),
        async () => {
            await write("note", ["a"]);
            await new Promise((resolve) => setTimeout(resolve, 60));
            await write("note", ["b"]);
        },
        2,
    );
    for (const numbers of Object.values(heard)) {
        // A network makes blocks all the time, and whoever polls may miss one.
        if (isNetwork) assert.ok(numbers.every((n, i) => i === 0 || n > numbers[i - 1]), `${numbers}`);
        else assert.deepEqual(numbers, [begin + 1n, begin + 2n]);
    }
});
await check("watchPendingTransactions", async () => {
    let receipt;
    const heard = await watch(
        (client, onTransactions, onError) => client.watchPendingTransactions({ onTransactions, onError }),
        async () => (receipt = await write("note", ["c"])),
        1,
    );
    assert.deepEqual(heard, { http: [receipt.transactionHash], ws: [receipt.transactionHash] });
});
await check("calls over the WebSocket", async () => {
    assert.equal(await socket.getChainId(), 31337);
    assert.equal(await socket.readContract({ address, abi, functionName: "limit" }), 1000n);
    await assert.rejects(
        socket.readContract({ address, abi, functionName: "increase", args: [5000n] }),
        /AboveLimit/,
    );
});

finish();
