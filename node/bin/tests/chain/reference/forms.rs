//! How a Rust type looks in JSON, in words.

use super::sources::{Shape, Sources, inner};
use std::path::Path;
use syn::Type;

/// Stands before a type that nobody has described yet. It begins with no letter: a sentence that begins with it has
/// capitals for its first.
pub(super) const WORDLESS: &str = "(no words for) ";

/// Types whose looks are not declared in our sources, or not by serde's derive.
const KNOWN: &[(&str, &str)] = &[
    ("Address", "address"),
    ("B256", "32 bytes"),
    ("BlockHash", "hash"),
    ("TxHash", "hash"),
    ("Bytes", "bytes"),
    ("FixedBytes", "bytes"),
    ("Bloom", "256 bytes"),
    ("B64", "8 bytes"),
    ("U8", "quantity"),
    ("U64", "quantity"),
    ("U128", "quantity"),
    ("U256", "quantity"),
    ("Index", "quantity"),
    ("Number", "quantity or number"),
    ("Height", "quantity, number or tag"),
    ("f64", "number"),
    ("i64", "number"),
    ("u32", "number"),
    ("u64", "number"),
    ("usize", "number"),
    ("bool", "true or false"),
    ("String", "text"),
    ("str", "text"),
    ("Value", "any"),
    ("RawValue", "any"),
    ("Version", "decimal number as text"),
    ("Decimal", "decimal number as text"),
    ("BlockId", "block: number, tag or hash"),
    ("BlockNumberOrTag", "block: number or tag"),
    ("Params", "filter of logs, or true for whole transactions"),
    ("SubscriptionKind", "`newHeads`, `logs` or `newPendingTransactions`"),
    ("Filter", "filter of logs"),
    ("Transaction", "transaction of Ethereum, as geth shows it"),
    ("TransactionRequest", "transaction"),
    ("StateOverride", "accounts to change, as geth takes them"),
    ("BlockOverrides", "fields of the block to change, as geth takes them"),
    ("SimulatePayload", "blocks of calls, as geth's eth_simulateV1 takes them"),
    ("TraceType", "`trace`, `stateDiff` or `vmTrace`"),
    ("TraceFilter", "filter of traces, as Parity's"),
    ("GethDebugTracingOptions", "tracer and its options, as geth takes them"),
    ("GethDebugTracingCallOptions", "tracer, its options and overrides, as geth takes them"),
    ("GethTrace", "trace, as the tracer shows it"),
    ("TraceResult", "trace or error, with the transaction's hash"),
    ("SimulateError", "`code` and `message`"),
    ("AccessListResult", "access list, `gasUsed` and `error`"),
    ("AccessList", "access list"),
    ("Authorization", "authorisation of EIP-7702"),
    ("SignedAuthorization", "authorisation of EIP-7702"),
    ("FeeHistory", "fee history"),
    ("LocalizedTransactionTrace", "trace, as Parity's"),
    ("TraceResults", "traces, as Parity's"),
    ("TraceResultsWithTransactionHash", "traces of a transaction, as Parity's"),
    ("InternalOperation", "operation, as Otterscan's"),
    ("OtsBlockDetails", "block, as Otterscan's"),
    ("OtsContractCreator", "creator, as Otterscan's"),
    ("Withdrawals", "list, always empty"),
    ("AccountInfo", "`balance`, `nonce` and `code`"),
    ("DoorName", "name of a door: `cron`, `callback`, `market`, `signed`"),
    ("LaneName", "lane: `reserved`, `cron`, `market`, `spare`, `signed`"),
    ("Id", "id of a schedule"),
    ("ScheduleId", "id of a schedule"),
];

/// The words for a type that a file names. Shapes of our own are links to their section.
pub(super) fn words(form: &Type, file: &Path, sources: &Sources) -> String {
    match form {
        Type::Reference(reference) => words(&reference.elem, file, sources),
        Type::Tuple(tuple) if tuple.elems.is_empty() => "null".to_owned(),
        Type::Tuple(tuple) => {
            let parts: Vec<String> = tuple.elems.iter().map(|one| words(one, file, sources)).collect();
            format!("list of {}", parts.join(" and "))
        }
        Type::Array(array) => format!("list of {}", words(&array.elem, file, sources)),
        Type::Path(path) => {
            let name = path.path.segments.last().expect("a path has a name").ident.to_string();
            let inside = || words(inner(form).expect("something between the brackets"), file, sources);
            match wrapping(&name) {
                Some(Wrapping::Itself) => inside(),
                Some(Wrapping::Maybe) => format!("{} or null", inside()),
                Some(Wrapping::List) => format!("list of {}", inside()),
                None if name == "BTreeMap" => "object".to_owned(),
                None => named(&name, file, sources),
            }
        }
        _ => panic!("{} has a type that has no words yet", file.display()),
    }
}

/// What a type makes of the one in its brackets.
enum Wrapping {
    Itself,
    Maybe,
    List,
}

fn wrapping(name: &str) -> Option<Wrapping> {
    match name {
        "Answer" | "Box" | "Arc" | "Cow" => Some(Wrapping::Itself),
        "Option" => Some(Wrapping::Maybe),
        "Vec" | "HashSet" => Some(Wrapping::List),
        _ => None,
    }
}

/// The words for a type whose looks are in the table.
pub(super) fn known(name: &str) -> Option<&'static str> {
    KNOWN.iter().find(|(known, _)| *known == name).map(|(_, words)| *words)
}

fn named(name: &str, file: &Path, sources: &Sources) -> String {
    if let Some(words) = known(name) {
        return words.to_owned();
    }
    if let Some(shape) = sources.shape(name, file) {
        return link(shape);
    }
    if let Some(form) = sources.names.get(name) {
        return words(form, file, sources);
    }
    // A parameter of a generic struct.
    if name.len() == 1 {
        return "as the method says".to_owned();
    }
    format!("{WORDLESS}{name} of {}", file.display())
}

fn link(shape: &Shape) -> String {
    let title = title(shape);
    format!("[{title}](#{})", title.replace(' ', "-"))
}

/// The name of a shape for people: `RpcScheduleId` is "schedule id".
pub(super) fn title(shape: &Shape) -> String {
    let name = shape.name.trim_start_matches("Rpc").trim_start_matches("Ots").trim_end_matches("Json");
    let mut title = name.char_indices().fold(String::new(), |mut out, (at, letter)| {
        if letter.is_uppercase() && at > 0 {
            out.push(' ');
        }
        out.extend(letter.to_lowercase());
        out
    });
    if shape.name.ends_with("Json") && title != "proof" {
        title += " of a proof";
    }
    title
}

/// The shape that a type leads to, through lists and options.
pub(super) fn shape_of<'s>(form: &Type, file: &Path, sources: &'s Sources) -> Option<&'s Shape> {
    match form {
        Type::Reference(reference) => shape_of(&reference.elem, file, sources),
        Type::Path(path) => {
            let name = path.path.segments.last()?.ident.to_string();
            if known(&name).is_some() {
                return None;
            }
            if wrapping(&name).is_some() {
                return shape_of(inner(form)?, file, sources);
            }
            match sources.shape(&name, file) {
                Some(shape) => Some(shape),
                None => shape_of(sources.names.get(&name)?, file, sources),
            }
        }
        _ => None,
    }
}
