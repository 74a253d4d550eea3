// Transactions that wait for signatures: what people sign, and the calls of the schedule service.

import {
    type Account,
    type Address,
    type Client,
    type Hash,
    type Hex,
    type Log,
    type TypedDataDefinition,
    decodeErrorResult,
    encodeAbiParameters,
    encodeFunctionData,
    hashTypedData,
    parseEventLogs,
    zeroAddress,
} from "viem";
import { getBlock, getChainId, readContract } from "viem/actions";
import { accountsAbi, callbacksAbi, signedAbi } from "./abis.js";
import { doors, genesisHash } from "./chain.js";
import { leafKey, leavesOf } from "./keys.js";
import { type Sending, accountOf, sendNative } from "./native.js";
import { signTyped } from "./sign.js";

/** Seconds for which a signature is accepted, if nothing else is said. */
const ACCEPTED_FOR = 24n * 60n * 60n;
/** A Medium callback, in whose seconds timed schedules are booked, and the gas of a unit of its effort. */
const [MEDIUM, EFFORT_GAS, EFFORT_MIN] = [1, 2_100n, 20n];

/** Gas of reading the key of an account, or a signature and the record of who signed. */
const LOOK_GAS = 6_300n;

/** Gas of judging the signatures of these keys at a second, which is booked with the run. Each leaf may sign and call. */
export const readinessGas = (keys: readonly Hex[]): bigint =>
    LOOK_GAS * BigInt(keys.length + 2 * keys.reduce((sum, key) => sum + leavesOf(key), 0));

/** Effort of a run with this gas, and of judging the signatures of these keys. */
export function bookedEffort(gasLimit: bigint, keys: readonly Hex[]): bigint {
    const effort = (gasLimit + readinessGas(keys) + EFFORT_GAS - 1n) / EFFORT_GAS;
    return effort > EFFORT_MIN ? effort : EFFORT_MIN;
}

/** The accounts that have to sign, given who creates the order. */
export function signersOf({ calls, payer }: ScheduleOrder, creator: Address): Address[] {
    const asked = [...calls.map(({ from }) => from), ...(payer ? [payer] : [])].map((one) => one.toLowerCase() as Address);
    const isPayer = (index: number) => index === calls.length;
    return asked.filter((one, index) => asked.indexOf(one) === index && !(isPayer(index) && one === creator.toLowerCase()));
}

export type ScheduledCall = { from: Address; to: Address; value?: bigint; data?: Hex };

/** What is to run, who pays for it, and who may delete it. Each of these makes it another schedule. */
export type ScheduleOrder = {
    /** All of them happen, or none. Every `from` signs. */
    calls: readonly ScheduledCall[];
    gasLimit: bigint;
    /** The base fee above which it waits. */
    maxFeePerGas: bigint;
    memo?: string;
    /** Makes equal orders different schedules. */
    nonce?: number;
    /** The second at which it expires; with `waitForExpiry` it runs then. Without one it expires after half an hour. */
    executionTime?: bigint;
    waitForExpiry?: boolean;
    /** Who pays for the run, and signs that it does [default: who creates it]. */
    payer?: Address;
    /** Whose signatures delete it [default: nobody's]. */
    adminKey?: Hex;
};

/** A signature as the service takes it. */
export type SignatureEntry = { key: Hex; signature: Hex; deadline: bigint };

const Call = [
    { name: "from", type: "address" },
    { name: "to", type: "address" },
    { name: "value", type: "uint256" },
    { name: "data", type: "bytes" },
] as const;
const terms = [
    { name: "gasLimit", type: "uint64" },
    { name: "maxFeePerGas", type: "uint256" },
    { name: "memo", type: "string" },
    { name: "nonce", type: "uint32" },
    { name: "executionTime", type: "uint64" },
    { name: "waitForExpiry", type: "bool" },
] as const;
const Schedule = [
    { name: "calls", type: "Call[]" },
    ...terms,
    { name: "payer", type: "address" },
    { name: "adminKey", type: "bytes" },
    { name: "round", type: "uint32" },
    { name: "deadline", type: "uint64" },
] as const;
const Delete = [
    { name: "scheduleID", type: "uint64" },
    { name: "deadline", type: "uint64" },
] as const;
const Body = [{ type: "tuple", components: [{ name: "calls", type: "tuple[]", components: Call }, ...terms] }] as const;

/** The types of what is signed. */
export const scheduleTypes = { Schedule, Call } as const;
export const deletionTypes = { Delete } as const;

/** The order with everything that it leaves open. */
function complete(order: ScheduleOrder) {
    const { calls, gasLimit, maxFeePerGas, memo = "", nonce = 0, executionTime = 0n, waitForExpiry = false } = order;
    return {
        calls: calls.map(({ from, to, value = 0n, data = "0x" }) => ({ from, to, value, data })),
        gasLimit, maxFeePerGas, memo, nonce, executionTime, waitForExpiry,
    };
}

/** What the service stores, and compares by bytes. */
export const encodeBody = (order: ScheduleOrder): Hex => encodeAbiParameters(Body, [complete(order)]);

const identity = (order: ScheduleOrder) => [encodeBody(order), order.adminKey ?? "0x", order.payer ?? zeroAddress] as const;

const domainOf = (chainId: number, genesis: Hash) =>
    ({ name: "Almanac", version: "1", chainId, verifyingContract: doors.signed, salt: genesis }) as const;

/** The typed data that a key of an order signs, on the chain with this id and block 0. */
export function scheduleTypedData(order: ScheduleOrder, round: number, deadline: bigint, chainId: number, genesis: Hash) {
    const { payer = zeroAddress, adminKey = "0x" } = order;
    const message = { ...complete(order), payer, adminKey, round, deadline };
    return { domain: domainOf(chainId, genesis), types: scheduleTypes, primaryType: "Schedule", message } as const;
}

/** The digest of that; an Ed25519 key signs these 32 bytes. */
export const scheduleDigest = (...signed: Parameters<typeof scheduleTypedData>): Hash =>
    hashTypedData(scheduleTypedData(...signed) as TypedDataDefinition);

/** The schedule that a transaction created, or found pending already. */
export function scheduleIdOf(receipt: { logs: Log[] }): bigint {
    const logs = receipt.logs.filter(({ address }) => address.toLowerCase() === doors.signed);
    const [found] = parseEventLogs({ abi: signedAbi, logs, eventName: ["ScheduleCreated", "ScheduleFound"] });
    if (!found) throw new Error("this transaction created no schedule");
    return found.args.id;
}

/** The name of a refusal of the callback scheduler, which has the room. */
const errorName = (data: Hex): string => decodeErrorResult({ abi: callbacksAbi, data }).errorName;

/** The actions of transactions that wait for signatures. */
export function signedActions(client: Client) {
    const contract = { address: doors.signed, abi: signedAbi } as const;
    const send = (data: Hex, value: bigint, sending: Sending = {}): Promise<Hash> =>
        sendNative(client, { ...sending, calls: [{ to: doors.signed, value, data }] });
    const getRound = (order: ScheduleOrder): Promise<number> =>
        readContract(client, { ...contract, functionName: "roundOf", args: identity(order) });
    const keyOf = async (account: Address): Promise<Hex> => {
        const asked = { address: doors.accounts, abi: accountsAbi, functionName: "keyOf", args: [account] } as const;
        const [key] = await readContract(client, asked);
        return key;
    };
    const chainIdOf = async () => client.chain?.id ?? (await getChainId(client));
    const deadlineOf = async () => (await getBlock(client, { blockTag: "pending" })).timestamp + ACCEPTED_FOR;
    /** Twice what room in the second costs now: prices move, and what is not needed returns. */
    const priceOf = async (order: ScheduleOrder, creator: Address): Promise<bigint> => {
        const { gasLimit, executionTime = 0n, waitForExpiry } = order;
        if (!waitForExpiry) return 0n;
        const keys = await Promise.all(signersOf(order, creator).map(keyOf));
        const args = ["0x", executionTime, MEDIUM, bookedEffort(gasLimit, keys)] as const;
        const asked = { address: doors.callbacks, abi: callbacksAbi, functionName: "estimate", args } as const;
        const { fee, reason } = await readContract(client, asked);
        if (reason !== "0x") throw new Error(`second ${executionTime} cannot be booked: ${errorName(reason)}`);
        return 2n * fee;
    };
    return {
        /** Signs an order for one key, without sending anything. */
        signOrder: async (
            order: ScheduleOrder,
            by: { account?: Account | Address; round?: number; deadline?: bigint } = {},
        ): Promise<SignatureEntry> => {
            const account = accountOf(client, by.account);
            const [round, deadline] = [by.round ?? (await getRound(order)), by.deadline ?? (await deadlineOf())];
            const data = scheduleTypedData(order, round, deadline, await chainIdOf(), await genesisHash(client));
            const signature = await signTyped(client, account, data as TypedDataDefinition);
            return { key: leafKey(account.address), signature, deadline };
        },
        /** Signs that a schedule be deleted, for a key of its `adminKey`. */
        signDeletion: async (id: bigint, by: { account?: Account | Address; deadline?: bigint } = {}): Promise<SignatureEntry> => {
            const [account, deadline] = [accountOf(client, by.account), by.deadline ?? (await deadlineOf())];
            const domain = domainOf(await chainIdOf(), await genesisHash(client));
            const data = { domain, types: deletionTypes, primaryType: "Delete", message: { scheduleID: id, deadline } };
            const signature = await signTyped(client, account, data as TypedDataDefinition);
            return { key: leafKey(account.address), signature, deadline };
        },
        /** Stores an order until it is signed; the sender signs by sending. `scheduleIdOf` finds its id in the receipt. */
        createSchedule: async (order: ScheduleOrder, signatures: readonly SignatureEntry[] = [], sending: Sending = {}) => {
            const args = [...identity(order), signatures] as const;
            const call = encodeFunctionData({ abi: signedAbi, functionName: "createSchedule", args });
            const creator = sending.sender ?? accountOf(client, sending.account).address;
            return send(call, await priceOf(order, creator), sending);
        },
        /** Brings signatures; the sender signs by sending, if it is asked for. */
        signSchedule: (id: bigint, signatures: readonly SignatureEntry[] = [], sending?: Sending) =>
            send(encodeFunctionData({ abi: signedAbi, functionName: "signSchedule", args: [id, signatures] }), 0n, sending),
        deleteSchedule: (id: bigint, signatures: readonly SignatureEntry[] = [], sending?: Sending) =>
            send(encodeFunctionData({ abi: signedAbi, functionName: "deleteSchedule", args: [id, signatures] }), 0n, sending),
        /** Who has signed, until when, how it ended. */
        getScheduleInfo: async (id: bigint) => {
            const [code, info] = await readContract(client, { ...contract, functionName: "getScheduleInfo", args: [id] });
            return { code, ...info };
        },
        /** The round that signatures of an order name: how often it was executed or deleted. */
        getRound,
        /** Whether a second has room for a run. */
        hasScheduleCapacity: (second: bigint, gasLimit: bigint): Promise<boolean> =>
            readContract(client, { ...contract, functionName: "hasScheduleCapacity", args: [second, gasLimit] }),

        /** Sets money aside from which an account pays for what its code agrees to. */
        fund: (account: Address, value: bigint, sending?: Sending) =>
            send(encodeFunctionData({ abi: signedAbi, functionName: "fund", args: [account] }), value, sending),
        getFund: (account: Address): Promise<bigint> =>
            readContract(client, { ...contract, functionName: "fundOf", args: [account] }),
        withdraw: (amount: bigint, sending?: Sending) =>
            send(encodeFunctionData({ abi: signedAbi, functionName: "withdraw", args: [amount] }), 0n, sending),
    };
}
