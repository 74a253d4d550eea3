//! The mutable part of a record, packed into one slot.
//!
//! ```text
//!  0        1        2      3      4          12         20      24           32
//! +--------+--------+------+------+----------+----------+-------+------------+
//! | version| status | lane | last | due ms   | priority | runs  | until      |    big-endian
//! +--------+--------+------+------+----------+----------+-------+------------+
//! ```
//!
//! Priority and until cache values that follow from escrow and body, so that a block can pass over a schedule
//! that will not run with one read: looking at it must not cost more than was paid for the look.

use alloy_primitives::U256;
use almanac_primitives::{
    Halt, Lane, Outcome, TimestampMs,
    codec::{DecodeError, Reader},
};

const VERSION: u8 = 2;

/// The part of a record that changes with every run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Where the schedule is in its life.
    pub status: Status,
    /// The lane of its runs.
    pub lane: Lane,
    /// How its last run ended.
    pub last: LastRun,
    /// When its next run is due, or when the current one was; `None` if no time triggers it.
    pub due: Option<TimestampMs>,
    /// The value by which its door sorts or passes over schedules. For a cron job: the most that its next run
    /// can pay per gas.
    pub priority: u64,
    /// Number of runs begun.
    pub runs: u32,
    /// When this status ends by itself; zero means never. For a pending schedule: the time in milliseconds from
    /// which its run is skipped. For one that waits for a price: when it expires, in its door's unit. For an
    /// ended one: the block in which its record is removed.
    pub until: u64,
}

/// Where a schedule is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// It waits for its trigger.
    Pending = 1,
    /// Its last run is in progress.
    Running = 2,
    /// A fault of the chain's own took it out of the calendar; its owner may cancel it and gets the escrow
    /// back.
    Quarantined = 3,
    /// It is due and waits for a better price.
    Waiting = 4,
    /// The start of this block selected it; its run follows.
    Processed = 5,
    /// It ended with a successful run. Ended schedules stay readable for a while if their door keeps them.
    Succeeded = 6,
    /// It ended with a failed run.
    Failed = 7,
    /// Its owner cancelled it.
    Cancelled = 8,
    /// It waited too long.
    Expired = 9,
    /// Its door was shut down.
    Shutdown = 10,
}

/// How the last run of a schedule ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastRun {
    /// There was no run yet.
    None,
    /// It succeeded.
    Succeeded,
    /// It reverted; the receipt has the reason.
    Reverted,
    /// It halted.
    Halted(Halt),
}

/// Set in the encoding of halts.
const HALT_BIT: u8 = 0x80;

impl LastRun {
    /// The result of a run with this outcome.
    pub fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Success => Self::Succeeded,
            Outcome::Reverted(_) => Self::Reverted,
            Outcome::Halted(halt) => Self::Halted(*halt),
        }
    }

    /// Its number in encodings.
    pub fn number(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Succeeded => 1,
            Self::Reverted => 2,
            Self::Halted(halt) => HALT_BIT | halt as u8,
        }
    }

    /// The result with this number.
    pub fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::None),
            1 => Some(Self::Succeeded),
            2 => Some(Self::Reverted),
            halted => Halt::from_number(halted ^ HALT_BIT).map(Self::Halted),
        }
    }
}

impl Status {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Pending,
        Self::Running,
        Self::Quarantined,
        Self::Waiting,
        Self::Processed,
        Self::Succeeded,
        Self::Failed,
        Self::Cancelled,
        Self::Expired,
        Self::Shutdown,
    ];

    /// Whether a run is still to come: it waits for its trigger, or for a better price.
    pub fn awaits_run(self) -> bool {
        matches!(self, Self::Pending | Self::Waiting)
    }

    /// Whether the schedule has ended.
    pub fn is_ended(self) -> bool {
        match self {
            Self::Pending | Self::Running | Self::Quarantined | Self::Waiting | Self::Processed => false,
            Self::Succeeded | Self::Failed | Self::Cancelled | Self::Expired | Self::Shutdown => true,
        }
    }
}

impl Head {
    /// The slot's value.
    pub fn to_word(&self) -> U256 {
        let mut word = [0; 32];
        word[..4].copy_from_slice(&[VERSION, self.status as u8, self.lane as u8, self.last.number()]);
        word[4..12].copy_from_slice(&self.due.map_or(0, |due| due.0).to_be_bytes());
        word[12..20].copy_from_slice(&self.priority.to_be_bytes());
        word[20..24].copy_from_slice(&self.runs.to_be_bytes());
        word[24..].copy_from_slice(&self.until.to_be_bytes());
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
            due: Some(TimestampMs(input.u64("due time")?)).filter(|due| due.0 > 0),
            priority: input.u64("priority")?,
            runs: input.u32("runs")?,
            until: input.u64("until")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn one_head_has_one_word(bytes: [u8; 32], plausible: bool) {
            let mut bytes = bytes;
            if plausible {
                bytes[0] = VERSION;
                bytes[1] %= 11;
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
                due: Some(TimestampMs(u64::MAX)),
                priority: 7,
                runs: u32::MAX,
                until: u64::MAX,
            };
            assert_eq!(Head::from_word(head.to_word()), Ok(head));
        }
    }

    #[test]
    fn no_head_is_the_empty_slot() {
        assert!(Head::from_word(U256::ZERO).is_err(), "an empty slot is no schedule");
    }

    #[test]
    fn every_status_survives_with_a_time_and_without() {
        for status in Status::ALL {
            for due in [None, Some(TimestampMs(1))] {
                let (lane, last) = (Lane::Market, LastRun::None);
                let head = Head { status, lane, last, due, priority: 0, runs: 0, until: 0 };
                assert_eq!(Head::from_word(head.to_word()), Ok(head));
            }
        }
    }
}
