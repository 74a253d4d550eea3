// What the node has told: the store that every page reads. Fed by one WebSocket.
import { untrack } from "svelte";
import { NO_METHOD, Rpc, isPassing, nodeUrl } from "./rpc.js";
import { untilDone } from "./retry.js";
import { big, hex, num, reason } from "./format.js";

const RUNS_KEPT = 50;

export const chain = $state({
    /// connecting, live or offline
    status: "connecting",
    head: null,
    finalized: null,
    chainId: null,
    client: "",
    isDev: false,
    role: "",
    /// Accounts that the node itself signs for.
    accounts: [],
    /// Runs that happened while this page was open, newest first.
    runs: [],
    /// Rises with everything that may change what is scheduled.
    changes: 0,
    /// The same, every ten seconds at most: for questions that cost the node more.
    slowChanges: 0,
    /// Rises with every reconnect: what was missed is asked for again.
    connects: 0,
    /// Rises when blocks that were shown are no more: a developer's chain went back, or another chain is at this address.
    history: 0,
    /// What the node refused to tell, and why. It is asked for again.
    problems: {},
    /// Milliseconds between this machine's clock and the chain's.
    offsetMs: 0,
});

export const clock = $state({ now: Date.now() });

const rpc = new Rpc(nodeUrl(), {
    onStatus: (status) => {
        if (status === "live") chain.connects += 1;
        chain.status = status;
        chain.problems = {};
    },
    onProblem: note,
});

function note(what, error) {
    const { [what]: _, ...others } = chain.problems;
    chain.problems = error ? { ...others, [what]: reason(error) } : others;
}

export const call = (method, ...params) => rpc.call(method, ...params);

setInterval(tick, 1_000);

function tick() {
    clock.now = Date.now() + chain.offsetMs;
}

/// Learns the chain's time: on a developer chain it is not this machine's.
export function setTime(ms) {
    chain.offsetMs = ms - Date.now();
    tick();
}

/// News come in bursts, at most ten blocks a second: pages hear of them four times a second.
let waiting = null;
const queued = { head: null, runs: [], changes: 0 };

function queue() {
    waiting ??= setTimeout(flush, 250);
}

function flush() {
    waiting = null;
    if (queued.head) {
        chain.head = queued.head;
        if (queued.head.timeMs > Date.now() + chain.offsetMs) setTime(queued.head.timeMs);
    }
    if (queued.runs.length) chain.runs = [...queued.runs.reverse(), ...chain.runs].slice(0, RUNS_KEPT);
    if (queued.changes) changed();
    queued.head = null;
    queued.runs = [];
    queued.changes = 0;
}

let slowly = null;

/// What is scheduled may be another now.
export function changed({ isOwn = false } = {}) {
    chain.changes += 1;
    if (isOwn) chain.slowChanges += 1;
    if (slowly) return;
    chain.slowChanges += 1;
    const pause = () => {
        const seen = chain.changes;
        slowly = setTimeout(() => {
            slowly = null;
            if (chain.changes === seen) return;
            chain.slowChanges += 1;
            pause();
        }, 10_000);
    };
    pause();
}

export function readHead(header) {
    return {
        number: num(header.number),
        hash: header.hash,
        timeMs: header.timestampMs ? num(header.timestampMs) : num(header.timestamp) * 1_000,
        baseFee: big(header.baseFeePerGas),
        gasUsed: num(header.gasUsed),
        gasLimit: num(header.gasLimit),
    };
}

rpc.subscribe("eth_subscribe", ["newHeads"], (header) => {
    queued.head = readHead(header);
    queue();
}, refresh);
rpc.subscribe("almanac_subscribe", ["runs"], (event) => {
    if (event.event === "reverted") goBack(num(event.blockNumber));
    else queued.runs = [...queued.runs, event].slice(-RUNS_KEPT);
    queued.changes += 1;
    queue();
});
rpc.subscribe("almanac_subscribe", ["schedules"], () => {
    queued.changes += 1;
    queue();
});

/// Forgets what happened after a block.
function goBack(last) {
    const isKept = (run) => num(run.blockNumber) <= last;
    chain.runs = chain.runs.filter(isKept);
    queued.runs = queued.runs.filter(isKept);
    queued.head = null;
    chain.history += 1;
    refresh();
}

let refreshes = 0;

/// Learns what the page needs from the start. Each answer counts by itself: one that is refused is asked for again, and
/// the others are shown meanwhile.
function refresh() {
    const mine = ++refreshes;
    const isWanted = () => mine === refreshes && chain.status === "live";
    const learn = (what, question) => untilDone(question, { isWanted, onError: (error) => note(what, error) }).then(() => isWanted() && note(what, null));
    const before = chain.head;
    learn("the last block", () => learnHead(before));
    learn("its chain", async () => (chain.chainId = num(await call("eth_chainId"))));
    learn("its version", async () => (chain.client = await call("web3_clientVersion")));
    learn("its accounts", async () => (chain.accounts = await optional([], "eth_accounts")));
    learn("its methods", async () => (chain.isDev = "evm" in (await optional({}, "rpc_modules"))));
    learn("its time", async () => setTime(num((await call("almanac_agendaBuckets", { buckets: 1 })).from.ms)));
    changed();
}

/// The last block; and whether the one that was shown before still is one.
async function learnHead(before) {
    const [block, same] = await Promise.all([call("eth_getBlockByNumber", "latest", false), before && call("eth_getBlockByNumber", hex(before.number), false)]);
    if (before && same?.hash !== before.hash) {
        chain.runs = [];
        chain.history += 1;
    }
    chain.head = readHead(block);
}

const optional = (none, method) => call(method).catch((error) => {
    if (error.code === NO_METHOD) return none;
    throw error;
});

/// What a page asks the node for: its value, whether it is being asked for, and what went wrong. `depends` returns what
/// the question is about, then what makes it worth asking again. One question is asked at a time, and the last value
/// stays meanwhile so that nothing jumps; only another subject begins with nothing. What the node is too busy for is
/// asked again, with longer and longer pauses.
export function ask(depends, question) {
    const answer = $state({ value: undefined, error: null, isLoading: true });
    let version = 0;
    let subject;
    let isAsking = false;
    let failures = 0;
    let later = null;
    let isGone = false;
    $effect(() => () => {
        isGone = true;
        clearTimeout(later);
    });
    $effect(() => {
        const [about] = depends();
        version += 1;
        if (about !== subject) {
            subject = about;
            [answer.value, answer.error, answer.isLoading] = [undefined, null, true];
        }
        untrack(run);
    });
    async function run() {
        if (isAsking) return;
        isAsking = true;
        for (let asked = -1; asked !== version; ) {
            if (asked !== -1) await new Promise((resolve) => setTimeout(resolve, 500));
            asked = version;
            const about = subject;
            try {
                const value = await question();
                if (about === subject) [answer.value, answer.error] = [value, null];
                failures = 0;
            } catch (error) {
                if (about === subject) answer.error = error;
                if (isPassing(error)) askLater();
            }
            if (about === subject) answer.isLoading = false;
        }
        isAsking = false;
    }
    function askLater() {
        clearTimeout(later);
        if (isGone) return;
        later = setTimeout(() => {
            version += 1;
            run();
        }, 1_000 * 2 ** Math.min(failures++, 4));
    }
    return answer;
}
