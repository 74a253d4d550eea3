// Sends native transactions: fills in what is left open, signs, and hands them to the node.

import { type Account, type Address, type Client, type Hash, type Hex, hexToBigInt, numberToHex } from "viem";
import { parseAccount } from "viem/accounts";
import {
    estimateFeesPerGas,
    getBlock,
    getChainId,
    getTransactionCount,
    sendRawTransaction,
} from "viem/actions";
import { genesisHash } from "./chain.js";
import { nativeDigest, orderSignatures, signNative } from "./sign.js";
import {
    type NativeCall,
    type NativeTransaction,
    type ReplayProtector,
    type SignedNativeTransaction,
    randomNonce,
    serializeNative,
} from "./transaction.js";

/** Seconds until an orderless transaction expires. The chain allows 60; its clock may differ. */
const EXPIRES_IN = 40n;

export type NativeRequest = {
    /** Who signs [default: the client's account]. */
    account?: Account | Address | undefined;
    /** Further keys of the sender's key tree. */
    cosigners?: readonly Account[] | undefined;
    /** In whose name it acts, if not the account's own. */
    sender?: Address | undefined;
    /** One call, or several that happen together or not at all. */
    calls: readonly NativeCall[];
    /** "orderless" waits for nothing [default]; "sequence" takes the account's next number. */
    kind?: "orderless" | "sequence" | undefined;
    nonce?: bigint | undefined;
    /** The second from which on it is refused. */
    expiration?: bigint | undefined;
    /** Pays for the gas, and signs that it does. */
    feePayer?: Account | undefined;
    gasLimit?: bigint | undefined;
    maxFeePerGas?: bigint | undefined;
    maxPriorityFeePerGas?: bigint | undefined;
};

/** How a transaction is sent, where its calls follow from what it is for. */
export type Sending = Omit<NativeRequest, "calls">;

/** Who signs. */
export function accountOf(client: Client, given: NativeRequest["account"]): Account {
    const account = given ?? client.account;
    if (!account) throw new Error("nobody signs: give `account`, here or to the client");
    return parseAccount(account);
}

/** Fills in what a request leaves open. */
export async function prepareNative(client: Client, request: NativeRequest): Promise<NativeTransaction> {
    const sender = request.sender ?? accountOf(client, request.account).address;
    const { calls, kind = "orderless" } = request;
    const [chainId, fees, protector] = await Promise.all([
        client.chain?.id ?? getChainId(client),
        feesOf(client, request),
        protectorOf(client, sender, kind, request),
    ]);
    const tried: Tried = { sender, calls, feePayer: request.feePayer?.address, ...protector };
    const gasLimit = request.gasLimit ?? (await gasOf(client, tried));
    return { chainId, gasLimit, ...fees, ...tried };
}

async function feesOf(client: Client, request: NativeRequest) {
    const { maxFeePerGas, maxPriorityFeePerGas } = request;
    if (maxFeePerGas !== undefined && maxPriorityFeePerGas !== undefined) return { maxFeePerGas, maxPriorityFeePerGas };
    const advised = await estimateFeesPerGas(client, { chain: client.chain, type: "eip1559" });
    return {
        maxFeePerGas: maxFeePerGas ?? advised.maxFeePerGas,
        maxPriorityFeePerGas: maxPriorityFeePerGas ?? advised.maxPriorityFeePerGas,
    };
}

/** What the node tries, without prices. */
type Tried = ReplayProtector & Pick<NativeTransaction, "sender" | "calls" | "feePayer">;

/** What the node finds by trying, with all the signatures that the keys can bring. */
async function gasOf(client: Client, transaction: Tried): Promise<bigint> {
    const { sender, kind, nonce, expiration, feePayer } = transaction;
    const calls = transaction.calls.map(({ to, value, data }) => ({
        to: to ?? null,
        value: numberToHex(value ?? 0n),
        input: data ?? "0x",
    }));
    const replayProtector =
        kind === "orderless"
            ? { nonce: numberToHex(nonce), expiration: numberToHex(expiration ?? 0n) }
            : { sequenceNumber: numberToHex(nonce) };
    const tried = { from: sender, calls, replayProtector, ...(feePayer && { feePayer }) };
    // Viem's types know Ethereum's requests only.
    return hexToBigInt((await client.request({ method: "eth_estimateGas", params: [tried as never] })) as Hex);
}

async function protectorOf(
    client: Client,
    sender: Address,
    kind: "orderless" | "sequence",
    request: NativeRequest,
): Promise<ReplayProtector> {
    const { nonce, expiration } = request;
    if (kind === "sequence") {
        const next = nonce ?? BigInt(await getTransactionCount(client, { address: sender, blockTag: "pending" }));
        return { kind, nonce: next, expiration };
    }
    // The chain's second, which need not be this machine's.
    const now = async () => (await getBlock(client, { blockTag: "pending" })).timestamp;
    return { kind, nonce: nonce ?? randomNonce(), expiration: expiration ?? (await now()) + EXPIRES_IN };
}

/** Signs a prepared transaction for everybody whose key is here. */
export async function signNativeRequest(
    client: Client,
    request: NativeRequest,
    transaction: NativeTransaction,
): Promise<SignedNativeTransaction> {
    const genesis = await genesisHash(client);
    const signers = [accountOf(client, request.account), ...(request.cosigners ?? [])];
    const signatures: Hex[] = await Promise.all(signers.map((one) => signNative(client, one, transaction, genesis)));
    const { feePayer } = request;
    const feePayerSignatures = feePayer ? [await signNative(client, feePayer, transaction, genesis, "feePayer")] : [];
    const ordered = await orderSignatures(signatures, nativeDigest(transaction, genesis));
    return { ...transaction, signatures: ordered, feePayerSignatures };
}

/** Fills in, signs and sends. Returns the hash, as `sendTransaction` does. */
export async function sendNative(client: Client, request: NativeRequest): Promise<Hash> {
    const transaction = await prepareNative(client, request);
    const signed = await signNativeRequest(client, request, transaction);
    return sendRawTransaction(client, { serializedTransaction: serializeNative(signed) as `0x02${string}` });
}
