//! Transactions as Ethereum clients read them: signed ones as alloy writes them, the chain's own in the same shape.

use super::{RpcScheduleRef, native::RpcNativeTransaction, shown_nonce::shown_nonce, shown_type::ShownType};
use alloy_consensus::transaction::Recovered;
use alloy_primitives::{Address, BlockHash, Bytes, TxHash, U64, U256};
use alloy_rpc_types_eth::Transaction;
use almanac_index::IndexedBlock;
use almanac_primitives::{
    PrologueTransaction, RecoveredTransaction, UserTransaction,
    run::{PROLOGUE_TYPE, RUN_TYPE},
    transaction::Envelope,
};
use serde::Serialize;

/// A transaction, in a block or waiting for one.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum RpcTransaction {
    /// Somebody signed it.
    User(Box<Transaction<Envelope>>),
    /// Somebody signed one of the chain's own kind.
    Native(Box<RpcNativeTransaction>),
    /// The chain itself made it.
    System(Box<SystemTransaction>),
}

/// The `v` of an even y, as legacy transactions have it. With r and s of 1 it is anvil's mark of a transaction that
/// nobody signed: `cast run` replays it without asking its sender for money.
const UNSIGNED_V: u64 = 27;

/// A transaction that nobody signed. It has the fields that clients insist on; the signature is a mark.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SystemTransaction {
    hash: TxHash,
    #[serde(flatten)]
    shown_type: ShownType,
    nonce: U64,
    from: Address,
    to: Option<Address>,
    value: U256,
    gas: U64,
    /// At least the block's base fee: tools that replay a run refuse less. The receipt has what was paid.
    gas_price: U256,
    input: Bytes,
    chain_id: U64,
    v: U64,
    r: U256,
    s: U256,
    block_hash: BlockHash,
    block_number: U64,
    transaction_index: U64,
    #[serde(skip_serializing_if = "Option::is_none")]
    schedule_ref: Option<RpcScheduleRef>,
}

impl RpcTransaction {
    /// What ran with this receipt index, unless there is none.
    pub fn of_block(indexed: &IndexedBlock, index: usize, chain_id: u64) -> Option<Self> {
        let receipt = indexed.receipts.get(index)?;
        match receipt.transaction_type {
            PROLOGUE_TYPE | RUN_TYPE => Some(Self::System(Box::new(system(indexed, index, chain_id)?))),
            _ => {
                let transaction = user_transaction(indexed, index)?;
                let place = Place {
                    hash: indexed.hash,
                    number: indexed.number(),
                    index: index.saturating_sub(indexed.unseen()),
                };
                let price = receipt.effective_gas_price.0;
                let from = indexed.parties.get(index)?.from;
                Some(user(transaction, from, Some(place), Some(price)))
            }
        }
    }

    /// A transaction that waits in the pool.
    pub fn pending(waiting: &RecoveredTransaction) -> Self {
        user(waiting.transaction(), waiting.sender(), None, None)
    }
}

/// The signed transaction with this receipt index, if it is one.
pub(crate) fn user_transaction(indexed: &IndexedBlock, index: usize) -> Option<&UserTransaction> {
    let is_user = |kind: u8| !matches!(kind, PROLOGUE_TYPE | RUN_TYPE);
    if !is_user(indexed.receipts.get(index)?.transaction_type) {
        return None;
    }
    let before = indexed.receipts[..index].iter().filter(|receipt| is_user(receipt.transaction_type)).count();
    indexed.block.transactions.get(before)
}

/// The encoding of what ran with this receipt index, whose hash the receipt has; `None` where nothing did.
pub(crate) fn encoded_transaction(indexed: &IndexedBlock, index: usize) -> Option<Bytes> {
    let run = indexed.parties.get(index)?.run.as_ref();
    match (indexed.receipts.get(index)?.transaction_type, run) {
        (RUN_TYPE, Some(run)) => Some(run.encode().into()),
        (PROLOGUE_TYPE, _) => Some(prologue(indexed).encode().into()),
        _ => user_transaction(indexed, index).map(|transaction| transaction.encoded().clone()),
    }
}

struct Place {
    hash: BlockHash,
    number: u64,
    index: usize,
}

fn user(
    transaction: &UserTransaction,
    from: Address,
    place: Option<Place>,
    price: Option<u128>,
) -> RpcTransaction {
    let Some(envelope) = transaction.envelope() else {
        let place = place.map(|place| (place.hash, place.number, place.index as u64));
        return RpcTransaction::Native(Box::new(RpcNativeTransaction::new(transaction, from, place, price)));
    };
    RpcTransaction::User(Box::new(Transaction {
        inner: Recovered::new_unchecked(envelope.clone(), from),
        block_hash: place.as_ref().map(|place| place.hash),
        block_number: place.as_ref().map(|place| place.number),
        transaction_index: place.map(|place| place.index as u64),
        effective_gas_price: price.or(Some(transaction.fee_cap().0)),
        block_timestamp: None,
    }))
}

fn system(indexed: &IndexedBlock, index: usize, chain_id: u64) -> Option<SystemTransaction> {
    let (receipt, parties) = indexed.receipts.get(index).zip(indexed.parties.get(index))?;
    let run = parties.run.as_ref();
    debug_assert!(run.is_some() || receipt.transaction_hash == prologue(indexed).hash());
    Some(SystemTransaction {
        hash: receipt.transaction_hash,
        shown_type: ShownType::new(receipt.transaction_type),
        nonce: shown_nonce(receipt.transaction_hash),
        from: parties.from,
        to: parties.to,
        value: run.map_or(U256::ZERO, |run| run.value.0),
        gas: U64::from(run.map_or(0, |run| run.gas_limit.0)),
        gas_price: U256::from(receipt.effective_gas_price.0.max(indexed.block.header.base_fee.0)),
        input: run.map_or_else(|| prologue(indexed).encode().into(), |run| run.input.clone()),
        chain_id: U64::from(chain_id),
        v: U64::from(UNSIGNED_V),
        r: U256::ONE,
        s: U256::ONE,
        block_hash: indexed.hash,
        block_number: U64::from(indexed.number()),
        transaction_index: U64::from(index.saturating_sub(indexed.unseen())),
        schedule_ref: receipt.schedule_ref.map(RpcScheduleRef::new),
    })
}

fn prologue(indexed: &IndexedBlock) -> PrologueTransaction {
    let header = &indexed.block.header;
    PrologueTransaction {
        number: header.number,
        timestamp: header.timestamp,
        parent_hash: header.parent_hash,
    }
}
