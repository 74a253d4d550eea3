// The doors that this explorer knows. A new door is a file beside this one and a line here.
import * as callback from "./callback.js";
import * as cron from "./cron.js";
import * as market from "./market.js";
import * as signed from "./signed.js";
import { decodeCall } from "./decode.js";
import { whatOf } from "./what.js";

export const DOORS = [cron, callback, market, signed];

/// A door that is not known yet still shows what every schedule has.
const unknown = {
    title: "Schedule",
    spec: "",
    describe: (schedule) => ({ what: whatOf(schedule), how: schedule.terms?.door ?? "", call: decodeCall(schedule.terms?.input) }),
    sentence: (schedule) => `${whatOf(schedule)}, by the door ${schedule.terms?.door ?? "?"}.`,
    dueOf: ({ firstRun }) => (firstRun ? Number(firstRun.ms) : null),
    costOf: (_, receipt) => BigInt(receipt.gasUsed) * BigInt(receipt.effectiveGasPrice),
    facts: () => [],
    actions: () => [],
};

export const doorOf = (schedule) => DOORS.find(({ name }) => name === (schedule.terms?.door ?? schedule.door)) ?? unknown;

/// Names of system contracts, by address.
export const SYSTEM = new Map([
    [cron.address, "Cron registry"],
    [callback.address, "Callback scheduler"],
    [market.address, "Scheduled transactions"],
    [signed.address, "Schedule service"],
    ["0x000000000000000000000000000000000000016b", "Schedule service (HIP-1215)"],
    ["0x000000000000000000000000000000000000a104", "Accounts"],
    ["0x000000000000000000000000000000000000a105", "Parameters"],
    ["0x000000000000000000000000000000000000a1ff", "Ledger"],
    ["0x000000000000000000000000000000000000a1de", "Developer's edits"],
]);

export const LANES = [
    { name: "reserved", label: "Reserved", words: "callbacks of High and Medium priority" },
    { name: "cron", label: "Cron", words: "cron jobs" },
    { name: "market", label: "Market", words: "scheduled transactions by price" },
    { name: "spare", label: "Spare", words: "callbacks of Low priority" },
];
