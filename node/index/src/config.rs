//! How much is kept, and how much memory that may take.

/// Settings of one node. They never change an answer, only whether it is available and how fast.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexConfig {
    /// State stays readable for this many blocks before the tip; `u64::MAX` keeps all.
    pub history_depth: u64,
    /// The same of the history of orderless nonces, which no past block needs: to trace a block, only what it ran on
    /// matters, and a block that is there had none of its nonces refused. As far back, blocks can be reverted.
    pub nonce_depth: u64,
    /// Memory for caching disk reads.
    pub cache_bytes: u64,
    /// Memory for the write buffer. While one buffer is flushed, a second of this size can fill.
    pub buffer_bytes: u64,
    /// Most rows that one search for logs or schedules may read. Without it, a filter whose terms are common
    /// but never match the same log would scan the whole chain. The default takes about a second.
    pub search_rows_max: usize,
    /// Most bytes that one search for logs may read, since a receipt may be megabytes. The default takes about
    /// a second.
    pub search_bytes_max: usize,
}

impl IndexConfig {
    /// Keeps the state of every block.
    pub fn archive() -> Self {
        Self { history_depth: u64::MAX, ..Self::default() }
    }
}

impl Default for IndexConfig {
    fn default() -> Self {
        Self {
            history_depth: 16_384,
            nonce_depth: 1_024,
            cache_bytes: 256 << 20,
            buffer_bytes: 64 << 20,
            search_rows_max: 100_000,
            search_bytes_max: 256 << 20,
        }
    }
}
