// Decodes calls, events and errors of our own contracts. What is decoded is shown as text: it may hold anything.
import abis from "virtual:abi";
import { decode } from "../lib/abi.js";
import { tame } from "../lib/format.js";

const functions = new Map();
const events = new Map();
const errors = new Map();
for (const [contract, { functions: calls, events: logs, errors: refusals }] of Object.entries(abis)) {
    for (const [name, item] of Object.entries(calls)) if (!functions.has(item.selector)) functions.set(item.selector, { name, contract, ...item });
    for (const [name, item] of Object.entries(logs)) if (!events.has(item.topic)) events.set(item.topic, { name, contract, ...item });
    for (const [name, item] of Object.entries(refusals)) if (!errors.has(item.selector)) errors.set(item.selector, { name, contract, ...item });
}
errors.set("0x08c379a0", { name: "Error", inputs: [{ name: "message", type: "string" }] });
errors.set("0x4e487b71", { name: "Panic", inputs: [{ name: "code", type: "uint256" }] });

/// A call's function and arguments; null if it is not known.
export function decodeCall(input) {
    if (!input || input.length < 10) return null;
    const item = functions.get(input.slice(0, 10));
    if (!item) return null;
    return { name: item.name, signature: item.signature, args: attempt(item.inputs, input.slice(10)) };
}

export function decodeLog({ topics, data }) {
    const item = events.get(topics[0]);
    if (!item) return null;
    const indexed = item.inputs.filter((input) => input.indexed);
    const plain = item.inputs.filter((input) => !input.indexed);
    const values = attempt(plain, data);
    if (!values || indexed.length !== topics.length - 1) return null;
    const heads = indexed.map((input, index) => (attempt([input], topics[index + 1]) ?? [{ ...input, value: topics[index + 1] }])[0]);
    const args = item.inputs.map((input) => (input.indexed ? heads.shift() : values.shift()));
    return { name: item.name, signature: item.signature, args };
}

/// Revert data in words.
export function decodeError(data) {
    if (!data || data === "0x") return null;
    const item = errors.get(data.slice(0, 10));
    const args = item && attempt(item.inputs, data.slice(10));
    if (!item || !args) return `reverted with ${data.slice(0, 10)}`;
    if (item.name === "Error") return tame(args[0].value);
    return tame(`${item.name}(${args.map(({ name, value }) => (name ? `${name} ${value}` : value)).join(", ")})`);
}

function attempt(inputs, data) {
    try {
        return decode(inputs, data);
    } catch {
        return null;
    }
}

/// What the node said about a failure, shorter and with the names of errors that it does not know.
export function readable(text) {
    if (!text) return "";
    return tame(text).replace(/^execution reverted: /, "").replace(/custom error (0x[0-9a-f]{8})/, (whole, selector) => errors.get(selector)?.name ?? whole);
}

/// What an error of the node means, with its revert data in words.
export function explain(error) {
    const data = typeof error?.data === "string" ? decodeError(error.data) : null;
    return data ?? tame(error?.message ?? String(error));
}
