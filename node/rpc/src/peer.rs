//! The address of a client, as limits count it.

use std::net::{IpAddr, Ipv6Addr};

/// An address: one of IPv4, or the first half of one of IPv6, since a household has all that share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Peer(IpAddr);

impl Peer {
    pub(crate) fn new(address: IpAddr) -> Self {
        match address.to_canonical() {
            v4 @ IpAddr::V4(_) => Self(v4),
            IpAddr::V6(v6) => {
                let [a, b, c, d, ..] = v6.segments();
                Self(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into())
            }
        }
    }
}

impl std::fmt::Display for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Who asks, for what a client keeps at the node. A WebSocket is a client. HTTP clients use several connections for
/// one conversation and can open more at will, so all from one address are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Client {
    pub(crate) peer: Peer,
    /// The number of its WebSocket, if it has one.
    pub(crate) websocket: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_of_ipv6_is_one_peer() {
        let peer = |text: &str| Peer::new(text.parse().unwrap());
        assert_eq!(peer("2001:db8:1:2::1"), peer("2001:db8:1:2:ffff::9"));
        assert_ne!(peer("2001:db8:1:2::1"), peer("2001:db8:1:3::1"));
        assert_eq!(peer("::ffff:10.0.0.7"), peer("10.0.0.7"));
        assert_ne!(peer("127.0.0.1"), peer("127.0.0.2"));
    }
}
