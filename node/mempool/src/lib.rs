#![doc = include_str!("../README.md")]

mod best;
mod config;
mod debts;
mod error;
mod evict;
mod fronts;
mod offer;
mod parked;
mod pool;
mod sender;

pub use best::Best;
pub use config::PoolConfig;
pub use error::PoolError;
pub use pool::{BLOCK_STEP_MAX, Insertion, Pool, Reinjection};
pub use sender::{Readiness, SenderState};
