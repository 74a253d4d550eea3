#![doc = include_str!("../README.md")]
#![deny(
    clippy::float_arithmetic,
    clippy::iter_over_hash_type,
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)]

pub mod archive;
pub mod bridge;
mod fiber;
pub mod forked;
pub mod memory;
pub mod proof;
pub mod qmdb;
pub mod store;
pub mod view;

pub use archive::{ArchiveError, ArchivedBlock, BlockArchive, BlockJournal, SignedBlock, SignedFuture};
pub use bridge::with_reader;
pub use forked::{ForkedBatch, ForkedStore};
pub use memory::{MemoryBatch, MemoryStore};
pub use proof::{ContentError, ProofDecodeError, ProveError, ProvenValue, StateProof, VerifyError, verify};
pub use qmdb::{OpenError, QmdbBatch, QmdbConfig, QmdbStore};
pub use store::{CommitError, SealError, SealedBatch, StaleBatch, StateStore};
pub use view::StateView;
