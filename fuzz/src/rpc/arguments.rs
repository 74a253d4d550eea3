//! Turns bytes into arguments: values of a good request are kept, become others of their kind, or of another kind.

use crate::rpc::chain::{ALICE, BOB};
use alloy_primitives::hex;
use serde_json::{Map, Value, json};

/// Deepest list that is made.
const DEPTH_MAX: usize = 512;

/// Decisions, taken from the bytes of an input. When they are used up, each is the first of its choices.
pub(super) struct Choices<'a>(&'a [u8]);

impl<'a> Choices<'a> {
    pub(super) fn new(input: &'a [u8]) -> Self {
        Self(input)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    pub(super) fn below(&mut self, count: usize) -> usize {
        usize::from(self.byte()) % count.max(1)
    }

    fn bytes(&mut self) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(usize::from(self.byte()).min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// The value with some of its parts changed.
    pub(super) fn spoil(&mut self, value: &Value) -> Value {
        match self.byte() {
            0..160 => self.inside(value),
            160..224 => self.same_kind(value),
            224..248 => self.any(),
            _ => Value::Null,
        }
    }

    fn inside(&mut self, value: &Value) -> Value {
        match value {
            Value::Array(items) if !self.is_empty() => {
                let mut items: Vec<Value> = items.iter().map(|item| self.spoil(item)).collect();
                match self.byte() {
                    200..220 => items.push(self.any()),
                    220..240 => drop(items.pop()),
                    240.. => items = vec![items.first().cloned().unwrap_or_default(); 1 << self.below(12)],
                    _ => {}
                }
                Value::Array(items)
            }
            Value::Object(fields) if !self.is_empty() => {
                let mut fields: Map<String, Value> =
                    fields.iter().map(|(name, field)| (name.clone(), self.spoil(field))).collect();
                if self.byte() >= 200 {
                    fields.insert(self.name(), self.any());
                }
                Value::Object(fields)
            }
            other => other.clone(),
        }
    }

    fn same_kind(&mut self, value: &Value) -> Value {
        match value {
            Value::String(text) if text.starts_with("0x") => match text.len() {
                42 => self.address(),
                66 => json!(format!("0x{}", hex::encode([self.byte(); 32]))),
                length if length > 66 => json!(hex::encode_prefixed(self.bytes())),
                _ => self.quantity(),
            },
            Value::String(_) => self.word(),
            Value::Number(_) => self.number(),
            Value::Bool(given) => json!(!given),
            Value::Array(_) => json!([]),
            Value::Object(_) => json!({}),
            Value::Null => self.any(),
        }
    }

    fn any(&mut self) -> Value {
        match self.below(12) {
            0 => self.address(),
            1 => self.quantity(),
            2 => self.word(),
            3 => self.number(),
            4 => json!(hex::encode_prefixed(self.bytes())),
            5 => json!([self.address(), self.quantity()]),
            6 => json!({ self.name(): self.quantity(), self.name(): self.word() }),
            7 => self.call(),
            8 => self.overrides(),
            9 => self.typed_data(),
            10 => self.deep(),
            _ => json!(true),
        }
    }

    fn address(&mut self) -> Value {
        let known = [ALICE, BOB, "0x0000000000000000000000000000000000000006"];
        match self.below(8) {
            index @ 0..3 => json!(known[index]),
            3 => json!("0x000000000000000000000000000000000000a105"),
            4 => json!("0x000000000000000000000000000000000000a1ff"),
            5 => json!("0x000000000000000000000000000000000000a1de"),
            _ => json!(hex::encode_prefixed([self.byte(); 20])),
        }
    }

    fn quantity(&mut self) -> Value {
        let edges =
            ["0x0", "0x1", "0xffffffff", "0xffffffffffffffff", "0x7fffffffffffffff", "0x", "0x00", "0x-1"];
        match self.below(12) {
            index @ 0..8 => json!(edges[index]),
            8 => json!(format!("0x{}", "f".repeat(64))),
            9 => json!(format!("0x1{}", "0".repeat(self.below(128)))),
            _ => json!(format!("{:#x}", u16::from_be_bytes([self.byte(), self.byte()]))),
        }
    }

    fn number(&mut self) -> Value {
        match self.below(6) {
            0 => json!(0),
            1 => json!(u64::MAX),
            2 => json!(-1),
            3 => json!(1.5e300),
            _ => json!(u16::from_be_bytes([self.byte(), self.byte()])),
        }
    }

    fn word(&mut self) -> Value {
        let words = [
            "latest",
            "pending",
            "earliest",
            "safe",
            "finalized",
            "callTracer",
            "prestateTracer",
            "4byteTracer",
            "flatCallTracer",
            "noopTracer",
            "muxTracer",
            "stateDiff",
            "vmTrace",
            "trace",
            "newest",
            "oldest",
            "cron",
            "market",
            "spare",
            "reserved",
            "1-0-0",
            "",
        ];
        match self.below(words.len() + 2) {
            index if index < words.len() => json!(words[index]),
            _ => json!(String::from_utf8_lossy(self.bytes())),
        }
    }

    fn name(&mut self) -> String {
        let names = [
            "from",
            "to",
            "data",
            "input",
            "gas",
            "gasPrice",
            "value",
            "nonce",
            "balance",
            "code",
            "state",
            "stateDiff",
            "movePrecompileToAddress",
            "blockHash",
            "fromBlock",
            "toBlock",
            "topics",
            "address",
            "tracer",
            "tracerConfig",
            "timeout",
            "limit",
            "cursor",
            "accessList",
            "authorizationList",
            "blockOverrides",
            "stateOverrides",
            "blockStateCalls",
            "validation",
            "number",
            "time",
            "gasLimit",
            "baseFeePerGas",
        ];
        names[self.below(names.len())].to_owned()
    }

    fn call(&mut self) -> Value {
        let list: Vec<Value> = (0..self.below(4))
            .map(|_| json!({ "address": self.address(), "storageKeys": [format!("0x{}", hex::encode([self.byte(); 32]))] }))
            .collect();
        json!({ "from": self.address(), "to": self.address(), "value": self.quantity(), "gas": self.quantity(),
            "data": hex::encode_prefixed(self.bytes()), "accessList": list })
    }

    fn overrides(&mut self) -> Value {
        let mut all = Map::new();
        for _ in 0..1usize << self.below(10) {
            let Value::String(address) = self.address() else { continue };
            let slot = format!("0x{}", hex::encode([self.byte(); 32]));
            let code = hex::encode_prefixed(self.bytes());
            all.insert(
                address,
                json!({ "balance": self.quantity(), "code": code, "stateDiff": { slot.clone(): slot } }),
            );
        }
        Value::Object(all)
    }

    /// EIP-712 data, whose types may hold each other and themselves.
    fn typed_data(&mut self) -> Value {
        let count = 1 + self.below(40);
        let mut types = Map::new();
        types.insert("EIP712Domain".to_owned(), json!([]));
        for number in 0..count {
            let fields: Vec<Value> = (0..1 + self.below(3))
                .map(|field| {
                    let inner = match self.below(4) {
                        0 => "uint256".to_owned(),
                        1 => format!("T{}", number + 1),
                        2 => format!("T{}", self.below(count)),
                        _ => format!("uint256{}", "[]".repeat(1 << self.below(9))),
                    };
                    json!({ "name": format!("f{field}"), "type": inner })
                })
                .collect();
            types.insert(format!("T{number}"), json!(fields));
        }
        json!({ "types": types, "primaryType": "T0", "domain": {}, "message": { "f0": self.number() } })
    }

    fn deep(&mut self) -> Value {
        let mut value = json!(1);
        for _ in 0..DEPTH_MAX.min(1 << self.below(10)) {
            value = json!([value]);
        }
        value
    }
}
