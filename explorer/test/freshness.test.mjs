// What is shown before signing is made anew when time or fees have moved on.
import assert from "node:assert/strict";
import test from "node:test";
import { isFresh } from "../src/lib/freshness.js";

const shown = { madeAtMs: 1_000_000, atMs: 1_020_000, waitMs: 20_000, baseFee: 1_000n };
const at = (ms, baseFee = 1_000n) => ({ nowMs: 1_000_000 + ms, baseFee });

test("an order in 20 seconds is old after five", () => {
    assert.equal(isFresh(shown, at(5_000)), true);
    assert.equal(isFresh(shown, at(5_001)), false);
    assert.equal(isFresh(shown, at(40_000)), false, "its moment has gone by");
    assert.equal(isFresh(shown, at(-6_000)), false, "the chain went back");
});

test("a long wait is made anew every 15 seconds, a short one every second", () => {
    const later = (waitMs, ms) => isFresh({ ...shown, waitMs }, at(ms));
    assert.deepEqual([later(3_600_000, 15_000), later(3_600_000, 15_001)], [true, false]);
    assert.deepEqual([later(1_000, 1_000), later(1_000, 1_001)], [true, false]);
});

test("a date is old once, when it goes by", () => {
    const dated = { ...shown, waitMs: null };
    assert.deepEqual([isFresh(dated, at(19_999)), isFresh(dated, at(20_000))], [true, false]);
    assert.equal(isFresh({ ...dated, madeAtMs: 1_020_000 }, at(30_000)), true, "asked again, it stays refused");
});

test("fees count from an eighth", () => {
    assert.deepEqual([1_125n, 1_126n, 875n, 874n].map((fee) => isFresh(shown, at(0, fee))), [true, false, true, false]);
});
