// Arguments are encoded as they were typed, or refused.
import assert from "node:assert/strict";
import test from "node:test";
import { decode, encode, parseSignature } from "../src/lib/abi.js";
import { parseArguments } from "../src/lib/arguments.js";

/// What a contract would read of what was typed.
function readBack(signature, text) {
    const { inputs } = parseSignature(signature);
    return decode(inputs, encode(inputs, parseArguments(text, inputs))).map(({ value }) => value);
}

test("large numbers keep every digit", () => {
    const number = 1_234_567_890_123_456_789n;
    assert.deepEqual(readBack("charge(uint256)", String(number)), [number]);
    assert.deepEqual(readBack("charge(uint256)", `[${number}]`), [number]);
    assert.deepEqual(readBack("charge(uint256[])", `[${number}, 0x10]`), [[number, 16n]]);
    assert.deepEqual(readBack("charge(int8,uint256[][2])", "-128, [[1],[2,3]]"), [-128n, [[1n], [2n, 3n]]]);
});

test("a bool is true, false, 1 or 0", () => {
    assert.deepEqual(["true", "1", "false", "0"].map((text) => readBack("set(bool)", text)[0]), [true, true, false, false]);
    for (const text of ["True", "yes", "[[1]]", "", "2"]) assert.throws(() => readBack("set(bool)", text), /bool/, text);
});

test("numbers that are no numbers are refused", () => {
    for (const text of ["", " ", "1e18", "1.5", "abc", "0x", "--1", "1 2", "1_000"]) assert.throws(() => readBack("charge(uint256)", text), /is not a number/, text);
    assert.throws(() => readBack("charge(uint8)", "256"), /does not fit/);
    assert.throws(() => encode([{ type: "uint256" }], [Number("1234567890123456789")]), /needs one value/);
});

test("types that Solidity has not are refused", () => {
    for (const type of ["bytes33", "bytes0", "uint7", "uint264", "int0", "uint08", "uint256[0]", "", "tuple"]) {
        assert.throws(() => parseSignature(`f(${type},bool)`), /is not a type/, type);
    }
    assert.throws(() => encode([{ type: "bytes33" }], [`0x${"00".repeat(33)}`]), /there is no type/);
    assert.equal(parseSignature("f(uint, bytes32[2])").signature, "f(uint256,bytes32[2])");
    assert.deepEqual(parseSignature("f()").inputs, []);
});

test("texts may hold commas and brackets in quotes", () => {
    assert.deepEqual(readBack("say(string,bool)", '"a, [b] \\"c\\"", true'), ['a, [b] "c"', true]);
    assert.deepEqual(readBack("say(string)", "hello there"), ["hello there"]);
});

test("what is too much, too little or torn is refused", () => {
    assert.throws(() => readBack("ping()", "1"), /no arguments/);
    assert.throws(() => readBack("f(uint256)", "1,000"), /1 arguments are needed, 2/);
    assert.throws(() => readBack("f(uint256[])", "[1"), /has no \]/);
    assert.throws(() => readBack("f(uint256)", "1]"), /has no \[/);
    assert.throws(() => readBack("f(string)", '"a'), /has no "/);
    assert.throws(() => readBack("f(string)", '"a" b'), /a comma is missing before b/);
    assert.throws(() => readBack("f(address)", "[[0x70997970c51812dc3a010c7d01b50e0d17dc79c8]]"), /not a list/);
});
