//! Tests with networks of real processes, in a program of their own: they need the machine for themselves.

mod backup;
mod booked_second;
mod cost;
mod flaky_disk;
mod follower;
mod hostile;
mod lost_votes;
mod methods;
mod network;
mod network_faults;
mod operators;
mod overload;
mod pool;
mod proofs;
mod signed;
mod soak;
#[path = "../support/mod.rs"]
mod support;
mod transport;
mod up;
mod views;
