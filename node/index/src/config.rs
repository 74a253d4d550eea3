//! How much is kept, and how much memory that may take.

/// Preferences of one node. None of them changes an answer, only whether there is one and how fast it comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexConfig {
    /// State stays readable for this many blocks before the tip; `u64::MAX` keeps all.
    pub history_depth: u64,
    /// Memory for what was read from the disk.
    pub cache_bytes: u64,
    /// Memory for what was written and is not in its final place on the disk yet. While that much is put there,
    /// as much again can come.
    pub buffer_bytes: u64,
    /// Rows that one search for logs, or for a page of schedules, may look at. A filter whose parts are common, but
    /// never in one log, would otherwise go through the whole chain; the default takes about a second.
    pub search_rows_max: usize,
    /// Bytes of these rows, for logs: a receipt may be megabytes. The default takes about a second.
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
            cache_bytes: 256 << 20,
            buffer_bytes: 64 << 20,
            search_rows_max: 100_000,
            search_bytes_max: 256 << 20,
        }
    }
}
