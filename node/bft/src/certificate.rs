//! Finality certificates: the signatures of a quorum of validators for a block.

use crate::{
    digest::BlockDigest,
    validators::{Namespace, ValidatorSet},
};
use alloy_primitives::BlockHash;
use commonware_codec::{Copying, Decode as _, Error};
use commonware_consensus::simplex::{scheme::ed25519::Scheme, types::Finalization};
use commonware_cryptography::certificate::Verifier as _;
use commonware_parallel::Sequential;
use commonware_utils::{N3f1, ordered::Quorum as _};
use rand_core::CryptoRng;

/// The content of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Certified {
    /// The block: it and all blocks before it are final.
    pub hash: BlockHash,
    /// The validator set that signed.
    pub epoch: u64,
    /// The view in which it was signed.
    pub view: u64,
    /// How many validators signed.
    pub signers: usize,
}

/// What is wrong with a certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// It does not decode.
    #[error("invalid certificate of {length} bytes: {error}")]
    Malformed {
        /// Number of bytes given.
        length: usize,
        /// What is wrong with them.
        error: Error,
    },
    /// Too few signatures.
    #[error(
        "the certificate for {hash} has {signers} signatures: {quorum} of the {validators} validators are a quorum"
    )]
    TooFew {
        /// The block that it is about.
        hash: BlockHash,
        /// How many signatures it has.
        signers: usize,
        /// How many it needs.
        quorum: u32,
        /// How many validators there are.
        validators: usize,
    },
    /// Invalid signatures: by other keys, for another chain, or of another message.
    #[error(
        "the certificate for {hash} has signatures that are not by the {validators} validators of this genesis"
    )]
    NotSigned {
        /// The block that it is about.
        hash: BlockHash,
        /// How many validators there are.
        validators: usize,
    },
}

/// Verifies a certificate with the validators of a genesis, and nothing else.
///
/// `rng` weights the signatures of a batch: an attacker who can predict it might pass invalid ones.
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
    let (signers, quorum) = (signed.certificate.signers.count(), validators.keys().quorum::<N3f1>());
    if signers < usize::try_from(quorum).expect("VALIDATORS_MAX is small") {
        return Err(CertificateError::TooFew { hash, signers, quorum, validators: validators.keys().len() });
    }
    if !signed.verify(rng, &scheme, &Sequential) {
        return Err(CertificateError::NotSigned { hash, validators: validators.keys().len() });
    }
    let round = signed.round();
    Ok(Certified { hash, epoch: round.epoch().get(), view: round.view().get(), signers })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::ValidatorKey;
    use alloy_primitives::{Address, B256};
    use almanac_primitives::{genesis::Validator, testing};
    use commonware_codec::Encode as _;
    use commonware_consensus::{
        simplex::types::{Finalize, Notarize, Proposal},
        types::{Epoch, Round, View},
    };
    use commonware_cryptography::{
        certificate::{Attestation, Signers},
        ed25519::certificate::Certificate,
    };
    use commonware_utils::test_rng;
    use std::ops::Range;

    const HERE: Namespace = Namespace(B256::repeat_byte(0xaa));
    const HASH: BlockHash = B256::repeat_byte(5);

    fn key(number: u8) -> ValidatorKey {
        ValidatorKey::from_secret(&B256::repeat_byte(number))
    }

    fn validators(numbers: Range<u8>) -> ValidatorSet {
        let validator = |number: u8| Validator {
            name: number.to_string(),
            public_key: key(number).public(),
            fee_recipient: Address::ZERO,
        };
        let validators = numbers.map(validator).collect();
        ValidatorSet::new(&almanac_primitives::Genesis { validators, ..testing::genesis() }).unwrap()
    }

    /// A certificate with these signers, whether they are a quorum or not.
    fn signed(set: &ValidatorSet, namespace: &Namespace, signers: Range<u8>) -> Vec<u8> {
        let vote = |scheme: &Scheme| Finalize::sign(scheme, proposal()).unwrap().attestation;
        gathered(set, namespace, signers, vote)
    }

    fn proposal() -> Proposal<BlockDigest> {
        Proposal::new(Round::new(Epoch::new(0), View::new(9)), View::new(8), BlockDigest::from(HASH))
    }

    /// These signatures in the form of a certificate.
    fn gathered(
        set: &ValidatorSet,
        namespace: &Namespace,
        signers: Range<u8>,
        vote: impl Fn(&Scheme) -> Attestation<Scheme>,
    ) -> Vec<u8> {
        let proposal = proposal();
        let scheme = |number| set.signer(namespace, key(number).private()).unwrap();
        let mut votes: Vec<_> = signers.map(|number| vote(&scheme(number))).collect();
        votes.sort_by_key(|vote| vote.signer);
        let signers = Signers::try_from((set.keys(), votes.iter().map(|vote| vote.signer))).unwrap();
        let signatures = votes.into_iter().map(|vote| vote.signature).collect();
        let certificate = Certificate { signers, signatures };
        Finalization::<Scheme, BlockDigest> { proposal, certificate }.encode().to_vec()
    }

    #[test]
    fn both_sides_of_a_quorum_of_seven() {
        let set = validators(1..8);
        let check = |count: u8| verify(&signed(&set, &HERE, 1..1 + count), &set, &HERE, &mut test_rng());
        for count in [5, 6, 7] {
            let certified = check(count).unwrap();
            assert_eq!(certified, Certified { hash: HASH, epoch: 0, view: 9, signers: count.into() });
        }
        for count in [1, 4] {
            let refused = check(count).unwrap_err();
            let signers = usize::from(count);
            assert!(
                matches!(refused, CertificateError::TooFew { hash: HASH, signers: found, quorum: 5, validators: 7 }
                    if found == signers),
                "{refused}"
            );
        }
    }

    #[test]
    fn signatures_for_another_chain_or_by_others_are_refused() {
        let set = validators(1..5);
        let elsewhere = Namespace(B256::repeat_byte(0xab));
        let foreign = signed(&set, &elsewhere, 1..5);
        let refused = verify(&foreign, &set, &HERE, &mut test_rng()).unwrap_err();
        assert!(matches!(refused, CertificateError::NotSigned { hash: HASH, validators: 4 }), "{refused}");
        let strangers = validators(11..15);
        let refused = verify(&signed(&strangers, &HERE, 11..15), &set, &HERE, &mut test_rng()).unwrap_err();
        assert!(matches!(refused, CertificateError::NotSigned { .. }), "{refused}");
    }

    /// Both have the same form, and a quorum may notarize a block that never becomes final.
    #[test]
    fn votes_to_notarize_make_nothing_final() {
        let set = validators(1..5);
        let notarized =
            gathered(&set, &HERE, 1..5, |scheme| Notarize::sign(scheme, proposal()).unwrap().attestation);
        assert_eq!(notarized.len(), signed(&set, &HERE, 1..5).len());
        let refused = verify(&notarized, &set, &HERE, &mut test_rng()).unwrap_err();
        assert!(matches!(refused, CertificateError::NotSigned { hash: HASH, validators: 4 }), "{refused}");
    }

    #[test]
    fn what_is_no_certificate_is_refused() {
        let set = validators(1..5);
        let whole = signed(&set, &HERE, 1..5);
        for length in 0..whole.len() {
            let refused = verify(&whole[..length], &set, &HERE, &mut test_rng()).unwrap_err();
            assert!(matches!(refused, CertificateError::Malformed { length: found, .. } if found == length));
        }
        let long = [&whole[..], &[0]].concat();
        let refused = verify(&long, &set, &HERE, &mut test_rng());
        assert!(matches!(refused, Err(CertificateError::Malformed { .. })));
    }
}
