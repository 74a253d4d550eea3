//! Why a call failed, in words.

use crate::own_errors::{OwnError, own_contract, own_error, taken_for_ec_add};
use alloy_primitives::{Address, Bytes, U256, hex};
use almanac_primitives::Halt;

/// A call's target and input, which name the contract that did not understand it.
#[derive(Clone, Debug, Default)]
pub struct Called {
    /// The target; `None` for a creation.
    pub to: Option<Address>,
    /// The input.
    pub input: Bytes,
}

/// The selector of Solidity's `Error(string)`.
const ERROR_STRING: [u8; 4] = [0x08, 0xc3, 0x79, 0xa0];
/// The selector of Solidity's `Panic(uint256)`.
const PANIC: [u8; 4] = [0x4e, 0x48, 0x7b, 0x71];

/// The reason that is in revert data, if it is one that Solidity itself or the chain's own contracts make.
pub fn reason(output: &[u8]) -> Option<String> {
    let own = || own_error(output).map(|OwnError { name, words }| format!("{name}: {words}"));
    text(output).or_else(|| panic(output)).or_else(own)
}

/// The reason in the revert data of a call. It names the system contract that has no such method.
pub fn reason_of(called: &Called, output: &[u8]) -> Option<String> {
    let unknown = own_error(output).filter(|error| error.name == "UnknownMethod");
    let named = called.to.and_then(own_contract).filter(|_| unknown.is_some());
    match (named, called.input.first_chunk::<4>()) {
        (Some(contract), Some(selector)) => {
            Some(format!("UnknownMethod: {contract} has no method {}", hex::encode_prefixed(selector)))
        }
        _ => reason(output),
    }
}

/// Why a call was stopped.
pub fn halted(called: &Called, halt: Halt) -> String {
    let taken = taken_for_ec_add(called.to, &called.input).filter(|_| halt == Halt::Precompile);
    match taken {
        Some(taken) => format!("{halt:?}: {taken}"),
        None => format!("{halt:?}"),
    }
}

/// The reason in words, or the first bytes of what there is.
pub fn explain(output: &[u8]) -> String {
    match (reason(output), output) {
        (Some(reason), _) => reason,
        (None, []) => "no reason given".to_owned(),
        (None, [a, b, c, d, ..]) => {
            format!("custom error {}", hex::encode_prefixed([a, b, c, d].map(|byte| *byte)))
        }
        (None, short) => hex::encode_prefixed(short),
    }
}

/// The text of `Error(string)`: selector, offset, length, bytes.
fn text(output: &[u8]) -> Option<String> {
    let arguments = output.strip_prefix(&ERROR_STRING)?;
    let length = usize::try_from(U256::from_be_slice(arguments.get(32..64)?)).ok()?;
    let text = arguments.get(64..64usize.checked_add(length)?)?;
    Some(String::from_utf8_lossy(text).into_owned())
}

fn panic(output: &[u8]) -> Option<String> {
    let code = U256::from_be_slice(output.strip_prefix(&PANIC)?.get(..32)?);
    let meaning = match u64::try_from(code).unwrap_or(u64::MAX) {
        0x01 => "an assertion failed",
        0x11 => "arithmetic over- or underflow",
        0x12 => "division or modulo by zero",
        0x21 => "invalid enum value",
        0x22 => "a storage byte array is malformed",
        0x31 => "pop of an empty array",
        0x32 => "an index is out of bounds",
        0x41 => "too much memory or too large an array",
        0x51 => "a call of an unset function pointer",
        _ => "unknown",
    };
    Some(format!("panic {code:#04x}: {meaning}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_solidity_reasons_and_survives_nonsense() {
        let encoded = hex!(
            "08c379a0"
            "0000000000000000000000000000000000000000000000000000000000000020"
            "0000000000000000000000000000000000000000000000000000000000000004"
            "6e6f706500000000000000000000000000000000000000000000000000000000"
        );
        assert_eq!(reason(&encoded), Some("nope".to_owned()));
        for length in 0..encoded.len() - 28 {
            assert_eq!(reason(&encoded[..length]), None, "{length}");
        }
        let mut huge = encoded;
        huge[36..68].fill(0xff);
        assert_eq!(reason(&huge), None);
    }

    #[test]
    fn panics_are_named() {
        let mut encoded = [&PANIC[..], &[0; 31], &[0x11]].concat();
        assert_eq!(reason(&encoded).unwrap(), "panic 0x11: arithmetic over- or underflow");
        encoded[4..].fill(0xff);
        assert!(reason(&encoded).unwrap().ends_with("unknown"));
        assert_eq!(reason(&encoded[..35]), None);
    }

    #[test]
    fn what_is_no_reason_is_shown_as_it_is() {
        assert_eq!(explain(&[]), "no reason given");
        assert_eq!(explain(&[1, 2]), "0x0102");
        assert_eq!(explain(&[1, 2, 3, 4, 5]), "custom error 0x01020304");
    }
}
