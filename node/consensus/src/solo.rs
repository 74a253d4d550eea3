//! The solo sequencer: one process builds all blocks, with the application that validators run.
//!
//! It builds a block when the pool has a transaction (on demand), at an interval, or on request. Except in
//! manual mode, it also builds one as soon as something is due.

mod acts;
mod controls;
mod developer_calls;
mod repeated;
mod sequencer;
pub(crate) mod time;

pub use controls::{ControlError, Controls, Mining, REQUEST_BLOCKS_MAX, Travel};
pub use time::{KeepTime, TIME_MAX, TimeSetting};

use crate::{
    admission::SharedPool,
    application::{Application, Tip},
    clock::Clock,
    engine::{Engine, EngineError, Sink},
    snapshots::Snapshots,
};
use alloy_primitives::{Address, BlockHash};
use almanac_primitives::DurationMs;
use almanac_state::StateStore;
use sequencer::Sequencer;
use std::{future::Future, sync::Arc};
use time::Time;
use tokio::sync::oneshot;

/// When blocks are built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// As soon as the pool has something to include.
    OnDemand,
    /// At this interval, empty or not.
    Interval(DurationMs),
    /// Only by [`Controls::mine`].
    Manual,
}

/// A block's height and hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockId {
    /// Its height.
    pub number: u64,
    /// Its hash.
    pub hash: BlockHash,
}

/// Configuration of a sequencer.
#[derive(Clone)]
pub struct SoloConfig {
    /// When blocks are built.
    pub mode: Mode,
    /// Receives the tips.
    pub fee_recipient: Address,
    /// The settings of the time to start with.
    pub time: TimeSetting,
    /// Stores those settings when they change.
    pub keep_time: Option<KeepTime>,
    /// Most blocks per request.
    pub request_blocks_max: u64,
}

impl SoloConfig {
    /// A sequencer on the machine's time, which is not stored.
    pub fn new(mode: Mode, fee_recipient: Address) -> Self {
        let (time, request_blocks_max) = (TimeSetting::default(), REQUEST_BLOCKS_MAX);
        Self { mode, fee_recipient, time, keep_time: None, request_blocks_max }
    }
}

/// The handle of a running sequencer.
#[derive(Debug)]
pub struct Solo {
    controls: Controls,
    pool: Arc<SharedPool>,
    ended: oneshot::Receiver<Result<(), EngineError>>,
}

impl Solo {
    /// Creates a sequencer that continues from `tip`. The caller must run the returned future; on a dedicated
    /// thread, nothing else can delay blocks.
    pub fn start<S, C>(
        application: Arc<Application<S>>,
        tip: Tip<S::Batch>,
        pool: Arc<SharedPool>,
        sinks: Vec<Arc<dyn Sink>>,
        clock: C,
        config: SoloConfig,
    ) -> (Self, impl Future<Output = ()> + Send)
    where
        S: StateStore<Batch: Send + 'static> + 'static,
        C: Clock,
    {
        let time = Time::new(clock, config.time, tip.header.timestamp, config.keep_time.clone());
        let (controls, inbox) = Controls::new(time.next_time());
        let (end, ended) = oneshot::channel();
        let mut sequencer = Sequencer {
            application,
            tip,
            pool: pool.clone(),
            sinks,
            time,
            config,
            snapshots: Snapshots::default(),
            tick: None,
            is_crowded: false,
            unanswered: None,
        };
        let task = async move {
            let result = sequencer.run(inbox).await;
            // Ignore the error: nobody listens any more.
            let _ = end.send(result);
        };
        (Self { controls, pool, ended }, task)
    }

    /// The controls for developers.
    pub fn controls(&self) -> &Controls {
        &self.controls
    }

    /// Waits until the sequencer ends by itself, which happens only after a failure.
    pub async fn ended(&mut self) -> Result<(), EngineError> {
        match (&mut self.ended).await {
            Ok(result) => result,
            Err(_) => Err(EngineError::Died { reason: "it panicked or was dropped".to_owned() }),
        }
    }
}

impl Engine for Solo {
    fn pool_changed(&self) {
        self.pool.wake();
    }

    async fn stop(mut self) -> Result<(), EngineError> {
        self.controls.stop().await;
        self.ended().await
    }
}
