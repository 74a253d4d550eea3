//! Parses untrusted EIP-712 typed data.
//!
//! The library that hashes it walks types and data recursively, expands every type with all that it contains, and
//! encodes the types again for each struct in the data. So all of that is measured first, without recursion that the
//! sender controls: a chain of types is followed no deeper than the limit on types.

use crate::bounds::{
    TYPED_DATA_BYTES_MAX, TYPED_DATA_DEPTH_MAX, TYPED_DATA_EXPANDED_MAX, TYPED_DATA_FIELDS_MAX,
    TYPED_DATA_NAME_BYTES_MAX, TYPED_DATA_STEPS_MAX, TYPED_DATA_TYPES_MAX,
};
use alloy_dyn_abi::TypedData;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Why typed data is not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TypedDataError {
    #[error("invalid EIP-712 typed data: {reason}")]
    Malformed { reason: String },
    #[error("typed data of {given} bytes is above the limit of {TYPED_DATA_BYTES_MAX}")]
    TooLong { given: usize },
    #[error("typed data with {given} types is above the limit of {TYPED_DATA_TYPES_MAX}")]
    TooManyTypes { given: usize },
    #[error("typed data with {given} fields in its types is above the limit of {TYPED_DATA_FIELDS_MAX}")]
    TooManyFields { given: usize },
    #[error("typed data names a type with {given} bytes, above the limit of {TYPED_DATA_NAME_BYTES_MAX}")]
    NameTooLong { given: usize },
    #[error(
        "typed data whose types hold each other {given} deep is above the limit of {TYPED_DATA_DEPTH_MAX}"
    )]
    TooDeep { given: usize },
    #[error("the type {name} of the typed data contains itself")]
    Circular { name: String },
    #[error(
        "typed data of {given} types, each written out with all that it holds, is above the limit of \
         {TYPED_DATA_EXPANDED_MAX}"
    )]
    TooWide { given: u64 },
    #[error("typed data that takes {given} steps to hash is above the limit of {TYPED_DATA_STEPS_MAX}")]
    TooMuchWork { given: u64 },
}

impl TypedDataError {
    /// Whether it is too much, rather than wrong.
    pub(crate) fn is_limit(&self) -> bool {
        !matches!(self, Self::Malformed { .. } | Self::Circular { .. })
    }
}

/// Typed data that can be hashed in bounded time and memory. `json` is an object, or, as older clients send it, a
/// string that holds one.
pub(crate) fn read(json: &str) -> Result<TypedData, TypedDataError> {
    check_length(json.len())?;
    let mut value: Value = serde_json::from_str(json).map_err(malformed)?;
    if let Value::String(text) = &value {
        value = serde_json::from_str(text).map_err(malformed)?;
    }
    check(&value)?;
    serde_json::from_value(value).map_err(malformed)
}

fn check_length(given: usize) -> Result<(), TypedDataError> {
    if given > TYPED_DATA_BYTES_MAX { Err(TypedDataError::TooLong { given }) } else { Ok(()) }
}

fn malformed(reason: impl std::fmt::Display) -> TypedDataError {
    TypedDataError::Malformed { reason: reason.to_string() }
}

fn check(value: &Value) -> Result<(), TypedDataError> {
    // The library also takes lists for objects; nobody sends them.
    let data = value.as_object().ok_or_else(|| malformed("it is not an object"))?;
    let types = Types::read(data)?;
    let primary = data.get("primaryType").and_then(Value::as_str);
    let primary = primary.ok_or_else(|| malformed("primaryType is not a string"))?;
    check_name(primary)?;
    let extent = types.extent(primary)?;
    if extent.depth > TYPED_DATA_DEPTH_MAX {
        return Err(TypedDataError::TooDeep { given: extent.depth });
    }
    if extent.expanded > TYPED_DATA_EXPANDED_MAX {
        return Err(TypedDataError::TooWide { given: extent.expanded });
    }
    let structs = data.get("message").map_or(0, count_objects);
    let given = types.steps_per_struct().saturating_mul(structs);
    if given > TYPED_DATA_STEPS_MAX {
        return Err(TypedDataError::TooMuchWork { given });
    }
    Ok(())
}

fn check_name(name: &str) -> Result<(), TypedDataError> {
    if name.len() > TYPED_DATA_NAME_BYTES_MAX {
        return Err(TypedDataError::NameTooLong { given: name.len() });
    }
    // The parser knows nested tuples, which EIP-712 does not have.
    if name.contains('(') { Err(malformed(format!("{name} is not the name of a type"))) } else { Ok(()) }
}

/// How many objects there are in a value. As deep as the parser lets it be, which is 128.
fn count_objects(value: &Value) -> u64 {
    match value {
        Value::Object(fields) => 1 + fields.values().map(count_objects).sum::<u64>(),
        Value::Array(values) => values.iter().map(count_objects).sum(),
        _ => 0,
    }
}

/// The struct types, each with the types of its fields.
struct Types<'a> {
    fields: BTreeMap<&'a str, Vec<&'a str>>,
    bytes: usize,
    count: usize,
}

/// What a type amounts to.
#[derive(Clone, Copy)]
struct Extent {
    depth: usize,
    expanded: u64,
}

impl<'a> Types<'a> {
    fn read(data: &'a Map<String, Value>) -> Result<Self, TypedDataError> {
        let types = data.get("types").and_then(Value::as_object);
        let types = types.ok_or_else(|| malformed("types is not an object"))?;
        if types.len() > TYPED_DATA_TYPES_MAX {
            return Err(TypedDataError::TooManyTypes { given: types.len() });
        }
        let mut read = Self { fields: BTreeMap::new(), bytes: 0, count: 0 };
        for (name, fields) in types {
            check_name(name)?;
            let fields = fields.as_array().ok_or_else(|| malformed(format!("type {name} is not a list")))?;
            read.count = read.count.saturating_add(fields.len());
            if read.count > TYPED_DATA_FIELDS_MAX {
                return Err(TypedDataError::TooManyFields { given: read.count });
            }
            let fields = fields.iter().map(|field| read.field(field)).collect::<Result<_, _>>()?;
            read.bytes = read.bytes.saturating_add(name.len());
            read.fields.insert(name, fields);
        }
        Ok(read)
    }

    fn field(&mut self, field: &'a Value) -> Result<&'a str, TypedDataError> {
        let text = |name| field.get(name).and_then(Value::as_str);
        let (Some(kind), Some(name)) = (text("type"), text("name")) else {
            return Err(malformed("a field has no type and name"));
        };
        check_name(kind)?;
        self.bytes = self.bytes.saturating_add(kind.len()).saturating_add(name.len());
        Ok(kind)
    }

    /// What encoding the types once costs: each is written, and each field is compared with each type.
    fn steps_per_struct(&self) -> u64 {
        let compared = self.count.saturating_mul(self.fields.len());
        u64::try_from(self.bytes.saturating_add(compared)).unwrap_or(u64::MAX)
    }

    fn extent(&self, name: &'a str) -> Result<Extent, TypedDataError> {
        self.measure(name, &mut BTreeMap::new())
    }

    /// Recursive, but into each struct type once: `known` has `None` for one that is being measured.
    fn measure(
        &self,
        name: &'a str,
        known: &mut BTreeMap<&'a str, Option<Extent>>,
    ) -> Result<Extent, TypedDataError> {
        let (root, suffixes) =
            name.split_once('[').map_or((name, ""), |(root, _)| (root, &name[root.len()..]));
        let arrays = suffixes.matches('[').count();
        let inner = match known.get(root) {
            Some(Some(extent)) => *extent,
            Some(None) => return Err(TypedDataError::Circular { name: root.to_owned() }),
            None => {
                known.insert(root, None);
                let mut extent = Extent { depth: 1, expanded: 1 };
                for field in self.fields.get(root).into_iter().flatten() {
                    let held = self.measure(field, known)?;
                    extent.depth = extent.depth.max(held.depth.saturating_add(1));
                    extent.expanded = extent.expanded.saturating_add(held.expanded);
                }
                known.insert(root, Some(extent));
                extent
            }
        };
        let wrapped = u64::try_from(arrays).unwrap_or(u64::MAX);
        Ok(Extent {
            depth: inner.depth.saturating_add(arrays),
            expanded: inner.expanded.saturating_add(wrapped),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn field(kind: &str) -> Value {
        json!({ "type": kind, "name": "x" })
    }

    #[expect(clippy::needless_pass_by_value, reason = "it is written in place")]
    fn data(types: Value, message: Value) -> Value {
        json!({ "types": types, "primaryType": "A0", "domain": {}, "message": message })
    }

    fn checked(data: &Value) -> Result<(), TypedDataError> {
        read(&data.to_string()).map(|data| drop(data.eip712_signing_hash()))
    }

    /// `A0` holds `A1`, and so on; the last holds a number. Each field is there so often.
    fn chain(length: usize, times: usize) -> Value {
        let types: Map<String, Value> = (0..length)
            .map(|nth| {
                let held = if nth + 1 == length { "uint256".to_owned() } else { format!("A{}", nth + 1) };
                (format!("A{nth}"), json!(vec![field(&held); times]))
            })
            .collect();
        data(Value::Object(types), json!({}))
    }

    #[test]
    fn arrays_have_a_depth() {
        let nested = |count: usize| {
            let kind = "uint8".to_owned() + &"[]".repeat(count);
            data(json!({ "A0": [field(&kind)] }), json!({}))
        };
        assert_eq!(checked(&nested(TYPED_DATA_DEPTH_MAX - 2)), Ok(()));
        let too_deep = |given| Err(TypedDataError::TooDeep { given });
        assert_eq!(checked(&nested(TYPED_DATA_DEPTH_MAX - 1)), too_deep(TYPED_DATA_DEPTH_MAX + 1));
        let given = 5 + 2 * 20_000;
        assert_eq!(checked(&nested(20_000)), Err(TypedDataError::NameTooLong { given }));
        // The type of the whole message is a type like any other.
        let mut whole = nested(1);
        whole["primaryType"] = json!("A0".to_owned() + &"[]".repeat(127));
        assert_eq!(checked(&whole), too_deep(127 + 3));
    }

    #[test]
    fn chains_of_structs_have_a_depth_and_a_number() {
        assert_eq!(checked(&chain(TYPED_DATA_DEPTH_MAX - 1, 1)), Ok(()));
        let given = TYPED_DATA_DEPTH_MAX + 1;
        assert_eq!(checked(&chain(TYPED_DATA_DEPTH_MAX, 1)), Err(TypedDataError::TooDeep { given }));
        assert_eq!(checked(&chain(TYPED_DATA_TYPES_MAX, 1)), Err(TypedDataError::TooDeep { given: 65 }));
        let given = TYPED_DATA_TYPES_MAX + 1;
        assert_eq!(checked(&chain(given, 1)), Err(TypedDataError::TooManyTypes { given }));
        assert_eq!(checked(&chain(2_000, 1)), Err(TypedDataError::TooManyTypes { given: 2_000 }));
    }

    #[test]
    fn types_that_hold_the_next_twice_are_counted_written_out() {
        // 2^n - 1 structs and 2^n numbers.
        assert_eq!(checked(&chain(11, 2)), Ok(()));
        assert_eq!(checked(&chain(12, 2)), Err(TypedDataError::TooWide { given: 8_191 }));
        assert_eq!(checked(&chain(22, 2)), Err(TypedDataError::TooWide { given: (1 << 23) - 1 }));
    }

    #[test]
    fn fields_have_a_number() {
        let fields = |count: usize| data(json!({ "A0": vec![field("bool"); count] }), json!({}));
        assert_eq!(checked(&fields(TYPED_DATA_FIELDS_MAX)), Ok(()));
        let given = TYPED_DATA_FIELDS_MAX + 1;
        assert_eq!(checked(&fields(given)), Err(TypedDataError::TooManyFields { given }));
    }

    /// The types are encoded for each struct in the message.
    #[test]
    fn many_structs_of_long_types_are_too_much_work() {
        let with = |structs: usize| {
            let mut fields = vec![json!({ "type": "bool", "name": "n".repeat(300) }); 300];
            fields.push(json!({ "type": "B[]", "name": "x" }));
            data(json!({ "A0": fields, "B": [field("bool")] }), json!({ "x": vec![json!({}); structs] }))
        };
        let steps = 300 * 304 + 4 + 5 + 3 + 302 * 2;
        let most = usize::try_from(TYPED_DATA_STEPS_MAX / steps).unwrap();
        assert_eq!(checked(&with(most - 1)), Ok(()));
        let given = steps * (most as u64 + 1);
        assert_eq!(checked(&with(most)), Err(TypedDataError::TooMuchWork { given }));
    }

    #[test]
    fn length_is_bounded_and_text_is_read_too() {
        let mut long = chain(1, 1);
        long["message"] = json!({ "x": "0".repeat(TYPED_DATA_BYTES_MAX - 200) });
        assert_eq!(checked(&long), Ok(()));
        assert_eq!(checked(&Value::String(chain(1, 1).to_string())), Ok(()));
        long["message"] = json!("0".repeat(TYPED_DATA_BYTES_MAX));
        assert!(matches!(checked(&long), Err(TypedDataError::TooLong { .. })));
    }

    /// The library would take these, and they would go past what is measured here.
    #[test]
    fn other_shapes_are_refused() {
        let listed = json!([{}, { "A0": [field("bool")] }, "A0", {}]);
        let twice = Value::String(Value::String(chain(1, 1).to_string()).to_string());
        let field_as_list = data(json!({ "A0": [["bool", "x"]] }), json!({}));
        let tuple = data(json!({ "A0": [field("(bool,bool)")] }), json!({}));
        for shape in [listed, twice, field_as_list, tuple, json!({}), json!(null)] {
            assert!(matches!(checked(&shape), Err(TypedDataError::Malformed { .. })), "{shape}");
        }
        let circle = data(json!({ "A0": [field("B[]")], "B": [field("A0")] }), json!({}));
        assert_eq!(checked(&circle), Err(TypedDataError::Circular { name: "A0".to_owned() }));
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        assert!(matches!(read(&deep), Err(TypedDataError::Malformed { .. })));
    }
}
