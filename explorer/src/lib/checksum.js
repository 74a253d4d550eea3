// EIP-55: capital letters of an address are a checksum. Addresses in one case have none.

/// Throws if an address in the text has capital letters that do not fit. `keccak` takes and gives hex with 0x.
export async function checkAddresses(text, keccak) {
    for (const [address] of text.matchAll(/\b0x[0-9a-fA-F]{40}\b/g)) {
        if (!(await hasChecksum(address, keccak))) throw new Error(`${address} has a wrong checksum (EIP-55): look for a typing error`);
    }
}

async function hasChecksum(address, keccak) {
    const digits = address.slice(2);
    const lower = digits.toLowerCase();
    if (digits === lower || digits === digits.toUpperCase()) return true;
    const hash = await keccak(`0x${Array.from(lower, (letter) => letter.charCodeAt(0).toString(16)).join("")}`);
    return [...digits].every((letter, nth) => letter === (parseInt(hash[nth + 2], 16) >= 8 ? letter.toUpperCase() : letter.toLowerCase()));
}
