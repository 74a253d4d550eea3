// Our reader of Solidity against the compiler's own words, and known hashes.
import assert from "node:assert/strict";
import fs from "node:fs";
import test from "node:test";
import { describe, keccak } from "../build/abi.mjs";
import { parseInterface } from "../build/solidity.mjs";

const contracts = new URL("../../contracts/", import.meta.url);
const read = (file) => fs.readFileSync(new URL(file, contracts), "utf8");

test("what the compiler wrote is what we read", () => {
    const compiled = describe(JSON.parse(read("artifacts/Subscriptions.json")).abi);
    const parsed = describe(parseInterface(read("ISubscriptions.sol")));
    assert.ok(Object.keys(parsed.functions).length === 4 && Object.keys(parsed.events).length === 4);
    for (const [name, item] of Object.entries(parsed.functions)) {
        assert.equal(compiled.functions[name].selector, item.selector, name);
    }
    for (const [name, item] of Object.entries(parsed.events)) assert.deepEqual(compiled.events[name], item, name);
});

test("structs and enums become tuples and numbers", () => {
    const { functions, events } = describe(parseInterface(read("ICallbackScheduler.sol")));
    assert.equal(functions.schedule.signature, "schedule(address,bytes,uint64,uint8,uint64)");
    assert.equal(functions.schedule.outputs[0].components.length, 3);
    assert.equal(events.CallbackScheduled.inputs.filter((input) => input.indexed).length, 3);
    const { functions: market } = describe(parseInterface(read("IScheduledTransactions.sol")));
    assert.match(market.insert.signature, /^insert\(\(address,uint64,uint64,uint64,bool,address,uint256,bytes,uint32\)\)$/);
});

test("hashes are Ethereum's", () => {
    assert.equal(keccak("transfer(address,uint256)").slice(0, 10), "0xa9059cbb");
});
