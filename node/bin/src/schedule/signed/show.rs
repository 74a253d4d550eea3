//! One transaction that waits, or has waited, for signatures: `almanac schedule show`.

use super::{
    gathering::{End, Gathering},
    request::Request,
    wording,
};
use crate::client::{
    node::NodeArgs,
    output::{Facts, status_colour},
};
use almanac_primitives::{ScheduleId, TimestampMs};
use serde_json::{Value, json};

/// What is known about the signatures of a schedule.
pub(in crate::schedule) struct Signatures {
    gathering: Gathering,
    request: Option<String>,
}

impl Signatures {
    /// `None` once the chain has forgotten it: the index still knows how it ended.
    pub(in crate::schedule) fn read(node: &NodeArgs, id: ScheduleId) -> anyhow::Result<Option<Self>> {
        let Some(gathering) = Gathering::read(node, id)? else { return Ok(None) };
        let is_open = gathering.end.is_none() && !gathering.parties.missing().is_empty();
        let request = match is_open {
            true => Some(Request::to_run(node.chain()?, &gathering).line()),
            false => None,
        };
        Ok(Some(Self { gathering, request }))
    }

    pub(in crate::schedule) fn described(&self) -> Value {
        let Gathering { terms, parties, expires, end, creator, .. } = &self.gathering;
        json!({ "status": end.map_or("pending", End::name), "creator": creator, "payer": terms.payer,
            "memo": terms.body.memo, "round": terms.round, "adminKey": terms.admin_key, "expires": expires,
            "parties": parties.described(), "missing": parties.missing(), "request": self.request })
    }

    /// Its facts for people; `status` is what the index knows.
    pub(in crate::schedule) fn facts(&self, status: &str, now: TimestampMs) -> Facts {
        let Gathering { id, terms, parties, expires, end, creator } = &self.gathering;
        let mut facts = Facts::default();
        facts.add("schedule", format!("{id} ({})", id.0));
        let words = match end {
            None => "waits for signatures".to_owned(),
            // The index knows how the run went.
            Some(End::Executed) => status.to_owned(),
            Some(end) => end.name().to_owned(),
        };
        facts.add("status", status_colour(status).paint(&words));
        facts.add("made by", creator.to_string());
        wording::add_terms(&mut facts, terms, Some(*creator));
        if end.is_none() {
            let name = if terms.body.wait_for_expiry { "signed until" } else { "expires" };
            facts.add(name, wording::until(*expires, now));
        }
        for (index, line) in parties.lines().into_iter().enumerate() {
            facts.add(if index == 0 { "signatures" } else { "" }, line);
        }
        if let Some(request) = &self.request {
            facts.add("to sign", format!("almanac schedule sign {id}"));
            facts.add("elsewhere", format!("almanac schedule sign {request}"));
        }
        facts
    }
}
