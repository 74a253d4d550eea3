#![doc = include_str!("../README.md")]

pub mod error;
mod estimate;
pub mod eth;
pub mod server;
pub mod types;

pub use server::{Limits, Server, ServerError};
