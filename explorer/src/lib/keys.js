// The keyboard: / searches, j and k go through rows, Enter opens one, t goes to the time travel of a developer chain.

export function onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (/^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) {
        if (event.key === "Escape") event.target.blur();
        return;
    }
    const act = { "/": () => focus("#search"), j: () => step(1), k: () => step(-1), t: () => focus("#travel") }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
}

function focus(selector) {
    document.querySelector(selector)?.focus();
}

/// Rows are elements with data-row, whose link Enter opens.
function step(by) {
    const rows = [...document.querySelectorAll("[data-row]")];
    const now = rows.findIndex((row) => row.contains(document.activeElement));
    const next = rows[now === -1 ? (by > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, now + by))];
    (next?.querySelector("a[href]") ?? next)?.focus();
    next?.scrollIntoView({ block: "nearest" });
}
