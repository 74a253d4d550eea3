// Runs that happened before this page was opened, from the events of the doors.
import { call } from "./chain.svelte.js";
import { hex, num } from "./format.js";
import { DOORS } from "../doors/index.js";
import { decodeError, decodeLog } from "../doors/decode.js";

/// How many blocks to look back.
const BLOCKS = 500;

/// The last runs, newest first.
export async function recentRuns(head, count) {
    const topics = DOORS.flatMap((door) => door.runTopics);
    const fromBlock = hex(Math.max(0, head - BLOCKS));
    const logs = await call("eth_getLogs", { fromBlock, toBlock: "latest", address: DOORS.map(({ address }) => address), topics: [topics] });
    return logs.slice(-count).reverse().map(readRun).filter(Boolean);
}

function readRun(log) {
    const event = decodeLog(log);
    const door = DOORS.find(({ runTopics }) => runTopics.includes(log.topics[0]));
    if (!event) return null;
    const run = door.runOf(event);
    return { ...run, error: run.error && decodeError(run.error), transactionHash: log.transactionHash, timeMs: num(log.blockTimestamp) * 1_000 };
}
