//! Counts, times and logs every call.

use almanac_trace::printable;
use jsonrpsee::{MethodResponse, Methods};
use std::{collections::BTreeSet, time::Duration};

/// Most characters of a method's name in the log.
const NAME_CHARS_MAX: usize = 64;

/// What the meter knows.
pub(crate) struct Meter {
    /// Names that exist. Strangers choose the names they ask for, and each would be a new series.
    names: BTreeSet<&'static str>,
}

impl Meter {
    pub(crate) fn new(methods: &Methods) -> Self {
        Self { names: methods.method_names().collect() }
    }

    /// A call is over.
    pub(crate) fn finished(&self, name: &str, response: &MethodResponse, took: Duration) {
        let known = self.names.get(name).copied().unwrap_or("unknown");
        let outcome = if response.is_success() { "ok" } else { "error" };
        metrics::counter!("almanac_rpc_calls_total", "method" => known, "outcome" => outcome).increment(1);
        metrics::histogram!("almanac_rpc_seconds", "method" => known).record(took.as_secs_f64());
        let milliseconds = took.as_secs_f64() * 1e3;
        let shown = printable(name, NAME_CHARS_MAX);
        match response.as_error_code() {
            None => tracing::debug!(target: "rpc", "{shown} · {milliseconds:.1} ms"),
            Some(code) => tracing::info!(target: "rpc", "{shown} · error {code} · {}", message(response)),
        }
    }
}

/// The words of an error, for the log.
fn message(response: &MethodResponse) -> String {
    let answer: serde_json::Value = serde_json::from_str(response.as_json().get()).unwrap_or_default();
    let message = answer["error"]["message"].as_str().unwrap_or_default();
    printable(message, 200)
}
