//! A socket in the data directory by which other commands talk to the node that is using it.
//!
//! A client sends one line; the node answers and closes. Who may open the file may use it: the directory is its
//! owner's.

use crate::backup;
use almanac_index::Index;
use almanac_primitives::Genesis;
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

/// The one request so far.
const EXPORT: &str = "export";

/// How long a client may take to say what it wants, or to take in the next part of an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Serves a directory's socket until it is dropped.
pub(crate) struct Control {
    path: PathBuf,
}

impl Control {
    /// Listens in `directory`, whose lock the caller holds.
    pub(crate) fn serve(directory: &Path, genesis: Genesis, index: Arc<Index>) -> anyhow::Result<Self> {
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
                if let Err(error) = answer(&stream, &genesis, &index) {
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

fn answer(stream: &UnixStream, genesis: &Genesis, index: &Index) -> anyhow::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut request = String::new();
    BufReader::new(stream).take(64).read_line(&mut request)?;
    ensure!(request.trim_end() == EXPORT, "unknown request {request:?}");
    // The chain up to here; blocks that come meanwhile are left for the next backup.
    let height = index.tip().block.header.number;
    backup::write(stream, genesis, blocks(index, height))
}

/// Blocks 1 to `height` of an index.
fn blocks(
    index: &Index,
    height: u64,
) -> impl ExactSizeIterator<Item = anyhow::Result<almanac_primitives::Block>> {
    let count = usize::try_from(height).expect("blocks in memory have indices");
    (0..count).map(|position| {
        let number = position as u64 + 1;
        let found = index.block(number)?.with_context(|| format!("block {number} is not in the index"))?;
        Ok((*found.block).clone())
    })
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
