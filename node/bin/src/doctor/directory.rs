//! A node's data directory.

use super::Check;
use crate::private_file;
use rustix::fs::statvfs;
use std::{
    fs::{self, Metadata, TryLockError},
    io::ErrorKind,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::Path,
};

/// Less than this is used up soon.
const FREE_BYTES_LOW: u64 = 5 << 30;
/// With less than this a node may stop at any block.
const FREE_BYTES_MIN: u64 = 200 << 20;

/// Checks of the directory.
pub(super) fn checks(path: &Path) -> Vec<Check> {
    let shown = path.display();
    match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            vec![Check::doubtful(
                "directory",
                format!("{shown} does not exist"),
                "a node creates it at its first start; is the path right?",
            )]
        }
        Err(error) => {
            vec![Check::broken("directory", format!("{shown}: {error}"), "make it readable for you")]
        }
        Ok(found) if !found.is_dir() => {
            vec![Check::broken("directory", format!("{shown} is not a directory"), "choose another path")]
        }
        Ok(found) => vec![owner(path, &found), user(path), space(path)],
    }
}

fn owner(path: &Path, found: &Metadata) -> Check {
    let (shown, mode) = (path.display(), found.permissions().mode() & 0o777);
    if found.uid() != rustix::process::geteuid().as_raw() {
        let advice = format!("run as its owner, or: chown -R $(id -u) {shown}");
        return Check::broken("directory", format!("{shown} belongs to user {}", found.uid()), advice);
    }
    match mode & 0o077 {
        0 => Check::well("directory", format!("{shown} is yours alone")),
        _ => Check::doubtful(
            "directory",
            format!("others can enter {shown} (mode {mode:o})"),
            format!("chmod 700 {shown}"),
        ),
    }
}

/// Whether a node runs in it: it holds the lock. Where no chain was started there is none, and none is made.
fn user(path: &Path) -> Check {
    if !path.join("chain").is_dir() {
        return Check::well("chain", "none yet");
    }
    let lock = match private_file::open_lock(path, "lock") {
        Ok(lock) => lock,
        Err(error) => return Check::broken("chain", format!("{error:#}"), "mend what it names"),
    };
    match lock.try_lock() {
        Err(TryLockError::WouldBlock) => Check::well("chain", "in use by a running node"),
        Err(TryLockError::Error(error)) => {
            Check::broken("chain", format!("cannot lock it: {error}"), "use a local disk")
        }
        Ok(()) if path.join("copying").exists() && !path.join("floor").exists() => Check::doubtful(
            "chain",
            "a copy of the state was begun and not ended",
            "start its node again, which goes on",
        ),
        Ok(()) => Check::well("chain", "no node runs in it"),
    }
}

fn space(path: &Path) -> Check {
    let free = match statvfs(path) {
        Ok(found) => found.f_bavail.saturating_mul(found.f_frsize),
        Err(error) => return Check::doubtful("disk", error.to_string(), "look with df"),
    };
    let found = format!("{:.1} GiB free", free as f64 / (1u64 << 30) as f64);
    match free {
        free if free < FREE_BYTES_MIN => {
            Check::broken("disk", found, "make room: a node stops when it cannot write")
        }
        free if free < FREE_BYTES_LOW => {
            let advice =
                "make room, or keep less: --history of almanac dev, \"history\" and \"blocks\" of a node";
            Check::doubtful("disk", found, advice)
        }
        _ => Check::well("disk", found),
    }
}
