//! The methods by name, and what each does.

use super::{
    Almanac,
    agenda::{self, AgendaPage},
    capacity::{self, Capacity},
    claim::Subject,
    listen,
    parameters::{self, RpcParameter},
    params,
    preview::{self, Preview},
    proof::{self, Wanted},
    runs::{self, RunsPage},
    runway::{self, Runway},
    schedule::{self, RpcSchedule, SchedulesPage},
};
use crate::{error, session::Session, types::proof::ProofJson};
use jsonrpsee::{Extensions, core::RpcResult, proc_macros::rpc};
use serde_json::Value;

#[rpc(server)]
pub(crate) trait AlmanacApi {
    /// A schedule, also one that has ended, or null.
    #[method(name = "almanac_getSchedule")]
    fn get_schedule(&self, id: Value) -> RpcResult<Option<RpcSchedule>>;

    /// Schedules by owner, target, status, lane or due time, page by page.
    #[method(name = "almanac_listSchedules")]
    async fn list_schedules(&self, filter: Option<Value>) -> RpcResult<SchedulesPage>;

    /// The runs of a schedule with their receipts, page by page.
    #[method(name = "almanac_getRuns")]
    async fn get_runs(&self, id: Value, options: Option<Value>) -> RpcResult<RunsPage>;

    /// What is due when, page by page.
    #[method(name = "almanac_agenda")]
    async fn agenda(&self, options: Option<Value>) -> RpcResult<AgendaPage>;

    /// How much gas runs ask for, second by second.
    #[method(name = "almanac_capacity")]
    async fn capacity(&self, options: Option<Value>) -> RpcResult<Capacity>;

    /// What the next runs of a schedule would do.
    #[method(name = "almanac_preview")]
    async fn preview(&self, id: Value, count: Option<Value>) -> RpcResult<Preview>;

    /// How many runs the escrow of a schedule pays for.
    #[method(name = "almanac_runway")]
    fn runway(&self, id: Value) -> RpcResult<Runway>;

    /// A proof of an account, a slot, a schedule, a run, or of what is due in a span and that nothing else is.
    #[method(name = "almanac_getProof")]
    async fn get_proof(&self, wanted: Option<Value>) -> RpcResult<ProofJson>;

    /// Every parameter of the chain, with its value, its bounds and what it is for.
    #[method(name = "almanac_getParameters")]
    fn get_parameters(&self) -> RpcResult<Vec<RpcParameter>>;

    /// Tells what happens to schedules, as it happens. Answers with the subscription's id.
    #[method(name = "almanac_subscribe", with_extensions)]
    fn subscribe(&self, kind: Value, filter: Option<Value>) -> RpcResult<String>;

    /// Ends a subscription of the same connection; whether there was one.
    #[method(name = "almanac_unsubscribe", with_extensions)]
    fn unsubscribe(&self, id: String) -> RpcResult<bool>;
}

#[jsonrpsee::core::async_trait]
impl AlmanacApiServer for Almanac {
    fn get_schedule(&self, id: Value) -> RpcResult<Option<RpcSchedule>> {
        let id = params::schedule_id(&id)?;
        let known = self.view.index.schedule(id).map_err(error::internal)?;
        known.map(|known| RpcSchedule::new(&self.view, &known)).transpose()
    }

    async fn list_schedules(&self, filter: Option<Value>) -> RpcResult<SchedulesPage> {
        let wanted = params::options(filter, "filter")?;
        self.work(move |view| schedule::list(view, &wanted)).await
    }

    async fn get_runs(&self, id: Value, options: Option<Value>) -> RpcResult<RunsPage> {
        let (id, wanted) = (params::schedule_id(&id)?, params::options(options, "options")?);
        self.work(move |view| runs::page(view, id, &wanted)).await
    }

    async fn agenda(&self, options: Option<Value>) -> RpcResult<AgendaPage> {
        let wanted = params::options(options, "options")?;
        self.work(move |view| agenda::page(view, &wanted)).await
    }

    async fn capacity(&self, options: Option<Value>) -> RpcResult<Capacity> {
        let wanted = params::options(options, "options")?;
        self.work(move |view| capacity::measure(view, &wanted)).await
    }

    async fn preview(&self, id: Value, count: Option<Value>) -> RpcResult<Preview> {
        let (id, count) = (params::schedule_id(&id)?, preview::checked_count(count)?);
        self.work(move |view| preview::preview(view, id, count)).await
    }

    fn runway(&self, id: Value) -> RpcResult<Runway> {
        runway::runway(&self.view, params::schedule_id(&id)?)
    }

    async fn get_proof(&self, wanted: Option<Value>) -> RpcResult<ProofJson> {
        let wanted: Wanted = params::options(wanted, "what to prove")?;
        match wanted.subject()? {
            Subject::State(subject) => proof::of_state(&self.view, &*self.prover, subject).await,
            Subject::Ran { hash, is_run } => self.work(move |view| proof::of_ran(view, hash, is_run)).await,
        }
    }

    fn get_parameters(&self) -> RpcResult<Vec<RpcParameter>> {
        parameters::all(&self.view)
    }

    fn subscribe(&self, call: &Extensions, kind: Value, filter: Option<Value>) -> RpcResult<String> {
        listen::subscribe(&self.view, &self.heads, Session::of(call)?, &kind, filter)
    }

    fn unsubscribe(&self, call: &Extensions, id: String) -> RpcResult<bool> {
        Ok(Session::of(call)?.unsubscribe(&id))
    }
}
