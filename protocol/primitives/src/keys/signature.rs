//! Signatures of both curves in one form, and the leaves that they prove.

use super::{Leaf, ed25519};
use alloy_consensus::crypto::secp256k1::recover_signer;
use alloy_primitives::{B256, Signature, U256};

/// Most signatures of one account on one message: as many as a key has leaves.
pub const SIGNATURES_MAX: usize = 32;

/// Bytes of a secp256k1 signature: r, s, and the parity of y.
const SECP256K1_BYTES: usize = 65;
/// Bytes of an Ed25519 signature with its key in front.
const ED25519_BYTES: usize = 96;

/// Why signatures prove nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    /// There is none, or too many.
    #[error("{given} signatures: 1 to {SIGNATURES_MAX} are allowed")]
    SignatureCount {
        /// How many.
        given: usize,
    },
    /// One of them is not a signature of the message.
    #[error("signature {index} is invalid: {fault}")]
    SignatureInvalid {
        /// Its position.
        index: usize,
        /// What is wrong with it.
        fault: SignatureFault,
    },
    /// The keys that they prove do not ascend, or one is there twice.
    #[error(
        "signature {index} is out of order: signatures stand in ascending order of their keys, each key once"
    )]
    SignaturesUnordered {
        /// The first that does not come after the one before it.
        index: usize,
    },
}

/// What is wrong with a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureFault {
    /// Neither curve has signatures of this length.
    #[error("it has {given} bytes; secp256k1 takes 65 (r, s, yParity), Ed25519 96 (key, signature)")]
    Length {
        /// Its length.
        given: usize,
    },
    /// Not a canonical secp256k1 signature.
    #[error("not a secp256k1 signature with a low s and a yParity of 0 or 1")]
    Secp256k1,
    /// Not a strict Ed25519 signature of this message.
    #[error("not an Ed25519 signature of this message by the key in front of it (canonical, no small order)")]
    Ed25519,
}

/// The leaves that signatures over `digest` prove, in ascending order. Stops at the first that is wrong.
pub fn prove<S: AsRef<[u8]>>(digest: B256, signatures: &[S]) -> Result<Vec<Leaf>, ProofError> {
    if signatures.is_empty() || signatures.len() > SIGNATURES_MAX {
        return Err(ProofError::SignatureCount { given: signatures.len() });
    }
    let mut leaves: Vec<Leaf> = Vec::with_capacity(signatures.len());
    for (index, signature) in signatures.iter().enumerate() {
        let leaf = recover_leaf(digest, signature.as_ref())
            .map_err(|fault| ProofError::SignatureInvalid { index, fault })?;
        if leaves.last().is_some_and(|last| *last >= leaf) {
            return Err(ProofError::SignaturesUnordered { index });
        }
        leaves.push(leaf);
    }
    Ok(leaves)
}

/// Checks the form of a signature, which costs no curve arithmetic.
pub(crate) fn check_form(signature: &[u8]) -> Result<(), SignatureFault> {
    match signature.len() {
        SECP256K1_BYTES if signature[64] <= 1 => Ok(()),
        SECP256K1_BYTES => Err(SignatureFault::Secp256k1),
        ED25519_BYTES => Ok(()),
        given => Err(SignatureFault::Length { given }),
    }
}

/// The leaf that a signature names, if it is valid: an Ed25519 one has its key in front, a secp256k1 one must be recovered
/// first.
pub fn named_leaf(signature: &[u8]) -> Option<Leaf> {
    let key = signature.first_chunk::<32>().filter(|_| signature.len() == ED25519_BYTES)?;
    Some(Leaf::Ed25519(key.into()))
}

/// The leaf that one signature over `digest` proves.
pub fn recover_leaf(digest: B256, signature: &[u8]) -> Result<Leaf, SignatureFault> {
    check_form(signature)?;
    if signature.len() == SECP256K1_BYTES {
        let (r, s) = (U256::from_be_slice(&signature[..32]), U256::from_be_slice(&signature[32..64]));
        let signature = Signature::new(r, s, signature[64] == 1);
        return recover_signer(&signature, digest)
            .map(Leaf::Secp256k1)
            .map_err(|_| SignatureFault::Secp256k1);
    }
    let (key, signature) = signature.split_at(32);
    let key: [u8; 32] = key.try_into().expect("split at 32");
    let signature: [u8; 64] = signature.try_into().expect("96 bytes less 32");
    let is_valid = ed25519::is_valid(&key, digest.as_slice(), &signature);
    is_valid.then_some(Leaf::Ed25519(key.into())).ok_or(SignatureFault::Ed25519)
}
