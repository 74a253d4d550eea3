//! Checks that a block is final, from the genesis file alone.
//!
//! ```text
//! genesis file ─┬─ validators ──────────────┐
//!               └─ state ─ header of block 0 ─ hash: namespace of its signatures ────┐
//!                                                                                    certificate
//!                                                                                       │ signs
//! the proof's header ── parent of ── header above ── … ── parent of ── the certified header
//! ```

use crate::{chain, datadir};
use alloy_primitives::BlockHash;
use almanac_bft::{Finality, Namespace, ValidatorSet};
use almanac_primitives::Header;
use almanac_proof::{FinalHeaders, ProofJson};
use anyhow::{Context as _, ensure};
use commonware_utils::sys_rng;
use std::{fmt, path::Path};

/// Why a block is final.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Final {
    /// The genesis file makes it.
    Genesis { chain_id: u64, hash: BlockHash },
    /// Validators signed it, or one above it.
    Signed {
        chain_id: u64,
        block: (u64, BlockHash),
        certified: (u64, BlockHash),
        signers: usize,
        validators: usize,
    },
}

/// Checks that the header is that of a final block of the chain that starts with this genesis.
pub(super) fn check(genesis_path: &Path, proof: &ProofJson, header: &Header) -> anyhow::Result<Final> {
    let genesis = datadir::read_genesis(genesis_path)?;
    let chain_id = genesis.chain_id;
    let origin = chain::origin_of(&genesis)?.hash();
    let (number, hash) = (header.number, header.hash());
    if hash == origin {
        return Ok(Final::Genesis { chain_id, hash });
    }
    let validators = ValidatorSet::new(&genesis).with_context(|| {
        format!("nobody signs the blocks of chain {chain_id}: trust a block hash, with --block-hash")
    })?;
    let FinalHeaders { headers, certificate } = proof.decode_finality()?.context(
        "the file does not prove its block final: get it with `almanac proof get --rpc` from a node of the network",
    )?;
    let shown = Finality { headers, certificate };
    let first = shown.headers.first().map(Header::hash);
    ensure!(
        first == Some(hash),
        "the proof is of block {number} ({hash}), but the field finality begins with another block, {}",
        first.unwrap_or_default()
    );
    let (_, certified) = shown.verify(&validators, &Namespace(origin), &mut sys_rng()).with_context(|| {
        format!(
            "block {number} ({hash}) is not shown to be final on chain {chain_id} of {}, whose block 0 is {origin}",
            genesis_path.display()
        )
    })?;
    let top = shown.headers.last().map_or(number, |last| last.number);
    Ok(Final::Signed {
        chain_id,
        block: (number, hash),
        certified: (top, certified.hash),
        signers: certified.signers,
        validators: validators.keys().len(),
    })
}

impl fmt::Display for Final {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Genesis { chain_id, hash } => {
                write!(f, "Final: block 0 ({hash}) is the start of chain {chain_id}.")
            }
            Self::Signed { chain_id, block: (number, hash), certified, signers, validators } => {
                write!(f, "Final: block {number} ({hash}) ")?;
                if certified.1 != *hash {
                    write!(f, "comes before block {} ({}), which ", certified.0, certified.1)?;
                }
                write!(f, "was signed by {signers} of {validators} validators of chain {chain_id}.")
            }
        }
    }
}
