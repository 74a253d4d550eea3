//! What is booked in eight seconds: one slot of the ledger.
//!
//! ```text
//!   high u16, medium u16  |  high u16, medium u16  |  …      big-endian, the first second first
//! ```

use super::{Class, Shares, stretch::BOOKINGS_SECONDS};
use alloy_primitives::U256;

const SECOND_BYTES: usize = 32 / BOOKINGS_SECONDS;

/// What is booked in one second, in effort.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Booked {
    /// By High runs.
    pub high: u16,
    /// By Medium runs.
    pub medium: u16,
}

impl Booked {
    pub(super) fn of(&mut self, class: Class) -> &mut u16 {
        match class {
            Class::High => &mut self.high,
            Class::Medium => &mut self.medium,
        }
    }
}

/// What is booked in the seconds of one slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bookings([Booked; BOOKINGS_SECONDS]);

impl Bookings {
    /// Reads the slot's value.
    pub fn from_word(word: U256) -> Self {
        let bytes = word.to_be_bytes::<32>();
        let effort = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        Self(std::array::from_fn(|place| {
            let at = place * SECOND_BYTES;
            Booked { high: effort(at), medium: effort(at + 2) }
        }))
    }

    /// The slot's value; zero where nothing is booked.
    pub fn to_word(&self) -> U256 {
        let mut word = [0; 32];
        for (bytes, booked) in word.chunks_exact_mut(SECOND_BYTES).zip(self.0) {
            bytes[..2].copy_from_slice(&booked.high.to_be_bytes());
            bytes[2..].copy_from_slice(&booked.medium.to_be_bytes());
        }
        U256::from_be_bytes(word)
    }

    /// What is booked in a second, which is one of these.
    pub fn at(&self, second: u64) -> Booked {
        self.0[place(second)]
    }

    pub(super) fn at_mut(&mut self, second: u64) -> &mut Booked {
        &mut self.0[place(second)]
    }

    /// The least that Medium finds taken in any of the seconds.
    pub(super) fn least(&self, shares: Shares) -> u32 {
        self.0.iter().map(|booked| shares.taken(*booked, Class::Medium)).min().unwrap_or_default()
    }
}

fn place(second: u64) -> usize {
    usize::try_from(second % BOOKINGS_SECONDS as u64).expect("there are eight")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn one_word_is_one_set_of_bookings(bytes: [u8; 32]) {
            let word = U256::from_be_bytes(bytes);
            prop_assert_eq!(Bookings::from_word(word).to_word(), word);
        }
    }

    #[test]
    fn each_second_has_its_place() {
        for second in 80..88 {
            let mut bookings = Bookings::from_word(U256::ZERO);
            *bookings.at_mut(second) = Booked { high: 1, medium: u16::MAX };
            let read = Bookings::from_word(bookings.to_word());
            let booked: Vec<_> = (80..88).filter(|at| read.at(*at) != Booked::default()).collect();
            assert_eq!((booked, read.at(second)), (vec![second], Booked { high: 1, medium: u16::MAX }));
        }
    }
}
