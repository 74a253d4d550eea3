// ARC-21's own test cases by their numbers, with ethers, as a user of the registry would meet them.

import assert from "node:assert/strict";
import { Contract, ContractFactory, JsonRpcProvider, NonceManager, Wallet, parseEther } from "ethers";
import { accounts, artifact, finish, isAlmanac, onlyAlmanac, passUntil, url, wait } from "./check.mjs";

const RUN_GAS = 100_000n;
const provider = new JsonRpcProvider(url, undefined, { cacheTimeout: -1, pollingInterval: 50 });
const [alice, bob] = accounts.map(({ key }) => new NonceManager(new Wallet(key, provider)));
const cron = new Contract(
    "0x0000000000000000000000000000000000000006",
    [
        "event JobScheduled(uint256 indexed id, address indexed owner, address indexed target, uint256 nextRunAt)",
        "event JobExecuted(uint256 indexed id, bool success, uint256 gasUsed)",
        "event JobCancelled(uint256 indexed id, address indexed owner, uint256 refunded)",
        "event JobExhausted(uint256 indexed id, string reason)",
        "error TimeNotInFuture(uint256 given, uint256 blockTime)",
        "error EscrowTooLow(uint256 given, uint256 needed)",
        "error NotJobOwner(uint256 id, address caller, address owner)",
        "function schedule(address target, string method, bytes args, uint256 nextRunAt, uint256 intervalSec, uint256 maxRuns, uint256 gasLimit) payable returns (uint256)",
        "function cancel(uint256 id) returns (bool)",
        "function getJob(uint256 id) view returns ((uint256 id, address owner, address target, bytes4 selector, bytes args, uint256 nextRunAt, uint256 intervalSec, uint256 maxRuns, uint256 runsLeft, uint256 gasLimit, uint256 gasEscrow))",
    ],
    alice,
);
let counter;
if (isAlmanac) {
    const { abi, bytecode } = artifact("Counter");
    counter = await new ContractFactory(abi, bytecode, alice).deploy(1_000_000n);
    await counter.waitForDeployment();
}

const now = async () => (await provider.getBlock("pending")).timestamp;

/** What an order says where a case does not say otherwise: the counter grows by one, once, well paid for. */
const order = (given) => ({ interval: 0, runs: 0, gas: RUN_GAS, value: parseEther("0.01"), ...given });

/** The arguments of `schedule`, by the method's name, as the source's interface has them. */
function args({ at, interval, runs, gas, value }) {
    const by = counter.interface.getAbiCoder().encode(["uint256"], [1n]);
    return [counter.target, "increase(uint256)", by, at, interval, runs, gas, { value, gasLimit: 500_000n }];
}

/** Schedules the same order so often, and gives the jobs: the order with an id. */
async function scheduleMany(count, given) {
    const sent = [];
    for (let n = 0; n < count; n++) sent.push(await cron.schedule(...args(order(given))));
    const receipts = await Promise.all(sent.map((tx) => tx.wait()));
    return receipts.map(({ logs }) => ({ ...order(given), id: cron.interface.parseLog(logs[0]).args.id }));
}

const schedule = async (given) => (await scheduleMany(1, given))[0];

/** The name of the custom error with which a call is refused, and its numbers. */
async function refusal(call) {
    const error = await call.then(() => assert.fail("it was not refused"), (error) => error);
    assert.ok(error.revert, error.message);
    return { name: error.revert.name, ...error.revert.args.toObject() };
}

/** The events of a job, oldest first, as name and arguments. */
async function history({ id }) {
    const logs = await provider.getLogs({ address: cron.target, fromBlock: 0, topics: [null, toTopic(id)] });
    return logs.map((log) => cron.interface.parseLog(log)).map(({ name, args }) => ({ name, ...args.toObject() }));
}

const toTopic = (id) => `0x${id.toString(16).padStart(64, "0")}`;
const runs = async (job) => (await history(job)).filter(({ name }) => name === "JobExecuted");
const ends = async (job) => (await history(job)).filter(({ name }) => name === "JobExhausted").map(({ reason }) => reason);
const isGone = async ({ id }) => (await cron.getJob(id)).owner === `0x${"0".repeat(40)}`;

await onlyAlmanac("arc21 source case 1, a time in the past is refused", async () => {
    const past = order({ at: (await now()) - 1 });
    const { name, given } = await refusal(cron.schedule.staticCall(...args(past)));
    assert.deepEqual([name, given], ["TimeNotInFuture", BigInt(past.at)]);
});
await onlyAlmanac("arc21 source case 2, too little value for one run is refused", async () => {
    const poor = order({ at: (await now()) + 1_000, value: RUN_GAS });
    const { name, given, needed } = await refusal(cron.schedule.staticCall(...args(poor)));
    assert.deepEqual([name, given], ["EscrowTooLow", RUN_GAS]);
    assert.ok(needed > RUN_GAS && needed % RUN_GAS === 0n, `${needed} is gas times base fee`);
});
// Scheduled together, so that time has to pass only once: on a network it really does.
let [once, thrice, endless, cancelled, large] = [];
if (isAlmanac) {
    const at = (await now()) + wait.first;
    const { baseFeePerGas } = await provider.getBlock("latest");
    once = await schedule({ at });
    thrice = await schedule({ at, interval: wait.interval, runs: 3 });
    endless = await schedule({ at, interval: wait.interval, value: RUN_GAS * baseFeePerGas });
    cancelled = await schedule({ at });
    // Three of these fill the 15,000,000 gas of a block's lane. The others have ended by then.
    large = await scheduleMany(7, { at: at + 14 * wait.interval, gas: 5_000_000n, value: parseEther("0.1") });
}

await onlyAlmanac("arc21 source case 6, cancel refunds and removes", async () => {
    await (await cron.cancel(cancelled.id)).wait();
    const { name, refunded, owner } = (await history(cancelled)).at(-1);
    assert.deepEqual([name, refunded, owner], ["JobCancelled", cancelled.value, accounts[0].address]);
    assert.ok(await isGone(cancelled));
    await passUntil(cancelled.at + 1);
    assert.deepEqual(await runs(cancelled), []);
});
await onlyAlmanac("arc21 source case 3, a one-shot fires once and is gone", async () => {
    await passUntil(once.at + 12 * wait.interval);
    assert.deepEqual((await runs(once)).map(({ success }) => success), [true]);
    assert.ok(await isGone(once));
});
await onlyAlmanac("arc21 source case 4, three runs, then exhausted", async () => {
    assert.deepEqual((await runs(thrice)).map(({ success }) => success), [true, true, true]);
    assert.deepEqual(await ends(thrice), ["max runs reached"]);
    assert.ok(await isGone(thrice));
});
await onlyAlmanac("arc21 source case 5, unlimited runs until the escrow is empty", async () => {
    // Its money was for one run. The base fee falls while nothing else happens, to a tenth at most.
    const ran = (await runs(endless)).length;
    assert.ok(ran >= 1 && ran <= 10, `${ran} runs`);
    assert.deepEqual(await ends(endless), ["insufficient escrow"]);
    assert.ok(await isGone(endless));
    assert.equal(await counter.value(), BigInt(1 + 3 + ran), "no run was lost, and none done twice");
});
await onlyAlmanac("arc21 source case 7, cancel by another is refused", async () => {
    const { id, value } = await schedule({ at: (await now()) + 1_000 });
    const { name, caller, owner } = await refusal(cron.connect(bob).cancel.staticCall(id));
    assert.deepEqual([name, caller, owner], ["NotJobOwner", accounts[1].address, accounts[0].address]);
    assert.equal((await cron.getJob(id)).gasEscrow, value, "nothing changed");
});
await onlyAlmanac("arc21 source case 8, what does not fit the budget rolls over in order", async () => {
    await passUntil(large[0].at + 2);
    const ids = large.map(({ id }) => id);
    const logs = await provider.getLogs({ address: cron.target, fromBlock: 0 });
    const said = logs.map((log) => ({ block: log.blockNumber, ...cron.interface.parseLog(log) }));
    const ran = said.filter(({ name, args }) => name === "JobExecuted" && ids.includes(args.id));
    assert.deepEqual(ran.map(({ args }) => args.id), ids, "in the order in which they were scheduled");
    const blocks = [...new Set(ran.map(({ block }) => block))];
    assert.deepEqual(blocks.map((block) => ran.filter((run) => run.block === block).length), [3, 3, 1]);
});
finish();
