// What wallets sign: EIP-712 typed data, and the order in which signatures stand.

import {
    type Account,
    type Client,
    type Hash,
    type Hex,
    type LocalAccount,
    type TypedDataDefinition,
    compactSignatureToSignature,
    concatHex,
    hashTypedData,
    parseSignature,
    recoverAddress,
    signatureToCompactSignature,
    zeroAddress,
} from "viem";
import { signTypedData } from "viem/actions";
import { doors } from "./chain.js";
import type { NativeTransaction } from "./transaction.js";

const Call = [
    { name: "to", type: "address" },
    { name: "value", type: "uint256" },
    { name: "data", type: "bytes" },
] as const;
const Transaction = [
    { name: "sender", type: "address" },
    { name: "kind", type: "uint8" },
    { name: "nonce", type: "uint64" },
    { name: "expiration", type: "uint64" },
    { name: "creation", type: "bool" },
    { name: "calls", type: "Call[]" },
    { name: "gasLimit", type: "uint64" },
    { name: "maxFeePerGas", type: "uint128" },
    { name: "maxPriorityFeePerGas", type: "uint128" },
    { name: "feePayer", type: "address" },
] as const;

/** The types of a sender's and of a fee payer's signature. */
export const nativeTypes = { Transaction, Call } as const;
export const payFeeTypes = { PayFee: [{ name: "transaction", type: "Transaction" }], Transaction, Call } as const;

/** Who signs: in whose name it acts, or who pays for the gas. */
export type NativeRole = "sender" | "feePayer";

/** The typed data that a party signs on the chain with this block 0. */
export function nativeTypedData(transaction: NativeTransaction, genesis: Hash, role: NativeRole = "sender") {
    const { chainId, calls } = transaction;
    const domain = { name: "Almanac", version: "1", chainId, verifyingContract: doors.accounts, salt: genesis };
    const message = {
        sender: transaction.sender,
        kind: transaction.kind === "orderless" ? 1 : 0,
        nonce: transaction.nonce,
        expiration: transaction.expiration ?? 0n,
        creation: calls.length === 1 && calls[0]?.to === undefined,
        calls: calls.map(({ to = zeroAddress, value = 0n, data = "0x" }) => ({ to, value, data })),
        gasLimit: transaction.gasLimit,
        maxFeePerGas: transaction.maxFeePerGas,
        maxPriorityFeePerGas: transaction.maxPriorityFeePerGas,
        feePayer: transaction.feePayer ?? zeroAddress,
    };
    return role === "sender"
        ? ({ domain, types: nativeTypes, primaryType: "Transaction", message } as const)
        : ({ domain, types: payFeeTypes, primaryType: "PayFee", message: { transaction: message } } as const);
}

/** The digest that a key signs; an Ed25519 key signs these 32 bytes. */
export const nativeDigest = (transaction: NativeTransaction, genesis: Hash, role: NativeRole = "sender"): Hash =>
    hashTypedData(nativeTypedData(transaction, genesis, role) as TypedDataDefinition);

/** Signs as a party, with an account that signs itself or with the client's wallet. */
export async function signNative(
    client: Client,
    account: Account,
    transaction: NativeTransaction,
    genesis: Hash,
    role: NativeRole = "sender",
): Promise<Hex> {
    return signTyped(client, account, nativeTypedData(transaction, genesis, role) as TypedDataDefinition);
}

/** Signs typed data, in the form that the chain takes. */
export async function signTyped(client: Client, account: Account, data: TypedDataDefinition): Promise<Hex> {
    const signature =
        account.type === "local"
            ? await (account as LocalAccount).signTypedData(data)
            : await signTypedData(client, { account, ...data } as Parameters<typeof signTypedData>[1]);
    return nativeSignature(signature);
}

/** The form that the chain takes: r, s and the parity, 0 or 1, instead of 27 or 28. */
export function nativeSignature(signature: Hex): Hex {
    const { r, s, yParity } = compactSignatureToSignature(signatureToCompactSignature(parseSignature(signature)));
    return concatHex([r, s, yParity === 0 ? "0x00" : "0x01"]);
}

/** Puts signatures of several keys into the order that the chain wants: by the keys that made them. */
export async function orderSignatures(signatures: readonly Hex[], digest: Hash): Promise<Hex[]> {
    const leaves = await Promise.all(signatures.map((signature) => leafOf(signature, digest)));
    const order = signatures.map((signature, index) => ({ signature, leaf: leaves[index] ?? "" }));
    order.sort((a, b) => (a.leaf < b.leaf ? -1 : a.leaf > b.leaf ? 1 : 0));
    return order.map(({ signature }) => signature);
}

/** The key that a signature proves: 01 and an address, or 02 and an Ed25519 key. */
async function leafOf(signature: Hex, digest: Hash): Promise<string> {
    if (signature.length === 2 + 2 * 96) return `02${signature.slice(2, 66).toLowerCase()}`;
    const parity = signature.endsWith("00") ? "1b" : "1c";
    const address = await recoverAddress({ hash: digest, signature: `0x${signature.slice(2, 130)}${parity}` });
    return `01${address.slice(2).toLowerCase()}`;
}
