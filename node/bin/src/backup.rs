//! The format of backups: genesis, blocks and certificates. Everything else can be rebuilt from these.
//!
//! ```text
//! magic (8) ‖ version (u32) ‖ genesis JSON (item) ‖ count (u64)
//! ‖ count × (block (item) ‖ certificate (item, empty where there is none))
//! ‖ keccak-256 of everything before it
//!
//! item: u32 length ‖ bytes
//! ```
//!
//! The checksum detects damage; the certificates detect forgery (`signed_backup.rs`).

use crate::regular_file::GENESIS_BYTES_MAX;
use alloy_primitives::{B256, Bytes, Keccak256};
use almanac_primitives::{Block, Genesis, params::BLOCK_BODY_BYTES_MAX};
use almanac_state::SignedBlock;
use anyhow::{Context as _, bail, ensure};
use std::{
    io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write},
    path::Path,
};

const MAGIC: &[u8; 8] = b"ALMANACB";
const VERSION: u32 = 2;

/// Largest item: the largest genesis, which is larger than any block.
pub(crate) const ITEM_BYTES_MAX: u32 = GENESIS_BYTES_MAX as u32;
const _: () = assert!(GENESIS_BYTES_MAX >= 2 * BLOCK_BODY_BYTES_MAX as u64, "blocks have room");

/// Writes a backup, block by block.
pub(crate) struct BackupWriter<W: Write> {
    out: HashingWriter<BufWriter<W>>,
    /// Blocks that are still to come.
    left: u64,
}

impl<W: Write> BackupWriter<W> {
    /// Begins a backup of `count` blocks.
    pub(crate) fn begin(out: W, genesis: &Genesis, count: u64) -> anyhow::Result<Self> {
        let mut out = HashingWriter { inner: BufWriter::new(out), hash: Keccak256::new() };
        out.write_all(MAGIC)?;
        out.write_all(&VERSION.to_be_bytes())?;
        write_item(&mut out, genesis.to_json().as_bytes())?;
        out.write_all(&count.to_be_bytes())?;
        Ok(Self { out, left: count })
    }

    /// Writes the next block.
    pub(crate) fn block(&mut self, signed: &SignedBlock) -> anyhow::Result<()> {
        self.left = self.left.checked_sub(1).context("more blocks than were announced")?;
        write_item(&mut self.out, &signed.block.encode())?;
        write_item(&mut self.out, signed.certificate.as_ref().map_or(&[], |found| &found[..]))
    }

    /// Ends the backup after its last block.
    pub(crate) fn finish(self) -> anyhow::Result<()> {
        ensure!(self.left == 0, "{} of the announced blocks are missing", self.left);
        let HashingWriter { mut inner, hash } = self.out;
        inner.write_all(hash.finalize().as_slice())?;
        Ok(inner.flush()?)
    }
}

fn write_item(out: &mut impl Write, bytes: &[u8]) -> anyhow::Result<()> {
    let length = u32::try_from(bytes.len()).ok().filter(|length| *length <= ITEM_BYTES_MAX);
    let length =
        length.with_context(|| format!("an item of {} bytes is too large for a backup", bytes.len()))?;
    out.write_all(&length.to_be_bytes())?;
    Ok(out.write_all(bytes)?)
}

/// A backup whose checksum was right.
pub(crate) struct Backup<R> {
    input: BufReader<R>,
    pub(crate) genesis: Genesis,
    /// How many blocks it holds.
    pub(crate) count: u64,
    /// Where the blocks begin.
    start: u64,
    /// Blocks that were not read yet.
    left: u64,
}

impl<R: Read + Seek> Backup<R> {
    /// Checks the sum of a file that is or gets the name `path`, and reads its head.
    pub(crate) fn read(input: R, path: &Path) -> anyhow::Result<Self> {
        let name = path.display();
        let mut input = BufReader::new(input);
        check_sum(&mut input).with_context(|| format!("{name} is not a complete backup"))?;
        input.rewind()?;
        let mut magic = [0; 8];
        input.read_exact(&mut magic)?;
        ensure!(&magic == MAGIC, "{name} is not a backup made by `almanac db export`");
        let version = read_u32(&mut input)?;
        ensure!(
            version == VERSION,
            "{name} has format {version}, this build reads {VERSION}: import it with the release that made it, \
             then run `almanac db export` with this one"
        );
        let genesis = Genesis::from_json(&String::from_utf8(read_item(&mut input)?)?)?;
        let mut count = [0; 8];
        input.read_exact(&mut count)?;
        let count = u64::from_be_bytes(count);
        let start = input.stream_position()?;
        Ok(Self { input, genesis, count, start, left: count })
    }

    /// The next block, or `None` after the last one, where the file must end.
    pub(crate) fn next_block(&mut self) -> anyhow::Result<Option<SignedBlock>> {
        if self.left == 0 {
            let position = self.input.stream_position()?;
            let end = self.input.seek(SeekFrom::End(0))?;
            let rest = end - position;
            ensure!(rest == 32, "{rest} bytes follow the last block, 32 of a checksum are expected");
            self.input.seek(SeekFrom::Start(position))?;
            return Ok(None);
        }
        self.left -= 1;
        let block = Block::decode(&read_item(&mut self.input)?)?;
        let certificate = Bytes::from(read_item(&mut self.input)?);
        Ok(Some(SignedBlock { block, certificate: Some(certificate).filter(|found| !found.is_empty()) }))
    }

    /// Goes back to the first block.
    pub(crate) fn rewind(&mut self) -> anyhow::Result<()> {
        self.input.seek(SeekFrom::Start(self.start))?;
        self.left = self.count;
        Ok(())
    }
}

fn check_sum<R: Read + Seek>(input: &mut BufReader<R>) -> anyhow::Result<()> {
    let length = input.seek(SeekFrom::End(0))?;
    let Some(content) = length.checked_sub(32) else { bail!("it has only {length} bytes") };
    input.rewind()?;
    let mut hash = Keccak256::new();
    let mut left = content;
    let mut buffer = vec![0; 1 << 16];
    while left > 0 {
        let part = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        input.read_exact(&mut buffer[..part])?;
        hash.update(&buffer[..part]);
        left -= part as u64;
    }
    let mut given = B256::ZERO;
    input.read_exact(given.as_mut_slice())?;
    ensure!(given == hash.finalize(), "its checksum is wrong: it was cut short or damaged");
    Ok(())
}

fn read_u32(input: &mut impl Read) -> io::Result<u32> {
    let mut bytes = [0; 4];
    input.read_exact(&mut bytes)?;
    Ok(u32::from_be_bytes(bytes))
}

fn read_item(input: &mut impl Read) -> anyhow::Result<Vec<u8>> {
    let length = read_u32(input)?;
    ensure!(length <= ITEM_BYTES_MAX, "an item of {length} bytes is above the limit of {ITEM_BYTES_MAX}");
    let mut bytes = Vec::new();
    // Memory grows with what is there, not with what is announced.
    let read = input.take(length.into()).read_to_end(&mut bytes)?;
    ensure!(read == usize::try_from(length)?, "an item of {length} bytes ends after {read}");
    Ok(bytes)
}

struct HashingWriter<W> {
    inner: W,
    hash: Keccak256,
}

impl<W: Write> Write for HashingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use almanac_primitives::{Header, TimestampMs};
    use std::io::Cursor;

    fn sample() -> (Genesis, Vec<SignedBlock>) {
        let block = |number| SignedBlock {
            block: Block { header: Header { number, ..Header::default() }, transactions: Vec::new() },
            certificate: (number == 2).then(|| Bytes::from_static(b"signed")),
        };
        (crate::accounts::genesis(5, TimestampMs(7)), (1..=3).map(block).collect())
    }

    fn written() -> Vec<u8> {
        let (genesis, blocks) = sample();
        let mut bytes = Vec::new();
        let mut out = BackupWriter::begin(&mut bytes, &genesis, 3).unwrap();
        blocks.iter().for_each(|block| out.block(block).unwrap());
        out.finish().unwrap();
        bytes
    }

    fn open(bytes: &[u8]) -> anyhow::Result<Backup<Cursor<&[u8]>>> {
        Backup::read(Cursor::new(bytes), Path::new("backup"))
    }

    /// The bytes with the right checksum for what they say.
    fn summed(mut bytes: Vec<u8>) -> Vec<u8> {
        let content = bytes.len() - 32;
        let sum = alloy_primitives::keccak256(&bytes[..content]);
        bytes[content..].copy_from_slice(sum.as_slice());
        bytes
    }

    #[test]
    fn what_was_written_is_read_as_often_as_asked() {
        let (genesis, blocks) = sample();
        let bytes = written();
        let mut backup = open(&bytes).unwrap();
        assert_eq!((&backup.genesis, backup.count), (&genesis, 3));
        for _ in 0..2 {
            for block in &blocks {
                assert_eq!(backup.next_block().unwrap().as_ref(), Some(block));
            }
            assert_eq!(backup.next_block().unwrap(), None);
            assert_eq!(backup.next_block().unwrap(), None);
            backup.rewind().unwrap();
        }
    }

    #[test]
    fn as_many_blocks_are_written_as_were_announced() {
        let (genesis, blocks) = sample();
        let mut out = BackupWriter::begin(Vec::new(), &genesis, 1).unwrap();
        out.block(&blocks[0]).unwrap();
        assert!(out.block(&blocks[1]).unwrap_err().to_string().contains("more blocks"));
        let out = BackupWriter::begin(Vec::new(), &genesis, 1).unwrap();
        assert!(out.finish().unwrap_err().to_string().contains("1 of the announced blocks"));
    }

    #[test]
    fn any_damage_is_found_before_anything_is_done() {
        let good = written();
        // Every part of the file, without taking a minute over it.
        for offset in
            (0..good.len()).filter(|offset| offset % 37 == 0 || *offset < 16 || good.len() - offset < 40)
        {
            let mut bad = good.clone();
            bad[offset] ^= 1;
            assert!(open(&bad).is_err(), "flipped at {offset}");
            assert!(open(&good[..offset]).is_err(), "cut at {offset}");
        }
    }

    #[test]
    fn bytes_behind_the_last_block_are_refused() {
        let mut bytes = written();
        let content = bytes.len() - 32;
        bytes.splice(content..content, [0; 7]);
        let bytes = summed(bytes);
        let mut backup = open(&bytes).unwrap();
        (0..3).for_each(|_| drop(backup.next_block().unwrap()));
        assert!(backup.next_block().unwrap_err().to_string().contains("39 bytes follow the last block"));
    }

    #[test]
    fn another_version_is_refused_with_what_to_do() {
        for other in [1, 3] {
            let mut bytes = written();
            bytes[11] = other;
            let error = open(&summed(bytes)).err().unwrap().to_string();
            assert!(error.contains(&format!("has format {other}, this build reads 2")), "{error}");
            assert!(error.contains("almanac db export"), "{error}");
        }
    }
}
