//! Runs, by the id of their schedule and their number.

use alloy_primitives::U64;
use almanac_primitives::ScheduleRef;
use almanac_proof::RpcScheduleId;
use serde::Serialize;

/// The schedule that a run belongs to, and which of its runs it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RpcScheduleRef {
    #[serde(flatten)]
    schedule: RpcScheduleId,
    run: U64,
}

impl RpcScheduleRef {
    /// A run as receipts and transactions show it.
    pub fn new(run: ScheduleRef) -> Self {
        Self { schedule: RpcScheduleId::new(run.schedule), run: U64::from(run.number) }
    }
}
