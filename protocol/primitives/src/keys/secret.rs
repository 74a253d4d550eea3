//! Secret keys: sign digests with either curve, for wallets and tests. No node uses them.

use super::Leaf;
use alloy_consensus::crypto::secp256k1::sign_message;
use alloy_primitives::{B256, Bytes};
use curve25519_dalek::{EdwardsPoint, scalar::Scalar};
use sha2::{Digest as _, Sha512};
use std::fmt;

/// A key that signs.
#[derive(Clone, Copy)]
pub struct SecretKey {
    secret: B256,
    leaf: Leaf,
}

/// A number that is no secp256k1 key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a secp256k1 key: it must be above zero and below the order of the curve")]
pub struct SecretKeyError;

impl SecretKey {
    /// A secp256k1 key.
    pub fn secp256k1(secret: B256) -> Result<Self, SecretKeyError> {
        // Whoever can sign has a key; the signature tells whose.
        let signature = sign_message(secret, B256::ZERO).map_err(|_| SecretKeyError)?;
        let address = signature.recover_address_from_prehash(&B256::ZERO).map_err(|_| SecretKeyError)?;
        Ok(Self { secret, leaf: Leaf::Secp256k1(address) })
    }

    /// The Ed25519 key of a seed, as in RFC 8032.
    pub fn ed25519(seed: B256) -> Self {
        let (scalar, _) = expand(seed);
        let key = EdwardsPoint::mul_base(&scalar).compress().0;
        Self { secret: seed, leaf: Leaf::Ed25519(key.into()) }
    }

    /// What its signatures prove.
    pub fn leaf(&self) -> Leaf {
        self.leaf
    }

    /// Its signature, in the form that native transactions have.
    pub fn sign(&self, digest: B256) -> Bytes {
        match self.leaf {
            Leaf::Secp256k1(_) => {
                let signature = sign_message(self.secret, digest).expect("it has signed before");
                let (r, s) = (signature.r().to_be_bytes::<32>(), signature.s().to_be_bytes::<32>());
                [&r[..], &s, &[u8::from(signature.v())]].concat().into()
            }
            Leaf::Ed25519(key) => sign_ed25519(self.secret, key, digest.as_slice()),
        }
    }
}

/// Without the secret.
impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretKey").field("leaf", &self.leaf).finish_non_exhaustive()
    }
}

fn expand(seed: B256) -> (Scalar, [u8; 32]) {
    let hash: [u8; 64] = Sha512::digest(seed).into();
    let (low, prefix) = hash.split_at(32);
    let low = curve25519_dalek::scalar::clamp_integer(low.try_into().expect("half"));
    (Scalar::from_bytes_mod_order(low), prefix.try_into().expect("half"))
}

/// RFC 8032, with the key in front.
fn sign_ed25519(seed: B256, key: B256, message: &[u8]) -> Bytes {
    let (scalar, prefix) = expand(seed);
    let hash = |parts: [&[u8]; 3]| {
        let mut hash = Sha512::new();
        parts.iter().for_each(|part| hash.update(part));
        Scalar::from_bytes_mod_order_wide(&hash.finalize().into())
    };
    let nonce = hash([&prefix, message, &[]]);
    let r = EdwardsPoint::mul_base(&nonce).compress().0;
    let s = nonce + hash([&r, key.as_slice(), message]) * scalar;
    [key.as_slice(), &r, s.as_bytes()].concat().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::prove;
    use alloy_primitives::{address, b256};

    #[test]
    fn signatures_prove_the_keys_that_made_them() {
        let known = b256!("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80");
        let known = SecretKey::secp256k1(known).unwrap();
        assert_eq!(known.leaf(), Leaf::Secp256k1(address!("0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266")));
        // RFC 8032, section 7.1, test 1.
        let seed = b256!("0x9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60");
        let ed = SecretKey::ed25519(seed);
        let public = b256!("0xd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
        assert_eq!(ed.leaf(), Leaf::Ed25519(public));
        let digest = B256::repeat_byte(7);
        for key in [known, ed] {
            assert_eq!(prove(digest, &[key.sign(digest)]), Ok(vec![key.leaf()]));
            assert!(!format!("{key:?}").contains("secret"), "{key:?}");
        }
    }

    #[test]
    fn zero_and_the_order_are_no_keys() {
        let order = b256!("0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141");
        assert_eq!(SecretKey::secp256k1(B256::ZERO).unwrap_err(), SecretKeyError);
        assert_eq!(SecretKey::secp256k1(order).unwrap_err(), SecretKeyError);
    }
}
