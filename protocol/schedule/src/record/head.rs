//! What changes in a record, packed into one slot.
//!
//! ```text
//!  0        1        2      3      4          12         20       28          32
//! +--------+--------+------+------+----------+----------+--------+-----------+
//! | version| status | lane | last | due ms   | price    | runs   | skip s    |    big-endian
//! +--------+--------+------+------+----------+----------+--------+-----------+
//! ```
//!
//! Price and skip repeat what escrow and body say, so that a block can pass over a schedule that will not run
//! with one read: what a block has to look at must not cost more than the look was paid for.

use crate::life::Moment;
use alloy_primitives::U256;
use almanac_primitives::{
    Halt, Lane, Outcome, TimestampMs,
    codec::{DecodeError, Reader},
    params::SECOND_MS,
};

const VERSION: u8 = 1;

/// The part of a record that changes with every run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Where in its life the schedule is.
    pub status: Status,
    /// How its runs get into a block.
    pub lane: Lane,
    /// How its last run ended.
    pub last: LastRun,
    /// When its next run is due, or the one under way was.
    pub due: TimestampMs,
    /// The most that its next run can pay per gas. Outside of the cron lane, the higher price goes first at the
    /// same time.
    pub price: u64,
    /// Runs that have begun.
    pub runs: u64,
    /// The interval in seconds of a series that skips what it has missed; zero for all others.
    pub skip_seconds: u32,
}

/// Where in its life a schedule is. One that has ended has no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// It waits in the calendar.
    Pending = 1,
    /// Its last run is under way.
    Running = 2,
    /// A fault of the chain's own put it aside; its owner may cancel it and gets the escrow.
    Quarantined = 3,
}

/// How the last run of a schedule ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastRun {
    /// There was none.
    None,
    /// It returned.
    Succeeded,
    /// It reverted; the receipt has the reason.
    Reverted,
    /// It was stopped.
    Halted(Halt),
}

/// Halts are told from the other ends by this bit.
const HALT_BIT: u8 = 0x80;

impl LastRun {
    /// How a run with this outcome ended.
    pub fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Success => Self::Succeeded,
            Outcome::Reverted(_) => Self::Reverted,
            Outcome::Halted(halt) => Self::Halted(*halt),
        }
    }

    fn number(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Succeeded => 1,
            Self::Reverted => 2,
            Self::Halted(halt) => HALT_BIT | halt as u8,
        }
    }

    fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::None),
            1 => Some(Self::Succeeded),
            2 => Some(Self::Reverted),
            halted => Halt::from_number(halted ^ HALT_BIT).map(Self::Halted),
        }
    }
}

impl Status {
    const ALL: [Self; 3] = [Self::Pending, Self::Running, Self::Quarantined];
}

impl Head {
    /// The slot's value.
    pub fn to_word(&self) -> U256 {
        let mut word = [0; 32];
        word[..4].copy_from_slice(&[VERSION, self.status as u8, self.lane as u8, self.last.number()]);
        word[4..12].copy_from_slice(&self.due.0.to_be_bytes());
        word[12..20].copy_from_slice(&self.price.to_be_bytes());
        word[20..28].copy_from_slice(&self.runs.to_be_bytes());
        word[28..].copy_from_slice(&self.skip_seconds.to_be_bytes());
        U256::from_be_bytes(word)
    }

    /// Reads the slot's value.
    pub fn from_word(word: U256) -> Result<Self, DecodeError> {
        let bytes = word.to_be_bytes::<32>();
        let mut input = Reader::versioned(&bytes, "schedule head", VERSION)?;
        let (status, lane, last) = (input.u8("status")?, input.u8("lane")?, input.u8("last run")?);
        let unknown = |what, given: u8| DecodeError::UnknownValue { what, given: given.into() };
        Ok(Self {
            status: Status::ALL
                .into_iter()
                .find(|known| *known as u8 == status)
                .ok_or_else(|| unknown("status", status))?,
            lane: Lane::from_number(lane).ok_or_else(|| unknown("lane", lane))?,
            last: LastRun::from_number(last).ok_or_else(|| unknown("last run", last))?,
            due: TimestampMs(input.u64("due time")?),
            price: input.u64("price")?,
            runs: input.u64("runs")?,
            skip_seconds: input.u32("skip seconds")?,
        })
    }

    /// Whether a block can tell from the head alone that this schedule does not run: it cannot pay, or it skips
    /// what it has missed.
    pub fn is_passed_over(&self, moment: Moment) -> bool {
        let skipped_from = self.due.0.saturating_add(u64::from(self.skip_seconds) * SECOND_MS);
        let is_skipped = self.skip_seconds > 0 && skipped_from <= moment.now.0;
        is_skipped || u128::from(self.price) < moment.base_fee.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use almanac_primitives::GasPrice;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn one_head_has_one_word(bytes: [u8; 32], plausible: bool) {
            let mut bytes = bytes;
            if plausible {
                bytes[0] = VERSION;
                bytes[1] %= 4;
                bytes[2] %= 5;
                bytes[3] %= 4;
            }
            let word = U256::from_be_bytes(bytes);
            if let Ok(head) = Head::from_word(word) {
                prop_assert_eq!(head.to_word(), word);
            }
        }
    }

    #[test]
    fn every_end_of_a_run_survives() {
        let outcomes = [
            Outcome::Success,
            Outcome::Reverted(Default::default()),
            Outcome::Halted(Halt::OutOfGas),
            Outcome::Halted(Halt::Other),
        ];
        for last in outcomes.iter().map(LastRun::of).chain([LastRun::None]) {
            let head = Head {
                status: Status::Pending,
                lane: Lane::Cron,
                last,
                due: TimestampMs(u64::MAX),
                price: 7,
                runs: u64::MAX,
                skip_seconds: u32::MAX,
            };
            assert_eq!(Head::from_word(head.to_word()), Ok(head));
        }
    }

    #[test]
    fn no_head_is_the_empty_slot() {
        assert!(Head::from_word(U256::ZERO).is_err(), "an empty slot is no schedule");
    }

    #[test]
    fn a_head_alone_tells_who_does_not_run() {
        let head = |price, skip_seconds| Head {
            status: Status::Pending,
            lane: Lane::Cron,
            last: LastRun::None,
            due: TimestampMs(5_000),
            price,
            runs: 0,
            skip_seconds,
        };
        let at = |now, base_fee| Moment { now: TimestampMs(now), base_fee: GasPrice(base_fee) };
        assert!(!head(7, 0).is_passed_over(at(5_000, 7)), "exactly enough");
        assert!(head(7, 0).is_passed_over(at(5_000, 8)), "a wei per gas too little");
        assert!(!head(u64::MAX, 0).is_passed_over(at(u64::MAX, u64::MAX.into())));
        assert!(!head(7, 60).is_passed_over(at(64_999, 7)), "nothing is missed yet");
        assert!(head(7, 60).is_passed_over(at(65_000, 7)), "the time after has come");
        assert!(!head(7, 0).is_passed_over(at(u64::MAX, 7)), "it does not skip");
    }
}
