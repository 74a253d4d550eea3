//! A socket in the data directory through which other commands talk to the node that uses it.
//!
//! A client sends one line; the node answers and closes. Anyone who can open the file may use it: the directory belongs
//! to its owner.

use crate::{backup::BackupWriter, chain};
use almanac_index::Index;
use almanac_primitives::Genesis;
use almanac_state::BlockArchive;
use anyhow::{Context as _, ensure};
use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    os::unix::{
        fs::PermissionsExt as _,
        net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::runtime::Handle;

/// The one request so far.
const EXPORT: &str = "export";

/// How long a client may take to say what it wants, or to take in the next part of an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a running node backs up from.
#[derive(Clone)]
pub(crate) struct BackupSource {
    index: Arc<Index>,
    archive: Arc<dyn BlockArchive>,
    /// Where the archive is read.
    runtime: Handle,
}

impl BackupSource {
    /// Called on the runtime of the archive.
    pub(crate) fn new(index: Arc<Index>, archive: Arc<dyn BlockArchive>) -> Self {
        Self { index, archive, runtime: Handle::current() }
    }
}

/// Serves a directory's socket until it is dropped.
pub(crate) struct Control {
    path: PathBuf,
}

impl Control {
    /// Listens in `directory`, whose lock the caller holds.
    pub(crate) fn serve(directory: &Path, genesis: Genesis, source: BackupSource) -> anyhow::Result<Self> {
        let path = socket(directory);
        // Whatever is there was left by a node that is gone: we hold the lock.
        let _ = fs::remove_file(&path);
        let listener =
            UnixListener::bind(&path).with_context(|| format!("cannot listen on {}", path.display()))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        let thread = std::thread::Builder::new().name("control".to_owned());
        thread.spawn(move || {
            for stream in listener.incoming() {
                // One at a time: requests are rare and large, and none may crowd out the node.
                let Ok(stream) = stream else { return };
                if let Err(error) = answer(&stream, &genesis, &source) {
                    tracing::warn!("a request on the control socket failed: {error:#}");
                }
            }
        })?;
        Ok(Self { path })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn socket(directory: &Path) -> PathBuf {
    directory.join("control.sock")
}

fn answer(stream: &UnixStream, genesis: &Genesis, source: &BackupSource) -> anyhow::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut request = String::new();
    BufReader::new(stream).take(64).read_line(&mut request)?;
    ensure!(request.trim_end() == EXPORT, "unknown request {request:?}");
    // The chain up to here; blocks that come meanwhile are left for the next backup.
    let height = source.index.tip().block.header.number;
    let archive = &*source.archive;
    let count = source.runtime.block_on(chain::last_signed(archive, genesis, height))?;
    let mut out = BackupWriter::begin(stream, genesis, count)?;
    for number in 1..=count {
        out.block(&source.runtime.block_on(chain::archived(archive, number))?)?;
    }
    out.finish()
}

/// Asks the node that uses `directory` for a backup and writes it to `out`.
pub(crate) fn request_export(directory: &Path, out: &mut impl std::io::Write) -> anyhow::Result<u64> {
    let path = socket(directory);
    let mut stream = UnixStream::connect(&path).with_context(|| {
        format!("{} is in use, but no node answers on {}", directory.display(), path.display())
    })?;
    stream.set_read_timeout(Some(PATIENCE))?;
    writeln!(stream, "{EXPORT}")?;
    Ok(std::io::copy(&mut stream, out)?)
}
