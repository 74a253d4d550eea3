// Whether what a page shows before signing still holds. What is signed is what was shown, so what is shown must not age.

/// An order "in a while" moves with the clock: it is made anew after this long, or a quarter of its wait if that is less.
const AGE_MS_MAX = 15_000;
const AGE_MS_MIN = 1_000;
/// One part in this many: what a base fee may move before fees and escrows are asked for again.
const FEE_PARTS = 8n;

/// `shown` has when and at which base fee it was made, the time of its first run, and the wait if it is a relative one.
export function isFresh({ madeAtMs, atMs, waitMs, baseFee }, { nowMs, baseFee: feeNow }) {
    return hasFee(baseFee, feeNow) && (waitMs === null ? isAhead(madeAtMs, atMs, nowMs) : isYoung(madeAtMs, waitMs, nowMs));
}

function hasFee(then, now) {
    const moved = now > then ? now - then : then - now;
    return moved * FEE_PARTS <= then;
}

// A time that was in the past from the start does not become older: the node has said what it thinks of it.
const isAhead = (madeAtMs, atMs, nowMs) => nowMs < atMs || madeAtMs >= atMs;

function isYoung(madeAtMs, waitMs, nowMs) {
    const age = Math.min(AGE_MS_MAX, Math.max(AGE_MS_MIN, waitMs / 4));
    return Math.abs(nowMs - madeAtMs) <= age;
}
