// Keys of accounts as bytes: 1 ‖ address, 2 ‖ Ed25519 key, 3 ‖ count ‖ needed ‖ that many keys.

const LEAF_BYTES = { 1: 20, 2: 32 };

/// The tree of a key: { kind: "address" | "ed25519", id, bytes } or { needed, children }.
export function keyTree(hex) {
    let at = 2;
    const take = (bytes) => hex.slice(at, (at += bytes * 2));
    const node = () => {
        const tag = parseInt(take(1), 16);
        if (LEAF_BYTES[tag]) {
            const id = `0x${take(LEAF_BYTES[tag])}`;
            return { kind: tag === 1 ? "address" : "ed25519", id, bytes: `0x0${tag}${id.slice(2)}` };
        }
        const [count, needed] = [parseInt(take(1), 16), parseInt(take(1), 16)];
        if (tag !== 3 || !count) throw new Error(`no key: ${hex}`);
        return { needed, children: Array.from({ length: count }, node) };
    };
    return node();
}

/// Marks which leaves have signed, and counts in each threshold the children that are satisfied.
export function marked(tree, signers) {
    if (!tree.children) {
        const isSigned = signers.includes(tree.bytes) || (tree.kind === "address" && signers.includes(`0x04${tree.id.slice(2)}`));
        return { ...tree, isSatisfied: isSigned };
    }
    const children = tree.children.map((child) => marked(child, signers));
    const has = children.filter(({ isSatisfied }) => isSatisfied).length;
    return { ...tree, children, has, isSatisfied: has >= tree.needed };
}

export const leavesOf = (tree) => (tree.children ? tree.children.flatMap(leavesOf) : [tree]);

/// Whether an account has to sign and has not: it is missing itself, or holds a key of one that is.
export function waitsFor({ parties, signers }, account) {
    if (!account || signers.includes(`0x04${account.slice(2)}`)) return false;
    const missing = parties.filter(({ hasAgreed }) => !hasAgreed);
    const holds = ({ account: party, key }) => party === account || leavesOf(marked(keyTree(key), signers)).some(({ id, isSatisfied }) => id === account && !isSatisfied);
    return missing.some(holds);
}

/// The accounts for which the signature of an account counts: itself, and those of whose keys it holds one.
export function heldBy({ parties }, account) {
    return parties.filter(({ account: party, key }) => party === account || leavesOf(keyTree(key)).some(({ id }) => id === account)).map((party) => party.account);
}
