//! The encoding of schedules.
//!
//! ```text
//! schedules        schedule id                 -> who, what, how often it ran, how it ended
//! schedule bodies  schedule id                 -> its body, also after its end
//! schedule lists   list, schedule id           -> nothing
//! schedule runs    schedule id, height, index  -> what the run cost and how it ended
//! schedule events  height                      -> what happened to schedules in that block, if anything
//! ```

use super::{
    EndReason, Ending, PastRun, Schedule, ScheduleStatus,
    events::{door_number, known, read_door, read_due, read_end, read_reason},
};
use crate::{block::Location, error::Fault, rows};
use alloy_primitives::Address;
use almanac_primitives::{
    Lane, ScheduleId, Wei,
    codec::{DecodeError, Reader, Writer},
};
use almanac_schedule::record::{Door, LastRun};

/// Tags that distinguish the kinds of end.
const NO_END: u8 = 0;
const ENDED: u8 = 1;
const FAULT: u8 = 2;

/// A list of schedules with a common property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    /// The same owner.
    Owner(Address),
    /// The same target.
    Target(Address),
    /// The same status.
    Status(ScheduleStatus),
    /// The same door and status.
    Door(Door, ScheduleStatus),
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
        List::Door(door, status) => {
            out.u8(3);
            out.u8(*door as u8);
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

/// A row of `schedule runs`.
pub(super) fn run(fee: Wei, result: LastRun) -> Vec<u8> {
    let mut out = Writer::default();
    out.u256(fee.0);
    out.u8(result.number());
    out.finish()
}

/// Decodes where that run took place, and reads its row.
pub(super) fn read_run(key: &[u8], row: &[u8]) -> Result<PastRun, Fault> {
    let place = key.get(8..).ok_or(rows::short("schedule runs", "schedule id", 8, key.len()))?;
    let location = rows::read_place(place)?;
    rows::row_of("schedule runs", row, |input| {
        let fee = Wei(input.u256("fee")?);
        let result = known("result of a run", input.u8("result of a run")?, LastRun::from_number)?;
        Ok(PastRun { location, fee, result })
    })
}

/// A row of `schedules`.
pub(super) fn schedule(schedule: &Schedule) -> Vec<u8> {
    let mut out = Writer::default();
    out.address(schedule.owner);
    out.address(schedule.target);
    out.u8(schedule.lane as u8);
    out.u8(door_number(schedule.door));
    out.u8(schedule.first_due.is_some().into());
    out.u64(schedule.first_due.map_or(0, |due| due.0));
    out.u64(schedule.runs);
    out.u64(schedule.runs_failed);
    out.u256(schedule.fees.0);
    for ending in [&schedule.quarantine, &schedule.end] {
        write_ending(&mut out, ending.as_ref());
    }
    out.finish()
}

fn write_ending(out: &mut Writer, ending: Option<&Ending>) {
    let Some(Ending { reason, refunded, location }) = ending else { return out.u8(NO_END) };
    match reason {
        EndReason::Ended(end) => {
            out.u8(ENDED);
            out.u8(*end as u8);
        }
        EndReason::Fault(reason) => {
            out.u8(FAULT);
            out.bytes(reason.as_bytes());
        }
    }
    out.u8(refunded.is_some().into());
    out.u256(refunded.unwrap_or_default().0);
    out.raw(&rows::place(*location));
}

/// Reads a row of `schedules`.
pub(super) fn read_schedule(id: ScheduleId, row: &[u8]) -> Result<Schedule, Fault> {
    rows::row_of("schedules", row, |input| {
        let (owner, target, lane) = (input.address("owner")?, input.address("target")?, input.u8("lane")?);
        Ok(Schedule {
            id,
            owner,
            target,
            lane: known("lane", lane, Lane::from_number)?,
            door: read_door(input)?,
            first_due: read_due(input)?,
            runs: input.u64("runs")?,
            runs_failed: input.u64("failed runs")?,
            fees: Wei(input.u256("fees")?),
            quarantine: read_ending(input)?,
            end: read_ending(input)?,
        })
    })
}

fn read_ending(input: &mut Reader<'_>) -> Result<Option<Ending>, DecodeError> {
    let reason = match input.u8("kind of end")? {
        NO_END => return Ok(None),
        ENDED => EndReason::Ended(read_end(input)?),
        FAULT => EndReason::Fault(read_reason(input)?),
        given => return Err(DecodeError::UnknownValue { what: "kind of end", given: given.into() }),
    };
    let (is_known, refunded) = (input.u8("whether the refund is known")? != 0, input.u256("refund")?);
    let (number, index) = (input.u64("number")?, input.u32("index")?);
    let index = usize::try_from(index).expect("an index fits the memory it counts");
    let refunded = is_known.then_some(Wei(refunded));
    Ok(Some(Ending { reason, refunded, location: Location { number, index } }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::U256;
    use almanac_primitives::TimestampMs;
    use almanac_schedule::decide::End;
    use proptest::prelude::*;

    fn any_ending() -> impl Strategy<Value = Option<Ending>> {
        let reason = prop_oneof![
            (0..End::ALL.len()).prop_map(|end| EndReason::Ended(End::ALL[end])),
            ".{0,20}".prop_map(EndReason::Fault),
        ];
        let refunded = proptest::option::of(any::<u64>().prop_map(|wei| Wei(U256::from(wei))));
        let ending = (reason, refunded, any::<u64>(), any::<u32>());
        let ending = ending.prop_map(|(reason, refunded, number, index)| Ending {
            reason,
            refunded,
            location: Location { number, index: index as usize },
        });
        proptest::option::of(ending)
    }

    proptest! {
        #[test]
        fn a_schedule_survives_its_row(
            people: [[u8; 20]; 2],
            lane in 0..4u8,
            door in proptest::option::of(0..4u8),
            numbers: [u64; 3],
            first_due in proptest::option::of(any::<u64>()),
            quarantine in any_ending(),
            end in any_ending(),
        ) {
            let [owner, target] = people.map(Address::from);
            let [id, runs, runs_failed] = numbers;
            let lane = Lane::ALL[usize::from(lane)];
            let given = Schedule {
                id: ScheduleId(id),
                owner,
                target,
                lane,
                door: door.map(|n| Door::ALL[usize::from(n)]),
                first_due: first_due.map(TimestampMs),
                runs,
                runs_failed,
                fees: Wei(U256::from(runs) << 100),
                quarantine,
                end,
            };
            prop_assert_eq!(read_schedule(ScheduleId(id), &schedule(&given)).unwrap(), given);
        }

        #[test]
        fn garbage_is_refused_and_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            let _ = (read_schedule(ScheduleId(1), &bytes), read_run(&bytes, &bytes));
        }
    }
}
