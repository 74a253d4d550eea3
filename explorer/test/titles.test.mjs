// What is said about a schedule before somebody signs it.
import assert from "node:assert/strict";
import test, { after } from "node:test";
import { openSources } from "./support/sources.mjs";

const sources = await openSources();
after(() => sources.close());
const [ALICE, BOB, MALLORY] = ["a1", "b0", "ee"].map((end) => `0x${"0".repeat(38)}${end}`);
const call = (from, to, value, input = "0x") => ({ from, to, value: `0x${value.toString(16)}`, input });
const signed = (calls) => ({
    id: "8-1-0",
    idNumber: "0x80000400",
    owner: MALLORY,
    target: calls[0].to,
    terms: { door: "signed", trigger: "signatures", ...calls[0], gasLimit: "0x249f0", maxFeePerGas: "0x1", round: "0x0", waitForExpiry: "no", ...(calls.length > 1 && { calls }) },
});
// The first call pays one wei; the one that matters is the second.
const trap = signed([call(ALICE, BOB, 1n), call(ALICE, MALLORY, 5_000n * 10n ** 18n)]);

test("several calls are named by all of them, not by the first", async () => {
    const { doorOf } = await sources.load("doors/index.js");
    for (const schedule of [trap, { ...trap, terms: { ...trap.terms, door: "new" } }]) {
        const door = doorOf(schedule);
        assert.equal(door.describe(schedule).what, "2 calls that pay 5,000 coins in all");
        assert.match(door.sentence(schedule), /^2 calls that pay 5,000 coins in all/);
    }
    assert.match(doorOf(trap).actions(trap)[0].words, /5,000 coins/);
});

test("one call says its value beside its name", async () => {
    const { doorOf } = await sources.load("doors/index.js");
    const named = signed([call(ALICE, BOB, 2n * 10n ** 18n, "0xa9059cbb")]);
    assert.equal(doorOf(named).describe(named).what, "Call transfer with 2 coins");
    const unknown = signed([call(ALICE, BOB, 2n * 10n ** 18n, "0x12345678")]);
    assert.match(doorOf(unknown).describe(unknown).what, /^Call 0x.* with 2 coins$/);
    const tiny = signed([call(ALICE, BOB, 1n)]);
    assert.equal(doorOf(tiny).describe(tiny).what, "Pay 1 wei");
});

test("every call is shown with sender, receiver, exact value and data", async () => {
    const calls = [call(ALICE, BOB, 1n), call(ALICE, MALLORY, 5_000n * 10n ** 18n + 7n), call(BOB, MALLORY, 0n, "0x12345678deadbeef")];
    const text = await sources.html("ui/Calls.svelte", { calls });
    for (const part of [`title="${BOB}"`, `title="${MALLORY}"`, `>${MALLORY}<`, "5,000.000000000000000007", "wei", "0x12345678deadbeef"]) assert.ok(text.includes(part), `${part} is missing: ${text}`);
    assert.equal(text.match(/<li/g).length, 3);
});

test("memo and payer come from the body that is signed", async () => {
    const { readInfo } = await sources.load("doors/signed.js");
    const { encode } = await sources.load("lib/abi.js");
    const { default: abis } = await sources.load("../test/support/abis.js");
    const calls = { type: "tuple[]", components: ["address", "address", "uint256", "bytes"].map((type) => ({ type })) };
    const body = { type: "tuple", components: [calls, ...["uint64", "uint256", "string", "uint32", "uint64", "bool"].map((type) => ({ type }))] };
    const bytes = `0x${encode([body], [[[[ALICE, BOB, 1n, "0x"]], 1n, 1n, "rent of May", 1n, 0n, false]])}`;
    const answer = (payer) => `0x${encode(abis.IScheduleService.functions.getScheduleInfo.outputs, [22n, [1n, MALLORY, payer, bytes, [], "0x", 0n, 0n, 0n, 0n]])}`;
    assert.deepEqual(readInfo(answer(ALICE)), { memo: "rent of May", payer: ALICE });
    assert.equal(readInfo(answer(`0x${"0".repeat(40)}`)).payer, MALLORY, "without a payer the creator pays");
});
