// Traces as large as a page can show: one transaction may make a hundred thousand calls.

const DEPTH_MAX = 40;

/// The first calls of a trace, in their order. A frame whose calls are cut says in `hidden` how many of its own are.
export function firstCalls(trace, most = 300) {
    let left = most;
    const cut = (frame, depth) => {
        const calls = [];
        for (const inner of depth < DEPTH_MAX ? (frame.calls ?? []) : []) {
            if (left <= 0) break;
            left -= 1;
            calls.push(cut(inner, depth + 1));
        }
        return { ...frame, calls, hidden: (frame.calls?.length ?? 0) - calls.length };
    };
    return cut(trace, 0);
}
