//! Hardhat's `console.log`.
//!
//! The library calls an address without a contract, with the arguments as calldata. On chain this has no effect; a
//! tracer decodes it.

use crate::{
    error::TraceError,
    printable::printable,
    tracer::{Seen, Tracer},
};
use alloy_dyn_abi::{DynSolType, DynSolValue};
use alloy_primitives::{Address, address, keccak256};
use almanac_exec::EvmContext;
use revm::{
    Inspector,
    interpreter::{CallInputs, CallOutcome},
};
use std::{collections::BTreeMap, sync::OnceLock};

/// The address that the library calls.
const CONSOLE: Address = address!("0x000000000000000000636F6e736F6c652e6c6f67");

/// Most lines that one transaction may print.
const LINES_MAX: usize = 100;
/// Most characters of one line.
const LINE_CHARS_MAX: usize = 1_000;

/// Collects what a transaction prints.
#[derive(Clone, Copy, Debug)]
pub struct Console;

/// Lines so far.
#[derive(Clone, Debug, Default)]
pub struct ConsoleInspector(Vec<String>);

impl ConsoleInspector {
    /// What was printed.
    pub fn into_lines(self) -> Vec<String> {
        self.0
    }
}

impl Tracer for Console {
    type Inspector = ConsoleInspector;
    type Trace = Vec<String>;

    fn inspector(&self) -> ConsoleInspector {
        ConsoleInspector::default()
    }

    fn trace(&self, inspector: ConsoleInspector, _: &Seen) -> Result<Vec<String>, TraceError> {
        Ok(inspector.into_lines())
    }
}

impl Inspector<EvmContext<'_>> for ConsoleInspector {
    fn call(&mut self, context: &mut EvmContext<'_>, inputs: &mut CallInputs) -> Option<CallOutcome> {
        if inputs.target_address == CONSOLE && self.0.len() < LINES_MAX {
            self.0.extend(line(&inputs.input.bytes(context)));
        }
        None
    }
}

/// The line that a call of the console prints, or `None` if the library did not make the call.
fn line(input: &[u8]) -> Option<String> {
    let (selector, arguments) = input.split_first_chunk::<4>()?;
    let types = signatures().get(selector)?;
    let values = DynSolType::Tuple(types.clone()).abi_decode_params(arguments).ok()?;
    let DynSolValue::Tuple(values) = values else { return None };
    let text = format(&values.iter().map(show).collect::<Vec<_>>());
    Some(printable(&text, LINE_CHARS_MAX))
}

/// Formats like Node's `util.format`: placeholders in the first argument consume the next ones, the rest is
/// appended.
fn format(arguments: &[String]) -> String {
    let Some((first, mut rest)) = arguments.split_first() else { return String::new() };
    let mut out = String::new();
    let mut characters = first.chars().peekable();
    while let Some(c) = characters.next() {
        match (c, characters.peek(), rest) {
            ('%', Some('%'), _) => {
                characters.next();
                out.push('%');
            }
            ('%', Some('s' | 'd' | 'i' | 'f' | 'j' | 'o' | 'O'), [value, left @ ..]) => {
                characters.next();
                out.push_str(value);
                rest = left;
            }
            _ => out.push(c),
        }
    }
    for value in rest {
        out.push(' ');
        out.push_str(value);
    }
    out
}

fn show(value: &DynSolValue) -> String {
    match value {
        DynSolValue::String(text) => text.clone(),
        DynSolValue::Bool(value) => value.to_string(),
        DynSolValue::Address(address) => address.to_string(),
        DynSolValue::Uint(number, _) => number.to_string(),
        DynSolValue::Int(number, _) => number.to_string(),
        DynSolValue::Bytes(bytes) => alloy_primitives::hex::encode_prefixed(bytes),
        DynSolValue::FixedBytes(word, length) => alloy_primitives::hex::encode_prefixed(&word[..*length]),
        other => format!("{other:?}"),
    }
}

type Signatures = BTreeMap<[u8; 4], Vec<DynSolType>>;

/// Every `log` of the library: up to four arguments of four types, and one of the others. Early versions wrote
/// "uint" instead of "uint256", and so have other selectors.
fn signatures() -> &'static Signatures {
    static ALL: OnceLock<Signatures> = OnceLock::new();
    ALL.get_or_init(|| {
        let plain = [DynSolType::Uint(256), DynSolType::String, DynSolType::Bool, DynSolType::Address];
        let mut all = Signatures::new();
        let mut lists: Vec<Vec<DynSolType>> = vec![Vec::new()];
        for _ in 0..4 {
            for types in &lists {
                add(&mut all, types);
            }
            lists = lists
                .iter()
                .flat_map(|types| plain.iter().map(|last| [&types[..], std::slice::from_ref(last)].concat()))
                .collect();
        }
        lists.iter().for_each(|types| add(&mut all, types));
        add(&mut all, &[DynSolType::Int(256)]);
        add(&mut all, &[DynSolType::Bytes]);
        (1..=32).for_each(|length| add(&mut all, &[DynSolType::FixedBytes(length)]));
        // These two have different names in the library.
        for (name, kind) in [("logUint", DynSolType::Uint(256)), ("logInt", DynSolType::Int(256))] {
            insert(&mut all, name, std::slice::from_ref(&kind));
        }
        all
    })
}

fn add(all: &mut Signatures, types: &[DynSolType]) {
    insert(all, "log", types);
}

fn insert(all: &mut Signatures, name: &str, types: &[DynSolType]) {
    let names: Vec<_> = types.iter().map(|kind| kind.sol_type_name().into_owned()).collect();
    let signature = format!("{name}({})", names.join(","));
    let early = signature.replace("uint256", "uint").replace("int256", "int");
    for signature in [signature, early] {
        let hash = keccak256(signature);
        all.insert([hash[0], hash[1], hash[2], hash[3]], types.to_vec());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::U256;

    fn call(signature: &str, values: Vec<DynSolValue>) -> Option<String> {
        let mut input = keccak256(signature)[..4].to_vec();
        input.extend(DynSolValue::Tuple(values).abi_encode_params());
        line(&input)
    }

    #[test]
    fn lines_as_the_library_means_them() {
        let text = |text: &str| DynSolValue::String(text.to_owned());
        let number = |n: u64| DynSolValue::Uint(U256::from(n), 256);
        assert_eq!(call("log()", vec![]), Some(String::new()));
        assert_eq!(call("log(string)", vec![text("hello")]).unwrap(), "hello");
        assert_eq!(call("log(string,uint256)", vec![text("it is"), number(42)]).unwrap(), "it is 42");
        assert_eq!(call("log(string,uint)", vec![text("it is %d!"), number(42)]).unwrap(), "it is 42!");
        let all = vec![number(1), text("%s"), DynSolValue::Bool(true), DynSolValue::Address(Address::ZERO)];
        let expected = "1 %s true 0x0000000000000000000000000000000000000000";
        assert_eq!(call("log(uint256,string,bool,address)", all).unwrap(), expected);
        let percent = vec![text("100%% of %s and %s"), text("x")];
        assert_eq!(call("log(string,string)", percent).unwrap(), "100% of x and %s");
        let word = DynSolValue::FixedBytes(alloy_primitives::B256::repeat_byte(7), 2);
        assert_eq!(call("log(bytes2)", vec![word]).unwrap(), "0x0707");
    }

    #[test]
    fn nonsense_prints_nothing_and_escapes_nothing() {
        for input in [&[][..], &[1, 2], &[0; 4], &[0xff; 100]] {
            assert_eq!(line(input), None);
        }
        let cut = [&keccak256("log(string)")[..4], &[0; 31]].concat();
        assert_eq!(line(&cut), None);
        let nasty = DynSolValue::String("a\u{1b}[2Jb\nc".to_owned());
        assert_eq!(call("log(string)", vec![nasty]).unwrap(), "a [2Jb c");
        let long = DynSolValue::String("x".repeat(5_000));
        assert_eq!(call("log(string)", vec![long]).unwrap().len(), LINE_CHARS_MAX);
    }
}
