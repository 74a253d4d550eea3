//! The encoding of a block's schedule events.

use crate::{error::Fault, rows};
use almanac_primitives::{
    Gas, Lane, ScheduleId, TimestampMs, Wei,
    codec::{DecodeError, Reader, Writer},
};
use almanac_schedule::{
    decide::End,
    life::{Event, LifeEvent, What},
    record::Door,
};

/// Longest reason of a fault that is decoded. The chain's own messages are far shorter.
pub(super) const REASON_BYTES_MAX: usize = 64 * 1024;

const CREATED: u8 = 1;
const TOPPED_UP: u8 = 2;
const EXECUTED: u8 = 3;
const ENDED: u8 = 4;
const QUARANTINED: u8 = 5;
const PROCESSED: u8 = 6;

/// Encodes a row of `schedule events`: all events of one block, in order.
pub(crate) fn events(events: &[LifeEvent]) -> Vec<u8> {
    let mut out = Writer::default();
    for LifeEvent { index, event } in events {
        out.count(*index);
        out.u64(event.id.0);
        out.u8(door_number(event.door));
        write_what(&mut out, &event.what);
    }
    out.finish()
}

/// Zero is not the number of a door.
pub(super) fn door_number(door: Option<Door>) -> u8 {
    door.map_or(0, |door| door as u8)
}

pub(super) fn read_door(input: &mut Reader<'_>) -> Result<Option<Door>, DecodeError> {
    match input.u8("door")? {
        0 => Ok(None),
        number => known("door", number, Door::from_number).map(Some),
    }
}

fn write_what(out: &mut Writer, what: &What) {
    match what {
        What::Created { owner, target, lane, due, gas_limit, priority } => {
            out.u8(CREATED);
            out.address(*owner);
            out.address(*target);
            out.u8(*lane as u8);
            out.u8(due.is_some().into());
            out.u64(due.map_or(0, |due| due.0));
            out.u64(gas_limit.0);
            out.u64(*priority);
        }
        What::Processed { gas_limit } => {
            out.u8(PROCESSED);
            out.u64(gas_limit.0);
        }
        What::ToppedUp { amount, escrow } => {
            out.u8(TOPPED_UP);
            out.u256(amount.0);
            out.u256(escrow.0);
        }
        What::Executed { is_success, gas_used, fee } => {
            out.u8(EXECUTED);
            out.u8((*is_success).into());
            out.u64(gas_used.0);
            out.u256(fee.0);
        }
        What::Ended { end, owner, refunded } => {
            out.u8(ENDED);
            out.u8(*end as u8);
            out.address(*owner);
            out.u256(refunded.0);
        }
        What::Quarantined { reason } => {
            out.u8(QUARANTINED);
            out.bytes(reason.as_bytes());
        }
    }
}

/// Reads a row of `schedule events`.
pub(crate) fn read_events(row: &[u8]) -> Result<Vec<LifeEvent>, Fault> {
    rows::row_of("schedule events", row, |input| {
        let mut events = Vec::new();
        while !input.is_empty() {
            events.push(read_event(input)?);
        }
        Ok(events)
    })
}

fn read_event(input: &mut Reader<'_>) -> Result<LifeEvent, DecodeError> {
    let index = usize::try_from(input.u32("receipt index")?).expect("an index fits the memory it counts");
    let id = ScheduleId(input.u64("schedule id")?);
    let door = read_door(input)?;
    Ok(LifeEvent { index, event: Event { id, door, what: read_what(input)? } })
}

fn read_what(input: &mut Reader<'_>) -> Result<What, DecodeError> {
    Ok(match input.u8("kind of event")? {
        CREATED => What::Created {
            owner: input.address("owner")?,
            target: input.address("target")?,
            lane: known("lane", input.u8("lane")?, Lane::from_number)?,
            due: read_due(input)?,
            gas_limit: Gas(input.u64("gas limit")?),
            priority: input.u64("priority")?,
        },
        PROCESSED => What::Processed { gas_limit: Gas(input.u64("gas limit")?) },
        TOPPED_UP => {
            What::ToppedUp { amount: Wei(input.u256("amount")?), escrow: Wei(input.u256("escrow")?) }
        }
        EXECUTED => What::Executed {
            is_success: input.u8("whether the call returned")? != 0,
            gas_used: Gas(input.u64("gas used")?),
            fee: Wei(input.u256("fee")?),
        },
        ENDED => What::Ended {
            end: read_end(input)?,
            owner: input.address("owner")?,
            refunded: Wei(input.u256("refund")?),
        },
        QUARANTINED => What::Quarantined { reason: read_reason(input)? },
        given => return Err(DecodeError::UnknownValue { what: "kind of event", given: given.into() }),
    })
}

/// Decodes an optional due time.
pub(super) fn read_due(input: &mut Reader<'_>) -> Result<Option<TimestampMs>, DecodeError> {
    let (is_timed, due) = (input.u8("whether there is a due time")?, input.u64("due time")?);
    Ok((is_timed != 0).then_some(TimestampMs(due)))
}

pub(super) fn read_end(input: &mut Reader<'_>) -> Result<End, DecodeError> {
    known("end", input.u8("end")?, End::from_number)
}

pub(super) fn read_reason(input: &mut Reader<'_>) -> Result<String, DecodeError> {
    let reason = input.bytes("reason", REASON_BYTES_MAX)?;
    Ok(String::from_utf8_lossy(&reason).into_owned())
}

pub(super) fn known<T>(
    what: &'static str,
    number: u8,
    from_number: impl FnOnce(u8) -> Option<T>,
) -> Result<T, DecodeError> {
    from_number(number).ok_or(DecodeError::UnknownValue { what, given: number.into() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::{Address, U256};
    use proptest::{collection::vec, option, prelude::*};

    fn any_what() -> impl Strategy<Value = What> {
        let address = || any::<[u8; 20]>().prop_map(Address::from);
        let wei = || any::<[u8; 32]>().prop_map(|bytes| Wei(U256::from_be_bytes(bytes)));
        prop_oneof![
            (address(), address(), 0..4usize, option::of(any::<u64>()), any::<[u64; 2]>()).prop_map(
                |(owner, target, lane, due, [gas, priority])| {
                    let (lane, due, gas_limit) = (Lane::ALL[lane], due.map(TimestampMs), Gas(gas));
                    What::Created { owner, target, lane, due, gas_limit, priority }
                }
            ),
            any::<u64>().prop_map(|gas| What::Processed { gas_limit: Gas(gas) }),
            (wei(), wei()).prop_map(|(amount, escrow)| What::ToppedUp { amount, escrow }),
            (any::<bool>(), any::<u64>(), wei()).prop_map(|(is_success, gas, fee)| What::Executed {
                is_success,
                gas_used: Gas(gas),
                fee
            }),
            (0..End::ALL.len(), address(), wei()).prop_map(|(end, owner, refunded)| What::Ended {
                end: End::ALL[end],
                owner,
                refunded
            }),
            ".{0,40}".prop_map(|reason| What::Quarantined { reason }),
        ]
    }

    proptest! {
        #[test]
        fn events_survive_their_row(given in vec((any::<u32>(), any::<u64>(), any::<bool>(), any_what()), 0..9)) {
            let event = |(index, id, has_door, what): (u32, u64, bool, What)| LifeEvent {
                index: index as usize,
                event: Event { id: ScheduleId(id), door: has_door.then_some(Door::Cron), what },
            };
            let given: Vec<_> = given.into_iter().map(event).collect();
            prop_assert_eq!(read_events(&events(&given)).unwrap(), given);
        }

        #[test]
        fn garbage_is_refused_and_never_panics(bytes in vec(any::<u8>(), 0..120)) {
            let _ = read_events(&bytes);
        }
    }
}
