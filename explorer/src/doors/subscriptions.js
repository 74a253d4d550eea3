// Token subscriptions: a contract over cron jobs, which anybody may deploy.
import abis from "virtual:abi";
import { decode, encodeCall } from "../lib/abi.js";
import { call, chain } from "../lib/chain.svelte.js";
import { big, hex, interval, num, tame } from "../lib/format.js";
import { remember } from "../lib/remember.js";

const { functions, codeHash } = abis.Subscriptions;
const { events } = abis.ISubscriptions;
const { functions: token } = abis.IERC20;
/// How far back contracts and charges are looked for.
const BLOCKS = 9_999;
const PAGE = 50;
/// How many addresses are looked at: anybody may emit the event that names one.
const CANDIDATES = 50;

async function view(to, item, args) {
    const data = await call("eth_call", { to, data: encodeCall(item, args) }, "latest");
    const values = decode(item.outputs, data);
    return values[0].value;
}

const range = (head) => ({ fromBlock: hex(Math.max(0, head - BLOCKS)), toBlock: "latest" });

/// Whether a contract has the code of contracts/Subscriptions.sol: only then what it says can be trusted.
export const isOurs = remember(async (contract) => {
    const code = await call("eth_getCode", contract, "latest");
    // Code may still come to an address without any.
    return code === "0x" ? null : (await call("web3_sha3", code)) === codeHash;
}, () => chain.history);

/// Contracts in which an account subscribed, or was subscribed to, lately; newest first. An event alone is no reason to
/// believe an address, and events about others do not count: anybody can emit ten thousand.
export async function contracts(head, account, side) {
    const who = `0x${account.slice(2).padStart(64, "0")}`;
    const topics = [events.SubscriptionApproved.topic, null, ...(side === "customer" ? [who] : [null, who])];
    const logs = await call("eth_getLogs", { ...range(head), topics });
    return trusted(logs.map((log) => log.address.toLowerCase()).reverse(), isOurs);
}

export async function trusted(addresses, check) {
    const candidates = [...new Set(addresses)].slice(0, CANDIDATES);
    const isTrusted = await Promise.all(candidates.map(check));
    return candidates.filter((_, nth) => isTrusted[nth]);
}

/// All subscriptions of an account, as a customer or as a merchant.
export async function subscriptionsOf(contract, account, side) {
    const ids = await view(contract, side === "customer" ? functions.idsOfCustomer : functions.idsOfMerchant, [account, 0n, BigInt(PAGE)]);
    // A contract may answer with more than it was asked for.
    return Promise.all(ids.slice(0, PAGE).reverse().map((id) => one(contract, id)));
}

async function one(contract, id) {
    const found = await view(contract, functions.getSubscription, [id]);
    const [allowance, balance, symbol, decimals] = await Promise.all([
        view(found.token, token.allowance, [found.customer, contract]).catch(() => 0n),
        view(found.token, token.balanceOf, [found.customer]).catch(() => 0n),
        text(found.token, "0x95d89b41"),
        call("eth_call", { to: found.token, data: "0x313ce567" }, "latest").then(num, () => 18),
    ]);
    return { ...found, id, contract, allowance, balance, symbol, decimals: decimals <= 36 ? decimals : 18, failure: tame(found.failure) };
}

/// A token's own name for itself: anything at all, so it is cut short and shown as text.
async function text(to, data) {
    try {
        const [{ value }] = decode([{ type: "string" }], await call("eth_call", { to, data }, "latest"));
        return tame(value, 12) || "tokens";
    } catch {
        return "tokens";
    }
}

/// Charges that a merchant got: when and how much.
export async function incomeOf(contract, ids, head) {
    if (!ids.length) return [];
    const topics = [events.SubscriptionCharged.topic, ids.slice(0, 100).map((id) => `0x${id.toString(16).padStart(64, "0")}`)];
    const logs = await call("eth_getLogs", { ...range(head), address: contract, topics });
    return logs.map((log) => ({ timeMs: num(log.blockTimestamp) * 1_000, amount: big(log.data.slice(0, 66)) }));
}

export const STATES = ["unknown", "active", "cancelled", "completed"];

export const words = ({ amount, intervalSec, maxCharges, chargesMade }) =>
    `every ${interval(Number(intervalSec))}, ${maxCharges ? `${chargesMade} of ${maxCharges} charges made` : `${chargesMade} charges made`}`;

/// Ends a subscription; then what is left for gas can be reclaimed.
export const cancel = ({ contract, id }) => ({ to: contract, data: encodeCall(functions.cancelSubscription, [id]) });
export const reclaim = ({ contract, id }) => ({ to: contract, data: encodeCall(functions.reclaim, [id]) });
export const fund = ({ contract, id }, value) => ({ to: contract, value: hex(value), data: encodeCall(functions.fund, [id]) });
