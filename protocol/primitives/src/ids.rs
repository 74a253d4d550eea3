//! Schedule ids: where a schedule was born, packed into 64 bits.
//!
//! ```text
//!  63            28 27        10 9       0
//! +----------------+------------+---------+
//! | block (36)     | index (18) | nth(10) |     shown as  1042-3-0
//! +----------------+------------+---------+
//! ```
//!
//! There is no global counter: it would make every schedule conflict with every other one.

use std::{fmt, str::FromStr};

const INDEX_BITS: u32 = 18;
const NTH_BITS: u32 = 10;

/// Highest block number in which a schedule can be born: over 200 years of 100 ms blocks.
pub const ID_BLOCK_MAX: u64 = (1 << 36) - 1;
/// Highest receipt index at which a schedule can be born.
pub const ID_INDEX_MAX: u32 = (1 << INDEX_BITS) - 1;
/// Most schedules that one transaction can create, less one.
pub const ID_NTH_MAX: u16 = (1 << NTH_BITS) - 1;

/// Names a schedule: birth block, receipt index in it, n-th schedule of that transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScheduleId(pub u64);

/// Why an id cannot be made or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleIdError {
    /// The block number needs more than 36 bits.
    #[error("block number {given} is above the last that can hold a schedule, {ID_BLOCK_MAX}")]
    BlockTooHigh {
        /// The refused number.
        given: u64,
    },
    /// The receipt index needs more than 18 bits.
    #[error("receipt index {given} is above the last that can hold a schedule, {ID_INDEX_MAX}")]
    IndexTooHigh {
        /// The refused index.
        given: u32,
    },
    /// One transaction created too many schedules.
    #[error("schedule number {given} of one transaction is above the last allowed, {ID_NTH_MAX}")]
    TooManyInTransaction {
        /// The refused number.
        given: u16,
    },
    /// The text is neither `block-index-nth` nor a number.
    #[error("schedule id {given:?} is neither of the form 1042-3-0 nor a number below 2^64, decimal or 0x…")]
    Malformed {
        /// The text that was given.
        given: String,
    },
}

impl ScheduleId {
    /// Packs the three parts, refusing any that does not fit.
    pub fn new(block: u64, index: u32, nth: u16) -> Result<Self, ScheduleIdError> {
        if block > ID_BLOCK_MAX {
            return Err(ScheduleIdError::BlockTooHigh { given: block });
        }
        if index > ID_INDEX_MAX {
            return Err(ScheduleIdError::IndexTooHigh { given: index });
        }
        if nth > ID_NTH_MAX {
            return Err(ScheduleIdError::TooManyInTransaction { given: nth });
        }
        Ok(Self(block << (INDEX_BITS + NTH_BITS) | u64::from(index) << NTH_BITS | u64::from(nth)))
    }

    /// The block in which the schedule was created.
    pub fn block(self) -> u64 {
        self.0 >> (INDEX_BITS + NTH_BITS)
    }

    /// The receipt index of the transaction that created it.
    pub fn index(self) -> u32 {
        u32::try_from(self.0 >> NTH_BITS & u64::from(ID_INDEX_MAX)).expect("masked to 18 bits")
    }

    /// Which of that transaction's schedules it is, from 0.
    pub fn nth(self) -> u16 {
        u16::try_from(self.0 & u64::from(ID_NTH_MAX)).expect("masked to 10 bits")
    }
}

impl fmt::Display for ScheduleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.block(), self.index(), self.nth())
    }
}

impl FromStr for ScheduleId {
    type Err = ScheduleIdError;

    fn from_str(text: &str) -> Result<Self, ScheduleIdError> {
        let malformed = || ScheduleIdError::Malformed { given: text.chars().take(64).collect() };
        if let Some(digits) = text.strip_prefix("0x") {
            // With zeroes in front too: topics of logs have 64 digits.
            let is_hex = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
            let packed = is_hex.then(|| u64::from_str_radix(digits, 16).ok()).flatten();
            return packed.map(Self).ok_or_else(malformed);
        }
        if let Some(packed) = parse_number(text) {
            return Ok(Self(packed));
        }
        let mut parts = text.split('-');
        let (Some(block), Some(index), Some(nth), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(malformed());
        };
        let block = parse_number(block).ok_or_else(malformed)?;
        let index = parse_number(index).ok_or_else(malformed)?;
        let nth = parse_number(nth).ok_or_else(malformed)?;
        Self::new(block, index, nth)
    }
}

/// A number without sign or leading zeroes, so that an id has one text with dashes and one decimal one.
fn parse_number<T: FromStr>(text: &str) -> Option<T> {
    let is_plain = text == "0" || text.starts_with(|first: char| matches!(first, '1'..='9'));
    is_plain.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_sides_of_each_bound() {
        let last = ScheduleId::new(ID_BLOCK_MAX, ID_INDEX_MAX, ID_NTH_MAX).unwrap();
        assert_eq!(last.0, u64::MAX);
        assert_eq!(
            ScheduleId::new(ID_BLOCK_MAX + 1, 0, 0),
            Err(ScheduleIdError::BlockTooHigh { given: ID_BLOCK_MAX + 1 })
        );
        assert_eq!(
            ScheduleId::new(0, ID_INDEX_MAX + 1, 0),
            Err(ScheduleIdError::IndexTooHigh { given: ID_INDEX_MAX + 1 })
        );
        assert_eq!(
            ScheduleId::new(0, 0, ID_NTH_MAX + 1),
            Err(ScheduleIdError::TooManyInTransaction { given: ID_NTH_MAX + 1 })
        );
    }

    #[test]
    fn people_read_and_write_it_with_dashes() {
        let id = ScheduleId::new(1042, 3, 0).unwrap();
        assert_eq!(id.to_string(), "1042-3-0");
        assert_eq!("1042-3-0".parse(), Ok(id));
        assert_eq!(id.0.to_string().parse(), Ok(id));
        for bad in [
            "",
            "-",
            "1-2",
            "1-2-3-4",
            "x-1-0",
            "1042-3--0",
            "68719476736-0-0",
            "+7",
            "007",
            "+1-0-0",
            "1-00-0",
        ] {
            assert!(bad.parse::<ScheduleId>().is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_number_survives_its_text(packed: u64) {
            let id = ScheduleId(packed);
            prop_assert_eq!(ScheduleId::new(id.block(), id.index(), id.nth()), Ok(id));
            prop_assert_eq!(id.to_string().parse(), Ok(id));
        }

        #[test]
        fn reading_garbage_never_panics(text in ".{0,40}") {
            let _ = text.parse::<ScheduleId>();
        }

        /// Ids sort by birth: block, then place in it.
        #[test]
        fn order_is_birth_order(a: (u32, u8, u8), b: (u32, u8, u8)) {
            let id = |x: (u32, u8, u8)| ScheduleId::new(x.0.into(), x.1.into(), x.2.into()).unwrap();
            prop_assert_eq!(id(a).cmp(&id(b)), a.cmp(&b));
        }
    }
}
