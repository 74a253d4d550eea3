//! The `almanac_` methods by name.

use super::{
    Almanac,
    account::{self, RpcAccount},
    agenda::{self, AgendaPage},
    buckets::{self, AgendaBuckets},
    capacity::{self, Capacity},
    listen,
    market::estimate::{self, Estimate},
    order,
    parameters::{self, RpcParameter},
    params,
    preview::{self, Preview},
    proof::{self, Wanted},
    runs::{self, RunsPage},
    runway::{self, Runway},
    schedule::{self, RpcSchedule, SchedulesPage},
    summaries::{self, Summary},
};
use crate::{answer::Answer, session::Session};
use alloy_primitives::Address;
use almanac_proof::{ProofJson, Subject};
use jsonrpsee::{Extensions, core::RpcResult, proc_macros::rpc};
use serde_json::Value;

#[rpc(server)]
pub(crate) trait AlmanacApi {
    /// A schedule, also one that has ended, or null.
    ///
    /// `id`: [`params::Id`]
    #[method(name = "almanac_getSchedule")]
    async fn get_schedule(&self, id: Value) -> RpcResult<Answer<Option<RpcSchedule>>>;

    /// Schedules by owner, target, status, lane, door or due time, page by page.
    ///
    /// `filter`: [`schedule::Wanted`]
    #[method(name = "almanac_listSchedules")]
    async fn list_schedules(&self, filter: Option<Value>) -> RpcResult<Answer<SchedulesPage>>;

    /// The runs of a schedule with their receipts, page by page.
    ///
    /// `id`: [`params::Id`]
    /// `options`: [`runs::Wanted`]
    #[method(name = "almanac_getRuns")]
    async fn get_runs(&self, id: Value, options: Option<Value>) -> RpcResult<Answer<RunsPage>>;

    /// What is due when, page by page.
    ///
    /// `options`: [`agenda::Wanted`]
    #[method(name = "almanac_agenda")]
    async fn agenda(&self, options: Option<Value>) -> RpcResult<Answer<AgendaPage>>;

    /// How much is due in intervals of equal length, for a timeline.
    ///
    /// `options`: [`buckets::Wanted`]
    #[method(name = "almanac_agendaBuckets")]
    async fn agenda_buckets(&self, options: Option<Value>) -> RpcResult<Answer<AgendaBuckets>>;

    /// How much gas runs request, second by second.
    ///
    /// `options`: [`capacity::Wanted`]
    #[method(name = "almanac_capacity")]
    async fn capacity(&self, options: Option<Value>) -> RpcResult<Answer<Capacity>>;

    /// What the next runs would do: of a schedule by its id, or of one that a transaction would book.
    ///
    /// `count`: [`crate::types::Number`]
    #[method(name = "almanac_preview")]
    async fn preview(&self, what: Value, count: Option<Value>) -> RpcResult<Answer<Preview>>;

    /// What a scheduled transaction would hold, cost and wait, before it is made.
    ///
    /// `order`: [`estimate::Wanted`]
    #[method(name = "almanac_estimateSchedule")]
    async fn estimate_schedule(&self, order: Value) -> RpcResult<Answer<Estimate>>;

    /// How many runs the escrow of a schedule pays for.
    ///
    /// `id`: [`params::Id`]
    #[method(name = "almanac_runway")]
    fn runway(&self, id: Value) -> RpcResult<Runway>;

    /// A proof of an account, a slot, a schedule, a run, or of everything that is due in a span.
    ///
    /// `wanted`: [`proof::Wanted`]
    #[method(name = "almanac_getProof")]
    async fn get_proof(&self, wanted: Option<Value>) -> RpcResult<Answer<ProofJson>>;

    /// Every parameter of the chain, with its value, its bounds and its purpose.
    #[method(name = "almanac_getParameters")]
    fn get_parameters(&self) -> RpcResult<Vec<RpcParameter>>;

    /// An account with its key, as REST shows it.
    #[method(name = "almanac_getAccount")]
    async fn get_account(&self, address: Address) -> RpcResult<Answer<RpcAccount>>;

    /// The transactions that an account signed, as REST shows them.
    ///
    /// `options`: [`summaries::Wanted`]
    #[method(name = "almanac_getTransactionSummaries")]
    async fn get_summaries(
        &self,
        address: Address,
        options: Option<Value>,
    ) -> RpcResult<Answer<Vec<Summary>>>;

    /// Subscribes to events of schedules. Returns the subscription's id.
    ///
    /// `kind`: [`listen::Kind`]
    /// `filter`: [`listen::Wanted`]
    #[method(name = "almanac_subscribe", with_extensions)]
    fn subscribe(&self, kind: Value, filter: Option<Value>) -> RpcResult<String>;

    /// Ends a subscription of the same connection. Returns whether there was one.
    #[method(name = "almanac_unsubscribe", with_extensions)]
    fn unsubscribe(&self, id: String) -> RpcResult<bool>;
}

#[jsonrpsee::core::async_trait]
impl AlmanacApiServer for Almanac {
    async fn get_schedule(&self, id: Value) -> RpcResult<Answer<Option<RpcSchedule>>> {
        let id = params::schedule_id(&id)?;
        self.answer(move |view| schedule::one(view, id)).await
    }

    async fn list_schedules(&self, filter: Option<Value>) -> RpcResult<Answer<SchedulesPage>> {
        let wanted = params::options(filter, "filter")?;
        self.answer(move |view| schedule::list(view, &wanted)).await
    }

    async fn get_runs(&self, id: Value, options: Option<Value>) -> RpcResult<Answer<RunsPage>> {
        let (id, wanted) = (params::schedule_id(&id)?, params::options(options, "options")?);
        self.answer(move |view| runs::page(view, id, &wanted)).await
    }

    async fn agenda(&self, options: Option<Value>) -> RpcResult<Answer<AgendaPage>> {
        let wanted = params::options(options, "options")?;
        self.answer(move |view| agenda::page(view, &wanted)).await
    }

    async fn agenda_buckets(&self, options: Option<Value>) -> RpcResult<Answer<AgendaBuckets>> {
        let wanted = params::options(options, "options")?;
        self.answer(move |view| buckets::count(view, &wanted)).await
    }

    async fn capacity(&self, options: Option<Value>) -> RpcResult<Answer<Capacity>> {
        let wanted = params::options(options, "options")?;
        self.answer(move |view| capacity::measure(view, &wanted)).await
    }

    async fn preview(&self, what: Value, count: Option<Value>) -> RpcResult<Answer<Preview>> {
        let count = preview::checked_count(count)?;
        if what.is_object() {
            let request = order::request(what)?;
            return self.answer(move |view| order::preview(view, request, count)).await;
        }
        let id = params::schedule_id(&what)?;
        self.answer(move |view| preview::preview(view, id, count)).await
    }

    async fn estimate_schedule(&self, order: Value) -> RpcResult<Answer<Estimate>> {
        let wanted = estimate::read(order)?;
        self.answer(move |view| estimate::estimate(view, &wanted)).await
    }

    fn runway(&self, id: Value) -> RpcResult<Runway> {
        runway::runway(&self.view, params::schedule_id(&id)?)
    }

    async fn get_proof(&self, wanted: Option<Value>) -> RpcResult<Answer<ProofJson>> {
        let wanted: Wanted = params::options(wanted, "what to prove")?;
        match wanted.subject()? {
            Subject::State(subject) => proof::of_state(self, subject).await,
            Subject::Ran { hash, is_run } => self.answer(move |view| proof::of_ran(view, hash, is_run)).await,
        }
    }

    fn get_parameters(&self) -> RpcResult<Vec<RpcParameter>> {
        parameters::all(&self.view)
    }

    async fn get_account(&self, address: Address) -> RpcResult<Answer<RpcAccount>> {
        self.answer(move |view| account::read(view, address)).await
    }

    async fn get_summaries(
        &self,
        address: Address,
        options: Option<Value>,
    ) -> RpcResult<Answer<Vec<Summary>>> {
        let wanted = params::options(options, "options")?;
        self.answer(move |view| summaries::page(view, address, &wanted)).await
    }

    fn subscribe(&self, call: &Extensions, kind: Value, filter: Option<Value>) -> RpcResult<String> {
        listen::subscribe(&self.view, &self.heads, Session::of(call)?, &kind, filter)
    }

    fn unsubscribe(&self, call: &Extensions, id: String) -> RpcResult<bool> {
        Ok(Session::of(call)?.unsubscribe(&id))
    }
}
