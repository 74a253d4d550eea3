//! gRPC over real sockets, with a client that reads, one that does not, and some that send nonsense.

mod limits;
mod records;
mod schedules;
mod services;
mod support;
mod tls;
