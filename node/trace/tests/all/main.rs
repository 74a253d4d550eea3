//! All integration tests of this crate as one program: linking many takes longer than running them.

mod random;
mod refusals;
mod states;
#[path = "../support/mod.rs"]
mod support;
mod trees;
