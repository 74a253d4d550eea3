// Reads the interfaces of a Solidity file: enough of the language for the files in contracts/, which are the one source
// of each ABI. `test/solidity.test.mjs` compares what it finds with what the compiler wrote into contracts/artifacts.

/// Functions, events and errors as in a JSON ABI.
export function parseInterface(source) {
    const text = source.replace(/\/\*[\s\S]*?\*\//g, "").replace(/\/\/[^\n]*/g, "");
    const types = { enums: new Set(), structs: new Map() };
    for (const [, name] of text.matchAll(/\benum\s+(\w+)\s*\{/g)) types.enums.add(name);
    for (const [, name, body] of text.matchAll(/\bstruct\s+(\w+)\s*\{([^}]*)\}/g)) {
        types.structs.set(name, body.split(";").map((field) => field.trim()).filter(Boolean));
    }
    const items = [];
    const declarations = /\b(function|event|error)\s+(\w+)\s*\(([^)]*)\)([^;{]*)[;{]/g;
    for (const [, type, name, inputs, rest] of text.matchAll(declarations)) {
        const item = { type, name, inputs: parameters(inputs, types) };
        if (type === "function") {
            const returns = rest.match(/returns\s*\(([^)]*)\)/);
            item.outputs = returns ? parameters(returns[1], types) : [];
        }
        items.push(item);
    }
    return items;
}

function parameters(list, types) {
    return list.split(",").map((one) => one.trim()).filter(Boolean).map((one) => parameter(one, types));
}

function parameter(declaration, types) {
    const words = declaration.split(/\s+/).filter((word) => !["calldata", "memory", "payable"].includes(word));
    const indexed = words.includes("indexed");
    const [type, name = ""] = words.filter((word) => word !== "indexed");
    const [, base, suffix] = type.match(/^([\w.]+?)((?:\[\d*\])*)$/);
    const found = { name, type: plain(base, types) + suffix };
    if (types.structs.has(base)) found.components = types.structs.get(base).map((field) => parameter(field, types));
    if (indexed) found.indexed = true;
    return found;
}

function plain(base, types) {
    const name = base.split(".").pop();
    if (types.structs.has(name)) return "tuple";
    if (types.enums.has(name)) return "uint8";
    if (base === "uint" || base === "int") return `${base}256`;
    // Contracts are addresses on the wire.
    return /^[A-Z]/.test(name) ? "address" : base;
}
