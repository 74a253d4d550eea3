#![doc = include_str!("../README.md")]

pub mod almanac;
pub mod answer;
pub mod bounds;
mod creator;
pub mod debug;
pub mod dev;
pub mod error;
pub mod eth;
pub mod feed;
mod filters;
pub mod finality;
mod gate;
pub mod heads;
pub mod heavy;
mod idle;
pub mod impersonation;
pub mod lines;
mod meter;
mod notifications;
pub mod otterscan;
mod pages;
pub mod parity;
pub mod priority;
mod rate;
mod reading;
pub mod retrace;
pub mod revert;
pub mod server;
mod trace_filter;
mod typed_data;
pub mod types;
pub mod view;
pub mod wallet;

pub use server::{Limits, Server, ServerError};
