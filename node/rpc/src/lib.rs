#![doc = include_str!("../README.md")]

pub mod error;
pub mod eth;
mod filters;
pub mod heads;
pub mod priority;
pub mod server;
pub mod types;
pub mod view;
pub mod wallet;

pub use server::{Limits, Server, ServerError};
