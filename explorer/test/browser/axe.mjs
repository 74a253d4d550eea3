// What axe finds wrong with a page for people who use a keyboard or a screen reader.
import fs from "node:fs";
import { createRequire } from "node:module";

const source = fs.readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/// Serious and critical findings, as lines.
export async function accessibilityProblems(page) {
    // The page's policy allows no foreign script: it comes through the debugger.
    await page.evaluate(`${source};undefined`);
    const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
    const grave = violations.filter(({ impact }) => ["serious", "critical"].includes(impact));
    return grave.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.target} ${node.failureSummary?.split("\n")[1]?.trim() ?? ""}`));
}
