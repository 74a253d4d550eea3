// What a schedule does, in a few words. Several calls are never named by one of them: a reader may sign what this says.
import { big, coins, plural, shortHex } from "../lib/format.js";
import { decodeCall } from "./decode.js";

/// All calls of a schedule. The node lists them if there are several.
export function callsOf({ terms, target }) {
    return terms?.calls ?? [{ from: terms?.from, to: target, value: terms?.value ?? "0x0", input: terms?.input ?? "0x" }];
}

export const valueOf = (calls) => calls.reduce((sum, { value }) => sum + big(value), 0n);

export function whatOf(schedule) {
    const calls = callsOf(schedule);
    return calls.length > 1 ? severalCalls(calls) : oneCall(calls[0]);
}

function severalCalls(calls) {
    const value = valueOf(calls);
    return `${plural(calls.length, "call")} that ${value ? `pay ${coins(value)} in all` : "pay nothing"}`;
}

function oneCall({ to, value, input }) {
    const call = decodeCall(input);
    if (call) return `Call ${call.name}${big(value) ? ` with ${coins(value)}` : ""}`;
    if (input && input !== "0x") return `Call ${shortHex(to)}${big(value) ? ` with ${coins(value)}` : ""}`;
    return big(value) ? `Pay ${coins(value)}` : `Call ${shortHex(to)}`;
}
