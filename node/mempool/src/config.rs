//! Limits of the pool. They are settings of a node: changing one does not fork the chain.

use almanac_primitives::{DurationMs, params::BLOCK_GAS_DEFAULT};

/// Bounds of a pool. They hold after every operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolConfig {
    /// Most transactions of one sender, parked ones included. Keeps one account from filling the pool, and
    /// bounds the work that a change of one account can cause.
    pub sender_count_max: usize,
    /// The same for a sender with an EIP-7702 delegation: others can spend its funds, and so invalidate all its
    /// transactions with one of theirs.
    pub delegated_count_max: usize,
    /// Most orderless transactions of one sender. They wait for nothing and expire within a minute, so one account may
    /// have many (ORDERLESS-16).
    pub orderless_sender_count_max: usize,
    /// Transactions that one account may stand for, as their orderless sender or as their fee payer, like others. It can
    /// void all of them with one of its own, so any more compete with the wide ones for their places.
    pub vouched_count_free: usize,
    /// Most transactions in the pool: several full blocks, so that a burst is smoothed rather than lost.
    pub count_max: usize,
    /// Most bytes of encoded transactions in the pool. A decoded one takes a small multiple of its encoding,
    /// so this bounds memory when transactions are large, as `count_max` does when they are small.
    pub bytes_max: usize,
    /// Most parked transactions of one sender.
    pub parked_sender_count_max: usize,
    /// Most parked transactions. They occupy places without being able to pay for them, so they get few.
    pub parked_count_max: usize,
    /// Most bytes of parked transactions.
    pub parked_bytes_max: usize,
    /// A transaction is wide if its gas limit exceeds this, a sixteenth of a block. One that uses little of it
    /// still keeps the next wide one out of its block, so many of them stay for long and pay little.
    pub wide_gas: u64,
    /// Most ready wide and vouched transactions. The other places are for those of which a block holds thousands.
    pub wide_count_max: usize,
    /// How long a transaction may stay parked, in block time.
    pub parked_time_max: DurationMs,
    /// Percent by which a replacement must raise both its fee cap and its priority fee. Each replacement
    /// travels to every node, so it must cost its sender something.
    pub replacement_bump_percent: u32,
}

/// Parked transactions may take the pool's places divided by this, and wide ones as many.
const SHARE: usize = 10;

impl PoolConfig {
    /// For a developer chain: scripts send thousands of transactions of one account ahead, in any order, and
    /// move time by years.
    pub fn developer() -> Self {
        let default = Self::default();
        Self {
            sender_count_max: 20_000,
            delegated_count_max: 20_000,
            orderless_sender_count_max: 20_000,
            vouched_count_free: default.count_max,
            parked_sender_count_max: 20_000,
            parked_count_max: default.count_max,
            parked_bytes_max: default.bytes_max,
            wide_count_max: default.count_max,
            parked_time_max: DurationMs(u64::MAX),
            ..default
        }
    }

    /// The same bounds for another number of transactions.
    pub fn with_count_max(self, count_max: usize) -> Self {
        let share = count_max.div_ceil(SHARE);
        Self { count_max, parked_count_max: share, wide_count_max: share, ..self }
    }
}

impl Default for PoolConfig {
    fn default() -> Self {
        Self {
            sender_count_max: 100,
            delegated_count_max: 4,
            orderless_sender_count_max: 5_000,
            vouched_count_free: 100,
            count_max: 100_000,
            bytes_max: 256 * 1024 * 1024,
            parked_sender_count_max: 64,
            parked_count_max: 100_000 / SHARE,
            parked_bytes_max: 32 * 1024 * 1024,
            wide_gas: BLOCK_GAS_DEFAULT / 16,
            wide_count_max: 100_000 / SHARE,
            parked_time_max: DurationMs(10 * 60 * 1_000),
            replacement_bump_percent: 10,
        }
    }
}
