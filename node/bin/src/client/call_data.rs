//! Calldata from a method and its arguments, as people write them.

use super::address::check_addresses;
use alloy_dyn_abi::{DynSolType, DynSolValue};
use alloy_primitives::{Bytes, keccak256};

/// Why a call cannot be encoded.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum CallDataError {
    #[error("MethodUnclear: {0:?} is no method: write its name and types, such as \"increase(uint256)\"")]
    MethodUnclear(String),
    #[error(
        "ArgumentCount: {method} takes {expected} arguments, and {given} were given: pass each with --arg"
    )]
    ArgumentCount { method: String, expected: usize, given: usize },
    #[error("ArgumentUnclear: {given:?} is no {expected}, which argument {number} of {method} is")]
    ArgumentUnclear { method: String, number: usize, given: String, expected: String },
    #[error("{0} (argument {1} of {2})")]
    WrongAddress(String, usize, String),
}

/// Encodes a call of `method`, a signature, with its arguments.
pub(crate) fn call_data(method: &str, arguments: &[String]) -> Result<Bytes, CallDataError> {
    let unclear = || CallDataError::MethodUnclear(method.to_owned());
    let compact: String = method.chars().filter(|c| !c.is_whitespace()).collect();
    let open = compact.find('(').filter(|open| *open > 0).ok_or_else(unclear)?;
    let (name, list) = compact.split_at(open);
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$');
    let types = match DynSolType::parse(list) {
        Ok(DynSolType::Tuple(types)) if is_name => types,
        _ => return Err(unclear()),
    };
    if types.len() != arguments.len() {
        let (expected, given) = (types.len(), arguments.len());
        return Err(CallDataError::ArgumentCount { method: compact, expected, given });
    }
    let mut values = Vec::with_capacity(types.len());
    for (index, (kind, text)) in types.iter().zip(arguments).enumerate() {
        if kind.sol_type_name().contains("address") {
            check_addresses(text)
                .map_err(|error| CallDataError::WrongAddress(error, index + 1, compact.clone()))?;
        }
        values.push(kind.coerce_str(text).map_err(|_| CallDataError::ArgumentUnclear {
            method: compact.clone(),
            number: index + 1,
            given: text.clone(),
            expected: kind.sol_type_name().into_owned(),
        })?);
    }
    // Types have short names, such as uint; selectors are made of the long ones.
    let canonical = format!("{name}{}", DynSolType::Tuple(types).sol_type_name());
    let selector = keccak256(canonical);
    Ok([&selector[..4], &DynSolValue::Tuple(values).abi_encode_params()].concat().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::hex;

    #[test]
    fn calls_as_solidity_encodes_them() {
        let encoded = |method: &str, arguments: &[&str]| {
            let arguments: Vec<String> = arguments.iter().map(|text| (*text).to_owned()).collect();
            call_data(method, &arguments).map(hex::encode)
        };
        assert_eq!(encoded("increment()", &[]).unwrap(), "d09de08a");
        let transfer = format!("a9059cbb{:0>64}{:064x}", "07".repeat(20), 5);
        let to = format!("0x{}", "07".repeat(20));
        assert_eq!(encoded("transfer(address,uint256)", &[&to, "5"]).unwrap(), transfer);
        assert_eq!(encoded("transfer(address, uint)", &[&to, "5"]).unwrap(), transfer);
        for (method, arguments, name) in [
            ("increment", &[][..], "MethodUnclear"),
            ("(uint256)", &["5"], "MethodUnclear"),
            ("a(uint257)", &["5"], "MethodUnclear"),
            ("a b!(uint256)", &["5"], "MethodUnclear"),
            ("a(uint256)", &[], "ArgumentCount: a(uint256) takes 1 arguments, and 0"),
            ("a(address)", &["0x70997970C51812dc3A010C7d01b50e0d17dc79C7"], "WrongChecksum: 0x7099"),
            ("a(address[])", &["[0x70997970C51812dc3A010C7d01b50e0d17dc79C7]"], "WrongChecksum: 0x7099"),
            ("a(uint256)", &["five"], "ArgumentUnclear: \"five\" is no uint256, which argument 1"),
        ] {
            let error = encoded(method, arguments).unwrap_err().to_string();
            assert!(error.starts_with(name), "{method}: {error}");
        }
    }
}
