//! Capacity twice: in slots, whose reads and writes are counted, and as a map of seconds.

use alloy_primitives::{Address, Bytes, U256};
use almanac_primitives::{ScheduleId, Wei};
use almanac_schedule::{
    Failure, Ledger,
    capacity::{
        self, BOOK_READS_MAX, BOOK_SLOTS_NEW_MAX, BOOK_WRITES_MAX, Booked, Class, NextFree, NoRoom,
        RELEASE_READS_MAX, RELEASE_WRITES_MAX, Reach, Shares,
    },
    ledger::MemoryLedger,
};
use std::{collections::BTreeMap, convert::Infallible};

/// A search that no number of reads stops.
pub(crate) fn unbounded(seconds: u64) -> Reach {
    Reach { seconds, reads: u64::MAX }
}

/// A ledger that counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counting {
    pub(crate) ledger: MemoryLedger,
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    pub(crate) slots_new: u64,
}

impl Counting {
    /// Reads, writes and new slots of what is done.
    pub(crate) fn count<T>(&mut self, act: impl FnOnce(&mut Self) -> T) -> ([u64; 3], T) {
        (self.reads, self.writes, self.slots_new) = (0, 0, 0);
        let done = act(self);
        ([self.reads, self.writes, self.slots_new], done)
    }
}

impl Ledger for Counting {
    type Error = Infallible;

    fn load(&mut self, slot: U256) -> Result<U256, Infallible> {
        self.reads += 1;
        self.ledger.load(slot)
    }

    fn store(&mut self, slot: U256, value: U256) -> Result<(), Infallible> {
        self.writes += 1;
        self.slots_new += u64::from(!value.is_zero() && !self.ledger.slots.contains_key(&slot));
        self.ledger.store(slot, value)
    }

    fn body(&mut self, _: ScheduleId) -> Result<Option<Bytes>, Infallible> {
        unreachable!("capacity is in slots")
    }

    fn keep_body(&mut self, _: ScheduleId, _: Bytes) -> Result<(), Infallible> {
        unreachable!("capacity is in slots")
    }

    fn credit(&mut self, _: Address, _: Wei) -> Result<(), Infallible> {
        unreachable!("capacity is no money")
    }

    fn take_back(&mut self, _: Address, _: Wei) -> Result<(), Infallible> {
        unreachable!("capacity is no money")
    }

    fn burn(&mut self, _: Wei) -> Result<(), Infallible> {
        unreachable!("capacity is no money")
    }

    fn move_entry(&mut self) -> Result<(), Infallible> {
        unreachable!("capacity is not in the calendar")
    }

    fn prepay(&mut self, _: u64) -> Result<(), Infallible> {
        unreachable!("capacity has no end")
    }
}

/// The parts of a second, as plain numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts {
    pub(crate) high: u64,
    pub(crate) medium: u64,
    pub(crate) shared: u64,
}

impl Parts {
    pub(crate) const DEFAULT: Self = Self { high: 20_000, medium: 5_000, shared: 10_000 };

    pub(crate) fn shares(self) -> Shares {
        Shares::new(self.high, self.medium, self.shared).unwrap()
    }

    fn sum(self) -> u64 {
        self.high + self.medium + self.shared
    }

    /// Whether a class fits: within its parts less what the other class has of the shared one.
    fn fits(self, class: Class, effort: u64, high: u64, medium: u64) -> bool {
        match class {
            Class::High => high + effort + medium.saturating_sub(self.medium) <= self.high + self.shared,
            Class::Medium => medium + effort + high.saturating_sub(self.high) <= self.medium + self.shared,
        }
    }
}

/// A booking.
pub(crate) type Booking = (u64, Class, u64);

/// Both versions.
#[derive(Clone, Debug)]
pub(crate) struct Twin {
    pub(crate) slots: Counting,
    pub(crate) parts: Parts,
    /// The largest sum of parts that was in force.
    sum_max: u64,
    /// High and Medium of each second.
    map: BTreeMap<u64, (u64, u64)>,
    pub(crate) held: Vec<Booking>,
}

impl Twin {
    pub(crate) fn new(parts: Parts) -> Self {
        let (slots, map, held) = Default::default();
        Self { slots, parts, sum_max: parts.sum(), map, held }
    }

    pub(crate) fn set_parts(&mut self, parts: Parts) {
        self.parts = parts;
        self.sum_max = self.sum_max.max(parts.sum());
    }

    /// Books where the dull version does, and nowhere else.
    pub(crate) fn book(&mut self, second: u64, class: Class, effort: u64) -> bool {
        let shares = self.parts.shares();
        let before = self.slots.ledger.slots.len();
        let ([reads, writes, new], booked) =
            self.slots.count(|slots| capacity::book(slots, shares, second, class, effort));
        assert!(reads <= BOOK_READS_MAX && writes <= BOOK_WRITES_MAX && new <= BOOK_SLOTS_NEW_MAX);
        let (high, medium) = self.map.entry(second).or_default();
        let fits = self.parts.fits(class, effort, *high, *medium);
        if fits {
            assert_eq!(booked, Ok(()));
            match class {
                Class::High => *high += effort,
                Class::Medium => *medium += effort,
            }
            assert!(*high + *medium <= self.sum_max, "a block can run all of a second");
            self.held.push((second, class, effort));
        } else {
            let available = capacity::available(&mut self.slots, shares, second, class).unwrap();
            assert!(available < effort);
            assert_eq!(booked, Err(Failure::Refused(NoRoom { second, class, effort, available })));
            assert_eq!((writes, self.slots.ledger.slots.len()), (0, before), "nothing changed");
        }
        self.check(second);
        fits
    }

    /// Releases one of those that are held.
    pub(crate) fn release(&mut self, index: usize) {
        let (second, class, effort) = self.held.swap_remove(index);
        let shares = self.parts.shares();
        let ([reads, writes, new], released) =
            self.slots.count(|slots| capacity::release(slots, shares, second, class, effort));
        assert_eq!(released, Ok(()));
        assert!(reads <= RELEASE_READS_MAX && writes <= RELEASE_WRITES_MAX && new == 0);
        let (high, medium) = self.map.get_mut(&second).unwrap();
        match class {
            Class::High => *high -= effort,
            Class::Medium => *medium -= effort,
        }
        self.check(second);
    }

    /// Releases everything, after which no slot may be left.
    pub(crate) fn release_all(&mut self) {
        while !self.held.is_empty() {
            self.release(self.held.len() / 2);
        }
        assert_eq!(self.slots.ledger, MemoryLedger::default(), "as if nobody had booked");
    }

    fn check(&mut self, second: u64) {
        let (high, medium) = self.map[&second];
        let booked = Booked { high: high.try_into().unwrap(), medium: medium.try_into().unwrap() };
        assert_eq!(capacity::booked(&mut self.slots, second), Ok(booked));
        for class in [Class::High, Class::Medium] {
            let free = capacity::available(&mut self.slots, self.parts.shares(), second, class).unwrap();
            assert!(free == 0 || self.parts.fits(class, free, high, medium));
            assert!(!self.parts.fits(class, free + 1, high, medium));
        }
    }

    /// Searches with so many reads, and answers with how many it took.
    pub(crate) fn search(&mut self, from: u64, effort: u64, reach: Reach) -> (u64, NextFree) {
        let shares = self.parts.shares();
        let ([reads, writes, _], found) =
            self.slots.count(|slots| capacity::next_free(slots, shares, from, effort, reach));
        assert!(reads <= reach.reads && writes == 0);
        let found = found.unwrap();
        let dull = |seconds| self.next_free(from, effort, seconds);
        match found {
            NextFree::Unsearched { from: stopped } => {
                assert_eq!(reads, reach.reads, "it stops only where it has to");
                assert_eq!(dull(stopped - from), None, "it passed over room");
            }
            NextFree::At(second) => assert_eq!(dull(reach.seconds), Some(second)),
            NextFree::Nowhere => assert_eq!(dull(reach.seconds), None),
        }
        (reads, found)
    }

    fn next_free(&self, from: u64, effort: u64, seconds: u64) -> Option<u64> {
        (from..from + seconds).find(|second| {
            let (high, medium) = self.map.get(second).copied().unwrap_or_default();
            self.parts.fits(Class::Medium, effort, high, medium)
        })
    }
}
