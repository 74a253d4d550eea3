//! How much the pool holds. Node preferences: changing one forks nothing.

/// Bounds of a pool. They hold after every operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolConfig {
    /// Most transactions of one sender, parked ones included. Keeps one account from filling the pool, and
    /// bounds the work that a change of one account can cause.
    pub sender_count_max: usize,
    /// Most transactions in the pool: several full blocks, so that a burst is smoothed rather than lost.
    pub count_max: usize,
    /// Most bytes of encoded transactions in the pool. A decoded one takes a small multiple of its encoding,
    /// so this bounds memory when transactions are large, as `count_max` does when they are small.
    pub bytes_max: usize,
    /// Percent by which a replacement must raise both its fee cap and its priority fee. Each replacement
    /// travels to every node, so it must cost its sender something.
    pub replacement_bump_percent: u32,
}

impl PoolConfig {
    /// For a developer's chain: scripts send thousands of transactions of one account ahead, in any order.
    pub fn developer() -> Self {
        Self { sender_count_max: 20_000, ..Self::default() }
    }
}

impl Default for PoolConfig {
    fn default() -> Self {
        Self {
            sender_count_max: 100,
            count_max: 100_000,
            bytes_max: 256 * 1024 * 1024,
            replacement_bump_percent: 10,
        }
    }
}
