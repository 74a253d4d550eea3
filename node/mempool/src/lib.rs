//! Pending transactions: admit, order, park, evict
