//! How schedules look among the rows.
//!
//! ```text
//! schedules        schedule id                 -> who, what, how often it ran, how it ended
//! schedule bodies  schedule id                 -> its body, also after its end
//! schedule lists   list, schedule id           -> nothing
//! schedule runs    schedule id, height, index  -> nothing
//! ```

use super::{Ending, Schedule, ScheduleStatus};
use crate::{block::Location, error::Fault, rows};
use alloy_primitives::Address;
use almanac_primitives::{
    Lane, ScheduleId, TimestampMs,
    codec::{DecodeError, Reader, Writer},
};

/// Schedules that have something in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    /// One may cancel them.
    Owner(Address),
    /// They call the same contract.
    Target(Address),
    /// They are at the same point of their lives.
    Status(ScheduleStatus),
}

/// The key of a schedule in a list.
pub(super) fn listed(list: &List, id: ScheduleId) -> Vec<u8> {
    let mut out = Writer::default();
    match list {
        List::Owner(owner) => {
            out.u8(0);
            out.address(*owner);
        }
        List::Target(target) => {
            out.u8(1);
            out.address(*target);
        }
        List::Status(status) => {
            out.u8(2);
            out.u8(*status as u8);
        }
    }
    out.u64(id.0);
    out.finish()
}

/// The key of a run of a schedule.
pub(super) fn run_of(id: ScheduleId, location: Location) -> Vec<u8> {
    [&id.0.to_be_bytes()[..], &rows::place(location)].concat()
}

/// Reads where that run took place.
pub(super) fn read_run_of(key: &[u8]) -> Result<Location, Fault> {
    rows::read_place(key.get(8..).ok_or(rows::short("schedule runs", "schedule id", 8, key.len()))?)
}

/// Longest reason for an end that is read. The chain's own words are far shorter.
const REASON_BYTES_MAX: usize = 64 * 1024;

/// A row of `schedules`.
pub(super) fn schedule(schedule: &Schedule) -> Vec<u8> {
    let mut out = Writer::default();
    out.address(schedule.owner);
    out.address(schedule.target);
    out.u8(schedule.lane as u8);
    out.u64(schedule.first_due.0);
    out.u8(schedule.is_single.into());
    out.u64(schedule.runs);
    out.u64(schedule.runs_failed);
    for ending in [&schedule.quarantine, &schedule.end] {
        let Some(Ending { status, location, reason }) = ending else {
            out.u8(0);
            continue;
        };
        out.u8(1);
        out.u8(*status as u8);
        out.raw(&rows::place(*location));
        out.bytes(reason.as_bytes());
    }
    out.finish()
}

/// Reads a row of `schedules`.
pub(super) fn read_schedule(id: ScheduleId, row: &[u8]) -> Result<Schedule, Fault> {
    rows::row_of("schedules", row, |input| {
        let (owner, target, lane) = (input.address("owner")?, input.address("target")?, input.u8("lane")?);
        let unknown = DecodeError::UnknownValue { what: "lane", given: lane.into() };
        Ok(Schedule {
            id,
            owner,
            target,
            lane: Lane::from_number(lane).ok_or(unknown)?,
            first_due: TimestampMs(input.u64("first due time")?),
            is_single: input.u8("whether there is one run")? != 0,
            runs: input.u64("runs")?,
            runs_failed: input.u64("failed runs")?,
            quarantine: read_ending(input)?,
            end: read_ending(input)?,
        })
    })
}

fn read_ending(input: &mut Reader<'_>) -> Result<Option<Ending>, DecodeError> {
    if input.u8("whether there is an end")? == 0 {
        return Ok(None);
    }
    let status = input.u8("status")?;
    let unknown = DecodeError::UnknownValue { what: "status", given: status.into() };
    let status = ScheduleStatus::from_number(status).ok_or(unknown)?;
    let (number, index) = (input.u64("number")?, input.u32("index")?);
    let reason = input.bytes("reason", REASON_BYTES_MAX)?;
    Ok(Some(Ending {
        status,
        location: Location {
            number,
            index: usize::try_from(index).expect("an index fits the memory it counts"),
        },
        reason: String::from_utf8_lossy(&reason).into_owned(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_ending() -> impl Strategy<Value = Option<Ending>> {
        let ending =
            (0..6u8, any::<u64>(), any::<u32>(), ".{0,20}").prop_map(|(status, number, index, reason)| {
                let status = ScheduleStatus::from_number(status).unwrap();
                Ending { status, location: Location { number, index: index as usize }, reason }
            });
        proptest::option::of(ending)
    }

    proptest! {
        #[test]
        fn a_schedule_survives_its_row(
            people: [[u8; 20]; 2],
            lane in 0..4u8,
            numbers: [u64; 4],
            is_single: bool,
            quarantine in any_ending(),
            end in any_ending(),
        ) {
            let [owner, target] = people.map(Address::from);
            let [id, first_due, runs, runs_failed] = numbers;
            let lane = Lane::ALL[usize::from(lane)];
            let given = Schedule {
                id: ScheduleId(id),
                owner,
                target,
                lane,
                first_due: TimestampMs(first_due),
                is_single,
                runs,
                runs_failed,
                quarantine,
                end,
            };
            prop_assert_eq!(read_schedule(ScheduleId(id), &schedule(&given)).unwrap(), given);
        }

        #[test]
        fn garbage_is_refused_and_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            let _ = (read_schedule(ScheduleId(1), &bytes), read_run_of(&bytes));
        }
    }
}
