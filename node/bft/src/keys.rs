//! A validator's key.

use crate::block::key_bytes;
use alloy_primitives::B256;
use commonware_codec::{Copying, DecodeExt as _};
use commonware_cryptography::{Signer as _, ed25519::PrivateKey};
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

impl fmt::Debug for ValidatorKey {
    /// The public part alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ValidatorKey({})", self.public())
    }
}
