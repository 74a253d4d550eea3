// FLIP-330 callbacks as a user of the scheduler meets them: estimates, cancels and statuses with ethers, events of the
// examples by their ABI with viem, an estimate with cast.

import assert from "node:assert/strict";
import { Contract, ContractFactory, Interface, JsonRpcProvider, NonceManager, Wallet, parseEther } from "ethers";
import { createPublicClient, decodeEventLog, http } from "viem";
import { accounts, artifact, finish, foundry, isNetwork, onlyAlmanac, passUntil, rpc, run, url } from "./check.mjs";

const SCHEDULER = "0x000000000000000000000000000000000000a102";
const [HIGH, MEDIUM, LOW] = [0, 1, 2];
const [SCHEDULED, EXECUTED, CANCELED] = [1n, 3n, 5n];
const WEEK = 7 * 24 * 60 * 60;
/** Seconds until an auction closes: on a network they really have to pass. */
const CLOSES_IN = isNetwork ? 6 : 100;

const provider = new JsonRpcProvider(url, undefined, { cacheTimeout: -1, pollingInterval: 50 });
const [alice, bob] = accounts.map(({ key }) => new NonceManager(new Wallet(key, provider)));
const viem = createPublicClient({ transport: http(url) });
const abi = [
    "event CallbackScheduled(uint64 indexed id, address indexed owner, address indexed handler, uint64 timestamp, uint8 priority, uint64 executionEffort)",
    "event CallbackProcessed(uint64 indexed id, uint64 executionEffort)",
    "event CallbackExecuted(uint64 indexed id)",
    "event CallbackFailed(uint64 indexed id, bytes reason)",
    "event CallbackCanceled(uint64 indexed id, uint256 refunded)",
    "event CallbackRefunded(uint64 indexed id, uint256 amount)",
    "error EffortTooLow(uint256 given, uint256 min)",
    "error FeeTooLow(uint256 given, uint256 needed)",
    "error HandlerNotAllowed(address handler, address caller)",
    "error NoCapacity(uint256 timestamp, uint256 effort, uint256 available)",
    "error NotOwner(uint256 id, address caller, address owner)",
    "error NotScheduled(uint256 id, uint8 status)",
    "error TimestampNotInFuture(uint256 given, uint256 blockTime)",
    "function schedule(address handler, bytes data, uint64 timestamp, uint8 priority, uint64 executionEffort) payable returns ((uint64 id, uint64 timestamp, uint8 status))",
    "function estimate(bytes data, uint64 timestamp, uint8 priority, uint64 executionEffort) view returns ((uint256 fee, uint64 timestamp, bytes reason))",
    "function cancel(uint64 id) returns (uint256)",
    "function getStatus(uint64 id) view returns (uint8)",
    "function getSlotAvailableEffort(uint64 timestamp, uint8 priority) view returns (uint64)",
    "function mayScheduleCallback(address handler, address scheduler) view returns (bool)",
];
const scheduler = new Contract(SCHEDULER, abi, alice);
const errors = new Interface(abi);

const now = async () => (await provider.getBlock(isNetwork ? "latest" : "pending")).timestamp;

async function deploy(name, args, value) {
    const { abi, bytecode } = artifact(name);
    const contract = await new ContractFactory(abi, bytecode, alice).deploy(...args, { value, gasLimit: 5_000_000n });
    await contract.waitForDeployment();
    return contract;
}

/** Books Alice herself: an account may be its own handler, and a call of it does nothing. */
async function book(timestamp, priority, effort) {
    const self = accounts[0].address;
    const order = [self, "0x", timestamp, priority, effort, { value: parseEther("1"), gasLimit: 1_000_000n }];
    const { logs } = await (await scheduler.schedule(...order)).wait();
    return scheduler.interface.parseLog(logs[0]).args;
}

/** What the same order would come to, without sending it. */
async function preview(timestamp, priority, effort) {
    const [from, to, value] = [accounts[0].address, SCHEDULER, `0x${parseEther("1").toString(16)}`];
    const data = errors.encodeFunctionData("schedule", [from, "0x", timestamp, priority, effort]);
    return await rpc("almanac_preview", { from, to, value, data });
}

/** The events of a callback, oldest first, as name and arguments. */
async function history(id) {
    const topic = `0x${id.toString(16).padStart(64, "0")}`;
    const logs = await provider.getLogs({ address: SCHEDULER, fromBlock: 0, topics: [null, topic] });
    return logs.map((log) => scheduler.interface.parseLog(log)).map(({ name, args }) => ({ name, ...args.toObject() }));
}

const names = async (id) => (await history(id)).map(({ name }) => name);

/** The events of one of the examples, decoded by viem with the ABI of its artifact. */
async function events(contract, name) {
    const logs = await viem.getLogs({ address: contract.target, fromBlock: 0n });
    const decoded = logs.map(({ topics, data }) => decodeEventLog({ abi: artifact(name).abi, topics, data }));
    return decoded.map(({ eventName, args }) => ({ eventName, ...args }));
}

/** The name of the custom error with which a call is refused, and its numbers. */
async function refusal(call) {
    const error = await call.then(() => assert.fail("it was not refused"), (error) => error);
    assert.ok(error.revert, error.message);
    return { name: error.revert.name, ...error.revert.args.toObject() };
}

await onlyAlmanac("an estimate is what the callback then costs", async () => {
    const at = (await now()) + 1_000;
    const { baseFeePerGas } = await provider.getBlock("latest");
    const gwei = 1_000_000_000n;
    for (const [priority, multiplier] of [[HIGH, 10n], [MEDIUM, 5n], [LOW, 2n]]) {
        const { fee, timestamp, reason } = await scheduler.estimate("0x", at, priority, 100);
        const price = baseFeePerGas > gwei ? baseFeePerGas : gwei;
        assert.deepEqual([fee, reason], [100n * 2_100n * price * multiplier, "0x"]);
        assert.equal(timestamp, priority === LOW ? 0n : BigInt(at));
        const { id } = await book(at, priority, 100);
        assert.equal(BigInt((await rpc("almanac_getSchedule", `0x${id.toString(16)}`)).escrow), fee);
    }
});
await onlyAlmanac("an estimate of what is refused has the reason", async () => {
    const { fee, reason } = await scheduler.estimate("0x", (await now()) + 1_000, HIGH, 10);
    assert.equal(fee, 0n);
    const { name, args } = errors.parseError(reason);
    assert.deepEqual([name, args.given], ["EffortTooLow", 10n]);
});
await onlyAlmanac("cast estimates", async () => {
    const signature = "estimate(bytes,uint64,uint8,uint64)((uint256,uint64,bytes))";
    const printed = await run(foundry("cast"), ["call", "--rpc-url", url, SCHEDULER, signature, "0x", "0", "2", "100"]);
    assert.match(printed, /^\(420000000000000 .*, 0, 0x\)$/, printed);
});
await onlyAlmanac("what is refused is named", async () => {
    const [self, other] = accounts.map(({ address }) => address);
    const refused = (...args) => refusal(scheduler.schedule.staticCall(...args));
    const at = (await now()) + 1_000;
    assert.equal((await refused(other, "0x", at, HIGH, 100, { value: parseEther("1") })).name, "HandlerNotAllowed");
    const { name, given, needed } = await refused(self, "0x", at, HIGH, 100, { value: 1n });
    assert.deepEqual([name, given, needed >= 2_100_000_000_000_000n], ["FeeTooLow", 1n, true]);
    assert.equal((await refused(self, "0x", 1, HIGH, 100, { value: parseEther("1") })).name, "TimestampNotInFuture");
});
await onlyAlmanac("cancel returns half and frees the second", async () => {
    const at = (await now()) + 2_000;
    const { id } = await book(at, HIGH, 101);
    assert.equal(await scheduler.getStatus(id), SCHEDULED);
    assert.equal(await scheduler.getSlotAvailableEffort(at, HIGH), 30_000n - 101n);
    const { name, caller } = await refusal(scheduler.connect(bob).cancel.staticCall(id));
    assert.deepEqual([name, caller], ["NotOwner", accounts[1].address]);
    const escrow = BigInt((await rpc("almanac_getSchedule", `0x${id.toString(16)}`)).escrow);
    await (await scheduler.cancel(id)).wait();
    const { refunded } = (await history(id)).at(-1);
    assert.equal(refunded, escrow / 2n);
    assert.equal(await scheduler.getStatus(id), CANCELED);
    assert.equal(await scheduler.getSlotAvailableEffort(at, HIGH), 30_000n);
    assert.equal((await refusal(scheduler.cancel.staticCall(id))).name, "NotScheduled");
});
await onlyAlmanac("a second that is full is seen, and Medium moves on", async () => {
    const at = (await now()) + 3_000;
    for (let n = 0; n < 3; n++) await book(at, HIGH, 9_999);
    const { reason } = await scheduler.estimate("0x", at, HIGH, 20);
    const { name, args } = errors.parseError(reason);
    assert.deepEqual([name, args.effort, args.available], ["NoCapacity", 20n, 3n]);
    assert.equal((await preview(at, HIGH, 20)).order.error, `will not fit: second ${at} has 3 effort left, not 20`);
    const moved = await preview(at, MEDIUM, 6_000);
    assert.deepEqual([Number(moved.order.due.ms), moved.runs[0].success], [(at + 1) * 1_000, true]);
    const { timestamp } = await book(at, MEDIUM, 6_000);
    assert.equal(timestamp, BigInt(at + 1));
    const { booked } = await rpc("almanac_capacity", { from: at * 1_000, to: (at + 1) * 1_000 });
    const rooms = booked.seconds.map(({ high, medium }) => [high, medium].map((one) => Number(one.booked)));
    assert.deepEqual(rooms, [[29_997, 0], [0, 6_000]]);
});
await onlyAlmanac("an auction closes itself in its second", async () => {
    const closesAt = (await now()) + CLOSES_IN;
    const auction = await deploy("SelfClosingAuction", [closesAt], parseEther("1"));
    const id = await auction.callback();
    await (await auction.connect(bob).bid({ value: 7n })).wait();
    const { entries } = await rpc("almanac_agenda", { from: closesAt * 1_000, to: closesAt * 1_000 });
    const shown = entries.find(({ idNumber }) => BigInt(idNumber) === id);
    assert.deepEqual([shown.priorityName, shown.door], ["high", "callback"]);
    await passUntil(closesAt + 1);
    const [bid, closed] = await events(auction, "SelfClosingAuction");
    assert.deepEqual([bid.eventName, closed.eventName], ["Bid", "Closed"]);
    assert.deepEqual([closed.winner, closed.amount], [accounts[1].address, 7n]);
    assert.deepEqual(await names(id), ["CallbackScheduled", "CallbackProcessed", "CallbackExecuted"]);
    assert.equal(await scheduler.getStatus(id), EXECUTED);
    const { status, end } = await rpc("almanac_getSchedule", `0x${id.toString(16)}`);
    assert.deepEqual([status, end.refunded], ["succeeded", "0x0"]);
    assert.equal((await refusal(auction.bid.staticCall({ value: 8n }))).name, "AuctionClosed");
});
await onlyAlmanac("a game ticks by itself", async () => {
    const every = isNetwork ? 1 : 60;
    const game = await deploy("GameTick", [every], parseEther("0.1"));
    const first = await game.nextId();
    assert.equal((await rpc("almanac_getSchedule", `0x${first.toString(16)}`)).lane, "spare");
    // Each tick books the next one: on a developer's chain the time has to move for each of them.
    for (let n = 0; n < 3; n++) await passUntil((await now()) + every + 1);
    const ticks = await events(game, "GameTick");
    assert.ok(ticks.length >= 3 && ticks.every(({ eventName }) => eventName === "Tick"), `${ticks.length} ticks`);
    assert.ok((await names(first)).includes("CallbackExecuted"));
    assert.notEqual(await game.nextId(), first);
});
if (!isNetwork) {
    await onlyAlmanac("a grant vests week by week", async () => {
        const weekly = parseEther("1");
        const heir = "0x00000000000000000000000000000000000000ee";
        const vesting = await deploy("WeeklyVesting", [heir, weekly, 3], parseEther("3.1"));
        for (let week = 1n; week <= 3n; week++) {
            await passUntil((await now()) + WEEK + 1);
            assert.equal(await provider.getBalance(heir), weekly * week);
        }
        const released = (await events(vesting, "WeeklyVesting")).filter(({ eventName }) => eventName === "Released");
        assert.deepEqual(released.map(({ amount }) => amount), [weekly, weekly, weekly]);
        assert.equal(await vesting.nextId(), 0n, "the series is over");
    });
}
finish();
