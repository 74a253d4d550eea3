//! A validator's key.

use crate::block::key_bytes;
use alloy_primitives::B256;
use commonware_codec::{Copying, DecodeExt as _, FixedSize as _};
use commonware_cryptography::{
    Signer as _, Verifier as _,
    ed25519::{PrivateKey, PublicKey, Signature},
};
use std::fmt;

/// The ed25519 key that a validator signs votes with and is known to its peers by.
#[derive(Clone)]
pub struct ValidatorKey(PrivateKey);

impl ValidatorKey {
    /// The key with this secret. Any 32 bytes are one; they should be random.
    pub fn from_secret(secret: &B256) -> Self {
        Self(PrivateKey::decode(Copying(secret.as_slice())).expect("any 32 bytes are a secret"))
    }

    /// Its public part, as genesis files and headers hold it.
    pub fn public(&self) -> B256 {
        key_bytes(&self.0.public_key())
    }

    pub(crate) fn private(&self) -> &PrivateKey {
        &self.0
    }
}

/// Whether anyone can sign with a key. Such are the few points of the curve with a small order, the one of all zeroes
/// among them, which is what an empty field in a file holds.
pub(crate) fn is_everyones(key: &PublicKey) -> bool {
    // The neutral element and the factor 0. The rules for signatures (ZIP 215) take no note of points of a small
    // order, so for such a key this is one for every message, and for no other key is it one for any.
    let mut signature = [0; Signature::SIZE];
    signature[0] = 1;
    Signature::decode(Copying(&signature[..])).is_ok_and(|signature| key.verify(b"", b"", &signature))
}

impl fmt::Debug for ValidatorKey {
    /// The public part alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ValidatorKey({})", self.public())
    }
}
