// AIP-125's scheduled transactions as a user of the door meets them: inserts, cancels and runs with ethers, the same
// with viem and with cast, and the examples by the ABI of their artifacts.

import assert from "node:assert/strict";
import { Contract, ContractFactory, JsonRpcProvider, NonceManager, Wallet, parseEther, parseUnits } from "ethers";
import { createPublicClient, createWalletClient, defineChain, http, parseEventLogs } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { accounts, artifact, finish, foundry, isNetwork, onlyAlmanac, passUntil, rpc, run, url } from "./check.mjs";

const MARKET = "0x000000000000000000000000000000000000a101";
const { abi } = artifact("IScheduledTransactions");
const STATUS = ["Unknown", "Scheduled", "Waiting", "Running", "Succeeded", "Failed", "Cancelled", "Expired", "Shutdown"];
const ACTIVE = 0n;
const PRICE = parseUnits("50", "gwei");
const GAS = 100_000n;
/** Milliseconds until a run: on a network they really have to pass. */
const SOON = isNetwork ? 3_000 : 100_000;
const LATER = 3_600_000;

const provider = new JsonRpcProvider(url, undefined, { cacheTimeout: -1, pollingInterval: 50 });
const [alice, bob] = accounts.map(({ key }) => new NonceManager(new Wallet(key, provider)));
const market = new Contract(MARKET, abi, alice);

const nowMs = async () => Number((await rpc("eth_getBlockByNumber", isNetwork ? "latest" : "pending", false)).timestampMs);
const passUntilMs = (ms) => passUntil(Math.ceil(ms / 1_000) + 1);

/** A scheduled transaction of an account, so many milliseconds ahead. */
async function order(sender, inMs, fields = {}) {
    const scheduledTimeMs = BigInt((await nowMs()) + inMs);
    const call = { passSigner: true, to: accounts[4].address, value: 0n, data: "0x", expiryBlocks: 0 };
    return { senderAddr: sender, scheduledTimeMs, maxGasAmount: GAS, maxGasUnitPrice: PRICE, ...call, ...fields };
}

const deposit = ({ maxGasAmount, maxGasUnitPrice, value }) => maxGasAmount * maxGasUnitPrice + value;

/** Inserts one of Alice's, and gives its id and key. */
async function insert(txn) {
    const { logs } = await (await market.insert(txn, { value: deposit(txn), gasLimit: 1_000_000n })).wait();
    const { id, key } = market.interface.parseLog(logs[0]).args;
    return { id, key: [...key] };
}

async function status(key) {
    const [, status] = await market.get(key);
    return STATUS[status];
}

/** The events of a scheduled transaction, oldest first, as name and arguments. */
async function history(id) {
    const topic = `0x${id.toString(16).padStart(64, "0")}`;
    const logs = await provider.getLogs({ address: MARKET, fromBlock: 0, topics: [null, topic] });
    return logs.map((log) => ({ log, ...market.interface.parseLog(log) })).map(({ log, name, args }) => ({ log, name, ...args.toObject() }));
}

const names = async (id) => (await history(id)).map(({ name }) => name);
const shown = (id) => rpc("almanac_getSchedule", `0x${id.toString(16)}`);

/** The name of the custom error with which a call is refused. */
async function refusal(call) {
    const error = await call.then(() => assert.fail("it was not refused"), (error) => error);
    assert.ok(error.revert, error.message);
    return error.revert.name;
}

async function deploy(name, args, value) {
    const { abi, bytecode } = artifact(name);
    const contract = await new ContractFactory(abi, bytecode, alice).deploy(...args, { value, gasLimit: 5_000_000n });
    await contract.waitForDeployment();
    return contract;
}

/** What one scheduled transaction had cost, by its event, and that its deposit adds up. */
async function settled(id, txn) {
    const executed = (await history(id)).find(({ name }) => name === "TransactionExecutedEvent");
    const { gasUsed, gasUnitPriceCharged, refunded, success, log } = executed;
    const value = success ? txn.value : 0n;
    assert.equal(gasUsed * gasUnitPriceCharged + refunded + value, deposit(txn), "burned + refunded + value");
    return { gasUsed, gasUnitPriceCharged, refunded, success, block: log.blockNumber };
}

await onlyAlmanac("insert and get with ethers", async () => {
    assert.equal(await market.service(), ACTIVE);
    const txn = await order(accounts[0].address, LATER, { value: 7n, data: "0x0102" });
    const { time, gas, bid, value, data } = { time: Number(txn.scheduledTimeMs), gas: Number(GAS), bid: Number(PRICE), value: "0x7", data: "0x0102" };
    const estimate = await rpc("almanac_estimateSchedule", { time, gas, bid, value, data });
    assert.equal(BigInt(estimate.deposit), deposit(txn));
    const { id, key } = await insert(txn);
    const [held, held_status, held_id, held_deposit] = await market.get(key);
    assert.deepEqual([held.senderAddr, held.scheduledTimeMs, held.data], [txn.senderAddr, txn.scheduledTimeMs, "0x0102"]);
    assert.deepEqual([held_status, held_id, held_deposit], [1n, id, deposit(txn)]);
    assert.deepEqual([...(await market.keyOf(id))], key);
    const { door, market: lane } = { door: (await shown(id)).terms.door, ...(await shown(id)) };
    assert.deepEqual([door, lane.key.txnId, BigInt(lane.bid)], ["market", key[2], PRICE]);
});
await onlyAlmanac("what is refused is named", async () => {
    const txn = await order(accounts[0].address, LATER);
    const refused = (txn, value) => refusal(market.insert.staticCall(txn, { value }));
    assert.equal(await refused(txn, deposit(txn) - 1n), "DepositTooLow");
    assert.equal(await refused({ ...txn, senderAddr: accounts[1].address }, deposit(txn)), "NotSender");
    assert.equal(await refused({ ...txn, scheduledTimeMs: 1n }, deposit(txn)), "TimeNotInFuture");
    assert.equal(await refused({ ...txn, maxGasAmount: 20_999n }, deposit(txn)), "GasAmountOutOfBounds");
});
await onlyAlmanac("cancel returns the whole deposit, to the sender alone", async () => {
    const txn = await order(accounts[0].address, LATER);
    const { id, key } = await insert(txn);
    assert.equal(await refusal(market.connect(bob).cancel.staticCall(key)), "NotSender");
    await (await market.cancel(key)).wait();
    assert.equal(await status(key), "Cancelled");
    const { name, refunded } = (await history(id)).at(-1);
    assert.deepEqual([name, refunded], ["TransactionCancelledEvent", deposit(txn)]);
    assert.equal(await refusal(market.cancel.staticCall(key)), "AlreadyEnded");
});
await onlyAlmanac("a run is seen, and its refund", async () => {
    const heir = "0x00000000000000000000000000000000000000aa";
    const txn = await order(accounts[0].address, SOON, { to: heir, value: 11n });
    const { id, key } = await insert(txn);
    await passUntilMs(Number(txn.scheduledTimeMs));
    assert.equal(await status(key), "Succeeded");
    assert.equal(await provider.getBalance(heir), 11n);
    const { gasUsed, refunded, success, block } = await settled(id, txn);
    assert.deepEqual([gasUsed, success], [21_000n, true]);
    const [before, after] = await Promise.all([block - 1, block].map((number) => provider.getBalance(accounts[0].address, number)));
    assert.equal(after - before, refunded, "in the block of the run");
    const { status: state, end } = await shown(id);
    assert.deepEqual([state, BigInt(end.refunded)], ["succeeded", refunded]);
    const { timestampMs } = await rpc("eth_getBlockByNumber", `0x${block.toString(16)}`, false);
    assert.ok(BigInt(timestampMs) >= txn.scheduledTimeMs, "never early");
    assert.equal(await refusal(market.cancel.staticCall(key)), "AlreadyExecuted");
});
await onlyAlmanac("a run that reverts pays for its gas and says why", async () => {
    const txn = await order(accounts[0].address, SOON, { to: MARKET, data: "0x01020304" });
    const { id, key } = await insert(txn);
    await passUntilMs(Number(txn.scheduledTimeMs));
    assert.equal(await status(key), "Failed");
    assert.equal((await settled(id, txn)).success, false);
    assert.deepEqual(await names(id), ["TransactionScheduledEvent", "TransactionExecutedEvent", "TransactionFailedEvent"]);
});
await onlyAlmanac("viem inserts, reads and sees the run", async () => {
    const chain = defineChain({ id: Number(await rpc("eth_chainId")), name: "Almanac", nativeCurrency: { name: "Coin", symbol: "C", decimals: 18 }, rpcUrls: { default: { http: [url] } } });
    const account = privateKeyToAccount(accounts[1].key);
    const [wallet, client] = [createWalletClient({ account, chain, transport: http(url) }), createPublicClient({ chain, transport: http(url), pollingInterval: 50 })];
    const write = async (functionName, args, value = 0n) => {
        const hash = await wallet.writeContract({ address: MARKET, abi, functionName, args, value, gas: 1_000_000n });
        return client.waitForTransactionReceipt({ hash });
    };
    const read = (functionName, args) => client.readContract({ address: MARKET, abi, functionName, args });
    const insert = async (txn) => {
        const { logs } = await write("insert", [txn], deposit(txn));
        return parseEventLogs({ abi, logs, eventName: "TransactionScheduledEvent" })[0].args;
    };
    const txn = await order(account.address, SOON);
    const { id, key } = await insert(txn);
    const [held, status, , amount] = await read("get", [key]);
    assert.deepEqual([held.maxGasUnitPrice, STATUS[status], amount], [PRICE, "Scheduled", deposit(txn)]);
    const far = await insert(await order(account.address, LATER));
    const { status: cancelled } = await write("cancel", [far.key]);
    assert.deepEqual([cancelled, STATUS[(await read("get", [far.key]))[1]]], ["success", "Cancelled"]);
    await passUntilMs(Number(txn.scheduledTimeMs));
    assert.equal(STATUS[(await read("get", [key]))[1]], "Succeeded");
    const { runs } = await rpc("almanac_getRuns", `0x${id.toString(16)}`);
    const receipt = await client.getTransactionReceipt({ hash: runs[0].receipt.transactionHash });
    const [{ args }] = parseEventLogs({ abi, logs: receipt.logs, eventName: "TransactionExecutedEvent" });
    assert.deepEqual([args.id, args.gasUnitPriceCharged], [id, receipt.effectiveGasPrice]);
    assert.equal(args.gasUsed * args.gasUnitPriceCharged + args.refunded, deposit(txn));
});
await onlyAlmanac("cast inserts, cancels all and claims", async () => {
    const { address, key: secret } = accounts[2];
    const cast = (...args) => run(foundry("cast"), [args[0], "--rpc-url", url, ...args.slice(1)]);
    const send = async (...args) => JSON.parse(await cast("send", "--private-key", secret, "--json", "--gas-limit", "1000000", ...args));
    const txn = await order(address, LATER);
    const { scheduledTimeMs, to } = txn;
    const tuple = `(${address},${scheduledTimeMs},${GAS},${PRICE},true,${to},0,0x,0)`;
    const signature = "insert((address,uint64,uint64,uint64,bool,address,uint256,bytes,uint32))";
    const { status: inserted, logs } = await send("--value", `${deposit(txn)}`, MARKET, signature, tuple);
    assert.equal(inserted, "0x1");
    const id = BigInt(logs[0].topics[1]);
    const { time, gasPriority, txnId } = (await shown(id)).market.key;
    const key = `(${BigInt(time)},${BigInt(gasPriority)},${txnId})`;
    const printed = await cast("call", MARKET, "keyOf(uint256)((uint64,uint64,bytes32))", `${id}`);
    assert.ok(printed.includes(txnId), printed);
    assert.equal((await send(MARKET, "cancelAll()")).status, "0x1");
    assert.equal((await shown(id)).market.isClaimable, true);
    const before = await provider.getBalance(address);
    // Anyone claims, and the sender is paid.
    await (await market.connect(bob).claim([time, gasPriority, txnId])).wait();
    assert.equal((await provider.getBalance(address)) - before, deposit(txn));
    assert.equal((await shown(id)).status, "cancelled");
    const answer = await cast("call", MARKET, "get((uint64,uint64,bytes32))((address,uint64,uint64,uint64,bool,address,uint256,bytes,uint32),uint8,uint256,uint256)", key);
    assert.ok(answer.split("\n")[1].startsWith("6"), `status Cancelled: ${answer}`);
});
await onlyAlmanac("a payment leaves later, and its guardian stops another", async () => {
    const heir = "0x00000000000000000000000000000000000000bb";
    const vault = await deploy("DelayedPayment", [accounts[1].address, SOON], parseEther("2"));
    await (await vault.order(heir, 1_000n, PRICE)).wait();
    await (await vault.order(heir, 500n, PRICE)).wait();
    await (await vault.connect(bob).stop(1)).wait();
    const at = await nowMs();
    await passUntilMs(at + SOON);
    assert.equal(await provider.getBalance(heir), 1_000n);
});
await onlyAlmanac("long work is done in slices", async () => {
    const bank = await deploy("SlicedWork", [], parseEther("1"));
    for (let n = 1; n <= 20; n++) await (await bank.open(`0x${n.toString(16).padStart(40, "c")}`, 1_000n, { gasLimit: 300_000n })).wait();
    await (await bank.start(450_000n, PRICE)).wait();
    // Each slice schedules the next one: on a developer's chain the time has to move for each of them.
    for (let n = 0; n < 8 && (await bank.reached()) < 20n; n++) await passUntilMs((await nowMs()) + 1_000);
    assert.equal(await bank.reached(), 20n);
    const slices = await bank.queryFilter(bank.filters.Sliced);
    assert.ok(slices.length > 1, `${slices.length} slices`);
    assert.equal((await bank.queryFilter(bank.filters.RoundDone)).length, 1);
    assert.equal(await bank.balanceOf(`0x${"1".padStart(40, "c")}`), 1_010n);
});
await onlyAlmanac("a dead man's switch releases when its owner is silent", async () => {
    const heir = "0x00000000000000000000000000000000000000cc";
    const held = await deploy("DeadMansSwitch", [heir, 2 * SOON, PRICE], parseEther("1"));
    await (await held.alive(PRICE)).wait();
    const deadline = Number(await held.deadlineMs());
    await passUntilMs(deadline);
    assert.equal(await held.isReleased(), true);
    // The deposit of the release was not in the balance yet.
    assert.equal(await provider.getBalance(heir), parseEther("1") - GAS * PRICE);
    assert.equal((await held.queryFilter(held.filters.Released)).length, 1);
});
finish();
