//! The keys of accounts: leaves of two curves, trees of them, and signatures that prove leaves (decision 0033).
//!
//! ```text
//! 01 │ address, 20 bytes        a secp256k1 key, named by its Ethereum address
//! 02 │ Ed25519 key, 32 bytes
//! 03 │ n │ k │ n children       satisfied if k of its children are; a list is k = n
//! ```

mod ed25519;
mod record;
mod secret;
mod signature;
mod tree;

pub use ed25519::is_usable as is_usable_ed25519;
pub use record::{KeyRecord, StoredKey, hash_start};
pub use secret::{SecretKey, SecretKeyError};
pub(crate) use signature::check_form;
pub use signature::{ProofError, SIGNATURES_MAX, SignatureFault, named_leaf, prove, recover_leaf};
pub use tree::{KEY_BYTES_MAX, KEY_DEPTH_MAX, KEY_LEAVES_MAX, KeyError, KeyFault, KeyTree, Unproven};

use crate::{addresses::ACCOUNTS, chain::Chain, typed_data::Words};
use alloy_primitives::{Address, B256, keccak256};

/// One key that can sign. Ordered as its bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Leaf {
    /// A secp256k1 key, by the address that Ethereum derives from it.
    Secp256k1(Address),
    /// An Ed25519 key.
    Ed25519(B256),
}

const SECP256K1_TAG: u8 = 1;
const ED25519_TAG: u8 = 2;

impl Leaf {
    /// The account that this key alone controls while the account has no key record.
    pub fn account(&self) -> Address {
        match self {
            Self::Secp256k1(address) => *address,
            Self::Ed25519(key) => ed25519_address(*key),
        }
    }

    /// Reads the bytes of a leaf, and of nothing else. The point of an Ed25519 key is checked with its signature.
    pub fn decode(encoded: &[u8]) -> Option<Self> {
        let (tag, key) = encoded.split_first()?;
        match *tag {
            SECP256K1_TAG => Some(Self::Secp256k1(Address::from(<[u8; 20]>::try_from(key).ok()?))),
            ED25519_TAG => Some(Self::Ed25519(B256::from(<[u8; 32]>::try_from(key).ok()?))),
            _ => None,
        }
    }

    /// Appends the key's bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Secp256k1(address) => {
                out.push(SECP256K1_TAG);
                out.extend_from_slice(address.as_slice());
            }
            Self::Ed25519(key) => {
                out.push(ED25519_TAG);
                out.extend_from_slice(key.as_slice());
            }
        }
    }
}

/// The address of an Ed25519 key's account. The prefix keeps it apart from what Ethereum hashes to addresses.
pub fn ed25519_address(key: B256) -> Address {
    let mut bytes = [0u8; 15 + 32];
    bytes[..15].copy_from_slice(b"almanac ed25519");
    bytes[15..].copy_from_slice(key.as_slice());
    Address::from_word(keccak256(bytes))
}

/// What proves a new key of an account, for its rotation with this number.
pub fn rotation_digest(chain: &Chain, account: Address, key: &[u8], rotation: u64) -> B256 {
    let mut words = Words::of_type("RotateKey(address account,bytes key,uint64 rotation)");
    words.address(account);
    words.bytes(key);
    words.number(rotation);
    chain.signing_hash(ACCOUNTS, words.hash())
}
