#![doc = include_str!("../README.md")]

mod abi;
mod answer;
mod body;
mod front;
mod health;
mod keys;
pub mod limits;
mod messages;
mod outgoing;
mod records;
mod schedules;
mod server;
mod timeout;
mod tls;

pub use messages::almanac as proto;
pub use server::{GrpcConfig, GrpcError, GrpcServer};
pub use tls::{Tls, TlsError};
