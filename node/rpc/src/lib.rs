#![doc = include_str!("../README.md")]

pub mod error;
pub mod eth;
mod filters;
mod gate;
pub mod heads;
mod meter;
pub mod priority;
mod rate;
pub mod revert;
pub mod server;
pub mod types;
pub mod view;
pub mod wallet;

pub use server::{Limits, Server, ServerError};
