// A year of token subscriptions with viem: the chain charges them itself, and time travel brings the months.

import assert from "node:assert/strict";
import { parseEther } from "viem";
import { alice, bob, carol, included, reader, wallet } from "./accounts-viem.mjs";
import { artifact, finish, isAlmanac, onlyAlmanac, rpc } from "./check.mjs";

const CRON = "0x0000000000000000000000000000000000000006";
const MONTH = 30 * 86_400;
const PRICE = 25n;
/** For a thousand charges in a thousand blocks. A debug build on a busy machine took 4,000 ms. */
const YEAR_MS_MAX = 25_000;

const subscriptionsFile = artifact("Subscriptions");
const tokenFile = artifact("PlainToken");
let subscriptions;
let token;

async function deploy(file, args = []) {
    const { contractAddress } = await included(await wallet.deployContract({ ...file, args }));
    const contract = { address: contractAddress, abi: file.abi };
    return {
        ...contract,
        read: (functionName, ...args) => reader.readContract({ ...contract, functionName, args }),
        write: async (options, functionName, ...args) => {
            const receipt = await included(
                await wallet.writeContract({ ...contract, functionName, args, ...options }),
            );
            assert.equal(receipt.status, "success");
            return receipt;
        },
        events: (from) => reader.getContractEvents({ ...contract, fromBlock: from }),
    };
}

/** Subscribes alice to carol, and gives the id. */
async function subscribe(intervalSec, maxCharges, value = parseEther("0.1")) {
    const args = [token.address, carol.address, PRICE, BigInt(intervalSec), maxCharges];
    const { blockNumber } = await subscriptions.write({ value }, "approveSubscription", ...args);
    const [approved] = await subscriptions.events(blockNumber);
    assert.equal(approved.eventName, "SubscriptionApproved");
    assert.deepEqual([approved.args.customer, approved.args.merchant], [alice.address, carol.address]);
    return approved.args.id;
}

/** Lets a month pass, and gives what the subscriptions said on the way, in short. */
async function month() {
    const before = await reader.getBlockNumber();
    const { blocks, runs } = await rpc("almanac_increaseTime", MONTH);
    const events = blocks.length === 0 ? [] : await subscriptions.events(before + 1n);
    assert.ok(events.every(({ blockNumber }) => blocks.some((block) => BigInt(block.number) === blockNumber)));
    const said = events.map(({ eventName, args }) =>
        eventName === "SubscriptionFailed" ? args.reason : `charged, ${args.chargesLeft} left`,
    );
    return { runs: Number(runs), said, events };
}

if (isAlmanac) {
    subscriptions = await deploy(subscriptionsFile);
    token = await deploy(tokenFile, [10n ** 9n]);
}

await onlyAlmanac("a year of months; the allowance runs out and is topped up", async () => {
    await token.write({}, "approve", subscriptions.address, 4n * PRICE);
    const id = await subscribe(MONTH, 10n);
    const year = [];
    for (let n = 1; n <= 12; n++) {
        const { runs, said, events } = await month();
        assert.equal(runs, 1);
        year.push(...said);
        const { from, status } = await reader.getTransactionReceipt({ hash: events[0].transactionHash });
        assert.deepEqual([from, status], [CRON, "success"]);
        if (n === 5) {
            const shown = await subscriptions.read("getSubscription", id);
            assert.equal(shown.failure, "allowance too low");
            assert.equal(shown.chargesLeft, 6n);
        }
        if (n === 6) await token.write({}, "approve", subscriptions.address, 6n * PRICE);
    }
    assert.deepEqual(year, [
        "charged, 9 left",
        "charged, 8 left",
        "charged, 7 left",
        "charged, 6 left",
        "allowance too low",
        "allowance too low",
        "charged, 5 left",
        "charged, 4 left",
        "charged, 3 left",
        "charged, 2 left",
        "charged, 1 left",
        "charged, 0 left",
    ]);
    assert.equal(await token.read("balanceOf", carol.address), 10n * PRICE);
    const shown = await subscriptions.read("getSubscription", id);
    assert.deepEqual([shown.state, shown.isScheduled, shown.chargesMade], [3, false, 10n]);
    assert.deepEqual((await month()).said, []);
});
await onlyAlmanac("cancel and reclaim bring the gas money back", async () => {
    await token.write({}, "approve", subscriptions.address, 10n * PRICE);
    const id = await subscribe(MONTH, 0n);
    assert.deepEqual((await month()).said, [`charged, ${2n ** 256n - 1n} left`]);
    await subscriptions.write({}, "cancelSubscription", id);
    assert.deepEqual((await month()).said, []);
    const { escrow, jobId } = await subscriptions.read("getSubscription", id);
    assert.ok(escrow > parseEther("0.09"), `${escrow}`);
    const before = await reader.getBalance({ address: alice.address });
    const { gasUsed, effectiveGasPrice } = await subscriptions.write({}, "reclaim", id);
    const after = await reader.getBalance({ address: alice.address });
    assert.equal(after - before, escrow - gasUsed * effectiveGasPrice);
    assert.equal((await month()).runs, 0);
    assert.ok(jobId > 0n);
});
await onlyAlmanac("errors come with their names and numbers", async () => {
    const id = await subscribe(MONTH, 1n);
    const fails = async (account, functionName, args, name, values) => {
        const error = await reader
            .simulateContract({
                address: subscriptions.address,
                abi: subscriptionsFile.abi,
                functionName,
                args,
                account,
            })
            .then(
                () => assert.fail(`${functionName} was to revert`),
                (e) => e.walk((cause) => cause.data?.errorName),
            );
        assert.deepEqual([error.data.errorName, ...error.data.args], [name, ...values]);
    };
    const customer = alice.address;
    await fails(bob, "cancelSubscription", [id], "NotCustomer", [id, bob.address, customer]);
    await fails(alice, "chargeSubscription", [id], "NotRegistry", [customer, CRON]);
    await fails(alice, "reclaim", [id], "SubscriptionActive", [id]);
    await fails(alice, "cancelSubscription", [id + 1n], "UnknownSubscription", [id + 1n, id]);
    await subscriptions.write({}, "cancelSubscription", id);
    await subscriptions.write({}, "reclaim", id);
});
await onlyAlmanac("a year with a thousand due charges takes seconds", async () => {
    const count = 84;
    await token.write({}, "approve", subscriptions.address, 10n ** 9n);
    const before = await token.read("balanceOf", carol.address);
    // Each has an interval of its own, so that hardly two are due in the same block.
    for (let n = 0; n < count; n++) await subscribe(MONTH - 60 * n, 0n, parseEther("0.02"));
    const begin = performance.now();
    const { blocks, runs } = await rpc("almanac_increaseTime", 12 * MONTH);
    const ms = performance.now() - begin;
    assert.ok(Number(runs) >= 1_000, `${Number(runs)} runs`);
    assert.equal(((await token.read("balanceOf", carol.address)) - before) / PRICE, BigInt(runs));
    assert.ok(ms < YEAR_MS_MAX, `${ms} ms for ${blocks.length} blocks`);
});

finish();
