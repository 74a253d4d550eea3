// What the README's "Try it" says, word by word: its blocks run in one shell, one after the other. And the lines of other
// pages that people copy.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { accounts, finish, foundry, onlyAlmanac, root, run, url } from "./check.mjs";

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

const page = (name) => fs.readFileSync(path.join(root, "docs", name), "utf8");
const shell = (script) =>
    run("bash", ["-c", `set -euo pipefail\ncast() { "${foundry("cast")}" "$@"; }\nexport ETH_RPC_URL=${url}\n${script}`], {
        cwd: root,
        env: { ...process.env, NO_COLOR: "1" },
    });

await onlyAlmanac("the token and the subscription of docs/subscriptions.md run as they are written", async () => {
    const [example] = page("subscriptions.md").match(/^create\(\) [^]*?(?=^```)/m);
    // Not every machine has jq; the page uses it for fields of JSON alone.
    const jq = `jq() { node -p 'JSON.parse(require("fs").readFileSync(process.argv[2] ?? 0))[process.argv[1].slice(1)]' "$\{@:2}"; }`;
    const said = await shell(`${jq}\nKEY=${accounts[0].key}\n${example}`);
    assert.equal(said.split("\n").at(-1), "100", "what the merchant has");
});
await onlyAlmanac("the requests of docs/rpc-almanac.md are understood as they are written", async () => {
    const { schedules } = JSON.parse(await shell("cast rpc almanac_listSchedules"));
    const { runs } = JSON.parse(await shell(`cast rpc almanac_getRuns ${schedules[0].id}`));
    const now = Number(await shell("cast block pending --field timestamp")) * 1_000;
    const lines = page("rpc-almanac.md").match(/^cast rpc .*$/gm);
    assert.equal(lines.length, 18);
    for (const line of lines) {
        // Shortened, or about the validators of a network.
        if (line.includes("…") || line.includes("almanac_getFinality")) continue;
        const here = line
            .replace("2-1-0", schedules[0].id)
            // The page's times have passed.
            .replace(/\b17\d{11}\b/g, (ms) => Number(ms) - 1_794_770_000_000 + now)
            .replace(/(?<="run": ")0x[0-9a-f]{64}/, runs[0].receipt.transactionHash);
        const answer = await shell(here).catch((error) => error.message);
        const isRefused = /-3260\d|[Pp]arse error|unexpected argument/.test(answer);
        assert.equal(isRefused, line.includes("ownr"), `${here}: ${answer}`);
    }
});

finish();
