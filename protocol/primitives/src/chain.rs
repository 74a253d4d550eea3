//! Which chain this is: what signatures are bound to.

use crate::typed_data::{Words, text_hash};
use alloy_primitives::{Address, B256, BlockHash, keccak256};

/// A chain's id and the hash of its block 0. Two chains may share the id, by mistake or by a restart; they never share
/// block 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    /// Chain id.
    pub id: u64,
    /// Hash of block 0.
    pub genesis: BlockHash,
}

impl Chain {
    /// EIP-712's domain separator for what is signed for one of the chain's own contracts.
    pub fn domain_separator(&self, contract: Address) -> B256 {
        let mut words = Words::of_type(
            "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract,bytes32 salt)",
        );
        words.word(text_hash("Almanac"));
        words.word(text_hash("1"));
        words.number(self.id);
        words.address(contract);
        words.word(self.genesis);
        words.hash()
    }

    /// What a wallet signs for a struct with this EIP-712 hash.
    pub fn signing_hash(&self, contract: Address, struct_hash: B256) -> B256 {
        let mut bytes = [0u8; 66];
        bytes[..2].copy_from_slice(b"\x19\x01");
        bytes[2..34].copy_from_slice(self.domain_separator(contract).as_slice());
        bytes[34..].copy_from_slice(struct_hash.as_slice());
        keccak256(bytes)
    }
}
