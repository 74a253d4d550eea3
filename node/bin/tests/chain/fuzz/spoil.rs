//! Makes bad requests out of good ones. The same seed makes the same ones.

use crate::fuzz::corpus::Request;
use alloy_primitives::hex;
use serde_json::{Map, Value, json};

/// Numbers that change from one to the next, after SplitMix64.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % end as u64) as usize
    }

    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.below(256) as u8).collect()
    }
}

/// What goes over the wire.
pub(crate) struct Message {
    pub(crate) text: Vec<u8>,
    /// Ids that answers must come for, by their JSON; `None` where nobody can tell.
    pub(crate) ids: Option<Vec<Value>>,
}

impl Message {
    /// Whether it is a list of requests.
    pub(crate) fn is_batch(&self) -> bool {
        self.text.first() == Some(&b'[')
    }

    /// Whether an answer is for one of its requests.
    pub(crate) fn is_for(&self, answer: &Value) -> bool {
        let answers = answer.as_array().map_or(std::slice::from_ref(answer), Vec::as_slice);
        let ids = self.ids.as_deref().unwrap_or_default();
        answers.iter().any(|answer| ids.contains(&answer["id"]))
    }
}

/// Half of what the server reads; what is above its limit gets no answer of JSON-RPC.
const BYTES_MAX: usize = 1 << 20;

/// One message: a request, spoilt a little or a lot; or several in a batch.
pub(crate) fn message(dice: &mut Dice, corpus: &[Request]) -> Message {
    loop {
        let message = any_message(dice, corpus);
        if message.text.len() <= BYTES_MAX {
            return message;
        }
    }
}

fn any_message(dice: &mut Dice, corpus: &[Request]) -> Message {
    match dice.below(20) {
        0..=1 => batch(dice, corpus),
        2 => broken(dice, corpus),
        3 => odd_envelope(dice, corpus),
        _ => {
            let id = json!(dice.below(1_000_000));
            let request = request(dice, corpus, &id);
            Message { text: request.to_string().into_bytes(), ids: Some(vec![id]) }
        }
    }
}

/// A request in a good envelope, with up to three things wrong in its parameters.
fn request(dice: &mut Dice, corpus: &[Request], id: &Value) -> Value {
    let (method, params) = dice.pick(corpus).clone();
    let mut params = params;
    for _ in 0..dice.below(4) {
        spoil(dice, &mut params);
    }
    patience(method, &mut params);
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

fn batch(dice: &mut Dice, corpus: &[Request]) -> Message {
    let mut ids = Vec::new();
    let mut entries: Vec<Value> = (0..=dice.below(8))
        .map(|n| {
            let id = json!(format!("{n}-{}", dice.below(1_000)));
            ids.push(id.clone());
            request(dice, corpus, &id)
        })
        .collect();
    if dice.below(2) == 0 {
        let at = dice.below(entries.len() + 1);
        entries.insert(at, junk(dice, 2));
        ids.push(Value::Null);
    }
    Message { text: json!(entries).to_string().into_bytes(), ids: Some(ids) }
}

/// Text that is cut off, has bytes changed, or has something behind it.
fn broken(dice: &mut Dice, corpus: &[Request]) -> Message {
    let mut text = request(dice, corpus, &json!(1)).to_string().into_bytes();
    match dice.below(4) {
        0 => text.truncate(dice.below(text.len())),
        1 => {
            for _ in 0..=dice.below(4) {
                let at = dice.below(text.len());
                text[at] = dice.below(128) as u8;
            }
        }
        2 => text.extend(junk(dice, 1).to_string().into_bytes()),
        _ => text = deep(dice.below(20_000)),
    }
    Message { text, ids: None }
}

/// A request whose version, id, method or parameters are not what they should be.
fn odd_envelope(dice: &mut Dice, corpus: &[Request]) -> Message {
    let mut request = request(dice, corpus, &json!(1));
    let fields = request.as_object_mut().unwrap();
    let field = *dice.pick(&["jsonrpc", "id", "method", "params", "unknown"]);
    if dice.below(3) == 0 {
        fields.remove(field);
    } else {
        fields.insert(field.to_owned(), junk(dice, 2));
    }
    Message { text: request.to_string().into_bytes(), ids: None }
}

/// Spoils one place.
fn spoil(dice: &mut Dice, params: &mut Value) {
    let mut place = params;
    // Walk down, more often than not.
    loop {
        let is_leaf = match &*place {
            Value::Array(list) => list.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            _ => true,
        };
        if is_leaf || dice.below(4) == 0 {
            break;
        }
        place = match place {
            Value::Array(list) => {
                let at = dice.below(list.len());
                &mut list[at]
            }
            Value::Object(fields) => {
                let at = dice.below(fields.len());
                fields.values_mut().nth(at).unwrap()
            }
            _ => unreachable!("leaves were sorted out"),
        };
    }
    change(dice, place);
}

fn change(dice: &mut Dice, place: &mut Value) {
    match (dice.below(6), &mut *place) {
        (0, Value::Array(list)) if !list.is_empty() => {
            list.remove(dice.below(list.len()));
        }
        (1, Value::Array(list)) if !list.is_empty() => {
            let again = list[dice.below(list.len())].clone();
            let count = *dice.pick(&[1, 2, 101, 1_001, 3_000]);
            list.extend(vec![again; count]);
        }
        (2, Value::Array(list)) => list.push(junk(dice, 2)),
        (0, Value::Object(fields)) if !fields.is_empty() => {
            let name = fields.keys().nth(dice.below(fields.len())).unwrap().clone();
            fields.remove(&name);
        }
        (1..=2, Value::Object(fields)) => {
            fields.insert(name(dice), junk(dice, 2));
        }
        (0..=1, Value::String(text)) => {
            let cut = text.char_indices().nth(dice.below(text.len().max(1))).map_or(0, |(at, _)| at);
            text.truncate(cut);
        }
        (2, Value::String(text)) => {
            let more = dice.pick(&["0", "f", "00", "g", " ", "\u{0}", "é", "0x"]);
            text.push_str(more);
        }
        _ => *place = junk(dice, 3),
    }
}

const FIELDS: [&str; 24] = [
    "from",
    "to",
    "gas",
    "gasPrice",
    "maxFeePerGas",
    "maxPriorityFeePerGas",
    "value",
    "data",
    "input",
    "nonce",
    "type",
    "chainId",
    "accessList",
    "authorizationList",
    "blobVersionedHashes",
    "fromBlock",
    "toBlock",
    "blockHash",
    "address",
    "topics",
    "tracer",
    "tracerConfig",
    "timestamp",
    "blocks",
];

fn name(dice: &mut Dice) -> String {
    if dice.below(8) == 0 { hex::encode(dice.bytes(4)) } else { (*dice.pick(&FIELDS)).to_owned() }
}

/// Any value.
fn junk(dice: &mut Dice, depth: usize) -> Value {
    match dice.below(if depth == 0 { 9 } else { 12 }) {
        0 => Value::Null,
        1 => json!(dice.below(2) == 0),
        2 => number(dice),
        3..=4 => json!(quantity(dice)),
        5 => {
            json!(*dice.pick(&["latest", "pending", "earliest", "safe", "finalized", "Latest", "newest", ""]))
        }
        6..=7 => {
            let length = *dice.pick(&[0, 1, 2, 19, 20, 21, 31, 32, 33, 64, 65, 100, 5_000]);
            json!(hex::encode_prefixed(dice.bytes(length)))
        }
        8 => {
            json!(*dice.pick(&["0x", "0X1", "x", "-0x1", "0x-1", "1e3", "\u{0}\u{7f}", "🦀", "0x0g", " 0x1"]))
        }
        9 => Value::Array((0..dice.below(5)).map(|_| junk(dice, depth - 1)).collect()),
        10 => {
            let fields = (0..dice.below(5)).map(|_| (name(dice), junk(dice, depth - 1)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        _ => {
            let nested = (0..dice.below(120)).fold(json!(1), |inner, _| json!([inner]));
            if dice.below(2) == 0 { nested } else { json!({ "a": nested }) }
        }
    }
}

fn number(dice: &mut Dice) -> Value {
    dice.pick(&[
        json!(0),
        json!(1),
        json!(-1),
        json!(1.5),
        json!(-0.0),
        json!(1e300),
        json!(250),
        json!(u32::MAX),
        json!(9_007_199_254_740_993_u64),
        json!(i64::MIN),
        json!(u64::MAX),
    ])
    .clone()
}

/// Numbers around which something may change, as Ethereum writes them.
fn quantity(dice: &mut Dice) -> String {
    let bits = *dice.pick(&[0, 1, 4, 7, 8, 31, 32, 48, 53, 63, 64, 127, 128, 255, 256]);
    let one = "1".to_owned() + &"0".repeat(bits / 4);
    match dice.below(3) {
        0 => format!("0x{one}"),
        1 => format!("0x{}", "f".repeat(bits.div_ceil(4).max(1))),
        _ => format!("0x0{one}"),
    }
}

/// Lists in lists, more than anybody reads.
fn deep(depth: usize) -> Vec<u8> {
    let mut text = br#"{"jsonrpc":"2.0","id":1,"method":"eth_call","params":"#.to_vec();
    text.extend(vec![b'['; depth]);
    text.extend(vec![b']'; depth]);
    text.push(b'}');
    text
}

/// Nobody here has 30 seconds for a receipt that never comes.
fn patience(method: &str, params: &mut Value) {
    if let (true, Value::Array(list)) = (method.ends_with("Sync"), params) {
        list.truncate(2);
        if list.len() == 2 && (list[1].is_null() || list[1].to_string().len() > 4) {
            list[1] = json!("0x10");
        } else if list.len() < 2 {
            list.resize(2, json!("0x10"));
        }
    }
}
