//! What `build.rs` made of the proto files.
#![allow(missing_docs, unreachable_pub, clippy::all, reason = "generated")]

/// `almanac.proto`.
pub mod almanac {
    include!(concat!(env!("OUT_DIR"), "/almanac.rs"));
}

/// `health.proto`.
pub mod health {
    include!(concat!(env!("OUT_DIR"), "/grpc.health.v1.rs"));
}

/// Both, as reflection tells of them.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
