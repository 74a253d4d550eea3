#![doc = include_str!("../README.md")]
#![deny(
    clippy::float_arithmetic,
    clippy::iter_over_hash_type,
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)]

// For tests that are built both inside and outside the crate.
#[cfg(test)]
extern crate self as almanac_schedule;

pub mod agenda;
pub mod calendar;
pub mod capacity;
pub mod decide;
pub mod doors;
pub mod lane;
pub mod ledger;
pub mod life;
pub mod mark;
pub mod record;
pub mod standstill;
#[cfg(feature = "testing")]
pub mod testing;

pub use agenda::{Agenda, CalendarAgenda, is_held};
pub use calendar::Calendar;
pub use doors::{callback, cron, market, signed};
pub use lane::{Budget, GasPool, block_gas, budget, halved, looks_max, pool, runs_max};
pub use ledger::{Failure, Ledger};
pub use record::Record;
