//! Why the pool refuses a transaction.

use alloy_primitives::{Address, TxHash};
use almanac_primitives::GasPrice;

/// Why the pool refuses a transaction. Where Ethereum clients match on a phrase, the message starts with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    /// The very same transaction is in the pool.
    #[error("already known: transaction {hash} is pending")]
    AlreadyKnown {
        /// Its hash.
        hash: TxHash,
    },
    /// Its sequence number was used by an earlier transaction.
    #[error("nonce too low: {given} is below {account}, the next of the account")]
    NonceTooLow {
        /// The transaction's number.
        given: u64,
        /// The account's next number.
        account: u64,
    },
    /// It would not even fit an empty pool.
    #[error("transaction of {given} bytes is larger than the pool, which holds {max} bytes")]
    TooLarge {
        /// Its size.
        given: usize,
        /// Size of the pool.
        max: usize,
    },
    /// The sender has as many transactions in the pool as one may have, all with lower sequence numbers.
    #[error("sender {sender} has {max} pending transactions, which is the most that one sender may have")]
    SenderFull {
        /// The sender.
        sender: Address,
        /// Most transactions of one sender.
        max: usize,
    },
    /// It has the sequence number of a pending one and does not pay enough more.
    #[error(
        "replacement transaction underpriced: to replace {old}, fee cap {given_cap} must be at least \
         {needed_cap} and priority fee {given_tip} at least {needed_tip}"
    )]
    ReplacementUnderpriced {
        /// Hash of the pending transaction.
        old: TxHash,
        /// Fee cap of the refused one.
        given_cap: GasPrice,
        /// Lowest fee cap that replaces.
        needed_cap: GasPrice,
        /// Priority fee of the refused one.
        given_tip: GasPrice,
        /// Lowest priority fee that replaces.
        needed_tip: GasPrice,
    },
    /// There is no room, and it would be the first to leave.
    #[error("txpool is full: fee cap {fee_cap} is below {needed}, the lowest that displaces another")]
    PoolFull {
        /// Fee cap of the refused one.
        fee_cap: GasPrice,
        /// Lowest fee cap that makes room for a transaction of its size.
        needed: GasPrice,
    },
    /// There is no room, and the first to leave would be its own sender's last, which is itself.
    #[error(
        "txpool is full: the sender's own transaction with nonce {nonce} and fee cap {fee_cap} is the \
         cheapest of the pool; replace that one first"
    )]
    BehindCheapest {
        /// Sequence number of the sender's cheapest transaction.
        nonce: u64,
        /// Its fee cap.
        fee_cap: GasPrice,
    },
}
