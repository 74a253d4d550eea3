// FLIP-330: callbacks with priorities and booked seconds.
import abis from "virtual:abi";
import { encodeCall } from "../lib/abi.js";
import { big, coins as coinsOf, exact, grouped, hex, num, plural, solidityAddress } from "../lib/format.js";

const { functions, events } = abis.ICallbackScheduler;

export const address = "0x000000000000000000000000000000000000a102";
export const name = "callback";
export const title = "Callback";
export const spec = "FLIP-330";

export const PRIORITIES = [
    { name: "high", label: "High", words: "runs in its second, or is not booked", price: "× 10" },
    { name: "medium", label: "Medium", words: "runs in its second, or in the next one with room", price: "× 5" },
    { name: "low", label: "Low", words: "runs after its second, when a block has room", price: "× 2" },
];

export const form = {
    label: "Callback",
    words: "One call in a second that is booked for it, with a priority and a fixed fee. FLIP-330.",
    target: "Handler",
    targetHint: "A contract with executeCallback(uint64,bytes). It books itself, or allows you with setScheduler. Your own account may be one too.",
    legend: "Priority and effort",
    costs: "is the fee; it does not change later",
    send: "Book it",
};

export function describe({ terms }) {
    const priority = terms?.priority ?? "";
    const booked = priority === "low" ? `${grouped(num(terms?.effort))} effort, when there is room` : `${grouped(num(terms?.effort))} effort booked`;
    return { what: "Callback", how: `once, ${priority} priority · ${booked}`, call: { name: "executeCallback", signature: "executeCallback(uint64,bytes)", args: null } };
}

export function sentence({ terms }) {
    const priority = PRIORITIES.find(({ name }) => name === terms?.priority);
    return `A callback, once, with ${grouped(num(terms?.effort))} effort. ${priority?.label} priority: ${priority?.words}.`;
}

export function dueOf({ firstRun }) {
    return firstRun ? num(firstRun.ms) : null;
}

/// What a run cost: the fee, as long as the record has it. Afterwards it is not known.
export function costOf({ escrow }) {
    return big(escrow) || null;
}

export function facts({ terms }) {
    return [
        ["Effort", `${grouped(num(terms.effort))}, which is ${grouped(num(terms.gasLimit))} gas`],
        ["Fee", "paid in full when it was booked; later base fees do not change it"],
        ["Cancelling returns", `${num(terms.refundBps) / 100} % of the fee`],
        ["Refunds go to", terms.refundTo],
    ];
}

export function actions(schedule) {
    const refund = (big(schedule.escrow) * big(schedule.terms?.refundBps)) / 10_000n;
    return [
        {
            name: "cancel",
            label: "Cancel",
            who: "owner",
            words: `Ends the callback and frees its second. ${coinsOf(refund)} of ${coinsOf(schedule.escrow)} return to the owner; the rest is burned, because the room was kept from others.`,
            transaction: () => ({ to: address, data: encodeCall(functions.cancel, [big(schedule.idNumber)]) }),
        },
    ];
}

export function createdId(receipt) {
    const log = receipt.logs.find(({ topics }) => topics[0] === events.CallbackScheduled.topic);
    return log ? BigInt(log.topics[1]).toString() : null;
}

export function order({ handler, data, atMs, priority, effort, fee }) {
    const args = [handler, data, BigInt(Math.ceil(atMs / 1_000)), BigInt(priority), BigInt(effort)];
    return { to: address, value: hex(fee), data: encodeCall(functions.schedule, args) };
}

/// The call that asks for the fee.
export function estimate({ data, atMs, priority, effort }) {
    return { to: address, data: encodeCall(functions.estimate, [data, BigInt(Math.ceil(atMs / 1_000)), BigInt(priority), BigInt(effort)]) };
}

export const estimateOutputs = functions.estimate.outputs;

export function code({ handler, data, atMs, priority, effort, fee }, { url, account, isDev }) {
    const at = Math.ceil(atMs / 1_000);
    const coins = exact(fee);
    const { label } = PRIORITIES[priority];
    return {
        cast: `cast send --rpc-url ${url} ${isDev ? `--unlocked --from ${account}` : "--private-key $KEY"} --value ${coins}ether \\
  ${address} \\
  "schedule(address,bytes,uint64,uint8,uint64)" \\
  ${handler} ${data} ${at} ${priority} ${effort}`,
        Solidity: `ICallbackScheduler scheduler = ICallbackScheduler(${address});

uint64 id = scheduler.schedule{value: ${coins} ether}(
    ${solidityAddress(handler)},  // implements ICallbackHandler
    hex"${data.slice(2)}",
    ${at},  // Unix seconds
    ICallbackScheduler.Priority.${label},
    ${effort}  // effort: 1 is 2,100 gas
).id;`,
        viem: `import { createWalletClient, http, parseAbi, parseEther } from "viem";

const client = createWalletClient({ transport: http("${url}") });
await client.writeContract({
    account: "${account ?? "0x…"}",
    chain: null,
    address: "${address}",
    abi: parseAbi(["function schedule(address, bytes, uint64, uint8, uint64) payable returns ((uint64, uint64, uint8))"]),
    functionName: "schedule",
    args: ["${handler}", "${data}", ${at}n, ${priority}, ${effort}n],
    value: parseEther("${coins}"),
});`,
    };
}

export const summary = ({ effort }) => plural(num(effort), "effort", "effort");

export const runTopics = [events.CallbackExecuted.topic, events.CallbackFailed.topic];

export function runOf({ name, args }) {
    return { id: args[0].value.toString(), success: name === "CallbackExecuted", gasUsed: null, error: name === "CallbackFailed" ? args[1].value : null };
}
