//! What a search knows of a stretch without reading all of it: one slot of the ledger.
//!
//! ```text
//!   high u16  |  least u15  |  least u15  |  …      16 parts, big-endian, the first part first
//! ```
//!
//! `high` is High's own part of a second when the hints were written. What Medium finds taken depends on it, and on no
//! other parameter. Had governance to rewrite all hints, a change would touch any number of slots. Instead, hints
//! under another `high` are read as what they still guarantee:
//!
//! ```text
//!   taken = medium + (booked high − high, at least 0)
//! ```
//!
//! falls by at most `d` where `high` grows by `d`, and never falls where `high` shrinks.

use super::stretch::PARTS;
use alloy_primitives::U256;

const HINT_BITS: usize = 15;
/// The largest hint. No Medium run fits where so much is taken: Medium's own part and the shared one are no more.
pub(super) const HINT_MAX: u16 = (1 << HINT_BITS) - 1;
const HIGH_SHIFT: usize = PARTS * HINT_BITS;

/// For each part of a stretch a number that is not above what Medium finds taken in any second of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hints([u16; PARTS]);

impl Hints {
    /// Reads the slot's value, as it is to be understood where High's own part is `high`.
    pub(super) fn from_word(word: U256, high: u16) -> Self {
        let high_then = (word >> HIGH_SHIFT).wrapping_to::<u16>();
        let lost = high.saturating_sub(high_then);
        Self(std::array::from_fn(|part| {
            let hint = (word >> shift(part)).wrapping_to::<u16>() & HINT_MAX;
            hint.saturating_sub(lost)
        }))
    }

    /// The slot's value; zero where every part may have a second in which nothing is taken.
    pub(super) fn to_word(&self, high: u16) -> U256 {
        if self.0 == [0; PARTS] {
            return U256::ZERO;
        }
        let high = U256::from(high) << HIGH_SHIFT;
        let parts = self.0.iter().enumerate();
        parts.fold(high, |word, (part, hint)| word | U256::from(*hint) << shift(part))
    }

    /// The hint of a part.
    pub(super) fn of(&self, part: usize) -> u16 {
        self.0[part]
    }

    /// Notes that Medium finds at least this taken in every second of a part.
    pub(super) fn set(&mut self, part: usize, taken: u32) {
        self.0[part] = u16::try_from(taken).unwrap_or(HINT_MAX).min(HINT_MAX);
    }

    /// What the hints together say of the whole stretch.
    pub(super) fn least(&self) -> u32 {
        self.0.iter().copied().min().unwrap_or_default().into()
    }
}

fn shift(part: usize) -> usize {
    HINT_BITS * (PARTS - 1 - part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn hints_survive_their_slot(parts: [u16; PARTS], high: u16) {
            let mut hints = Hints([0; PARTS]);
            for (part, hint) in parts.into_iter().enumerate() {
                hints.set(part, (hint & HINT_MAX).into());
            }
            prop_assert_eq!(Hints::from_word(hints.to_word(high), high), hints);
        }
    }

    #[test]
    fn hints_that_promise_room_everywhere_are_not_stored() {
        assert_eq!(Hints([0; PARTS]).to_word(20_000), U256::ZERO);
        let mut hints = Hints([0; PARTS]);
        hints.set(15, 1);
        assert_ne!(hints.to_word(0), U256::ZERO, "no own part of High is a value, too");
    }

    #[test]
    fn both_sides_of_the_largest_hint() {
        let mut hints = Hints([0; PARTS]);
        for (taken, hint) in [(32_766, 32_766), (32_767, 32_767), (32_768, 32_767), (u32::MAX, 32_767)] {
            hints.set(7, taken);
            assert_eq!(Hints::from_word(hints.to_word(u16::MAX), u16::MAX).of(7), hint);
        }
    }

    #[test]
    fn under_another_share_of_high_hints_say_what_they_still_guarantee() {
        let mut hints = Hints([0; PARTS]);
        hints.set(0, 500);
        hints.set(1, 5);
        let word = hints.to_word(1_000);
        let read = |high| [0, 1, 2].map(|part| Hints::from_word(word, high).of(part));
        assert_eq!(read(1_000), [500, 5, 0]);
        assert_eq!(read(1_010), [490, 0, 0], "High may have kept ten more for itself in every second");
        assert_eq!(read(1_500), [0, 0, 0]);
        assert_eq!(read(0), [500, 5, 0], "where High's part is smaller, no less is taken");
    }
}
