// Makes dist/, or another folder, ready to be part of the binary: gzips what gets shorter, and writes files.rs, a table
// of everything.
import crypto from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import zlib from "node:zlib";
import { fileURLToPath } from "node:url";

const dist = process.argv[2] ?? path.join(path.dirname(fileURLToPath(import.meta.url)), "dist");
/// Most bytes of script, with gzip, before the first page is drawn.
const FIRST_PAINT_MAX = 100_000;
const KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
    ".txt": "text/plain; charset=utf-8",
};

// What is bundled asks to be named.
const bundled = ["svelte", "uplot", "marked", "@fontsource-variable/inter"];
const licences = bundled.map((name) => {
    const folder = path.join(path.dirname(fileURLToPath(import.meta.url)), "node_modules", name);
    const file = fs.readdirSync(folder).find((one) => /^licen[cs]e/i.test(one));
    return `${name}\n\n${fs.readFileSync(path.join(folder, file), "utf8").trim()}\n`;
});
fs.writeFileSync(path.join(dist, "licences.txt"), licences.join("\n---\n\n"));

const files = fs
    .readdirSync(dist, { recursive: true })
    .filter((file) => fs.statSync(path.join(dist, file)).isFile() && KINDS[path.extname(file)])
    .map((file) => file.split(path.sep).join("/"))
    .sort((a, b) => (a === "index.html" ? -1 : b === "index.html" ? 1 : a < b ? -1 : 1));

let table = "// Written by explorer/pack.mjs. Do not edit.\n&[\n";
const page = fs.readFileSync(path.join(dist, "index.html"), "utf8");
let firstPaint = 0;
for (const file of files) {
    const content = fs.readFileSync(path.join(dist, file));
    const zipped = zlib.gzipSync(content, { level: 9 });
    const isShorter = zipped.length < content.length * 0.9;
    if (isShorter) fs.writeFileSync(path.join(dist, `${file}.gz`), zipped);
    const tag = crypto.createHash("sha256").update(content).digest("hex").slice(0, 16);
    table += `    StaticFile {
        path: "/${file === "index.html" ? "" : file}",
        kind: "${KINDS[path.extname(file)]}",
        bytes: include_bytes!("${file}"),
        gzip: ${isShorter ? `Some(include_bytes!("${file}.gz"))` : "None"},
        tag: "\\"${tag}\\"",
        is_immutable: ${file.startsWith("assets/")},
    },
`;
    if (file.endsWith(".js") && page.includes(file)) firstPaint += zipped.length;
}
fs.writeFileSync(path.join(dist, "files.rs"), `${table}]\n`);
if (firstPaint > FIRST_PAINT_MAX) {
    console.error(`explorer: the first page needs ${firstPaint} bytes of script with gzip, at most ${FIRST_PAINT_MAX} are wanted`);
    process.exit(1);
}
console.log(`explorer: ${files.length} files; script of the first page: ${(firstPaint / 1024).toFixed(1)} KiB with gzip`);
