#![doc = include_str!("../README.md")]

pub mod block;
mod cache;
pub mod config;
mod copied;
mod digest;
pub mod error;
#[cfg(test)]
mod growth;
pub mod history;
pub mod index;
pub mod logs;
mod open;
pub mod participants;
mod read;
mod rows;
pub mod schedules;
mod store;
mod tree;
mod write;

pub use block::{IndexedBlock, Location, Parties, Place};
pub use config::IndexConfig;
pub use copied::CopiedIndex;
pub use error::{ApplyError, LogsError, OpenError, RevertError, StoreError};
pub use history::HistoricalState;
pub use index::Index;
pub use logs::{LogEntry, LogFilter};
pub use participants::{Direction, Sent};
pub use schedules::{
    EndReason, Ending, KnownSchedule, PastRun, Schedule, ScheduleFilter, SchedulePage, ScheduleStatus,
};
