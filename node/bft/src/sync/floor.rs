//! The final block from which a chain without older blocks starts.

use crate::{
    certificate::{self, CertificateError},
    digest::BlockDigest,
    finality::FinalityError,
    validators::{Namespace, ValidatorSet},
};
use alloy_primitives::Bytes;
use almanac_primitives::{
    Header,
    codec::{DecodeError, Reader, Writer},
};
use commonware_codec::{Copying, Decode as _};
use commonware_consensus::simplex::{scheme::ed25519::Scheme, types::Finalization};
use commonware_cryptography::certificate::Verifier as _;
use rand_core::CryptoRng;

/// The version of a floor's file.
const VERSION: u8 = 1;

/// The final block from which a chain without older blocks starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Floor {
    /// Its header.
    pub header: Header,
    /// Its certificate.
    pub certificate: Bytes,
}

impl Floor {
    /// Verifies it with the validators of a genesis, and nothing else.
    pub fn verify(
        &self,
        validators: &ValidatorSet,
        namespace: &Namespace,
        rng: &mut impl CryptoRng,
    ) -> Result<(), FinalityError> {
        let certified = certificate::verify(&self.certificate, validators, namespace, rng)?.hash;
        let last = self.header.hash();
        if certified != last {
            return Err(FinalityError::OtherBlock { certified, last });
        }
        Ok(())
    }

    /// The certificate as consensus handles it.
    pub fn finalization(
        &self,
        validators: &ValidatorSet,
        namespace: &Namespace,
    ) -> Result<Finalization<Scheme, BlockDigest>, CertificateError> {
        let config = validators.verifier(namespace).certificate_codec_config();
        Finalization::decode_cfg(Copying(&self.certificate[..]), &config)
            .map_err(|error| CertificateError::Malformed { length: self.certificate.len(), error })
    }

    /// Encodes version, header and certificate, for a file.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::versioned(VERSION, 1_024);
        out.bytes(&self.header.encode());
        out.bytes(&self.certificate);
        out.finish()
    }

    /// Decodes what [`Self::encode`] wrote.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut input = Reader::versioned(bytes, "floor", VERSION)?;
        let header = Header::decode(&input.bytes("header", bytes.len())?)?;
        let certificate = input.bytes("certificate", bytes.len())?;
        input.finish("floor")?;
        Ok(Self { header, certificate })
    }
}
