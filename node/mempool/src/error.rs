//! Why the pool refuses a transaction.

use alloy_primitives::{Address, TxHash};
use almanac_primitives::{GasPrice, Wei};

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
    /// The balance does not cover it, with the sender's earlier transactions that it would follow.
    #[error("insufficient funds for gas * price + value: needs {needed}, {sender} has {balance}")]
    InsufficientFunds {
        /// The sender.
        sender: Address,
        /// What it and the earlier ones can cost at most.
        needed: Wei,
        /// What the sender has.
        balance: Wei,
    },
    /// There is no room, and it would be the first to leave.
    #[error(
        "txpool is full: fee cap {given_cap} must be at least {needed_cap} and priority fee {given_tip} at \
         least {needed_tip} to displace another"
    )]
    PoolFull {
        /// Fee cap of the refused one.
        given_cap: GasPrice,
        /// Lowest fee cap that makes room for a transaction of its size.
        needed_cap: GasPrice,
        /// Priority fee of the refused one.
        given_tip: GasPrice,
        /// Lowest priority fee that makes room for a transaction of its size.
        needed_tip: GasPrice,
    },
    /// It asks for much gas, takes the place of one that does not, and there are as many of those as there may be.
    #[error("txpool is full: it holds {max} transactions that ask for more than {gas} gas")]
    WideFull {
        /// Most wide transactions.
        max: usize,
        /// Gas above which a transaction is wide.
        gas: u64,
    },
    /// It cannot run yet, and its sender has as many of those as one may have.
    #[error(
        "sender {sender} has {max} transactions that wait for an earlier nonce or for funds, which is the \
         most that one sender may have: send nonce {next} first"
    )]
    SenderParkedFull {
        /// The sender.
        sender: Address,
        /// Most parked transactions of one sender.
        max: usize,
        /// The number after the sender's ready ones.
        next: u64,
    },
    /// It cannot run yet, and there is no room for those.
    #[error(
        "txpool is full: no room for transactions that wait for an earlier nonce or for funds, of which it \
         holds {count} in {bytes} bytes: send nonce {next} first"
    )]
    ParkedFull {
        /// Parked transactions in the pool.
        count: usize,
        /// Their bytes.
        bytes: usize,
        /// The number after the sender's ready ones.
        next: u64,
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
