#![doc = include_str!("../README.md")]
#![deny(
    clippy::float_arithmetic,
    clippy::iter_over_hash_type,
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)]

pub mod blocklog;
pub mod bridge;
mod fiber;
pub mod memory;
pub mod store;
pub mod view;

pub use blocklog::{BlockLog, BlockLogError};
pub use bridge::with_reader;
pub use memory::{MemoryBatch, MemoryStore};
pub use store::{CommitError, SealError, SealedBatch, StaleBatch, StateStore};
pub use view::StateView;
