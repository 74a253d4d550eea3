#![doc = include_str!("../README.md")]
#![deny(
    clippy::float_arithmetic,
    clippy::iter_over_hash_type,
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)]

// For tests that are built both inside of the crate and outside.
#[cfg(test)]
extern crate self as almanac_schedule;

pub mod agenda;
pub mod calendar;
pub mod lane;

pub use agenda::{Agenda, EmptyAgenda};
pub use calendar::Calendar;
pub use lane::{GasPool, Place, budget, place, pool, take_within};
