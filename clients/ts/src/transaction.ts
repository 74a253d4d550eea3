// The native transaction, type 0x72: its fields and its bytes. specs/native-transaction.md has every one of them.

import {
    type Address,
    type Hash,
    type Hex,
    bytesToHex,
    concatHex,
    fromRlp,
    hexToBigInt,
    hexToNumber,
    keccak256,
    numberToHex,
    toRlp,
} from "viem";

/** EIP-2718 type. */
export const NATIVE_TYPE = "0x72";

/** What a transaction does. Without `to` it creates a contract, and is the only call. */
export type NativeCall = { to?: Address | undefined; value?: bigint | undefined; data?: Hex | undefined };

/** What keeps it from running twice: the account's sequence number, or any nonce until it expires. */
export type ReplayProtector =
    | { kind: "sequence"; nonce: bigint; /** Seconds; 0 is never. */ expiration?: bigint | undefined }
    | { kind: "orderless"; nonce: bigint; expiration: bigint };

/** A native transaction without signatures. */
export type NativeTransaction = ReplayProtector & {
    chainId: number;
    sender: Address;
    maxPriorityFeePerGas: bigint;
    maxFeePerGas: bigint;
    gasLimit: bigint;
    calls: readonly NativeCall[];
    feePayer?: Address | undefined;
};

/** Signatures of both parties, each in ascending order of the keys that made them. */
export type NativeSignatures = { signatures: readonly Hex[]; feePayerSignatures?: readonly Hex[] | undefined };

export type SignedNativeTransaction = NativeTransaction & NativeSignatures;

const integer = (value: bigint | number): Hex => (BigInt(value) === 0n ? "0x" : numberToHex(value));

/** The bytes that `eth_sendRawTransaction` takes. */
export function serializeNative(transaction: SignedNativeTransaction): Hex {
    const { calls, feePayer, signatures, feePayerSignatures = [] } = transaction;
    const fields = toRlp([
        integer(transaction.chainId),
        transaction.sender,
        integer(transaction.kind === "orderless" ? 1 : 0),
        integer(transaction.nonce),
        integer(transaction.expiration ?? 0n),
        integer(transaction.maxPriorityFeePerGas),
        integer(transaction.maxFeePerGas),
        integer(transaction.gasLimit),
        calls.map(({ to, value = 0n, data = "0x" }) => [to ?? "0x", integer(value), data]),
        feePayer ?? "0x",
        [...signatures],
        [...feePayerSignatures],
    ]);
    return concatHex([NATIVE_TYPE, fields]);
}

/** Reads what `serializeNative` wrote. */
export function parseNative(serialized: Hex): SignedNativeTransaction {
    if (!serialized.startsWith(NATIVE_TYPE)) throw new Error(`${serialized.slice(0, 4)} is not type ${NATIVE_TYPE}`);
    const fields = fromRlp(`0x${serialized.slice(4)}`, "hex");
    if (!Array.isArray(fields) || fields.length !== 12) throw new Error("a native transaction has 12 fields");
    const [chainId, sender, kind, nonce, expiration, tip, cap, gasLimit, calls, feePayer, signatures, payers] =
        fields as [Hex, Address, Hex, Hex, Hex, Hex, Hex, Hex, [Hex, Hex, Hex][], Hex, Hex[], Hex[]];
    const big = (value: Hex) => (value === "0x" ? 0n : hexToBigInt(value));
    return {
        chainId: hexToNumber(chainId),
        sender,
        kind: big(kind) === 1n ? "orderless" : "sequence",
        nonce: big(nonce),
        expiration: big(expiration),
        maxPriorityFeePerGas: big(tip),
        maxFeePerGas: big(cap),
        gasLimit: big(gasLimit),
        calls: calls.map(([to, value, data]) => ({ to: to === "0x" ? undefined : (to as Address), value: big(value), data })),
        feePayer: feePayer === "0x" ? undefined : (feePayer as Address),
        signatures,
        feePayerSignatures: payers,
    };
}

/** The hash that names it. */
export const hashNative = (transaction: SignedNativeTransaction): Hash => keccak256(serializeNative(transaction));

/** A nonce that nobody else takes: 64 random bits. */
export const randomNonce = (): bigint => hexToBigInt(bytesToHex(crypto.getRandomValues(new Uint8Array(8))));
