// Hedera's schedule service: transactions that wait for signatures.
import abis from "virtual:abi";
import { decode, encodeCall } from "../lib/abi.js";
import { big, gwei, num, plural, tame } from "../lib/format.js";
import { decodeCall } from "./decode.js";
import { callsOf, whatOf } from "./what.js";

const { functions, events } = abis.IScheduleService;

export const address = "0x000000000000000000000000000000000000a103";
export const name = "signed";
export const title = "Waits for signatures";
export const spec = "Hedera";

const waits = ({ terms }) => terms?.waitForExpiry && terms.waitForExpiry !== "no";

export function describe(schedule) {
    const call = callsOf(schedule).length > 1 ? null : decodeCall(schedule.terms?.input);
    return { what: whatOf(schedule), how: waits(schedule) ? "once, at its time, if all have signed" : "once all have signed", call };
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
            words: `Agrees to all of it: ${whatOf(schedule)}. If it is the last signature, the calls run directly after it.`,
            transaction: () => ({ to: address, data: encodeCall(functions.signSchedule, [big(schedule.idNumber), []]) }),
        },
    ];
}

/// The body that signatures are about, as `IScheduleService.Body` names its parts.
const BODY = {
    type: "tuple",
    components: [
        { name: "calls", type: "tuple[]", components: ["from", "to", "value", "data"].map((name, nth) => ({ name, type: ["address", "address", "uint256", "bytes"][nth] })) },
        { name: "gasLimit", type: "uint64" },
        { name: "maxFeePerGas", type: "uint256" },
        { name: "memo", type: "string" },
        { name: "nonce", type: "uint32" },
        { name: "executionTime", type: "uint64" },
        { name: "waitForExpiry", type: "bool" },
    ],
};
const NOBODY = `0x${"0".repeat(40)}`;

/// The call that asks for what is not in the terms: the memo, and who pays.
export const infoCall = (schedule) => ({ to: address, data: encodeCall(functions.getScheduleInfo, [big(schedule.idNumber)]) });

/// Memo and payer from the answer to `infoCall`.
export function readInfo(answer) {
    const [, { value: info }] = decode(functions.getScheduleInfo.outputs, answer);
    const [{ value: body }] = decode([BODY], info.transactionBody);
    return { memo: tame(body.memo), payer: info.payerAccountID === NOBODY ? info.creatorAccountID : info.payerAccountID };
}

export const runTopics = [events.ScheduleExecuted.topic];

export function runOf({ args }) {
    return { id: args[0].value.toString(), success: args[1].value === 22n, gasUsed: null, error: null };
}
