//! Compares docs/limits.md with the limits that the code has. To add a limit, add a row here and run the test with
//! `ALMANAC_BLESS=1`, which writes the table into the page.

use crate::{
    cli::Cli,
    rpc_flags::{HEADING, RpcFlags},
};
use almanac_rpc::{Limits, limits::FREE_BYTES};
use clap::{Args as _, CommandFactory as _};
use std::{collections::BTreeSet, fmt::Write as _, time::Duration};

/// A limit.
struct Row {
    name: &'static str,
    default: String,
    /// Without dashes; empty where there is none.
    flag: &'static str,
    seen: &'static str,
}

#[allow(clippy::needless_pass_by_value, reason = "rows are written in place")]
fn row(name: &'static str, default: impl ToString, flag: &'static str, seen: &'static str) -> Row {
    Row { name, default: default.to_string(), flag, seen }
}

fn bytes(count: usize) -> String {
    match count {
        _ if count.is_multiple_of(1 << 20) => format!("{} MiB", count >> 20),
        _ => format!("{} KiB", count >> 10),
    }
}

fn time(duration: Duration) -> String {
    format!("{} s", duration.as_secs())
}

/// Every limit of the transport. A new field of `Limits` does not compile until it is named here.
fn transport() -> Vec<Row> {
    let Limits {
        connections_max,
        address_connections_max,
        connections_kept,
        connection_calls_max,
        address_calls_max,
        address_writes_max,
        connection_bytes_max,
        address_bytes_max,
        total_bytes_max,
        request_bytes_max,
        response_bytes_max,
        batch_max,
        subscriptions_max,
        notification_bytes_max,
        notification_time_max,
        call_time_max,
        calls_per_second_max,
        request_time_max,
        send_time_max,
        idle_time_max,
    } = Limits::default();
    let rate = calls_per_second_max.map_or_else(|| "none".to_owned(), |rate| rate.to_string());
    let silent = "the longest silent connection is closed; without one, HTTP 503";
    let budget = "error -32005 with the bytes and the scope; HTTP 503 while a body is read; a WebSocket closes with 1013";
    vec![
        row("connections", connections_max, "rpc-connections", silent),
        row("connections of one address", address_connections_max, "rpc-connections-per-address", silent),
        row("connections kept for addresses without one", connections_kept, "", "others get HTTP 503"),
        row(
            "calls in flight of a WebSocket",
            connection_calls_max,
            "rpc-calls-per-connection",
            "it is not read until an answer is sent",
        ),
        row(
            "calls of one address that are worked on",
            address_calls_max,
            "rpc-calls-per-address",
            "further calls wait",
        ),
        row(
            "results of one address that are written down at once",
            address_writes_max,
            "",
            "further answers wait",
        ),
        row("bytes in flight of a connection", bytes(connection_bytes_max), "", budget),
        row("bytes in flight of one address", bytes(address_bytes_max), "rpc-memory-per-address", budget),
        row("bytes in flight of all connections", bytes(total_bytes_max), "rpc-memory", budget),
        row(
            "bytes of an answer that need no budget",
            bytes(FREE_BYTES),
            "",
            "small answers come while the budget is full",
        ),
        row("request", bytes(request_bytes_max), "", "HTTP 413; over WebSocket error -32007 and close 1009"),
        row(
            "answer, and notification",
            bytes(response_bytes_max),
            "rpc-answer",
            "error -32008; a batch -32011; a subscription ends",
        ),
        row("calls in a batch", batch_max, "rpc-batch", "error -32010"),
        row("subscriptions of a WebSocket", subscriptions_max, "rpc-subscriptions", "error -32005"),
        row("unread notifications of a WebSocket", bytes(notification_bytes_max), "", "the next one waits"),
        row(
            "time that a notification waits",
            time(notification_time_max),
            "",
            "the subscription ends with \"too slow\"",
        ),
        row("time of the EVM for a request", time(call_time_max), "call-time", "error -32005"),
        row(
            "calls per second of one address",
            rate,
            "rate-limit",
            "HTTP 429, or error -32005, with the time to wait",
        ),
        row(
            "time to send a request's head, and its body",
            time(request_time_max),
            "",
            "HTTP 408, or the connection is closed",
        ),
        row("time to read an answer", time(send_time_max), "rpc-send-time", "the connection is closed"),
        row(
            "time without a request, or without a pong",
            time(idle_time_max),
            "rpc-idle-time",
            "the connection is closed",
        ),
    ]
}

/// Who may call at all.
fn access() -> Vec<Row> {
    vec![
        row(
            "origins of web pages",
            "dev: loopback and browser extensions; node: none",
            "allow-origin",
            "HTTP 403",
        ),
        row("host names", "localhost and IP addresses", "allow-host", "HTTP 403"),
    ]
}

fn all() -> Vec<Row> {
    [transport(), access()].into_iter().flatten().collect()
}

const BEGIN: &str = "<!-- table: written by ALMANAC_BLESS=1 cargo test -p almanac limits_page -->\n";
const END: &str = "<!-- end of table -->\n";

fn table(rows: &[Row]) -> String {
    let mut out = "| limit | default | flag | what the caller sees |\n|---|---|---|---|\n".to_owned();
    for Row { name, default, flag, seen } in rows {
        let flag = if flag.is_empty() { "—".to_owned() } else { format!("`--{flag}`") };
        writeln!(out, "| {name} | {default} | {flag} | {seen} |").expect("a String takes any text");
    }
    out
}

#[test]
fn the_page_has_every_limit() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/limits.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the page has a table");
    let (shown, after) = rest.split_once(END).expect("the table has an end");
    let expected = table(&all());
    if std::env::var_os("ALMANAC_BLESS").is_some() {
        std::fs::write(path, [before, BEGIN, &expected, END, after].concat()).unwrap();
        return;
    }
    for (shown, expected) in shown.lines().zip(expected.lines()) {
        assert_eq!(shown, expected, "docs/limits.md differs from the code; see {}", file!());
    }
    assert_eq!(shown, expected, "docs/limits.md has a row too many or too few; see {}", file!());
}

/// Every flag of the table is one of `dev` and of `node`, with the same default; every flag of theirs is in the table.
#[test]
fn every_flag_has_a_row() {
    let rows = all();
    let named: BTreeSet<&str> = rows.iter().map(|row| row.flag).filter(|flag| !flag.is_empty()).collect();
    let flags = RpcFlags::augment_args(clap::Command::new("flags"));
    let own: BTreeSet<&str> = flags.get_arguments().filter_map(|flag| flag.get_long()).collect();
    assert_eq!(named, own);
    let cli = Cli::command();
    for command in ["dev", "node"] {
        let command = cli.find_subcommand(command).unwrap();
        for row in rows.iter().filter(|row| !row.flag.is_empty()) {
            let flag = command.get_arguments().find(|flag| flag.get_long() == Some(row.flag));
            let flag = flag.unwrap_or_else(|| panic!("{} has no --{}", command.get_name(), row.flag));
            assert_eq!(flag.get_help_heading(), Some(HEADING), "--{}", row.flag);
            for default in flag.get_default_values() {
                let default = default.to_str().unwrap().trim_end_matches('s');
                let is_same = row.default.split(' ').next() == Some(default);
                assert!(is_same, "--{} is {default} by default, the table has {}", row.flag, row.default);
            }
        }
    }
}
