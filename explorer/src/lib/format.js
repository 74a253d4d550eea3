// How numbers, money, times and names read.

export const big = (quantity) => BigInt(quantity ?? 0);
export const num = (quantity) => Number(quantity ?? 0);
export const hex = (number) => `0x${BigInt(number).toString(16)}`;

const WEI = 10n ** 18n;

/// An exact number of units, as a decimal.
export function exact(amount, decimals = 18) {
    const base = 10n ** BigInt(decimals);
    const value = big(amount);
    const sign = value < 0n ? "-" : "";
    const positive = value < 0n ? -value : value;
    const fraction = (positive % base).toString().padStart(decimals, "0").replace(/0+$/, "");
    return `${sign}${positive / base}${fraction ? `.${fraction}` : ""}`;
}

/// The same with at most five significant digits.
export function short(amount, decimals = 18) {
    const text = exact(amount, decimals);
    if (text === "0") return "0";
    const number = Number(text);
    if (Math.abs(number) >= 1e15) return number.toExponential(2);
    if (Math.abs(number) >= 100_000) return grouped(Math.round(number));
    const rounded = Number(number.toPrecision(5));
    if (rounded !== 0 && Math.abs(rounded) < 1e-9) return rounded.toExponential(2).replace("e-", " × 10⁻").replace(/\d+$/, superscript);
    const digits = Math.max(0, 4 - Math.floor(Math.log10(Math.abs(rounded))));
    const plain = rounded.toFixed(Math.min(digits, 20)).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
    const [whole, fraction] = plain.split(".");
    return grouped(whole) + (fraction ? `.${fraction}` : "");
}

/// Below this many wei an amount of coins has too many zeros to be read.
const READABLE_WEI_MIN = 10n ** 9n;

/// Whether an amount of coins reads better in wei.
export function isTiny(wei) {
    const value = big(wei);
    return value !== 0n && value < READABLE_WEI_MIN && value > -READABLE_WEI_MIN;
}

/// An amount of coins with its unit: 5,000 coins, 1 wei.
export const coins = (wei) => (isTiny(wei) ? `${grouped(big(wei))} wei` : `${short(wei)} coins`);

const superscript = (digits) => [...digits].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("");

export const gwei = (wei) => short(wei, 9);

/// 1234567 as 1,234,567.
export function grouped(number) {
    return String(number).replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

/// 1234567 as 1.23 M.
export function compact(number) {
    const value = Number(number);
    for (const [size, unit] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
        if (Math.abs(value) >= size) return `${Number((value / size).toPrecision(3))} ${unit}`;
    }
    return String(Number(value.toPrecision(3)));
}

/// An amount of coins in wei, or of another unit with fewer decimals.
export function parseCoins(text, unit = "coins", decimals = 18) {
    const match = String(text).trim().match(/^(\d*)(?:\.(\d*))?$/);
    const fraction = match?.[2] ?? "";
    if (!match || (!match[1] && !fraction) || fraction.length > decimals) throw new Error(`${text || "nothing"} is no amount of ${unit}`);
    return BigInt(match[1] || "0") * 10n ** BigInt(decimals) + BigInt(fraction.padEnd(decimals, "0") || "0");
}

const UNITS = [["day", 86_400], ["h", 3_600], ["min", 60], ["s", 1]];

/// A length of time in its two largest units: 93,784 s as "1 day 2 h".
export function duration(seconds) {
    let rest = Math.max(0, Math.round(seconds));
    if (rest < 1) return "0 s";
    const parts = [];
    for (const [unit, size] of UNITS) {
        const count = Math.floor(rest / size);
        rest -= count * size;
        if (count > 0) parts.push(`${grouped(count)} ${unit === "day" && count > 1 ? "days" : unit}`);
        if (parts.length === 2 || (parts.length === 1 && count === 0)) break;
    }
    return parts.join(" ");
}

/// A whole interval as people say it: 2,592,000 s as "30 days".
export function interval(seconds) {
    const names = [[604_800, "week"], [86_400, "day"], [3_600, "hour"], [60, "minute"], [1, "second"]];
    const [size, name] = names.find(([size]) => seconds % size === 0 && (size !== 604_800 || seconds === size)) ?? names[4];
    const count = seconds / size;
    return count === 1 ? name : `${grouped(count)} ${name}s`;
}

/// "in 7 s", "3 min ago".
export function relative(ms, now) {
    if (!iso(ms)) return "beyond all calendars";
    const seconds = (ms - now) / 1_000;
    if (Math.abs(seconds) < 1) return "now";
    return seconds > 0 ? `in ${duration(seconds)}` : `${duration(-seconds)} ago`;
}

/// 00:00:07, or 3 days 04:12:00.
export function countdown(ms) {
    const seconds = Math.max(0, Math.ceil(ms / 1_000));
    const days = Math.floor(seconds / 86_400);
    const clock = [seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60].map((part) => String(Math.floor(part)).padStart(2, "0"));
    return (days ? `${grouped(days)} day${days > 1 ? "s" : ""} ` : "") + clock.join(":");
}

/// The last moment that a Date knows, in the year 275760. A contract may name any number.
const TIME_MS_MAX = 8.64e15;

const BEYOND = "after the year 275760";

/// A moment as ISO 8601, or null if it is beyond all calendars.
export const iso = (ms) => (Math.abs(ms) <= TIME_MS_MAX ? new Date(ms).toISOString() : null);

/// 09:00:00 today, and with its date on another day. UTC.
export function clockTime(ms, now) {
    const text = iso(ms);
    if (!text) return BEYOND;
    const time = text.slice(11, 19);
    const date = text.slice(0, text.indexOf("T"));
    return iso(now)?.startsWith(`${date}T`) ? time : `${date} ${time}`;
}

export function fullTime(ms) {
    return iso(ms)?.replace("T", " ").replace(/\.?0*Z$/, " UTC") ?? BEYOND;
}

/// Characters that turn the direction of what follows, or are not seen at all: with them a text can look like another.
const DECEIVING = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;

/// A text that a stranger chose: without what deceives the eye, and not longer than it can be read.
export function tame(text, most = 500) {
    const clean = String(text ?? "").slice(0, most * 2).replace(DECEIVING, "");
    return clean.length > most ? `${clean.slice(0, most)}…` : clean;
}

export function shortHex(text, head = 6, tail = 4) {
    return text && text.length > head + tail + 3 ? `${text.slice(0, head)}…${text.slice(-tail)}` : text;
}

export const isAddress = (text) => /^0x[0-9a-fA-F]{40}$/.test(text ?? "");

/// An address in Solidity, whose address literals need capital letters that only a hash tells.
export const solidityAddress = (address) => `address(bytes20(hex"${address.slice(2)}"))`;

export function plural(count, one, many = `${one}s`) {
    return `${grouped(count)} ${Number(count) === 1 ? one : many}`;
}

/// What went wrong, in words.
export function reason(error) {
    if (!error) return "";
    if (error.code === -32601) return "this node does not serve that";
    return tame(error.shortMessage ?? error.message ?? String(error));
}
