//! One record of a block log: how it is written, and what is there when it cannot be read.

use alloy_primitives::{B256, keccak256};
use almanac_primitives::params::BLOCK_BODY_BYTES_MAX;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

const HEAD_BYTES: usize = 4 + 32 + CHECK_BYTES;
const CHECK_BYTES: usize = 8;

/// Most bytes of a record: the largest body, and room for the header of its block. It keeps a bad length from
/// making a reader allocate gigabytes.
const BYTES_MAX: usize = BLOCK_BODY_BYTES_MAX + 4096;

/// What comes before the bytes of a record.
///
/// The head has a check of its own. Without it, a bit that flips in a length would make a record seem to
/// reach beyond the end of the file, and all good ones after it would pass for the torn tail of an append.
/// The check covers the record's place, so that no transaction can carry bytes that look like a head.
#[derive(Clone, Copy)]
struct Head {
    length: u32,
    checksum: B256,
}

impl Head {
    fn encode(self, offset: u64) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        bytes[..4].copy_from_slice(&self.length.to_be_bytes());
        bytes[4..36].copy_from_slice(self.checksum.as_slice());
        bytes[36..].copy_from_slice(&self.check(offset));
        bytes
    }

    /// The head that was written at `offset`, or `None` if these bytes are not one.
    fn decode(offset: u64, bytes: &[u8; HEAD_BYTES]) -> Option<Self> {
        let (length, rest) = bytes.split_first_chunk().expect("a head is longer than its length field");
        let (checksum, check) = rest.split_at(32);
        let head = Self { length: u32::from_be_bytes(*length), checksum: B256::from_slice(checksum) };
        ((1..=BYTES_MAX).contains(&head.length()) && head.check(offset) == check).then_some(head)
    }

    fn check(self, offset: u64) -> [u8; CHECK_BYTES] {
        let mut bytes = [0; 8 + 4 + 32];
        bytes[..8].copy_from_slice(&offset.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.length.to_be_bytes());
        bytes[12..].copy_from_slice(self.checksum.as_slice());
        *keccak256(bytes).first_chunk().expect("a check is shorter than a hash")
    }

    fn length(self) -> usize {
        usize::try_from(self.length).unwrap_or(usize::MAX)
    }

    fn record_bytes(self) -> u64 {
        HEAD_BYTES as u64 + u64::from(self.length)
    }
}

/// The record at `offset` that holds `bytes`.
pub(super) fn encode(offset: u64, bytes: &[u8]) -> Vec<u8> {
    assert!(bytes.len() <= BYTES_MAX, "the size of a block is checked before it is written");
    let length = u32::try_from(bytes.len()).expect("the bound is below 2^32");
    let head = Head { length, checksum: keccak256(bytes) };
    [&head.encode(offset)[..], bytes].concat()
}

/// What lies at some place of a log.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// A good record, with these bytes.
    Record(Vec<u8>),
    /// The end of the file.
    End,
    /// What an append leaves when it is cut short: the rest of the file is part of one record.
    TornTail,
    /// A bad record that others follow.
    Damage,
}

/// Reads record after record, and stays where it finds anything else.
pub(super) struct Records<S> {
    input: BufReader<S>,
    offset: u64,
    end: u64,
}

impl<S: Read + Seek> Records<S> {
    /// Reads `input` from `offset` to `end`.
    pub(super) fn new(input: S, offset: u64, end: u64) -> Self {
        Self { input: BufReader::new(input), offset, end }
    }

    /// Where the next record begins.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Reads what is there, and moves on if it is a good record.
    pub(super) fn next(&mut self) -> io::Result<Found> {
        let left = self.end - self.offset;
        if left == 0 {
            return Ok(Found::End);
        }
        let Some(head) = self.read_head(left)? else {
            return Ok(if self.is_torn_append(left)? { Found::TornTail } else { Found::Damage });
        };
        if head.record_bytes() > left {
            return Ok(Found::TornTail);
        }
        let bytes = self.read(head.length())?;
        if keccak256(&bytes) == head.checksum {
            self.offset += head.record_bytes();
            return Ok(Found::Record(bytes));
        }
        Ok(if head.record_bytes() == left { Found::TornTail } else { Found::Damage })
    }

    fn read_head(&mut self, left: u64) -> io::Result<Option<Head>> {
        if left < HEAD_BYTES as u64 {
            return Ok(None);
        }
        self.input.seek(SeekFrom::Start(self.offset))?;
        let bytes = self.read(HEAD_BYTES)?;
        Ok(Head::decode(self.offset, bytes.first_chunk().expect("as many bytes as were asked for")))
    }

    /// Whether the rest of the file, which begins with no head, is the rest of one append: not longer than
    /// one can be, and without the head of a later record in it.
    fn is_torn_append(&mut self, left: u64) -> io::Result<bool> {
        if left > (HEAD_BYTES + BYTES_MAX) as u64 {
            return Ok(false);
        }
        self.input.seek(SeekFrom::Start(self.offset))?;
        let rest = self.read(usize::try_from(left).expect("it is bounded"))?;
        let mut heads = (self.offset..).zip(rest.windows(HEAD_BYTES)).skip(1);
        Ok(!heads.any(|(offset, bytes)| {
            Head::decode(offset, bytes.first_chunk().expect("a window of a head's size")).is_some()
        }))
    }

    fn read(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.input.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{collection::vec, prelude::*};
    use std::io::Cursor;

    /// Where the first record begins in these tests.
    const START: usize = 5;

    fn file(records: &[Vec<u8>]) -> Vec<u8> {
        let mut file = vec![0xaa; START];
        for bytes in records {
            let record = encode(file.len() as u64, bytes);
            file.extend(record);
        }
        file
    }

    /// All records that can be read, and what comes after them.
    fn read_all(file: &[u8]) -> (Vec<Vec<u8>>, Found) {
        let mut records = Records::new(Cursor::new(file), START as u64, file.len() as u64);
        let mut read = Vec::new();
        loop {
            match records.next().expect("memory does not fail") {
                Found::Record(bytes) => read.push(bytes),
                other => {
                    assert_eq!(records.next().expect("memory does not fail"), other, "it stays there");
                    return (read, other);
                }
            }
        }
    }

    #[test]
    fn the_largest_record_is_read_and_no_other_length_is_a_head() {
        let largest = vec![7; BYTES_MAX];
        assert_eq!(read_all(&file(std::slice::from_ref(&largest))), (vec![largest], Found::End));

        let head = |length| Head { length, checksum: B256::ZERO }.encode(9);
        let max = u32::try_from(BYTES_MAX).expect("below 2^32");
        assert!(Head::decode(9, &head(max)).is_some());
        assert!(Head::decode(9, &head(max + 1)).is_none());
        assert!(Head::decode(9, &head(1)).is_some());
        assert!(Head::decode(9, &head(0)).is_none());
        assert!(Head::decode(10, &head(max)).is_none(), "a head belongs to its place");
    }

    #[test]
    fn zeroes_after_the_last_record_are_a_torn_append_up_to_the_size_of_one() {
        let records = vec![b"first".to_vec(), b"second".to_vec()];
        for (zeroes, expected) in [
            (1, Found::TornTail),
            (HEAD_BYTES, Found::TornTail),
            (HEAD_BYTES + BYTES_MAX, Found::TornTail),
            (HEAD_BYTES + BYTES_MAX + 1, Found::Damage),
        ] {
            let mut file = file(&records);
            file.resize(file.len() + zeroes, 0);
            assert_eq!(read_all(&file), (records.clone(), expected), "{zeroes} zeroes");
        }
    }

    #[test]
    fn a_record_inside_the_bytes_of_a_torn_one_does_not_count() {
        // A transaction may carry what it likes, copies of other records included.
        let smuggled = encode(START as u64, b"smuggled");
        let mut file = file(&[vec![1; 60]]);
        let offset = file.len();
        let torn = encode(offset as u64, &smuggled);
        file.extend(&torn);
        for cut in offset + 1..offset + torn.len() {
            assert_eq!(read_all(&file[..cut]), (vec![vec![1; 60]], Found::TornTail), "cut at {cut}");
        }
        file[offset] ^= 1;
        assert_eq!(read_all(&file), (vec![vec![1; 60]], Found::TornTail));
    }

    #[test]
    fn every_flipped_bit_is_damage_except_in_the_last_record() {
        let records = vec![vec![0], vec![5; 20], b"the last".to_vec()];
        let clean = file(&records);
        let ends: Vec<_> = (1..=3).map(|count| file(&records[..count]).len()).collect();
        for bit in START * 8..clean.len() * 8 {
            let mut flipped = clean.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let before = ends.iter().filter(|end| **end <= bit / 8).count();
            let expected = if before == 2 { Found::TornTail } else { Found::Damage };
            assert_eq!(read_all(&flipped), (records[..before].to_vec(), expected), "bit {bit}");
        }
    }

    proptest! {
        #[test]
        fn garbage_is_never_a_record(bytes in vec(any::<u8>(), 0..300)) {
            let mut file = vec![0xaa; START];
            file.extend(&bytes);
            let expected = if bytes.is_empty() { Found::End } else { Found::TornTail };
            prop_assert_eq!(read_all(&file), (vec![], expected));
        }

        #[test]
        fn good_records_before_garbage_are_kept(
            records in vec(vec(any::<u8>(), 1..50), 0..5),
            garbage in vec(any::<u8>(), 1..200),
        ) {
            let mut file = file(&records);
            file.extend(&garbage);
            prop_assert_eq!(read_all(&file), (records, Found::TornTail));
        }

        /// Overwriting any stretch of the file: all records before it are read, and if one was hit that others
        /// follow whole, that is damage.
        #[test]
        fn damage_before_a_good_record_never_passes_for_a_torn_tail(
            records in vec(vec(any::<u8>(), 1..50), 2..6),
            at: proptest::sample::Index,
            noise in vec(1..=255u8, 1..30),
        ) {
            let clean = file(&records);
            let at = START + at.index(clean.len() - START);
            let mut hit = clean;
            let touched = hit[at..].iter_mut().zip(&noise).map(|(byte, noise)| *byte ^= noise).count();

            let ends: Vec<_> = (1..=records.len()).map(|count| file(&records[..count]).len()).collect();
            let before = ends.iter().filter(|end| **end <= at).count();
            let last_start = ends[records.len() - 2];
            let is_last_whole = at + touched <= last_start;
            let (read, found) = read_all(&hit);
            prop_assert_eq!(&read[..], &records[..before]);
            if is_last_whole {
                prop_assert_eq!(found, Found::Damage);
            } else if at >= last_start {
                prop_assert_eq!(found, Found::TornTail);
            }
        }
    }
}
