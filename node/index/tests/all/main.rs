//! All integration tests of this crate as one program: linking many takes longer than running them.

mod concurrent;
mod copied;
mod crash;
mod damage;
mod fork;
mod model;
mod nonces;
mod rules;
#[path = "../support/mod.rs"]
mod support;
