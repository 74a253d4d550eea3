//! How much of each second is booked: reserved runs get their room when they are created, or not at all.
//!
//! ```text
//!   |<---- High only ---->|<- Medium only ->|<---- both ---->|      effort of one second
//!
//!   rank 3   32,768 s   Hints      16 × the least that Medium finds taken in a second of a part
//!   rank 2    2,048 s   Hints
//!   rank 1      128 s   Hints
//!   rank 0        8 s   Bookings   8 × (High, Medium)
//! ```
//!
//! Everything is in slots of the ledger, in the EVM's journal, since later transactions of a block must see what
//! earlier ones booked. A slot in which nothing is booked, or which promises room everywhere, is not stored.
//!
//! Bookings are the truth. Hints let a search pass over full stretches, and obey one rule: **no hint is above what
//! Medium finds taken in any second of its part**. So a search may look in vain, but never passes over room. Bookings
//! can only raise what is taken, so they may leave a hint as it is; a release visits all hints above its second.
//!
//! Stretches begin at multiples of their length in absolute time. A run releases its booking when it begins, so
//! seconds that have passed leave nothing behind and no window has to move. Decision 0030 has the reasons.

mod book;
mod bookings;
mod cost;
mod hints;
mod search;
mod shares;
mod stretch;

pub use book::{Booking, NoRoom, NotBooked, book, release};
pub use bookings::{Booked, Bookings};
pub use cost::{
    BOOK_READS_MAX, BOOK_SLOTS_NEW_MAX, BOOK_WRITES_MAX, RELEASE_GAS, RELEASE_READS_MAX, RELEASE_WRITES_MAX,
    search_reads_exact,
};
pub use search::{NextFree, Reach, next_free};
pub use shares::{Class, Shares, SharesError};

use crate::ledger::Ledger;
use alloy_primitives::U256;
use stretch::Stretch;

/// The slot of the ledger that holds the [`Bookings`] of this second and its neighbours.
pub fn bookings_slot(second: u64) -> U256 {
    Stretch::of(0, second).slot()
}

/// What is booked in a second.
pub fn booked<L: Ledger>(ledger: &mut L, second: u64) -> Result<Booked, L::Error> {
    let word = ledger.load(bookings_slot(second))?;
    Ok(Bookings::from_word(word).at(second))
}

/// The effort that a class can still book in a second.
pub fn available<L: Ledger>(
    ledger: &mut L,
    shares: Shares,
    second: u64,
    class: Class,
) -> Result<u64, L::Error> {
    let booked = booked(ledger, second)?;
    Ok(shares.available(booked, class).into())
}
