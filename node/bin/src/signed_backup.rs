//! Checks the origin of a backup before anything else.
//!
//! ```text
//! genesis ── block 0 ── parent of ── block 1 ── … ── parent of ── the last block
//!    └─ validators ──────────────── signed ─────────────────────────┘
//! ```
//!
//! On a chain with validators the last block must have a certificate, so that nobody can change or add a block and fix
//! the checksum. On a developer chain nobody signs: executing the blocks proves that they follow from the genesis, and
//! only a trusted hash can prove their origin.

use crate::{backup::Backup, chain};
use alloy_primitives::BlockHash;
use almanac_bft::{CertificateError, Namespace, ValidatorSet, ValidatorSetError, certificate};
use commonware_utils::sys_rng;
use std::io::{Read, Seek};

/// What a backup was checked against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Checked {
    /// The hash of block 0, which only this genesis has.
    pub(crate) origin: BlockHash,
    /// The hash of the last block.
    pub(crate) last: BlockHash,
    /// How many validators signed the last block, of how many; `None` where nobody signs.
    pub(crate) signers: Option<(usize, usize)>,
}

/// Why a backup is not that of a final chain.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SignedBackupError {
    /// Not a backup.
    #[error("the backup cannot be read: {0:#}")]
    Unreadable(anyhow::Error),
    /// A set of validators that cannot be one.
    #[error(transparent)]
    Validators(#[from] ValidatorSetError),
    /// A block that is not on top of the one before.
    #[error("block {number} ({hash}) does not follow block {before} ({before_hash})")]
    NotLinked { number: u64, hash: BlockHash, before: u64, before_hash: BlockHash },
    /// A certificate that does not hold.
    #[error("the certificate of block {number} ({hash}) is invalid")]
    Certificate { number: u64, hash: BlockHash, source: CertificateError },
    /// The certificate of another block.
    #[error("block {number} ({hash}) carries the certificate of another block, {certified}")]
    OtherBlock { number: u64, hash: BlockHash, certified: BlockHash },
    /// Nobody has signed the end of the chain.
    #[error(
        "the last block {number} ({hash}) carries no certificate of the {validators} validators of its genesis"
    )]
    Unsigned { number: u64, hash: BlockHash, validators: usize },
    /// Signatures where there is nobody to sign.
    #[error("block {number} has a certificate, but the genesis has no validators")]
    NobodySigns { number: u64 },
}

/// Reads all blocks once, and goes back to the first.
pub(crate) fn check<R: Read + Seek>(backup: &mut Backup<R>) -> Result<Checked, SignedBackupError> {
    let origin = chain::origin_of(&backup.genesis).map_err(SignedBackupError::Unreadable)?.hash();
    let validators = match backup.genesis.validators.len() {
        0 => None,
        _ => Some(ValidatorSet::new(&backup.genesis)?),
    };
    let namespace = Namespace(origin);
    let (mut before, mut before_hash, mut signers) = (0, origin, None);
    while let Some(signed) = backup.next_block().map_err(SignedBackupError::Unreadable)? {
        let header = &signed.block.header;
        let (number, hash) = (header.number, header.hash());
        if number.checked_sub(1) != Some(before) || header.parent_hash != before_hash {
            return Err(SignedBackupError::NotLinked { number, hash, before, before_hash });
        }
        signers = match (&signed.certificate, &validators) {
            (None, _) => None,
            (Some(_), None) => return Err(SignedBackupError::NobodySigns { number }),
            (Some(certificate), Some(validators)) => {
                let certified = certificate::verify(certificate, validators, &namespace, &mut sys_rng())
                    .map_err(|source| SignedBackupError::Certificate { number, hash, source })?;
                if certified.hash != hash {
                    let certified = certified.hash;
                    return Err(SignedBackupError::OtherBlock { number, hash, certified });
                }
                Some(certified.signers)
            }
        };
        (before, before_hash) = (number, hash);
    }
    let validators = validators.map(|validators| validators.keys().len());
    let signers = match (signers, validators) {
        (None, Some(validators)) if before > 0 => {
            return Err(SignedBackupError::Unsigned { number: before, hash: before_hash, validators });
        }
        (signers, validators) => signers.zip(validators),
    };
    backup.rewind().map_err(SignedBackupError::Unreadable)?;
    Ok(Checked { origin, last: before_hash, signers })
}

#[cfg(test)]
mod tests;
