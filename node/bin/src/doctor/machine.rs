//! What this machine grants.

use super::Check;
use rustix::process::{Resource, getrlimit};
use std::{
    io::ErrorKind,
    net::{Ipv4Addr, TcpListener},
};

/// A node with a data directory and some hundred clients needs this many.
const FILES_MIN: u64 = 4_096;

/// Whether a node could listen on a port.
pub(super) fn port(port: u16) -> Check {
    match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
        Ok(_) => Check::well("port", format!("{port} is free")),
        Err(error) if error.kind() == ErrorKind::AddrInUse => Check::broken(
            "port",
            format!("{port} is in use"),
            format!("stop what listens there (`ss -ltnp | grep :{port}` names it), or choose another port"),
        ),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            Check::broken("port", format!("{port} is not for you"), "choose a port above 1023")
        }
        Err(error) => Check::broken("port", format!("{port}: {error}"), "choose another port"),
    }
}

/// Whether a node may open enough files.
pub(super) fn open_files() -> Check {
    match getrlimit(Resource::Nofile).maximum {
        Some(most) if most < FILES_MIN => Check::doubtful(
            "files",
            format!("at most {most} may be open"),
            format!(
                "raise the hard limit to {FILES_MIN} or more (LimitNOFILE of systemd, or /etc/security/limits.conf)"
            ),
        ),
        Some(most) => Check::well("files", format!("{most} may be open")),
        None => Check::well("files", "any number may be open"),
    }
}
