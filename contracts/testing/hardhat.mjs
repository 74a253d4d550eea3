// The chain's doors in Hardhat's in-process network, whose EVM does not have them (docs/testing-contracts.md).

import fs from "node:fs";

/** The registry's real address is that of a precompile, which this network cannot replace. */
export const CRON = "0x000000000000000000000000000000000000a106";
export const CALLBACKS = "0x000000000000000000000000000000000000a102";
/** 16,000,000: below the cap on a transaction. */
const ALL_GAS = "0xf42400";

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
    const callbacks = { address: CALLBACKS, ...artifact("FakeCallbackScheduler") };
    for (const { address, deployedBytecode } of [cron, callbacks]) await rpc("hardhat_setCode", address, deployedBytecode);
    const now = async () => Number((await rpc("eth_getBlockByNumber", "latest", false)).timestamp);

    const read = async ({ address, abi }, functionName, args = []) => {
        const data = await rpc("eth_call", { to: address, data: encodeFunctionData({ abi, functionName, args }) }, "latest");
        return decodeFunctionResult({ abi, functionName, data });
    };

    /** A transaction in a door's name. What it pays is lent, because the door's own money is the escrow of others. */
    const send = async (from, to, data) => {
        const [balance, block] = [BigInt(await rpc("eth_getBalance", from, "latest")), await rpc("eth_getBlockByNumber", "latest", false)];
        const price = 2n * BigInt(block.baseFeePerGas) + 1n;
        const lent = BigInt(ALL_GAS) * price;
        await rpc("hardhat_setBalance", from, hex(balance + lent));
        await rpc("hardhat_impersonateAccount", from);
        const fees = { maxFeePerGas: hex(price), maxPriorityFeePerGas: "0x0" };
        const hash = await rpc("eth_sendTransaction", { from, to, data, gas: ALL_GAS, ...fees });
        await rpc("hardhat_stopImpersonatingAccount", from);
        const receipt = await rpc("eth_getTransactionReceipt", hash);
        const left = lent - BigInt(receipt.gasUsed) * BigInt(receipt.effectiveGasPrice);
        await rpc("hardhat_setBalance", from, hex(BigInt(await rpc("eth_getBalance", from, "latest")) - left));
        return receipt;
    };

    /** Runs what is due at a door, in a block of this time. */
    const runDue = async (door, time) => {
        if (time > (await now())) await rpc("evm_setNextBlockTimestamp", time);
        const receipt = await send(door.address, door.address, encodeFunctionData({ abi: door.abi, functionName: "runDue" }));
        if (receipt.status !== "0x1") throw new Error(`the runs of ${door.address} at ${time} failed`);
    };

    /** Moves the clock to a time. What becomes due on the way runs in the real order. */
    const runUntil = async (time) => {
        for (;;) {
            const [job, callback] = [await read(cron, "nextDue"), await read(callbacks, "nextDue")];
            const due = job < callback ? job : callback;
            if (due > BigInt(time)) break;
            // Booked callbacks come first in a block, and jobs before Low ones; here each door has a block of its own.
            await runDue(callback <= job ? callbacks : cron, Number(due));
        }
        if (time > (await now())) {
            await rpc("evm_setNextBlockTimestamp", time);
            await rpc("evm_mine");
        }
    };
    return { cron: CRON, callbacks: CALLBACKS, runUntil };
}
