// viem set up for the node: known accounts, a reader, and a wallet that signs for the first of them.

import { createPublicClient, createWalletClient, encodeFunctionData, http } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { anvil } from "viem/chains";
import { accounts, artifact, url } from "./check.mjs";

export const [alice, bob, carol] = accounts.map(({ key }) => privateKeyToAccount(key));
/** For a chain where every transaction is a block: look often, and trust no cache. */
export const common = { chain: anvil, pollingInterval: 20, cacheTime: 0 };
export const reader = createPublicClient({ ...common, transport: http(url) });
export const wallet = createWalletClient({ ...common, account: alice, transport: http(url) });

export const included = (hash) => reader.waitForTransactionReceipt({ hash, timeout: 10_000 });
/** Sends as alice and waits for the receipt. */
export const act = async (request) => included(await wallet.sendTransaction(request));

export const counterFile = artifact("Counter");
/** Input of a call of a counter. */
export const counterData = (functionName, ...args) =>
    encodeFunctionData({ abi: counterFile.abi, functionName, args });

/** A new counter, with functions that read and write it. */
export async function deployCounter(limit, value = 0n) {
    const receipt = await included(await wallet.deployContract({ ...counterFile, args: [limit], value }));
    const address = receipt.contractAddress;
    const contract = { address, abi: counterFile.abi };
    return {
        address,
        receipt,
        read: (functionName, args = [], options = {}) =>
            reader.readContract({ ...contract, functionName, args, ...options }),
        write: async (functionName, args = [], options = {}) =>
            included(await wallet.writeContract({ ...contract, functionName, args, ...options })),
    };
}
