//! Keys as messages, and as the bytes that contracts take.
//!
//! ```text
//!   01 ‖ address   02 ‖ Ed25519 key   03 ‖ n ‖ k ‖ children   and among signers   04 ‖ account
//! ```
//!
//! Which trees are allowed is the chain's to say: here only sizes are checked, which bytes cannot show.

use crate::proto::{AccountId, Key, KeyList, ThresholdKey, key};
use almanac_primitives::keys::{KEY_BYTES_MAX, KEY_DEPTH_MAX};
use tonic::Status;

const SECP256K1: u8 = 1;
const ED25519: u8 = 2;
const TREE: u8 = 3;
const ACCOUNT: u8 = 4;

/// The bytes of a key.
pub(crate) fn encode(key: &Key) -> Result<Vec<u8>, Status> {
    let mut out = Vec::new();
    write(key, &mut out)?;
    Ok(out)
}

fn write(key: &Key, out: &mut Vec<u8>) -> Result<(), Status> {
    if out.len() > KEY_BYTES_MAX {
        return Err(Status::invalid_argument(format!("a key has at most {KEY_BYTES_MAX} bytes")));
    }
    match &key.key {
        Some(key::Key::Secp256k1(address)) => leaf("secp256k1", SECP256K1, address, 20, out),
        Some(key::Key::Ed25519(point)) => leaf("ed25519", ED25519, point, 32, out),
        Some(key::Key::KeyList(list)) => tree(list.keys.len(), list, out),
        Some(key::Key::ThresholdKey(ThresholdKey { threshold, keys })) => {
            let threshold = usize::try_from(*threshold).unwrap_or(usize::MAX);
            tree(threshold, keys.as_ref().unwrap_or(&KeyList::default()), out)
        }
        Some(key::Key::Account(_)) => Err(Status::invalid_argument(
            "key account stands for an account that called: name its secp256k1 or ed25519 key",
        )),
        None => Err(Status::invalid_argument("a key without secp256k1, ed25519, thresholdKey or keyList")),
    }
}

fn leaf(name: &str, tag: u8, bytes: &[u8], length: usize, out: &mut Vec<u8>) -> Result<(), Status> {
    if bytes.len() != length {
        let given = bytes.len();
        return Err(Status::invalid_argument(format!("key {name} has {given} bytes, it must have {length}")));
    }
    out.push(tag);
    out.extend_from_slice(bytes);
    Ok(())
}

fn tree(threshold: usize, list: &KeyList, out: &mut Vec<u8>) -> Result<(), Status> {
    let count = list.keys.len();
    let (Ok(n), Ok(k)) = (u8::try_from(count), u8::try_from(threshold)) else {
        return Err(Status::invalid_argument(format!("{threshold} of {count} keys: at most 255 of each")));
    };
    out.extend_from_slice(&[TREE, n, k]);
    list.keys.iter().try_for_each(|key| write(key, out))
}

/// The key of these bytes, which are the chain's own.
pub(crate) fn decode(mut bytes: &[u8]) -> Option<Key> {
    let key = read(&mut bytes, KEY_DEPTH_MAX)?;
    bytes.is_empty().then_some(key)
}

fn read(bytes: &mut &[u8], depth_left: usize) -> Option<Key> {
    let key = match take(bytes, 1)? {
        [SECP256K1] => key::Key::Secp256k1(take(bytes, 20)?.to_vec()),
        [ED25519] => key::Key::Ed25519(take(bytes, 32)?.to_vec()),
        [ACCOUNT] => key::Key::Account(AccountId { address: take(bytes, 20)?.to_vec() }),
        [TREE] => {
            let depth_left = depth_left.checked_sub(1)?;
            let [n, k] = *take(bytes, 2)? else { return None };
            let keys = (0..n).map(|_| read(bytes, depth_left)).collect::<Option<_>>()?;
            let keys = KeyList { keys };
            match n == k {
                true => key::Key::KeyList(keys),
                false => key::Key::ThresholdKey(ThresholdKey { threshold: k.into(), keys: Some(keys) }),
            }
        }
        _ => return None,
    };
    Some(Key { key: Some(key) })
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use almanac_primitives::keys::KeyTree;

    fn secp(n: u8) -> Key {
        Key { key: Some(key::Key::Secp256k1(vec![n; 20])) }
    }

    fn threshold(threshold: u32, keys: Vec<Key>) -> Key {
        let keys = Some(KeyList { keys });
        Key { key: Some(key::Key::ThresholdKey(ThresholdKey { threshold, keys })) }
    }

    fn list(keys: Vec<Key>) -> Key {
        Key { key: Some(key::Key::KeyList(KeyList { keys })) }
    }

    /// HEDERA-01: the bytes are those that the chain reads.
    #[test]
    fn hedera_01_keys_survive_both_ways() {
        let nested = list(vec![secp(1), threshold(1, vec![secp(2), secp(3)])]);
        for key in [secp(1), threshold(2, vec![secp(1), secp(2), secp(3)]), nested] {
            let bytes = encode(&key).unwrap();
            assert!(KeyTree::decode(&bytes).is_ok(), "{key:?}");
            assert_eq!(decode(&bytes), Some(key));
        }
        let called = [&[ACCOUNT][..], &[9; 20]].concat();
        let account = key::Key::Account(AccountId { address: vec![9; 20] });
        assert_eq!(decode(&called), Some(Key { key: Some(account.clone()) }));
        assert!(encode(&Key { key: Some(account) }).is_err(), "nobody signs with it");
    }

    #[test]
    fn what_bytes_cannot_show_is_refused() {
        let short = Key { key: Some(key::Key::Secp256k1(vec![1; 19])) };
        assert!(encode(&short).unwrap_err().message().contains("19 bytes, it must have 20"));
        assert!(encode(&Key { key: None }).is_err());
        assert!(encode(&threshold(256, vec![secp(1)])).is_err());
        assert!(encode(&list(vec![secp(1); 256])).is_err());
        let wide = |count| list(vec![secp(1); count]);
        assert!(encode(&wide(KEY_BYTES_MAX / 21)).is_ok());
        assert!(
            encode(&list(vec![wide(KEY_BYTES_MAX / 21 + 1), secp(2)])).is_err(),
            "writing stops at the limit"
        );
    }

    #[test]
    fn bytes_that_are_no_key_are_none() {
        for bytes in [&[][..], &[1; 20], &[1; 22], &[5; 21], &[3, 1, 1], &[3, 200, 1, 3, 200, 1]] {
            assert_eq!(decode(bytes), None, "{bytes:?}");
        }
        let deep: Vec<u8> = [3, 1, 1].repeat(5).into_iter().chain([1; 21]).collect();
        assert_eq!(decode(&deep), None);
        assert!(decode(&deep[3..]).is_some());
    }
}
