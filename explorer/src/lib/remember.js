// Answers that never change, by their key: asked for once, as long as the chain keeps its history.

/// Remembers up to `kept` answers of `question`. When `history()` is another than before, all of them are forgotten.
export function remember(question, history, kept = 500) {
    const known = new Map();
    let version = history();
    return (key) => {
        if (history() !== version) {
            version = history();
            known.clear();
        }
        if (!known.has(key)) {
            if (known.size >= kept) known.delete(known.keys().next().value);
            const asked = question(key);
            const forget = () => known.get(key) === asked && known.delete(key);
            // Neither a refusal nor "there is none" is the last word.
            asked.then((answer) => answer === null && forget(), forget);
            known.set(key, asked);
        }
        return known.get(key);
    };
}
