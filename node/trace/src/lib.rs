#![doc = include_str!("../README.md")]

pub mod balances;
mod before;
pub mod call;
pub mod console;
pub mod error;
pub mod geth;
pub mod limits;
pub mod otterscan;
pub mod parity;
pub mod printable;
pub mod replay;
pub mod timer;
pub mod tracer;

pub use balances::{BalanceChange, BalanceChanges};
pub use call::trace_call;
pub use console::{Console, ConsoleInspector};
pub use error::TraceError;
pub use geth::GethTracer;
pub use limits::Limits;
pub use otterscan::{Creations, InternalOperations, OtterscanEntries, OtterscanEntry, RevertData};
pub use parity::{CallTraces, Replays};
pub use printable::printable;
pub use replay::Replay;
pub use timer::Timer;
pub use tracer::{Seen, Tracer};
