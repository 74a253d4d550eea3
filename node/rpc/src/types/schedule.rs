//! Ids of schedules, in the form for people and as the number that contracts use.

use alloy_primitives::U64;
use almanac_primitives::{ScheduleId, ScheduleRef};
use serde::{Deserialize, Serialize};

/// The name of a schedule in both forms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RpcScheduleId {
    id: String,
    id_number: U64,
}

/// The schedule that a run belongs to, and which of its runs it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RpcScheduleRef {
    #[serde(flatten)]
    schedule: RpcScheduleId,
    run: U64,
}

impl RpcScheduleId {
    /// Both forms of a name.
    pub fn new(id: ScheduleId) -> Self {
        Self { id: id.to_string(), id_number: U64::from(id.0) }
    }
}

impl RpcScheduleRef {
    /// A run as receipts and transactions show it.
    pub fn new(run: ScheduleRef) -> Self {
        Self { schedule: RpcScheduleId::new(run.schedule), run: U64::from(run.number) }
    }
}
