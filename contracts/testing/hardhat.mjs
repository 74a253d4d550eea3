// The chain's doors in Hardhat's in-process network, whose EVM does not have them (docs/testing-contracts.md).

import fs from "node:fs";

/** The registry's real address is that of a precompile, which this network cannot replace. */
export const CRON = "0x000000000000000000000000000000000000a106";
export const SCHEDULED = "0x000000000000000000000000000000000000a101";
export const CALLBACKS = "0x000000000000000000000000000000000000a102";
export const ACCOUNTS = "0x000000000000000000000000000000000000a104";
const PAYER = "0x000000000000000000000000000000000000a1cc";

/** Gas of a transaction that runs others: below the cap on a transaction. */
const ALL_GAS = 16_000_000n;
/** Gas of a transaction that only writes down. */
const SOME_GAS = 4_000_000n;
const NEVER = 2n ** 256n - 1n;
const UNMINED =
    "a block lacks a run: give blocks more gas in Hardhat's config, or let a sender that creates contracts run once per block";

const hex = (number) => `0x${number.toString(16)}`;
const artifact = (name) =>
    JSON.parse(fs.readFileSync(new URL(`../artifacts/${name}.json`, import.meta.url), "utf8"));

/**
 * Puts the fakes at their addresses. Takes an EIP-1193 provider and viem's `encodeFunctionData` and
 * `decodeFunctionResult`.
 */
export async function installDoors(provider, { encodeFunctionData, decodeFunctionResult }) {
    const rpc = (method, ...params) => provider.request({ method, params });
    const cron = { address: CRON, ...artifact("FakeCronRegistry") };
    const scheduled = { address: SCHEDULED, ...artifact("FakeScheduledTransactions") };
    const callbacks = { address: CALLBACKS, ...artifact("FakeCallbackScheduler") };
    const accounts = { address: ACCOUNTS, ...artifact("FakeAccounts") };
    const payer = { address: PAYER, ...artifact("FakePayer") };
    for (const { address, deployedBytecode } of [cron, scheduled, callbacks, accounts, payer]) {
        await rpc("hardhat_setCode", address, deployedBytecode);
    }
    const now = async () => BigInt((await rpc("eth_getBlockByNumber", "latest", false)).timestamp);

    const read = async ({ address, abi }, functionName, args = []) => {
        const data = await rpc("eth_call", { to: address, data: encodeFunctionData({ abi, functionName, args }) }, "latest");
        return decodeFunctionResult({ abi, functionName, data });
    };
    /** A transaction in a door's own name. */
    const own = ({ address, abi }, gas, functionName, args = []) => ({
        from: address, to: address, value: 0n, data: encodeFunctionData({ abi, functionName, args }), gas,
    });

    /** When something is due next, in milliseconds. */
    const nextDue = async () => {
        const seconds = [await read(cron, "nextDue"), await read(callbacks, "nextDue")];
        const all = [...seconds.map((due) => (due === NEVER ? due : due * 1_000n)), await read(scheduled, "nextDue")];
        return all.reduce((a, b) => (a < b ? a : b));
    };

    /** One block with these transactions, in this order. What they pay is lent: a door's money is the escrow of others. */
    const mine = async (second, transactions) => {
        const price = BigInt((await rpc("eth_getBlockByNumber", "pending", false)).baseFeePerGas);
        const lent = new Map();
        for (const { from, gas } of transactions) lent.set(from, (lent.get(from) ?? 0n) + gas * price);
        const balanceOf = async (account) => BigInt(await rpc("eth_getBalance", account, "latest"));
        for (const from of lent.keys()) {
            const [balance, values] = [await balanceOf(from), transactions.filter((one) => one.from === from).map((one) => one.value)];
            const most = values.reduce((a, b) => (a > b ? a : b));
            // A value comes with the run's beginning, which is in the same block: too late for the pool's check.
            if (balance < most) lent.set(from, lent.get(from) + most);
            await rpc("hardhat_setBalance", from, hex(balance + lent.get(from)));
            await rpc("hardhat_impersonateAccount", from);
        }
        await rpc("evm_setAutomine", false);
        const hashes = [];
        for (const { from, to, value, data, gas } of transactions) {
            const fees = { maxFeePerGas: hex(price), maxPriorityFeePerGas: "0x0" };
            hashes.push(await rpc("eth_sendTransaction", { from, to, data, value: hex(value), gas: hex(gas), ...fees }));
        }
        await rpc("hardhat_setNextBlockBaseFeePerGas", hex(price));
        await rpc("evm_setNextBlockTimestamp", Number(second));
        await rpc("evm_mine");
        await rpc("evm_setAutomine", true);
        const receipts = [];
        for (const hash of hashes) {
            const receipt = await rpc("eth_getTransactionReceipt", hash);
            if (receipt === null) throw new Error(UNMINED);
            receipts.push(receipt);
        }
        for (const [from, amount] of lent) {
            const paid = receipts.filter((_, i) => transactions[i].from === from).map(({ gasUsed }) => BigInt(gasUsed) * price);
            const left = amount - paid.reduce((a, b) => a + b);
            await rpc("hardhat_setBalance", from, hex((await balanceOf(from)) - left));
            await rpc("hardhat_stopImpersonatingAccount", from);
        }
        return receipts;
    };

    /** Makes a block, looks at what came of it, and takes it back. */
    const tryOut = async (second, transactions, look) => {
        const snapshot = await rpc("evm_snapshot");
        const found = await look(await mine(second, transactions));
        await rpc("evm_revert", snapshot);
        return found;
    };

    const reasonOf = async ({ status, gasUsed, transactionHash }, gas) => {
        // Where the gas ran out there is no reason, and a long trace.
        if (status === "0x1" || BigInt(gasUsed) === gas) return "0x";
        const options = { disableMemory: true, disableStack: true, disableStorage: true };
        const { returnValue } = await rpc("debug_traceTransaction", transactionHash, options);
        return `0x${(returnValue ?? "").replace(/^0x/, "")}`;
    };

    /**
     * The transactions of the market's runs. Each is tried out before the next is added: its end has to say what came of
     * it, and it may have cancelled the next.
     */
    const scheduledRuns = async (second, before) => {
        const parts = [];
        const ids = await tryOut(second, before, () => read(scheduled, "lastChosen"));
        for (const id of ids) {
            const [run] = await read(scheduled, "runOf", [id]);
            const begun = [...parts, own(scheduled, SOME_GAS, "begin", [id])];
            const [isUnderWay, receipt, reason] = await tryOut(second, [...before, ...begun, run], async (receipts) =>
                [(await read(scheduled, "runOf", [id]))[1], receipts.at(-1), await reasonOf(receipts.at(-1), run.gas)]);
            parts.splice(0, parts.length, ...begun);
            if (!isUnderWay) continue;
            const ended = [id, receipt.status === "0x1", reason, BigInt(receipt.gasUsed)];
            parts.push(run, own(scheduled, SOME_GAS, "end", ended));
        }
        return [...parts, own(scheduled, ALL_GAS, "endBlock")];
    };

    /** Makes a block with all that is due at this millisecond, in the real order. */
    const runAt = async (dueMs) => {
        const after = (await now()) + 1n;
        const second = dueMs / 1_000n < after ? after : dueMs / 1_000n;
        const ms = dueMs / 1_000n < after ? 0n : dueMs % 1_000n;
        const hasCallbacks = (await read(callbacks, "nextDue")) <= second;
        const hasJobs = (await read(cron, "nextDue")) <= second;
        const hasScheduled = (await read(scheduled, "nextDue")) <= second * 1_000n + ms;
        const before = [
            ...(hasCallbacks ? [own(callbacks, ALL_GAS, "runBooked")] : []),
            ...(hasJobs ? [own(cron, ALL_GAS, "runDue")] : []),
            ...(hasScheduled ? [own(scheduled, ALL_GAS, "beginBlock", [ms])] : []),
        ];
        const runs = hasScheduled ? await scheduledRuns(second, before) : [];
        const after_ = hasCallbacks ? [own(callbacks, ALL_GAS, "runLow")] : [];
        const block = [...before, ...runs, ...after_];
        const receipts = await mine(second, block);
        const failed = receipts.findIndex(({ status, to }) => status !== "0x1" && [CRON, SCHEDULED, CALLBACKS].includes(to));
        if (failed !== -1) throw new Error(`a block of ${second} failed at the door ${receipts[failed].to}`);
    };

    /** Makes the next block, with what is due in it. */
    const runBlock = async () => runAt(((await now()) + 1n) * 1_000n);

    /** Moves the clock to a time. What becomes due on the way runs in the real order. */
    const runUntil = async (time) => {
        for (let due = await nextDue(); due <= BigInt(time) * 1_000n; due = await nextDue()) await runAt(due);
        if (BigInt(time) > (await now())) {
            await rpc("evm_setNextBlockTimestamp", time);
            await rpc("evm_mine");
        }
    };
    return { cron: CRON, scheduled: SCHEDULED, callbacks: CALLBACKS, accounts: ACCOUNTS, runBlock, runUntil };
}
