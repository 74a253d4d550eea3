// Asks again what was refused, with longer and longer pauses.

const PAUSE_MS = [500, 1_000, 2_000, 5_000, 10_000];

/// Does something until it works. `onError` hears of each failure; where `isWanted` is false, it ends.
export async function untilDone(action, { isWanted = () => true, onError = () => {} } = {}) {
    for (let failures = 0; isWanted(); failures += 1) {
        try {
            return await action();
        } catch (error) {
            if (!isWanted()) return undefined;
            onError(error);
        }
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS[Math.min(failures, PAUSE_MS.length - 1)]));
    }
    return undefined;
}
