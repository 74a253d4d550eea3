//! When blocks are made, and blocks on request.

use super::{Dev, refused, time::moment};
use crate::{
    answer::{Answer, Room},
    error,
    types::RpcBlock,
};
use alloy_primitives::{Address, U256};
use almanac_consensus::{Mode, solo::Mining};
use almanac_primitives::DurationMs;
use jsonrpsee::{core::RpcResult, proc_macros::rpc};
use serde::Deserialize;

#[rpc(server)]
pub(crate) trait MiningApi {
    /// Makes a block, at a time in seconds if one is given.
    #[method(name = "evm_mine")]
    async fn mine(&self, options: Option<MineOptions>) -> RpcResult<&'static str>;

    /// The same, and answers with the blocks and all that is in them.
    #[method(name = "evm_mine_detailed", aliases = ["anvil_mine_detailed"])]
    async fn mine_detailed(&self, options: Option<MineOptions>) -> RpcResult<Answer<Vec<Answer<RpcBlock>>>>;

    /// Makes blocks, each so many seconds after the one before. The first comes when it would anyway.
    #[method(name = "hardhat_mine")]
    async fn mine_many(&self, count: Option<U256>, interval: Option<U256>) -> RpcResult<()>;

    /// The same, but time is moved before the first block too.
    #[method(name = "anvil_mine")]
    async fn mine_later(&self, count: Option<U256>, interval: Option<U256>) -> RpcResult<()>;

    /// Whether a transaction makes a block at once.
    #[method(name = "anvil_getAutomine", aliases = ["hardhat_getAutomine"])]
    async fn automine(&self) -> RpcResult<bool>;

    /// Makes blocks as soon as there is a transaction, or only by hand. An interval stays.
    #[method(name = "evm_setAutomine", aliases = ["anvil_setAutomine"])]
    async fn set_automine(&self, is_automine: bool) -> RpcResult<()>;

    /// Seconds between blocks; null if blocks are made on demand.
    #[method(name = "anvil_getIntervalMining")]
    async fn interval(&self) -> RpcResult<Option<u64>>;

    /// Makes a block every so many seconds; 0 makes them by hand.
    #[method(name = "evm_setIntervalMining", aliases = ["anvil_setIntervalMining"])]
    async fn set_interval(&self, seconds: U256) -> RpcResult<()>;

    /// Gives the tips of later blocks to this account.
    #[method(name = "anvil_setCoinbase", aliases = ["hardhat_setCoinbase"])]
    async fn set_coinbase(&self, account: Address) -> RpcResult<()>;
}

/// How to ask for less.
const FEWER: &str = "mine fewer blocks at once; these are made";

/// What `evm_mine` gets: a time, or a time and a number of blocks.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum MineOptions {
    Timestamp(U256),
    Options { timestamp: Option<U256>, blocks: Option<U256> },
}

#[jsonrpsee::core::async_trait]
impl MiningApiServer for Dev {
    async fn mine(&self, options: Option<MineOptions>) -> RpcResult<&'static str> {
        self.mine_blocks(options).await?;
        // What tools have always been answered here.
        Ok("0x0")
    }

    async fn mine_detailed(&self, options: Option<MineOptions>) -> RpcResult<Answer<Vec<Answer<RpcBlock>>>> {
        let mined = self.mine_blocks(options).await?;
        let view = self.view.clone();
        let show = move || {
            let Some((last, count)) = mined else { return Ok(Vec::new()) };
            let mut room = Room::new(FEWER);
            let first = last.saturating_sub(count).saturating_add(1);
            let shown = (first..=last).map(|number| {
                let block = view.block(Some(number.into()))?;
                room.write(&RpcBlock::new(&block, view.chain.id, true))
            });
            shown.collect::<RpcResult<Vec<_>>>()
        };
        self.heavy.answer(FEWER, show).await
    }

    async fn mine_many(&self, count: Option<U256>, interval: Option<U256>) -> RpcResult<()> {
        let count = count.map_or(1, |count| count.saturating_to());
        let interval = interval.map(seconds).transpose()?;
        self.controls.mine_many(count, interval).await.map_err(|error| refused(&error))?;
        Ok(())
    }

    async fn mine_later(&self, count: Option<U256>, interval: Option<U256>) -> RpcResult<()> {
        let count = count.map_or(1, |count| count.saturating_to());
        let mining = Mining { count, interval: interval.map(seconds).transpose()?, is_led: true };
        self.controls.mine_all(mining).await.map(drop).map_err(|error| refused(&error))
    }

    async fn automine(&self) -> RpcResult<bool> {
        Ok(self.mode().await? == Mode::OnDemand)
    }

    async fn set_automine(&self, is_automine: bool) -> RpcResult<()> {
        match (is_automine, self.mode().await?) {
            (true, _) => self.set_mode(Mode::OnDemand).await,
            (false, Mode::OnDemand) => self.set_mode(Mode::Manual).await,
            (false, Mode::Interval(_) | Mode::Manual) => Ok(()),
        }
    }

    async fn interval(&self) -> RpcResult<Option<u64>> {
        Ok(match self.mode().await? {
            Mode::Interval(interval) => Some(interval.0 / 1_000),
            Mode::OnDemand | Mode::Manual => None,
        })
    }

    async fn set_interval(&self, given: U256) -> RpcResult<()> {
        let interval = seconds(given)?;
        self.set_mode(if interval.0 == 0 { Mode::Manual } else { Mode::Interval(interval) }).await
    }

    async fn set_coinbase(&self, account: Address) -> RpcResult<()> {
        self.controls.set_fee_recipient(account).await.map_err(|error| refused(&error))
    }
}

impl Dev {
    /// Answers with the last block and how many there are, if there are any.
    async fn mine_blocks(&self, options: Option<MineOptions>) -> RpcResult<Option<(u64, u64)>> {
        let (timestamp, blocks) = match options {
            None => (None, None),
            Some(MineOptions::Timestamp(timestamp)) => (Some(timestamp), None),
            Some(MineOptions::Options { timestamp, blocks }) => (timestamp, blocks),
        };
        let count: u64 = blocks.map_or(1, |blocks| blocks.saturating_to());
        let at = timestamp.map(moment).transpose()?;
        // One of them has the time, and the others follow it.
        if let (Some(at), 1..) = (at, count) {
            self.controls.set_next_timestamp(at).await.map_err(|error| refused(&error))?;
        }
        if count == 0 {
            return Ok(None);
        }
        let last = self.controls.mine_many(count, None).await.map_err(|error| refused(&error))?;
        Ok(Some((last.number, count)))
    }

    async fn mode(&self) -> RpcResult<Mode> {
        self.controls.mode().await.map_err(|error| refused(&error))
    }

    async fn set_mode(&self, mode: Mode) -> RpcResult<()> {
        self.controls.set_mode(mode).await.map_err(|error| refused(&error))
    }
}

/// A number of seconds as a duration.
pub(super) fn seconds(given: U256) -> RpcResult<DurationMs> {
    let duration = u64::try_from(given).ok().and_then(|seconds| seconds.checked_mul(1_000));
    duration.map(DurationMs).ok_or_else(|| error::invalid(format!("{given} seconds are too long a time")))
}
