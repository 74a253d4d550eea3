//! A block as consensus handles it: identified by its hash, in the chain's own encoding on the wire.
//!
//! The hash covers the header, and the header commits to the body by its root. A peer could send another body
//! under the header of a valid block; it would have the same hash, be stored, and be committed. So decoding
//! fails unless the body matches the header.

use crate::digest::BlockDigest;
use alloy_primitives::B256;
use almanac_primitives::{Block, Header, block::transactions_root, params::BLOCK_BODY_BYTES_MAX};
use commonware_codec::{Buf, Copying, DecodeExt as _, EncodeSize, Error, RangeCfg, Read, Write};
use commonware_consensus::{
    Block as AnyBlock, BoundedBlock, CertifiableBlock, Heightable,
    simplex::types::Context,
    types::{Epoch, Height, Round, View},
};
use commonware_cryptography::{Digested, Digestible, ed25519::PublicKey};
use commonware_runtime::BufMut;
use std::sync::Arc;

/// The position of a proposal in consensus: round, leader, parent.
pub type BlockContext = Context<BlockDigest, PublicKey>;

/// Room for a header and the two counts before a body.
const HEADER_BYTES_MAX: usize = 1_024;

/// Largest encoded block.
const BLOCK_BYTES_MAX: usize = HEADER_BYTES_MAX + BLOCK_BODY_BYTES_MAX;

/// Largest length before an encoded block, a varint.
const LENGTH_BYTES_MAX: usize = 5;

/// A block with the proposer's key decoded. Clones share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsensusBlock {
    block: Arc<Block>,
    digest: BlockDigest,
    leader: PublicKey,
}

impl ConsensusBlock {
    /// Wraps a block, or returns `None` if the proposer in its header is not a valid key.
    pub fn new(block: Arc<Block>) -> Option<Self> {
        let leader = read_key(block.header.consensus.leader)?;
        Some(Self { digest: block.hash().into(), leader, block })
    }

    /// Block 0, which has no proposer.
    pub fn genesis(header: Header) -> Self {
        let block = Block { header, transactions: Vec::new() };
        Self::new(Arc::new(block)).expect("the key of nobody, all zero, is a point of the curve")
    }

    /// The block itself.
    pub fn block(&self) -> &Arc<Block> {
        &self.block
    }

    /// The block with its digest, as the library passes it around.
    pub fn digested(self) -> Digested<Self> {
        let digest = self.digest;
        Digested::precomputed(self, digest)
    }
}

/// The encoding of a key in headers.
pub fn key_bytes(key: &PublicKey) -> B256 {
    B256::from_slice(key.as_ref())
}

/// Decodes the key in a header or a genesis, if it is valid.
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
        if transactions_root(&block.transactions) != block.header.transactions_root {
            return Err(Error::Invalid("block", "the header names another body"));
        }
        Self::new(Arc::new(block)).ok_or(Error::Invalid("block", "the proposer is not an ed25519 key"))
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

#[cfg(test)]
mod tests {
    use super::*;
    use almanac_primitives::{
        UserTransaction,
        testing::{person, transfer},
    };
    use commonware_codec::Encode as _;

    fn paying(nonces: std::ops::Range<u64>) -> Vec<UserTransaction> {
        nonces.map(|nonce| transfer(person(0), nonce, person(1).address, 1)).collect()
    }

    /// A block with this body, which may contradict its header.
    fn block(header: Header, transactions: Vec<UserTransaction>) -> ConsensusBlock {
        ConsensusBlock::new(Arc::new(Block { header, transactions })).unwrap()
    }

    fn header_of(transactions: &[UserTransaction]) -> Header {
        Header { transactions_root: transactions_root(transactions), ..Header::default() }
    }

    fn decoded(block: &ConsensusBlock) -> Result<ConsensusBlock, String> {
        ConsensusBlock::decode(block.encode()).map_err(|error| error.to_string())
    }

    #[test]
    fn only_the_body_that_the_header_names_goes_by_its_hash() {
        let header = header_of(&paying(0..3));
        let right = block(header.clone(), paying(0..3));
        assert_eq!(decoded(&right).unwrap(), right);
        let swapped = [paying(1..2), paying(0..1), paying(2..3)].concat();
        for body in [Vec::new(), paying(0..2), paying(0..4), paying(1..4), swapped] {
            let wrong = block(header.clone(), body);
            assert_eq!(wrong.digest(), right.digest(), "the name is the same");
            assert!(decoded(&wrong).unwrap_err().contains("names another body"));
        }
        let empty = block(header_of(&[]), Vec::new());
        assert_eq!(decoded(&empty).unwrap(), empty);
        assert!(decoded(&block(header_of(&[]), paying(0..1))).is_err());
    }

    #[test]
    fn what_is_more_or_less_than_a_block_is_refused() {
        let right = block(header_of(&paying(0..2)), paying(0..2));
        let bytes = right.encode();
        for length in 0..bytes.len() {
            assert!(ConsensusBlock::decode(Copying(&bytes[..length])).is_err(), "{length} bytes");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert!(ConsensusBlock::decode(Copying(&longer[..])).is_err());
        let inside = [&right.block().encode()[..], &[0]].concat();
        assert!(ConsensusBlock::decode(inside.encode()).is_err(), "behind the body");
    }

    #[test]
    fn a_proposer_that_is_no_key_is_refused() {
        let mut all = (0..=u8::MAX).map(B256::repeat_byte);
        let leader = all.find(|bytes| read_key(*bytes).is_none()).expect("half of all bytes are no point");
        let mut header = header_of(&[]);
        header.consensus.leader = leader;
        let bytes = Block { header, transactions: Vec::new() }.encode();
        let refused = ConsensusBlock::decode(bytes.encode()).unwrap_err();
        assert!(refused.to_string().contains("not an ed25519 key"), "{refused}");
    }

    /// Both sides of the size limit: the largest body can be sent, and nothing larger is read.
    #[test]
    fn both_sides_of_the_size_of_a_block() {
        let largest = vec![0; BLOCK_BYTES_MAX];
        assert_eq!(
            largest.encode_size(),
            ConsensusBlock::max_encode_size(&()) - 1,
            "four bytes say its length"
        );
        let refused = |bytes: Vec<u8>| ConsensusBlock::decode(bytes.encode()).unwrap_err().to_string();
        assert!(refused(largest).contains("block"), "it is read, and is no block");
        assert!(refused(vec![0; BLOCK_BYTES_MAX + 1]).contains("length"));
    }
}
