//! Parses request parameters, with errors that say what is allowed.

use crate::{bounds::ALMANAC_PAGE_MAX, error, types::Number};
use almanac_index::{Direction, ScheduleStatus};
use almanac_primitives::{ScheduleId, TimestampMs};
pub use almanac_proof::LaneName;
use almanac_schedule::record::Door;
use jsonrpsee::core::RpcResult;
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::Value;

/// Entries of a page by default.
const LIMIT_DEFAULT: u64 = 20;

/// A schedule's id: `"1042-3-0"`, or its number in hexadecimal, in decimal, or as a JSON number.
pub(super) fn schedule_id(given: &Value) -> RpcResult<ScheduleId> {
    read_id(given).map_err(error::invalid)
}

fn read_id(given: &Value) -> Result<ScheduleId, String> {
    let malformed =
        || format!("{given} is no schedule id: give it as \"1042-3-0\" or as a number below 2^64");
    match given {
        Value::Number(number) => number.as_u64().map(ScheduleId).ok_or_else(malformed),
        Value::String(text) => {
            text.parse().map_err(|error: almanac_primitives::ids::ScheduleIdError| error.to_string())
        }
        _ => Err(malformed()),
    }
}

/// A schedule's id inside an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Id(pub(super) ScheduleId);

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_id(&Value::deserialize(deserializer)?).map(Self).map_err(de::Error::custom)
    }
}

/// An optional object with optional fields.
pub(super) fn options<T: for<'de> Deserialize<'de> + Default>(
    given: Option<Value>,
    what: &str,
) -> RpcResult<T> {
    match given {
        None | Some(Value::Null) => Ok(T::default()),
        Some(given) => {
            serde_json::from_value(given).map_err(|reason| error::invalid(format!("{what}: {reason}")))
        }
    }
}

/// The number of entries of a page.
pub(super) fn limit(given: Option<Number>) -> RpcResult<usize> {
    let limit = given.map_or(LIMIT_DEFAULT, Number::get);
    if !(1..=ALMANAC_PAGE_MAX).contains(&limit) {
        return Err(error::invalid(format!("limit {limit} is not in 1..={ALMANAC_PAGE_MAX}")));
    }
    usize::try_from(limit).map_err(error::internal)
}

/// A time in milliseconds.
pub(super) fn time(given: Number) -> TimestampMs {
    TimestampMs(given.get())
}

/// A door by its name.
#[derive(Clone, Copy, Debug)]
pub(super) struct DoorName(pub(super) Door);

impl<'de> Deserialize<'de> for DoorName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let given = String::deserialize(deserializer)?;
        let found = Door::ALL.into_iter().find(|door| door.name() == given);
        let names = || Door::ALL.map(Door::name).join(", ");
        found.map(Self).ok_or_else(|| de::Error::custom(format!("no door {given:?}: there are {}", names())))
    }
}

/// A status by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum StatusName {
    Pending,
    Quarantined,
    Succeeded,
    Failed,
    Cancelled,
    Exhausted,
}

impl From<ScheduleStatus> for StatusName {
    fn from(status: ScheduleStatus) -> Self {
        match status {
            ScheduleStatus::Pending => Self::Pending,
            ScheduleStatus::Quarantined => Self::Quarantined,
            ScheduleStatus::Succeeded => Self::Succeeded,
            ScheduleStatus::Failed => Self::Failed,
            ScheduleStatus::Cancelled => Self::Cancelled,
            ScheduleStatus::Exhausted => Self::Exhausted,
        }
    }
}

impl From<StatusName> for ScheduleStatus {
    fn from(name: StatusName) -> Self {
        match name {
            StatusName::Pending => Self::Pending,
            StatusName::Quarantined => Self::Quarantined,
            StatusName::Succeeded => Self::Succeeded,
            StatusName::Failed => Self::Failed,
            StatusName::Cancelled => Self::Cancelled,
            StatusName::Exhausted => Self::Exhausted,
        }
    }
}

/// Which end comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum DirectionName {
    #[default]
    Oldest,
    Newest,
}

impl From<DirectionName> for Direction {
    fn from(name: DirectionName) -> Self {
        match name {
            DirectionName::Oldest => Self::Ascending,
            DirectionName::Newest => Self::Descending,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ids_in_every_form() {
        let id = ScheduleId::new(1042, 3, 0).unwrap();
        let topic = format!("{:#066x}", id.0);
        for form in [
            json!("1042-3-0"),
            json!(id.0),
            json!(id.0.to_string()),
            json!(format!("{:#x}", id.0)),
            json!(topic),
        ] {
            assert_eq!(schedule_id(&form).unwrap(), id, "{form}");
        }
        for bad in [
            json!("0x"),
            json!("0x+1"),
            json!("0x10000000000000000"),
            json!(-1),
            json!(1.5),
            json!(null),
            json!([1]),
            json!("1-2"),
            json!("1-262144-0"),
            json!(""),
        ] {
            assert_eq!(schedule_id(&bad).unwrap_err().code(), -32_602, "{bad}");
        }
    }

    #[test]
    fn both_sides_of_the_limit() {
        assert_eq!(limit(None).unwrap(), 20);
        assert_eq!(limit(Some(Number::Plain(1))).unwrap(), 1);
        assert_eq!(limit(Some(Number::Plain(100))).unwrap(), 100);
        assert!(limit(Some(Number::Plain(0))).is_err());
        assert!(limit(Some(Number::Plain(101))).is_err());
    }
}
