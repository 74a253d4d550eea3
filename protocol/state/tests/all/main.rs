//! All integration tests of this crate as one program: linking many takes longer than running them.

mod agree;
mod archive;
mod bridge;
mod corruption;
mod memory;
mod proof;
mod qmdb;
mod slow;
#[path = "../support/mod.rs"]
mod support;
mod sync;
