// Native transactions (specs/native-transaction.md) with what viem has: typed data, RLP and keccak. The digests are
// those of the published vectors, and what is sent is read by viem, ethers and cast.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { JsonRpcProvider } from "ethers";
import { concat, fromRlp, hashTypedData, keccak256, numberToHex, parseSignature, slice, toRlp, zeroAddress } from "viem";
import { alice, bob, carol, reader } from "./accounts-viem.mjs";
import { finish, foundry, isAlmanac, onlyAlmanac, root, rpc, run, until, url } from "./check.mjs";

const types = {
    Transaction: [
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
    ],
    Call: [
        { name: "to", type: "address" },
        { name: "value", type: "uint256" },
        { name: "data", type: "bytes" },
    ],
};
const paying = { ...types, PayFee: [{ name: "transaction", type: "Transaction" }] };

const domain = (chainId, salt) => ({
    name: "Almanac",
    version: "1",
    chainId,
    verifyingContract: "0x000000000000000000000000000000000000a104",
    salt,
});
const rotating = {
    RotateKey: [
        { name: "account", type: "address" },
        { name: "key", type: "bytes" },
        { name: "rotation", type: "uint64" },
    ],
};

const integer = (hex) => (hex === "0x" ? 0n : BigInt(hex));
const minimal = (number) => (BigInt(number) === 0n ? "0x" : numberToHex(number));

/** The fields of an encoded transaction. */
function decode(encoded) {
    const [chainId, sender, kind, nonce, expiration, tip, cap, gas, calls, feePayer] = fromRlp(slice(encoded, 1));
    const creation = calls[0][0] === "0x";
    return {
        chainId: integer(chainId),
        message: {
            sender,
            kind: Number(integer(kind)),
            nonce: integer(nonce),
            expiration: integer(expiration),
            creation,
            calls: calls.map(([to, value, data]) => ({ to: creation ? zeroAddress : to, value: integer(value), data })),
            gasLimit: integer(gas),
            maxFeePerGas: integer(cap),
            maxPriorityFeePerGas: integer(tip),
            feePayer: feePayer === "0x" ? zeroAddress : feePayer,
        },
    };
}

/** A signature as the encoding has it: r, s, and the parity as a byte. */
function packed(signature) {
    const { r, s, yParity } = parseSignature(signature);
    return concat([r, s, numberToHex(yParity, { size: 1 })]);
}

/** Signs with the wallet's typed data, and encodes. */
async function made(chain, message, payer) {
    const signatures = [packed(await alice.signTypedData({ domain: chain, types, primaryType: "Transaction", message }))];
    const pay = { domain: chain, types: paying, primaryType: "PayFee", message: { transaction: message } };
    const byPayer = payer ? [packed(await payer.signTypedData(pay))] : [];
    const head = [chain.chainId, message.sender, message.kind, message.nonce, message.expiration];
    const fees = [message.maxPriorityFeePerGas, message.maxFeePerGas, message.gasLimit];
    const form = (value) => (typeof value === "string" ? value : minimal(value));
    const calls = message.calls.map(({ to, value, data }) => [to, minimal(value), data]);
    const payerField = payer ? payer.address : "0x";
    return concat(["0x72", toRlp([...head.map(form), ...fees.map(form), calls, payerField, signatures, byPayer])]);
}

await onlyAlmanac("the digests of the vectors are those of viem's typed data", async () => {
    const file = path.join(root, "specs/vectors/encodings.json");
    const vectors = JSON.parse(fs.readFileSync(file, "utf8"));
    const salt = `0x${"60".repeat(32)}`;
    for (const name of ["sequence", "orderless", "creation", "paid"]) {
        const encoded = vectors[`native.${name}`];
        assert.equal(keccak256(encoded), vectors[`native.${name}.hash`]);
        const { chainId, message } = decode(encoded);
        const common = { domain: domain(chainId, salt) };
        const signing = hashTypedData({ ...common, types, primaryType: "Transaction", message });
        assert.equal(signing, vectors[`native.${name}.signing_hash`], name);
        const pay = { ...common, types: paying, primaryType: "PayFee", message: { transaction: message } };
        assert.equal(hashTypedData(pay), vectors[`native.${name}.fee_payer_signing_hash`], name);
    }
    const { chainId, message } = decode(vectors["native.sequence"]);
    const rotation = { account: message.sender, key: "0x0102", rotation: 3n };
    const common = { domain: domain(chainId, salt), types: rotating, primaryType: "RotateKey" };
    assert.equal(hashTypedData({ ...common, message: rotation }), vectors["native.rotation_digest"]);
});

let sent;
if (isAlmanac) {
    const [{ hash: salt }, { timestamp }] = await Promise.all([
        reader.getBlock({ blockNumber: 0n }),
        reader.getBlock({ blockTag: "pending" }),
    ]);
    const chain = domain(31337n, salt);
    const message = {
        sender: alice.address,
        kind: 1,
        nonce: 2n ** 64n - 1n,
        expiration: timestamp + 40n,
        creation: false,
        calls: [
            { to: bob.address, value: 5n, data: "0x" },
            { to: carol.address, value: 6n, data: "0x0102" },
        ],
        gasLimit: 200_000n,
        maxFeePerGas: 5_000_000_000n,
        maxPriorityFeePerGas: 1n,
        feePayer: bob.address,
    };
    sent = { chain, message, encoded: await made(chain, message, bob) };
}

await onlyAlmanac("a batch signed as typed data and paid by another is committed once", async () => {
    const before = await reader.getBalance({ address: alice.address });
    sent.hash = await rpc("eth_sendRawTransaction", sent.encoded);
    assert.equal(sent.hash, keccak256(sent.encoded));
    sent.receipt = await reader.waitForTransactionReceipt({ hash: sent.hash, timeout: 10_000 });
    assert.deepEqual([sent.receipt.status, sent.receipt.type], ["success", "eip1559"]);
    assert.equal(await reader.getBalance({ address: alice.address }), before - 11n);
    await assert.rejects(rpc("eth_sendRawTransaction", sent.encoded), /NonceAlreadyUsed/);
});
await onlyAlmanac("viem reads it, alone and in its block", async () => {
    const found = await reader.getTransaction({ hash: sent.hash });
    assert.deepEqual([found.type, found.almanacType], ["eip1559", "0x72"]);
    assert.ok(found.nonce >= 2 ** 52 && Number.isSafeInteger(found.nonce), `a nonce of its own: ${found.nonce}`);
    assert.equal(found.maxFeePerGas, sent.message.maxFeePerGas);
    assert.equal(found.feePayer, bob.address.toLowerCase());
    assert.deepEqual(found.replayProtector, {
        nonce: numberToHex(sent.message.nonce),
        expiration: numberToHex(sent.message.expiration),
    });
    const block = await reader.getBlock({ blockHash: sent.receipt.blockHash, includeTransactions: true });
    assert.ok(block.transactions.some(({ hash }) => hash === sent.hash));
});
await onlyAlmanac("ethers reads it, alone and in its block", async () => {
    const provider = new JsonRpcProvider(url);
    const block = await provider.getBlock(sent.receipt.blockHash, true);
    const found = block.prefetchedTransactions.find(({ hash }) => hash === sent.hash);
    assert.deepEqual([found.from, found.type], [alice.address, 2]);
    assert.equal((await provider.getTransactionReceipt(sent.hash)).status, 1);
});
await onlyAlmanac("cast reads it, alone and in its block", async () => {
    const env = { ...process.env, ETH_RPC_URL: url, NO_COLOR: "1" };
    const cast = (...args) => run(foundry("cast"), args, { env });
    const block = JSON.parse(await cast("block", "--full", "--json", `${sent.receipt.blockNumber}`));
    assert.equal(block.transactions.find(({ hash }) => hash === sent.hash).almanacType, "0x72");
    assert.equal(JSON.parse(await cast("receipt", "--json", sent.hash)).status, "0x1");
    assert.equal(JSON.parse(await cast("rpc", "eth_getRawTransactionByHash", sent.hash)), sent.encoded);
});
await onlyAlmanac("a signature of another chain or another block 0 is none of this one", async () => {
    const message = { ...sent.message, nonce: 1n, feePayer: zeroAddress };
    const elsewhere = { ...sent.chain, salt: `0x${"61".repeat(32)}` };
    await assert.rejects(rpc("eth_sendRawTransaction", await made(elsewhere, message)), /KeyNotSatisfied/);
    const otherId = { ...sent.chain, chainId: 1n };
    await assert.rejects(rpc("eth_sendRawTransaction", await made(otherId, message)), /chain/);
    const right = await rpc("eth_sendRawTransaction", await made(sent.chain, message));
    await until("the right one", () => rpc("eth_getTransactionReceipt", right));
});
finish();
