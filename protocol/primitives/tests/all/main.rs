//! All integration tests of this crate as one program: linking many takes longer than running them.

mod allocation;
mod decoders;
mod genesis;
mod golden;
mod impersonation;
mod keys;
mod native;
#[path = "../samples/mod.rs"]
mod samples;
mod transactions;
mod trie;
