// What every suite needs: checks that print a line, the node under test, known accounts, raw requests.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { promisify } from "node:util";

export const url = process.env.CLIENT_TEST_URL;
export const wsUrl = url.replace("http", "ws");
export const isNetwork = process.env.CLIENT_TEST_NODE === "network";
export const isAlmanac = isNetwork || process.env.CLIENT_TEST_NODE === "almanac";
export const root = process.env.CLIENT_TEST_ROOT;
export const home = path.join(root, "target/client-test");
const CHECK_MS_MAX = 30_000 * Number(process.env.CLIENT_TEST_PATIENCE ?? 1);

let failed = 0;

/** Runs one check and prints its line. Later checks run even if this one fails. */
export async function check(name, body) {
    let timer;
    const timeout = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error(`no end after ${CHECK_MS_MAX} ms`)), CHECK_MS_MAX);
    });
    try {
        await Promise.race([body(), timeout]);
        console.log(`ok ${name}`);
    } catch (error) {
        failed += 1;
        console.log(`not ok ${name}: ${oneLine(error)}`);
        console.error(`--- ${name}\n${error?.stack ?? error}`);
    } finally {
        clearTimeout(timer);
    }
}

/** A check of something that other chains do not have. */
export async function onlyAlmanac(name, body) {
    if (isAlmanac) await check(name, body);
    else console.log(`skip ${name}`);
}

/** A check of a developer's chain: unlocked accounts, or a block for each transaction and none without. */
export async function onlyDeveloper(name, body) {
    if (isNetwork) console.log(`skip ${name}`);
    else await check(name, body);
}

/** Seconds until the first run of a job and between its runs. On a network they really have to pass. */
export const wait = isNetwork ? { first: 8, interval: 1 } : { first: 100, interval: 60 };

/** Lets time pass until the chain's is `second`: the clock's own, or on a developer's chain in a moment. */
export async function passUntil(second) {
    // The last block of a developer's chain may be old: its next one tells what time it is. On a network, what is
    // due has run when the last block says so.
    const block = isNetwork ? "latest" : "pending";
    const now = async () => Number((await rpc("eth_getBlockByNumber", block, false)).timestamp);
    if (isNetwork) await until(`second ${second}`, async () => (await now()) >= second, 1_000 * (second - (await now())) + 10_000);
    else await rpc("almanac_increaseTime", second - (await now()));
}

/** Ends the suite, also where a client still holds a socket or a timer. */
export function finish() {
    console.log("done");
    process.exit(failed === 0 ? 0 : 1);
}

function oneLine(error) {
    const text = String(error?.message ?? error).replace(/\u001b\[[0-9;]*m/g, "");
    return text
        .split(/\s*\n\s*/)
        .filter(Boolean)
        .join(" | ")
        .slice(0, 300);
}

/** The first five accounts of the mnemonic that every developer chain uses. */
export const accounts = [
    [
        "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
        "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
    ],
    [
        "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
        "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
    ],
    [
        "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC",
        "0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
    ],
    [
        "0x90F79bf6EB2c4f870365E785982E1f101E93b906",
        "0x7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6",
    ],
    [
        "0x15d34AAf54267DB7D7c367839AAf71A00a2C6A65",
        "0x47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a",
    ],
].map(([address, key]) => ({ address, key }));

/** One of our compiled contracts. */
export function artifact(name) {
    return JSON.parse(fs.readFileSync(path.join(root, "contracts/artifacts", `${name}.json`), "utf8"));
}

/** What a scenario of contracts/testing comes to on the real doors and on every fake. */
export function recorded(name) {
    return fs.readFileSync(path.join(root, `tests/clients/scenarios/${name}.txt`), "utf8").trim().split("\n");
}

/** What a scenario of contracts/testing noted, a line each: what, and two numbers. */
export function notes(words) {
    return words.map((word) => {
        const text = Buffer.from(word.slice(2, 22), "hex").toString().replace(/\0+$/, "");
        return `${text} ${BigInt(`0x${word.slice(22, 44)}`)} ${BigInt(`0x${word.slice(44)}`)}`;
    });
}

/** Posts any JSON and gives the answer as it came. */
export async function post(body) {
    const response = await fetch(url, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: typeof body === "string" ? body : JSON.stringify(body),
    });
    return JSON.parse(await response.text());
}

/** The result of one request; an error answer is thrown, with its code and data. */
export async function rpc(method, ...params) {
    const { result, error } = await post({ jsonrpc: "2.0", id: 1, method, params });
    if (error) throw Object.assign(new Error(`${method}: ${error.code} ${error.message}`), error);
    return result;
}

/** The error that a request is answered with. */
export async function rpcError(method, ...params) {
    const answer = await post({ jsonrpc: "2.0", id: 1, method, params });
    assert.ok(
        answer.error,
        `${method} was to be refused, but the answer is ${JSON.stringify(answer.result)}`,
    );
    return answer.error;
}

/** Waits until `probe` gives something true. */
export async function until(what, probe, msMax = 10_000) {
    const end = Date.now() + msMax;
    for (;;) {
        const value = await probe();
        if (value) return value;
        if (Date.now() > end) throw new Error(`${what}: not within ${msMax} ms`);
        await new Promise((resolve) => setTimeout(resolve, 20));
    }
}

/** A Foundry program from npm: the binary itself, since the wrapper around it hides the exit status. */
export function foundry(program) {
    const folder = path.join(home, "node_modules/@foundry-rs");
    const found = fs.readdirSync(folder).find((name) => name.startsWith(`${program}-`));
    assert.ok(found, `no ${program} below ${folder}`);
    return path.join(folder, found, "bin", program);
}

/** Runs a program; what it printed is in the error if it fails. */
export async function run(program, args, options = {}) {
    try {
        const { stdout } = await promisify(execFile)(program, args, {
            maxBuffer: 64 << 20,
            timeout: 100_000 * Number(process.env.CLIENT_TEST_PATIENCE ?? 1),
            ...options,
        });
        return stdout.trim();
    } catch (error) {
        throw Object.assign(
            new Error(
                `${path.basename(program)} ${args.join(" ").slice(0, 120)}: ${error.stderr}${error.stdout}`,
            ),
            {
                stderr: error.stderr,
            },
        );
    }
}
