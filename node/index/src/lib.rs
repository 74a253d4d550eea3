#![doc = include_str!("../README.md")]

pub mod history;
pub mod index;

pub use history::{HistoricalState, History};
pub use index::{Index, IndexError, IndexedBlock, Location, Parties};
