//! Keys as people write and read them: `0x…`, `2 of 0x…, 0x…, 0x…`.

use crate::client::address::check_addresses;
use alloy_primitives::{Address, B256, Bytes};
use almanac_primitives::keys::{KeyTree, Leaf};

/// Prefix of an Ed25519 key.
const ED25519: &str = "ed25519:";
const THRESHOLD_TAG: u8 = 3;

/// Reads an address, `ed25519:` and a key, `2 of A, B, C`, or the bytes of a key.
pub(super) fn parse_key(text: &str) -> Result<KeyTree, String> {
    let unclear = || {
        format!(
            "KeyUnclear: {text:?} is no key: write an address, ed25519:0x…, \"2 of A, B, C\", or the bytes of a key"
        )
    };
    check_addresses(text)?;
    let encoded: Vec<u8> = match text.split_once(" of ") {
        None => part(text.trim()).ok_or_else(unclear)?,
        Some((needed, list)) => {
            let parts: Option<Vec<Vec<u8>>> = list.split(',').map(|one| part(one.trim())).collect();
            let parts = parts.ok_or_else(unclear)?;
            let needed: u8 = needed.trim().parse().map_err(|_| unclear())?;
            let count = u8::try_from(parts.len()).map_err(|_| unclear())?;
            [vec![THRESHOLD_TAG, count, needed], parts.concat()].concat()
        }
    };
    KeyTree::decode(&encoded).map_err(|error| format!("KeyRefused: {text:?}: {error}"))
}

fn part(text: &str) -> Option<Vec<u8>> {
    let leaf = match text.strip_prefix(ED25519) {
        Some(key) => Some(Leaf::Ed25519(key.parse::<B256>().ok()?)),
        None => text.parse::<Address>().ok().map(Leaf::Secp256k1),
    };
    match leaf {
        Some(leaf) => Some(leaf_bytes(leaf)),
        None => text.parse::<Bytes>().ok().filter(|bytes| !bytes.is_empty()).map(|bytes| bytes.to_vec()),
    }
}

/// The bytes of a leaf.
pub(super) fn leaf_bytes(leaf: Leaf) -> Vec<u8> {
    KeyTree::single(leaf).encoded().to_vec()
}

/// A leaf, as [`parse_key`] reads it.
pub(super) fn leaf_words(leaf: Leaf) -> String {
    match leaf {
        Leaf::Secp256k1(address) => address.to_string(),
        Leaf::Ed25519(key) => format!("{ED25519}{key}"),
    }
}

/// A key; what is inside another one stands in brackets.
pub(super) fn key_words(key: &KeyTree) -> String {
    node_words(&mut key.encoded().as_ref(), &mut key.leaves(), true)
}

/// The tree was decoded, so its bytes end where it does, and its depth is bounded.
fn node_words(rest: &mut &[u8], leaves: &mut impl Iterator<Item = Leaf>, is_outermost: bool) -> String {
    if rest.first() != Some(&THRESHOLD_TAG) {
        let Some(leaf) = leaves.next() else { return String::new() };
        *rest = rest.get(leaf_bytes(leaf).len()..).unwrap_or_default();
        return leaf_words(leaf);
    }
    let (count, needed) = (rest.get(1).copied().unwrap_or(0), rest.get(2).copied().unwrap_or(0));
    *rest = rest.get(3..).unwrap_or_default();
    let children: Vec<String> = (0..count).map(|_| node_words(rest, leaves, false)).collect();
    let words = format!("{needed} of {}", children.join(", "));
    if is_outermost { words } else { format!("({words})") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::hex;

    const A: &str = "0x0101010101010101010101010101010101010101";
    const B: &str = "0x0202020202020202020202020202020202020202";
    /// RFC 8032, section 7.1, test 1.
    const ED: &str = "ed25519:0xd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";

    #[test]
    fn keys_as_people_write_them() {
        for text in [A.to_owned(), ED.to_owned(), format!("2 of {A}, {B}"), format!("1 of {A}, {ED}")] {
            assert_eq!(key_words(&parse_key(&text).unwrap()), text);
        }
        // Trees in trees have no words of their own to write them: the inner one is given by its bytes.
        let inner = hex::encode_prefixed(parse_key(&format!("1 of {A}, {B}")).unwrap().encoded());
        let nested = parse_key(&format!("2 of {inner}, {ED}")).unwrap();
        assert_eq!(key_words(&nested), format!("2 of (1 of {A}, {B}), {ED}"));
        assert_eq!(parse_key(&hex::encode_prefixed(nested.encoded())).unwrap(), nested);
        for (bad, name) in [
            ("".to_owned(), "KeyUnclear"),
            ("alice".to_owned(), "KeyUnclear"),
            (format!("two of {A}"), "KeyUnclear"),
            (format!("3 of {A}, {B}"), "KeyRefused"),
            (format!("0 of {A}"), "KeyRefused"),
            (format!("2 of {A}, {A}"), "KeyRefused"),
            ("0x07".to_owned(), "KeyRefused"),
            (format!("1 of {A}, 0x70997970C51812dc3A010C7d01b50e0d17dc79C7"), "WrongChecksum"),
        ] {
            let error = parse_key(&bad).unwrap_err();
            assert!(error.starts_with(name), "{bad}: {error}");
        }
    }
}
