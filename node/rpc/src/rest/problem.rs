//! Refusals: a status, and `{code, message, details}`.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use jsonrpsee::types::ErrorObject;
use serde_json::{Value, json, value::RawValue};

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    status: StatusCode,
    message: String,
    /// What JSON-RPC has in the error's `data`.
    details: Value,
    /// Verbs that the path takes, where another one was used.
    allowed: Option<&'static str>,
}

/// JSON-RPC's codes, and what they are in HTTP.
const STATUSES: [(i32, StatusCode); 5] = [
    (-32_602, StatusCode::BAD_REQUEST),
    (-32_000, StatusCode::UNPROCESSABLE_ENTITY),
    (-32_005, StatusCode::TOO_MANY_REQUESTS),
    (-32_008, StatusCode::TOO_MANY_REQUESTS),
    // A node that copies the state has no chain to ask about yet.
    (-32_601, StatusCode::SERVICE_UNAVAILABLE),
];

impl Problem {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), details: Value::Null, allowed: None }
    }

    /// A value that is not of the form that it must have.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// A verb that the path does not take.
    pub(crate) fn wrong_verb(allowed: &'static str) -> Self {
        let message = format!("this path takes {allowed}");
        Self { allowed: Some(allowed), ..Self::new(StatusCode::METHOD_NOT_ALLOWED, message) }
    }

    /// A method that said nothing, which none does.
    pub(crate) fn no_answer() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal error: the method gave no answer")
    }

    /// What a method answered instead of a result.
    pub(crate) fn of_method(error: &ErrorObject<'_>) -> Self {
        let status = STATUSES.iter().find(|(code, _)| *code == error.code()).map(|(_, status)| *status);
        let details = error.data().map(RawValue::get).and_then(|data| serde_json::from_str(data).ok());
        let problem = Self::new(status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), error.message());
        Self { details: details.unwrap_or_default(), ..problem }
    }

    pub(crate) fn into_response(self) -> Response<Full<Bytes>> {
        let Self { status, message, details, allowed } = self;
        let body = json!({ "code": word(status), "message": message, "details": details });
        let mut response = Response::new(Full::new(body.to_string().into()));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(allowed) = allowed {
            headers.insert(header::ALLOW, HeaderValue::from_static(allowed));
        }
        response
    }
}

/// `not_found` for 404 Not Found.
fn word(status: StatusCode) -> String {
    status.canonical_reason().unwrap_or("error").to_lowercase().replace([' ', '-'], "_")
}

/// A refusal of the server itself, which is plain text elsewhere, in the form that REST's have.
pub(crate) async fn in_json(response: Response<Full<Bytes>>) -> Response<Full<Bytes>> {
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    if !kind.is_some_and(|kind| kind.starts_with("text/plain")) {
        return response;
    }
    let (parts, body) = response.into_parts();
    let Ok(body) = body.collect().await;
    let text = String::from_utf8_lossy(&body.to_bytes()).trim_end().to_owned();
    let mut refusal = Problem::new(parts.status, text).into_response();
    // Such as the end of the connection. The kind of content is not the old one.
    for (name, value) in &parts.headers {
        refusal.headers_mut().entry(name).or_insert_with(|| value.clone());
    }
    refusal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_methods_have_a_status() {
        let status = |code| Problem::of_method(&ErrorObject::owned(code, "why", None::<()>)).status;
        assert_eq!(status(-32_602), 400);
        assert_eq!(status(-32_000), 422);
        assert_eq!(status(-32_005), 429);
        assert_eq!(status(-32_601), 503);
        assert_eq!(status(-32_603), 500);
        assert_eq!(status(12), 500);
        assert_eq!(word(StatusCode::BAD_REQUEST), "bad_request");
    }

    #[tokio::test]
    async fn the_servers_refusals_become_json_and_keep_their_headers() {
        let mut refusal = Response::new(Full::new(Bytes::from_static(b"too many requests\n")));
        *refusal.status_mut() = StatusCode::TOO_MANY_REQUESTS;
        refusal.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        refusal.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        let shown = in_json(refusal).await;
        assert_eq!(shown.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(shown.headers()[header::CONNECTION], "close");
        let Ok(body) = shown.into_body().collect().await;
        let body: Value = serde_json::from_slice(&body.to_bytes()).unwrap();
        assert_eq!(
            body,
            json!({ "code": "too_many_requests", "message": "too many requests", "details": null })
        );
    }
}
