//! Moves the clock. Tools use seconds.

use super::{Dev, mining::seconds, refused};
use crate::error;
use alloy_primitives::{B256, U64, U256};
use almanac_consensus::Travel;
use almanac_primitives::TimestampMs;
use jsonrpsee::{core::RpcResult, proc_macros::rpc};
use serde::Serialize;

#[rpc(server)]
pub(crate) trait TimeApi {
    /// Moves the clock forward; what becomes due on the way runs. Answers with all that it has been moved, in
    /// seconds.
    #[method(name = "evm_increaseTime", aliases = ["anvil_increaseTime"])]
    async fn increase_time(&self, by: U256) -> RpcResult<i64>;

    /// The same, and answers with the blocks that were made on the way.
    #[method(name = "almanac_increaseTime")]
    async fn travel(&self, by: U256) -> RpcResult<RpcTravel>;

    /// Sets the clock; what becomes due on the way runs. Answers with how many seconds it was moved forward.
    #[method(name = "evm_setTime", aliases = ["anvil_setTime"])]
    async fn set_time(&self, timestamp: U256) -> RpcResult<u64>;

    /// Puts every later block this many seconds after the one before it, whatever the clock says.
    #[method(name = "anvil_setBlockTimestampInterval", aliases = ["hardhat_setBlockTimestampInterval"])]
    async fn set_timestamp_interval(&self, interval: U256) -> RpcResult<()>;

    /// Ends that, and answers whether it was so.
    #[method(name = "anvil_removeBlockTimestampInterval", aliases = ["hardhat_removeBlockTimestampInterval"])]
    async fn remove_timestamp_interval(&self) -> RpcResult<bool>;

    /// Gives the next block this time.
    #[method(name = "evm_setNextBlockTimestamp", aliases = ["anvil_setNextBlockTimestamp"])]
    async fn set_next_timestamp(&self, timestamp: U256) -> RpcResult<()>;
}

/// What happened while time was moved.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RpcTravel {
    offset_seconds: i64,
    blocks: Vec<RpcBlockId>,
    runs: U64,
}

#[derive(Clone, Debug, Serialize)]
struct RpcBlockId {
    number: U64,
    hash: B256,
}

#[jsonrpsee::core::async_trait]
impl TimeApiServer for Dev {
    async fn increase_time(&self, by: U256) -> RpcResult<i64> {
        Ok(self.travel(by).await?.offset_seconds)
    }

    async fn travel(&self, by: U256) -> RpcResult<RpcTravel> {
        let travel = self.controls.travel_by(seconds(by)?).await.map_err(|error| refused(&error))?;
        Ok(rpc_travel(&travel))
    }

    async fn set_time(&self, timestamp: U256) -> RpcResult<u64> {
        let (before, at) = (self.controls.next_time(), moment(timestamp)?);
        self.controls.travel_to(at).await.map_err(|error| refused(&error))?;
        Ok(at.0.saturating_sub(before.0) / 1_000)
    }

    async fn set_timestamp_interval(&self, interval: U256) -> RpcResult<()> {
        let distance = seconds(interval)?;
        self.controls.set_distance(Some(distance)).await.map(drop).map_err(|error| refused(&error))
    }

    async fn remove_timestamp_interval(&self) -> RpcResult<bool> {
        self.controls.set_distance(None).await.map_err(|error| refused(&error))
    }

    async fn set_next_timestamp(&self, timestamp: U256) -> RpcResult<()> {
        let at = moment(timestamp)?;
        self.controls.set_next_timestamp(at).await.map_err(|error| refused(&error))
    }
}

fn rpc_travel(travel: &Travel) -> RpcTravel {
    let blocks = travel.blocks.iter().map(|id| RpcBlockId { number: U64::from(id.number), hash: id.hash });
    RpcTravel {
        offset_seconds: travel.offset_ms / 1_000,
        blocks: blocks.collect(),
        runs: U64::from(travel.runs),
    }
}

/// A Unix time in seconds as a moment.
pub(super) fn moment(given: U256) -> RpcResult<TimestampMs> {
    let moment = u64::try_from(given).ok().and_then(TimestampMs::from_seconds);
    moment.ok_or_else(|| error::invalid(format!("timestamp {given} is too far in the future")))
}
