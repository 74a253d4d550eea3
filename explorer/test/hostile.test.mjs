// What a stranger's contract answers, emits or reverts with.
import assert from "node:assert/strict";
import fs from "node:fs";
import test, { after } from "node:test";
import { clockTime, fullTime, iso, relative, tame } from "../src/lib/format.js";
import { openSources } from "./support/sources.mjs";

const sources = await openSources();
after(() => sources.close());

test("only contracts with our code are chosen, of at most fifty that were named", async () => {
    const { trusted } = await sources.load("doors/subscriptions.js");
    const asked = [];
    const check = async (address) => asked.push(address) && address === "0xours";
    assert.deepEqual(await trusted(["0xfake", "0xours", "0xfake", ...Array.from({ length: 90 }, (_, nth) => `0x${nth}`)], check), ["0xours"]);
    assert.equal(asked.length, 50);
});

test("the code we know is what the compiler wrote, without immutable values", async () => {
    const { default: abis } = await sources.load("../test/support/abis.js");
    const { keccak_256 } = await import("@noble/hashes/sha3.js");
    const contracts = new URL("../../contracts/", import.meta.url);
    const { deployedBytecode } = JSON.parse(fs.readFileSync(new URL("artifacts/Subscriptions.json", contracts), "utf8"));
    assert.equal(abis.Subscriptions.codeHash, `0x${Buffer.from(keccak_256(Buffer.from(deployedBytecode.slice(2), "hex"))).toString("hex")}`);
    assert.doesNotMatch(fs.readFileSync(new URL("Subscriptions.sol", contracts), "utf8"), /\bimmutable\b/);
});

test("times beyond the calendar are words, not errors", async () => {
    const far = Number(2n ** 256n - 1n) * 1_000;
    assert.equal(iso(8.64e15), "+275760-09-13T00:00:00.000Z");
    for (const ms of [8.64e15 + 1, far, Infinity, NaN]) {
        assert.deepEqual([iso(ms), clockTime(ms, 0), fullTime(ms), relative(ms, 0)], [null, "after the year 275760", "after the year 275760", "beyond all calendars"]);
        for (const stacked of [true, false]) assert.match(await sources.html("ui/Time.svelte", { ms, stacked }), /after the year 275760/);
    }
    assert.equal(clockTime(36_000_000, 0), "10:00:00");
    assert.equal(clockTime(90_000_000, 0), "1970-01-02 01:00:00");
    assert.equal(fullTime(1_500), "1970-01-01 00:00:01.5 UTC");
});

test("a text cannot turn itself around, hide or fill the page", () => {
    assert.equal(tame("\u202egpj.exe\u2066\u200b\u001b[2J"), "gpj.exe[2J");
    assert.equal(tame("naïve 日本 🙂\nnext"), "naïve 日本 🙂\nnext");
    assert.equal(tame("x".repeat(501)).length, 501);
    assert.equal(tame(undefined), "");
});

const word = (number) => BigInt(number).toString(16).padStart(64, "0");

test("a list whose pointers all lead to one text is not read", async () => {
    const { decode } = await sources.load("lib/abi.js");
    // 500 pointers to a text of 64 KiB: 96 KiB that would become 32 MiB.
    const [count, size] = [500, 65_536];
    const bomb = word(32) + word(count) + word(count * 32).repeat(count) + word(size) + "61".repeat(size);
    assert.throws(() => decode([{ type: "string[]" }], bomb), /read more than once/);
    // The same inside of tuples, as in signSchedule.
    const entry = { type: "tuple[]", components: [{ type: "bytes" }, { type: "bytes" }, { type: "uint64" }] };
    const nested = word(32) + word(count) + word(count * 32).repeat(count) + word(96) + word(96) + word(0) + word(size) + "61".repeat(size);
    assert.throws(() => decode([entry], nested), /read more than once/);
});

test("long lists are refused before they are made, honest ones are read", async () => {
    const { decode, encode } = await sources.load("lib/abi.js");
    assert.throws(() => decode([{ type: "uint256[]" }], word(32) + word(300) + word(0).repeat(10)), /too short/);
    assert.throws(() => decode([{ type: "uint256[]" }], word(32) + word(10_001) + word(0).repeat(10_001)), /more than 10000/);
    const types = [{ type: "string[]" }, { type: "tuple[]", components: [{ name: "a", type: "bytes" }, { name: "b", type: "uint8[2]" }] }, { type: "string" }];
    const values = [["a", "", "ccc"], [["0x01", [1n, 2n]], ["0x", [3n, 4n]]], "end"];
    const [list, tuples, text] = decode(types, encode(types, values)).map(({ value }) => value);
    assert.deepEqual([list, tuples, text], [values[0], [{ a: "0x01", b: [1n, 2n] }, { a: "0x", b: [3n, 4n] }], "end"]);
});

test("a value is cut where nobody reads on", async () => {
    const html = await sources.html("ui/Decoded.svelte", { decoded: { name: "say", args: [{ type: "string", value: "a".repeat(100_000) }, { type: "bytes[]", value: ["0x00".repeat(50_000)] }] } });
    assert.ok(html.length < 6_000, `${html.length} letters`);
});

test("a trace is cut after its first calls", async () => {
    const { firstCalls } = await sources.load("lib/trace.js");
    const wide = firstCalls({ type: "CALL", calls: Array.from({ length: 1_000 }, () => ({ type: "CALL" })) });
    assert.deepEqual([wide.calls.length, wide.hidden], [300, 700]);
    let deep = { type: "CALL" };
    for (let depth = 0; depth < 100; depth += 1) deep = { type: "CALL", calls: [deep] };
    let [frame, depth] = [firstCalls(deep), 0];
    for (; frame.calls.length; depth += 1) [frame] = frame.calls;
    assert.deepEqual([depth, frame.hidden], [40, 1]);
});

test("a revert text is tame", async () => {
    const { decodeError, readable } = await sources.load("doors/decode.js");
    const { encode } = await sources.load("lib/abi.js");
    const evil = `\u202e${"x".repeat(1_000)}`;
    assert.equal(decodeError(`0x08c379a0${encode([{ type: "string" }], [evil])}`), `${"x".repeat(500)}…`);
    assert.equal(readable(`execution reverted: \u2067paid`), "paid");
});
