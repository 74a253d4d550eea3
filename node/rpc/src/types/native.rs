//! Native transactions in Ethereum's shape, with what Ethereum does not have in fields of their own.
//!
//! Clients insist on a type that they know (`shown_type.rs`), a nonce that fits 53 bits, and a signature. So `nonce` is
//! the sequence number, or a stand-in (`shown_nonce.rs`), and the signature is empty. A batch is shown as a call of the
//! sender itself; `calls` has the real ones. One call is shown by Ethereum's fields alone: a block of large ones, shown twice,
//! would be above what an answer may have.

use super::{shown_nonce::shown_nonce, shown_type::ShownType};
use alloy_primitives::{Address, BlockHash, Bytes, TxHash, U64, U256};
use almanac_primitives::{NativeCall, ReplayProtector, UserTransaction};
use serde::{Deserialize, Serialize};

/// A native transaction.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RpcNativeTransaction {
    hash: TxHash,
    #[serde(flatten)]
    shown_type: ShownType,
    chain_id: U64,
    nonce: U64,
    from: Address,
    to: Option<Address>,
    value: U256,
    gas: U64,
    gas_price: U256,
    max_fee_per_gas: U256,
    max_priority_fee_per_gas: U256,
    input: Bytes,
    access_list: [(); 0],
    v: U64,
    r: U256,
    s: U256,
    y_parity: U64,
    block_hash: Option<BlockHash>,
    block_number: Option<U64>,
    transaction_index: Option<U64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<Vec<RpcNativeCall>>,
    replay_protector: RpcReplayProtector,
    #[serde(skip_serializing_if = "Option::is_none")]
    expiration: Option<U64>,
    signatures: Vec<Bytes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fee_payer: Option<Address>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fee_payer_signatures: Vec<Bytes>,
}

/// One call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RpcNativeCall {
    to: Option<Address>,
    #[serde(default)]
    value: U256,
    #[serde(default, alias = "data")]
    input: Bytes,
}

/// What keeps it from running twice.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub(crate) enum RpcReplayProtector {
    Sequence { sequence_number: U64 },
    Nonce { nonce: U64, expiration: U64 },
}

impl RpcNativeTransaction {
    /// Shows a native transaction. `place` is its block's hash and number and its index; `price` what it paid per gas.
    pub(super) fn new(
        transaction: &UserTransaction,
        from: Address,
        place: Option<(BlockHash, u64, u64)>,
        price: Option<u128>,
    ) -> Self {
        let native = transaction.native();
        let (nonce, replay_protector) = match transaction.replay_protector() {
            ReplayProtector::Sequence(number) => {
                (U64::from(number), RpcReplayProtector::Sequence { sequence_number: U64::from(number) })
            }
            ReplayProtector::Nonce { nonce, expiration } => {
                let protector =
                    RpcReplayProtector::Nonce { nonce: U64::from(nonce), expiration: U64::from(expiration) };
                (shown_nonce(transaction.hash()), protector)
            }
        };
        let cap = transaction.fee_cap().0;
        Self {
            hash: transaction.hash(),
            shown_type: ShownType::new(transaction.transaction_type()),
            chain_id: U64::from(transaction.chain_id().unwrap_or_default()),
            nonce,
            from,
            to: transaction.to(),
            value: transaction.value(),
            gas: U64::from(transaction.gas_limit()),
            gas_price: U256::from(price.unwrap_or(cap)),
            max_fee_per_gas: U256::from(cap),
            max_priority_fee_per_gas: U256::from(transaction.tip_cap().map_or(cap, |tip| tip.0)),
            input: transaction.input().clone(),
            access_list: [],
            v: U64::ZERO,
            r: U256::ZERO,
            s: U256::ZERO,
            y_parity: U64::ZERO,
            block_hash: place.map(|(hash, ..)| hash),
            block_number: place.map(|(_, number, _)| U64::from(number)),
            transaction_index: place.map(|(.., index)| U64::from(index)),
            calls: native
                .filter(|native| native.calls.len() > 1)
                .map(|native| native.calls.iter().map(RpcNativeCall::new).collect()),
            replay_protector,
            expiration: transaction.expiration().map(U64::from),
            signatures: native.map(|native| native.signatures.clone()).unwrap_or_default(),
            fee_payer: transaction.fee_payer(),
            fee_payer_signatures: native
                .map(|native| native.fee_payer_signatures.clone())
                .unwrap_or_default(),
        }
    }
}

impl RpcNativeCall {
    fn new(call: &NativeCall) -> Self {
        Self { to: call.to, value: call.value, input: call.input.clone() }
    }

    /// The call that it is.
    pub(crate) fn native(&self) -> NativeCall {
        NativeCall { to: self.to, value: self.value, input: self.input.clone() }
    }
}
