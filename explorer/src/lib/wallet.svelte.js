// Who signs: a browser's wallet (EIP-6963, EIP-1193), or an account of the developer chain, whose keys the node has.
import { chain, call } from "./chain.svelte.js";
import { num } from "./format.js";
import { bringTo, listen, sendBy } from "./provider.js";

export const wallet = $state({
    /// Wallets of the browser that made themselves known: { info, provider }.
    found: [],
    /// The address that signs, or null.
    account: null,
    /// The wallet behind it; null for an account of the node.
    provider: null,
    name: "",
    /// The chain that the wallet of the browser is on; null if that is not known.
    chainId: null,
    error: "",
});

window.addEventListener("eip6963:announceProvider", ({ detail }) => {
    const isKnown = wallet.found.some(({ info }) => info.uuid === detail.info.uuid);
    // A wallet's name is text that an extension chose: it is shown, never run.
    if (!isKnown) wallet.found = [...wallet.found, { info: { ...detail.info }, provider: detail.provider }];
});
window.dispatchEvent(new Event("eip6963:requestProvider"));

const REMEMBERED = "almanac.account";

/// Ends the listening to the wallet that was connected before.
let leave = () => {};

/// Signs with an account of the node.
export function useDevAccount(account) {
    leave();
    Object.assign(wallet, { account, provider: null, chainId: null, name: `dev account ${chain.accounts.indexOf(account)}`, error: "" });
    localStorage.setItem(REMEMBERED, account);
}

/// The account that was chosen before, or the first of a developer chain: nothing has to be chosen to begin.
export function chooseDefault() {
    if (wallet.account || !chain.accounts.length) return;
    const before = localStorage.getItem(REMEMBERED);
    useDevAccount(chain.accounts.includes(before) ? before : chain.accounts[0]);
}

const here = () => ({ chainId: chain.chainId, origin: window.location.origin });

/// Connects a wallet of the browser, and brings it to this chain.
export async function connect({ info, provider }) {
    wallet.error = "";
    try {
        const [account] = await provider.request({ method: "eth_requestAccounts" });
        await bringTo(provider, here());
        leave();
        Object.assign(wallet, { account: account.toLowerCase(), provider, name: info.name, chainId: chain.chainId });
        leave = listen(provider, {
            accountsChanged: ([next]) => Object.assign(wallet, next ? { account: next.toLowerCase() } : { account: null, provider: null, chainId: null }),
            chainChanged: (id) => (wallet.chainId = Number(id)),
        });
    } catch (error) {
        wallet.error = error.message ?? "the wallet refused";
    }
}

/// Sends a transaction and waits until a block has it. Reports each step as words.
export async function send(transaction, onStep = () => {}) {
    const { account, provider, name } = wallet;
    const request = { from: account, ...transaction };
    onStep(provider ? `Waiting for ${name} to sign…` : "Sending…");
    const hash = provider ? await sendBy(provider, request, here()) : await call("eth_sendTransaction", request);
    onStep("Sent. Waiting for a block…", hash);
    const receipt = await receiptOf(hash);
    if (num(receipt.status) !== 1) throw new Error(`block ${num(receipt.blockNumber)} has the transaction, and it failed`);
    return receipt;
}

async function receiptOf(hash) {
    for (let tries = 0; tries < 120; tries += 1) {
        const receipt = await call("eth_getTransactionReceipt", hash);
        if (receipt) return receipt;
        await new Promise((resolve) => setTimeout(resolve, 250));
    }
    throw new Error("no block has the transaction yet; it may still come");
}
