// What a chain is to this package: viem's definition, and the hash of block 0, which every native signature covers.

import { type Address, type Chain, type Client, type Hash, defineChain } from "viem";
import { getBlock } from "viem/actions";

/** Addresses of the chain's own contracts. */
export const doors = {
    cron: "0x0000000000000000000000000000000000000006",
    market: "0x000000000000000000000000000000000000a101",
    callbacks: "0x000000000000000000000000000000000000a102",
    signed: "0x000000000000000000000000000000000000a103",
    accounts: "0x000000000000000000000000000000000000a104",
    parameters: "0x000000000000000000000000000000000000a105",
} as const satisfies Record<string, Address>;

/** A chain of Almanac. */
export function almanacChain<const Id extends number>(id: Id, url: string, name = "Almanac") {
    return defineChain({
        id,
        name,
        nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
        rpcUrls: { default: { http: [url], webSocket: [url.replace(/^http/, "ws")] } },
    }) satisfies Chain;
}

/** `almanac dev` on this machine. */
export const almanacDev = /*#__PURE__*/ almanacChain(31337, "http://127.0.0.1:8545", "Almanac developer chain");

const known = new WeakMap<Client, Promise<Hash>>();

/** The hash of block 0, asked for once per client: two chains may share an id, never this. */
export function genesisHash(client: Client): Promise<Hash> {
    let asked = known.get(client);
    if (!asked) {
        asked = getBlock(client, { blockNumber: 0n }).then((block) => block.hash);
        // A failure is not remembered.
        asked.catch(() => known.delete(client));
        known.set(client, asked);
    }
    return asked;
}
