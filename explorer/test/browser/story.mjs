// The whole story in a real browser: make a schedule, see it on the agenda, move time, see the run and its cost, cancel
// another and see the refund; subscribe, charge, fail, resume; lose the node and get it back. On a desktop and a phone,
// in light and dark, and axe finds nothing serious on any page. An argument runs only the steps whose names contain it.
import assert from "node:assert/strict";
import { execFileSync, execSync } from "node:child_process";
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { accessibilityProblems } from "./axe.mjs";
import { approve, book, callOf, deploy, heldByTwoOfThree, job, signBy, subscribe, waitForAll } from "./chain.mjs";
import { openPage, root, startBrowser, startNode, startValidator } from "./harness.mjs";

const begun = Date.now();
const { browser, stop } = await startBrowser();
let node = await startNode();
try {
    await step("create, run, cancel on a desktop", () => story("desktop", "light"));
    await step("create, run, cancel on a phone in the dark", () => story("phone", "dark"));
    await step("what is signed is what is shown", shownIsSigned);
    await step("a transaction that bids, runs and is taken back", market);
    await step("three people sign, the last one pays", signatures);
    await step("subscribe, charge, fail, resume, stop", subscriptions);
    await step("text from the chain is only shown", hostile);
    await step("a chain that goes back", goesBack);
    await step("every page, by axe", everyPage);
    await step("a wallet of the browser signs", browserWallet);
    await step("the page of a validator", validator);
    await step("the code that the form shows works", snippets);
    await step("the documentation of this node", documentation);
    await step("keyboard", keyboard);
    await step("offline and back", offline);
} finally {
    await stop();
    await node.stop();
}
console.log(`explorer story: passed in ${Math.round((Date.now() - begun) / 1_000)} s`);

async function step(name, test) {
    if (!name.includes(process.argv[2] ?? "")) return;
    const at = Date.now();
    await test();
    console.log(`ok  ${name}: ${((Date.now() - at) / 1_000).toFixed(1)} s`);
}

async function open(hash, size = "desktop", theme = "light") {
    return openPage(browser, `${node.url}/${hash}`, size, theme);
}

function none(list, where) {
    assert.deepEqual(list, [], where);
}

/// Fills the form for a cron job and sends it. Ends on the page of the new schedule.
async function create(page, { target, wait }) {
    await page.goto(`${node.url}/#/create`);
    await page.fill('input[name="target"]', target);
    await page.fill('input[name="signature"]', "increase(uint256)");
    await page.fill('input[name="args"]', "1");
    await page.fill('input[name="wait"]', String(wait));
    const before = page.getByRole("region", { name: "What it would do" });
    await before.getByText("will succeed").first().waitFor();
    assert.equal(await before.locator("ol > li").count(), 3, "three run times are shown before signing");
    await before.getByText("go into escrow").waitFor();
    const code = page.getByRole("region", { name: "The same in code" });
    assert.match(await code.locator("pre").innerText(), /cast send .*scheduleCalldata/s);
    await code.getByRole("button", { name: "viem" }).click();
    assert.match(await code.locator("pre").innerText(), /writeContract/);
    await page.getByRole("button", { name: "Schedule it" }).click();
    await page.waitForURL(/#\/schedule\//);
    return decodeURIComponent(new URL(page.url()).hash.split("/")[2]);
}

async function story(size, theme) {
    const counter = await deploy(node, "Counter", [{ type: "uint256" }], [1_000n]);
    const { page, troubles } = await open("#/", size, theme);
    if (size === "desktop") {
        await page.getByText("The calendar is empty").waitFor();
        none(await accessibilityProblems(page), "empty agenda");
    }
    const id = await create(page, { target: counter, wait: 10 });
    await page.getByText("Call increase every hour, 3 times.").waitFor();
    await page.getByText("It has not run yet.").waitFor();

    await page.goto(`${node.url}/#/`);
    const due = page.getByRole("region", { name: "Due", exact: true });
    await due.getByText(id, { exact: true }).waitFor();
    await due.getByText("will succeed").first().waitFor();
    await page.locator("svg .dot").first().waitFor();

    await page.getByRole("button", { name: "To next run" }).click();
    await page.getByText(/Moved .*1 run in/).waitFor();
    const ran = page.getByRole("region", { name: "Just ran" });
    await ran.getByText(id, { exact: true }).waitFor();
    await ran.getByText("✓ ok").first().waitFor();

    await page.goto(`${node.url}/#/schedule/${id}`);
    const runs = page.getByRole("region", { name: "Runs", exact: true });
    await runs.getByText("✓ ok").waitFor();
    const { runs: known } = await node.call("almanac_getRuns", id, {});
    const cost = Number(100_000n * BigInt(known[0].receipt.effectiveGasPrice)) / 1e18;
    const shown = await runs.locator("td .cost").first().innerText();
    assert.ok(Math.abs(Number(shown) - cost) <= cost * 1e-4, `${shown} is not the cost ${cost}`);
    await runs.getByRole("link", { name: "1", exact: true }).click();
    await page.getByRole("heading", { name: `Run 1 of schedule ${id}` }).waitFor();
    await page.getByRole("button", { name: "Show the calls inside" }).click();
    await page.getByRole("region", { name: "Trace" }).getByText("increase").waitFor();

    const other = await create(page, { target: counter, wait: 30 });
    const { owner, escrow } = await node.call("almanac_getSchedule", other);
    const balance = BigInt(await node.call("eth_getBalance", owner, "latest"));
    await page.getByRole("button", { name: "Cancel", exact: true }).click();
    await page.getByText("Ends the job.").waitFor();
    await page.getByRole("button", { name: "Cancel this schedule" }).click();
    await page.getByText("returned to the owner").waitFor();
    const { end, status } = await node.call("almanac_getSchedule", other);
    assert.equal(status, "cancelled");
    assert.equal(end.refunded, escrow, "all of it returned");
    const after = BigInt(await node.call("eth_getBalance", owner, "latest"));
    assert.ok(after > balance && after - balance <= BigInt(escrow), "the owner has it, less the gas");
    none(troubles, `story, ${size}`);
    await page.close();
}

/// Every digit of an argument is shown before it is signed, and Enter sends nothing that has not been shown yet.
async function shownIsSigned() {
    const { page, troubles } = await open("#/create");
    const before = page.getByRole("region", { name: "What it would do" });
    await page.fill('input[name="signature"]', "charge(uint256)");
    await page.fill('input[name="args"]', "[1234567890123456789]");
    await before.getByText("1234567890123456789", { exact: true }).waitFor();
    await before.getByText("There is no contract at this address").waitFor();
    const { length: known } = (await node.call("almanac_listSchedules", { limit: 100 })).schedules;
    await page.fill('input[name="escrow"]', "7");
    await page.press('input[name="escrow"]', "Enter");
    assert.ok(await page.getByRole("button", { name: "Schedule it" }).isDisabled(), "what was typed has not been shown yet");
    await before.locator(".figure").getByText("7").waitFor();
    assert.equal((await node.call("almanac_listSchedules", { limit: 100 })).schedules.length, known, "Enter sent nothing");
    await page.getByRole("button", { name: "Schedule it" }).click();
    await page.waitForURL(/#\/schedule\//);
    const { escrow, terms } = await node.call("almanac_getSchedule", new URL(page.url()).hash.split("/")[2]);
    assert.deepEqual([BigInt(escrow), BigInt(`0x${terms.input.slice(10)}`)], [7n * 10n ** 18n, 1_234_567_890_123_456_789n]);
    none(troubles, "what is signed");
    await page.close();
}

/// A scheduled transaction by the form: a payment with a bid of its own runs; another is taken back with its deposit.
async function market() {
    const { page, troubles } = await open("#/create?kind=market");
    const payee = "0x00000000000000000000000000000000000000dd";
    const fill = async (bid) => {
        await page.goto(`${node.url}/#/create?kind=market`);
        await page.getByRole("button", { name: "Transaction", exact: true }).click();
        await page.getByRole("button", { name: "Calldata" }).click();
        await page.fill('input[name="target"]', payee);
        await page.fill('input[name="value"]', "0.5");
        await page.fill('input[name="bid"]', bid);
        const before = page.getByRole("region", { name: "What it would do" });
        await before.getByText("is the deposit").waitFor();
        await before.getByText("Likely price").waitFor();
        return before;
    };
    const before = await fill("7");
    await before.getByText(/Expected in block/).waitFor();
    await page.getByRole("button", { name: "Schedule it" }).click();
    await page.waitForURL(/#\/schedule\//);
    await page.getByText("Pay 0.5 coins, once, for at most 7 gwei per gas.").waitFor();
    await page.getByRole("button", { name: "To next run" }).click();
    await page.getByRole("region", { name: "Runs", exact: true }).getByText("✓ ok").waitFor();
    assert.equal(BigInt(await node.call("eth_getBalance", payee, "latest")), 5n * 10n ** 17n);
    await fill("9");
    await page.getByRole("button", { name: "Schedule it" }).click();
    await page.waitForURL(/#\/schedule\//);
    const id = decodeURIComponent(new URL(page.url()).hash.split("/")[2]);
    const { escrow } = await node.call("almanac_getSchedule", id);
    assert.equal(BigInt(escrow), 100_000n * 9n * 10n ** 9n + 5n * 10n ** 17n, "gas × bid + value");
    await page.getByRole("button", { name: "Cancel", exact: true }).click();
    await page.getByText("The whole deposit").waitFor();
    await page.getByRole("button", { name: "Cancel this schedule" }).click();
    await page.getByText("returned to the owner").waitFor();
    assert.equal((await node.call("almanac_getSchedule", id)).end.refunded, escrow);
    none(await accessibilityProblems(page), "a cancelled scheduled transaction");
    none(troubles, "market");
    await page.close();
}

/// A payment of an account that two of three people hold, and of a third person: one has signed already, two sign on the
/// page of everything that waits, the last of them makes it run.
async function signatures() {
    const heir = "0x00000000000000000000000000000000000000ee";
    const [first, second, third] = node.accounts;
    const treasury = await heldByTwoOfThree(node, [second, third, node.accounts[4]]);
    const id = await waitForAll(node, [first, treasury], heir);
    await signBy(node, second, id);
    const { page, troubles } = await open("#/signatures");
    const card = page.getByRole("region", { name: /^Schedule / });
    await card.getByText("2 accounts missing").waitFor();
    await card.getByText("1 of 2 needed, out of 3").waitFor();
    await card.getByText("2 calls that pay 10 wei in all").waitFor();
    await card.getByText("“rent”").waitFor();
    assert.equal(await card.locator(".calls > li").count(), 2, "every call is on the card");
    none(await accessibilityProblems(page), "what waits for signatures");
    await page.getByRole("button", { name: "Mine to sign (1)" }).click();
    assert.equal(await card.getByRole("button", { name: /^Sign as/ }).count(), 0, "nothing is signed before the review");
    await card.getByRole("button", { name: "Review and sign…" }).click();
    await card.getByText("Your account gives 5 wei.").waitFor();
    none(await accessibilityProblems(page), "the review of what is signed");
    await card.getByRole("button", { name: /^Sign as/ }).click();
    await page.getByText("Nothing on this page waits for your signature").waitFor();
    await page.getByRole("button", { name: "Account that signs" }).click();
    await page.getByRole("button", { name: "dev 2" }).click();
    await card.getByText("1 account missing").waitFor();
    await page.goto(`${node.url}/#/schedule/${id}`);
    await page.getByText("as soon as everyone it needs has signed").waitFor();
    const who = page.getByRole("region", { name: "Signatures", exact: true });
    await who.getByText("✓ agreed").waitFor();
    await page.getByText("All of them succeed, or none of them happens").waitFor();
    none(await accessibilityProblems(page), "a schedule that waits for signatures");
    await page.getByRole("button", { name: "Sign", exact: true }).click();
    await page.getByRole("button", { name: "Sign this schedule" }).click();
    await page.getByRole("region", { name: "Runs", exact: true }).getByText("✓ ok").waitFor();
    assert.equal(BigInt(await node.call("eth_getBalance", heir, "latest")), 10n);
    await page.getByRole("button", { name: "Account that signs" }).click();
    await page.getByRole("button", { name: "dev 0" }).click();
    none(troubles, "signatures");
    await page.close();
}

async function subscriptions() {
    // Ten tokens every hour, and an allowance for one charge only.
    const { token, contract, customer, merchant } = await subscribe(node, { interval: 3_600, charges: 6, allowance: 12 });
    // A link may name any contract: what has other code is not believed.
    const { page, troubles } = await open(`#/subscriptions?account=${customer}&contract=${token}`);
    await page.getByText("does not have the code of contracts/Subscriptions.sol").waitFor();
    await page.goto(`${node.url}/#/subscriptions?account=${customer}`);
    await page.reload();
    const list = page.getByRole("region", { name: "Subscriptions", exact: true });
    await list.getByText("0 of 6 charges made").waitFor();
    await page.getByRole("button", { name: "+1 hour" }).click();
    await list.getByText("1 of 6 charges made").waitFor();
    await page.getByRole("button", { name: "+1 hour" }).click();
    await list.getByText("The last charge failed: allowance too low").waitFor();
    none(await accessibilityProblems(page), "a failed subscription");
    await approve(node, token, contract, 100);
    await page.getByRole("button", { name: "+1 hour" }).click();
    await list.getByText("2 of 6 charges made").waitFor();
    await list.getByText("✓ active").waitFor();

    await page.goto(`${node.url}/#/subscriptions?side=merchant&account=${merchant}`);
    await page.reload();
    await page.getByText(/Income of the last 30 days: 20/).waitFor();

    await page.getByRole("button", { name: "Account that signs" }).click();
    await page.getByRole("button", { name: "dev 1" }).click();
    await page.goto(`${node.url}/#/subscriptions?account=${customer}`);
    await page.reload();
    await page.getByRole("button", { name: "Stop" }).click();
    await list.getByText(/Stopped, in block/).waitFor();
    await list.getByRole("button", { name: "Reclaim the rest of the gas" }).click();
    await list.getByText(/Reclaimed, in block/).waitFor();
    await page.getByRole("button", { name: "Account that signs" }).click();
    await page.getByRole("button", { name: "dev 0" }).click();
    none(troubles, "subscriptions");
    await page.close();
}

/// A revert text, and data, that would be a script in a page that trusts them.
async function hostile() {
    const evil = `<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>`;
    const counter = await deploy(node, "Counter", [{ type: "uint256" }], [1_000n]);
    const receipt = await job(node, { target: counter, data: callOf("refuse(string)", ["string"], [evil]), wait: 60, every: 60, runs: 2 });
    const id = BigInt(receipt.logs[0].topics[1]).toString();
    const { page, troubles } = await open(`#/schedule/${id}`);
    await page.getByText("would fail").first().waitFor();
    await page.getByText("<img src=x").first().waitFor();
    await node.call("almanac_increaseTime", 61);
    await page.getByText("✗ failed").first().waitFor();
    assert.equal(await page.evaluate(() => window.hacked), undefined);
    assert.equal(await page.locator("main img").count(), 0);
    none(troubles, "hostile text");
    await page.close();
}

/// After evm_revert another schedule has the id of one that was shown: nothing of the old one is shown for it.
async function goesBack() {
    const target = node.accounts[1];
    const snapshot = await node.call("evm_snapshot");
    const { page, troubles } = await open("#/");
    const due = page.getByRole("region", { name: "Due", exact: true });
    const order = (data) => job(node, { target, data, wait: 5 }).then(({ logs }) => logs[0].topics[1]);
    const before = await order("0xaaaaaaaa");
    await due.getByText("Call 0xaaaaaaaa").waitFor();
    await node.call("evm_revert", snapshot);
    assert.equal(await order("0xbbbbbbbb"), before, "the id is used again");
    await due.getByText("Call 0xbbbbbbbb").waitFor();
    assert.equal(await due.getByText("Call 0xaaaaaaaa").count(), 0);
    none(troubles, "a chain that goes back");
    await page.close();
}

async function everyPage() {
    const counter = await deploy(node, "Counter", [{ type: "uint256" }], [1_000n]);
    const receipt = await job(node, { target: counter, data: callOf("increase(uint256)", ["uint256"], [1n]), wait: 90, every: 3_600, runs: 9 });
    await book(node, { wait: 100, priority: 0, effort: 300 });
    await book(node, { wait: 200, priority: 2, effort: 300 });
    const id = BigInt(receipt.logs[0].topics[1]).toString();
    const hashes = ["", "schedules", `schedule/${id}`, "create", "create?kind=callback", "subscriptions", "blocks", `block/${Number(receipt.blockNumber)}`, `tx/${receipt.transactionHash}`, `account/${counter}`, "network", "parameters", "search/nonsense"];
    for (const [size, theme] of [["desktop", "light"], ["phone", "dark"]]) {
        const { page, troubles } = await open("#/", size, theme);
        for (const hash of hashes) {
            await page.goto(`${node.url}/#/${hash}`);
            await page.locator("main h1").waitFor();
            await page.waitForTimeout(400);
            none(await accessibilityProblems(page), `${hash} on ${size}, ${theme}`);
            const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
            assert.ok(overflow <= 0, `${hash} on ${size} is ${overflow} px too wide`);
        }
        none(troubles, size);
        await page.close();
    }
}

/// A wallet makes itself known (EIP-6963), does not know the chain, adds it, and signs. Behind it is the node. When its
/// owner has changed to another chain meanwhile, it is brought back before it signs, or does not sign.
async function browserWallet() {
    const wallet = () => {
        window.asked = [];
        window.walletChain = "0x1";
        let hasChain = false;
        const request = async ({ method, params = [] }) => {
            window.asked.push(method);
            if (method === "eth_requestAccounts") return [(await node("eth_accounts", []))[5]];
            if (method === "eth_chainId") return window.walletChain;
            if (method === "wallet_switchEthereumChain") {
                if (window.refuses) throw Object.assign(new Error("User rejected the request."), { code: 4001 });
                if (!hasChain) throw Object.assign(new Error("unknown chain"), { code: 4902 });
                return void (window.walletChain = params[0].chainId);
            }
            if (method === "wallet_addEthereumChain") return void (hasChain = params[0].chainId === "0x7a69");
            if (method === "eth_sendTransaction" && params[0].chainId !== "0x7a69") throw new Error("the request names no chain");
            return node(method, params);
        };
        const node = async (method, params) => {
            const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
            const answer = await (await fetch("/", { method: "POST", headers: { "content-type": "application/json" }, body })).json();
            if (answer.error) throw new Error(answer.error.message);
            return answer.result;
        };
        const detail = Object.freeze({ info: { uuid: "7a3d", name: "<b>Purse</b>", icon: "data:,", rdns: "example.purse" }, provider: { request, on() {} } });
        const announce = () => window.dispatchEvent(new CustomEvent("eip6963:announceProvider", { detail }));
        window.addEventListener("eip6963:requestProvider", announce);
        announce();
    };
    const { page, troubles } = await openPage(browser, `${node.url}/#/create?kind=callback`, "desktop", "light", wallet);
    await page.getByRole("button", { name: "Account that signs" }).click();
    await page.getByRole("button", { name: "<b>Purse</b>" }).click();
    const before = page.getByRole("region", { name: "What it would do" });
    await before.getByText("is the fee").waitFor();
    await before.getByText("will succeed").waitFor();
    await page.evaluate(() => Object.assign(window, { walletChain: "0x1", refuses: true }));
    await page.getByRole("button", { name: "Book it" }).click();
    await page.getByText("Not created: refused in the wallet").waitFor();
    await page.evaluate(() => (window.refuses = false));
    await page.getByRole("button", { name: "Book it" }).click();
    await page.waitForURL(/#\/schedule\//);
    await page.getByText("A callback, once, with 100 effort.").waitFor();
    const { owner, terms } = await node.call("almanac_getSchedule", new URL(page.url()).hash.split("/")[2]);
    assert.deepEqual([owner, terms.priority], [node.accounts[5], "high"]);
    const asked = await page.evaluate(() => window.asked);
    const [change, add] = ["wallet_switchEthereumChain", "wallet_addEthereumChain"];
    assert.deepEqual(asked.filter((method) => method !== "eth_chainId"), ["eth_requestAccounts", change, add, change, change, change, "eth_sendTransaction"]);
    none(troubles, "wallet");
    await page.close();
}

/// A node of a network serves the same page, may be called by it, and has no controls.
async function validator() {
    const network = await startValidator();
    try {
        const { page, troubles } = await openPage(browser, `${network.url}/#/network`, "desktop");
        await page.getByRole("heading", { name: "The network is well" }).waitFor();
        await page.getByText("This node: validator").waitFor();
        await page.getByRole("region", { name: "Base fee" }).locator("canvas").waitFor();
        assert.equal(await page.getByText("Dev time").count(), 0);
        none(await accessibilityProblems(page), "network of a validator");
        const shown = page.locator("header").getByRole("link", { name: /^[\d,]+$/ });
        const first = await shown.innerText();
        await page.waitForFunction((first) => document.querySelector(".head a")?.innerText !== first, first);
        await page.goto(`${network.url}/#/block/2`);
        await page.getByText("final, with a certificate").waitFor();
        await page.goto(`${network.url}/#/`);
        await page.getByText("The calendar is empty").waitFor();
        none(troubles, "validator");
        await page.close();
    } finally {
        await network.stop();
    }
}

/// What the form shows for cast and viem books the same as the form; what it shows for Solidity compiles.
async function snippets() {
    const tools = path.join(root, "target/client-test");
    const solc = createRequire(`${tools}/`)("solc");
    // Of any status: one of an earlier step may end meanwhile.
    const count = async () => (await node.call("almanac_listSchedules", { owner: node.accounts[0], limit: 100 })).schedules.length;
    const kinds = [["cron", "ICronRegistry", "id"], ["callback", "ICallbackScheduler", "id"], ["market", "IScheduledTransactions", "key"]];
    for (const [kind, file, answer] of kinds) {
        const { page } = await open(`#/create?kind=${kind}`);
        const code = page.getByRole("region", { name: "The same in code" });
        const shown = {};
        for (const name of ["cast", "viem", "Solidity"]) {
            await code.getByRole("button", { name }).click();
            shown[name] = await code.locator("pre").innerText();
        }
        await page.close();
        const before = await count();
        const env = { ...process.env, PATH: `${tools}/node_modules/.bin:${process.env.PATH}` };
        execSync(shown.cast, { cwd: tools, env, stdio: ["ignore", "ignore", "inherit"] });
        execFileSync(process.execPath, ["--input-type=module", "--eval", shown.viem], { cwd: tools, stdio: ["ignore", "ignore", "inherit"] });
        assert.equal(await count(), before + 2, kind);
        const sources = {
            [`${file}.sol`]: { content: fs.readFileSync(path.join(root, `contracts/${file}.sol`), "utf8") },
            "Shown.sol": { content: `pragma solidity ^0.8.24; import "./${file}.sol"; contract Shown { function book() external payable { ${shown.Solidity} ${answer}; } }` },
        };
        const input = { language: "Solidity", sources, settings: { outputSelection: { "*": { "*": ["abi"] } } } };
        const { errors = [] } = JSON.parse(solc.compile(JSON.stringify(input)));
        none(errors.filter(({ severity }) => severity === "error").map(({ formattedMessage }) => formattedMessage), shown.Solidity);
    }
}

/// Every page of the contents opens, and every link between pages leads to a page and a section that exist.
async function documentation() {
    const { page, troubles } = await open("#/docs/doors");
    await page.getByRole("heading", { name: "Which door to choose", level: 1 }).waitFor();
    await page.getByRole("link", { name: "callbacks", exact: true }).first().click();
    await page.getByRole("heading", { name: "Callbacks", level: 1 }).waitFor();
    none(await accessibilityProblems(page), "a page of the documentation");
    const contents = page.getByRole("navigation", { name: "Documentation" });
    const waiting = await contents.getByRole("link").evaluateAll((links) => links.map((link) => link.getAttribute("href")));
    assert.ok(waiting.length > 25, `${waiting.length} pages in the contents`);
    const seen = new Map();
    const sections = [];
    while (waiting.length) {
        const address = waiting.pop();
        const [hash, section] = address.split("?section=");
        if (section) sections.push([hash, decodeURIComponent(section), address]);
        if (seen.has(hash)) continue;
        await page.goto(`${node.url}/${hash}`);
        await page.locator("article h1").first().waitFor();
        const found = await page.locator("article").evaluate((article) => ({
            ids: [...article.querySelectorAll("[id]")].map(({ id }) => id),
            links: [...article.querySelectorAll("a")].map((link) => link.getAttribute("href")),
        }));
        seen.set(hash, found.ids);
        for (const href of found.links) {
            if (href.startsWith("#/docs/")) waiting.push(href);
            else if (href.startsWith("/docs/")) assert.equal((await page.request.get(node.url + href)).status(), 200, href);
        }
    }
    for (const [hash, section, address] of sections) assert.ok(seen.get(hash)?.includes(section), `${address}: no such section`);
    assert.ok(seen.size > 60, `${seen.size} pages`);
    none(troubles, "documentation");
    await page.close();
}

async function keyboard() {
    const { page } = await open("#/");
    await page.locator("[data-row]").first().waitFor();
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.waitForURL(/#\/schedule\//);
    await page.getByText("What it will do").waitFor();
    await page.keyboard.press("t");
    assert.equal(await page.evaluate(() => document.activeElement.id), "travel");
    await page.keyboard.press("/");
    await page.keyboard.type("0");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Block 0" }).waitFor();
    await page.close();
}

async function offline() {
    const { page } = await open("#/");
    await page.getByText("Due soon").waitFor();
    const { port } = node;
    await node.stop();
    await page.getByText("The node cannot be reached.").waitFor();
    node = await startNode(port);
    await page.getByText("The node cannot be reached.").waitFor({ state: "detached" });
    await page.getByText("The calendar is empty").waitFor();
    await page.close();
}
