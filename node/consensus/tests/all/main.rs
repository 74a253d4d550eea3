//! All integration tests of this crate as one program: linking many takes longer than running them.

mod admission;
mod application;
mod clock;
mod controls;
mod crash;
mod deadline;
mod deterministic;
mod faults;
mod flood;
mod forks;
mod orderless;
mod solo;
#[path = "../support/mod.rs"]
mod support;
