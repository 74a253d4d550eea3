// Documents of the repository, which the node serves below /docs/. Their links name files of the repository.
import { lexer } from "marked";

const known = new Map();

/// The text of a document as tokens, by its path below /docs/ without its ending.
export function document(path) {
    // A path comes from a link: it names a document, and nothing else that the node serves.
    if (!/^[\w-]+(\.[\w-]+)*(\/[\w-]+(\.[\w-]+)*)*$/.test(path)) return Promise.reject(new Error("there is no such page"));
    if (!known.has(path)) {
        const asked = fetch(`/docs/${path}.md`).then(async (response) => {
            if (!response.ok) throw new Error(response.status === 404 ? `there is no page ${path}` : `HTTP ${response.status}`);
            return lexer(await response.text());
        });
        asked.catch(() => known.delete(path));
        known.set(path, asked);
    }
    return known.get(path);
}

/// Where a link in a document leads: another document, a section of one, or a file as it is. null if the node has it not.
export function resolve(href, from) {
    if (/^https?:/.test(href)) return { href, isForeign: true };
    const [file, section] = href.split("#");
    if (!file) return { href: address(from, section) };
    // The place of the document in the repository, and from there as a browser does it.
    const base = /^(specs|contracts)\//.test(from) ? from : `docs/${from}`;
    const path = new URL(file, `http://host/${base}`).pathname.slice(1);
    const served = path.replace(/^docs\//, "");
    if (/^docs\/(decisions\/)?[\w.-]+\.md$|^specs\/[\w.-]+\.md$/.test(path)) return { href: address(served.replace(/\.md$/, ""), section) };
    if (/^contracts\/\w+\.sol$/.test(path)) return { href: `/docs/${path}` };
    return null;
}

const address = (path, section) => `#/docs/${path}${section ? `?section=${encodeURIComponent(section)}` : ""}`;

/// The name of a heading in links, as code hosts make it.
export const slug = (text) => text.toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, "").trim().replace(/\s/g, "-");

/// What `&lt;` and others stand for: tokens of text have them as written.
export function plain(text) {
    const names = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'", nbsp: " " };
    return text.replace(/&(amp|lt|gt|quot|#39|nbsp);/g, (_, name) => names[name]);
}
