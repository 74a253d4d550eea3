//! Why the pool rejects a transaction.

use alloy_primitives::{Address, TxHash};
use almanac_primitives::{GasPrice, Wei};

/// Why the pool rejects a transaction. If Ethereum clients match on a phrase, the message starts with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    /// The same transaction is in the pool.
    #[error("already known: transaction {hash} is pending")]
    AlreadyKnown {
        /// Its hash.
        hash: TxHash,
    },
    /// Its nonce was used by an earlier transaction.
    #[error("nonce too low: {given} is below {account}, the next of the account")]
    NonceTooLow {
        /// The transaction's nonce.
        given: u64,
        /// The account's next nonce.
        account: u64,
    },
    /// It is larger than the whole pool.
    #[error("transaction of {given} bytes is larger than the pool, which holds {max} bytes")]
    TooLarge {
        /// Its size.
        given: usize,
        /// Size of the pool.
        max: usize,
    },
    /// The sender has the maximum number of transactions in the pool, all with lower nonces.
    #[error("sender {sender} has {max} pending transactions, the maximum for one sender")]
    SenderFull {
        /// The sender.
        sender: Address,
        /// Most transactions of one sender.
        max: usize,
    },
    /// It has the nonce of a pending one and does not pay enough more.
    #[error(
        "replacement transaction underpriced: to replace {old}, fee cap {given_cap} must be at least \
         {needed_cap} and priority fee {given_tip} at least {needed_tip}"
    )]
    ReplacementUnderpriced {
        /// Hash of the pending transaction.
        old: TxHash,
        /// Fee cap of the rejected one.
        given_cap: GasPrice,
        /// Lowest fee cap of a replacement.
        needed_cap: GasPrice,
        /// Priority fee of the rejected one.
        given_tip: GasPrice,
        /// Lowest priority fee of a replacement.
        needed_tip: GasPrice,
    },
    /// The balance does not cover it together with the sender's earlier transactions.
    #[error("insufficient funds for gas * price + value: needs {needed}, {sender} has {balance}")]
    InsufficientFunds {
        /// The sender.
        sender: Address,
        /// The maximum cost of it and the earlier ones.
        needed: Wei,
        /// The sender's balance.
        balance: Wei,
    },
    /// The pool is full, and this transaction pays least.
    #[error(
        "txpool is full: fee cap {given_cap} must be at least {needed_cap} and priority fee {given_tip} at \
         least {needed_tip} to displace another"
    )]
    PoolFull {
        /// Fee cap of the rejected one.
        given_cap: GasPrice,
        /// Lowest fee cap that makes room for a transaction of its size.
        needed_cap: GasPrice,
        /// Priority fee of the rejected one.
        given_tip: GasPrice,
        /// Lowest priority fee that makes room for a transaction of its size.
        needed_tip: GasPrice,
    },
    /// Its fee payer has a delegation, and stands for as many as such an account may.
    #[error(
        "fee payer {payer} has an EIP-7702 delegation and stands for {max} pending transactions, the maximum: send it \
         without a fee payer, or wait until they are in a block"
    )]
    PayerFull {
        /// The fee payer.
        payer: Address,
        /// Most transactions that it may stand for.
        max: usize,
    },
    /// It is wide, replaces one that is not, and the pool has the maximum number of wide ones.
    #[error(
        "txpool is full: it holds {max} transactions that ask for more than {gas} gas or share their fee payer or \
         orderless sender with many others"
    )]
    WideFull {
        /// Most wide transactions.
        max: usize,
        /// Gas above which a transaction is wide.
        gas: u64,
    },
    /// It is parked, and its sender has the maximum number of parked ones.
    #[error(
        "sender {sender} has {max} transactions that wait for an earlier nonce or for funds, the \
         maximum for one sender: send nonce {next} first"
    )]
    SenderParkedFull {
        /// The sender.
        sender: Address,
        /// Most parked transactions of one sender.
        max: usize,
        /// The nonce after the sender's ready ones.
        next: u64,
    },
    /// It is parked, and there is no room for parked ones.
    #[error(
        "txpool is full: no room for transactions that wait for an earlier nonce or for funds, of which it \
         holds {count} in {bytes} bytes: send nonce {next} first"
    )]
    ParkedFull {
        /// Parked transactions in the pool.
        count: usize,
        /// Their bytes.
        bytes: usize,
        /// The nonce after the sender's ready ones.
        next: u64,
    },
    /// The pool is full, and the one to leave would be its own sender's last, which is itself.
    #[error(
        "txpool is full: the sender's own transaction with nonce {nonce} and fee cap {fee_cap} is the \
         cheapest of the pool; replace that one first"
    )]
    BehindCheapest {
        /// Nonce of the sender's cheapest transaction.
        nonce: u64,
        /// Its fee cap.
        fee_cap: GasPrice,
    },
}
