// Keys as bytes: a leaf, or a tree of them.

import { type Address, type Hex, type Log, concatHex, numberToHex, parseEventLogs } from "viem";
import { accountsAbi } from "./abis.js";

/** The key of an ordinary account. */
export const leafKey = (account: Address): Hex => concatHex(["0x01", account]);

/** A key that so many of these keys satisfy. */
export function thresholdKey(needed: number, keys: readonly Hex[]): Hex {
    return concatHex(["0x03", numberToHex(keys.length, { size: 1 }), numberToHex(needed, { size: 1 }), ...keys]);
}

/** The account that a transaction created. */
export function createdAccountOf(receipt: { logs: Log[] }): Address {
    const [created] = parseEventLogs({ abi: accountsAbi, logs: receipt.logs, eventName: "AccountCreated" });
    if (!created) throw new Error("this transaction created no account");
    return created.args.account;
}
