//! The type of a transaction as clients see it (decision 0036).
//!
//! Strictly typed clients refuse a whole block for one type that they do not know. So the chain's own types are shown
//! as the one of Ethereum's that has the same fields, and the true type has a field of its own.

use alloy_primitives::U64;
use almanac_primitives::{
    native::NATIVE_TYPE,
    run::{PROLOGUE_TYPE, RUN_TYPE},
};
use serde::Serialize;

/// Ethereum's type with one gas price.
const LEGACY: u8 = 0;
/// Ethereum's type with a fee cap and a tip (EIP-1559).
const DYNAMIC_FEE: u8 = 2;

/// The type of a transaction or of its receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ShownType {
    #[serde(rename = "type")]
    shown: U64,
    /// The true type, where it is not one of Ethereum's.
    #[serde(skip_serializing_if = "Option::is_none")]
    almanac_type: Option<U64>,
}

impl ShownType {
    pub(super) fn new(true_type: u8) -> Self {
        let shown = match true_type {
            PROLOGUE_TYPE | RUN_TYPE => LEGACY,
            NATIVE_TYPE => DYNAMIC_FEE,
            _ => true_type,
        };
        let almanac_type = (shown != true_type).then(|| U64::from(true_type));
        Self { shown: U64::from(shown), almanac_type }
    }
}
