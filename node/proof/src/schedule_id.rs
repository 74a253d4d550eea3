//! Ids of schedules, in the form for people and as the number that contracts use.

use alloy_primitives::U64;
use almanac_primitives::ScheduleId;
use serde::{Deserialize, Serialize};

/// The name of a schedule in both forms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RpcScheduleId {
    id: String,
    id_number: U64,
}

impl RpcScheduleId {
    /// Both forms of a name.
    pub fn new(id: ScheduleId) -> Self {
        Self { id: id.to_string(), id_number: U64::from(id.0) }
    }
}
