//! Files that are part of the binary, the explorer's: what a browser is told about them.
//!
//! A browser may load nothing but these files, run no script that is not one of them, and talk to nobody but this node.
//! So a name or an error text from the chain, which anybody may write, can do nothing but be shown.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use http_body_util::Full;

/// A file of the explorer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaticFile {
    /// Where it is served.
    pub path: &'static str,
    /// Its content type.
    pub kind: &'static str,
    /// Its content.
    pub bytes: &'static [u8],
    /// The same with gzip, where that is shorter.
    pub gzip: Option<&'static [u8]>,
    /// Names this content.
    pub tag: &'static str,
    /// Whether its path changes with its content, so that it need never be asked for again.
    pub is_immutable: bool,
}

/// What a page of the explorer may do. Svelte makes its templates under a policy of that name; nothing else may turn text
/// into markup.
pub const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types svelte-trusted-html";

const HEADERS: [(HeaderName, &str); 4] = [
    (header::CONTENT_SECURITY_POLICY, CONTENT_POLICY),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

impl StaticFile {
    /// The answer to a GET or HEAD. Content is borrowed from the binary, so an answer takes no memory of its own.
    /// `busy` is dropped when the socket has taken it.
    pub(crate) fn answer(
        &self,
        method: &Method,
        request: &HeaderMap,
        busy: impl Send + 'static,
    ) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::default());
        let headers = response.headers_mut();
        for (name, value) in HEADERS {
            headers.insert(name, HeaderValue::from_static(value));
        }
        let caching = if self.is_immutable { "public, max-age=31536000, immutable" } else { "no-cache" };
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(caching));
        headers.insert(header::ETAG, HeaderValue::from_static(self.tag));
        headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        if has(request, header::IF_NONE_MATCH, |tag| tag == "*" || tag.trim_start_matches("W/") == self.tag) {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            return response;
        }
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.kind));
        let is_gzip_known = has(request, header::ACCEPT_ENCODING, |coding| {
            let mut parts = coding.split(';').map(str::trim);
            parts.next() == Some("gzip") && !parts.any(|weight| weight == "q=0")
        });
        let bytes = match self.gzip.filter(|_| is_gzip_known) {
            Some(gzip) => {
                headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
                gzip
            }
            None => self.bytes,
        };
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(bytes.len()));
        if *method != Method::HEAD {
            *response.body_mut() = Full::new(Bytes::from_owner(Sent { bytes, _busy: busy }));
        }
        response
    }
}

/// Content on its way out.
struct Sent<B> {
    bytes: &'static [u8],
    _busy: B,
}

impl<B> AsRef<[u8]> for Sent<B> {
    fn as_ref(&self) -> &[u8] {
        self.bytes
    }
}

/// Whether one of the values in a list of them is meant.
fn has(headers: &HeaderMap, name: HeaderName, is_meant: impl Fn(&str) -> bool) -> bool {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|value| is_meant(value.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: StaticFile = StaticFile {
        path: "/app.js",
        kind: "text/javascript; charset=utf-8",
        bytes: b"plain",
        gzip: Some(b"zip"),
        tag: "\"7a\"",
        is_immutable: true,
    };

    fn asked(headers: &[(HeaderName, &str)]) -> Response<Full<Bytes>> {
        let headers = headers.iter().map(|(name, value)| (name.clone(), value.parse().unwrap()));
        FILE.answer(&Method::GET, &headers.collect(), ())
    }

    #[test]
    fn gzip_goes_to_those_who_know_it() {
        for (accepted, is_zipped) in [
            ("gzip, deflate, br", true),
            ("br;q=1.0, gzip;q=0.5", true),
            ("gzip;q=0", false),
            ("identity", false),
        ] {
            let response = asked(&[(header::ACCEPT_ENCODING, accepted)]);
            assert_eq!(response.headers().contains_key(header::CONTENT_ENCODING), is_zipped, "{accepted}");
            assert_eq!(response.headers()[header::CONTENT_LENGTH], if is_zipped { "3" } else { "5" });
        }
        assert!(!asked(&[]).headers().contains_key(header::CONTENT_ENCODING));
    }

    #[test]
    fn what_is_known_is_not_sent_again() {
        for tag in ["\"7a\"", "W/\"7a\"", "\"00\", \"7a\"", "*"] {
            assert_eq!(asked(&[(header::IF_NONE_MATCH, tag)]).status(), StatusCode::NOT_MODIFIED, "{tag}");
        }
        assert_eq!(asked(&[(header::IF_NONE_MATCH, "\"7b\"")]).status(), StatusCode::OK);
    }
}
