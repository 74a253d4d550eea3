//! What a call does, in plain words.

use super::words::counted;
use crate::span::coins;
use alloy_dyn_abi::{DynSolType, DynSolValue};
use alloy_primitives::{Address, U256, hex, keccak256};
use almanac_primitives::Wei;

/// Methods that are told by name. Others are told by their bytes: a name that is only guessed would mislead.
const KNOWN: [&str; 8] = [
    "transfer(address,uint256)",
    "transferFrom(address,address,uint256)",
    "approve(address,uint256)",
    "mint(address,uint256)",
    "burn(uint256)",
    "deposit()",
    "withdraw(uint256)",
    "setApprovalForAll(address,bool)",
];

/// Data up to this length is shown whole; of longer data, its hash is.
const DATA_BYTES_SHOWN: usize = 256;

/// "pays 5 coins to 0x…", "calls 0x… with 5 coins: transfer(0x…, 5)".
pub(crate) fn call_words(to: Address, value: U256, data: &[u8]) -> String {
    if data.is_empty() {
        return format!("pays {} to {to}", coins(Wei(value)));
    }
    let what = known_call(data).unwrap_or_else(|| data_words(data));
    match value.is_zero() {
        true => format!("calls {to}: {what}"),
        false => format!("calls {to} with {}: {what}", coins(Wei(value))),
    }
}

/// The same of what creates a contract.
pub(crate) fn creation_words(value: U256, code: &[u8]) -> String {
    let with = if value.is_zero() { String::new() } else { format!(" with {}", coins(Wei(value))) };
    format!("creates a contract{with}: {} of code", counted(code.len() as u64, "byte"))
}

fn data_words(data: &[u8]) -> String {
    match data.len() {
        0..=DATA_BYTES_SHOWN => format!("data {}", hex::encode_prefixed(data)),
        count => {
            let begin = hex::encode_prefixed(&data[..DATA_BYTES_SHOWN]);
            format!("{} of data with the hash {}: {begin}…", counted(count as u64, "byte"), keccak256(data))
        }
    }
}

/// A call of a method that many contracts have: `transfer(0x…, 5)`.
fn known_call(data: &[u8]) -> Option<String> {
    let (selector, arguments) = data.split_first_chunk::<4>()?;
    let method = KNOWN.into_iter().find(|method| keccak256(method)[..4] == selector[..])?;
    let (name, list) = method.split_at(method.find('(')?);
    let types = DynSolType::parse(list).ok()?;
    let values = match (types.abi_decode_params(arguments).ok()?, arguments.len()) {
        (DynSolValue::Tuple(values), length) if values.len() * 32 == length => values,
        _ => return None,
    };
    let words: Option<Vec<String>> = values.iter().map(value_words).collect();
    Some(format!("{name}({})", words?.join(", ")))
}

/// The types of the known methods.
fn value_words(value: &DynSolValue) -> Option<String> {
    match value {
        DynSolValue::Address(address) => Some(address.to_string()),
        DynSolValue::Uint(number, _) => Some(number.to_string()),
        DynSolValue::Bool(is_set) => Some(is_set.to_string()),
        _ => None,
    }
}
