//! A block's hash as consensus handles it. Certificates sign the same hash that RPC shows.

use alloy_primitives::BlockHash;
use commonware_codec::{Buf, Error, FixedArray, FixedSize, Read, ReadExt as _, Write};
use commonware_cryptography::Digest;
use commonware_math::algebra::Random;
use commonware_runtime::BufMut;
use commonware_utils::{Array, Span};
use rand_core::CryptoRng;
use std::{fmt, ops::Deref};

/// The keccak-256 hash of a header.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, FixedArray)]
#[fixed_array(infallible)]
#[repr(transparent)]
pub struct BlockDigest([u8; 32]);

impl From<BlockHash> for BlockDigest {
    fn from(hash: BlockHash) -> Self {
        Self(hash.0)
    }
}

impl From<BlockDigest> for BlockHash {
    fn from(digest: BlockDigest) -> Self {
        Self::new(digest.0)
    }
}

impl Digest for BlockDigest {
    const EMPTY: Self = Self([0; 32]);
}

impl Random for BlockDigest {
    fn random(mut rng: impl CryptoRng) -> Self {
        let mut bytes = [0; 32];
        rng.fill_bytes(&mut bytes);
        Self(bytes)
    }
}

impl Write for BlockDigest {
    fn write(&self, out: &mut impl BufMut) {
        self.0.write(out);
    }
}

impl Read for BlockDigest {
    type Cfg = ();

    fn read_cfg(input: &mut impl Buf, (): &()) -> Result<Self, Error> {
        Ok(Self(<[u8; 32]>::read(input)?))
    }
}

impl FixedSize for BlockDigest {
    const SIZE: usize = 32;
}

impl Span for BlockDigest {}

impl Array for BlockDigest {}

impl AsRef<[u8]> for BlockDigest {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Deref for BlockDigest {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for BlockDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for BlockDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&BlockHash::new(self.0), f)
    }
}
