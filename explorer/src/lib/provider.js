// A wallet of the browser (EIP-1193) that signs for this chain, and for no other.
import { hex } from "./format.js";

/// Codes of EIP-1193 and EIP-3085.
const REFUSED = 4001;
const UNKNOWN_CHAIN = 4902;

// Some wallets wrap the code of what went wrong inside.
const codeOf = (error) => (error?.data?.originalError?.code ?? error?.code);

/// Brings the wallet to the chain of the page, and makes sure that it is there.
export async function bringTo(provider, { chainId, origin }) {
    if (!chainId) throw new Error("the node has not reported its chain id yet");
    if ((await chainOf(provider)) !== chainId) await change(provider, { chainId, origin });
    const now = await chainOf(provider);
    if (now !== chainId) throw new Error(`the wallet is on chain ${now}, this page shows chain ${chainId}`);
}

/// Asks the wallet to sign and send. The request names the chain, so that a wallet that changes meanwhile refuses it.
export async function sendBy(provider, request, { chainId, origin }) {
    await bringTo(provider, { chainId, origin });
    return asked(provider, "eth_sendTransaction", [{ ...request, chainId: hex(chainId) }]);
}

/// Listens to a wallet until the function that this returns is called.
export function listen(provider, handlers) {
    for (const [event, handler] of Object.entries(handlers)) provider.on?.(event, handler);
    return () => {
        for (const [event, handler] of Object.entries(handlers)) provider.removeListener?.(event, handler);
    };
}

export const chainOf = async (provider) => Number(await provider.request({ method: "eth_chainId" }));

async function change(provider, { chainId, origin }) {
    const id = hex(chainId);
    try {
        await provider.request({ method: "wallet_switchEthereumChain", params: [{ chainId: id }] });
    } catch (error) {
        // Only a chain that the wallet does not know is added: a refusal is an answer.
        if (codeOf(error) !== UNKNOWN_CHAIN) throw inWords(error);
        const coin = { name: "Almanac coin", symbol: "COIN", decimals: 18 };
        await asked(provider, "wallet_addEthereumChain", [{ chainId: id, chainName: `Almanac ${chainId}`, rpcUrls: [origin], nativeCurrency: coin }]);
        // Some wallets add a chain without changing to it.
        if ((await chainOf(provider)) !== chainId) await asked(provider, "wallet_switchEthereumChain", [{ chainId: id }]);
    }
}

async function asked(provider, method, params) {
    try {
        return await provider.request({ method, params });
    } catch (error) {
        throw inWords(error);
    }
}

const inWords = (error) => (codeOf(error) === REFUSED ? new Error("refused in the wallet") : error);
