//! Compares docs/limits.md with the limits that the code has. To add a limit, add a row in the file of its group and run
//! the test with `ALMANAC_BLESS=1`, which writes the tables into the page.

mod calls;
mod files;
mod grpc;
mod pool;
mod transport;

use crate::{
    cli::Cli,
    network,
    rpc_flags::{HEADING, RpcFlags},
};
use clap::{Args as _, CommandFactory as _};
use std::{collections::BTreeSet, fmt::Write as _, time::Duration};

/// A limit.
#[derive(Clone)]
struct Row {
    name: &'static str,
    default: String,
    setting: Setting,
    seen: &'static str,
}

/// What changes a limit.
#[derive(Clone, Copy)]
enum Setting {
    /// Nothing.
    Fixed,
    /// A flag of `dev` and `node`, without dashes.
    Flag(&'static str),
    /// A key in the configuration of a node.
    Key(&'static str),
    /// A parameter of the chain.
    Governance,
}

impl Row {
    fn flag_name(&self) -> Option<&'static str> {
        if let Setting::Flag(flag) = self.setting { Some(flag) } else { None }
    }

    /// The same with a flag of `dev` and `node`, without dashes.
    fn flag(self, flag: &'static str) -> Self {
        Self { setting: Setting::Flag(flag), ..self }
    }

    /// The same with a key in the configuration of a node.
    fn key(self, key: &'static str) -> Self {
        Self { setting: Setting::Key(key), ..self }
    }
}

/// A limit that nothing changes.
#[allow(clippy::needless_pass_by_value, reason = "rows are written in place")]
fn row(name: &'static str, default: impl ToString, seen: &'static str) -> Row {
    Row { name, default: default.to_string(), setting: Setting::Fixed, seen }
}

fn bytes(count: usize) -> String {
    match count {
        _ if count.is_multiple_of(1 << 20) => format!("{} MiB", count >> 20),
        _ if count.is_multiple_of(1 << 10) => format!("{} KiB", self::count(count >> 10)),
        _ => format!("{count} bytes"),
    }
}

fn time(duration: Duration) -> String {
    format!("{} s", duration.as_secs())
}

/// A number with a comma between thousands.
fn count(number: impl TryInto<u64>) -> String {
    let Ok(number) = number.try_into() else { panic!("limits fit 64 bits") };
    match number {
        0..1_000 => number.to_string(),
        _ => format!("{},{:03}", count(number / 1_000), number % 1_000),
    }
}

/// Every table of the page, by the name that the page has for it.
fn tables() -> Vec<(&'static str, Vec<Row>)> {
    vec![
        ("connections", transport::transport()),
        ("access", transport::access()),
        ("grpc", grpc::grpc()),
        ("answers", calls::answers()),
        ("logs", calls::logs()),
        ("calls", calls::tries()),
        ("traces", calls::traces()),
        ("schedules", calls::schedules()),
        ("typed data", calls::typed_data()),
        ("work at a time", calls::queues()),
        ("pool", pool::pool()),
        ("gossip", pool::gossip()),
        ("files", files::files()),
    ]
}

fn begin(name: &str) -> String {
    format!("<!-- table of {name}: written by ALMANAC_BLESS=1 cargo test -p almanac limits_page -->\n")
}

const END: &str = "<!-- end of table -->\n";

fn table(rows: &[Row]) -> String {
    let mut out = "| limit | default | set by | what the caller sees |\n|---|---|---|---|\n".to_owned();
    for Row { name, default, setting, seen } in rows {
        let setting = match setting {
            Setting::Fixed => "—".to_owned(),
            Setting::Flag(flag) => format!("`--{flag}`"),
            Setting::Key(key) => format!("`\"{key}\"`"),
            Setting::Governance => "governance".to_owned(),
        };
        writeln!(out, "| {name} | {default} | {setting} | {seen} |").expect("a String takes any text");
    }
    out
}

#[test]
fn the_page_has_every_limit() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/limits.md");
    let mut page = std::fs::read_to_string(path).unwrap();
    let is_blessed = std::env::var_os("ALMANAC_BLESS").is_some();
    let tables = tables();
    assert_eq!(page.matches(END).count(), tables.len());
    for (name, rows) in tables {
        let (begin, expected) = (begin(name), table(&rows));
        let (before, rest) = page.split_once(&begin).unwrap_or_else(|| panic!("the page lacks {begin}"));
        let (shown, after) = rest.split_once(END).expect("the table has an end");
        if is_blessed {
            page = [before, &begin, &expected, END, after].concat();
            continue;
        }
        for (shown, expected) in shown.lines().zip(expected.lines()) {
            assert_eq!(shown, expected, "docs/limits.md differs from the code; see {}", file!());
        }
        assert_eq!(shown, expected, "docs/limits.md has a row too many or too few; see {}", file!());
    }
    if is_blessed {
        std::fs::write(path, page).unwrap();
    }
}

/// Every flag of the tables is one of `dev` and of `node`, with the same default; every flag of theirs is in a table.
#[test]
fn every_flag_has_a_row() {
    let rows: Vec<Row> = tables().into_iter().flat_map(|(_, rows)| rows).collect();
    let named: BTreeSet<&str> = rows.iter().filter_map(Row::flag_name).collect();
    let flags = RpcFlags::augment_args(clap::Command::new("flags"));
    let own: BTreeSet<&str> = flags.get_arguments().filter_map(|flag| flag.get_long()).collect();
    assert_eq!(named, own);
    let cli = Cli::command();
    for command in ["dev", "node"] {
        let command = cli.find_subcommand(command).unwrap();
        for (name, shown) in rows.iter().filter_map(|row| Some((row.flag_name()?, &row.default))) {
            let flag = command.get_arguments().find(|flag| flag.get_long() == Some(name));
            let flag = flag.unwrap_or_else(|| panic!("{} has no --{name}", command.get_name()));
            assert_eq!(flag.get_help_heading(), Some(HEADING), "--{name}");
            for default in flag.get_default_values() {
                let default = default.to_str().unwrap().trim_end_matches('s');
                let is_same = shown.split(' ').next() == Some(default);
                assert!(is_same, "--{name} is {default} by default, the table has {shown}");
            }
        }
    }
}

/// A key of the tables is one that the configuration of a node may have.
#[test]
fn keys_are_those_of_the_configuration() {
    assert!(!network::is_config_key("nonsense"));
    for (_, rows) in tables() {
        for row in rows {
            let Setting::Key(key) = row.setting else { continue };
            assert!(network::is_config_key(key), "{key}");
        }
    }
}

/// A new number in `bounds.rs` or `regular_file.rs` gets a row.
#[test]
fn every_bound_has_a_row() {
    let bounds = include_str!("../../rpc/src/bounds.rs").lines();
    let bounds = bounds.filter_map(|line| line.strip_prefix("pub const "));
    let sizes = include_str!("regular_file.rs").lines();
    let sizes = sizes.filter_map(|line| line.strip_prefix("pub(crate) const "));
    let (calls, files) = (include_str!("limits_page/calls.rs"), include_str!("limits_page/files.rs"));
    let streams = include_str!("../../grpc/src/limits.rs").lines();
    let streams = streams.filter_map(|line| line.strip_prefix("pub const "));
    let grpc = include_str!("limits_page/grpc.rs");
    let is_named = |rows: &str, before: &str, line: &str| {
        line.split(':').next().is_some_and(|name| rows.contains(&format!("{before}{name})")))
    };
    let missing: Vec<&str> = bounds
        .filter(|line| !is_named(calls, "bounds::", line))
        .chain(sizes.filter(|line| !is_named(files, "", line)))
        .chain(streams.filter(|line| !is_named(grpc, "", line)))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}
