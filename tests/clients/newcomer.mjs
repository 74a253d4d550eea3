// The path of somebody who has never heard of Almanac: README and five-minute guide, word by word, with nothing replaced.
// Called by scripts/newcomer, in a fresh clone.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import fs from "node:fs";
import { bash, partsOf, scriptOf, sectionsOf, stepsOf } from "./guide.mjs";

const URL = "http://127.0.0.1:8545";
const BUILD_MS_MAX = 45 * 60_000;
const env = { ...process.env, NO_COLOR: "1", HARDHAT_DISABLE_TELEMETRY_PROMPT: "true" };
const begun = Date.now();
const say = (words) => console.log(`${String(Math.round((Date.now() - begun) / 1_000)).padStart(5)} s  ${words}`);

assert.ok(!(await answers()), `something answers at ${URL} already: end it first, the pages use that port`);
await readme(fs.readFileSync("README.md", "utf8"));
await guide(fs.readFileSync("docs/five-minutes.md", "utf8"));
say("done");

async function readme(page) {
    const blocks = [...page.matchAll(/```\n([^]*?)```/g)].map(([, block]) => block);
    const [command] = blocks[0].split("\n");
    await withChain(command, async () => {
        const tried = page.split("\n## Try it\n")[1].split("\n## ")[0];
        const [send, schedule] = [...tried.matchAll(/```\n([^]*?)```/g)].map(([, block]) => block);
        const said = await bash(`set -euo pipefail\n${send}\necho --- 0\n${schedule}`, { env });
        const [first, second] = said.split("--- 0\n");
        assert.match(first, /^10001(\.0+)?$/m, "what the second account has");
        assert.deepEqual(second.split("\n").filter((line) => /^\d+$/.test(line)), ["0", "300", "15"]);
        say("README: sent a coin, scheduled three calls, moved time, and they ran");
        const explorer = await (await fetch(URL)).text();
        assert.match(explorer, /<title>[^<]*Almanac/, "the explorer");
        say("README: the explorer is there");
    });
}

async function guide(page) {
    const [[, start], ...sections] = sectionsOf(page);
    const command = start.match(/```\n([^]*?)\n```/)[1];
    const [{ commands: setUp }] = stepsOf(start);
    await withChain(command, async () => {
        for (const [n, [title, text]] of sections.entries()) {
            const steps = stepsOf(text);
            if (steps.length === 0) continue;
            // A terminal stays open between sections: the folder is there, the variables are set.
            const again = n === 0 ? setUp : setUp.replace(/^mkdir (\S+) && /m, "").replace(/^(echo|npm) .*$/gm, "");
            const parts = partsOf(await bash(`${again}\n${scriptOf(steps, quiet)}`, { env }));
            steps.forEach(({ prints, commands }, at) => {
                if (prints) assert.equal(parts[at], prints, `what is printed by: ${commands}`);
            });
            say(`five minutes: ${title}`);
        }
    });
}

/** npm says how many packages it added, which is no one's business. */
function quiet(commands) {
    return commands.replace(/^npm install .*$/gm, "$& >&2");
}

/** Runs a command of the page that starts a chain, does something, and ends it as Ctrl-C does. */
async function withChain(command, body) {
    say(`$ ${command}`);
    const chain = spawn("bash", ["-c", `exec ${command.replace(/#.*/, "")}`], { env, stdio: ["ignore", "ignore", "inherit"] });
    const ended = new Promise((resolve) => chain.once("exit", resolve));
    try {
        while (!(await answers())) {
            assert.equal(chain.exitCode, null, "the chain ended");
            assert.ok(Date.now() - begun < BUILD_MS_MAX, "no chain yet");
            await new Promise((resolve) => setTimeout(resolve, 1_000));
        }
        say("the chain answers");
        await body();
    } finally {
        chain.kill("SIGINT");
        await ended;
    }
}

function answers() {
    return fetch(`${URL}/health`).then((response) => response.ok, () => false);
}
