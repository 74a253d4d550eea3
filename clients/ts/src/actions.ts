// Everything as actions of a client: `client.extend(almanacActions())`.

import { type Address, type Client, type Hash, type Hex, encodeFunctionData, zeroHash } from "viem";
import { readContract } from "viem/actions";
import { accountsAbi, callbacksAbi, cronAbi, marketAbi } from "./abis.js";
import { type MarketKey, calendarActions } from "./calendar.js";
import { doors } from "./chain.js";
import { type NativeRequest, type Sending, accountOf, prepareNative, sendNative } from "./native.js";
import { signedActions } from "./signed.js";


export type CronJob = {
    target: Address;
    /** A selector at least. */
    data: Hex;
    /** Second of the first run. */
    nextRunAt: bigint;
    /** Seconds between runs; 0 runs once. With another number, `maxRuns` has to be given. */
    intervalSec?: bigint;
    /** 0: until the escrow is empty [default: 1, for a job that runs once]. */
    maxRuns?: bigint;
    gasLimit: bigint;
    /** Wei that pay for the runs. */
    escrow: bigint;
};

/** High runs in the second that was booked, Low when there is room. */
export const Priority = { High: 0, Medium: 1, Low: 2 } as const;
export type Priority = (typeof Priority)[keyof typeof Priority];

export type Callback = {
    handler: Address;
    data?: Hex;
    /** Second. */
    timestamp: bigint;
    priority: Priority;
    executionEffort: bigint;
    /** Wei, as `estimateCallback` answers. */
    fee: bigint;
};

export type MarketOrder = {
    to: Address;
    value?: bigint;
    data?: Hex;
    /** Millisecond. */
    scheduledTimeMs: bigint;
    maxGasAmount: bigint;
    maxGasUnitPrice: bigint;
    /** Whether the call comes from the sender [default], or from the contract of the market. */
    passSigner?: boolean;
    /** Blocks that it waits for its price; 0: as the chain has it. */
    expiryBlocks?: number;
    /** Wei that pay for the run; the rest returns. */
    deposit: bigint;
};

/** The actions of this package. */
export function almanacActions() {
    return (client: Client) => {
        const send = (to: Address, data: Hex, value: bigint, sending: Sending = {}): Promise<Hash> =>
            sendNative(client, { ...sending, calls: [{ to, value, data }] });
        return {
            ...calendarActions(client),
            ...signedActions(client),
            prepareNative: (request: NativeRequest) => prepareNative(client, request),
            sendNative: (request: NativeRequest) => sendNative(client, request),

            /** Books a job of the ARC-21 registry. */
            scheduleCron: (job: CronJob, sending?: Sending) => {
                const { target, data, nextRunAt, intervalSec = 0n, maxRuns = 1n, gasLimit } = job;
                if (intervalSec > 0n && job.maxRuns === undefined) {
                    throw new Error("a job with an interval needs maxRuns: a number of runs, or 0n until the escrow is empty");
                }
                const args = [target, data, nextRunAt, intervalSec, maxRuns, gasLimit] as const;
                const call = encodeFunctionData({ abi: cronAbi, functionName: "scheduleCalldata", args });
                return send(doors.cron, call, job.escrow, sending);
            },
            cancelCron: (id: bigint, sending?: Sending) =>
                send(doors.cron, encodeFunctionData({ abi: cronAbi, functionName: "cancel", args: [id] }), 0n, sending),
            /** Adds wei to the escrow of anybody's job. */
            topUpCron: (id: bigint, value: bigint, sending?: Sending) =>
                send(doors.cron, encodeFunctionData({ abi: cronAbi, functionName: "topUp", args: [id] }), value, sending),

            /** What a FLIP-330 callback would cost, and when it would run. */
            estimateCallback: (callback: Omit<Callback, "fee" | "handler">) => {
                const { data = "0x", timestamp, priority, executionEffort } = callback;
                const args = [data, timestamp, priority, executionEffort] as const;
                return readContract(client, { address: doors.callbacks, abi: callbacksAbi, functionName: "estimate", args });
            },
            /** Books a FLIP-330 callback. */
            scheduleCallback: (callback: Callback, sending?: Sending) => {
                const { handler, data = "0x", timestamp, priority, executionEffort } = callback;
                const args = [handler, data, timestamp, priority, executionEffort] as const;
                const call = encodeFunctionData({ abi: callbacksAbi, functionName: "schedule", args });
                return send(doors.callbacks, call, callback.fee, sending);
            },
            cancelCallback: (id: bigint, sending?: Sending) => {
                const call = encodeFunctionData({ abi: callbacksAbi, functionName: "cancel", args: [id] });
                return send(doors.callbacks, call, 0n, sending);
            },

            /** Schedules a transaction of AIP-125's market. */
            scheduleTransaction: (order: MarketOrder, sending: Sending = {}) => {
                const sender = sending.sender ?? accountOf(client, sending.account).address;
                const { to, value = 0n, data = "0x", scheduledTimeMs, maxGasAmount, maxGasUnitPrice } = order;
                const { passSigner = true, expiryBlocks = 0 } = order;
                const terms = { scheduledTimeMs, maxGasAmount, maxGasUnitPrice, passSigner, expiryBlocks };
                const args = [{ senderAddr: sender, to, value, data, ...terms }] as const;
                const call = encodeFunctionData({ abi: marketAbi, functionName: "insert", args });
                return send(doors.market, call, order.deposit, sending);
            },
            /** Takes one back, with its whole deposit; `market.key` of `getSchedule`. */
            cancelTransaction: (key: MarketKey, sending?: Sending) =>
                send(doors.market, encodeFunctionData({ abi: marketAbi, functionName: "cancel", args: [key] }), 0n, sending),
            cancelAllTransactions: (sending?: Sending) =>
                send(doors.market, encodeFunctionData({ abi: marketAbi, functionName: "cancelAll" }), 0n, sending),

            /** The key of an account, as bytes, and how often it was changed. */
            getKey: async (account: Address): Promise<{ key: Hex; rotation: bigint }> => {
                const found = { address: doors.accounts, abi: accountsAbi, functionName: "keyOf", args: [account] } as const;
                const [key, rotation] = await readContract(client, found);
                return { key, rotation };
            },
            /** What the keys of a new key tree sign before a rotation. */
            getRotationDigest: (account: Address, key: Hex): Promise<Hash> => {
                const args = [account, key] as const;
                return readContract(client, { address: doors.accounts, abi: accountsAbi, functionName: "rotationDigest", args });
            },
            /** Makes an account that belongs to a key tree; `createdAccountOf` finds its address in the receipt. */
            createAccount: (key: Hex, salt: Hash = zeroHash, sending?: Sending) => {
                const call = encodeFunctionData({ abi: accountsAbi, functionName: "createAccount", args: [key, salt] });
                return send(doors.accounts, call, 0n, sending);
            },
            /** Gives the account another key; `proofs` are signatures of the new one. */
            rotateKey: (key: Hex, proofs: readonly Hex[], sending?: Sending) => {
                const call = encodeFunctionData({ abi: accountsAbi, functionName: "rotateKey", args: [key, proofs] });
                return send(doors.accounts, call, 0n, sending);
            },
        };
    };
}
