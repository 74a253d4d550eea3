// Schedules by id. Terms never change, so that a name is asked for once.
import { call } from "./chain.svelte.js";

const KEPT = 500;
const known = new Map();

/// A schedule whose terms matter, and not its present state.
export function termsOf(id) {
    if (!known.has(id)) {
        if (known.size >= KEPT) known.delete(known.keys().next().value);
        const asked = call("almanac_getSchedule", id).catch((error) => {
            known.delete(id);
            throw error;
        });
        known.set(id, asked);
    }
    return known.get(id);
}
