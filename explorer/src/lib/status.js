// How a schedule stands, as the colour of an outcome and a word.
import { num } from "./format.js";

const LOOKS = {
    pending: ["", "pending"],
    succeeded: ["ok", "✓ succeeded"],
    failed: ["bad", "✗ failed"],
    cancelled: ["", "cancelled"],
    quarantined: ["warn", "quarantined"],
};

export function statusOf(schedule) {
    const { status } = schedule;
    if (status === "exhausted") return ended(schedule);
    return Object.hasOwn(LOOKS, status) ? LOOKS[status] : ["", status];
}

/// That a job came to its end says nothing about how its runs went.
function ended({ runs, runsFailed, end }) {
    const [all, failed] = [num(runs), num(runsFailed)];
    const why = end?.reason ? `: ${end.reason}` : "";
    if (failed && failed === all) return ["bad", `✗ ended${why}, ${all === 1 ? "its run" : `all ${all} runs`} failed`];
    if (failed) return ["warn", `! ended${why}, ${failed} of ${all} runs failed`];
    return ["", `ended${why}`];
}
