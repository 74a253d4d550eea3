//! What wallets sign: EIP-712 typed data, so that `eth_signTypedData_v4` shows every field.

use super::{NativeCall, NativeTransaction};
use crate::{addresses::ACCOUNTS, chain::Chain, typed_data::Words};
use alloy_primitives::{B256, keccak256};

const CALL: &str = "Call(address to,uint256 value,bytes data)";
const TRANSACTION: &str = "Transaction(address sender,uint8 kind,uint64 nonce,uint64 expiration,bool creation,\
                           Call[] calls,uint64 gasLimit,uint128 maxFeePerGas,uint128 maxPriorityFeePerGas,\
                           address feePayer)";
const PAY_FEE: &str = "PayFee(Transaction transaction)";

impl NativeTransaction {
    /// The digest that the sender's keys sign.
    pub fn signing_hash(&self, chain: &Chain) -> B256 {
        chain.signing_hash(ACCOUNTS, self.struct_hash())
    }

    /// The digest that the fee payer's keys sign. It differs from the sender's, so that neither signature can stand
    /// for the other.
    pub fn fee_payer_signing_hash(&self, chain: &Chain) -> B256 {
        let mut words = Words::of_type(&format!("{PAY_FEE}{CALL}{TRANSACTION}"));
        words.word(self.struct_hash());
        chain.signing_hash(ACCOUNTS, words.hash())
    }

    fn struct_hash(&self) -> B256 {
        let mut words = Words::of_type(&format!("{TRANSACTION}{CALL}"));
        words.address(self.sender);
        words.number(self.kind as u8);
        words.number(self.nonce);
        words.number(self.expiration);
        words.number(u8::from(self.is_create()));
        let calls: Vec<u8> = self.calls.iter().flat_map(|call| call_hash(call).0).collect();
        words.word(keccak256(calls));
        words.number(self.gas_limit);
        words.number(self.max_fee_per_gas);
        words.number(self.max_priority_fee_per_gas);
        words.address(self.fee_payer.unwrap_or_default());
        words.hash()
    }
}

/// A creation calls the zero address here; the field `creation` tells it from a call.
fn call_hash(call: &NativeCall) -> B256 {
    let mut words = Words::of_type(CALL);
    words.address(call.to.unwrap_or_default());
    words.uint(call.value);
    words.bytes(&call.input);
    words.hash()
}
