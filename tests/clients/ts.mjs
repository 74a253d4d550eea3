// clients/ts: its types, its encoding against the vectors of specs/, and the examples of its README and of docs/signatures.md.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { check, finish, home, isAlmanac, onlyAlmanac, root, run, url } from "./check.mjs";

// Below the npm packages, where TypeScript and Node look for viem.
const copy = path.join(home, "ts");
fs.rmSync(copy, { recursive: true, force: true });
fs.cpSync(path.join(root, "clients/ts"), copy, { recursive: true, filter: (from) => !/node_modules|dist/.test(from) });
const tsc = path.join(home, "node_modules/typescript/bin/tsc");

/** The examples of a page as one program, and what they say that they print. */
function examplesOf(page, name) {
    const text = fs.readFileSync(path.join(root, page), "utf8");
    const examples = [...text.matchAll(/```ts\n([^]*?)```/g)].map(([, block]) => block).join("\n");
    const expected = [...examples.matchAll(/console\.log\(.*\); \/\/ → (.*)$/gm)].map(([, printed]) => printed);
    const program = examples.replace(/"viem-almanac"/g, '"./index.js"').replaceAll("http://127.0.0.1:8545", url);
    fs.writeFileSync(path.join(copy, `src/${name}.ts`), program);
    return { name, expected };
}
const readme = examplesOf("clients/ts/README.md", "examples");
const signatures = examplesOf("docs/signatures.md", "signatures");

await check("the ABIs are those of contracts/artifacts", () => run("node", [path.join(root, "clients/ts/abis.mjs"), "--check"]));
// Before its check, which may take less time than a busy machine needs to compile.
const compiled = await run("node", [tsc, "--project", copy]).catch((error) => error);
await check("the package and its examples are well typed", () => {
    if (compiled instanceof Error) throw compiled;
});
if (compiled instanceof Error) finish();

const { hashNative, nativeDigest, parseNative, serializeNative } = await import(
    pathToFileURL(path.join(copy, "dist/transaction.js"))
).then(async (transaction) => ({ ...transaction, ...(await import(pathToFileURL(path.join(copy, "dist/sign.js")))) }));
const vectors = JSON.parse(fs.readFileSync(path.join(root, "specs/vectors/encodings.json"), "utf8"));

await check("bytes, hashes and digests are those of the specification", () => {
    // The chain of the vectors has this block 0.
    const genesis = `0x${"60".repeat(32)}`;
    const names = ["native.sequence", "native.orderless", "native.paid", "native.creation"];
    for (const name of names) {
        const transaction = parseNative(vectors[name]);
        assert.equal(serializeNative(transaction), vectors[name], name);
        assert.equal(hashNative(transaction), vectors[`${name}.hash`], name);
        assert.equal(nativeDigest(transaction, genesis), vectors[`${name}.signing_hash`], name);
        const payer = nativeDigest(transaction, genesis, "feePayer");
        assert.equal(payer, vectors[`${name}.fee_payer_signing_hash`], name);
    }
});

async function prints({ name, expected }, least) {
    assert.ok(isAlmanac && expected.length >= least, `${expected.length} lines to compare`);
    const printed = await run("node", [path.join(copy, `dist/${name}.js`)], { cwd: root });
    assert.deepEqual(printed.trim().split("\n"), expected);
}
await onlyAlmanac("the README's examples print what they say", () => prints(readme, 8));
await onlyAlmanac("the examples of docs/signatures.md print what they say", () => prints(signatures, 5));

finish();
