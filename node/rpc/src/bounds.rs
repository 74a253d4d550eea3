//! What one call may cost. Every limit that a method keeps is here, so that there is one list of them.
//!
//! Limits of connections, requests and batches are in [`crate::Limits`], limits of traces in
//! [`almanac_trace::Limits`].

const KIB: usize = 1 << 10;

/// Bytes of EIP-712 typed data.
pub const TYPED_DATA_BYTES_MAX: usize = 256 * KIB;
/// Struct types of typed data.
pub const TYPED_DATA_TYPES_MAX: usize = 64;
/// Fields of all struct types of typed data together.
pub const TYPED_DATA_FIELDS_MAX: usize = 512;
/// Bytes of the name of one type of typed data.
pub const TYPED_DATA_NAME_BYTES_MAX: usize = 256;
/// How deep the types of typed data hold each other; an array counts as much as a struct.
pub const TYPED_DATA_DEPTH_MAX: usize = 32;
/// Types of typed data when each field is written out with all that its type holds. Types that hold the next one
/// twice double this number each.
pub const TYPED_DATA_EXPANDED_MAX: u64 = 4_096;
/// Steps that hashing typed data may take: for each struct in the message, all bytes of the types, and each field
/// compared with each type.
pub const TYPED_DATA_STEPS_MAX: u64 = 32 << 20;
