//! Blocks, their receipts and certificates on disk, by height.
//!
//! Block n is item n − 1 of one append-only journal, which begins at block 1, or behind the block whose state was
//! copied from peers. A block is in the archive before its state is committed, so
//! after a crash the archive may be ahead of the state, never behind it; what is ahead is executed again.

use crate::qmdb::QmdbConfig;
use alloy_primitives::Bytes;
use almanac_primitives::{
    Block, Receipt,
    codec::{DecodeError, Reader, Writer},
};
use commonware_codec::{Buf, EncodeSize, Error, RangeCfg, Read, Write};
use commonware_runtime::BufMut;
use commonware_storage::{
    Context,
    journal::{
        self,
        contiguous::{Contiguous as _, variable::Journal},
    },
};
use commonware_utils::sync::AsyncRwLock;
use std::{future::Future, pin::Pin};

const VERSION: u8 = 1;

/// Largest record: the largest body, and the receipts of as many logs as the largest gas limits can pay for.
const RECORD_BYTES_MAX: usize = 256 << 20;

/// Keeps final blocks. The application appends to it before it commits the state.
pub trait BlockArchive: Send + Sync {
    /// Appends the block after the last one, with what a quorum signed where there are validators. It is on disk
    /// when this returns.
    fn append<'a>(
        &'a self,
        block: &'a Block,
        receipts: &'a [Receipt],
        certificate: Option<&'a [u8]>,
    ) -> Pin<Box<dyn Future<Output = Result<(), ArchiveError>> + Send + 'a>>;
}

/// What can go wrong with an archive.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveError {
    /// The disk failed, or the files are damaged.
    #[error(
        "the blocks cannot be {doing}: {reason} (in {partition}_data or {partition}_offsets-*); restore a backup, or \
         remove the chain and sync again"
    )]
    Journal {
        /// Where they are.
        partition: String,
        /// What was being done.
        doing: &'static str,
        /// What the journal said.
        reason: String,
    },
    /// A record that cannot be read.
    #[error(
        "block {height} is damaged: {error} (in {partition}_data); restore a backup, or remove the chain and \
         sync again"
    )]
    Damaged {
        /// Where it is.
        partition: String,
        /// Its height.
        height: u64,
        /// What is wrong with it.
        error: DecodeError,
    },
    /// The first blocks are gone, or there are some that were never copied.
    #[error(
        "the first block is {}, it should be {first} (in {partition}_data); restore a backup, or remove the chain \
         and sync again", missing + 1
    )]
    Incomplete {
        /// Where they should be.
        partition: String,
        /// Height of the first block that should be there.
        first: u64,
        /// Height of the last one that is not.
        missing: u64,
    },
    /// Another block than the one that belongs there.
    #[error(
        "block {found} is where block {height} should be (in {partition}_data); restore a backup, or remove the \
         chain and sync again"
    )]
    Misplaced {
        /// Where it is.
        partition: String,
        /// The height that was asked for.
        height: u64,
        /// The height of the block that is there.
        found: u64,
    },
    /// A block that is not the next one.
    #[error("block {given} cannot be appended: the archive in {partition:?} is at height {height}")]
    NotNext {
        /// Where the archive is.
        partition: String,
        /// Height of the archive.
        height: u64,
        /// The block's height.
        given: u64,
    },
    /// A block that could be written and never be read again.
    #[error("block {height} takes {given} bytes with its receipts, at most {max} are allowed")]
    TooLarge {
        /// Its height.
        height: u64,
        /// Its size.
        given: usize,
        /// The largest allowed.
        max: usize,
    },
    /// An earlier failure has closed the archive.
    #[error("the archive is closed after an earlier failure: start again")]
    Closed,
}

/// A final block with everything that belongs to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchivedBlock {
    /// The block.
    pub block: Block,
    /// The receipts of everything that ran in it.
    pub receipts: Vec<Receipt>,
    /// What a quorum of validators signed, where there are validators.
    pub certificate: Option<Bytes>,
}

/// The archive on disk.
///
/// An append that fails, or is dropped before it has ended, closes it: what was appended before is safe.
pub struct BlockJournal<E: Context> {
    /// `None` once an append has failed.
    journal: AsyncRwLock<Option<Journal<E, Record>>>,
    partition: String,
}

impl<E: Context> BlockJournal<E> {
    /// Opens the archive of a chain that began at its genesis, at its last durable block.
    pub async fn open(context: E, config: &QmdbConfig) -> Result<Self, ArchiveError> {
        Self::open_after(context, config, 0).await
    }

    /// Opens the archive of a chain whose first block is the one after `floor`, at its last durable block.
    pub async fn open_after(context: E, config: &QmdbConfig, floor: u64) -> Result<Self, ArchiveError> {
        let journal = Journal::init(context, config.blocks()).await;
        Self::opened(config, journal, floor)
    }

    /// Opens the archive and forgets the blocks above `height`.
    pub async fn open_at(context: E, config: &QmdbConfig, height: u64) -> Result<Self, ArchiveError> {
        let journal = Journal::init_at_most(context, config.blocks(), height).await;
        Self::opened(config, journal, 0)
    }

    /// An empty archive whose first block will be the one after `floor`. What was there is removed.
    pub async fn begin_after(context: E, config: &QmdbConfig, floor: u64) -> Result<Self, ArchiveError> {
        let journal = Journal::init_at_size(context, config.blocks(), floor).await;
        Self::opened(config, journal, floor)
    }

    fn opened(
        config: &QmdbConfig,
        journal: Result<Journal<E, Record>, journal::Error>,
        floor: u64,
    ) -> Result<Self, ArchiveError> {
        let partition = config.blocks().partition;
        let journal = journal.map_err(|error| failed(&partition, "opened", &error))?;
        // The journal takes a missing first file for one that was pruned, and blocks are never pruned.
        let (first, missing) = (floor + 1, journal.bounds().start);
        if missing != floor {
            return Err(ArchiveError::Incomplete { partition, first, missing });
        }
        Ok(Self { journal: AsyncRwLock::new(Some(journal)), partition })
    }

    /// Height of the last block, or of the one before the first where there is none.
    pub async fn height(&self) -> Result<u64, ArchiveError> {
        let guard = self.journal.read().await;
        Ok(guard.as_ref().ok_or(ArchiveError::Closed)?.size())
    }

    /// The block at a height, or `None` where there is none.
    pub async fn get(&self, height: u64) -> Result<Option<ArchivedBlock>, ArchiveError> {
        let guard = self.journal.read().await;
        let journal = guard.as_ref().ok_or(ArchiveError::Closed)?;
        let Some(position) = height.checked_sub(1).filter(|position| journal.bounds().contains(position))
        else {
            return Ok(None);
        };
        let record = journal.read(position).await.map_err(|error| failed(&self.partition, "read", &error))?;
        let partition = || self.partition.clone();
        let archived = decode(&record.0).map_err(|error| ArchiveError::Damaged {
            partition: partition(),
            height,
            error,
        })?;
        let found = archived.block.header.number;
        if found != height {
            return Err(ArchiveError::Misplaced { partition: partition(), height, found });
        }
        Ok(Some(archived))
    }

    async fn append_record(
        &self,
        block: &Block,
        receipts: &[Receipt],
        certificate: Option<&[u8]>,
    ) -> Result<(), ArchiveError> {
        let record = Record(encode(block, receipts, certificate));
        let given = block.header.number;
        check_size(given, record.0.len())?;
        let mut guard = self.journal.write().await;
        let height = guard.as_ref().ok_or(ArchiveError::Closed)?.size();
        if height.checked_add(1) != Some(given) {
            return Err(ArchiveError::NotNext { partition: self.partition.clone(), height, given });
        }
        let journal = guard.take().ok_or(ArchiveError::Closed)?;
        let written = write(journal, &record).await;
        *guard = Some(written.map_err(|error| failed(&self.partition, "written", &error))?);
        Ok(())
    }
}

impl<E: Context> BlockArchive for BlockJournal<E> {
    fn append<'a>(
        &'a self,
        block: &'a Block,
        receipts: &'a [Receipt],
        certificate: Option<&'a [u8]>,
    ) -> Pin<Box<dyn Future<Output = Result<(), ArchiveError>> + Send + 'a>> {
        Box::pin(self.append_record(block, receipts, certificate))
    }
}

fn check_size(height: u64, given: usize) -> Result<(), ArchiveError> {
    if given > RECORD_BYTES_MAX {
        return Err(ArchiveError::TooLarge { height, given, max: RECORD_BYTES_MAX });
    }
    Ok(())
}

/// Appends a record and waits until it is durable, with a note of how much is: a block below that point that
/// cannot be read is an error, not the end of a shorter archive.
async fn write<E: Context>(
    journal: Journal<E, Record>,
    record: &Record,
) -> Result<Journal<E, Record>, journal::Error> {
    let (journal, _) = journal.append(record).await?;
    journal.sync().await
}

fn failed(partition: &str, doing: &'static str, error: &journal::Error) -> ArchiveError {
    ArchiveError::Journal { partition: partition.to_owned(), doing, reason: error.to_string() }
}

/// An encoded block with its receipts and certificate.
#[derive(Clone, Debug)]
struct Record(Vec<u8>);

impl Write for Record {
    fn write(&self, out: &mut impl BufMut) {
        self.0.write(out);
    }
}

impl EncodeSize for Record {
    fn encode_size(&self) -> usize {
        self.0.encode_size()
    }
}

impl Read for Record {
    type Cfg = ();

    fn read_cfg(input: &mut impl Buf, (): &()) -> Result<Self, Error> {
        Ok(Self(Vec::<u8>::read_cfg(input, &(RangeCfg::new(0..=RECORD_BYTES_MAX), ()))?))
    }
}

fn encode(block: &Block, receipts: &[Receipt], certificate: Option<&[u8]>) -> Vec<u8> {
    let mut out = Writer::versioned(VERSION, 1_024);
    out.bytes(&block.encode());
    out.count(receipts.len());
    for receipt in receipts {
        out.bytes(&receipt.encode());
    }
    out.u8(certificate.is_some().into());
    if let Some(certificate) = certificate {
        out.bytes(certificate);
    }
    out.finish()
}

fn decode(record: &[u8]) -> Result<ArchivedBlock, DecodeError> {
    let mut input = Reader::versioned(record, "archived block", VERSION)?;
    let block = Block::decode(&input.bytes("block", RECORD_BYTES_MAX)?)?;
    let count = input.count("receipts", record.len())?;
    let receipts = (0..count)
        .map(|_| Receipt::decode(&input.bytes("receipt", RECORD_BYTES_MAX)?))
        .collect::<Result<_, _>>()?;
    let certificate = match input.u8("certificate flag")? {
        0 => None,
        1 => Some(input.bytes("certificate", RECORD_BYTES_MAX)?),
        given => return Err(DecodeError::UnknownValue { what: "certificate flag", given: given.into() }),
    };
    input.finish("archived block")?;
    Ok(ArchivedBlock { block, receipts, certificate })
}

#[cfg(test)]
mod tests {
    use super::*;
    use almanac_primitives::Header;

    fn record(certificate: Option<&[u8]>) -> Vec<u8> {
        let header = Header { number: 7, ..Header::default() };
        encode(&Block { header, transactions: Vec::new() }, &[], certificate)
    }

    #[test]
    fn a_certificate_is_there_or_not_and_an_empty_one_is_there() {
        for certificate in [None, Some(&b""[..]), Some(&b"signed"[..])] {
            let decoded = decode(&record(certificate)).expect("just encoded");
            assert_eq!(decoded.certificate, certificate.map(Bytes::copy_from_slice));
            assert_eq!(decoded.block.header.number, 7);
        }
    }

    #[test]
    fn one_record_has_one_encoding() {
        let whole = record(Some(b"signed"));
        for length in 0..whole.len() {
            assert!(decode(&whole[..length]).is_err(), "the first {length} bytes");
        }
        let longer = [&whole[..], &[0]].concat();
        assert_eq!(decode(&longer), Err(DecodeError::TrailingBytes { what: "archived block", extra: 1 }));
        let mut flagged = record(None);
        *flagged.last_mut().expect("not empty") = 2;
        assert_eq!(decode(&flagged), Err(DecodeError::UnknownValue { what: "certificate flag", given: 2 }));
        let mut newer = whole;
        newer[0] = VERSION + 1;
        let (given, known) = (VERSION + 1, VERSION);
        assert_eq!(decode(&newer), Err(DecodeError::UnknownVersion { what: "archived block", given, known }));
    }

    #[test]
    fn a_record_may_have_the_largest_size_and_no_more() {
        assert_eq!(check_size(7, RECORD_BYTES_MAX), Ok(()));
        let (given, max) = (RECORD_BYTES_MAX + 1, RECORD_BYTES_MAX);
        assert_eq!(check_size(7, given), Err(ArchiveError::TooLarge { height: 7, given, max }));
    }
}
