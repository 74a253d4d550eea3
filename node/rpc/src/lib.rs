#![doc = include_str!("../README.md")]

pub mod error;
mod estimate;
pub mod eth;
pub mod priority;
pub mod server;
pub mod types;
pub mod view;

pub use server::{Limits, Server, ServerError};
