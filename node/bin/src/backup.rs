//! The file that a chain is backed up to: its genesis and its blocks, from which all else can be made again.
//!
//! ```text
//! magic (8) ‖ version (u32) ‖ genesis JSON (u32 length, bytes) ‖ count (u64)
//! ‖ count × block (u32 length, bytes) ‖ keccak-256 of everything before it
//! ```

use crate::regular_file::{self, GENESIS_BYTES_MAX};
use alloy_primitives::{B256, Keccak256};
use almanac_primitives::{Block, Genesis, params::BLOCK_BODY_BYTES_MAX};
use anyhow::{Context as _, bail, ensure};
use std::{
    fs::File,
    io::{self, BufReader, Read, Seek as _, Write},
    path::Path,
};

const MAGIC: &[u8; 8] = b"ALMANACB";
const VERSION: u32 = 1;

/// Largest item: the largest genesis, which is larger than any block.
const ITEM_BYTES_MAX: u32 = GENESIS_BYTES_MAX as u32;
const _: () = assert!(GENESIS_BYTES_MAX >= 2 * BLOCK_BODY_BYTES_MAX as u64, "blocks have room");

/// Writes a backup of `count` blocks. They are asked for one at a time, from the first.
pub(crate) fn write(
    out: impl Write,
    genesis: &Genesis,
    blocks: impl ExactSizeIterator<Item = anyhow::Result<Block>>,
) -> anyhow::Result<()> {
    let mut out = HashingWriter { inner: io::BufWriter::new(out), hash: Keccak256::new() };
    out.write_all(MAGIC)?;
    out.write_all(&VERSION.to_be_bytes())?;
    write_item(&mut out, genesis.to_json().as_bytes())?;
    out.write_all(&(blocks.len() as u64).to_be_bytes())?;
    for block in blocks {
        write_item(&mut out, &block?.encode())?;
    }
    let HashingWriter { mut inner, hash } = out;
    inner.write_all(hash.finalize().as_slice())?;
    Ok(inner.flush()?)
}

fn write_item(out: &mut impl Write, bytes: &[u8]) -> anyhow::Result<()> {
    let length = u32::try_from(bytes.len()).ok().filter(|length| *length <= ITEM_BYTES_MAX);
    let length =
        length.with_context(|| format!("an item of {} bytes is too large for a backup", bytes.len()))?;
    out.write_all(&length.to_be_bytes())?;
    Ok(out.write_all(bytes)?)
}

/// A backup whose checksum was right.
pub(crate) struct Backup {
    input: BufReader<File>,
    pub(crate) genesis: Genesis,
    /// How many blocks it holds.
    pub(crate) count: u64,
}

impl Backup {
    /// Opens a backup and checks all of it before anything is done with it.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        Self::read(regular_file::open(path)?, path)
    }

    /// The same of an opened file, which is or gets the name `path`.
    pub(crate) fn read(file: File, path: &Path) -> anyhow::Result<Self> {
        let name = path.display();
        let mut input = BufReader::new(file);
        check_sum(&mut input).with_context(|| format!("{name} is no whole backup"))?;
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
        Ok(Self { input, genesis, count: u64::from_be_bytes(count) })
    }

    /// The next block.
    pub(crate) fn next_block(&mut self) -> anyhow::Result<Block> {
        Ok(Block::decode(&read_item(&mut self.input)?)?)
    }
}

fn check_sum(input: &mut BufReader<File>) -> anyhow::Result<()> {
    let length = input.get_ref().metadata()?.len();
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
    let mut bytes = vec![0; usize::try_from(length)?];
    input.read_exact(&mut bytes)?;
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

    fn sample() -> (Genesis, Vec<Block>) {
        let block =
            |number| Block { header: Header { number, ..Header::default() }, transactions: Vec::new() };
        (crate::accounts::genesis(5, TimestampMs(7)), (1..=3).map(block).collect())
    }

    fn written(directory: &Path) -> std::path::PathBuf {
        let (genesis, blocks) = sample();
        let path = directory.join("backup");
        write(
            File::create(&path).unwrap(),
            &genesis,
            blocks.into_iter().map(Ok).collect::<Vec<_>>().into_iter(),
        )
        .unwrap();
        path
    }

    #[test]
    fn what_was_written_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let (genesis, blocks) = sample();
        let mut backup = Backup::open(&written(directory.path())).unwrap();
        assert_eq!((&backup.genesis, backup.count), (&genesis, 3));
        for block in blocks {
            assert_eq!(backup.next_block().unwrap(), block);
        }
    }

    #[test]
    fn any_damage_is_found_before_anything_is_done() {
        let directory = tempfile::tempdir().unwrap();
        let path = written(directory.path());
        let good = std::fs::read(&path).unwrap();
        // Every part of the file, without taking a minute over it.
        for offset in
            (0..good.len()).filter(|offset| offset % 37 == 0 || *offset < 16 || good.len() - offset < 40)
        {
            let mut bad = good.clone();
            bad[offset] ^= 1;
            std::fs::write(&path, &bad).unwrap();
            assert!(Backup::open(&path).is_err(), "flipped at {offset}");
            std::fs::write(&path, &good[..offset]).unwrap();
            assert!(Backup::open(&path).is_err(), "cut at {offset}");
        }
    }

    #[test]
    fn another_version_is_refused_with_what_to_do() {
        let directory = tempfile::tempdir().unwrap();
        let path = written(directory.path());
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[11] = 2;
        let content = bytes.len() - 32;
        let sum = alloy_primitives::keccak256(&bytes[..content]);
        bytes[content..].copy_from_slice(sum.as_slice());
        std::fs::write(&path, bytes).unwrap();
        let error = Backup::open(&path).err().unwrap().to_string();
        assert!(
            error.contains("has format 2, this build reads 1") && error.contains("almanac db export"),
            "{error}"
        );
    }
}
