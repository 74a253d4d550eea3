// A wallet signs on the page's chain or not at all.
import assert from "node:assert/strict";
import test from "node:test";
import { bringTo, listen, sendBy } from "../src/lib/provider.js";

const here = { chainId: 31_337, origin: "http://127.0.0.1:8545" };

/// A wallet on a chain, that knows some chains and may refuse.
function wallet({ on = 1, knows = [1], refuses = null, stays = false } = {}) {
    const asked = [];
    const state = { on };
    const request = async ({ method, params }) => {
        if (method === "eth_chainId") return `0x${state.on.toString(16)}`;
        asked.push([method, params?.[0]]);
        if (refuses === method) throw Object.assign(new Error("User rejected the request."), { code: 4001 });
        const id = Number(params?.[0].chainId);
        if (method === "wallet_switchEthereumChain" && !knows.includes(id)) throw Object.assign(new Error("unknown"), { code: 4902 });
        if (method === "wallet_addEthereumChain") return void knows.push(id);
        if (method === "wallet_switchEthereumChain" && !stays) state.on = id;
        if (method === "eth_sendTransaction") return "0xhash";
        return null;
    };
    return { provider: { request }, asked, state, methods: () => asked.map(([method]) => method) };
}

test("a wallet on another chain is brought to this one before it signs", async () => {
    const { provider, asked } = wallet({ knows: [1, 31_337] });
    await sendBy(provider, { from: "0xaa", value: "0x1" }, here);
    assert.deepEqual(asked.map(([method]) => method), ["wallet_switchEthereumChain", "eth_sendTransaction"]);
    assert.deepEqual(asked[1][1], { from: "0xaa", value: "0x1", chainId: "0x7a69" });
});

test("a wallet that is here is asked to sign only", async () => {
    const { provider, methods } = wallet({ on: 31_337 });
    await sendBy(provider, {}, here);
    assert.deepEqual(methods(), ["eth_sendTransaction"]);
});

test("a refusal to change is a refusal: no chain is added, nothing is signed", async () => {
    const { provider, methods } = wallet({ knows: [1, 31_337], refuses: "wallet_switchEthereumChain" });
    await assert.rejects(sendBy(provider, {}, here), /refused in the wallet/);
    assert.deepEqual(methods(), ["wallet_switchEthereumChain"]);
});

test("a chain that the wallet does not know is added, then chosen", async () => {
    const { provider, methods, state } = wallet();
    await bringTo(provider, here);
    assert.deepEqual(methods(), ["wallet_switchEthereumChain", "wallet_addEthereumChain", "wallet_switchEthereumChain"]);
    assert.equal(state.on, 31_337);
});

test("a wallet that says yes and stays elsewhere does not sign", async () => {
    const { provider, methods } = wallet({ knows: [1, 31_337], stays: true });
    await assert.rejects(sendBy(provider, {}, here), /the wallet is on chain 1, this page shows chain 31337/);
    assert.ok(!methods().includes("eth_sendTransaction"));
    await assert.rejects(sendBy(provider, {}, { ...here, chainId: null }), /has not reported/);
});

test("the wallet before is not heard any more", () => {
    const heard = new Map();
    const provider = { on: (event, handler) => heard.set(event, handler), removeListener: (event, handler) => heard.get(event) === handler && heard.delete(event) };
    const leave = listen(provider, { accountsChanged() {}, chainChanged() {} });
    assert.equal(heard.size, 2);
    leave();
    assert.equal(heard.size, 0);
});
