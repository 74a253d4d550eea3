// Makes pictures of every page, for people to look at: `make screenshots`.
import fs from "node:fs";
import path from "node:path";
import { openPage, root, startBrowser, startNode } from "./harness.mjs";
import { approve, book, callOf, deploy, job, subscribe, heldByTwoOfThree, signBy, waitForAll } from "./chain.mjs";

const folder = path.join(root, "target/screenshots");
fs.rmSync(folder, { recursive: true, force: true });
fs.mkdirSync(folder, { recursive: true });

const node = await startNode(0);
const { browser, stop } = await startBrowser();
try {
    await picture("empty", "#/", "desktop", "light");
    const ids = await fill(node);
    const pages = {
        agenda: "#/",
        "agenda-day": "#/?span=day",
        schedules: "#/schedules",
        schedule: `#/schedule/${ids.series}`,
        ended: `#/schedule/${ids.cancelled}`,
        callback: `#/schedule/${ids.callback}`,
        create: `#/create?target=${ids.counter}`,
        "create-callback": "#/create?kind=callback",
        "create-market": "#/create?kind=market",
        docs: "#/docs/doors",
        signatures: "#/signatures",
        signed: `#/schedule/${ids.signed}`,
        subscriptions: `#/subscriptions?account=${ids.customer}`,
        merchant: `#/subscriptions?side=merchant&account=${ids.merchant}`,
        blocks: "#/blocks",
        block: `#/block/${ids.block}`,
        transaction: `#/tx/${ids.run}`,
        account: `#/account/${node.accounts[0]}`,
        network: "#/network",
        parameters: "#/parameters",
        nothing: "#/search/nonsense",
    };
    const only = process.argv.slice(2);
    for (const [name, hash] of Object.entries(pages)) {
        if (only.length && !only.includes(name)) continue;
        await picture(name, hash, "desktop", "light");
        await picture(name, hash, "phone", "light");
        if (["agenda", "schedule", "create", "network"].includes(name)) await picture(name, hash, "desktop", "dark");
        if (name === "agenda") await picture(name, hash, "phone", "dark");
    }
} finally {
    await stop();
    await node.stop();
}
console.log(`screenshots: ${fs.readdirSync(folder).length} pictures in ${path.relative(root, folder)}`);

async function picture(name, hash, size, theme) {
    const { page, troubles } = await openPage(browser, `${node.url}/${hash}`, size, theme);
    await page.waitForSelector("h1");
    await page.waitForTimeout(1_500);
    await page.screenshot({ path: path.join(folder, `${name}-${size}-${theme}.png`), fullPage: true });
    for (const trouble of troubles) console.error(`${name}: ${trouble}`);
    await page.close();
}

/// A chain with something of everything.
async function fill(node) {
    const counter = await deploy(node, "Counter", [{ type: "uint256" }], [1_000n]);
    const increase = callOf("increase(uint256)", ["uint256"], [1n]);
    const refuse = callOf("refuse(string)", ["string"], ["the pool is empty"]);
    await job(node, { target: counter, data: increase, wait: 7, every: 300, runs: 40, escrow: 0.05 });
    await job(node, { owner: 3, target: counter, data: refuse, wait: 30, every: 600, runs: 12 });
    await job(node, { owner: 4, target: counter, data: increase, wait: 40 });
    await node.call("almanac_increaseTime", 1_300);
    for (let nth = 0; nth < 24; nth += 1) {
        await job(node, { owner: nth % 5, target: counter, data: increase, wait: 60 + nth * nth * 9, every: [0, 3_600, 86_400][nth % 3], runs: nth % 3 ? 10 : 1 });
    }
    for (let nth = 0; nth < 9; nth += 1) await book(node, { owner: nth % 4, wait: 45 + nth * 130, priority: nth % 3, effort: 100 + nth * 150 });
    const { customer, merchant, token, contract } = await subscribe(node, { interval: 300, charges: 12, allowance: 45 });
    await node.call("almanac_increaseTime", 1_000);
    await approve(node, token, contract, 15);
    const cancelled = await job(node, { target: counter, data: increase, wait: 500, every: 60, runs: 5 });
    const cancelledId = cancelled.logs[0].topics[1];
    await node.send({ from: node.accounts[0], to: cancelled.to, data: `0x40e58ee5${cancelledId.slice(2)}` });
    const treasury = await heldByTwoOfThree(node, node.accounts.slice(1, 4));
    const signed = await waitForAll(node, [node.accounts[0], treasury], node.accounts[5]);
    await signBy(node, node.accounts[2], signed);
    await waitForAll(node, node.accounts.slice(1, 4), node.accounts[5]);
    await waitForAll(node, [node.accounts[0]], node.accounts[6]);
    const { schedules } = await node.call("almanac_listSchedules", { owner: node.accounts[0], limit: 100 });
    const series = schedules.find(({ terms }) => terms?.intervalMs === "0x493e0");
    const callback = schedules.find(({ terms, status }) => terms?.door === "callback" && status === "pending") ?? schedules.find(({ terms }) => terms?.door === "callback");
    const { runs } = await node.call("almanac_getRuns", series.id, { order: "newest", limit: 1 });
    return { counter, signed, customer, merchant, series: series.id, callback: callback.id, cancelled: BigInt(cancelledId).toString(), run: runs[0].receipt.transactionHash, block: Number(runs[0].receipt.blockNumber) };
}
