//! Where a validator listens: an IP address, or a name that is looked up each time it is dialled.

use commonware_p2p::{Address, Ingress};
use commonware_utils::Hostname;
use std::{
    fmt,
    net::{Ipv4Addr, SocketAddr},
    str::FromStr,
};

/// The address of a validator, as people write it: `10.0.0.5:30300`, `[::1]:30300`, `validator.example:30300`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerAddress(Ingress);

/// Why a text is not the address of a peer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{given:?} is not an address of a peer: write IP:PORT or NAME:PORT, such as validator.example:30300")]
pub struct PeerAddressError {
    /// The text.
    pub given: String,
}

impl PeerAddress {
    /// The port on which it listens.
    pub fn port(&self) -> u16 {
        self.0.port()
    }

    /// As the transport takes it. Connections are accepted by key, from wherever they come, so the address that a name
    /// stands for now is of no interest there.
    pub(crate) fn to_transport(&self) -> Address {
        match &self.0 {
            Ingress::Socket(address) => Address::Symmetric(*address),
            ingress @ Ingress::Dns { .. } => {
                Address::Asymmetric { ingress: ingress.clone(), egress: (Ipv4Addr::UNSPECIFIED, 0).into() }
            }
        }
    }
}

impl From<SocketAddr> for PeerAddress {
    fn from(address: SocketAddr) -> Self {
        Self(Ingress::Socket(address))
    }
}

impl FromStr for PeerAddress {
    type Err = PeerAddressError;

    fn from_str(text: &str) -> Result<Self, PeerAddressError> {
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Ok(address.into());
        }
        named(text).map(Self).ok_or_else(|| PeerAddressError { given: text.chars().take(300).collect() })
    }
}

fn named(text: &str) -> Option<Ingress> {
    let (name, port) = text.rsplit_once(':')?;
    let port = port.parse().ok().filter(|port| *port > 0)?;
    // No top-level domain is a number: this is an IP address with a typing error.
    let is_number = name.rsplit('.').next()?.bytes().all(|byte| byte.is_ascii_digit());
    let host = Hostname::new(name).ok().filter(|_| !is_number)?;
    Some(Ingress::Dns { host, port })
}

impl fmt::Display for PeerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Ingress::Socket(address) => address.fmt(f),
            Ingress::Dns { host, port } => write!(f, "{}:{port}", host.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_names_with_a_port() {
        for text in
            ["127.0.0.1:30300", "[::1]:30300", "localhost:1", "v0.example.org:65535", "3com.example:5"]
        {
            assert_eq!(text.parse::<PeerAddress>().unwrap().to_string(), text);
        }
        let named = "v0.example:30300".parse::<PeerAddress>().unwrap();
        assert!(matches!(named.to_transport().ingress(), Ingress::Dns { port: 30_300, .. }));
        for bad in [
            "",
            "v0.example",
            ":30300",
            "v0.example:",
            "v0.example:0",
            "v0.example:65536",
            "v0_.example:5",
            "-v0.example:5",
            "v0..example:5",
            "300.0.0.1:5",
            "http://v0.example:5",
            "::1:30300",
        ] {
            let error = bad.parse::<PeerAddress>().unwrap_err().to_string();
            assert!(error.contains("NAME:PORT"), "{bad}: {error}");
        }
    }
}
