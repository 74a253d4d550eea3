//! Limits of the pool of pending transactions, and of gossip.

use super::{Row, Setting, bytes, count, row};
use crate::network::POOL_MAX;
use almanac_bft::gossip::{FRUITLESS_AT_ONCE, FRUITLESS_PER_SECOND};
use almanac_consensus::AUTHORIZATIONS_MAX;
use almanac_mempool::{BLOCK_STEP_MAX, PoolConfig};
use almanac_primitives::params::{BLOCK_GAS_DEFAULT, TRANSACTION_BYTES_MAX};

/// Every limit of the pool. A new field of `PoolConfig` does not compile until it is named here.
pub(super) fn pool() -> Vec<Row> {
    let PoolConfig {
        sender_count_max,
        delegated_count_max,
        orderless_sender_count_max,
        vouched_count_free,
        count_max,
        bytes_max,
        parked_sender_count_max,
        parked_count_max,
        parked_bytes_max,
        wide_gas,
        wide_count_max,
        parked_time_max,
        replacement_bump_percent,
    } = PoolConfig::default();
    let dev = PoolConfig::developer();
    let full = "error -32000, \"txpool is full\", with the prices that displace another";
    let first = "error -32000 with the nonce to send first";
    let size = format!("{} ({} to {})", count(count_max), count(*POOL_MAX.start()), count(*POOL_MAX.end()));
    let both = |node: usize, dev: usize| format!("{}; dev: {}", count(node), count(dev));
    let share = |part: usize| format!("{}, a {} of the pool", count(part), nth(count_max / part));
    vec![
        row("transactions", size, full).key("poolMax"),
        row("encoded bytes of all transactions", bytes(bytes_max), full),
        row("bytes of one transaction", bytes(TRANSACTION_BYTES_MAX), "error -32602 with both numbers"),
        row(
            "EIP-7702 authorizations of one transaction",
            count(AUTHORIZATIONS_MAX),
            "error -32000 with both numbers",
        ),
        Row {
            setting: Setting::Governance,
            ..row(
                "gas limit of one transaction",
                count(BLOCK_GAS_DEFAULT),
                "error -32000, \"exceeds block gas limit\"",
            )
        },
        row(
            "transactions of one sender",
            both(sender_count_max, dev.sender_count_max),
            "error -32000 with the number",
        ),
        row(
            "transactions of one sender with an EIP-7702 delegation",
            both(delegated_count_max, dev.delegated_count_max),
            "error -32000 with the number",
        ),
        row(
            "orderless transactions of one sender",
            both(orderless_sender_count_max, dev.orderless_sender_count_max),
            "error -32000 with the number",
        ),
        row(
            "transactions of one orderless sender or fee payer that have the places of all",
            both(vouched_count_free, dev.vouched_count_free),
            "nothing: further ones compete with wide ones",
        ),
        row("parked transactions: waiting for an earlier nonce or for funds", share(parked_count_max), first)
            .key("poolMax"),
        row("bytes of parked transactions", bytes(parked_bytes_max), first),
        row(
            "parked transactions of one sender",
            both(parked_sender_count_max, dev.parked_sender_count_max),
            first,
        ),
        row(
            "time that a transaction stays parked",
            format!(
                "{} min of block time, of which a block counts for {} s at most",
                parked_time_max.0 / 60_000,
                BLOCK_STEP_MAX.0 / 1_000
            ),
            "the transaction is dropped",
        ),
        row("gas limit above which a transaction is wide", count(wide_gas), "nothing"),
        row(
            "ready wide transactions, and those of accounts that stand for many",
            share(wide_count_max),
            "error -32000, \"txpool is full\"",
        )
        .key("poolMax"),
        row(
            "raise of fee cap and priority fee that replaces a transaction",
            format!("{replacement_bump_percent} %"),
            "error -32000, \"replacement transaction underpriced\", with the minimum prices",
        ),
    ]
}

fn nth(share: usize) -> &'static str {
    match share {
        10 => "tenth",
        _ => panic!("1/{share} has no name yet"),
    }
}

/// What a peer may cost.
pub(super) fn gossip() -> Vec<Row> {
    let seen = "its messages are dropped until it has credit again";
    let rate = format!("{} a second, {} at once", count(FRUITLESS_PER_SECOND), count(FRUITLESS_AT_ONCE));
    vec![row("signature recoveries for a peer that add nothing to the pool", rate, seen)]
}
