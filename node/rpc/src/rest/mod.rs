//! REST at `/v1` (decision 0037, `docs/rest.md`): every route is a JSON-RPC call in another form.
//!
//! ```text
//! GET /v1/agenda?limit=5  ->  routes.rs  ->  {"method": "almanac_agenda", "params": [{"limit": 5}]}
//!                                                  |  the dispatcher, with all its limits
//! 200 {"entries": …}      <-  answer.rs  <-  {"result": {"entries": …}}
//! ```
//!
//! So there is no second query code, and no way around a limit. `openapi.rs` writes the OpenAPI document from the same
//! table of routes.

mod answer;
mod form;
mod openapi;
mod problem;
mod routes;

pub(crate) use answer::respond;
pub(crate) use openapi::document;
pub(crate) use problem::{Problem, in_json};
pub(crate) use routes::{Source, find, message};

/// Whether a path is REST's.
pub(crate) fn is_asked(path: &str) -> bool {
    path == "/v1" || path.starts_with("/v1/")
}
