// The page in the address, and how to go to another.
import { parseHash } from "./hash.js";

export const route = $state({ path: [], query: {} });

function read() {
    Object.assign(route, parseHash(window.location.hash));
}

read();
window.addEventListener("hashchange", () => {
    read();
    window.scrollTo(0, 0);
});

export const link = (...parts) => `#/${parts.map(encodeURIComponent).join("/")}`;

export function go(href) {
    window.location.hash = href.replace(/^#/, "");
}

/// Changes the query without a step in the history.
export function setQuery(changes) {
    const query = { ...route.query, ...changes };
    for (const key of Object.keys(query)) if (query[key] == null || query[key] === "") delete query[key];
    const text = new URLSearchParams(query).toString();
    history.replaceState(null, "", `#/${route.path.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`);
    route.query = query;
}
