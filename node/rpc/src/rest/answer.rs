//! What a method answered, as an HTTP response. The result is not copied: the response is a part of the message.

use super::{problem::Problem, routes::Route};
use crate::dispatch;
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::Full;
use jsonrpsee::types::ErrorObject;
use serde::Deserialize;
use serde_json::value::RawValue;

/// A message of JSON-RPC, as far as it matters here.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<ErrorObject<'a>>,
}

/// Bytes on their way out. What they hold is given back when the socket has taken them.
struct Sent<B> {
    answer: dispatch::Answer,
    _busy: B,
}

impl<B> AsRef<[u8]> for Sent<B> {
    fn as_ref(&self) -> &[u8] {
        self.answer.json.as_bytes()
    }
}

/// The response of a route whose method answered this. `busy` is dropped when the socket has taken it.
pub(crate) fn respond(
    route: &Route,
    answer: dispatch::Answer,
    busy: impl Send + 'static,
) -> Result<Response<Full<Bytes>>, Problem> {
    let whole = Bytes::from_owner(Sent { answer, _busy: busy });
    let message: Message<'_> = serde_json::from_slice(&whole).map_err(|_| Problem::no_answer())?;
    if let Some(error) = &message.error {
        return Err(Problem::of_method(error));
    }
    // `null`, which serde reads as nothing too.
    let Some(result) = message.result.map(RawValue::get).filter(|result| *result != "null") else {
        return Err(Problem::new(StatusCode::NOT_FOUND, "not found: this node knows nothing of that name"));
    };
    let body = match route.wrapped_in {
        // Small.
        Some(name) => Bytes::from(format!("{{\"{name}\":{result}}}")),
        None => whole.slice_ref(result.as_bytes()),
    };
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = route.status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}
