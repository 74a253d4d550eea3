//! The life of a schedule: created, topped up, run, settled, ended; or quarantined by a fault.
//!
//! ```text
//!   create ──→ Pending ──→ begin ──→ (call) ──→ settle ──→ Pending, or ended after the last run
//!                 │                 ↑
//!                 ├── process ──→ Processed            where a door marks runs before they begin
//!                 ├── skip ────→ Pending at a later time   missed times, by the schedule's own policy
//!                 ├── wait ────→ Waiting ──→ begin         for a better price
//!                 ├── cancel, end_without_run ─→ ended     what is left is divided by the door's rules
//!                 └── quarantine → Quarantined             a fault of our own; cancel still refunds
//!
//!   (call) ──→ finish ──→ ended, and settle_finished at the end of the block where only that knows the price
//!
//!   ended ──→ gone at once, or readable until `sweep`
//! ```
//!
//! This is the only place that carries out what the doors' rules decide (`decide`), for all doors. Nothing here
//! makes a call, reads a clock or knows an ABI. Doors translate the [`Event`]s into their own logs.

mod begin;
mod change;
mod due;
mod end;
mod epoch;
mod event;
mod finish;
mod process;
mod settle;

pub use begin::{Begun, begin};
pub use change::{
    CancelError, NewSchedule, TopUpError, cancel, create, create_booked, find, find_name, look_up,
    quarantine, top_up,
};
pub use due::{end_without_run, skip, wait};
pub use end::sweep;
pub use epoch::{epoch, is_stale, raise_epoch, read_is_stale};
pub use event::{Event, LifeEvent, What};
pub use finish::{finish, settle_finished, unspent};
pub use process::process;
pub use settle::settle;
