//! ARC-21: which orders become jobs, what becomes of a job whose time has come, and who gets its money.
//!
//! Pure rules: nothing here reads a state, moves money or knows an ABI. `life` carries out what they say.

mod admit;
mod rules;
mod terms;

pub use admit::{Admitted, Order, OrderError, SELECTOR_BYTES, admit};
pub use terms::{CatchUp, Charge, CronTerms};

pub(crate) use rules::{CALLS, decide, full_head, is_passed_over, settle_end, settle_run};
