//! Proves to anyone who has the genesis that a block is final: a certificate, and the headers in between.

use crate::{
    certificate::{self, CertificateError, Certified},
    engine::Marshal,
    validators::{Namespace, ValidatorSet},
};
use alloy_primitives::{BlockHash, Bytes};
use almanac_primitives::Header;
use commonware_codec::Encode as _;
use commonware_consensus::{marshal::Identifier, types::Height};
use rand_core::CryptoRng;
use std::sync::{Arc, OnceLock};

/// Blocks above one that are searched for a certificate. Without faults each block has its own.
pub const LOOK_AHEAD: u64 = 256;

/// A proof that a block is final.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finality {
    /// The block's header and those above it, each the parent of the next, up to a certified one.
    pub headers: Vec<Header>,
    /// The certificate of the last header.
    pub certificate: Bytes,
}

/// Why a proof of finality is invalid.
#[derive(Debug, thiserror::Error)]
pub enum FinalityError {
    /// There are no headers.
    #[error("there is no header")]
    Empty,
    /// The headers are not a chain.
    #[error("header {number} does not name the header before it as its parent")]
    NotLinked {
        /// Its height.
        number: u64,
    },
    /// The certificate is invalid.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// The certificate is for another block.
    #[error("the certificate is for {certified}, the headers end at {last}")]
    OtherBlock {
        /// The certified block.
        certified: BlockHash,
        /// The last header's hash.
        last: BlockHash,
    },
}

impl Finality {
    /// Verifies everything with the validators of a genesis. Returns the block's header, and what was signed
    /// about it or about a block above it.
    pub fn verify(
        &self,
        validators: &ValidatorSet,
        namespace: &Namespace,
        rng: &mut impl CryptoRng,
    ) -> Result<(&Header, Certified), FinalityError> {
        let (first, above) = self.headers.split_first().ok_or(FinalityError::Empty)?;
        let mut last = first.hash();
        for header in above {
            if header.parent_hash != last {
                return Err(FinalityError::NotLinked { number: header.number });
            }
            last = header.hash();
        }
        let certified = certificate::verify(&self.certificate, validators, namespace, rng)?;
        if certified.hash != last {
            return Err(FinalityError::OtherBlock { certified: certified.hash, last });
        }
        Ok((first, certified))
    }
}

/// Finds proofs of finality, once the validator runs.
#[derive(Clone, Default)]
pub struct FinalityReader(Arc<OnceLock<Marshal>>);

impl FinalityReader {
    pub(crate) fn connect(&self, marshal: &Marshal) {
        // Set once per validator; this is its only reader.
        let _ = self.0.set(marshal.clone());
    }

    /// The proof for the block at `height`; `None` if it is not final yet.
    pub async fn find(&self, height: u64) -> Option<Finality> {
        find(self.0.get()?, height).await
    }
}

/// Walks up from the block at `height` to the first one with a certificate.
pub async fn find(marshal: &Marshal, height: u64) -> Option<Finality> {
    let mut headers = Vec::new();
    for number in height..=height.saturating_add(LOOK_AHEAD) {
        let block = marshal.get_block(Identifier::Height(Height::new(number))).await?;
        headers.push(block.inner().block().header.clone());
        if let Some(signed) = marshal.get_finalization(Height::new(number)).await {
            return Some(Finality { headers, certificate: signed.encode().into() });
        }
    }
    None
}
