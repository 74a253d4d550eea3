//! The `almanac_` methods: what is scheduled, what ran, what will run, and what it will cost.

mod account;
mod agenda;
mod api;
mod booked;
mod buckets;
mod capacity;
mod listen;
mod market;
mod one_schedule;
mod order;
mod parameters;
mod params;
mod preview;
mod proof;
pub mod receipt_proof;
mod runs;
mod runway;
mod schedule;
mod summaries;

pub use params::LaneName;
pub use proof::Prover;

use crate::{answer::Answer, error, heads::Heads, heavy::Heavy, view::View};
use almanac_index::KnownSchedule;
use almanac_primitives::ScheduleId;
use jsonrpsee::{RpcModule, core::RpcResult};
use std::sync::Arc;

/// Advice in errors about answers that are too large.
const LESS: &str = "ask for a smaller limit, or fewer runs";

/// Answers the `almanac_` methods.
#[derive(Clone)]
pub struct Almanac {
    view: View,
    heads: Arc<Heads>,
    heavy: Heavy,
    prover: Arc<dyn Prover>,
}

impl Almanac {
    /// Reads from `view`, learns of new blocks from `heads`, runs long work under `heavy`, and gets proofs from
    /// `prover`.
    pub fn new(view: View, heads: Arc<Heads>, heavy: Heavy, prover: Arc<dyn Prover>) -> Self {
        Self { view, heads, heavy, prover }
    }

    /// Registers all methods.
    pub fn into_module(self) -> RpcModule<Self> {
        api::AlmanacApiServer::into_rpc(self)
    }

    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&View) -> RpcResult<T> + Send + 'static,
    ) -> RpcResult<T> {
        let view = self.view.clone();
        self.heavy.run(move || work(&view)).await
    }

    async fn answer<T: serde::Serialize + 'static>(
        &self,
        work: impl FnOnce(&View) -> RpcResult<T> + Send + 'static,
    ) -> RpcResult<Answer<T>> {
        let view = self.view.clone();
        self.heavy.answer(LESS, move || work(&view)).await
    }
}

impl View {
    /// What is known of a schedule. An error if it never existed.
    fn known_schedule(&self, id: ScheduleId) -> RpcResult<KnownSchedule> {
        let known = self.index.schedule(id).map_err(error::internal)?;
        known.ok_or_else(|| error::unknown_schedule(id))
    }
}
