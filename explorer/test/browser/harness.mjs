// Real nodes and a real browser: starts both, and ends what it started.
import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import readline from "node:readline";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

export const root = path.join(path.dirname(fileURLToPath(import.meta.url)), "../../..");
const binary = process.env.ALMANAC ?? path.join(root, "target/debug/almanac");
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

export const SIZES = { desktop: { width: 1280, height: 900 }, phone: { width: 390, height: 844 } };

/// A developer chain. `port` 0 takes a free one.
export async function startNode(port = 0, more = []) {
    const child = spawn(binary, ["dev", "--port", String(port), "--json", ...more], { stdio: ["ignore", "pipe", "ignore"] });
    const line = await new Promise((resolve, reject) => {
        readline.createInterface({ input: child.stdout }).once("line", resolve);
        child.once("exit", (code) => reject(new Error(`the node ended with ${code}`)));
        child.once("error", reject);
    });
    const facts = JSON.parse(line);
    const url = facts.http;
    let id = 0;
    const call = async (method, ...params) => {
        const body = JSON.stringify({ jsonrpc: "2.0", id: (id += 1), method, params });
        const response = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body });
        const { result, error } = await response.json();
        if (error) throw new Error(`${method}: ${error.message}`);
        return result;
    };
    const send = async (transaction) => {
        const hash = await call("eth_sendTransaction", transaction);
        const receipt = await call("eth_getTransactionReceipt", hash);
        if (receipt?.status !== "0x1") throw new Error(`failed: ${JSON.stringify(transaction).slice(0, 200)}`);
        return receipt;
    };
    const stop = () => new Promise((resolve) => {
        child.removeAllListeners("exit");
        child.once("exit", resolve);
        child.kill("SIGTERM");
    });
    return { url, port: Number(new URL(url).port), accounts: facts.accounts.map(({ address }) => address.toLowerCase()), call, send, stop };
}

/// A network of one validator, whose nodes have no keys of accounts and no controls.
export async function startValidator() {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), "almanac-network-"));
    const dir = path.join(folder, "net");
    const [rpc, p2p] = [await freePort(), await freePort()];
    execFileSync(binary, ["network", "new", "--validators", "1", "--dir", dir, "--rpc-port", String(rpc), "--p2p-port", String(p2p), "--block-time-ms", "300"]);
    const child = spawn(binary, ["node", "--config", path.join(dir, "v0/config.json")], { stdio: "ignore" });
    const url = `http://127.0.0.1:${rpc}`;
    for (let tries = 0; ; tries += 1) {
        const isUp = await fetch(`${url}/health`).then((response) => response.ok, () => false);
        if (isUp) break;
        if (tries > 200 || child.exitCode !== null) throw new Error("the validator does not start");
        await new Promise((resolve) => setTimeout(resolve, 200));
    }
    const stop = () => new Promise((resolve) => {
        child.once("exit", () => {
            fs.rmSync(folder, { recursive: true, force: true });
            resolve();
        });
        child.kill("SIGTERM");
    });
    return { url, stop };
}

function freePort() {
    return new Promise((resolve) => {
        const server = net.createServer().listen(0, "127.0.0.1", () => {
            const { port } = server.address();
            server.close(() => resolve(port));
        });
    });
}

/// A browser with a profile of its own.
export async function startBrowser() {
    const profile = fs.mkdtempSync(path.join(os.tmpdir(), "almanac-explorer-"));
    const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
    const browser = await chromium.launchPersistentContext(profile, { executablePath, headless: true, args: FLAGS, viewport: SIZES.desktop, reducedMotion: "reduce" });
    const stop = async () => {
        await browser.close();
        fs.rmSync(profile, { recursive: true, force: true });
    };
    return { browser, stop };
}

/// A page that fails the test if it asks any other host, breaks the content policy or throws.
export async function openPage(browser, url, size, colorScheme = "light", script = null) {
    const page = await browser.newPage();
    if (script) await page.addInitScript(script);
    await page.setViewportSize(SIZES[size]);
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    const troubles = [];
    const host = new URL(url).host;
    page.on("request", (request) => {
        const asked = new URL(request.url());
        if (asked.protocol.startsWith("http") && asked.host !== host) troubles.push(`asked ${request.url()}`);
    });
    page.on("pageerror", (error) => troubles.push(`threw ${error.stack ?? error}`));
    page.on("console", (message) => message.type() === "error" && troubles.push(`console: ${message.text()}`));
    page.setDefaultTimeout(20_000);
    await page.goto(url);
    return { page, troubles };
}

export function artifact(name) {
    return JSON.parse(fs.readFileSync(path.join(root, `contracts/artifacts/${name}.json`), "utf8"));
}
