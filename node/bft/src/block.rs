//! A block as consensus handles it: named by its hash, on the wire in the chain's own encoding.

use crate::digest::BlockDigest;
use alloy_primitives::B256;
use almanac_primitives::{Block, Header, params::BLOCK_BODY_BYTES_MAX};
use commonware_codec::{Buf, Copying, DecodeExt as _, EncodeSize, Error, RangeCfg, Read, Write};
use commonware_consensus::{
    Block as AnyBlock, BoundedBlock, CertifiableBlock, Heightable,
    simplex::types::Context,
    types::{Epoch, Height, Round, View},
};
use commonware_cryptography::{Digested, Digestible, ed25519::PublicKey};
use commonware_runtime::BufMut;
use std::sync::Arc;

/// Where in consensus a block is proposed: round, leader, parent.
pub type BlockContext = Context<BlockDigest, PublicKey>;

/// Room for a header and the two counts before a body.
const HEADER_BYTES_MAX: usize = 1_024;

/// Largest encoded block.
const BLOCK_BYTES_MAX: usize = HEADER_BYTES_MAX + BLOCK_BODY_BYTES_MAX;

/// Largest length before an encoded block, a varint.
const LENGTH_BYTES_MAX: usize = 5;

/// A block with the proposer's key read. Cloning shares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsensusBlock {
    block: Arc<Block>,
    digest: BlockDigest,
    leader: PublicKey,
}

impl ConsensusBlock {
    /// A block, or `None` where its header names no key as the proposer's.
    pub fn new(block: Arc<Block>) -> Option<Self> {
        let leader = read_key(block.header.consensus.leader)?;
        Some(Self { digest: block.hash().into(), leader, block })
    }

    /// Block 0, which nobody proposed.
    pub fn genesis(header: Header) -> Self {
        let block = Block { header, transactions: Vec::new() };
        Self::new(Arc::new(block)).expect("the key of nobody, all zero, is a point of the curve")
    }

    /// The block itself.
    pub fn block(&self) -> &Arc<Block> {
        &self.block
    }

    /// The block together with its name, as the library hands it around.
    pub fn digested(self) -> Digested<Self> {
        let digest = self.digest;
        Digested::precomputed(self, digest)
    }
}

/// A key as headers hold it.
pub fn key_bytes(key: &PublicKey) -> B256 {
    B256::from_slice(key.as_ref())
}

/// The key that a header or a genesis holds, if it is one.
pub fn read_key(bytes: B256) -> Option<PublicKey> {
    PublicKey::decode(Copying(bytes.as_slice())).ok()
}

impl Write for ConsensusBlock {
    fn write(&self, out: &mut impl BufMut) {
        self.block.encode().write(out);
    }
}

impl EncodeSize for ConsensusBlock {
    fn encode_size(&self) -> usize {
        self.block.encode().encode_size()
    }
}

impl Read for ConsensusBlock {
    type Cfg = ();

    fn read_cfg(input: &mut impl Buf, (): &()) -> Result<Self, Error> {
        let bytes = Vec::<u8>::read_cfg(input, &(RangeCfg::new(0..=BLOCK_BYTES_MAX), ()))?;
        let block = Block::decode(&bytes).map_err(|error| Error::Wrapped("block", error.into()))?;
        Self::new(Arc::new(block)).ok_or(Error::Invalid("block", "the proposer is no ed25519 key"))
    }
}

impl Digestible for ConsensusBlock {
    type Digest = BlockDigest;

    fn digest(&self) -> BlockDigest {
        self.digest
    }
}

impl Heightable for ConsensusBlock {
    fn height(&self) -> Height {
        Height::new(self.block.header.number)
    }
}

impl AnyBlock for ConsensusBlock {
    fn parent(&self) -> BlockDigest {
        self.block.header.parent_hash.into()
    }
}

impl CertifiableBlock for ConsensusBlock {
    type Context = BlockContext;

    fn context(&self) -> BlockContext {
        let consensus = &self.block.header.consensus;
        Context {
            round: Round::new(Epoch::new(consensus.epoch), View::new(consensus.view)),
            leader: self.leader.clone(),
            parent: (View::new(consensus.parent_view), self.parent()),
        }
    }
}

impl BoundedBlock for ConsensusBlock {
    fn max_encode_size((): &()) -> usize {
        BLOCK_BYTES_MAX + LENGTH_BYTES_MAX
    }
}
