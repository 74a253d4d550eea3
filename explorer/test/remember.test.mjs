// Nothing is remembered about a chain that went back, or that is another one.
import assert from "node:assert/strict";
import test from "node:test";
import { remember } from "../src/lib/remember.js";

test("an answer is asked for once, and again when history is another", async () => {
    let [history, asked] = [0, 0];
    const nameOf = remember(async (id) => `${id}, answer ${(asked += 1)}`, () => history);
    assert.deepEqual([await nameOf("2-1-0"), await nameOf("2-1-0")], ["2-1-0, answer 1", "2-1-0, answer 1"]);
    history += 1;
    assert.equal(await nameOf("2-1-0"), "2-1-0, answer 2");
});

test("neither a refusal nor an absence is kept, nor more than enough", async () => {
    let asked = 0;
    const flaky = remember(async () => ((asked += 1) === 1 ? Promise.reject(new Error("busy")) : asked === 2 ? null : asked), () => 0);
    await assert.rejects(flaky("a"));
    assert.equal(await flaky("a"), null);
    assert.equal(await flaky("a"), 3);
    assert.equal(await flaky("a"), 3);
    let questions = 0;
    const few = remember(async () => (questions += 1), () => 0, 2);
    for (const key of ["a", "b", "c", "a"]) await few(key);
    assert.equal(questions, 4, "the oldest was forgotten");
});
