//! How the effort of one second is divided, and what is left of it.

use super::Booked;
use almanac_primitives::params::{
    Parameters, SECOND_EFFORT_HIGH, SECOND_EFFORT_HIGH_MAX, SECOND_EFFORT_MEDIUM, SECOND_EFFORT_MEDIUM_MAX,
    SECOND_EFFORT_SHARED, SECOND_HIGH_EFFORT, SECOND_MEDIUM_EFFORT, SECOND_SHARED_EFFORT,
};

/// How a run books its room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// In its second, or not at all.
    High,
    /// In its second or a later one.
    Medium,
}

/// The parts of every second, in effort (FLIP330-06).
///
/// When governance makes them smaller, what is booked stays booked: a class then has no room left, and no less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    high: u16,
    medium: u16,
    shared: u16,
}

/// Why a second cannot be divided so: its bookings would not fit their place in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SharesError {
    /// High could book too much.
    #[error("{high} effort for High and {shared} shared are more than {max} in one second")]
    HighTooLarge {
        /// High's own part.
        high: u64,
        /// The shared part.
        shared: u64,
        /// Most that both may be.
        max: u16,
    },
    /// Medium could book too much.
    #[error("{medium} effort for Medium and {shared} shared are more than {max} in one second")]
    MediumTooLarge {
        /// Medium's own part.
        medium: u64,
        /// The shared part.
        shared: u64,
        /// Most that both may be.
        max: u16,
    },
}

impl Shares {
    /// Those of FLIP330-06.
    pub const DEFAULT: Self =
        Self { high: SECOND_EFFORT_HIGH, medium: SECOND_EFFORT_MEDIUM, shared: SECOND_EFFORT_SHARED };

    /// A second with an own part for each class and one that both may use.
    pub fn new(high: u64, medium: u64, shared: u64) -> Result<Self, SharesError> {
        if high.saturating_add(shared) > SECOND_EFFORT_HIGH_MAX.into() {
            return Err(SharesError::HighTooLarge { high, shared, max: SECOND_EFFORT_HIGH_MAX });
        }
        let too_large = SharesError::MediumTooLarge { medium, shared, max: SECOND_EFFORT_MEDIUM_MAX };
        if medium.saturating_add(shared) > SECOND_EFFORT_MEDIUM_MAX.into() {
            return Err(too_large);
        }
        let part = |effort: u64| u16::try_from(effort).map_err(|_| too_large);
        Ok(Self { high: part(high)?, medium: part(medium)?, shared: part(shared)? })
    }

    /// Those in force. Parameters that do not fit were refused when they were set.
    pub fn of(parameters: &Parameters) -> Self {
        let [high, medium, shared] =
            [SECOND_HIGH_EFFORT, SECOND_MEDIUM_EFFORT, SECOND_SHARED_EFFORT].map(|part| parameters.get(part));
        Self::new(high, medium, shared).unwrap_or(Self::DEFAULT)
    }

    /// High's own part, the only one on which hints depend.
    pub(super) fn high(&self) -> u16 {
        self.high
    }

    /// Most that a class can book in a second: its own part and the shared one.
    pub fn most(&self, class: Class) -> u16 {
        self.shared
            + match class {
                Class::High => self.high,
                Class::Medium => self.medium,
            }
    }

    /// What a class finds taken of its [`most`](Self::most): its own bookings, and the other class's beyond that one's
    /// own part.
    ///
    /// Where parts became smaller, the other class may hold more than the shared part. The excess counts too, so
    /// that all bookings of a second never exceed the largest sum of parts that was ever in force, and a block can
    /// run them.
    pub(super) fn taken(&self, booked: Booked, class: Class) -> u32 {
        let Booked { high, medium } = booked;
        let (own, beyond) = match class {
            Class::High => (high, medium.saturating_sub(self.medium)),
            Class::Medium => (medium, high.saturating_sub(self.high)),
        };
        u32::from(own) + u32::from(beyond)
    }

    /// Effort that a class can still book.
    pub fn available(&self, booked: Booked, class: Class) -> u16 {
        let taken = u16::try_from(self.taken(booked, class)).unwrap_or(u16::MAX);
        self.most(class).saturating_sub(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HIGH: u64 = SECOND_EFFORT_HIGH_MAX as u64;
    const MEDIUM: u64 = SECOND_EFFORT_MEDIUM_MAX as u64;

    #[test]
    fn both_sides_of_each_sum_of_parts() {
        assert_eq!(Shares::new(20_000, 5_000, 10_000), Ok(Shares::DEFAULT));
        assert!(Shares::new(HIGH, MEDIUM, 0).is_ok());
        assert!(Shares::new(0, 0, MEDIUM).is_ok());
        assert!(Shares::new(0, 0, 0).is_ok());
        assert!(Shares::new(HIGH - MEDIUM, 0, MEDIUM).is_ok());
        let high_too_large =
            |high, shared| Err(SharesError::HighTooLarge { high, shared, max: SECOND_EFFORT_HIGH_MAX });
        let medium_too_large = |medium, shared| {
            Err(SharesError::MediumTooLarge { medium, shared, max: SECOND_EFFORT_MEDIUM_MAX })
        };
        assert_eq!(Shares::new(HIGH, 0, 1), high_too_large(HIGH, 1));
        assert_eq!(Shares::new(HIGH + 1, 0, 0), high_too_large(HIGH + 1, 0));
        assert_eq!(Shares::new(u64::MAX, 0, 1), high_too_large(u64::MAX, 1));
        assert_eq!(Shares::new(0, MEDIUM, 1), medium_too_large(MEDIUM, 1));
        assert_eq!(Shares::new(0, 0, MEDIUM + 1), medium_too_large(0, MEDIUM + 1));
        assert_eq!(Shares::new(0, u64::MAX, 1), medium_too_large(u64::MAX, 1));
    }

    /// FLIP330-06: each class may use its own part and what the other left of the shared one.
    #[test]
    fn flip330_06_the_shared_part_is_there_once() {
        let left = |high, medium| {
            let booked = Booked { high, medium };
            [Class::High, Class::Medium].map(|class| Shares::DEFAULT.available(booked, class))
        };
        assert_eq!(left(0, 0), [30_000, 15_000]);
        assert_eq!(left(20_000, 5_000), [10_000, 10_000]);
        assert_eq!(left(20_001, 5_000), [9_999, 9_999]);
        assert_eq!(left(26_000, 7_000), [2_000, 2_000]);
        assert_eq!(left(30_000, 0), [0, 5_000], "Medium keeps its own part");
        assert_eq!(left(0, 15_000), [20_000, 0], "High keeps its own part");
        assert_eq!(left(30_000, 5_000), [0, 0]);
    }

    #[test]
    fn where_parts_became_smaller_nothing_is_left_and_nothing_overflows() {
        let all = Booked { high: u16::MAX, medium: u16::MAX };
        for shares in [Shares::new(0, 0, 0).unwrap(), Shares::DEFAULT, Shares::new(HIGH, MEDIUM, 0).unwrap()]
        {
            assert_eq!([Class::High, Class::Medium].map(|class| shares.available(all, class)), [0, 0]);
        }
        // High was 20,000 and 10,000 shared. Were its excess not counted, 35,000 more would fit.
        let shrunk = Shares::new(0, 32_000, 0).unwrap();
        assert_eq!(shrunk.available(Booked { high: 30_000, medium: 0 }, Class::Medium), 2_000);
    }
}
