//! Limits of what a client may send, hold and wait for.

use super::{Row, bytes, row, time};
use almanac_rpc::{
    Limits,
    limits::FREE_BYTES,
    server::{HEAD_BYTES_MAX, HEADERS_MAX},
};
use std::time::Duration;

/// Every limit of the transport. A new field of `Limits` does not compile until it is named here.
pub(super) fn transport() -> Vec<Row> {
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
    [
        connections(connections_max, address_connections_max, connections_kept),
        calls(connection_calls_max, address_calls_max, address_writes_max),
        memory(connection_bytes_max, address_bytes_max, total_bytes_max),
        messages(request_bytes_max, response_bytes_max, batch_max),
        subscriptions(subscriptions_max, notification_bytes_max, notification_time_max),
        pace(call_time_max, calls_per_second_max),
        patience(request_time_max, send_time_max, idle_time_max),
    ]
    .concat()
}

fn connections(all: usize, address: usize, kept: usize) -> Vec<Row> {
    let silent = "the longest silent connection is closed; without one, HTTP 503";
    vec![
        row("connections", all, silent).flag("rpc-connections"),
        row("connections of one address", address, silent).flag("rpc-connections-per-address"),
        row("connections kept for addresses without one", kept, "others get HTTP 503"),
    ]
}

fn calls(connection: usize, address: usize, writes: usize) -> Vec<Row> {
    vec![
        row("calls in flight of a WebSocket", connection, "it is not read until an answer is sent")
            .flag("rpc-calls-per-connection"),
        row("calls of one address that are worked on", address, "further calls wait")
            .flag("rpc-calls-per-address"),
        row("results of one address that are written down at once", writes, "further answers wait"),
    ]
}

fn memory(connection: usize, address: usize, all: usize) -> Vec<Row> {
    let budget = "error -32005 with the bytes and the scope; HTTP 503 while a body is read; a WebSocket closes with 1013";
    let small = "small answers come while the budget is full";
    vec![
        row("bytes in flight of a connection", bytes(connection), budget),
        row("bytes in flight of one address", bytes(address), budget).flag("rpc-memory-per-address"),
        row("bytes in flight of all connections", bytes(all), budget).flag("rpc-memory"),
        row("bytes of an answer that need no budget", bytes(FREE_BYTES), small),
    ]
}

fn messages(request: usize, answer: usize, batch: usize) -> Vec<Row> {
    let too_long = "error -32008; a batch -32011; a subscription ends";
    vec![
        row("head of a request", bytes(HEAD_BYTES_MAX), "HTTP 431"),
        row("headers of a request", HEADERS_MAX, "HTTP 431"),
        row("request", bytes(request), "HTTP 413; over WebSocket error -32007 and close 1009"),
        row("answer, and notification", bytes(answer), too_long).flag("rpc-answer"),
        row("calls in a batch", batch, "error -32010").flag("rpc-batch"),
    ]
}

fn subscriptions(count: usize, unread: usize, wait: Duration) -> Vec<Row> {
    vec![
        row("subscriptions of a WebSocket", count, "error -32005").flag("rpc-subscriptions"),
        row("unread notifications of a WebSocket", bytes(unread), "the next one waits"),
        row("time that a notification waits", time(wait), "the subscription ends with \"too slow\""),
    ]
}

fn pace(call_time: Duration, rate: Option<u32>) -> Vec<Row> {
    let rate = rate.map_or_else(|| "none".to_owned(), |rate| rate.to_string());
    vec![
        row("time of the EVM for a request", time(call_time), "error -32005").flag("call-time"),
        row("calls per second of one address", rate, "HTTP 429, or error -32005, with the time to wait")
            .flag("rate-limit"),
    ]
}

fn patience(request: Duration, send: Duration, idle: Duration) -> Vec<Row> {
    let (cut, closed) = ("HTTP 408, or the connection is closed", "the connection is closed");
    vec![
        row("time to send a request's head, and its body", time(request), cut),
        row("time to read an answer", time(send), closed).flag("rpc-send-time"),
        row("time without a request, or without a pong", time(idle), closed).flag("rpc-idle-time"),
    ]
}

/// Who may call at all.
pub(super) fn access() -> Vec<Row> {
    vec![
        row("origins of web pages", "its own pages; dev: also loopback and browser extensions", "HTTP 403")
            .flag("allow-origin"),
        row("host names", "localhost and IP addresses", "HTTP 403").flag("allow-host"),
    ]
}
