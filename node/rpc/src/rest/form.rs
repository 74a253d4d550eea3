//! Forms that a value in a path, a query or a body may have: how it is checked, what it is in JSON-RPC, and how the
//! OpenAPI document describes it.

use super::problem::Problem;
use serde_json::{Value, json};

/// What a value looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Bytes in hexadecimal with `0x`, exactly so many.
    Hex(usize),
    /// Bytes in hexadecimal with `0x`, one at least.
    Bytes,
    /// A whole number in decimal.
    Number {
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
    },
    /// The id of a schedule.
    ScheduleId,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Some of these words, with commas between them.
    Choices(&'static [&'static str]),
    /// What a page before ended with.
    Cursor,
}

impl Form {
    /// The value in JSON-RPC. What only the method can judge is left to the method.
    pub(crate) fn read(self, name: &str, given: &str) -> Result<Value, Problem> {
        let malformed = || Problem::invalid(format!("{name} {given:?} is not {}", self.allowed()));
        match self {
            Self::Hex(_) | Self::Bytes => is_hex(given, self).then(|| json!(given)).ok_or_else(malformed),
            Self::Number { min, max } => {
                let is_plain = given.bytes().all(|byte| byte.is_ascii_digit());
                let number =
                    given.parse::<u64>().ok().filter(|number| is_plain && (min..=max).contains(number));
                number.map(Value::from).ok_or_else(malformed)
            }
            Self::Choice(words) => words.contains(&given).then(|| json!(given)).ok_or_else(malformed),
            Self::Choices(words) => {
                let chosen: Vec<&str> = given.split(',').collect();
                let is_new = |(n, word): (usize, &&str)| words.contains(word) && !chosen[..n].contains(word);
                chosen.iter().enumerate().all(is_new).then(|| json!(chosen)).ok_or_else(malformed)
            }
            Self::ScheduleId | Self::Cursor => Ok(json!(given)),
        }
    }

    /// What is allowed, in words.
    fn allowed(self) -> String {
        match self {
            Self::Hex(bytes) => format!("{bytes} bytes in hexadecimal with 0x"),
            Self::Bytes => "bytes in hexadecimal with 0x".to_owned(),
            Self::Number { min, max } => format!("a number in {min}..={max}"),
            Self::Choice(words) => format!("one of {}", words.join(", ")),
            Self::Choices(words) => format!("a list of {}, with commas, each at most once", words.join(", ")),
            Self::ScheduleId => "a schedule's id".to_owned(),
            Self::Cursor => "a cursor".to_owned(),
        }
    }

    /// Its JSON schema.
    pub(crate) fn schema(self) -> Value {
        let text = |pattern: String| json!({ "type": "string", "pattern": pattern });
        match self {
            Self::Hex(bytes) => text(format!("^0x[0-9a-fA-F]{{{}}}$", bytes * 2)),
            Self::Bytes => text("^0x([0-9a-fA-F]{2})+$".to_owned()),
            Self::Number { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
            // Block, receipt in it, and n-th schedule of that; each within what 64 bits hold together.
            Self::ScheduleId => {
                text("^([0-9]{1,8}-[0-9]{1,5}-[0-9]{1,3}|[0-9]{1,19}|0x[0-9a-fA-F]{1,16})$".to_owned())
            }
            Self::Choice(words) => json!({ "type": "string", "enum": words }),
            Self::Choices(words) => json!({
                "type": "array", "items": { "type": "string", "enum": words }, "minItems": 1, "uniqueItems": true
            }),
            Self::Cursor => json!({ "type": "string", "minLength": 1 }),
        }
    }
}

fn is_hex(given: &str, form: Form) -> bool {
    let Some(digits) = given.strip_prefix("0x") else { return false };
    let is_long_enough = match form {
        Form::Hex(bytes) => digits.len() == bytes * 2,
        _ => !digits.is_empty() && digits.len().is_multiple_of(2),
    };
    is_long_enough && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_of_every_form() {
        let words = &["a", "b"];
        let (number, hex) = (Form::Number { min: 1, max: 100 }, Form::Hex(2));
        let cases = [
            (number, "1", Some(json!(1))),
            (number, "100", Some(json!(100))),
            (number, "0", None),
            (number, "101", None),
            (number, "+1", None),
            (number, "", None),
            (number, "1.0", None),
            (Form::Number { min: 0, max: u64::MAX }, "18446744073709551615", Some(json!(u64::MAX))),
            (Form::Number { min: 0, max: u64::MAX }, "18446744073709551616", None),
            (hex, "0xABcd", Some(json!("0xABcd"))),
            (hex, "ABcd", None),
            (hex, "0xabc", None),
            (hex, "0xabcg", None),
            (hex, "0xabcdef", None),
            (Form::Bytes, "0x00", Some(json!("0x00"))),
            (Form::Bytes, "0x", None),
            (Form::Bytes, "0x0", None),
            (Form::Choice(words), "a", Some(json!("a"))),
            (Form::Choice(words), "c", None),
            (Form::Choices(words), "b,a", Some(json!(["b", "a"]))),
            (Form::Choices(words), "a,", None),
            (Form::Choices(words), "a,a", None),
            (Form::Choices(words), "", None),
        ];
        for (form, given, expected) in cases {
            assert_eq!(form.read("x", given).ok(), expected, "{form:?} {given:?}");
        }
    }
}
