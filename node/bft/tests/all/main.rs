//! All integration tests of this crate as one program: linking many takes longer than running them.

mod attempts;
mod fault;
mod sim;
mod sync;
