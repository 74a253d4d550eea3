// What the README's "Try it" says, word by word: its blocks run in one shell, one after the other.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { finish, foundry, onlyAlmanac, root, run, url } from "./check.mjs";

const section = fs.readFileSync(path.join(root, "README.md"), "utf8").split("\n## Try it\n")[1].split("\n## ")[0];
const blocks = [...section.matchAll(/```\n([^]*?)```/g)].map(([, block]) => block);

/** The two lines that name what a reader has elsewhere: the program from npm, and the node. */
function here(block) {
    return block
        .replace(/^cast\(\) .*$/m, `cast() { "${foundry("cast")}" "$@"; }`)
        .replace("http://127.0.0.1:8545", url);
}

await onlyAlmanac("the README's example runs as it is written", async () => {
    const [send, schedule] = blocks;
    const script = `set -euo pipefail\n${here(send)}\necho --- scheduled\n${here(schedule)}`;
    assert.ok(script.includes(foundry("cast")) && script.includes(url), "the README has the lines to replace");
    const env = { ...process.env, NO_COLOR: "1" };
    const [first, second] = (await run("bash", ["-c", script], { cwd: root, env })).split("--- scheduled");
    assert.match(first, /^10001(\.0+)?$/m);
    const numbers = second.split("\n").filter((line) => /^\d+$/.test(line));
    assert.deepEqual(numbers, ["0", "300", "15"], "the counter, how far time was moved, the counter");
    const { schedules } = JSON.parse(second.slice(second.indexOf('{"schedules"')));
    assert.deepEqual([schedules[0].status, schedules[0].runs, schedules[0].lastRun], ["exhausted", "0x3", "succeeded"]);
});
await onlyAlmanac("it runs a second time", async () => {
    const script = `set -euo pipefail\n${here(blocks[0])}\n${here(blocks[1])}`;
    const said = await run("bash", ["-c", script], { cwd: root, env: { ...process.env, NO_COLOR: "1" } });
    assert.deepEqual(said.split("\n").filter((line) => /^\d+$/.test(line)).slice(-3), ["0", "600", "15"]);
});

finish();
