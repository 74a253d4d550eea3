//! All integration tests of this crate as one program: linking many takes longer than running them.

mod aip125_blocks;
mod aip125_door;
mod aip125_examples;
mod aip125_model;
mod arc21_blocks;
mod arc21_registry;
mod arc21_source;
mod attacks;
mod block;
mod developer;
mod differential;
mod events;
mod fetching;
mod flip330_blocks;
mod flip330_door;
mod flip330_examples;
mod flip330_model;
mod keys;
mod lanes;
mod leaks;
mod market_order;
mod market_proposals;
mod native_simulation;
mod orderless;
mod parameters;
mod precompiles;
mod random_blocks;
mod rules;
mod scheduler_model;
mod subscriptions;
#[path = "../support/mod.rs"]
mod support;
mod sweeps;
mod trace;
mod vectors;
mod views;
