// Hedera's schedule service: transactions that wait for signatures.
import abis from "virtual:abi";
import { encodeCall } from "../lib/abi.js";
import { big, gwei, num, plural, short, shortHex } from "../lib/format.js";
import { decodeCall } from "./decode.js";

const { functions, events } = abis.IScheduleService;

export const address = "0x000000000000000000000000000000000000a103";
export const name = "signed";
export const title = "Waits for signatures";
export const spec = "Hedera";

const waits = ({ terms }) => terms?.waitForExpiry && terms.waitForExpiry !== "no";

export function describe(schedule) {
    const { terms, target } = schedule;
    const call = decodeCall(terms?.input);
    const value = big(terms?.value);
    const what = call ? `Call ${call.name}` : value ? `Pay ${short(value)} coins` : `Call ${shortHex(target)}`;
    return { what, how: waits(schedule) ? "once, at its time, if all have signed" : "once all have signed", call };
}

export function sentence(schedule) {
    const { what } = describe(schedule);
    return waits(schedule) ? `${what}, at its time, if everyone it needs has signed by then.` : `${what}, as soon as everyone it needs has signed.`;
}

/// When it runs; without a time it has none, only one at which it expires.
export function dueOf(schedule) {
    return waits(schedule) && schedule.firstRun ? num(schedule.firstRun.ms) : null;
}

export function costOf(_, receipt) {
    return big(receipt.gasUsed) * big(receipt.effectiveGasPrice);
}

export function facts({ terms }) {
    return [
        ["Gas limit of all its calls", plural(num(terms.gasLimit), "gas", "gas")],
        ["Waits above a base fee of", `${gwei(terms.maxFeePerGas)} gwei`],
        ["Round", `${num(terms.round)}: signatures of other rounds do not count`],
    ];
}

export function actions(schedule) {
    return [
        {
            name: "sign",
            label: "Sign",
            who: "anyone",
            words: "Signs with the account that sends this. If it is the last signature, the calls run directly after it.",
            transaction: () => ({ to: address, data: encodeCall(functions.signSchedule, [big(schedule.idNumber), []]) }),
        },
    ];
}

export const runTopics = [events.ScheduleExecuted.topic];

export function runOf({ args }) {
    return { id: args[0].value.toString(), success: args[1].value === 22n, gasUsed: null, error: null };
}
