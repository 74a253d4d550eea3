//! Blocks with their receipts and certificates on disk, by height.
//!
//! Block n is item n − 1 of one append-only journal, which begins at block 1, or after the block whose state was
//! copied from peers. A block is in the archive before its state is committed, so after a crash the archive may be
//! ahead of the state, never behind it; blocks that are ahead are executed again.
//!
//! Old blocks can be pruned, one file at a time. The archive first records how far, so that a file that is missing for
//! another reason is still an error.

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
    metadata::{self, Metadata},
};
use commonware_utils::{sequence::U64, sync::AsyncRwLock};
use std::{fmt, future::Future, num::NonZeroU64, pin::Pin};

const VERSION: u8 = 1;

/// Largest record: the largest body, with the receipts of as many logs as the largest gas limits can pay for.
const RECORD_BYTES_MAX: usize = 256 << 20;

/// Stores final blocks. The application appends to it before it commits the state.
pub trait BlockArchive: Send + Sync {
    /// Appends the block after the last one, with the quorum's certificate if there are validators. The block
    /// is durable when this returns.
    fn append<'a>(
        &'a self,
        block: &'a Block,
        receipts: &'a [Receipt],
        certificate: Option<&'a [u8]>,
    ) -> Pin<Box<dyn Future<Output = Result<(), ArchiveError>> + Send + 'a>>;

    /// The block at a height with its certificate, or `None` if there is none.
    fn signed(&self, height: u64) -> SignedFuture<'_>;
}

/// A pending read of a block.
pub type SignedFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Option<SignedBlock>, ArchiveError>> + Send + 'a>>;

/// What can go wrong with an archive.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveError {
    /// The disk failed, or the files are damaged.
    #[error(
        "the blocks cannot be {doing}: {reason} (in {partition}_data or {partition}_offsets-*); {advice}"
    )]
    Journal {
        /// Where they are.
        partition: String,
        /// What was being done.
        doing: &'static str,
        /// The journal's error.
        reason: String,
        /// What to do.
        advice: &'static str,
    },
    /// A record does not decode.
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
    /// The archive begins at the wrong block.
    #[error(
        "the first block is {}, it should be {first} (in {partition}_data); restore a backup, or remove the chain \
         and sync again", missing + 1
    )]
    Incomplete {
        /// Where they should be.
        partition: String,
        /// Height of the first block that should be there.
        first: u64,
        /// Height of the last missing block.
        missing: u64,
    },
    /// A block is stored at another height than its own.
    #[error(
        "block {found} is where block {height} should be (in {partition}_data); restore a backup, or remove the \
         chain and sync again"
    )]
    Misplaced {
        /// Where it is.
        partition: String,
        /// The requested height.
        height: u64,
        /// The height of the stored block.
        found: u64,
    },
    /// The block is not the next one.
    #[error("block {given} cannot be appended: the archive in {partition:?} is at height {height}")]
    NotNext {
        /// Where the archive is.
        partition: String,
        /// Height of the archive.
        height: u64,
        /// The block's height.
        given: u64,
    },
    /// The block is too large to be read back.
    #[error("block {height} takes {given} bytes with its receipts, at most {max} are allowed")]
    TooLarge {
        /// Its height.
        height: u64,
        /// Its size.
        given: usize,
        /// The largest allowed.
        max: usize,
    },
    /// The block was pruned.
    #[error("block {height} was pruned: the first block that is kept is {first}")]
    Pruned {
        /// Its height.
        height: u64,
        /// Height of the first stored block.
        first: u64,
    },
    /// An earlier failure has closed the archive.
    #[error("the archive is closed after an earlier failure: start again")]
    Closed,
}

/// A final block with its receipts and certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchivedBlock {
    /// The block.
    pub block: Block,
    /// The receipts of everything that ran in it.
    pub receipts: Vec<Receipt>,
    /// The quorum's certificate, if there are validators.
    pub certificate: Option<Bytes>,
}

/// A final block with its certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedBlock {
    /// The block.
    pub block: Block,
    /// The quorum's certificate, if there are validators.
    pub certificate: Option<Bytes>,
}

/// The archive on disk.
///
/// A failed append, or one that is dropped before it ends, closes the archive. Earlier blocks are safe.
pub struct BlockJournal<E: Context> {
    /// `None` once an append has failed.
    journal: AsyncRwLock<Option<Files<E>>>,
    partition: String,
    /// The block before its first one.
    floor: u64,
    /// Blocks in one file.
    file_blocks: NonZeroU64,
}

struct Files<E: Context> {
    journal: Journal<E, Record>,
    /// Holds the height up to which blocks may be missing because they were pruned.
    pruned: Metadata<E, U64, u64>,
}

/// The only key of `pruned`.
const PRUNED: U64 = U64::new(0);

impl<E: Context> BlockJournal<E> {
    /// Opens the archive of a chain that began at its genesis, at its last durable block.
    pub async fn open(context: E, config: &QmdbConfig) -> Result<Self, ArchiveError> {
        Self::open_after(context, config, 0).await
    }

    /// Opens the archive of a chain whose first block is the one after `floor`, at its last durable block.
    pub async fn open_after(context: E, config: &QmdbConfig, floor: u64) -> Result<Self, ArchiveError> {
        let journal = Journal::init(context.child("journal"), config.blocks()).await;
        Self::opened(context, config, journal, floor).await
    }

    /// Opens the archive and removes the blocks above `height`.
    pub async fn open_at(context: E, config: &QmdbConfig, height: u64) -> Result<Self, ArchiveError> {
        let journal = Journal::init_at_most(context.child("journal"), config.blocks(), height).await;
        Self::opened(context, config, journal, 0).await
    }

    /// An empty archive whose first block will be the one after `floor`. Removes previous content.
    pub async fn begin_after(context: E, config: &QmdbConfig, floor: u64) -> Result<Self, ArchiveError> {
        let journal = Journal::init_at_size(context.child("journal"), config.blocks(), floor).await;
        Self::opened(context, config, journal, floor).await
    }

    async fn opened(
        context: E,
        config: &QmdbConfig,
        journal: Result<Journal<E, Record>, journal::Error>,
        floor: u64,
    ) -> Result<Self, ArchiveError> {
        let partition = config.blocks().partition;
        let journal = journal.map_err(|error| unopened(&partition, &error))?;
        let mark = metadata::Config { partition: format!("{partition}-pruned"), codec_config: () };
        let pruned: Metadata<E, U64, u64> = Metadata::init(context.child("pruned"), mark)
            .await
            .map_err(|error| unopened(&partition, &error))?;
        // The journal treats a missing first file as pruned: only blocks recorded as pruned may be missing.
        let (first, missing) = (floor + 1, journal.bounds().start);
        let pruned_to = pruned.get(&PRUNED).copied().unwrap_or(floor).max(floor);
        if missing < floor || missing > pruned_to {
            return Err(ArchiveError::Incomplete { partition, first, missing });
        }
        let file_blocks = config.file_blocks;
        let files = Files { journal, pruned };
        Ok(Self { journal: AsyncRwLock::new(Some(files)), partition, floor, file_blocks })
    }

    /// Removes the oldest file if all its blocks are below `first`. Returns whether there was such a file. Call
    /// it again for the next one, so that appends can run in between.
    pub async fn prune(&self, first: u64) -> Result<bool, ArchiveError> {
        let mut guard = self.journal.write().await;
        let bounds = guard.as_ref().ok_or(ArchiveError::Closed)?.journal.bounds();
        let file = self.file_blocks.get();
        let second = (bounds.start / file).saturating_add(1).saturating_mul(file);
        // Always keep the last block: the state is compared with its header.
        if second >= first || second >= bounds.end {
            return Ok(false);
        }
        let Files { journal, pruned } = guard.take().ok_or(ArchiveError::Closed)?;
        // Record first, then remove the file: a crash in between leaves more than needed, never less.
        let pruned = pruned.put_sync(PRUNED, second).await.map_err(|error| self.unwritten(&error))?;
        let (journal, _) = journal.prune(second).await.map_err(|error| self.unwritten(&error))?;
        *guard = Some(Files { journal, pruned });
        Ok(true)
    }

    fn unwritten(&self, error: &impl fmt::Display) -> ArchiveError {
        let advice = "make room if the disk is full, and start again: what was durable stays";
        failed(&self.partition, "written", error, advice)
    }

    fn unread(&self, error: &impl fmt::Display) -> ArchiveError {
        let advice = "if this happens again, check the disk; if the files are damaged, restore a backup, or remove \
                      the chain and sync again";
        failed(&self.partition, "read", error, advice)
    }

    /// Height of the last block, or of the one before the first if the archive is empty.
    pub async fn height(&self) -> Result<u64, ArchiveError> {
        let guard = self.journal.read().await;
        Ok(guard.as_ref().ok_or(ArchiveError::Closed)?.journal.size())
    }

    /// The block at a height, or `None` if there is none.
    pub async fn get(&self, height: u64) -> Result<Option<ArchivedBlock>, ArchiveError> {
        self.read(height, decode, |archived| &archived.block).await
    }

    /// Reads a record and decodes it with `decode`.
    async fn read<T>(
        &self,
        height: u64,
        decode: impl FnOnce(&[u8]) -> Result<T, DecodeError>,
        block: impl FnOnce(&T) -> &Block,
    ) -> Result<Option<T>, ArchiveError> {
        let guard = self.journal.read().await;
        let journal = &guard.as_ref().ok_or(ArchiveError::Closed)?.journal;
        let pruned_to = journal.bounds().start;
        if height > self.floor && height <= pruned_to {
            return Err(ArchiveError::Pruned { height, first: pruned_to + 1 });
        }
        let Some(position) = height.checked_sub(1).filter(|position| journal.bounds().contains(position))
        else {
            return Ok(None);
        };
        let record = journal.read(position).await.map_err(|error| self.unread(&error))?;
        let partition = || self.partition.clone();
        drop(guard);
        let archived = decode(&record.0).map_err(|error| ArchiveError::Damaged {
            partition: partition(),
            height,
            error,
        })?;
        let found = block(&archived).header.number;
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
        let height = guard.as_ref().ok_or(ArchiveError::Closed)?.journal.size();
        if height.checked_add(1) != Some(given) {
            return Err(ArchiveError::NotNext { partition: self.partition.clone(), height, given });
        }
        let Files { journal, pruned } = guard.take().ok_or(ArchiveError::Closed)?;
        let journal = write(journal, &record).await.map_err(|error| self.unwritten(&error))?;
        *guard = Some(Files { journal, pruned });
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

    fn signed(&self, height: u64) -> SignedFuture<'_> {
        Box::pin(self.read(height, decode_signed, |signed| &signed.block))
    }
}

fn check_size(height: u64, given: usize) -> Result<(), ArchiveError> {
    if given > RECORD_BYTES_MAX {
        return Err(ArchiveError::TooLarge { height, given, max: RECORD_BYTES_MAX });
    }
    Ok(())
}

/// Appends a record, waits until it is durable, and records how much is durable. So a block below that point
/// that cannot be read is an error, and not the end of a shorter archive.
async fn write<E: Context>(
    journal: Journal<E, Record>,
    record: &Record,
) -> Result<Journal<E, Record>, journal::Error> {
    let (journal, _) = journal.append(record).await?;
    journal.sync().await
}

fn unopened(partition: &str, error: &impl fmt::Display) -> ArchiveError {
    failed(partition, "opened", error, "restore a backup, or remove the chain and sync again")
}

fn failed(
    partition: &str,
    doing: &'static str,
    error: &impl fmt::Display,
    advice: &'static str,
) -> ArchiveError {
    ArchiveError::Journal { partition: partition.to_owned(), doing, reason: error.to_string(), advice }
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
    let mut receipts = Vec::new();
    let signed = decode_with(record, |receipt| {
        receipts.push(Receipt::decode(receipt)?);
        Ok(())
    })?;
    Ok(ArchivedBlock { block: signed.block, receipts, certificate: signed.certificate })
}

/// Skips the receipts, which take most of the decoding time.
fn decode_signed(record: &[u8]) -> Result<SignedBlock, DecodeError> {
    decode_with(record, |_| Ok(()))
}

fn decode_with(
    record: &[u8],
    mut receipt: impl FnMut(&[u8]) -> Result<(), DecodeError>,
) -> Result<SignedBlock, DecodeError> {
    let mut input = Reader::versioned(record, "archived block", VERSION)?;
    let block = Block::decode(&input.bytes("block", RECORD_BYTES_MAX)?)?;
    let count = input.count("receipts", record.len())?;
    for _ in 0..count {
        let length = input.count("receipt", RECORD_BYTES_MAX)?;
        receipt(input.raw("receipt", length)?)?;
    }
    let certificate = match input.u8("certificate flag")? {
        0 => None,
        1 => Some(input.bytes("certificate", RECORD_BYTES_MAX)?),
        given => return Err(DecodeError::UnknownValue { what: "certificate flag", given: given.into() }),
    };
    input.finish("archived block")?;
    Ok(SignedBlock { block, certificate })
}

/// Entry point for fuzz targets: a record of the archive.
#[cfg(feature = "fuzzing")]
pub mod fuzzing {
    /// Decodes a record and checks that a success encodes back to the same bytes.
    pub fn decodes_to_itself(record: &[u8]) {
        let signed = super::decode_signed(record);
        let Ok(found) = super::decode(record) else { return };
        let certificate = found.certificate.as_ref().map(|bytes| &bytes[..]);
        assert_eq!(super::encode(&found.block, &found.receipts, certificate), record);
        let signed = signed.expect("it reads a part of the same");
        assert_eq!((signed.block, signed.certificate), (found.block, found.certificate));
    }
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
