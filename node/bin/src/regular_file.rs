//! Reads files that someone else may have created: regular files only, up to a stated size.
//!
//! A path can name an endless device, or a FIFO that never opens. Both are refused before a byte is read.

use rustix::fs::OFlags;
use std::{
    fs::{File, FileType},
    io::{self, Read as _},
    os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

/// Largest genesis file: what a backup holds as one item.
pub(crate) const GENESIS_BYTES_MAX: u64 = 64 << 20;

/// Largest configuration: 256 peers and 256 followers take a tenth.
pub(crate) const CONFIG_BYTES_MAX: u64 = 1 << 20;

/// Largest file that a node writes for itself: a header with the certificate of 256 validators takes 20 kB.
pub(crate) const NOTE_BYTES_MAX: u64 = 1 << 20;

/// Largest file with a key: 64 digits, and what an editor may add.
pub(crate) const KEY_BYTES_MAX: u64 = 1 << 10;

/// Largest encrypted key: other programs add fields of their own.
pub(crate) const KEYSTORE_BYTES_MAX: u64 = 64 << 10;

/// Largest proof: above the largest answer of a node.
pub(crate) const PROOF_BYTES_MAX: u64 = 32 << 20;

/// Largest file with evidence. Two votes have less.
pub(crate) const EVIDENCE_BYTES_MAX: u64 = 4 << 10;

/// Largest file with a transaction to sign, or with its calls: in hexadecimal, and with room for spaces.
pub(crate) const TRANSACTION_BYTES_MAX: u64 = 1 << 20;

/// Largest file with a certificate chain, or with its key.
pub(crate) const CERTIFICATE_BYTES_MAX: u64 = 64 << 10;

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// The system refuses.
    #[error("cannot read {}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// A directory, a device, a FIFO or a socket.
    #[error("{} is a {kind}, expected a regular file", path.display())]
    NotRegular { path: PathBuf, kind: &'static str },
    /// Too large to be what is expected.
    #[error("{} has {bytes} bytes or more, at most {bytes_max} are read", path.display())]
    TooLarge { path: PathBuf, bytes: u64, bytes_max: u64 },
    /// Bytes that are not text.
    #[error("{} is not UTF-8 text", path.display())]
    NotText { path: PathBuf },
}

impl ReadError {
    /// Whether there is no such file.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

/// Opens a regular file for reading. Follows links: the caller named the path.
pub(crate) fn open(path: &Path) -> Result<File, ReadError> {
    open_with(path, File::options().read(true), OFlags::empty())
}

/// Opens a regular file that this program wrote before, for writing in place. Follows no link.
pub(crate) fn open_own(path: &Path) -> Result<File, ReadError> {
    open_with(path, File::options().write(true), OFlags::NOFOLLOW)
}

/// What a file holds.
pub(crate) fn read(path: &Path, bytes_max: u64) -> Result<Vec<u8>, ReadError> {
    read_opened(&open(path)?, path, bytes_max)
}

/// What a file of text holds.
pub(crate) fn read_text(path: &Path, bytes_max: u64) -> Result<String, ReadError> {
    String::from_utf8(read(path, bytes_max)?).map_err(|_| ReadError::NotText { path: path.to_owned() })
}

/// What an opened file holds.
pub(crate) fn read_opened(file: &File, path: &Path, bytes_max: u64) -> Result<Vec<u8>, ReadError> {
    let failed = |source| ReadError::Io { path: path.to_owned(), source };
    let too_large = |bytes| ReadError::TooLarge { path: path.to_owned(), bytes, bytes_max };
    let size = file.metadata().map_err(failed)?.len();
    if size > bytes_max {
        return Err(too_large(size));
    }
    let mut bytes = Vec::new();
    // One byte more than allowed: the file may grow while it is read.
    file.take(bytes_max + 1).read_to_end(&mut bytes).map_err(failed)?;
    let read = bytes.len() as u64;
    if read > bytes_max { Err(too_large(read)) } else { Ok(bytes) }
}

fn open_with(path: &Path, options: &mut std::fs::OpenOptions, flags: OFlags) -> Result<File, ReadError> {
    let failed = |source| ReadError::Io { path: path.to_owned(), source };
    // Opening a FIFO would wait for its other end.
    let flags = (flags | OFlags::NONBLOCK).bits().cast_signed();
    let file = options.custom_flags(flags).open(path).map_err(failed)?;
    let found = file.metadata().map_err(failed)?.file_type();
    if found.is_file() {
        Ok(file)
    } else {
        Err(ReadError::NotRegular { path: path.to_owned(), kind: describe(found) })
    }
}

fn describe(found: FileType) -> &'static str {
    if found.is_dir() {
        "directory"
    } else if found.is_fifo() {
        "FIFO"
    } else if found.is_socket() {
        "socket"
    } else {
        "device"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{FileType as Node, Mode, mknodat};
    use std::os::unix::{fs::symlink, net::UnixListener};

    #[test]
    fn both_sides_of_the_size() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(read(&path, 5).unwrap(), b"12345");
        let refused = read(&path, 4).unwrap_err().to_string();
        assert!(refused.ends_with("has 5 bytes or more, at most 4 are read"), "{refused}");
        std::fs::write(&path, [0xff]).unwrap();
        assert!(matches!(read_text(&path, 5), Err(ReadError::NotText { .. })));
    }

    /// `/proc` has regular files that claim to be empty: the bound counts what is read.
    #[test]
    fn a_file_that_understates_its_size_is_bounded() {
        let path = Path::new("/proc/self/maps");
        assert_eq!(std::fs::metadata(path).unwrap().len(), 0);
        assert!(matches!(read(path, 10), Err(ReadError::TooLarge { bytes: 11, bytes_max: 10, .. })));
    }

    #[test]
    fn only_regular_files_are_opened() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        mknodat(rustix::fs::CWD, path("fifo"), Node::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let _socket = UnixListener::bind(path("socket")).unwrap();
        symlink("/dev/zero", path("link")).unwrap();
        for (place, kind) in [
            (path("fifo"), "FIFO"),
            (directory.path().to_owned(), "directory"),
            (path("link"), "device"),
            ("/dev/zero".into(), "device"),
        ] {
            let refused = read(&place, 1 << 20).unwrap_err().to_string();
            assert!(refused.ends_with(&format!("is a {kind}, expected a regular file")), "{refused}");
        }
        assert!(read(&path("socket"), 1).is_err(), "sockets cannot be opened at all");
        assert!(read(&path("none"), 1).unwrap_err().is_missing());
    }

    #[test]
    fn own_files_are_not_written_through_links() {
        let directory = tempfile::tempdir().unwrap();
        let (target, link) = (directory.path().join("target"), directory.path().join("link"));
        std::fs::write(&target, "").unwrap();
        symlink(&target, &link).unwrap();
        assert!(open_own(&target).is_ok() && open(&link).is_ok());
        assert!(open_own(&link).is_err());
    }
}
