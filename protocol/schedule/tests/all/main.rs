//! All integration tests of this crate as one program: linking many takes longer than running them.

mod calendar;
mod capacity;
mod golden;
mod life;
mod money;
#[path = "../support/mod.rs"]
mod support;
