// How a schedule stands.
import assert from "node:assert/strict";
import test from "node:test";
import { statusOf } from "../src/lib/status.js";

const ended = (runs, runsFailed) => statusOf({ status: "exhausted", runs, runsFailed, end: { reason: "max runs reached" } });

test("an end after failures is not neutral", () => {
    assert.deepEqual(ended("0x3", "0x0"), ["", "ended: max runs reached"]);
    assert.deepEqual(ended("0x3", "0x1"), ["warn", "! ended: max runs reached, 1 of 3 runs failed"]);
    assert.deepEqual(ended("0x3", "0x3"), ["bad", "✗ ended: max runs reached, all 3 runs failed"]);
    assert.deepEqual(ended("0x0", "0x0"), ["", "ended: max runs reached"]);
});

test("other states have their word, new ones their own", () => {
    assert.deepEqual(["pending", "failed", "paused"].map((status) => statusOf({ status })), [["", "pending"], ["bad", "✗ failed"], ["", "paused"]]);
});
