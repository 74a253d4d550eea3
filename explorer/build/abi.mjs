// The module `virtual:abi`: what the explorer knows of our own contracts, with the hashes that name each item on chain,
// so that the page needs neither a compiler nor a hash function.
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { keccak_256 } from "@noble/hashes/sha3.js";
import { parseInterface } from "./solidity.mjs";

const contracts = path.join(path.dirname(fileURLToPath(import.meta.url)), "../../contracts");

/// Interfaces of doors and of what stands behind them.
const INTERFACES = [
    "ICronRegistry",
    "ICallbackScheduler",
    "ICallbackHandler",
    "IScheduledTransactions",
    "IScheduleService",
    "IParameters",
    "IERC20",
    "ISubscriptions",
    "IDoor",
];

export function abiPlugin() {
    const name = "virtual:abi";
    return {
        name: "almanac-abi",
        resolveId: (id) => (id === name ? `\0${name}` : undefined),
        load: (id) => (id === `\0${name}` ? moduleText() : undefined),
    };
}

function moduleText() {
    const abis = {};
    for (const file of INTERFACES) {
        abis[file] = parseInterface(fs.readFileSync(path.join(contracts, `${file}.sol`), "utf8"));
    }
    abis.Subscriptions = artifact("Subscriptions").abi.filter((item) => ["function", "error"].includes(item.type));
    // Any token, and what our examples say.
    abis.Token = artifact("PlainToken").abi;
    abis.Examples = examples();
    const described = Object.fromEntries(Object.entries(abis).map(([file, items]) => [file, describe(items)]));
    // Who runs this code does what the source says. It has no immutable values, so that every copy has the same hash.
    described.Subscriptions.codeHash = keccakOf(Buffer.from(artifact("Subscriptions").deployedBytecode.slice(2), "hex"));
    return `export default ${JSON.stringify(described)};`;
}

function artifact(name) {
    return JSON.parse(fs.readFileSync(path.join(contracts, `artifacts/${name}.json`), "utf8"));
}

/// Items by kind and name, each with its selector or topic.
export function describe(items) {
    const by = { functions: {}, events: {}, errors: {} };
    for (const item of items) {
        const kind = by[`${item.type}s`];
        if (!kind) continue;
        const signature = `${item.name}(${item.inputs.map(typeName).join(",")})`;
        const hash = keccak(signature);
        const slim = { signature, inputs: item.inputs.map(slimmed) };
        if (item.type === "event") slim.topic = hash;
        else slim.selector = hash.slice(0, 10);
        if (item.outputs) slim.outputs = item.outputs.map(slimmed);
        kind[item.name] = slim;
    }
    return by;
}

function slimmed({ name, type, components, indexed }) {
    return {
        ...(name && { name }),
        type,
        ...(components && { components: components.map(slimmed) }),
        ...(indexed && { indexed }),
    };
}

function typeName({ type, components }) {
    return type.startsWith("tuple") ? `(${components.map(typeName).join(",")})${type.slice(5)}` : type;
}

export const keccak = (text) => keccakOf(new TextEncoder().encode(text));

function keccakOf(bytes) {
    return `0x${Buffer.from(keccak_256(bytes)).toString("hex")}`;
}

function examples() {
    const files = fs.readdirSync(path.join(contracts, "artifacts")).sort();
    const found = files.map((file) => artifact(path.basename(file, ".json")));
    return found.filter(({ sourceName }) => sourceName.startsWith("contracts/examples/")).flatMap(({ abi }) => abi);
}
