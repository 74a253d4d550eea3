// Transactions that wait for signatures, with viem: wallets sign typed data, and cast reads what became of it. The
// examples follow in hedera-examples.mjs.

import assert from "node:assert/strict";
import { concat, createPublicClient, createWalletClient, defineChain, encodeAbiParameters, http, numberToHex, parseEventLogs, parseSignature, zeroAddress } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { accounts, artifact, finish, foundry, onlyAlmanac, rpc, run, url } from "./check.mjs";

const SERVICE = "0x000000000000000000000000000000000000a103";
const { abi } = artifact("IScheduleService");
const CALL = [{ name: "from", type: "address" }, { name: "to", type: "address" }, { name: "value", type: "uint256" }, { name: "data", type: "bytes" }];
const TERMS = [
    { name: "gasLimit", type: "uint64" },
    { name: "maxFeePerGas", type: "uint256" },
    { name: "memo", type: "string" },
    { name: "nonce", type: "uint32" },
    { name: "executionTime", type: "uint64" },
    { name: "waitForExpiry", type: "bool" },
];
const SIGNED_FOR = [{ name: "payer", type: "address" }, { name: "adminKey", type: "bytes" }, { name: "round", type: "uint32" }, { name: "deadline", type: "uint64" }];
const BODY = [{ type: "tuple", components: [{ name: "calls", type: "tuple[]", components: CALL }, ...TERMS] }];

const chain = defineChain({ id: Number(await rpc("eth_chainId")), name: "Almanac", nativeCurrency: { name: "Coin", symbol: "C", decimals: 18 }, rpcUrls: { default: { http: [url] } } });
const [alice, bob, carol] = accounts.slice(0, 3).map(({ key }) => privateKeyToAccount(key));
const client = createPublicClient({ chain, transport: http(url), pollingInterval: 50 });
const wallet = createWalletClient({ account: alice, chain, transport: http(url) });
const salt = (await rpc("eth_getBlockByNumber", "0x0", false)).hash;
const domain = { name: "Almanac", version: "1", chainId: chain.id, verifyingContract: SERVICE, salt };
const leaf = ({ address }) => concat(["0x01", address]);
const read = (functionName, args) => client.readContract({ address: SERVICE, abi, functionName, args });
const soon = async () => BigInt((await rpc("eth_getBlockByNumber", "pending", false)).timestamp) + 600n;

/** Bob and Carol each pay a heir: nothing happens unless both sign. */
function payments(heir, nonce) {
    const pays = ({ address }, value) => ({ from: address, to: heir, value, data: "0x" });
    return { calls: [pays(bob, 5n), pays(carol, 7n)], gasLimit: 150_000n, maxFeePerGas: 10n ** 12n, memo: "rent", nonce, executionTime: 0n, waitForExpiry: false };
}
const encode = (body) => encodeAbiParameters(BODY, [body]);

/** What a wallet signs, as an entry of `sigMap`. */
async function signature(signer, body, round) {
    const deadline = await soon();
    const message = { ...body, payer: zeroAddress, adminKey: "0x", round, deadline };
    const types = { Schedule: [{ name: "calls", type: "Call[]" }, ...TERMS, ...SIGNED_FOR], Call: CALL };
    const { r, s, yParity } = parseSignature(await signer.signTypedData({ domain, types, primaryType: "Schedule", message }));
    return { key: leaf(signer), signature: concat([r, s, numberToHex(yParity, { size: 1 })]), deadline };
}

async function send(functionName, args) {
    const gas = await client.estimateContractGas({ address: SERVICE, abi, functionName, args, account: alice });
    const hash = await wallet.writeContract({ address: SERVICE, abi, functionName, args, gas });
    const receipt = await client.waitForTransactionReceipt({ hash });
    assert.equal(receipt.status, "success");
    return receipt;
}
const events = ({ logs }) => parseEventLogs({ abi, logs }).map(({ eventName }) => eventName);

async function create(body, entries = []) {
    const receipt = await send("createSchedule", [encode(body), "0x", zeroAddress, entries]);
    return parseEventLogs({ abi, logs: receipt.logs, eventName: "ScheduleCreated" })[0].args.id;
}

await onlyAlmanac("the last signature of two executes both payments", async () => {
    const heir = "0x00000000000000000000000000000000000000e1";
    const body = payments(heir, 1);
    const id = await create(body, [await signature(bob, body, 0)]);
    const [code, info] = await read("getScheduleInfo", [id]);
    assert.deepEqual([code, info.signers, info.ended], [22n, [leaf(bob).toLowerCase()], 0]);
    assert.equal(await client.getBalance({ address: heir }), 0n);
    const receipt = await send("signSchedule", [id, [await signature(carol, body, 0)]]);
    assert.deepEqual(events(receipt), ["ScheduleSigned", "ScheduleTriggered"]);
    assert.equal(await client.getBalance({ address: heir }), 12n);
    assert.equal((await read("getScheduleInfo", [id]))[1].ended, 1, "executed");
    // Its run is the next transaction of the block, with a record that names the schedule.
    const block = await rpc("eth_getBlockByNumber", numberToHex(receipt.blockNumber), false);
    const next = block.transactions[receipt.transactionIndex + 1];
    const record = JSON.parse(await run(foundry("cast"), ["rpc", "--rpc-url", url, "almanac_getRecord", next]));
    assert.deepEqual([record.receipt.status, record.transactionID.scheduled], ["SUCCESS", true]);
    assert.equal(BigInt(record.scheduleRef.idNumber), id);
});
await onlyAlmanac("the same payments again need new signatures", async () => {
    const heir = "0x00000000000000000000000000000000000000e2";
    const body = payments(heir, 2);
    const first = await Promise.all([bob, carol].map((signer) => signature(signer, body, 0)));
    await create(body, first);
    assert.equal(await client.getBalance({ address: heir }), 12n);
    assert.equal(await read("roundOf", [encode(body), "0x", zeroAddress]), 1);
    const refused = await client.estimateContractGas({ address: SERVICE, abi, functionName: "createSchedule", args: [encode(body), "0x", zeroAddress, first], account: alice }).catch((error) => error);
    assert.match(refused.message, /earlier round|10001/);
    await create(body, await Promise.all([bob, carol].map((signer) => signature(signer, body, 1))));
    assert.equal(await client.getBalance({ address: heir }), 24n);
});
await onlyAlmanac("a caller signs by calling, and strangers are refused", async () => {
    const heir = "0x00000000000000000000000000000000000000e3";
    const body = { ...payments(heir, 3), calls: [{ from: alice.address, to: heir, value: 3n, data: "0x" }, { from: bob.address, to: heir, value: 4n, data: "0x" }] };
    const id = await create(body);
    const stranger = await client.estimateContractGas({ address: SERVICE, abi, functionName: "signSchedule", args: [id, [await signature(carol, body, 0)]], account: alice }).catch((error) => error);
    assert.match(stranger.message, /does not have to|208/);
    await send("signSchedule", [id, [await signature(bob, body, 0)]]);
    assert.equal(await client.getBalance({ address: heir }), 7n);
});
await import("./hedera-examples.mjs");
finish();
