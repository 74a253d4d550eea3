// Part of the suite `hedera`: the examples of transactions that wait for signatures, with clients/ts, cast and viem: a treasury of five, a swap of
// tokens, a payroll with a deadline, a contract written for Hedera, and the way with cast alone.

import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { createPublicClient, createWalletClient, encodeFunctionData, getAddress, http, parseEther, parseEventLogs, toFunctionSelector } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { accounts, artifact, foundry, isNetwork, onlyAlmanac, passUntil, rpc, run, url } from "./check.mjs";
import { almanac } from "./package-ts.mjs";

const { almanacActions, almanacChain, createdAccountOf, doors, encodeBody, leafKey, scheduleIdOf, scheduleTypedData, thresholdKey } = almanac;
const chain = almanacChain(Number(await rpc("eth_chainId")), url);
const people = accounts.map(({ key }) => privateKeyToAccount(key));
const [alice, bob, carol] = people;
const options = { chain, transport: http(url), pollingInterval: 50 };
const client = createPublicClient(options);
const [clerk, ...others] = people.map((account) => createWalletClient({ ...options, account }).extend(almanacActions()));
const maxFeePerGas = 10n ** 12n;
const DAY = 86_400n;

const now = async () => BigInt((await rpc("eth_getBlockByNumber", "pending", false)).timestamp);
const address = (n) => getAddress(`0x${n.toString(16).padStart(40, "0")}`);
const read = (name, at, functionName, args = []) => client.readContract({ address: at, abi: artifact(name).abi, functionName, args });

/** The receipt of a transaction that has to succeed. */
async function done(sent) {
    const receipt = await client.waitForTransactionReceipt({ hash: await sent });
    assert.equal(receipt.status, "success");
    return receipt;
}

async function deploy(name, args = [], value = 0n, from = clerk) {
    const { abi, bytecode } = artifact(name);
    return getAddress((await done(from.deployContract({ abi, bytecode, args, value }))).contractAddress);
}

/** The record of a schedule's run. */
async function recordOf(id) {
    const { runs } = await clerk.getRuns(id);
    assert.equal(runs.length, 1, `${runs.length} runs of ${id}`);
    return await clerk.getRecord(runs[0].hash);
}

/** The second at which salaries are paid and the alarm rings. On a network it really has to come. */
let payday;
const payrolls = { employees: [address(0x5003), address(0x5004)] };

/** A month's list, as the clerk prepares it. */
function payroll(month) {
    const salaries = payrolls.employees.map((employee, n) => ({ employee, amount: BigInt(n) + 7n }));
    const data = encodeFunctionData({ abi: artifact("Payroll").abi, functionName: "pay", args: [BigInt(month), salaries] });
    const calls = [{ from: carol.address, to: payrolls.address, data }];
    return { calls, gasLimit: 300_000n, maxFeePerGas, memo: `payroll ${month}`, executionTime: payday, waitForExpiry: true };
}

await onlyAlmanac("the CFO signs one of two payrolls for Friday", async () => {
    payrolls.address = await deploy("Payroll", [carol.address], 100n);
    payrolls.alarm = await deploy("HederaAlarm");
    payday = (await now()) + (isNetwork ? 15n : 4n * DAY);
    payrolls.ids = [];
    for (const month of [1, 2]) payrolls.ids.push(scheduleIdOf(await done(clerk.createSchedule(payroll(month)))));
    // Carol signs where she is, and somebody else brings it.
    await done(others[0].signSchedule(payrolls.ids[0], [await clerk.signOrder(payroll(1), { account: carol })]));
    const [first, second] = await Promise.all(payrolls.ids.map((id) => clerk.getScheduleInfo(id)));
    assert.deepEqual([first.ended, first.expiresAt, first.signers.length, second.signers.length], [0, payday, 1, 0]);
    assert.equal(await read("Payroll", payrolls.address, "isPaid", [1n]), false, "not before Friday");
});

const hedera = (functionName, args = []) => {
    const request = { address: payrolls.alarm, abi: artifact("HederaAlarm").abi, functionName, args };
    return clerk.writeContract(request).then((hash) => done(Promise.resolve(hash)));
};
/** The code that the schedule service answered the alarm with. */
async function answered(functionName, args) {
    const { logs } = await hedera(functionName, args);
    return parseEventLogs({ abi: artifact("HederaAlarm").abi, logs, eventName: "Answered" })[0].args;
}

await onlyAlmanac("a contract written for Hedera gets its codes", async () => {
    const selectors = artifact("IHederaScheduleService").abi.map((one) => toFunctionSelector(one));
    const table = ["6f5bfde8", "e6599c18", "105772b2", "72d42394", "c61dea85", "dfb4a999", "f0637961", "06d15889", "358eeb03", "ca829811"];
    assert.deepEqual(selectors.sort(), table.map((one) => `0x${one}`).sort());
    const set = async (second) => (await answered("set", [second, 100_000n])).responseCode;
    assert.equal(await set(payday), 10n, "it has no fund");
    await done(clerk.fund(payrolls.alarm, parseEther("0.1")));
    assert.deepEqual([await client.getBalance({ address: payrolls.alarm }), await clerk.getFund(payrolls.alarm)], [0n, parseEther("0.1")]);
    const free = (gasLimit) => read("HederaAlarm", payrolls.alarm, "free", [payday - 1n, gasLimit, 2n]);
    assert.deepEqual([await free(100_000n), await free(100_000_000n)], [payday, 0n]);
    const { responseCode, schedule } = await answered("set", [payday, 100_000n]);
    assert.equal(responseCode, 22n);
    payrolls.ring = BigInt(schedule);
    // Those that are not to ring.
    assert.deepEqual([await set(1n), await set(payday + 63n * DAY)], [307n, 306n]);
    assert.equal((await answered("native")).responseCode, 13n);
    for (const stop of ["stop", "stopThere"]) {
        assert.equal(await set(payday + DAY), 22n);
        assert.equal((await answered(stop)).responseCode, 22n);
    }
    assert.equal((await answered("stop")).responseCode, 212n, "deleted already");
    assert.ok((await clerk.getFund(payrolls.alarm)) < parseEther("0.1"), "the fund has paid");
});

await onlyAlmanac("three of five pay from the treasury", async () => {
    const treasury = createdAccountOf(await done(clerk.createAccount(thresholdKey(3, people.map(({ address }) => leafKey(address))))));
    await done(clerk.sendNative({ calls: [{ to: treasury, value: parseEther("1") }] }));
    const supplier = address(0x5001);
    // The treasury pays for the gas as well, so that anybody may bring the signatures.
    const calls = [{ from: treasury, to: supplier, value: parseEther("0.5") }];
    const invoice = { calls, gasLimit: 100_000n, maxFeePerGas, memo: "invoice 77", nonce: 77, payer: treasury };
    const [first, second, third, fourth, fifth] = await Promise.all(people.map((account) => clerk.signOrder(invoice, { account })));
    const id = scheduleIdOf(await done(clerk.createSchedule(invoice, [second])));
    // Alice is a member, and has signed by sending.
    assert.equal((await clerk.getScheduleInfo(id)).signers.length, 2);
    assert.equal(await client.getBalance({ address: supplier }), 0n, "two of five");
    await done(others[0].signSchedule(id, [fourth]));
    assert.equal(await client.getBalance({ address: supplier }), parseEther("0.5"));
    const { status, memo, fee, transfers, transactionId, scheduleRef } = await recordOf(id);
    assert.deepEqual([status, memo, scheduleRef], ["SUCCESS", "invoice 77", id]);
    assert.deepEqual([transactionId.scheduled, transactionId.nonce, getAddress(transactionId.account)], [true, 77, alice.address]);
    const paid = transfers.find(({ account }) => getAddress(account) === treasury);
    assert.equal(paid.amount, -parseEther("0.5") - fee, "value and fee are the treasury's");
    // Three more have signed, and are not asked again.
    const again = await clerk.createSchedule(invoice, [first, third, fifth]).catch((error) => error);
    assert.match(String(again.message), /earlier round|10001/);
});

await onlyAlmanac("two parties swap tokens, or keep them", async () => {
    const [gold, silver] = [await deploy("PlainToken", [1_000n]), await deploy("PlainToken", [1_000n], 0n, others[0])];
    const { abi } = artifact("PlainToken");
    const leg = (from, token, to, amount) => {
        const data = encodeFunctionData({ abi, functionName: "transfer", args: [to.address, amount] });
        return { from: from.address, to: token, data };
    };
    const swap = (amount) => ({ calls: [leg(alice, gold, bob, 100n), leg(bob, silver, alice, amount)], gasLimit: 300_000n, maxFeePerGas });
    const held = () => Promise.all([[gold, alice], [gold, bob], [silver, alice], [silver, bob]].map(([token, { address }]) => read("PlainToken", token, "balanceOf", [address])));
    // Alice proposes, which is her signature; Bob accepts.
    const id = scheduleIdOf(await done(clerk.createSchedule(swap(250n))));
    assert.deepEqual(await held(), [1_000n, 0n, 0n, 1_000n]);
    await done(others[0].signSchedule(id));
    assert.deepEqual(await held(), [900n, 100n, 250n, 750n]);
    const { tokenTransfers } = await recordOf(id);
    assert.deepEqual(tokenTransfers.map(({ token }) => getAddress(token)), [gold, silver]);
    // Bob has not as much any more: his signature stands, and nobody has less.
    const promised = scheduleIdOf(await done(clerk.createSchedule(swap(751n))));
    await done(others[0].signSchedule(promised));
    assert.equal((await recordOf(promised)).status, "CONTRACT_REVERT_EXECUTED");
    assert.deepEqual(await held(), [900n, 100n, 250n, 750n]);
});

await onlyAlmanac("who creates the same learns its id", async () => {
    const order = { calls: [{ from: carol.address, to: address(0x5002), value: 1n }], gasLimit: 50_000n, maxFeePerGas };
    const receipts = [await done(clerk.createSchedule(order)), await done(others[0].createSchedule(order))];
    const [id, same] = receipts.map(scheduleIdOf);
    assert.equal(same, id);
    const records = await Promise.all(receipts.map(({ transactionHash }) => clerk.getRecord(transactionHash)));
    assert.deepEqual(records.map(({ createdId }) => createdId), [id, id]);
});

const cast = (...args) => run(foundry("cast"), [...args, "--rpc-url", url], { env: { ...process.env, NO_COLOR: "1" } });

await onlyAlmanac("cast alone creates, signs and reads", async () => {
    const heir = address(0x5005);
    const order = { calls: [{ from: bob.address, to: heir, value: 9n }], gasLimit: 60_000n, maxFeePerGas, memo: "cast", nonce: 3 };
    const body = "((address,address,uint256,bytes)[],uint64,uint256,string,uint32,uint64,bool)";
    const values = `([(${bob.address},${heir},9,0x)],60000,${maxFeePerGas},"cast",3,0,false)`;
    const encoded = await run(foundry("cast"), ["abi-encode", `body(${body})`, values]);
    assert.equal(encoded, encodeBody(order), "as viem encodes it");
    const create = ["send", doors.signed, "createSchedule(bytes,bytes,address,(bytes,bytes,uint64)[])"];
    const zero = address(0);
    const receipt = JSON.parse(await cast(...create, encoded, "0x", zero, "[]", "--private-key", accounts[0].key, "--json"));
    const [{ args: { id } }] = parseEventLogs({ abi: artifact("IScheduleService").abi, logs: receipt.logs, eventName: "ScheduleCreated" });
    // What Bob signs, as a file.
    const deadline = (await now()) + 600n;
    const data = scheduleTypedData(order, 0, deadline, chain.id, (await rpc("eth_getBlockByNumber", "0x0", false)).hash);
    const domainTypes = ["name string", "version string", "chainId uint256", "verifyingContract address", "salt bytes32"];
    const EIP712Domain = domainTypes.map((field) => ({ name: field.split(" ")[0], type: field.split(" ")[1] }));
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), "cast-"));
    const file = path.join(folder, "schedule.json");
    const text = { ...data, types: { EIP712Domain, ...data.types } };
    fs.writeFileSync(file, JSON.stringify(text, (_, value) => (typeof value === "bigint" ? value.toString() : value)));
    const signed = await run(foundry("cast"), ["wallet", "sign", "--data", "--from-file", file, "--private-key", accounts[1].key]);
    fs.rmSync(folder, { recursive: true });
    const signature = `${signed.slice(0, 130)}${signed.endsWith("1b") ? "00" : "01"}${signed.slice(132)}`.slice(0, 132);
    const entry = `[(${leafKey(bob.address)},${signature},${deadline})]`;
    const sign = ["send", doors.signed, "signSchedule(uint64,(bytes,bytes,uint64)[])", id.toString(), entry];
    assert.equal(JSON.parse(await cast(...sign, "--private-key", accounts[0].key, "--json")).status, "0x1");
    assert.equal(await cast("balance", heir), "9");
    const info = "getScheduleInfo(uint64)(int64,(uint64,address,address,bytes,bytes[],bytes,uint32,uint64,uint8,uint64))";
    assert.match(await cast("call", doors.signed, info, id.toString()), /^212\n/);
});

await onlyAlmanac("on Friday the signed payroll pays, the other lapses, and the alarm rings", async () => {
    await passUntil(Number(payday) + 1);
    const balances = await Promise.all(payrolls.employees.map((address) => client.getBalance({ address })));
    assert.deepEqual(balances, [7n, 8n]);
    const ends = await Promise.all(payrolls.ids.map((id) => clerk.getScheduleInfo(id)));
    assert.deepEqual(ends.map(({ ended }) => ended), [1, 3], "executed, expired");
    const { memo, status, transactionId } = await recordOf(payrolls.ids[0]);
    assert.deepEqual([memo, status, getAddress(transactionId.account)], ["payroll 1", "SUCCESS", alice.address]);
    assert.equal(await read("HederaAlarm", payrolls.alarm, "rings"), 1n);
    const logs = await client.getLogs({ address: payrolls.alarm, fromBlock: 0n });
    const [rang] = parseEventLogs({ abi: artifact("HederaAlarm").abi, logs, eventName: "Rang" });
    assert.ok(rang.args.second >= payday, `${rang.args.second}`);
    const { transfers, fee, scheduleRef } = await recordOf(payrolls.ring);
    assert.equal(scheduleRef, payrolls.ring);
    assert.deepEqual(transfers.map(({ account, amount }) => [account.slice(-4), amount]), [["a1ff", -fee]], "the fund is the ledger's");
});
