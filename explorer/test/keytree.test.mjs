// For whom a signature counts.
import assert from "node:assert/strict";
import test from "node:test";
import { heldBy, waitsFor } from "../src/lib/keytree.js";

const [ALICE, BOB, CAROL, TREASURY] = ["a1", "b0", "c0", "ee"].map((end) => `0x${"0".repeat(38)}${end}`);
const leaf = (address) => `01${address.slice(2)}`;
const parties = [
    { account: ALICE, key: `0x${leaf(ALICE)}`, hasAgreed: false },
    { account: TREASURY, key: `0x030302${[ALICE, BOB, CAROL].map(leaf).join("")}`, hasAgreed: false },
];

test("a signature counts for the account itself and for those whose key it holds", () => {
    assert.deepEqual(heldBy({ parties }, ALICE), [ALICE, TREASURY]);
    assert.deepEqual(heldBy({ parties }, BOB), [TREASURY]);
    assert.deepEqual(heldBy({ parties }, TREASURY), [TREASURY]);
    assert.deepEqual(heldBy({ parties }, `0x${"9".repeat(40)}`), []);
});

test("who has called has signed", () => {
    assert.equal(waitsFor({ parties, signers: [] }, BOB), true);
    assert.equal(waitsFor({ parties, signers: [`0x04${BOB.slice(2)}`] }, BOB), false);
});
