//! A validator's key.

use crate::block::key_bytes;
use alloy_primitives::B256;
use commonware_codec::{Copying, DecodeExt as _, FixedSize as _};
use commonware_cryptography::{
    Signer as _, Verifier as _,
    ed25519::{PrivateKey, PublicKey, Signature},
};
use std::fmt;

/// The ed25519 key with which a validator signs votes and authenticates to its peers.
#[derive(Clone)]
pub struct ValidatorKey(PrivateKey);

impl ValidatorKey {
    /// The key with this secret. Any 32 bytes are valid; they should be random.
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

/// Whether anyone can sign with a key. True for the few curve points of small order, including the all-zero
/// key, which an empty field in a file decodes to.
pub(crate) fn is_everyones(key: &PublicKey) -> bool {
    // This signature is the neutral element with the factor 0. The signature rules (ZIP 215) allow points of
    // small order, so for such a key it is valid for every message, and for any other key it is valid for none.
    let mut signature = [0; Signature::SIZE];
    signature[0] = 1;
    Signature::decode(Copying(&signature[..])).is_ok_and(|signature| key.verify(b"", b"", &signature))
}

impl fmt::Debug for ValidatorKey {
    /// Prints only the public key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ValidatorKey({})", self.public())
    }
}
