// Ethereum's ABI, as far as our doors need it: encoding and decoding of values by their types.

const WORD = 32;

/// Calldata of a function with these arguments.
export function encodeCall(item, args) {
    return item.selector + encode(item.inputs, args);
}

/// Arguments as hex digits without a prefix.
export function encode(inputs, args) {
    if (inputs.length !== args.length) throw new Error(`${inputs.length} arguments are needed, ${args.length} are given`);
    const heads = [];
    let tail = "";
    const headBytes = inputs.reduce((sum, input) => sum + headSize(input), 0);
    inputs.forEach((input, index) => {
        if (isDynamic(input)) {
            heads.push(word(BigInt(headBytes + tail.length / 2)));
            tail += encodeValue(input, args[index]);
        } else {
            heads.push(encodeValue(input, args[index]));
        }
    });
    return heads.join("") + tail;
}

/// Values of the types, from hex data. Throws where the data is not an encoding of them.
export function decode(inputs, data) {
    const source = new Source(data.replace(/^0x/, ""));
    return decodeTuple(inputs, source, 0).map((value, index) => ({ ...inputs[index], value }));
}

/// Most values of one answer: more are not read by anybody.
const ITEMS_MAX = 10_000;

/// Hex digits, of which each is read once: an encoding whose pointers lead to the same place again and again would grow
/// to many times its size.
class Source {
    #hex;
    #bytesLeft;
    #itemsLeft = ITEMS_MAX;

    constructor(hex) {
        this.#hex = hex;
        this.#bytesLeft = hex.length / 2;
    }

    get size() {
        return this.#hex.length / 2;
    }

    read(at, bytes) {
        const digits = this.#hex.slice(at * 2, (at + bytes) * 2);
        if (digits.length !== bytes * 2) throw new Error("the data is too short");
        this.#bytesLeft -= bytes;
        if (this.#bytesLeft < 0) throw new Error("the data is read more than once");
        return digits;
    }

    /// Makes room for the items of a list, before any of them is made.
    expect(count, bytesEach) {
        this.#itemsLeft -= count;
        if (this.#itemsLeft < 0) throw new Error(`more than ${ITEMS_MAX} values`);
        if (count * bytesEach > this.#bytesLeft) throw new Error("the data is too short");
    }
}

function isArray(type) {
    return type.match(/^(.*)\[(\d*)\]$/);
}

export const isArrayType = (type) => Boolean(isArray(type));

/// Whether Solidity has this type, leaving tuples aside: no uint7, no bytes33, no list of a fixed length of nothing.
export function isType(type) {
    const array = isArray(type);
    if (array) return (array[2] === "" || /^[1-9]\d{0,3}$/.test(array[2])) && isType(array[1]);
    const sized = type.match(/^(uint|int|bytes)(\d+)$/);
    if (!sized) return ["address", "bool", "string", "bytes"].includes(type);
    const size = Number(sized[2]);
    if (String(size) !== sized[2]) return false;
    return sized[1] === "bytes" ? size >= 1 && size <= 32 : size >= 8 && size <= 256 && size % 8 === 0;
}

function isDynamic({ type, components }) {
    const array = isArray(type);
    if (array) return array[2] === "" || isDynamic({ type: array[1], components });
    if (type === "tuple") return components.some(isDynamic);
    return type === "bytes" || type === "string";
}

function headSize(input) {
    if (isDynamic(input)) return WORD;
    const array = isArray(input.type);
    if (array) return Number(array[2]) * headSize({ ...input, type: array[1] });
    if (input.type === "tuple") return input.components.reduce((sum, part) => sum + headSize(part), 0);
    return WORD;
}

function word(number) {
    return BigInt.asUintN(256, number).toString(16).padStart(64, "0");
}

function encodeValue(input, value) {
    const array = isArray(input.type);
    if (array) {
        if (!Array.isArray(value)) throw new Error(`${input.type} needs a list`);
        const items = value.map(() => ({ ...input, type: array[1] }));
        if (array[2] !== "" && value.length !== Number(array[2])) throw new Error(`${input.type} needs ${array[2]} values`);
        return (array[2] === "" ? word(BigInt(value.length)) : "") + encode(items, value);
    }
    const { type } = input;
    if (type === "tuple") return encode(input.components, value);
    if (!isType(type)) throw new Error(`there is no type ${type}`);
    // A list or a Number would become text or lose digits without a word.
    if (!["string", "bigint", "boolean"].includes(typeof value)) throw new Error(`${type} needs one value, not ${Array.isArray(value) ? "a list" : typeof value}`);
    if (type === "string") return encodeBytes(hexOf(new TextEncoder().encode(value)));
    if (type === "bytes") return encodeBytes(hexDigits(value));
    if (type === "bool") return encodeBool(value);
    if (type === "address") return encodeAddress(value);
    return type.startsWith("bytes") ? encodeFixed(type, value) : encodeNumber(type, value);
}

function encodeBool(value) {
    const isTrue = ["true", "1"].includes(String(value));
    if (!isTrue && !["false", "0"].includes(String(value))) throw new Error(`${value || "nothing"} is not a bool: write true or false`);
    return word(isTrue ? 1n : 0n);
}

function encodeAddress(value) {
    if (!/^0x[0-9a-fA-F]{40}$/.test(value)) throw new Error(`${value || "nothing"} is not an address: it has 0x and 40 hex digits`);
    return value.slice(2).toLowerCase().padStart(64, "0");
}

function encodeFixed(type, value) {
    const digits = hexDigits(value);
    const size = Number(type.slice(5));
    if (digits.length !== size * 2) throw new Error(`${type} needs ${size} bytes, ${digits.length / 2} are given`);
    return digits.padEnd(64, "0");
}

function encodeNumber(type, value) {
    // BigInt reads nothing and spaces as 0.
    if (typeof value !== "bigint" && !/^(-?\d+|0x[0-9a-fA-F]+)$/.test(value)) throw new Error(`${value || "nothing"} is not a number for ${type}`);
    const number = BigInt(value);
    const bits = BigInt(type.replace(/\D/g, ""));
    const [min, max] = type.startsWith("u") ? [0n, (1n << bits) - 1n] : [-(1n << (bits - 1n)), (1n << (bits - 1n)) - 1n];
    if (number < min || number > max) throw new Error(`${value} does not fit ${type}`);
    return word(number);
}

function encodeBytes(digits) {
    return word(BigInt(digits.length / 2)) + digits.padEnd(Math.ceil(digits.length / 64) * 64, "0");
}

function hexDigits(value) {
    if (!/^0x([0-9a-fA-F]{2})*$/.test(value)) throw new Error(`${value || "nothing"} is not hex data: it has 0x and pairs of hex digits`);
    return value.slice(2).toLowerCase();
}

export function hexOf(bytes) {
    return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function decodeTuple(inputs, source, base) {
    let at = base;
    return inputs.map((input) => {
        const place = isDynamic(input) ? base + numberAt(source, at) : at;
        at += headSize(input);
        return decodeValue(input, source, place);
    });
}

function numberAt(source, at) {
    const number = BigInt(`0x${source.read(at, WORD)}`);
    if (number > BigInt(source.size)) throw new Error("the data points behind its end");
    return Number(number);
}

function decodeValue(input, source, at) {
    const array = isArray(input.type);
    if (array) return decodeList({ ...input, type: array[1] }, array[2], source, at);
    const { type } = input;
    if (type === "tuple") {
        const values = decodeTuple(input.components, source, at);
        return Object.fromEntries(input.components.map((part, index) => [part.name || index, values[index]]));
    }
    if (type === "bytes" || type === "string") return decodeBytes(type, source, at);
    const digits = source.read(at, WORD);
    if (type === "bool") return BigInt(`0x${digits}`) !== 0n;
    if (type === "address") return `0x${digits.slice(24)}`;
    if (/^bytes\d+$/.test(type)) return `0x${digits.slice(0, Number(type.slice(5)) * 2)}`;
    const number = BigInt(`0x${digits}`);
    return type.startsWith("int") ? BigInt.asIntN(256, number) : number;
}

function decodeList(item, length, source, at) {
    const count = length === "" ? numberAt(source, at) : Number(length);
    source.expect(count, headSize(item));
    return decodeTuple(Array.from({ length: count }, () => item), source, length === "" ? at + WORD : at);
}

function decodeBytes(type, source, at) {
    const digits = source.read(at + WORD, numberAt(source, at));
    if (type === "bytes") return `0x${digits}`;
    return new TextDecoder().decode(Uint8Array.from(digits.match(/../g) ?? [], (pair) => parseInt(pair, 16)));
}

/// `charge(uint256,address)` as name and types, or an error that says what is wrong.
export function parseSignature(text) {
    const match = text.trim().match(/^([A-Za-z_$][\w$]*)\(([^()]*)\)$/);
    if (!match) throw new Error("write a signature such as charge(uint256), with types and without spaces");
    const types = match[2].trim() ? match[2].split(",").map((type) => type.trim()) : [];
    const whole = types.map((type) => type.replace(/^(u?int)(?=\[|$)/, "$1256"));
    for (const type of whole) if (!isType(type)) throw new Error(`${type || "nothing"} is not a type that this form knows`);
    return { name: match[1], inputs: whole.map((type) => ({ type })), signature: `${match[1]}(${whole.join(",")})` };
}
