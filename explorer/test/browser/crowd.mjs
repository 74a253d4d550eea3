// The pages of a chain with a crowd of pending schedules against those of an empty one, in turns: when something shows,
// when the page has its answers, and how many bytes each answer has. `make explorer-crowd`.
//
//   node crowd.mjs [schedules, 1000000]
import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { encodeCall } from "../../src/lib/abi.js";
import { callOf, CRON, deploy, now, read } from "./chain.mjs";
import { SIZES, startBrowser, startNode } from "./harness.mjs";

const WANTED = Number(process.argv[2] ?? 1_000_000);
const ROUNDS = 9;
const PAINT_RATIO_MAX = 1.5;
const ANSWER_BYTES_MAX = 1_000_000;
const MARKET = "0x000000000000000000000000000000000000a101";
const DAY_S = 86_400;

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "almanac-crowd-"));
const empty = await startNode(0);
const crowded = await startNode(0, ["--datadir", path.join(folder, "chain")]);
const { browser, stop } = await startBrowser();
try {
    const crowd = await fill(crowded);
    const pages = {
        agenda: "#/",
        "agenda, a day": "#/?span=day",
        "agenda, a month": "#/?span=month",
        "agenda of an account": `#/?account=${crowd}`,
        schedules: "#/schedules",
        "schedules of an account": `#/schedules?owner=${crowd}`,
        account: `#/account/${crowd}`,
        blocks: "#/blocks",
        network: "#/network",
    };
    const rows = [];
    for (const [name, hash] of Object.entries(pages)) rows.push(await compare(name, hash));
    show(rows);
    for (const { name, paint, bytes } of rows) {
        assert.ok(paint.ratio <= PAINT_RATIO_MAX, `${name}: first paint is ${paint.ratio.toFixed(2)} × that of an empty chain`);
        assert.ok(bytes <= ANSWER_BYTES_MAX, `${name}: an answer of ${bytes} bytes`);
    }
} finally {
    await stop();
    await Promise.all([empty.stop(), crowded.stop()]);
    fs.rmSync(folder, { recursive: true, force: true });
}

/// Two jobs of three are cron jobs over a month, the others bids over a day. Returns who owns them.
async function fill(node) {
    const crowd = await deploy(node, "Crowd");
    const start = (await now(node)) + 3_600;
    const cron = encodeCall(read("ICronRegistry").scheduleCalldata, [crowd, "0x00000000", 0n, 0n, 1n, 50_000n]);
    const bid = encodeCall(read("IScheduledTransactions").insert, [
        [crowd, 0n, 50_000n, 2_000_000_000n, true, crowd, 0n, "0x", 0n],
    ]);
    const kinds = [
        { door: CRON, data: cron, offset: 4 + 2 * 32, unit: 1, each: 10n ** 15n, many: 2, spread: 30 * DAY_S },
        { door: MARKET, data: bid, offset: 4 + 2 * 32, unit: 1_000, each: 50_000n * 2_000_000_000n, many: 1, spread: DAY_S },
    ];
    const [begun, batch] = [Date.now(), 50];
    let made = 0;
    while (made < WANTED) {
        for (const { door, data, offset, unit, each, many, spread } of kinds) {
            for (let n = 0; n < many && made < WANTED; n += 1) {
                const first = (start + Math.floor((spread * made) / WANTED)) * unit;
                const step = Math.max(1, Math.floor((spread * unit) / WANTED));
                await repeat(node, crowd, { door, data, offset, first, step, count: batch, each });
                made += batch;
            }
        }
        if (made % 30_000 < batch * 3) {
            const seconds = Math.round((Date.now() - begun) / 1_000);
            console.error(`crowd: ${made.toLocaleString("en")} of ${WANTED.toLocaleString("en")} schedules after ${seconds} s`);
        }
    }
    return crowd;
}

function repeat(node, crowd, { door, data, offset, first, step, count, each }) {
    const types = ["address", "bytes", "uint256", "uint256", "uint256", "uint256"];
    const words = [offset, first, step, count].map(BigInt);
    const call = callOf("repeat(address,bytes,uint256,uint256,uint256,uint256)", types, [door, data, ...words]);
    const value = `0x${(each * BigInt(count)).toString(16)}`;
    return node.send({ from: node.accounts[0], to: crowd, data: call, value, gas: "0xf42400" });
}

/// Opens a page of both chains in turns. A first round, which nobody counts, fills caches.
async function compare(name, hash) {
    const times = { empty: [], crowded: [] };
    let bytes = 0;
    for (let round = 0; round <= ROUNDS; round += 1) {
        for (const [kind, node] of Object.entries({ empty, crowded })) {
            const one = await visit(node, hash);
            if (round > 0) times[kind].push(one);
            if (kind === "crowded") bytes = Math.max(bytes, one.bytes);
        }
    }
    const figure = (part) => {
        const [alone, among] = [times.empty, times.crowded].map((list) => median(list.map((one) => one[part])));
        return { alone, among, ratio: among / alone };
    };
    return { name, paint: figure("paint"), settled: figure("settled"), bytes };
}

/// When a page first shows something, when nothing is being asked for any more, and the largest answer.
async function visit(node, hash) {
    const page = await browser.newPage();
    await page.setViewportSize(SIZES.desktop);
    page.setDefaultTimeout(60_000);
    let bytes = 0;
    const [bodies, troubles] = [[], []];
    page.on("pageerror", (error) => troubles.push(`threw ${error.stack ?? error}`));
    page.on("response", (response) => bodies.push(response.body().then((body) => (bytes = Math.max(bytes, body.length)), () => {})));
    await page.goto(`${node.url}/${hash}`);
    await page.waitForSelector("h1");
    await page.waitForFunction(() => !document.body.innerText.includes("Asking the node"));
    const [paint, settled] = await page.evaluate(() => [
        performance.getEntriesByName("first-contentful-paint")[0].startTime,
        performance.now(),
    ]);
    await Promise.all(bodies);
    assert.deepEqual(troubles, [], hash);
    await page.close();
    return { paint, settled, bytes };
}

function median(list) {
    return list.toSorted((a, b) => a - b)[Math.floor(list.length / 2)];
}

function show(rows) {
    console.log(`${WANTED.toLocaleString("en")} pending against none, medians of ${ROUNDS}, in ms`);
    console.log("page                       first paint     ratio   answered        ratio   largest answer");
    for (const { name, paint, settled, bytes } of rows) {
        const cell = ({ alone, among, ratio }) => `${alone.toFixed(0).padStart(5)} ${among.toFixed(0).padStart(5)}   ${ratio.toFixed(2).padStart(5)}`;
        console.log(`${name.padEnd(26)} ${cell(paint)}   ${cell(settled)}   ${(bytes / 1e3).toFixed(0).padStart(6)} KB`);
    }
}
