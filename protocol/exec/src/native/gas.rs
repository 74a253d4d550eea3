//! What a native transaction costs before its first call runs.

use crate::validate::{call_gas, creation_gas};
use alloy_primitives::{Bytes, U256};
use almanac_primitives::{
    NativeTransaction,
    native::Kind,
    params::{CALL_VALUE_GAS, KEY_LEAF_GAS, ORDERLESS_GAS, PARTY_GAS, SIGNATURE_GAS},
};
use revm::interpreter::InitialAndFloorGas;

/// Intrinsic and floor gas, without the records of keys, which only the state knows. What is more than Ethereum's is in
/// both: calldata that is dear enough must not pay for signatures.
pub(crate) fn intrinsic(native: &NativeTransaction) -> InitialAndFloorGas {
    let base = match native.only_call() {
        Some(call) if call.to.is_none() => creation_gas(&call.input),
        Some(call) => call_gas(&call.input),
        None => inputs(native.calls.iter().map(|call| &call.input)),
    };
    plus(base, extra(native))
}

/// Intrinsic and floor gas of a list of calls, each with its value and input: one base price, the price of every input,
/// and of every call after the first.
pub(crate) fn list<'c>(calls: impl Iterator<Item = (U256, &'c Bytes)> + Clone) -> InitialAndFloorGas {
    let further = further_calls(calls.clone().map(|(value, _)| value));
    plus(inputs(calls.map(|(_, input)| input)), further)
}

/// One base price, and the price of every input.
fn inputs<'c>(inputs: impl Iterator<Item = &'c Bytes>) -> InitialAndFloorGas {
    let empty = call_gas(&[]);
    let (mut initial, mut floor) = (empty.initial_total_gas(), empty.floor_gas());
    for input in inputs {
        let gas = call_gas(input);
        initial += gas.initial_total_gas() - empty.initial_total_gas();
        floor += gas.floor_gas() - empty.floor_gas();
    }
    InitialAndFloorGas::new(initial, floor)
}

fn extra(native: &NativeTransaction) -> u64 {
    // The base price has one signature in it.
    let signatures = (native.signatures.len() as u64).saturating_sub(1) * SIGNATURE_GAS;
    let payer =
        native.fee_payer.map_or(0, |_| PARTY_GAS + native.fee_payer_signatures.len() as u64 * SIGNATURE_GAS);
    let orderless = if native.kind == Kind::Orderless { ORDERLESS_GAS } else { 0 };
    signatures + payer + orderless + further_calls(native.calls.iter().map(|call| call.value))
}

fn further_calls(values: impl Iterator<Item = U256>) -> u64 {
    values.skip(1).map(|value| PARTY_GAS + if value.is_zero() { 0 } else { CALL_VALUE_GAS }).sum()
}

/// The gas of reading a key record and walking its tree, known from the record alone.
pub(crate) fn key_record(leaves: u8) -> u64 {
    PARTY_GAS + u64::from(leaves) * KEY_LEAF_GAS
}

/// Adds gas to both.
pub(crate) fn plus(gas: InitialAndFloorGas, extra: u64) -> InitialAndFloorGas {
    InitialAndFloorGas::new(gas.initial_total_gas() + extra, gas.floor_gas() + extra)
}
