// The almanac_ methods with viem: a job is made through the registry, time passes, and the node tells what became of it.

import assert from "node:assert/strict";
import { parseAbi, parseEther, parseEventLogs } from "viem";
import WebSocket from "ws";
import { alice, bob, counterData, deployCounter, included, reader, wallet } from "./accounts-viem.mjs";
import { finish, isAlmanac, onlyAlmanac, passUntil, rpcError, until, url, wait, wsUrl } from "./check.mjs";

const CRON = "0x0000000000000000000000000000000000000006";
const abi = parseAbi([
    "event JobScheduled(uint256 indexed id, address indexed owner, address indexed target, uint256 nextRunAt)",
    "function scheduleCalldata(address target, bytes data, uint256 nextRunAt, uint256 intervalSec, uint256 maxRuns, uint256 gasLimit) payable returns (uint256)",
    "function cancel(uint256 id) returns (bool)",
]);
const registry = { address: CRON, abi };
const ask = (method, ...params) => reader.request({ method, params });

let counter;
if (isAlmanac) counter = await deployCounter(6n);

/** Schedules the counter to grow by five, and gives the job's id and when it is due first, in seconds. */
async function schedule(intervalSec, maxRuns, wait = 100) {
    const { timestamp } = await reader.getBlock();
    const due = timestamp + BigInt(wait);
    const value = parseEther("0.01");
    const args = [counter.address, counterData("increase", 5n), due, intervalSec, maxRuns, 100_000n];
    const hash = await wallet.writeContract({ ...registry, functionName: "scheduleCalldata", args, value });
    const { logs } = await included(hash);
    const [{ args: said }] = parseEventLogs({ abi, logs });
    return { id: said.id, due, hash };
}

/** Listens to a subscription; gives what it said so far, and a way to end it. */
async function listen(...params) {
    const socket = new WebSocket(wsUrl);
    const heard = [];
    await new Promise((resolve, reject) => {
        socket.on("error", reject);
        socket.on("open", () =>
            socket.send(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "almanac_subscribe", params })),
        );
        socket.on("message", (data) => {
            const message = JSON.parse(data);
            if (message.method === "almanac_subscription") heard.push(message.params.result);
            else if (message.error) reject(new Error(message.error.message));
            else resolve();
        });
    });
    return { heard, close: () => socket.close() };
}

await onlyAlmanac("a job is foreseen, runs, and is remembered", async () => {
    const events = await listen("schedules", { owner: alice.address });
    const runs = await listen("runs", { target: counter.address });
    const { id, due, hash } = await schedule(BigInt(wait.interval), 3n, wait.first);
    const shown = await ask("almanac_getSchedule", `0x${id.toString(16)}`);
    assert.equal(BigInt(shown.idNumber), id);
    assert.deepEqual([shown.status, shown.owner, shown.target], ["pending", alice.address.toLowerCase(), counter.address]);
    assert.equal(shown.created.transactionHash, hash);
    assert.equal(BigInt(shown.nextRun.ms), due * 1000n);
    assert.equal(shown.nextRun.iso, new Date(Number(due) * 1000).toISOString());

    // The counter stops at six, so the second run fails: the preview knows, and changes nothing.
    const preview = await ask("almanac_preview", shown.id, 3);
    assert.deepEqual(preview.runs.map(({ success }) => success), [true, false, false]);
    assert.equal(preview.end.reason, "max runs reached");
    assert.equal(await counter.read("value"), 0n);
    const runway = await ask("almanac_runway", shown.id);
    assert.deepEqual([runway.runs, runway.limitedBy], ["0x3", "runs"]);
    const agenda = await ask("almanac_agenda", { limit: 1 });
    assert.equal(agenda.entries[0].id, shown.id);
    const capacity = await ask("almanac_capacity", { from: Number(due) * 1000 });
    const cron = capacity.lanes.find(({ lane }) => lane === "cron");
    const [{ runs: booked, gas }] = cron.seconds;
    assert.deepEqual([booked, gas], ["0x1", "0x186a0"]);

    await passUntil(Number(due) + 2 * wait.interval);
    const page = await ask("almanac_getRuns", shown.id);
    assert.deepEqual(page.runs.map(({ success }) => success), preview.runs.map(({ success }) => success));
    assert.deepEqual(page.runs.map(({ receipt }) => receipt.gasUsed), preview.runs.map(({ gasUsed }) => gasUsed));
    for (const { run, receipt } of page.runs) {
        const { from, to } = await reader.getTransaction({ hash: receipt.transactionHash });
        assert.deepEqual([from, to], [CRON, counter.address]);
        assert.deepEqual(receipt.scheduleRef, { id: shown.id, idNumber: shown.idNumber, run });
    }
    const ended = await ask("almanac_getSchedule", shown.id);
    assert.deepEqual([ended.status, ended.end.reason, ended.runs, ended.runsFailed], ["exhausted", "max runs reached", "0x3", "0x2"]);
    await until("three runs are heard", () => runs.heard.length === 3);
    assert.deepEqual(runs.heard.map(({ run, success }) => [run, success]), [["0x0", true], ["0x1", false], ["0x2", false]]);
    await until("birth and end are heard", () => events.heard.length === 2);
    assert.deepEqual(events.heard.map(({ event, id }) => [event, id]), [["created", shown.id], ["exhausted", shown.id]]);
    runs.close();
    events.close();
});
await onlyAlmanac("lists by owner and status, page by page", async () => {
    const ids = [];
    for (let n = 0; n < 3; n++) ids.push((await schedule(0n, 0n)).id);
    await included(await wallet.writeContract({ ...registry, functionName: "cancel", args: [ids[1]] }));
    const numbers = ({ schedules }) => schedules.map(({ idNumber }) => BigInt(idNumber));
    const waiting = { owner: alice.address, status: "pending" };
    const first = await ask("almanac_listSchedules", { ...waiting, limit: 1 });
    assert.deepEqual(numbers(first), [ids[0]]);
    const rest = await ask("almanac_listSchedules", { ...waiting, cursor: first.cursor });
    assert.deepEqual([numbers(rest), rest.cursor], [[ids[2]], null]);
    assert.deepEqual(numbers(await ask("almanac_listSchedules", { status: "cancelled" })), [ids[1]]);
    assert.deepEqual(numbers(await ask("almanac_listSchedules", { owner: bob.address })), []);
});
await onlyAlmanac("mistakes are named", async () => {
    assert.equal(await ask("almanac_getSchedule", "1-2-3"), null);
    const { code, message } = await rpcError("almanac_preview", "1-2-3");
    assert.deepEqual([code, message], [-32000, "schedule not found: there never was a schedule 1-2-3"]);
    assert.match((await rpcError("almanac_listSchedules", { who: 1 })).message, /unknown field `who`, expected/);
    await assert.rejects(listen("everything"), /there are schedules and runs/);
});
await onlyAlmanac("every metric says what it means", async () => {
    const lines = (await (await fetch(`${url}/metrics`)).text()).split("\n");
    const named = (kind) => lines.filter((line) => line.startsWith(`# ${kind} `)).map((line) => line.split(" ")[2]);
    assert.ok(named("TYPE").length > 10);
    assert.deepEqual(named("TYPE").filter((name) => !named("HELP").includes(name)), []);
});
finish();
