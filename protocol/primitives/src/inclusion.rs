//! Proofs that a transaction or a run is in a block, with its receipt, for anyone who has that block's header.
//!
//! ```text
//! block hash ── keccak-256 ── header ── receipts root ── trie nodes ── receipt ── transaction hash ── transaction
//! ```
//!
//! The trie is Ethereum's: the key of a receipt is the RLP of its index, so any client's Merkle-Patricia code can
//! check the nodes. Runs are not in block bodies, and need not be: the receipt has the hash of the run.

use crate::{
    Header, PrologueTransaction, Receipt, RunTransaction, UserTransaction,
    codec::DecodeError,
    run::{PROLOGUE_TYPE, RUN_TYPE},
    transaction::TransactionDecodeError,
};
use alloy_primitives::{B256, Bytes, TxHash, keccak256};
use alloy_trie::{
    HashBuilder, Nibbles,
    proof::{ProofRetainer, verify_proof},
    root::adjust_index_for_rlp,
};

/// Most nodes on the way to a receipt: an index below 2^32 has ten nibbles in RLP, and a leaf lies behind them.
pub const NODES_MAX: usize = 11;

/// A claim that a receipt is in a block, with what it takes to check it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiptProof {
    /// Its place among the receipts of the block, the prologue's included.
    pub index: u32,
    /// Its canonical encoding.
    pub receipt: Bytes,
    /// The encoding of what ran.
    pub transaction: Bytes,
    /// The nodes of the trie from the root down to it.
    pub nodes: Vec<Bytes>,
}

/// What ran with a receipt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ran {
    /// What opens a block.
    Prologue(PrologueTransaction),
    /// A run of a schedule.
    Run(RunTransaction),
    /// What somebody signed.
    User(UserTransaction),
}

/// Why a proof of a receipt proves nothing.
#[derive(Debug, thiserror::Error)]
pub enum InclusionError {
    /// The nodes do not lead from the receipt to the root.
    #[error(
        "the proof does not lead from receipt {index} to {receipts_root}, the receipts root of block {block_number}"
    )]
    WrongRoot {
        /// Its place.
        index: u32,
        /// The block.
        block_number: u64,
        /// The root in its header.
        receipts_root: B256,
    },
    /// More nodes than there can be.
    #[error("the proof has {given} nodes, at most {NODES_MAX} lead to a receipt")]
    TooManyNodes {
        /// How many.
        given: usize,
    },
    /// The receipt is in the block and cannot be read: written by rules that this build does not know.
    #[error("the receipt cannot be read: {0}")]
    Receipt(DecodeError),
    /// The receipt is of something else.
    #[error("the receipt is of transaction {receipt}, but the given one has the hash {given}")]
    OtherTransaction {
        /// The hash in the receipt.
        receipt: TxHash,
        /// The hash of what was given.
        given: TxHash,
    },
    /// What ran cannot be read.
    #[error("the transaction cannot be read: {0}")]
    System(DecodeError),
    /// What ran cannot be read.
    #[error("the transaction cannot be read: {0}")]
    User(TransactionDecodeError),
}

impl ReceiptProof {
    /// Proves the receipt at `index` of all receipts of a block, with the encoding of what ran. `None` where there is
    /// no such receipt.
    pub fn new(receipts: &[Receipt], index: u32, transaction: Bytes) -> Option<Self> {
        let receipt = receipts.get(usize::try_from(index).ok()?)?.encode().into();
        let retainer = ProofRetainer::new(vec![trie_key(index)]);
        let mut trie = HashBuilder::default().with_proof_retainer(retainer);
        for place in 0..receipts.len() {
            let place = adjust_index_for_rlp(place, receipts.len());
            trie.add_leaf(trie_key(u32::try_from(place).ok()?), &receipts[place].encode());
        }
        trie.root();
        let nodes = trie.take_proof_nodes().into_nodes_sorted();
        Some(Self { index, receipt, transaction, nodes: nodes.into_iter().map(|(_, node)| node).collect() })
    }

    /// Checks that the receipt is in the block with this header, and answers with it and with what ran.
    ///
    /// The answer is worth as much as the header is.
    pub fn verify(&self, header: &Header) -> Result<(Receipt, Ran), InclusionError> {
        if self.nodes.len() > NODES_MAX {
            return Err(InclusionError::TooManyNodes { given: self.nodes.len() });
        }
        let (root, index) = (header.receipts_root, self.index);
        verify_proof(root, trie_key(index), Some(self.receipt.to_vec()), &self.nodes).map_err(|_| {
            InclusionError::WrongRoot { index, block_number: header.number, receipts_root: root }
        })?;
        let receipt = Receipt::decode(&self.receipt).map_err(InclusionError::Receipt)?;
        let given = keccak256(&self.transaction);
        if given != receipt.transaction_hash {
            return Err(InclusionError::OtherTransaction { receipt: receipt.transaction_hash, given });
        }
        let ran = Ran::decode(&self.transaction)?;
        Ok((receipt, ran))
    }
}

impl Ran {
    fn decode(encoded: &[u8]) -> Result<Self, InclusionError> {
        match encoded.first() {
            Some(&PROLOGUE_TYPE) => PrologueTransaction::decode(encoded).map(Self::Prologue),
            Some(&RUN_TYPE) => RunTransaction::decode(encoded).map(Self::Run),
            _ => return UserTransaction::decode(encoded).map(Self::User).map_err(InclusionError::User),
        }
        .map_err(InclusionError::System)
    }
}

/// The RLP of an index, which is its key in the trie: 0 is the empty string, a byte below 128 stands for itself, and
/// a longer number goes behind its length.
fn trie_key(index: u32) -> Nibbles {
    let bytes = index.to_be_bytes();
    let digits = &bytes[bytes.iter().take_while(|byte| **byte == 0).count()..];
    match digits {
        [] => Nibbles::unpack([0x80]),
        [byte @ ..=0x7f] => Nibbles::unpack([*byte]),
        _ => {
            let mut key = vec![0x80 + u8::try_from(digits.len()).expect("a u32 has four bytes")];
            key.extend_from_slice(digits);
            Nibbles::unpack(key)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Gas, GasPrice, Lane, Outcome, ScheduleId, ScheduleRef, Wei, block::receipts_root};
    use alloy_primitives::Address;

    fn run(number: u64) -> RunTransaction {
        RunTransaction {
            schedule_ref: ScheduleRef { schedule: ScheduleId(7), number },
            lane: Lane::Cron,
            from: Address::repeat_byte(6),
            to: Address::repeat_byte(1),
            value: Wei::ZERO,
            input: Bytes::from_static(&[1, 2, 3, 4]),
            gas_limit: Gas(100_000),
            gas_price: GasPrice(1),
        }
    }

    fn receipt(number: u64) -> Receipt {
        Receipt {
            transaction_type: RUN_TYPE,
            transaction_hash: run(number).hash(),
            outcome: Outcome::Success,
            gas_used: Gas(21_000 + number),
            cumulative_gas_used: Gas(21_000),
            effective_gas_price: GasPrice(1),
            contract_address: None,
            failed_call: None,
            schedule_ref: Some(run(number).schedule_ref),
            logs: Vec::new(),
        }
    }

    fn block(count: u64) -> (Header, Vec<Receipt>) {
        let receipts: Vec<Receipt> = (0..count).map(receipt).collect();
        (Header { number: 3, receipts_root: receipts_root(&receipts), ..Header::default() }, receipts)
    }

    fn prove(receipts: &[Receipt], index: u32) -> ReceiptProof {
        ReceiptProof::new(receipts, index, run(index.into()).encode().into()).unwrap()
    }

    /// On both sides of every change of the keys' lengths.
    #[test]
    fn every_place_in_blocks_of_many_sizes() {
        for count in [1, 2, 3, 16, 17, 127, 128, 129, 130, 255, 256, 257, 300] {
            let (header, receipts) = block(count);
            for index in (0..count).filter(|index| *index < 4 || index % 41 == 0 || index + 4 > count) {
                let index = u32::try_from(index).unwrap();
                let proof = prove(&receipts, index);
                let (found, ran) = proof.verify(&header).unwrap();
                assert_eq!((found, ran), (receipt(index.into()), Ran::Run(run(index.into()))));
                assert!(proof.nodes.len() <= NODES_MAX);
            }
            let beyond = u32::try_from(count).unwrap();
            assert_eq!(ReceiptProof::new(&receipts, beyond, Bytes::new()), None);
        }
    }

    #[test]
    fn keys_are_rlp() {
        for index in [0, 1, 127, 128, 255, 256, 65_535, 65_536, (1 << 24) - 1, 1 << 24, u32::MAX] {
            assert_eq!(trie_key(index), Nibbles::unpack(alloy_rlp::encode(index)), "{index}");
        }
    }

    #[test]
    fn a_receipt_at_another_place_or_in_another_block_is_refused() {
        let (header, receipts) = block(20);
        let proof = prove(&receipts, 5);
        let elsewhere = ReceiptProof { index: 6, ..proof.clone() };
        assert!(matches!(elsewhere.verify(&header), Err(InclusionError::WrongRoot { index: 6, .. })));
        let (other, _) = block(21);
        assert!(matches!(proof.verify(&other), Err(InclusionError::WrongRoot { .. })));
        let swapped = ReceiptProof { receipt: prove(&receipts, 6).receipt, ..proof };
        assert!(matches!(swapped.verify(&header), Err(InclusionError::WrongRoot { .. })));
    }

    #[test]
    fn another_transaction_under_the_receipt_is_refused() {
        let (header, receipts) = block(3);
        let proof = prove(&receipts, 1);
        let forged = ReceiptProof { transaction: run(2).encode().into(), ..proof.clone() };
        assert!(matches!(forged.verify(&header), Err(InclusionError::OtherTransaction { .. })));
        let empty = ReceiptProof { transaction: Bytes::new(), ..proof };
        assert!(matches!(empty.verify(&header), Err(InclusionError::OtherTransaction { .. })));
    }

    #[test]
    fn nodes_left_out_added_or_changed_are_refused() {
        let (header, receipts) = block(300);
        let proof = prove(&receipts, 200);
        assert!(proof.nodes.len() > 2);
        for place in 0..proof.nodes.len() {
            let mut short = proof.clone();
            short.nodes.remove(place);
            assert!(short.verify(&header).is_err(), "without node {place}");
            let mut long = proof.clone();
            long.nodes.insert(place, proof.nodes[place].clone());
            assert!(long.verify(&header).is_err(), "node {place} twice");
            for byte in 0..proof.nodes[place].len() {
                let mut changed = proof.clone();
                let mut node = changed.nodes[place].to_vec();
                node[byte] ^= 1;
                changed.nodes[place] = node.into();
                assert!(changed.verify(&header).is_err(), "byte {byte} of node {place}");
            }
        }
        let mut trailing = proof.clone();
        trailing.nodes.push(proof.nodes[0].clone());
        assert!(trailing.verify(&header).is_err());
        let flood = ReceiptProof { nodes: vec![proof.nodes[0].clone(); NODES_MAX + 1], ..proof.clone() };
        assert!(matches!(flood.verify(&header), Err(InclusionError::TooManyNodes { given: 12 })));
        assert!(ReceiptProof { nodes: Vec::new(), ..proof }.verify(&header).is_err());
    }
}
