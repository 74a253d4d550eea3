//! Books room in a second and gives it back, to the unit.

use super::{
    Bookings, Class, Shares,
    hints::Hints,
    stretch::{RANK_MAX, Stretch},
};
use crate::ledger::{Failure, Ledger};

/// Room that a schedule holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Booking {
    /// The second.
    pub second: u64,
    /// In which part of it.
    pub class: Class,
    /// How much.
    pub effort: u64,
}

/// A second has too little room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("second {second} has {available} effort for {class:?}, not {effort}")]
pub struct NoRoom {
    /// The second.
    pub second: u64,
    /// Who asked.
    pub class: Class,
    /// The effort that was asked for.
    pub effort: u64,
    /// The effort that is left.
    pub available: u64,
}

/// Somebody gives back what was not booked: a fault of our own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("second {second} has {booked} effort booked for {class:?}, so {effort} cannot be released")]
pub struct NotBooked {
    /// The second.
    pub second: u64,
    /// Whose booking it would be.
    pub class: Class,
    /// The effort that was to be released.
    pub effort: u64,
    /// The effort that is booked.
    pub booked: u64,
}

/// Books effort in a second. If there is too little, nothing changes.
pub fn book<L: Ledger>(
    ledger: &mut L,
    shares: Shares,
    second: u64,
    class: Class,
    effort: u64,
) -> Result<(), Failure<NoRoom, L::Error>> {
    let slot = Stretch::of(0, second).slot();
    let mut bookings = Bookings::from_word(ledger.load(slot).map_err(Failure::Ledger)?);
    let before = bookings.least(shares);
    let booked = bookings.at_mut(second);
    let available = shares.available(*booked, class);
    let no_room = NoRoom { second, class, effort, available: available.into() };
    let fitting = u16::try_from(effort).ok().filter(|effort| *effort <= available);
    // The sum is at most `shares.most(class)`, which has 16 bits.
    *booked.of(class) += fitting.ok_or(Failure::Refused(no_room))?;
    ledger.store(slot, bookings.to_word()).map_err(Failure::Ledger)?;
    raise_hints(ledger, shares, second, before, bookings.least(shares)).map_err(Failure::Ledger)
}

/// Gives back effort that was booked. If so much is not, nothing changes.
pub fn release<L: Ledger>(
    ledger: &mut L,
    shares: Shares,
    second: u64,
    class: Class,
    effort: u64,
) -> Result<(), Failure<NotBooked, L::Error>> {
    let slot = Stretch::of(0, second).slot();
    let mut bookings = Bookings::from_word(ledger.load(slot).map_err(Failure::Ledger)?);
    let booked = bookings.at_mut(second).of(class);
    let not_booked = NotBooked { second, class, effort, booked: (*booked).into() };
    let left = u64::from(*booked).checked_sub(effort).and_then(|left| u16::try_from(left).ok());
    *booked = left.ok_or(Failure::Refused(not_booked))?;
    ledger.store(slot, bookings.to_word()).map_err(Failure::Ledger)?;
    lower_hints(ledger, shares, second, bookings.least(shares)).map_err(Failure::Ledger)
}

/// After a booking. Stops where a stretch has as much room as before: what is above knows that already.
fn raise_hints<L: Ledger>(
    ledger: &mut L,
    shares: Shares,
    second: u64,
    mut before: u32,
    mut least: u32,
) -> Result<(), L::Error> {
    for rank in 1..=RANK_MAX {
        if least == before {
            break;
        }
        (before, least) = change_hint(ledger, shares, rank, second, |_| least)?;
    }
    Ok(())
}

/// After a release. Does not stop early: where High's own part has changed since the hints above were written, they
/// may promise too little although the ones below are right. Raises no hint, even if it could, so that a release
/// never makes a slot.
fn lower_hints<L: Ledger>(
    ledger: &mut L,
    shares: Shares,
    second: u64,
    mut least: u32,
) -> Result<(), L::Error> {
    for rank in 1..=RANK_MAX {
        (_, least) = change_hint(ledger, shares, rank, second, |hint| hint.min(least))?;
    }
    Ok(())
}

/// Changes the hint of the part that a second is in, and answers with the least of the whole stretch, before and after.
fn change_hint<L: Ledger>(
    ledger: &mut L,
    shares: Shares,
    rank: u32,
    second: u64,
    change: impl FnOnce(u32) -> u32,
) -> Result<(u32, u32), L::Error> {
    let slot = Stretch::of(rank, second).slot();
    let part = Stretch::of(rank - 1, second).place();
    let stored = ledger.load(slot)?;
    let mut hints = Hints::from_word(stored, shares.high());
    let before = hints.least();
    hints.set(part, change(hints.of(part).into()));
    let word = hints.to_word(shares.high());
    if word != stored {
        ledger.store(slot, word)?;
    }
    Ok((before, hints.least()))
}
