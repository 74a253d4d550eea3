// Schedules by id. Terms never change, so that a name is asked for once.
import { call, chain } from "./chain.svelte.js";
import { remember } from "./remember.js";

/// A schedule whose terms matter, and not its present state.
export const termsOf = remember((id) => call("almanac_getSchedule", id), () => chain.history);
