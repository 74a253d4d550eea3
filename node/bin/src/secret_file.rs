//! Secrets: files that only their owner can read, such as 64 hexadecimal digits, and random bytes.

use crate::regular_file::{self, KEY_BYTES_MAX};
use alloy_primitives::B256;
use anyhow::{Context as _, ensure};
use std::{fs::File, io::Read as _, os::unix::fs::PermissionsExt as _, path::Path};

/// Reads a secret, and refuses a file that others could have read.
pub(crate) fn read(path: &Path) -> anyhow::Result<B256> {
    let text = read_text(path, KEY_BYTES_MAX)?;
    let secret = text.trim().parse().ok();
    secret.with_context(|| format!("{} has no key: expected 64 hexadecimal digits", path.display()))
}

/// The text of a file that only its owner can read.
pub(crate) fn read_text(path: &Path, bytes_max: u64) -> anyhow::Result<String> {
    let bytes = read_private(path, bytes_max)?;
    String::from_utf8(bytes).ok().with_context(|| format!("{} is not text in UTF-8", path.display()))
}

/// Reads a file, unless others could have read it.
pub(crate) fn read_private(path: &Path, bytes_max: u64) -> anyhow::Result<Vec<u8>> {
    // The same file is looked at and read, whatever the path names a moment later.
    let file = regular_file::open(path)?;
    let metadata = file.metadata().with_context(|| format!("cannot read {}", path.display()))?;
    let mode = metadata.permissions().mode() & 0o777;
    ensure!(
        mode & 0o077 == 0,
        "{} is readable by others (mode {mode:o}): run chmod 600, and replace what is in it if others use this machine",
        path.display()
    );
    Ok(regular_file::read_opened(&file, path, bytes_max)?)
}

/// Random bytes from the operating system.
pub(crate) fn random<const N: usize>() -> anyhow::Result<[u8; N]> {
    let mut bytes = [0; N];
    File::open("/dev/urandom")
        .and_then(|mut random| random.read_exact(&mut bytes))
        .context("the system gives no random bytes")?;
    Ok(bytes)
}
