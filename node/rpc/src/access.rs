//! Which web pages may call the node, and under which names.
//!
//! A browser sends a page's origin with every POST and every WebSocket, so a request with an origin that is not allowed
//! is refused before it is read. A page that resolves its own name to this machine (DNS rebinding) shows itself by the
//! `Host` header. Programs that are no browsers send no origin and pass. The node's own pages, the explorer, may call it
//! under every name that was given to the node.

use http::{HeaderMap, Request, header};
use std::net::{IpAddr, Ipv6Addr};

/// What `--allow-origin` and `--allow-host` said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Pages from this machine and browser extensions may call: a developer's own.
    is_developer: bool,
    is_any_origin: bool,
    origins: Vec<String>,
    is_any_host: bool,
    hosts: Vec<String>,
}

/// Schemes of browser extensions. A page cannot have them.
const EXTENSIONS: [&str; 3] = ["chrome-extension://", "moz-extension://", "safari-web-extension://"];

/// Stands for every origin, or every host.
const ANY: &str = "*";

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AccessError {
    #[error("web pages of the origin {0:?} may not call this node; --allow-origin permits them")]
    Origin(String),
    #[error(
        "the host name {0:?} is not served; use an IP address or localhost, or start the node with --allow-host"
    )]
    Host(String),
}

/// A flag that names no origin or host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccessFlagError {
    /// Not an origin.
    #[error("{0:?} is not an origin: write https://app.example, without a path, or * for all")]
    Origin(String),
    /// Not a host name.
    #[error("{0:?} is not a host name: write node.example, without scheme, port or path, or * for all")]
    Host(String),
}

impl Access {
    /// Pages from this machine, browser extensions, and the named origins may call.
    pub fn developer() -> Self {
        Self { is_developer: true, ..Self::default() }
    }

    /// No page may call, except from the named origins.
    pub fn node() -> Self {
        Self::default()
    }

    /// Lets pages of these origins call as well.
    pub fn with_origins(mut self, origins: &[String]) -> Result<Self, AccessFlagError> {
        for given in origins {
            if given == ANY {
                self.is_any_origin = true;
                continue;
            }
            let origin = given.trim_end_matches('/').to_ascii_lowercase();
            let (scheme, rest) = origin.split_once("://").unwrap_or_default();
            if scheme.is_empty() || rest.is_empty() || rest.contains(['/', '?', '#', '@', ' ', '*']) {
                return Err(AccessFlagError::Origin(given.clone()));
            }
            self.origins.push(origin);
        }
        Ok(self)
    }

    /// Serves these host names as well.
    pub fn with_hosts(mut self, hosts: &[String]) -> Result<Self, AccessFlagError> {
        for given in hosts {
            if given == ANY {
                self.is_any_host = true;
                continue;
            }
            if given.is_empty() || given.contains(['/', ':', '?', '#', '@', ' ', '*']) {
                return Err(AccessFlagError::Host(given.clone()));
            }
            self.hosts.push(given.trim_end_matches('.').to_ascii_lowercase());
        }
        Ok(self)
    }

    /// Whether every page on the web may call.
    pub fn is_open(&self) -> bool {
        self.is_any_origin
    }

    /// Checks the host and the origin of a request.
    pub(crate) fn check<B>(&self, request: &Request<B>) -> Result<(), AccessError> {
        let header = |name| texts(request.headers(), name);
        let hosts: Vec<String> = header(header::HOST)
            .chain(request.uri().authority().map(|named| named.as_str().to_owned()))
            .collect();
        for host in &hosts {
            if !self.allows_host(host) {
                return Err(AccessError::Host(shown(host)));
            }
        }
        for origin in header(header::ORIGIN) {
            if !self.allows_origin(&origin) && !self.is_own(&origin, &hosts) {
                return Err(AccessError::Origin(shown(&origin)));
            }
        }
        Ok(())
    }

    fn allows_origin(&self, origin: &str) -> bool {
        let origin = origin.to_ascii_lowercase();
        let is_own = || is_local(&origin) || EXTENSIONS.iter().any(|scheme| origin.starts_with(scheme));
        self.is_any_origin || (self.is_developer && is_own()) || self.origins.contains(&origin)
    }

    fn allows_host(&self, host: &str) -> bool {
        self.is_any_host || self.is_named(host)
    }

    /// An address needs no list: a page that rebinds a name has a name.
    fn is_named(&self, host: &str) -> bool {
        let name = without_port(host).trim_end_matches('.').to_ascii_lowercase();
        name == "localhost" || literal(&name).is_some() || self.hosts.contains(&name)
    }

    /// Whether a page came from this node. With `--allow-host '*'` that is not known: a page that rebinds its name
    /// sends the same name as its origin and as the host.
    fn is_own(&self, origin: &str, hosts: &[String]) -> bool {
        let Some((scheme, from)) = origin.split_once("://") else { return false };
        let is_same = |host: &String| self.is_named(host) && host.eq_ignore_ascii_case(from);
        matches!(scheme, "http" | "https") && !hosts.is_empty() && hosts.iter().all(is_same)
    }
}

/// Every value of a header. One that is no text is as good as a wrong one.
fn texts(headers: &HeaderMap, name: header::HeaderName) -> impl Iterator<Item = String> {
    let values: Vec<String> = headers
        .get_all(name)
        .iter()
        .map(|value| value.to_str().map_or_else(|_| "?".to_owned(), str::to_owned))
        .collect();
    values.into_iter()
}

/// Whether a page comes from a server on this machine, at any port.
fn is_local(origin: &str) -> bool {
    let Some((scheme, host)) = origin.split_once("://") else { return false };
    let name = without_port(host);
    let is_loopback = || literal(name).is_some_and(|address| address.is_loopback());
    matches!(scheme, "http" | "https") && (name == "localhost" || is_loopback())
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|c| c.is_ascii_digit()) => name,
        _ => host,
    }
}

/// An address as it stands in a URL: IPv6 is in brackets.
fn literal(name: &str) -> Option<IpAddr> {
    let inner = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    match inner {
        Some(inner) => inner.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        None => name.parse().ok().filter(IpAddr::is_ipv4),
    }
}

/// What a stranger sent, short enough to repeat.
fn shown(text: &str) -> String {
    text.chars().take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(headers: &[(header::HeaderName, &str)]) -> Request<()> {
        let mut request = Request::new(());
        for (name, value) in headers {
            request.headers_mut().append(name, value.parse().unwrap());
        }
        request
    }

    fn allows(access: &Access, origin: &str) -> bool {
        access.check(&request(&[(header::ORIGIN, origin)])).is_ok()
    }

    const LOCAL: [&str; 9] = [
        "http://localhost",
        "http://localhost:3000",
        "https://localhost:3000",
        "http://127.0.0.1:8080",
        "http://127.9.9.9",
        "http://[::1]:5173",
        "chrome-extension://nkbihfbeogaeaoehlefnkodbefgpgknn",
        "moz-extension://7a3d",
        "safari-web-extension://7a3d",
    ];

    const FOREIGN: [&str; 12] = [
        "https://evil.example",
        "http://localhost.evil.example",
        "http://127.0.0.1.evil.example",
        "http://localhost@evil.example",
        "http://evil.example:3000",
        "http://192.168.1.7",
        "http://0.0.0.0",
        "ftp://localhost",
        "file://",
        "null",
        "",
        "https://evil.example/chrome-extension://",
    ];

    #[test]
    fn a_developer_allows_own_pages_and_a_node_none() {
        let (developer, node) = (Access::developer(), Access::node());
        for origin in LOCAL {
            assert!(allows(&developer, origin) && !allows(&node, origin), "{origin}");
        }
        for origin in FOREIGN {
            assert!(!allows(&developer, origin) && !allows(&node, origin), "{origin}");
        }
        assert!(node.check(&request(&[])).is_ok(), "programs send no origin");
        let two = request(&[(header::ORIGIN, LOCAL[0]), (header::ORIGIN, FOREIGN[0])]);
        assert!(developer.check(&two).is_err(), "every value counts");
    }

    #[test]
    fn named_origins_are_allowed() {
        let named = Access::node().with_origins(&["https://App.example/".to_owned()]).unwrap();
        assert!(allows(&named, "https://app.example") && !allows(&named, "https://app.example:1"));
        assert!(!allows(&named, "http://app.example") && !allows(&named, "https://sub.app.example"));
        let any = Access::node().with_origins(&["*".to_owned()]).unwrap();
        assert!(any.is_open() && !named.is_open());
        assert!(FOREIGN.iter().all(|origin| allows(&any, origin)));
        for wrong in ["app.example", "https://", "https://app.example/path", "https://*.example", ""] {
            assert!(Access::node().with_origins(&[wrong.to_owned()]).is_err(), "{wrong}");
        }
    }

    /// The explorer is a page of the node.
    #[test]
    fn a_page_may_call_the_node_that_it_came_from() {
        let named = Access::node().with_hosts(&["node.example".to_owned()]).unwrap();
        let any = Access::node().with_hosts(&["*".to_owned()]).unwrap();
        let allows = |access: &Access, host: &str, origin: &str| {
            access.check(&request(&[(header::HOST, host), (header::ORIGIN, origin)])).is_ok()
        };
        for (host, origin) in [
            ("127.0.0.1:8545", "http://127.0.0.1:8545"),
            ("10.0.0.7:8545", "http://10.0.0.7:8545"),
            ("[::1]:8545", "http://[::1]:8545"),
            ("LOCALHOST:8545", "http://localhost:8545"),
            ("node.example", "https://node.example"),
        ] {
            assert!(allows(&named, host, origin), "{origin}");
        }
        for (host, origin) in [
            ("127.0.0.1:8545", "http://127.0.0.1:8546"),
            ("127.0.0.1:8545", "http://127.0.0.1"),
            ("127.0.0.1:8545", "http://localhost:8545"),
            ("127.0.0.1:8545", "ftp://127.0.0.1:8545"),
            ("127.0.0.1:8545", "null"),
            ("127.0.0.1:8545", "http://evil.example"),
        ] {
            assert!(!allows(&named, host, origin), "{origin}");
        }
        assert!(!allows(&any, "evil.example", "http://evil.example"), "its name may be a rebound one");
        assert!(
            named.check(&request(&[(header::ORIGIN, "http://127.0.0.1:8545")])).is_err(),
            "no host is named"
        );
        let two =
            [(header::HOST, "127.0.0.1"), (header::HOST, "localhost"), (header::ORIGIN, "http://localhost")];
        assert!(named.check(&request(&two)).is_err(), "every value counts");
    }

    #[test]
    fn addresses_and_named_hosts_are_served() {
        let allows = |access: &Access, host: &str| access.check(&request(&[(header::HOST, host)])).is_ok();
        let access = Access::node();
        let known = [
            "localhost",
            "LOCALHOST:8545",
            "localhost.",
            "127.0.0.1:1",
            "[::1]:8545",
            "[::1]",
            "10.0.0.7:8545",
        ];
        for host in known {
            assert!(allows(&access, host), "{host}");
        }
        for host in
            ["evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil.example", ""]
        {
            assert!(!allows(&access, host), "{host}");
        }
        let named = Access::node().with_hosts(&["Node.example".to_owned()]).unwrap();
        assert!(allows(&named, "node.example:8545") && !allows(&named, "other.example"));
        let any = Access::node().with_hosts(&["*".to_owned()]).unwrap();
        assert!(allows(&any, "evil.example"));
        assert!(Access::node().with_hosts(&["http://node.example".to_owned()]).is_err());
        let absolute = Request::builder().uri("http://evil.example/").body(()).unwrap();
        assert!(access.check(&absolute).is_err(), "the target names a host too");
    }
}
