#![doc = include_str!("../README.md")]
#![deny(
    clippy::float_arithmetic,
    clippy::iter_over_hash_type,
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)]

pub mod block;
pub mod choose;
mod doors;
pub mod edit;
pub mod environment;
mod epilogue;
pub mod error;
pub mod footprint;
mod handler;
mod ledger;
mod machine;
mod market;
mod native;
pub mod output;
pub mod place;
mod precompiles;
pub mod prefetch;
mod prologue;
mod quarantine;
pub mod recover;
mod reserve;
mod runs;
mod select;
mod signed;
pub mod simulate;
pub mod state;
mod sweep;
mod told;
mod transactions;
pub mod validate;

pub use block::{Finished, Observer, Watch, execute, observe};
pub use choose::{BlockBody, Candidates, Room, TransactionSource};
pub use doors::fault_in;
pub use edit::{Edit, EditError, edit_gas};
pub use environment::{BlockInput, Environment};
pub use error::{BlockError, Fault, StateFault};
pub use footprint::Footprint;
pub use machine::EvmContext;
pub use native::{
    rules::{check_enabled, check_expiration, check_parties, check_signatures},
    simulated::{NativeParts, native_transaction},
};
pub use output::{BlockOutput, Executed, HeaderMismatch, check_header};
pub use place::Place;
pub use prefetch::prefetch;
pub use recover::{recover, recover_all, recover_sender, recover_unknown};
pub use signed::{Agreement, Party, agreement};
pub use simulate::{
    Call, CallResult, Refusal, SimulateError, simulate, simulate_in, simulate_step, simulate_watched,
    simulate_with,
};
pub use validate::{
    Rules, Sender, TransactionError, call_gas_min, check_floor, check_inclusion, check_static,
    check_submission, cost_max, payer_cost_max,
};
