// ARC-21: cron jobs.
import abis from "virtual:abi";
import { encodeCall } from "../lib/abi.js";
import { big, coins as coinsOf, exact, hex, interval, num, plural, solidityAddress } from "../lib/format.js";
import { decodeCall } from "./decode.js";

const { functions, events } = abis.ICronRegistry;

export const address = "0x0000000000000000000000000000000000000006";
export const name = "cron";
export const title = "Cron job";
export const spec = "ARC-21";

/// What the form for a new one says.
export const form = {
    label: "Cron job",
    words: "A call of any contract, once or every interval, paid from an escrow. ARC-21.",
    target: "Target",
    targetHint: "The contract that is called.",
    legend: "Gas and escrow",
    costs: "go into escrow",
    send: "Schedule it",
};

/// What a schedule is, in words.
export function describe(schedule) {
    const { terms } = schedule;
    const call = decodeCall(terms?.input);
    return { what: whatOf(call, terms), how: rhythm(schedule), call };
}

function whatOf(call, terms) {
    if (call?.name === "chargeSubscription" && call.args) return `Charge subscription #${call.args[0].value}`;
    if (call) return `Call ${call.name}`;
    return terms?.input?.length >= 10 ? `Call ${terms.input.slice(0, 10)}` : "Call without data";
}

function rhythm({ terms, runs, runsLeft }) {
    const seconds = num(terms?.intervalMs) / 1_000;
    if (!seconds) return "once";
    const every = `every ${interval(seconds)}`;
    if (terms.runsMax == null || num(terms.runsMax) === 0) return `${every}, until the escrow is empty`;
    const left = !num(runsLeft) ? "" : ` · ${num(runsLeft)} left`;
    return `${every}, ${num(runs)} of ${num(terms.runsMax)} runs done${left}`;
}

/// The whole order in one sentence.
export function sentence(schedule) {
    const { terms } = schedule;
    const seconds = num(terms?.intervalMs) / 1_000;
    const { what } = describe(schedule);
    if (!seconds) return `${what}, once.`;
    const runs = num(terms.runsMax);
    return `${what} every ${interval(seconds)}, ${runs ? plural(runs, "time") : "until the escrow is empty"}.`;
}

/// When the n-th run was due.
export function dueOf(schedule, run) {
    const { terms, firstRun } = schedule;
    if (!firstRun || (terms?.catchUp && terms.catchUp !== "all" && num(terms.intervalMs))) return null;
    return num(firstRun.ms) + num(run) * num(terms?.intervalMs);
}

/// What a run cost, from its receipt.
export function costOf({ terms }, receipt) {
    const [limit, used] = [big(terms.gasLimit), big(receipt.gasUsed)];
    const least = limit - limit / 2n;
    const gas = terms.charge === "gasUsed" ? (used > least ? used : least) : limit;
    return gas * big(receipt.effectiveGasPrice);
}

/// Terms that only this door has, for the list of details.
export function facts({ terms }) {
    return [
        ["Gas limit of a run", plural(num(terms.gasLimit), "gas", "gas")],
        ["A run costs", terms.charge === "gasUsed" ? "its gas, and at least half of its gas limit, × base fee" : "gas limit × base fee"],
        ["After a halt", { all: "every missed run is made up for", latest: "only the latest missed run happens", skip: "missed runs are skipped" }[terms.catchUp] ?? terms.catchUp],
        ["Refunds go to", terms.refundTo],
    ];
}

/// What somebody can do with a schedule of this door.
export function actions(schedule) {
    const id = big(schedule.idNumber);
    return [
        {
            name: "cancel",
            label: "Cancel",
            who: "owner",
            words: `Ends the job. ${coinsOf(schedule.escrow)} of escrow return to ${schedule.terms?.refundTo === schedule.owner ? "the owner" : schedule.terms?.refundTo}.`,
            transaction: () => ({ to: address, data: encodeCall(functions.cancel, [id]) }),
        },
        {
            name: "topUp",
            label: "Top up",
            who: "anyone",
            needs: "coins",
            words: "Adds coins to the escrow, so that it lasts for more runs.",
            transaction: (value) => ({ to: address, value: hex(value), data: encodeCall(functions.topUp, [id]) }),
        },
    ];
}

/// The id in the receipt of an order.
export function createdId(receipt) {
    const log = receipt.logs.find(({ topics }) => topics[0] === events.JobScheduled.topic);
    return log ? BigInt(log.topics[1]).toString() : null;
}

/// The order of the form.
export function order({ target, data, atMs, intervalSeconds, runsMax, gasLimit, escrow }) {
    const args = [target, data, BigInt(Math.ceil(atMs / 1_000)), BigInt(intervalSeconds), BigInt(runsMax), BigInt(gasLimit)];
    return { to: address, value: hex(escrow), data: encodeCall(functions.scheduleCalldata, args) };
}

/// The same order in other languages.
export function code({ target, data, atMs, intervalSeconds, runsMax, gasLimit, escrow }, { url, account, isDev }) {
    const at = Math.ceil(atMs / 1_000);
    const coins = exact(escrow);
    const signature = "scheduleCalldata(address,bytes,uint256,uint256,uint256,uint256)";
    return {
        cast: `cast send --rpc-url ${url} ${isDev ? `--unlocked --from ${account}` : "--private-key $KEY"} --value ${coins}ether \\
  ${address} \\
  "${signature}" \\
  ${target} ${data} ${at} ${intervalSeconds} ${runsMax} ${gasLimit}`,
        Solidity: `ICronRegistry cron = ICronRegistry(${address});

uint256 id = cron.scheduleCalldata{value: ${coins} ether}(
    ${solidityAddress(target)},
    hex"${data.slice(2)}",
    ${at},  // first run, Unix seconds
    ${intervalSeconds},  // seconds between runs; 0 runs once
    ${runsMax},  // runs; 0 until the escrow is empty
    ${gasLimit}  // gas of a run
);`,
        viem: `import { createWalletClient, http, parseAbi, parseEther } from "viem";

const client = createWalletClient({ transport: http("${url}") });
await client.writeContract({
    account: "${account ?? "0x…"}",
    chain: null,
    address: "${address}",
    abi: parseAbi(["function ${signature} payable returns (uint256)"]),
    functionName: "scheduleCalldata",
    args: ["${target}", "${data}", ${at}n, ${intervalSeconds}n, ${runsMax}n, ${gasLimit}n],
    value: parseEther("${coins}"),
});`,
    };
}

/// The event of a run.
export const runTopics = [events.JobExecuted.topic];

export function runOf({ args }) {
    return { id: args[0].value.toString(), success: args[1].value, gasUsed: Number(args[2].value), error: null };
}
