//! Values of the origin that were read before, in memory and in a file of the data directory.
//!
//! The file is a list of records: length (u32), the key with its length before it, the value or its absence, and four
//! bytes of the record's hash. Records are only added. One that a crash cut short ends the list: what it held is read
//! from the origin again.

use crate::{private_file, regular_file};
use alloy_primitives::{Bytes, keccak256};
use almanac_primitives::StateKey;
use anyhow::Context as _;
use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, BufReader, Read, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
};

/// Largest record: code of a chain with generous limits, and its key.
const RECORD_BYTES_MAX: u32 = 4 << 20;

const ABSENT: u8 = 0;
const PRESENT: u8 = 1;

/// What is known of the origin.
#[derive(Default)]
pub(super) struct Values {
    known: BTreeMap<Vec<u8>, Option<Bytes>>,
    file: Option<(PathBuf, File)>,
}

impl Values {
    /// What a data directory has, which later values are added to.
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        let context = || format!("cannot use {}", path.display());
        if !path.exists() {
            let file = private_file::create_new(path).with_context(context)?;
            return Ok(Self { known: BTreeMap::new(), file: Some((path.to_owned(), file)) });
        }
        let mut input = BufReader::new(regular_file::open(path)?);
        let (mut known, mut end) = (BTreeMap::new(), 0u64);
        while let Some((key, value, bytes)) = next_record(&mut input).with_context(context)? {
            known.insert(key, value);
            end += bytes;
        }
        let mut file = regular_file::open_own(path)?;
        file.set_len(end).with_context(context)?;
        file.seek(SeekFrom::End(0)).with_context(context)?;
        Ok(Self { known, file: Some((path.to_owned(), file)) })
    }

    /// A value, if it was read before.
    pub(super) fn get(&self, key: &StateKey) -> Option<Option<Bytes>> {
        key.with_bytes(|key| self.known.get(key)).cloned()
    }

    /// Keeps a value.
    pub(super) fn keep(&mut self, key: &StateKey, value: Option<Bytes>) {
        let name = key.with_bytes(<[u8]>::to_vec);
        if self.known.contains_key(&name) {
            return;
        }
        let record = record(&name, value.as_ref());
        if let Some((path, file)) = self.file.as_mut().filter(|_| record.len() <= RECORD_BYTES_MAX as usize)
            && let Err(error) = file.write_all(&record)
        {
            // It is in memory, and the origin still has it. Half a record would hide what follows.
            tracing::warn!("{} takes no more values: {error}", path.display());
            self.file = None;
        }
        self.known.insert(name, value);
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.known.len()
    }
}

fn record(key: &[u8], value: Option<&Bytes>) -> Vec<u8> {
    let mut body = vec![u8::try_from(key.len()).expect("keys have at most 53 bytes")];
    body.extend_from_slice(key);
    body.push(if value.is_some() { PRESENT } else { ABSENT });
    body.extend_from_slice(value.map_or(&[], |value| &value[..]));
    let length = u32::try_from(body.len()).expect("answers are bounded far below 2^32 bytes");
    [&length.to_be_bytes()[..], &body, &keccak256(&body)[..4]].concat()
}

type Record = (Vec<u8>, Option<Bytes>, u64);

/// The next record and its size, or `None` at the end, or where the rest is incomplete or damaged.
fn next_record(input: &mut impl Read) -> io::Result<Option<Record>> {
    let Some(length) = read_up_to(input, 4)? else { return Ok(None) };
    let length = u32::from_be_bytes(length.try_into().expect("four bytes were read"));
    if length > RECORD_BYTES_MAX {
        return Ok(None);
    }
    let (Some(body), Some(hash)) = (read_up_to(input, length as usize)?, read_up_to(input, 4)?) else {
        return Ok(None);
    };
    if keccak256(&body)[..4] != hash[..] {
        return Ok(None);
    }
    let parts = body.split_first().and_then(|(size, rest)| rest.split_at_checked(usize::from(*size)));
    let Some((key, [has, value @ ..])) = parts else { return Ok(None) };
    let value = (*has == PRESENT).then(|| Bytes::copy_from_slice(value));
    Ok(Some((key.to_vec(), value, u64::from(length) + 8)))
}

/// So many bytes, or `None` where there are fewer.
fn read_up_to(input: &mut impl Read, bytes: usize) -> io::Result<Option<Vec<u8>>> {
    let mut read = vec![0; bytes];
    match input.read_exact(&mut read) {
        Ok(()) => Ok(Some(read)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::{Address, U256};

    fn key(n: u64) -> StateKey {
        StateKey::Slot(Address::repeat_byte(1), U256::from(n))
    }

    /// Whatever a crash leaves of the file, what precedes the damage is read, and later values are added after it.
    #[test]
    fn fork_10_values_survive_a_restart_and_a_crash() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("origin");
        let stored = |n: u64| n.is_multiple_of(2).then(|| Bytes::from(vec![7; n as usize]));
        let mut values = Values::open(&path).unwrap();
        (0..10).for_each(|n| values.keep(&key(n), stored(n)));
        values.keep(&key(3), Some(Bytes::from_static(b"another")));
        drop(values);
        let whole = std::fs::read(&path).unwrap();
        let mut damaged = whole.clone();
        *damaged.last_mut().unwrap() ^= 1;
        let long = [&whole[..], &u32::MAX.to_be_bytes()].concat();
        for (file, expected) in [
            (whole.clone(), 10),
            (whole[..whole.len() - 1].to_vec(), 9),
            (whole[..3].to_vec(), 0),
            (damaged, 9),
            (long, 10),
        ] {
            std::fs::write(&path, file).unwrap();
            let mut values = Values::open(&path).unwrap();
            assert_eq!(values.len(), expected);
            values.keep(&key(99), None);
            drop(values);
            let values = Values::open(&path).unwrap();
            assert_eq!(values.len(), expected + 1);
            assert_eq!(values.get(&key(99)), Some(None));
            for n in 0..expected as u64 {
                assert_eq!(values.get(&key(n)), Some(stored(n)), "{n}");
            }
        }
    }
}
