//! Finality certificates: what a quorum of validators signed about a block.

use crate::{
    digest::BlockDigest,
    validators::{Namespace, ValidatorSet},
};
use alloy_primitives::BlockHash;
use commonware_codec::{Copying, Decode as _, Error};
use commonware_consensus::simplex::{scheme::ed25519::Scheme, types::Finalization};
use commonware_cryptography::certificate::Verifier as _;
use commonware_parallel::Sequential;
use rand_core::CryptoRng;

/// What a certificate says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Certified {
    /// The block: it and all blocks before it are final.
    pub hash: BlockHash,
    /// The validator set that signed.
    pub epoch: u64,
    /// The view that it was signed in.
    pub view: u64,
}

/// What is wrong with a certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// Not a certificate.
    #[error("these {length} bytes are no certificate: {error}")]
    Malformed {
        /// How many bytes were given.
        length: usize,
        /// What is wrong with them.
        error: Error,
    },
    /// Too few signatures, or wrong ones.
    #[error("the certificate for {hash} is not signed by a quorum of the {validators} validators")]
    NotSigned {
        /// The block that it is about.
        hash: BlockHash,
        /// How many validators there are.
        validators: usize,
    },
}

/// Checks a certificate against the validators of a genesis alone.
///
/// `rng` weighs signatures that are checked together: whoever could foresee it might pass wrong ones.
pub fn verify(
    certificate: &[u8],
    validators: &ValidatorSet,
    namespace: &Namespace,
    rng: &mut impl CryptoRng,
) -> Result<Certified, CertificateError> {
    let scheme = validators.verifier(namespace);
    let config = scheme.certificate_codec_config();
    let signed = Finalization::<Scheme, BlockDigest>::decode_cfg(Copying(certificate), &config)
        .map_err(|error| CertificateError::Malformed { length: certificate.len(), error })?;
    let hash = signed.proposal.payload.into();
    if !signed.verify(rng, &scheme, &Sequential) {
        return Err(CertificateError::NotSigned { hash, validators: validators.keys().len() });
    }
    let round = signed.round();
    Ok(Certified { hash, epoch: round.epoch().get(), view: round.view().get() })
}
