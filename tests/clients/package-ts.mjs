// clients/ts as JavaScript, for suites that use it. Its types are checked by the suite `ts`.

import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import ts from "typescript";
import { home, root } from "./check.mjs";

const source = path.join(root, "clients/ts/src");
// Below the npm packages, where Node looks for viem.
const built = path.join(home, "package-ts");
fs.rmSync(built, { recursive: true, force: true });
fs.mkdirSync(built);
fs.writeFileSync(path.join(built, "package.json"), JSON.stringify({ type: "module" }));
const compilerOptions = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ES2022 };
for (const name of fs.readdirSync(source)) {
    const { outputText } = ts.transpileModule(fs.readFileSync(path.join(source, name), "utf8"), { compilerOptions });
    fs.writeFileSync(path.join(built, name.replace(/\.ts$/, ".js")), outputText);
}

/** The package. */
export const almanac = await import(pathToFileURL(path.join(built, "index.js")));
