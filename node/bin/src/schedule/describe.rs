//! A schedule of the node's answer, in words.

use super::SIGNED;
use crate::{
    client::{
        node::{maybe_time, quantity, text, wei},
        words::{counted, date, distance, how_often},
    },
    span::coins,
};
use almanac_primitives::{TimestampMs, Wei};
use serde_json::Value;

/// How often it runs, and how often it did.
pub(super) fn rhythm(schedule: &Value) -> String {
    let terms = &schedule["terms"];
    if terms["door"] == SIGNED {
        return "once all have signed".to_owned();
    }
    let number = |value: &Value| quantity(value).unwrap_or_default();
    match (number(&terms["intervalMs"]) / 1_000, number(&terms["runsMax"])) {
        (0, _) => "once".to_owned(),
        (seconds, 0) => format!("{}, until the escrow is empty", how_often(seconds)),
        (seconds, times) => format!("{}, {}", how_often(seconds), counted(times, "time")),
    }
}

/// What it did so far.
pub(super) fn runs(schedule: &Value) -> String {
    let number = |value: &Value| quantity(value).unwrap_or_default();
    let (runs, failed) = (number(&schedule["runs"]), number(&schedule["runsFailed"]));
    let of = match quantity(&schedule["terms"]["runsMax"]) {
        Ok(max) if max > 0 => format!("{runs} of {max}"),
        _ => runs.to_string(),
    };
    if failed > 0 { format!("{of}, {failed} failed") } else { of }
}

/// When it runs next, or how it ended.
pub(super) fn next(schedule: &Value, now: TimestampMs) -> String {
    match maybe_time(&schedule["nextRun"]) {
        Some(next) => format!("{} ({})", date(next), distance(next, now)),
        None => reason(schedule),
    }
}

/// Why it ended, or that it did.
pub(super) fn reason(schedule: &Value) -> String {
    match &schedule["end"]["reason"] {
        Value::Null => "-".to_owned(),
        reason => text(reason),
    }
}

/// An amount in an answer.
pub(super) fn money(answer: &Value) -> String {
    wei(answer).map_or_else(|_| text(answer), |amount| coins(Wei(amount)))
}
