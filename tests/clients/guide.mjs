// Reads pages that people follow: which files they write, which commands they run, and what those print.

import { execFile } from "node:child_process";

/** The sections of a page: title and text. */
export const sectionsOf = (page) => page.split("\n## ").slice(1).map((text) => [text.split("\n")[0], text]);

/** The steps of a section: files with their content, commands with what they print. */
export function stepsOf(section) {
    const steps = [];
    for (const [, before, language, text] of section.matchAll(/([^\n]*)\n\n```(\w*)\n([^]*?)```/g)) {
        if (language === "sh") steps.push({ commands: text });
        else if (language === "text") steps.at(-1).prints = text;
        else if (language) steps.push({ file: before.match(/(?:Write|and) `([^`]+)`:$/)[1], text });
    }
    return steps;
}

/** One script for all steps; each says when it begins. `change` replaces what differs here. */
export function scriptOf(steps, change = (commands) => commands) {
    const lines = ["set -euo pipefail"];
    steps.forEach(({ commands, file, text }, n) => {
        lines.push(`echo "--- ${n}"`);
        if (commands) lines.push(change(commands));
        else lines.push(`mkdir -p "$(dirname "${file}")"`, `cat > "${file}" <<'END OF FILE'`, text + "END OF FILE");
    });
    return lines.join("\n");
}

/** What each step printed, of the output of such a script. */
export const partsOf = (said) => said.split(/^--- \d+\n/m).slice(1);

/** Runs a script. What it says on standard error counts only if it fails. */
export function bash(script, options) {
    return new Promise((resolve, reject) => {
        execFile("bash", ["-c", script], { ...options, maxBuffer: 1 << 24 }, (error, out, said) =>
            error ? reject(new Error(`${said}${out}`)) : resolve(out));
    });
}
