// Orders that a test sends past the page.
import { describe, keccak } from "../../build/abi.mjs";
import { parseInterface } from "../../build/solidity.mjs";
import { encode, encodeCall } from "../../src/lib/abi.js";
import fs from "node:fs";
import path from "node:path";
import { artifact, root } from "./harness.mjs";

/// The functions of one of our interfaces.
export const read = (file) => describe(parseInterface(fs.readFileSync(path.join(root, `contracts/${file}.sol`), "utf8"))).functions;
const cron = read("ICronRegistry");
const callbacks = read("ICallbackScheduler");
export const CRON = "0x0000000000000000000000000000000000000006";
export const CALLBACKS = "0x000000000000000000000000000000000000a102";

export const coins = (amount) => `0x${(BigInt(Math.round(amount * 1e6)) * 10n ** 12n).toString(16)}`;
export const selector = (signature) => keccak(signature).slice(0, 10);

export async function now(node) {
    const { from } = await node.call("almanac_agendaBuckets", { buckets: 1 });
    return Math.floor(Number(from.ms) / 1_000);
}

export async function job(node, { owner = 0, target, data, wait, every = 0, runs = 1, gas = 100_000, escrow = 0.01 }) {
    const at = BigInt((await now(node)) + wait);
    const args = [target, data, at, BigInt(every), BigInt(runs), BigInt(gas)];
    return node.send({ from: node.accounts[owner], to: CRON, value: coins(escrow), data: encodeCall(cron.scheduleCalldata, args) });
}

export async function book(node, { owner = 0, wait, priority = 0, effort = 100, data = "0x", pay = 0.1 }) {
    const at = BigInt((await now(node)) + wait);
    const account = node.accounts[owner];
    return node.send({ from: account, to: CALLBACKS, value: coins(pay), data: encodeCall(callbacks.schedule, [account, data, at, BigInt(priority), BigInt(effort)]) });
}

const SERVICE = "0x000000000000000000000000000000000000a103";
const ACCOUNTS = "0x000000000000000000000000000000000000a104";
const signed = read("IScheduleService");

/// An account that two of three people hold, with a few coins. Returns its address.
export async function heldByTwoOfThree(node, people) {
    const key = `0x030302${people.map((one) => `01${one.slice(2)}`).join("")}`;
    const data = encodeCall(read("IAccounts").createAccount, [key, `0x${"07".repeat(32)}`]);
    const { logs } = await node.send({ from: node.accounts[3], to: ACCOUNTS, data, gas: "0x7a120" });
    const account = `0x${logs[0].topics[1].slice(26)}`;
    await node.send({ from: node.accounts[3], to: account, value: coins(1) });
    return account;
}

/// Payments of accounts to one that wait for all of them, ordered by another. Returns its id.
export async function waitForAll(node, payers, heir) {
    const calls = payers.map((from) => [from, heir, 5n, "0x"]);
    const components = [
        { type: "tuple[]", components: ["address", "address", "uint256", "bytes"].map((type) => ({ type })) },
        ...["uint64", "uint256", "string", "uint32", "uint64", "bool"].map((type) => ({ type })),
    ];
    const body = encode([{ type: "tuple", components }], [[calls, 150_000n, 10n ** 12n, "rent", 1n, 0n, false]]);
    const data = encodeCall(signed.createSchedule, [`0x${body}`, "0x", `0x${"0".repeat(40)}`, []]);
    const receipt = await node.send({ from: node.accounts[3], to: SERVICE, data, gas: "0x1e8480" });
    return BigInt(receipt.logs[0].topics[1]);
}

/// An account signs by calling.
export const signBy = (node, from, id) => node.send({ from, to: SERVICE, data: encodeCall(signed.signSchedule, [id, []]), gas: "0x1e8480" });

/// Deploys an example and returns its address.
export async function deploy(node, name, inputs = [], args = [], owner = 0) {
    const { bytecode } = artifact(name);
    const receipt = await node.send({ from: node.accounts[owner], data: bytecode + encode(inputs, args), gas: "0x5b8d80" });
    return receipt.contractAddress;
}

export const callOf = (signature, types = [], args = []) => selector(signature) + encode(types.map((type) => ({ type })), args);

/// A token, a contract for subscriptions, and a subscription of the second account that pays the third.
export async function subscribe(node, { interval = 3_600, charges = 4, allowance = 12 }) {
    const whole = 10n ** 18n;
    const token = await deploy(node, "PlainToken", [{ type: "uint256" }], [1_000_000n * whole]);
    const contract = await deploy(node, "Subscriptions");
    const [owner, customer, merchant] = node.accounts;
    await node.send({ from: owner, to: token, data: callOf("transfer(address,uint256)", ["address", "uint256"], [customer, 1_000n * whole]) });
    await approve(node, token, contract, allowance);
    const { functions } = describe(artifact("Subscriptions").abi);
    const data = encodeCall(functions.approveSubscription, [token, merchant, 10n * whole, BigInt(interval), BigInt(charges)]);
    await node.send({ from: customer, to: contract, value: coins(0.05), data });
    return { token, contract, customer, merchant };
}

export async function approve(node, token, contract, allowance) {
    const data = callOf("approve(address,uint256)", ["address", "uint256"], [contract, BigInt(allowance) * 10n ** 18n]);
    await node.send({ from: node.accounts[1], to: token, data });
}
