// A typing error in an address with capital letters is found.
import assert from "node:assert/strict";
import test from "node:test";
import { keccak_256 } from "@noble/hashes/sha3.js";
import { checkAddresses } from "../src/lib/checksum.js";

const keccak = async (hex) => `0x${Buffer.from(keccak_256(Buffer.from(hex.slice(2), "hex"))).toString("hex")}`;
const right = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";

test("addresses that are right, in one case, or parts of data pass", async () => {
    for (const text of [right, right.toLowerCase(), `0x${right.slice(2).toUpperCase()}`, `1, ${right}`, `0x${"aB".repeat(40)}`, ""]) await checkAddresses(text, keccak);
});

test("another digit or another case does not", async () => {
    await assert.rejects(checkAddresses(right.replace("70997", "70998"), keccak), /typing error/);
    await assert.rejects(checkAddresses(`1, [${right.replace("dc79C8", "DC79C8")}]`, keccak), /typing error/);
});
