//! An entry of the calendar. Its bytes sort as entries do: by queue, then place, then priority, then schedule.
//!
//! ```text
//!  0      1              9                          17                25
//! +------+--------------+--------------------------+-----------------+
//! | queue| at, u64      | u64::MAX − priority, u64 | schedule id, u64|    all big-endian
//! +------+--------------+--------------------------+-----------------+
//! ```
//!
//! In the queues that are ordered by time, `at` is that time in milliseconds. The priority is stored as its
//! distance from the maximum, so that a higher priority sorts first at the same place. An entry is a key
//! without a value: the id leads to the record, which the prologue reads anyway.

use super::queue::Queue;
use almanac_primitives::{
    ScheduleId, TimestampMs,
    codec::{DecodeError, Reader},
};
use std::{
    cmp::{Ordering, Reverse},
    fmt,
};

/// Length of an encoded entry.
pub const ENTRY_BYTES: usize = 25;

/// Orders entries of one queue at the same place: the higher priority first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(pub u64);

/// A schedule's place in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    /// Which queue.
    pub queue: Queue,
    /// The place in the queue: milliseconds in queues ordered by time, otherwise the queue's own unit.
    pub at: u64,
    /// The order at the same place.
    pub priority: Priority,
    /// Which schedule.
    pub schedule: ScheduleId,
}

impl Entry {
    /// The bytes that the calendar sorts by.
    pub fn encode(&self) -> [u8; ENTRY_BYTES] {
        let mut bytes = [0; ENTRY_BYTES];
        bytes[0] = self.queue as u8;
        bytes[1..9].copy_from_slice(&self.at.to_be_bytes());
        bytes[9..17].copy_from_slice(&(u64::MAX - self.priority.0).to_be_bytes());
        bytes[17..].copy_from_slice(&self.schedule.0.to_be_bytes());
        bytes
    }

    /// Reads the bytes that the calendar sorts by.
    pub fn decode(encoded: &[u8]) -> Result<Self, DecodeError> {
        let mut input = Reader::new(encoded);
        let queue = input.u8("queue")?;
        let entry = Self {
            queue: Queue::from_number(queue)
                .ok_or(DecodeError::UnknownValue { what: "queue", given: queue.into() })?,
            at: input.u64("place")?,
            priority: Priority(u64::MAX - input.u64("priority")?),
            schedule: ScheduleId(input.u64("schedule id")?),
        };
        input.finish("calendar entry")?;
        Ok(entry)
    }

    /// When the run is due, or was; only meaningful in queues ordered by time and in that of runs that wait for a price.
    pub fn due(&self) -> TimestampMs {
        match self.queue {
            Queue::Waiting => TimestampMs(u64::MAX - self.priority.0),
            _ => TimestampMs(self.at),
        }
    }

    /// What a market run bids per gas. Those that wait are sorted by it.
    pub fn bid(&self) -> u64 {
        match self.queue {
            Queue::Waiting => u64::MAX - self.at,
            _ => self.priority.0,
        }
    }

    /// Sorts the market's due entries of both its queues: the highest bid, then the oldest, then the first that was
    /// made.
    pub fn market_order(&self) -> impl Ord + use<> {
        (Reverse(self.bid()), self.due(), self.schedule)
    }

    pub(super) fn key(&self) -> Key {
        Key(self.encode())
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.encode().cmp(&other.encode())
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { queue, at, priority, schedule } = self;
        write!(f, "schedule {schedule} in the {queue:?} queue at {at} with priority {}", priority.0)
    }
}

/// A position in the order of all entries. Not every position can hold an entry: [`Key::END`] is after all of
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key(pub [u8; ENTRY_BYTES]);

/// Sorts like the bytes, but compares word by word: comparing bytes took a tenth of the calendar's time.
impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        self.words().cmp(&other.words())
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Key {
    /// The lowest position: equal to or before every entry.
    pub(super) const FIRST: Self = Self([0; ENTRY_BYTES]);
    /// After every entry.
    pub(super) const END: Self = Self([0xff; ENTRY_BYTES]);

    /// The position where the entries of a queue at a place begin.
    pub(super) fn at(queue: Queue, at: u64) -> Self {
        Entry { queue, at, priority: Priority(u64::MAX), schedule: ScheduleId(0) }.key()
    }

    /// The position where the entries of a queue end.
    pub(super) fn end_of(queue: Queue) -> Self {
        let mut key = Self::FIRST;
        key.0[0] = queue as u8 + 1;
        key
    }

    /// The position where the entries of a queue after a place begin.
    pub(super) fn after(queue: Queue, at: u64) -> Self {
        at.checked_add(1).map_or(Self::end_of(queue), |next| Self::at(queue, next))
    }

    fn words(&self) -> ([u64; 3], u8) {
        let (words, [last]) = self.0.as_chunks::<8>() else {
            unreachable!("25 bytes are three words and one")
        };
        ([0, 1, 2].map(|word| u64::from_be_bytes(words[word])), *last)
    }

    /// The next position.
    pub(super) fn next(mut self) -> Self {
        for byte in self.0.iter_mut().rev() {
            *byte = byte.wrapping_add(1);
            if *byte != 0 {
                return self;
            }
        }
        Self::END
    }

    /// The position before this one. The first has none.
    pub(super) fn previous(mut self) -> Self {
        for byte in self.0.iter_mut().rev() {
            let borrows = *byte == 0;
            *byte = byte.wrapping_sub(1);
            if !borrows {
                return self;
            }
        }
        Self::FIRST
    }

    /// Whether an entry can be at this position.
    pub(super) fn is_entry(&self) -> bool {
        Queue::from_number(self.0[0]).is_some()
    }

    /// The entry at this position.
    pub(super) fn entry(&self) -> Entry {
        Entry::decode(&self.0).expect("keys of nodes and changes are those of entries")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry(queue: u8, at: u64, priority: u64, schedule: u64) -> Entry {
        Entry {
            queue: Queue::ALL[usize::from(queue)],
            at,
            priority: Priority(priority),
            schedule: ScheduleId(schedule),
        }
    }

    #[test]
    fn a_higher_priority_is_first_at_the_same_time_only() {
        assert!(entry(1, 5, 9, 7) < entry(1, 5, 8, 1));
        assert!(entry(1, 4, 0, 7) < entry(1, 5, u64::MAX, 1));
        assert!(entry(0, u64::MAX, 0, u64::MAX) < entry(1, 0, u64::MAX, 0));
        assert_eq!(entry(0, 0, u64::MAX, 0).key(), Key::FIRST);
        assert!(entry(6, u64::MAX, 0, u64::MAX).key() < Key::end_of(Queue::Kept));
        assert!(Key::end_of(Queue::Kept) < Key::END);
    }

    #[test]
    fn places_do_not_wrap() {
        assert_eq!(Key::END.next(), Key::END);
        assert_eq!(Key::FIRST.previous(), Key::FIRST);
        assert_eq!(Key::after(Queue::Cron, u64::MAX), Key::end_of(Queue::Cron));
        assert_eq!(Key::after(Queue::Cron, 8), Key::at(Queue::Cron, 9));
        assert_eq!(entry(0, u64::MAX, 0, u64::MAX).key().next(), Key::at(Queue::Cron, 0));
        assert_eq!(Key::at(Queue::Cron, 0).previous(), entry(0, u64::MAX, 0, u64::MAX).key());
    }

    proptest! {
        #[test]
        fn bytes_sort_as_the_parts_do(a in (0..7u8, 0..3u64, 0..3u64, 0..3u64), b in (0..7u8, 0..3u64, 0..3u64, 0..3u64)) {
            let parts = |(queue, at, priority, schedule)| (queue, at, std::cmp::Reverse(priority), schedule);
            let order = parts(a).cmp(&parts(b));
            let (a, b) = (entry(a.0, a.1, a.2, a.3), entry(b.0, b.1, b.2, b.3));
            prop_assert_eq!(a.cmp(&b), order);
            prop_assert_eq!(a.encode().cmp(&b.encode()), order);
        }

        #[test]
        fn entries_survive_their_bytes(queue in 0..7u8, at: u64, priority: u64, schedule: u64) {
            let entry = entry(queue, at, priority, schedule);
            prop_assert_eq!(Entry::decode(&entry.encode()), Ok(entry));
        }

        #[test]
        fn one_entry_has_one_encoding(bytes in proptest::collection::vec(any::<u8>(), 0..30)) {
            match Entry::decode(&bytes) {
                Ok(entry) => prop_assert_eq!(&entry.encode()[..], &bytes[..]),
                Err(_) => prop_assert!(bytes.len() != ENTRY_BYTES || bytes[0] > 6),
            }
        }

        #[test]
        fn next_and_previous_undo_each_other(bytes: [u8; ENTRY_BYTES]) {
            let key = Key(bytes);
            prop_assume!(key != Key::END);
            prop_assert!(key < key.next());
            prop_assert_eq!(key.next().previous(), key);
        }

        #[test]
        fn words_sort_as_bytes_do(a: [u8; ENTRY_BYTES], mut b: [u8; ENTRY_BYTES], shared in 0..=ENTRY_BYTES) {
            b[..shared].copy_from_slice(&a[..shared]);
            prop_assert_eq!(Key(a).cmp(&Key(b)), a.cmp(&b));
        }
    }
}
