// clients/ts: its types, its encoding against the vectors of specs/, and the examples of its README and of docs/signatures.md.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { encodeAbiParameters, encodeEventTopics } from "viem";
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

const { accountsAbi, almanacActions, bookedEffort, createdAccountOf, doors, leafKey, leavesOf, readinessGas, signersOf, thresholdKey } =
    await import(pathToFileURL(path.join(copy, "dist/index.js")));
const person = (n) => `0x${n.toString(16).padStart(2, "0").repeat(20)}`;

await check("the price of a time counts everybody who signs", () => {
    const keys = (count) => Array.from({ length: count }, (_, n) => leafKey(person(n + 1)));
    // As almanac_schedule::signed::readiness_gas has it: a look for each account, and two for each leaf.
    assert.deepEqual([0, 1, 8].map((count) => readinessGas(keys(count))), [0n, 18_900n, 151_200n]);
    const tree = thresholdKey(2, [...keys(2), thresholdKey(1, [`0x02${"07".repeat(32)}`, leafKey(person(9))])]);
    assert.equal(leavesOf(tree), 4);
    assert.equal(readinessGas([tree]), 9n * 6_300n);
    assert.throws(() => leavesOf("0x0707"), /no tag of a key/);
    assert.deepEqual([bookedEffort(150_000n, keys(1)), bookedEffort(150_000n, keys(8)), bookedEffort(1n, [])], [81n, 144n, 20n]);
    const calls = [{ from: person(1), to: person(9) }, { from: person(2), to: person(9) }, { from: person(1), to: person(9) }];
    assert.deepEqual(signersOf({ calls, payer: person(3) }, person(4)), [person(1), person(2), person(3)]);
    assert.deepEqual(signersOf({ calls, payer: person(4) }, person(4)), [person(1), person(2)], "the creator pays anyway");
    assert.deepEqual(signersOf({ calls, payer: person(2) }, person(4)), [person(1), person(2)]);
});

await check("an account is one that the door has made", () => {
    const args = { account: person(5), creator: person(4) };
    const topics = encodeEventTopics({ abi: accountsAbi, eventName: "AccountCreated", args });
    const data = encodeAbiParameters([{ type: "bytes" }], [leafKey(person(4))]);
    const log = (address) => ({ address, topics, data });
    assert.equal(createdAccountOf({ logs: [log(person(6)), log(doors.accounts)] }).toLowerCase(), person(5));
    assert.throws(() => createdAccountOf({ logs: [log(person(6))] }), /created no account/);
});

await check("a job that repeats says how often", () => {
    const { scheduleCron } = almanacActions()({});
    const job = { target: person(1), data: "0xd09de08a", nextRunAt: 1n, intervalSec: 60n, gasLimit: 50_000n, escrow: 1n };
    assert.throws(() => scheduleCron(job), /needs maxRuns/);
});

async function prints({ name, expected }, least) {
    assert.ok(isAlmanac && expected.length >= least, `${expected.length} lines to compare`);
    const printed = await run("node", [path.join(copy, `dist/${name}.js`)], { cwd: root });
    assert.deepEqual(printed.trim().split("\n"), expected);
}
await onlyAlmanac("the README's examples print what they say", () => prints(readme, 8));
await onlyAlmanac("the examples of docs/signatures.md print what they say", () => prints(signatures, 5));

finish();
