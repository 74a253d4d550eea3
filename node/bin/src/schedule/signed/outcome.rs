//! What became of a schedule after somebody did something about it.

use super::{
    gathering::{End, Gathering},
    request::Request,
    wording::until,
};
use crate::{
    client::{
        node::{NodeArgs, text},
        output::Colour,
    },
    schedule::show::outcome as run_outcome,
    span::gwei,
};
use almanac_primitives::{Chain, ScheduleId};
use anyhow::Context as _;
use serde_json::{Value, json};

/// A schedule after an act.
pub(super) struct After {
    gathering: Gathering,
    /// The run, if it has run.
    run: Value,
    request: Option<String>,
}

impl After {
    pub(super) fn read(node: &NodeArgs, chain: Chain, id: ScheduleId) -> anyhow::Result<Self> {
        let gathering = Gathering::read(node, id)?.with_context(|| format!("schedule {id} is gone"))?;
        let run = match gathering.end {
            Some(End::Executed) => {
                let page = node.ask("almanac_getRuns", &json!([id.to_string(), { "limit": 1 }]))?;
                page["runs"][0].clone()
            }
            _ => Value::Null,
        };
        let is_open = gathering.end.is_none() && !gathering.parties.missing().is_empty();
        let request = is_open.then(|| Request::to_run(chain, &gathering).line());
        Ok(Self { gathering, run, request })
    }

    /// For programs.
    pub(super) fn add_to(&self, told: &mut Value) {
        let Gathering { id, parties, end, .. } = &self.gathering;
        told["id"] = json!(id.to_string());
        told["idNumber"] = json!(format!("{:#x}", id.0));
        told["status"] = json!(end.map_or("pending", End::name));
        told["parties"] = parties.described();
        told["missing"] = json!(parties.missing());
        told["request"] = json!(self.request);
        told["run"] = self.run.clone();
    }

    /// For people.
    pub(super) fn words(&self, node: &NodeArgs) -> String {
        let Gathering { id, parties, end, terms, expires, .. } = &self.gathering;
        if let Some(End::Executed) = end {
            return self.ran();
        }
        if let Some(end) = end {
            return format!("{id} was {}\n", end.name());
        }
        let now = node.now().unwrap_or_default();
        if parties.missing().is_empty() {
            return match terms.body.wait_for_expiry {
                true => format!("all have signed: it runs at {}\n", until(*expires, now)),
                false => format!(
                    "all have signed; it waits for a base fee of {} per gas or less: then run it with: \
                     almanac schedule sign {id}\n",
                    gwei(terms.body.max_fee_per_gas)
                ),
            };
        }
        let mut words = format!("still to sign, until {}:\n", until(*expires, now));
        for line in parties.lines() {
            words += &format!("  {line}\n");
        }
        if let Some(request) = &self.request {
            words += &format!("who signs elsewhere pastes this: almanac schedule sign {request}\n");
        }
        words
    }

    fn ran(&self) -> String {
        let id = self.gathering.id;
        if self.run.is_null() {
            return format!("all have signed: {id} runs; see `almanac schedule show {id}`\n");
        }
        let outcome = run_outcome(&self.run);
        let colour = if self.run["success"] == true { Colour::Green } else { Colour::Red };
        let hash = text(&self.run["receipt"]["transactionHash"]);
        format!("all have signed: it ran and {} in {hash}\n", colour.paint(&outcome))
    }
}
