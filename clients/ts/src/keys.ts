// Keys as bytes: a leaf, or a tree of them.

import { type Address, type Hex, type Log, concatHex, hexToBytes, numberToHex, parseEventLogs } from "viem";
import { accountsAbi } from "./abis.js";
import { doors } from "./chain.js";

/** The key of an ordinary account. */
export const leafKey = (account: Address): Hex => concatHex(["0x01", account]);

/** A key that so many of these keys satisfy. */
export function thresholdKey(needed: number, keys: readonly Hex[]): Hex {
    return concatHex(["0x03", numberToHex(keys.length, { size: 1 }), numberToHex(needed, { size: 1 }), ...keys]);
}

/** Bytes of a leaf by its tag: secp256k1 with an address, Ed25519 with a point. */
const LEAF_BYTES: Record<number, number> = { 1: 21, 2: 33 };
const TREE_TAG = 3;

/** How many leaves a key has. */
export function leavesOf(key: Hex): number {
    const bytes = hexToBytes(key);
    let [offset, leaves] = [0, 0];
    while (offset < bytes.length) {
        const tag = bytes[offset]!;
        const size = tag === TREE_TAG ? 3 : LEAF_BYTES[tag];
        if (size === undefined) throw new Error(`byte ${offset} of the key ${key} is no tag of a key`);
        if (tag !== TREE_TAG) leaves += 1;
        offset += size;
    }
    return leaves;
}

/** The account that a transaction created. Any contract may emit an event of this form; only the door's own counts. */
export function createdAccountOf(receipt: { logs: Log[] }): Address {
    const logs = receipt.logs.filter(({ address }) => address.toLowerCase() === doors.accounts);
    const [created] = parseEventLogs({ abi: accountsAbi, logs, eventName: "AccountCreated" });
    if (!created) throw new Error("this transaction created no account");
    return created.args.account;
}
