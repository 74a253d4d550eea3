#![doc = include_str!("../README.md")]
#![deny(
    clippy::float_arithmetic,
    clippy::iter_over_hash_type,
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)]

pub mod addresses;
pub mod block;
pub mod chain;
pub mod codec;
pub mod fees;
pub mod fork;
pub mod genesis;
pub mod ids;
pub mod inclusion;
pub mod keys;
pub mod native;
pub mod nonces;
pub mod params;
pub mod receipt;
pub mod run;
pub mod state;
#[cfg(feature = "testing")]
pub mod testing;
pub mod transaction;
pub mod transaction_body;
mod typed_data;
pub mod units;

pub use block::{Block, ConsensusContext, Header, StateCommitment};
pub use chain::Chain;
pub use fork::{Fork, Origin};
pub use genesis::Genesis;
pub use ids::ScheduleId;
pub use inclusion::ReceiptProof;
pub use native::{NativeCall, NativeTransaction};
pub use receipt::{Halt, Outcome, Receipt};
pub use run::{Lane, PrologueTransaction, RunTransaction, ScheduleRef};
pub use state::{Account, StateChange, StateDiff, StateKey, StateRead, StateReadError};
pub use transaction::{RecoveredTransaction, ReplayProtector, SignedTransaction, UserTransaction};
pub use units::{DurationMs, Gas, GasPrice, TimestampMs, Wei};
