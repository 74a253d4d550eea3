//! Calls as flags and files have them.

use crate::client::{address::parse_address, amount::parse_amount};
use alloy_primitives::{Address, Bytes, U256};
use almanac_primitives::NativeCall;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

/// A call in a file. Amounts are text, as in flags: JSON's numbers would lose digits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CallJson {
    /// Nothing creates a contract.
    #[serde(default, deserialize_with = "read_address")]
    to: Option<Address>,
    #[serde(default = "zero")]
    value: String,
    #[serde(default)]
    data: Bytes,
}

/// People write these files too.
fn read_address<'d, D: Deserializer<'d>>(deserializer: D) -> Result<Option<Address>, D::Error> {
    let text: Option<String> = Deserialize::deserialize(deserializer)?;
    text.map(|text| parse_address(&text).map_err(D::Error::custom)).transpose()
}

fn zero() -> String {
    "0".to_owned()
}

impl CallJson {
    pub(super) fn new(call: &NativeCall) -> Self {
        Self { to: call.to, value: call.value.to_string(), data: call.input.clone() }
    }

    pub(super) fn read(self) -> Result<NativeCall, String> {
        Ok(NativeCall { to: self.to, value: parse_amount(&self.value)?, input: self.data })
    }
}

/// Reads a file of calls.
pub(super) fn read_calls(text: &str) -> anyhow::Result<Vec<NativeCall>> {
    let calls: Vec<CallJson> = serde_json::from_str(text)?;
    calls.into_iter().map(|call| call.read().map_err(anyhow::Error::msg)).collect()
}

/// Reads `TO:VALUE:DATA`. Value and data may be left out; an empty TO creates a contract.
pub(super) fn parse_call(text: &str) -> Result<NativeCall, String> {
    let mut parts = text.split(':');
    let (to, value, data) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
    if parts.next().is_some() {
        return Err(format!("{text:?} has more than three parts: write TO:VALUE:DATA"));
    }
    let to = match to {
        "" => None,
        to => Some(parse_address(to)?),
    };
    let value = value.filter(|value| !value.is_empty()).map_or(Ok(U256::ZERO), parse_amount)?;
    let input: Bytes = match data {
        None | Some("") => Bytes::new(),
        Some(data) => data.parse().map_err(|_| format!("{data:?} is not hexadecimal"))?,
    };
    if to.is_none() && input.is_empty() {
        return Err(format!("{text:?} neither names an account nor has code to create one"));
    }
    Ok(NativeCall { to, value, input })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_as_people_write_them() {
        let to = Address::repeat_byte(7);
        let call = |to, value: u64, input: &[u8]| NativeCall {
            to,
            value: U256::from(value),
            input: Bytes::copy_from_slice(input),
        };
        for (text, expected) in [
            (format!("{to}"), call(Some(to), 0, &[])),
            (format!("{to}:5"), call(Some(to), 5, &[])),
            (format!("{to}:2gwei"), call(Some(to), 2_000_000_000, &[])),
            (format!("{to}:0x10:0x0102"), call(Some(to), 16, &[1, 2])),
            (format!("{to}::0x01"), call(Some(to), 0, &[1])),
            (":0:0x6000".to_owned(), call(None, 0, &[0x60, 0])),
        ] {
            assert_eq!(parse_call(&text), Ok(expected), "{text}");
        }
        let wrong = "0x70997970C51812dc3A010C7d01b50e0d17dc79C7";
        assert!(parse_call(wrong).unwrap_err().starts_with("WrongChecksum"));
        assert!(
            read_calls(&format!(r#"[{{"to":"{wrong}"}}]"#))
                .unwrap_err()
                .to_string()
                .contains("WrongChecksum")
        );
        for bad in ["", ":5", "0x12:1", &format!("{to}:x"), &format!("{to}:1:0x0"), &format!("{to}:1:0x00:1")]
        {
            assert!(parse_call(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn calls_in_files() {
        let read = read_calls(
            r#"[{"to":"0x0707070707070707070707070707070707070707","value":"0x10"},{"to":null,"data":"0x60"}]"#,
        );
        let read = read.unwrap();
        assert_eq!((read[0].value, read[1].to, read[1].input.len()), (U256::from(16), None, 1));
        for bad in
            ["", "{}", r#"[{"to":"0x07"}]"#, r#"[{"to":null,"value":5}]"#, r#"[{"to":null,"gas":"5"}]"#]
        {
            assert!(read_calls(bad).is_err(), "{bad}");
        }
    }
}
