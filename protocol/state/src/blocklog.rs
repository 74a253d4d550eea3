//! The blocks of a chain in one append-only file, so that a chain kept in memory survives a restart.
//!
//! ```text
//! file   = magic (8) ‖ version (u32) ‖ record*
//! record = length (u32) ‖ keccak-256 of the bytes (32) ‖ check (8) ‖ bytes of an encoded block
//! ```
//!
//! Every append is on disk before the next begins, so a crash can harm the last record only. Opening the file
//! cuts such a tail off and says so; damage anywhere before it is an error, because blocks that people have
//! seen would be lost.

mod record;
mod tail;

use self::{
    record::{Found, Records},
    tail::{Tail, TailError},
};
use almanac_primitives::{
    Block,
    block::body_bytes,
    codec::DecodeError,
    params::{BLOCK_BODY_BYTES_MAX, BLOCK_TRANSACTIONS_MAX},
};
use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, Read, Seek, Write},
    path::{Path, PathBuf},
};

const MAGIC: &[u8; 8] = b"ALMBLOCK";
const VERSION: u32 = 1;
const PREAMBLE_BYTES: usize = 8 + 4;

/// An open log. The file stays locked against other processes until this is dropped.
#[derive(Debug)]
pub struct BlockLog {
    path: PathBuf,
    tail: Tail<File>,
}

/// What opening a log found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// Blocks in the log.
    pub blocks: u64,
    /// Bytes of an append that a crash had cut short, which are no longer in the file.
    pub dropped_bytes: u64,
}

/// What can go wrong with a log of blocks.
#[derive(Debug, thiserror::Error)]
pub enum BlockLogError {
    /// The file system refused.
    #[error("block log {}: cannot {doing}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// Another process has it open.
    #[error(
        "block log {} is in use by another process; stop that one, or use another data directory",
        path.display()
    )]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The file is something else.
    #[error(
        "{} is not a block log: it does not begin with its magic bytes; it was left untouched",
        path.display()
    )]
    NotABlockLog {
        /// The file.
        path: PathBuf,
    },
    /// The file has a format that this build does not know.
    #[error(
        "block log {} has format version {given}, this build reads version {VERSION}; open it with the build \
         that wrote it, or move it away to begin a new chain",
        path.display()
    )]
    UnknownVersion {
        /// The file.
        path: PathBuf,
        /// The version found.
        given: u32,
    },
    /// A record has changed since it was written, and others follow it.
    #[error(
        "block log {} is damaged at byte {offset}, before its last record; restore it from a copy, or cut it \
         to {offset} bytes to give up that block and all after it",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where the bad record begins.
        offset: u64,
    },
    /// A record is as it was written, and yet not a block to this build.
    #[error(
        "block log {}: the record at byte {offset} is intact but holds no block: {reason}; open it with the \
         build that wrote it, or cut it to {offset} bytes to give up that block and all after it",
        path.display()
    )]
    NotABlock {
        /// The file.
        path: PathBuf,
        /// Where the record begins.
        offset: u64,
        /// What the decoder said.
        reason: DecodeError,
    },
    /// The block is larger than blocks may be; reading it back would fail.
    #[error(
        "block {number} has {transactions} transactions in {bytes} bytes, at most {BLOCK_TRANSACTIONS_MAX} in \
         {BLOCK_BODY_BYTES_MAX} bytes are allowed"
    )]
    TooLarge {
        /// Its height.
        number: u64,
        /// Its transactions.
        transactions: usize,
        /// Size of its body.
        bytes: usize,
    },
    /// An earlier append failed so that what is on disk is unknown.
    #[error(
        "block log {} takes no more blocks: an earlier append failed and could not be undone for certain; \
         open it again",
        path.display()
    )]
    Stopped {
        /// The file.
        path: PathBuf,
    },
}

impl BlockLog {
    /// Opens a log, or begins one where there is no file. Every record is checked.
    pub fn open(path: &Path) -> Result<(Self, Recovery), BlockLogError> {
        let failed = |doing| move |source| BlockLogError::Io { path: path.to_owned(), doing, source };
        let mut file = open_locked(path)?;
        let preamble_dropped = check_preamble(path, &mut file)?;
        let file_bytes = file.seek(io::SeekFrom::End(0)).map_err(failed("find its end"))?;

        let mut blocks = Blocks::new(path, &file, file_bytes);
        let count = blocks.by_ref().try_fold(0, |count: u64, block| block.map(|_| count + 1))?;
        let end = blocks.records.offset();
        if end < file_bytes {
            file.set_len(end).and_then(|()| file.sync_all()).map_err(failed("cut off its torn tail"))?;
        }
        let recovery = Recovery { blocks: count, dropped_bytes: preamble_dropped + (file_bytes - end) };
        Ok((Self { path: path.to_owned(), tail: Tail::new(file, end) }, recovery))
    }

    /// Appends a block. It is on disk when this returns.
    ///
    /// After an error the log is as it was before, or takes no more blocks ([`BlockLogError::Stopped`]).
    pub fn append(&mut self, block: &Block) -> Result<(), BlockLogError> {
        check_size(block)?;
        let record = record::encode(self.tail.end(), &block.encode());
        let path = self.path.clone();
        self.tail.append(&record).map_err(|error| match error {
            TailError::Write(source) => BlockLogError::Io { path, doing: "append a block", source },
            TailError::Sync(source) => BlockLogError::Io { path, doing: "make a block durable", source },
            TailError::Stopped => BlockLogError::Stopped { path },
        })
    }

    /// Reads the blocks again, from the first, one at a time.
    pub fn blocks(&mut self) -> impl Iterator<Item = Result<Block, BlockLogError>> {
        // Nothing in an open log is torn: what does not check has changed on disk since.
        let end = self.tail.end();
        let mut blocks = Blocks::new(&self.path, self.tail.storage(), end);
        blocks.is_tail_whole = true;
        blocks
    }
}

fn open_locked(path: &Path) -> Result<File, BlockLogError> {
    let failed = |doing| move |source| BlockLogError::Io { path: path.to_owned(), doing, source };
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(failed("open it"))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(BlockLogError::InUse { path: path.to_owned() }),
        Err(TryLockError::Error(source)) => Err(failed("lock it")(source)),
    }
}

/// Checks how the file begins, and begins it where a crash has kept that from being done. Returns the bytes
/// of such a beginning.
fn check_preamble(path: &Path, file: &mut File) -> Result<u64, BlockLogError> {
    let failed = |doing| move |source| BlockLogError::Io { path: path.to_owned(), doing, source };
    let expected = preamble();
    let mut found = Vec::with_capacity(PREAMBLE_BYTES);
    (&*file).take(PREAMBLE_BYTES as u64).read_to_end(&mut found).map_err(failed("read it"))?;
    if found.len() < PREAMBLE_BYTES && expected.starts_with(&found) {
        begin(path, file, &expected).map_err(failed("begin it"))?;
        return Ok(found.len() as u64);
    }
    let Some((magic, version)) = found.split_first_chunk() else {
        return Err(BlockLogError::NotABlockLog { path: path.to_owned() });
    };
    match version.try_into().map(u32::from_be_bytes) {
        Ok(VERSION) if magic == MAGIC => Ok(0),
        Ok(given) if magic == MAGIC => Err(BlockLogError::UnknownVersion { path: path.to_owned(), given }),
        _ => Err(BlockLogError::NotABlockLog { path: path.to_owned() }),
    }
}

fn preamble() -> [u8; PREAMBLE_BYTES] {
    let mut bytes = [0; PREAMBLE_BYTES];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..].copy_from_slice(&VERSION.to_be_bytes());
    bytes
}

fn begin(path: &Path, file: &mut File, preamble: &[u8]) -> io::Result<()> {
    file.rewind()?;
    file.write_all(preamble)?;
    file.sync_all()?;
    sync_folder(path)
}

/// A new file survives a crash only once its folder is on disk as well.
#[cfg(unix)]
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

/// Elsewhere folders cannot be opened as files, and the system sees to it.
#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

fn check_size(block: &Block) -> Result<(), BlockLogError> {
    let transactions = block.transactions.len();
    let bytes = block.transactions.iter().map(body_bytes).sum();
    if transactions > BLOCK_TRANSACTIONS_MAX || bytes > BLOCK_BODY_BYTES_MAX {
        return Err(BlockLogError::TooLarge { number: block.header.number, transactions, bytes });
    }
    Ok(())
}

/// Decodes record after record. Stops for good at the end, at a torn tail and at the first error.
struct Blocks<'a> {
    path: &'a Path,
    records: Records<&'a File>,
    is_tail_whole: bool,
    is_done: bool,
}

impl<'a> Blocks<'a> {
    fn new(path: &'a Path, file: &'a File, end: u64) -> Self {
        let records = Records::new(file, PREAMBLE_BYTES as u64, end);
        Self { path, records, is_tail_whole: false, is_done: false }
    }

    fn read(&mut self) -> Result<Option<Block>, BlockLogError> {
        let path = || self.path.to_owned();
        let offset = self.records.offset();
        let found = self.records.next().map_err(|source| BlockLogError::Io {
            path: path(),
            doing: "read a block",
            source,
        })?;
        match found {
            Found::Record(bytes) => Block::decode(&bytes)
                .map(Some)
                .map_err(|reason| BlockLogError::NotABlock { path: path(), offset, reason }),
            Found::End => Ok(None),
            Found::TornTail if !self.is_tail_whole => Ok(None),
            Found::TornTail | Found::Damage => Err(BlockLogError::Damaged { path: path(), offset }),
        }
    }
}

impl Iterator for Blocks<'_> {
    type Item = Result<Block, BlockLogError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let block = self.read().transpose();
        self.is_done = !matches!(block, Some(Ok(_)));
        block
    }
}
