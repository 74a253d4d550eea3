// Links that a stranger made.
import assert from "node:assert/strict";
import test, { after } from "node:test";
import { pageOf, parseHash } from "../src/lib/hash.js";
import { openSources } from "./support/sources.mjs";

const sources = await openSources();
after(() => sources.close());
const pages = Object.fromEntries(["schedule", "account", "block", "tx", "docs", "search"].map((name) => [name, true]));
const page = (hash) => pageOf(parseHash(hash).path, pages, "search");

test("what is not well encoded is no error", () => {
    assert.deepEqual(parseHash("#/account/%"), { path: ["account", "%"], query: {} });
    assert.deepEqual(parseHash("#/account/%E0%A4%A").path, ["account", "%E0%A4%A"]);
    assert.deepEqual(parseHash("#/docs/a%20b?section=c%20d"), { path: ["docs", "a b"], query: { section: "c d" } });
});

test("names that every object has are no pages", () => {
    assert.deepEqual(["#/constructor", "#/__proto__", "#/toString", "#/nothing"].map(page), Array(4).fill("search"));
    assert.deepEqual(["", "#/", "#/docs/doors", "#/search/x"].map(page), ["", "", "docs", "search"]);
});

test("a page is about an address, a hash, a number or an id, not about any text", () => {
    const account = `0x${"aB".repeat(20)}`;
    const good = [`#/account/${account}`, `#/tx/0x${"0a".repeat(32)}`, "#/block/12", `#/block/0x${"0a".repeat(32)}`, "#/schedule/2-1-0", "#/schedule/536871936"];
    assert.deepEqual(good.map(page), ["account", "tx", "block", "block", "schedule", "schedule"]);
    const bad = ["#/account/Your%20session%20expired.%20Call%20us", `#/account/${account}00`, "#/account", "#/tx/0x12", "#/block/-1", "#/block/abc", "#/schedule/x", "#/schedule/2-1"];
    assert.deepEqual(bad.map(page), bad.map(() => "search"));
});

test("a text of a link is no heading", async () => {
    const { route } = await sources.load("lib/router.svelte.js");
    route.path = ["search", `Send your key to x ${"y".repeat(500)}`];
    const html = await sources.html("pages/NotFound.svelte", {});
    assert.doesNotMatch(html.match(/<h1.*?<\/h1>/s)[0], /Send/);
    assert.ok(html.length < 1_500, "and no page full of it");
});

test("a link to a document asks for a document", async (t) => {
    const asked = t.mock.method(globalThis, "fetch", async () => new Response("# Title"));
    const { document } = await sources.load("lib/documents.js");
    for (const path of ["../metrics?", "..", "a/../../health", "//host/x", "", "a?b"]) await assert.rejects(document(path), /no such page/, path);
    await document("decisions/0034-explorer");
    assert.deepEqual(asked.mock.calls.map(({ arguments: [url] }) => url), ["/docs/decisions/0034-explorer.md"]);
});
