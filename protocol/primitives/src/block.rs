//! Blocks and their headers.

use crate::{
    codec::{DecodeError, Reader, Writer},
    params::{BLOCK_BODY_BYTES_MAX, BLOCK_TRANSACTIONS_MAX, TRANSACTION_BYTES_MAX},
    receipt::Receipt,
    transaction::UserTransaction,
    units::{Gas, GasPrice, TimestampMs},
};
use alloy_primitives::{Address, B256, BlockHash, Bloom, keccak256};
use alloy_trie::root::ordered_trie_root_with_encoder;

const VERSION: u8 = 1;
const HEADER_BYTES: usize =
    1 + 32 + 8 + 8 + 4 + (8 + 8 + 32 + 8) + 20 + 8 + 8 + 8 + 16 + 32 + 32 + 256 + (32 + 32 + 8 + 8);

/// Where in consensus a block was proposed. All zero in a chain that one sequencer makes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConsensusContext {
    /// The validator set in force, counted from 0.
    pub epoch: u64,
    /// The view in which the block was proposed.
    pub view: u64,
    /// Public key of the proposer.
    pub leader: B256,
    /// The view in which its parent was proposed.
    pub parent_view: u64,
}

impl ConsensusContext {
    /// Views in a row before this one that gave no block. None in a chain that one sequencer makes.
    pub fn failed_views(&self) -> u64 {
        self.view.saturating_sub(self.parent_view.saturating_add(1))
    }
}

/// What the state store answers for after a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateCommitment {
    /// Root that proofs of values are made against.
    pub state_root: B256,
    /// Root over the store's operations, which state sync is checked against.
    pub ops_root: B256,
    /// First operation that the store still needs.
    pub ops_start: u64,
    /// One past its last operation.
    pub ops_end: u64,
}

/// Everything a block says about itself; its hash names the block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The block before.
    pub parent_hash: BlockHash,
    /// Height.
    pub number: u64,
    /// Time, strictly after the parent's.
    pub timestamp: TimestampMs,
    /// Version of the rules it was made under.
    pub protocol_version: u32,
    /// Its place in consensus.
    pub consensus: ConsensusContext,
    /// Gets the tips.
    pub fee_recipient: Address,
    /// Gas that cron, market and signature-triggered runs and user transactions share.
    pub gas_limit: Gas,
    /// How much of that they used.
    pub gas_used: Gas,
    /// Gas used by the reserved and spare lanes, which have capacity of their own.
    pub reserved_gas_used: Gas,
    /// Base fee per gas.
    pub base_fee: GasPrice,
    /// Root over the body.
    pub transactions_root: B256,
    /// Root over the receipts of everything that ran.
    pub receipts_root: B256,
    /// Bloom filter over all logs.
    pub logs_bloom: Bloom,
    /// The state after the block.
    pub commitment: StateCommitment,
}

impl Header {
    /// Canonical encoding; always the same length.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::versioned(VERSION, HEADER_BYTES);
        out.b256(self.parent_hash);
        out.u64(self.number);
        out.u64(self.timestamp.0);
        out.u32(self.protocol_version);
        out.u64(self.consensus.epoch);
        out.u64(self.consensus.view);
        out.b256(self.consensus.leader);
        out.u64(self.consensus.parent_view);
        out.address(self.fee_recipient);
        out.u64(self.gas_limit.0);
        out.u64(self.gas_used.0);
        out.u64(self.reserved_gas_used.0);
        out.u128(self.base_fee.0);
        out.b256(self.transactions_root);
        out.b256(self.receipts_root);
        out.raw(self.logs_bloom.as_slice());
        out.b256(self.commitment.state_root);
        out.b256(self.commitment.ops_root);
        out.u64(self.commitment.ops_start);
        out.u64(self.commitment.ops_end);
        out.finish()
    }

    /// Reads the canonical encoding.
    pub fn decode(encoded: &[u8]) -> Result<Self, DecodeError> {
        let mut input = Reader::versioned(encoded, "header", VERSION)?;
        let header = Self {
            parent_hash: input.b256("parent hash")?,
            number: input.u64("number")?,
            timestamp: TimestampMs(input.u64("timestamp")?),
            protocol_version: input.u32("protocol version")?,
            consensus: ConsensusContext {
                epoch: input.u64("epoch")?,
                view: input.u64("view")?,
                leader: input.b256("leader")?,
                parent_view: input.u64("parent view")?,
            },
            fee_recipient: input.address("fee recipient")?,
            gas_limit: Gas(input.u64("gas limit")?),
            gas_used: Gas(input.u64("gas used")?),
            reserved_gas_used: Gas(input.u64("reserved gas used")?),
            base_fee: GasPrice(input.u128("base fee")?),
            transactions_root: input.b256("transactions root")?,
            receipts_root: input.b256("receipts root")?,
            logs_bloom: Bloom::from_slice(input.raw("logs bloom", 256)?),
            commitment: StateCommitment {
                state_root: input.b256("state root")?,
                ops_root: input.b256("operations root")?,
                ops_start: input.u64("operations start")?,
                ops_end: input.u64("operations end")?,
            },
        };
        input.finish("header")?;
        Ok(header)
    }

    /// The block's name: keccak-256 of the header.
    pub fn hash(&self) -> BlockHash {
        keccak256(self.encode())
    }

    /// What PREVRANDAO answers in this block.
    pub fn prev_randao(&self) -> B256 {
        prev_randao(self.parent_hash, self.number)
    }
}

/// PREVRANDAO of the block `number` on `parent_hash`. Anyone can compute it: it is not random.
pub fn prev_randao(parent_hash: BlockHash, number: u64) -> B256 {
    let mut bytes = [0u8; 40];
    bytes[..32].copy_from_slice(parent_hash.as_slice());
    bytes[32..].copy_from_slice(&number.to_be_bytes());
    keccak256(bytes)
}

/// A block: what it says of itself, and the user transactions in final order. Runs are not in it; every node
/// derives them from the parent's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its header.
    pub header: Header,
    /// Its body.
    pub transactions: Vec<UserTransaction>,
}

impl Block {
    /// Canonical encoding: header, count, and each transaction behind its length.
    pub fn encode(&self) -> Vec<u8> {
        let body: usize = self.transactions.iter().map(|tx| tx.encoded().len() + 4).sum();
        let mut out = Writer::default();
        out.raw(&self.header.encode());
        out.raw(&u32::try_from(body).expect("a body is bounded").to_be_bytes());
        out.count(self.transactions.len());
        for transaction in &self.transactions {
            out.bytes(transaction.encoded());
        }
        out.finish()
    }

    /// Reads the canonical encoding.
    pub fn decode(encoded: &[u8]) -> Result<Self, DecodeError> {
        let mut input = Reader::new(encoded);
        let header = Header::decode(input.raw("header", HEADER_BYTES)?)?;
        let body = input.count("body", BLOCK_BODY_BYTES_MAX)?;
        let count = input.count("transactions", BLOCK_TRANSACTIONS_MAX)?;
        let mut input = {
            let rest = input.raw("body", body)?;
            input.finish("block")?;
            Reader::new(rest)
        };
        let mut transactions = Vec::with_capacity(count);
        for index in 0..count {
            let bytes = input.bytes("transaction", TRANSACTION_BYTES_MAX)?;
            let transaction =
                UserTransaction::decode(&bytes).map_err(|error| DecodeError::Transaction { index, error })?;
            transactions.push(transaction);
        }
        input.finish("body")?;
        Ok(Self { header, transactions })
    }

    /// The block's name.
    pub fn hash(&self) -> BlockHash {
        self.header.hash()
    }
}

/// Bytes that a transaction takes in an encoded body.
pub fn block_body_bytes(transaction: &UserTransaction) -> usize {
    transaction.encoded().len() + 4
}

/// Root over a body: Ethereum's ordered trie over EIP-2718 encodings.
pub fn transactions_root<'a>(transactions: impl IntoIterator<Item = &'a UserTransaction>) -> B256 {
    let encoded: Vec<_> = transactions.into_iter().map(UserTransaction::encoded).collect();
    encoded_root(&encoded)
}

/// Root over encodings: Ethereum's ordered trie.
pub fn encoded_root(encoded: &[impl AsRef<[u8]>]) -> B256 {
    ordered_trie_root_with_encoder(encoded, |bytes, out| out.extend_from_slice(bytes.as_ref()))
}

/// Root over the receipts of everything that ran: the same tree over our receipt encoding. Single receipts are proven
/// against it by [`ReceiptProof`](crate::inclusion::ReceiptProof).
pub fn receipts_root(receipts: &[Receipt]) -> B256 {
    ordered_trie_root_with_encoder(receipts, |receipt, out| out.extend_from_slice(&receipt.encode()))
}
