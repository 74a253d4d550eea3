#![doc = include_str!("../README.md")]
#![deny(
    clippy::float_arithmetic,
    clippy::iter_over_hash_type,
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)]

pub mod agenda;
pub mod lane;

pub use agenda::{Agenda, EmptyAgenda};
pub use lane::{GasPool, Place, budget, place, pool, take_within};
