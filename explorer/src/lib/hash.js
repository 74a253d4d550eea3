// What an address of the page names: #/schedule/2-1-0?tab=runs. Anybody can make a link, so nothing in it is believed.

/// Path and query. What is not well encoded stays as it is.
export function parseHash(hash) {
    const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
    return { path: path.split("/").filter(Boolean).map(decoded), query: Object.fromEntries(new URLSearchParams(query)) };
}

function decoded(part) {
    try {
        return decodeURIComponent(part);
    } catch {
        return part;
    }
}

/// What the second part has to be, where a page is about one thing.
const SUBJECTS = {
    schedule: /^(\d{1,20}-\d{1,10}-\d{1,10}|\d{1,20})$/,
    block: /^(\d{1,15}|0x[0-9a-f]{64})$/i,
    tx: /^0x[0-9a-f]{64}$/i,
    account: /^0x[0-9a-f]{40}$/i,
};

/// The page of a path, or `other` if there is none or it cannot be about that.
export function pageOf([name = "", subject = ""], pages, other) {
    if (name === "") return name;
    if (!Object.hasOwn(pages, name)) return other;
    return !Object.hasOwn(SUBJECTS, name) || SUBJECTS[name].test(subject) ? name : other;
}
