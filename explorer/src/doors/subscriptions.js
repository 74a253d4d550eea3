// Token subscriptions: a contract over cron jobs, which anybody may deploy.
import abis from "virtual:abi";
import { decode, encodeCall } from "../lib/abi.js";
import { call } from "../lib/chain.svelte.js";
import { big, hex, interval, num } from "../lib/format.js";

const { functions } = abis.Subscriptions;
const { events } = abis.ISubscriptions;
const { functions: token } = abis.IERC20;
/// How far back contracts and charges are looked for.
const BLOCKS = 9_999;
const PAGE = 50n;

async function view(to, item, args) {
    const data = await call("eth_call", { to, data: encodeCall(item, args) }, "latest");
    const values = decode(item.outputs, data);
    return values[0].value;
}

const range = (head) => ({ fromBlock: hex(Math.max(0, head - BLOCKS)), toBlock: "latest" });

/// Contracts in which somebody subscribed lately.
export async function contracts(head) {
    const logs = await call("eth_getLogs", { ...range(head), topics: [events.SubscriptionApproved.topic] });
    return [...new Set(logs.map((log) => log.address))];
}

/// All subscriptions of an account, as a customer or as a merchant.
export async function subscriptionsOf(contract, account, side) {
    const ids = await view(contract, side === "customer" ? functions.idsOfCustomer : functions.idsOfMerchant, [account, 0n, PAGE]);
    return Promise.all([...ids].reverse().map((id) => one(contract, id)));
}

async function one(contract, id) {
    const found = await view(contract, functions.getSubscription, [id]);
    const [allowance, balance, symbol, decimals] = await Promise.all([
        view(found.token, token.allowance, [found.customer, contract]).catch(() => 0n),
        view(found.token, token.balanceOf, [found.customer]).catch(() => 0n),
        text(found.token, "0x95d89b41"),
        call("eth_call", { to: found.token, data: "0x313ce567" }, "latest").then(num, () => 18),
    ]);
    return { id, contract, allowance, balance, symbol, decimals: decimals <= 36 ? decimals : 18, ...found };
}

/// A token's own name for itself: anything at all, so it is cut short and shown as text.
async function text(to, data) {
    try {
        const [{ value }] = decode([{ type: "string" }], await call("eth_call", { to, data }, "latest"));
        return value.slice(0, 12) || "tokens";
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
