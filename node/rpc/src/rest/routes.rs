//! The routes: which path is which JSON-RPC method, and what goes where.

use super::{form::Form, problem::Problem};
use crate::bounds::ALMANAC_PAGE_MAX;
use http::{Method, StatusCode};
use serde::{
    Deserializer,
    de::{DeserializeSeed, Error as _, MapAccess, Visitor},
};
use serde_json::{Map, Value, json};
use std::{borrow::Cow, fmt};

/// One route.
#[derive(Debug)]
pub(crate) struct Route {
    /// How it is asked.
    pub(crate) verb: Verb,
    /// The path; a part in braces stands for the next of `places`.
    pub(crate) path: &'static str,
    /// Values in the path: the first parameters of the method.
    pub(crate) places: &'static [Field],
    /// Values in the query: fields of one object, which is the last parameter.
    pub(crate) query: &'static [Field],
    /// Values in the body: parameters of the method.
    pub(crate) body: &'static [Field],
    /// Who answers.
    pub(crate) source: Source,
    /// What it is for, in a few words.
    pub(crate) summary: &'static str,
    /// Status of its answer.
    pub(crate) status: StatusCode,
    /// Name of the answer's schema.
    pub(crate) schema: &'static str,
    /// The field that the answer is put in, where the method's is no object.
    pub(crate) wrapped_in: Option<&'static str>,
}

/// Who answers a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A JSON-RPC method. `null` is "not found".
    Method(&'static str),
    /// The OpenAPI document.
    Document,
}

/// How a route is asked. HEAD is GET without the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    Post,
}

impl Verb {
    fn takes(self, method: &Method) -> bool {
        match self {
            Self::Get => matches!(*method, Method::GET | Method::HEAD),
            Self::Post => *method == Method::POST,
        }
    }

    fn allowed(self) -> &'static str {
        match self {
            Self::Get => "GET, HEAD, OPTIONS",
            Self::Post => "POST, OPTIONS",
        }
    }
}

/// A value that a request has.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    /// Its name in JSON-RPC, where it is a field there.
    pub(crate) field: &'static str,
    pub(crate) form: Form,
    pub(crate) about: &'static str,
}

pub(super) const LANES: &[&str] = &["reserved", "cron", "market", "spare", "signed"];
pub(super) const DOORS: &[&str] = &["cron", "callback", "market", "signed"];
const ORDERS: &[&str] = &["oldest", "newest"];
pub(super) const STATUSES: &[&str] =
    &["pending", "quarantined", "succeeded", "failed", "cancelled", "exhausted"];

const ANY: Form = Form::Number { min: 0, max: u64::MAX };
const fn field(name: &'static str, field: &'static str, form: Form, about: &'static str) -> Field {
    Field { name, field, form, about }
}
const LIMIT: Field = field(
    "limit",
    "limit",
    Form::Number { min: 1, max: ALMANAC_PAGE_MAX },
    "Entries of the page, by default 20",
);
const CURSOR: Field = field("cursor", "cursor", Form::Cursor, "The `cursor` of the page before");
const ADDRESS: Field = field("address", "", Form::Hex(20), "The account");

/// A GET without anything in particular.
const GET: Route = Route {
    verb: Verb::Get,
    path: "",
    places: &[],
    query: &[],
    body: &[],
    source: Source::Document,
    summary: "",
    status: StatusCode::OK,
    schema: "",
    wrapped_in: None,
};

/// All routes.
pub(crate) const ROUTES: &[Route] = &[
    Route {
        verb: Verb::Post,
        path: "/v1/transactions",
        body: &[field("raw", "", Form::Bytes, "The signed transaction, encoded (EIP-2718)")],
        source: Source::Method("eth_sendRawTransaction"),
        summary: "Submit a signed transaction",
        status: StatusCode::ACCEPTED,
        schema: "Submitted",
        wrapped_in: Some("hash"),
        ..GET
    },
    Route {
        path: "/v1/transactions/by_hash/{hash}",
        places: &[field("hash", "", Form::Hex(32), "The transaction's hash")],
        source: Source::Method("almanac_getTransaction"),
        summary: "A transaction, pending or committed",
        schema: "FoundTransaction",
        ..GET
    },
    Route {
        path: "/v1/records/{hash}",
        places: &[field("hash", "", Form::Hex(32), "The hash of a transaction or a run")],
        source: Source::Method("almanac_getRecord"),
        summary: "What became of a transaction or a run, as Hedera's record",
        schema: "Record",
        ..GET
    },
    Route {
        path: "/v1/accounts/{address}",
        places: &[ADDRESS],
        source: Source::Method("almanac_getAccount"),
        summary: "An account: sequence number, balance and key",
        schema: "Account",
        ..GET
    },
    Route {
        path: "/v1/accounts/{address}/transaction_summaries",
        places: &[ADDRESS],
        query: &[
            field("start_version", "start_version", ANY, "The first version that is wanted"),
            field("end_version", "end_version", ANY, "The last version that is wanted"),
            LIMIT,
        ],
        source: Source::Method("almanac_getTransactionSummaries"),
        summary: "What an account signed, ascending; without a start, the latest page",
        schema: "TransactionSummaries",
        ..GET
    },
    Route {
        path: "/v1/schedules",
        query: &[
            field("owner", "owner", Form::Hex(20), "Who may cancel it"),
            field("target", "target", Form::Hex(20), "What it calls"),
            field("status", "status", Form::Choice(STATUSES), "How it stands"),
            field("lane", "lane", Form::Choice(LANES), "In which lane it runs"),
            field("door", "door", Form::Choice(DOORS), "Through which door it was made"),
            field("due_from", "dueFrom", ANY, "Due at this millisecond or later"),
            field("due_to", "dueTo", ANY, "Due at this millisecond or earlier"),
            field("order", "order", Form::Choice(ORDERS), "Which come first"),
            CURSOR,
            LIMIT,
        ],
        source: Source::Method("almanac_listSchedules"),
        summary: "Schedules, by creation",
        schema: "SchedulesPage",
        ..GET
    },
    Route {
        path: "/v1/schedules/{id}",
        places: &[field("id", "", Form::ScheduleId, "The schedule, as `1042-3-0` or as a number")],
        source: Source::Method("almanac_getSchedule"),
        summary: "A schedule, also one that has ended",
        schema: "Schedule",
        ..GET
    },
    Route {
        path: "/v1/agenda",
        query: &[
            field("from", "from", ANY, "Due at this millisecond or later"),
            field("to", "to", ANY, "Due at this millisecond or earlier"),
            field("lanes", "lanes", Form::Choices(LANES), "Of these lanes only"),
            CURSOR,
            LIMIT,
        ],
        source: Source::Method("almanac_agenda"),
        summary: "What is due when",
        schema: "AgendaPage",
        ..GET
    },
    Route { path: "/v1/openapi.json", summary: "This document", schema: "Document", ..GET },
];

/// The route of a request, with the method's parameters as far as the path and the query have them.
pub(crate) fn find(
    method: &Method,
    path: &str,
    query: Option<&str>,
) -> Result<(&'static Route, Vec<Value>), Problem> {
    let mut allowed = None;
    for route in ROUTES {
        let Some(places) = places(route.path, path) else { continue };
        if !route.verb.takes(method) {
            allowed = Some(route.verb.allowed());
            continue;
        }
        let mut params = Vec::with_capacity(route.places.len() + 1);
        for (place, given) in route.places.iter().zip(places) {
            params.push(place.form.read(place.name, &given)?);
        }
        params.extend(route.read_query(query.unwrap_or_default())?);
        return Ok((route, params));
    }
    Err(allowed.map_or_else(|| unknown(path), Problem::wrong_verb))
}

fn unknown(path: &str) -> Problem {
    let start: String = path.chars().take(200).collect();
    Problem::new(StatusCode::NOT_FOUND, format!("there is no {start}: /v1/openapi.json lists what there is"))
}

/// The values at the places of a pattern, if the path is like it.
fn places<'a>(pattern: &str, path: &'a str) -> Option<Vec<Cow<'a, str>>> {
    if pattern.split('/').count() != path.split('/').count() {
        return None;
    }
    let mut found = Vec::new();
    for (wanted, given) in pattern.split('/').zip(path.split('/')) {
        if wanted.starts_with('{') {
            found.push(percent_encoding::percent_decode_str(given).decode_utf8_lossy());
        } else if wanted != given {
            return None;
        }
    }
    Some(found)
}

impl Route {
    /// The object that the query stands for, where there may be one.
    fn read_query(&self, query: &str) -> Result<Option<Value>, Problem> {
        let mut options = Map::new();
        for (name, given) in form_urlencoded::parse(query.as_bytes()) {
            let Some(field) = self.query.iter().find(|field| field.name == name) else {
                let (name, known): (String, _) = (name.chars().take(50).collect(), known(self.query));
                return Err(Problem::invalid(format!("unknown query parameter {name:?}; known: {known}")));
            };
            if options.insert(field.field.to_owned(), field.form.read(field.name, &given)?).is_some() {
                return Err(Problem::invalid(format!("query parameter {} is given twice", field.name)));
            }
        }
        Ok((!self.query.is_empty()).then_some(Value::Object(options)))
    }

    /// The parameters that the body has. Reading stops at the first field too many: a flood of them is not kept.
    pub(crate) fn read_body(&self, body: &[u8]) -> Result<Vec<Value>, Problem> {
        let mut reader = serde_json::Deserializer::from_slice(body);
        let given = Fields(self.body).deserialize(&mut reader);
        let given = given.and_then(|given| reader.end().map(|()| given));
        let given = given.map_err(|error| Problem::invalid(format!("the body: {error}")))?;
        let read = |(field, given): (&Field, Option<String>)| match given {
            Some(text) => field.form.read(field.name, &text),
            None => Err(Problem::invalid(format!("the body has no {}", field.name))),
        };
        self.body.iter().zip(given).map(read).collect()
    }
}

/// An object with these fields, each a string, in their order.
struct Fields(&'static [Field]);

impl<'de> DeserializeSeed<'de> for Fields {
    type Value = Vec<Option<String>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Fields {
    type Value = Vec<Option<String>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object with {}", known(self.0))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = vec![None; self.0.len()];
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            let Some(place) = self.0.iter().position(|field| field.name == name) else {
                let name: String = name.chars().take(50).collect();
                return Err(A::Error::custom(format!("unknown field {name:?}; known: {}", known(self.0))));
            };
            if found[place].replace(map.next_value()?).is_some() {
                return Err(A::Error::custom(format!("{name} is given twice")));
            }
        }
        Ok(found)
    }
}

fn known(fields: &[Field]) -> String {
    let names: Vec<_> = fields.iter().map(|field| field.name).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// A JSON-RPC message.
pub(crate) fn message(method: &str, params: &[Value]) -> String {
    json!({ "jsonrpc": "2.0", "id": 0, "method": method, "params": params }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::almanac::LaneName;
    use almanac_primitives::Lane;
    use almanac_schedule::record::Door;

    fn asked(path: &str) -> (&'static str, Vec<Value>) {
        let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
        let (route, params) = find(&Method::GET, path, query).unwrap();
        let Source::Method(method) = route.source else { return ("document", params) };
        (method, params)
    }

    #[test]
    fn paths_and_queries_become_calls() {
        let account = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
        assert_eq!(asked(&format!("/v1/accounts/{account}")), ("almanac_getAccount", vec![json!(account)]));
        let summaries = format!("/v1/accounts/{account}/transaction_summaries?end_version=7&limit=2");
        let options = json!({ "end_version": 7, "limit": 2 });
        assert_eq!(asked(&summaries), ("almanac_getTransactionSummaries", vec![json!(account), options]));
        assert_eq!(asked("/v1/schedules/2%2D1-0"), ("almanac_getSchedule", vec![json!("2-1-0")]));
        let agenda = "/v1/agenda?lanes=cron%2Cspare&from=5";
        assert_eq!(asked(agenda), ("almanac_agenda", vec![json!({ "lanes": ["cron", "spare"], "from": 5 })]));
        assert_eq!(asked("/v1/schedules?due_to=9"), ("almanac_listSchedules", vec![json!({ "dueTo": 9 })]));
        let hash = format!("0x{}", "ab".repeat(32));
        assert_eq!(asked(&format!("/v1/records/{hash}")), ("almanac_getRecord", vec![json!(hash)]));
        assert_eq!(asked("/v1/openapi.json"), ("document", Vec::new()));
    }

    #[test]
    fn other_requests_are_refused_by_name() {
        let refused = |method: Method, path: &str, query: &str| {
            find(&method, path, Some(query)).unwrap_err().into_response().status().as_u16()
        };
        assert_eq!(refused(Method::GET, "/v1", ""), 404);
        assert_eq!(refused(Method::GET, "/v1/agenda/", ""), 404);
        assert_eq!(refused(Method::GET, "/v1/nothing", ""), 404);
        assert_eq!(refused(Method::POST, "/v1/agenda", ""), 405);
        assert_eq!(refused(Method::GET, "/v1/transactions", ""), 405);
        assert_eq!(refused(Method::GET, "/v1/agenda", "limt=1"), 400);
        assert_eq!(refused(Method::GET, "/v1/agenda", "limit=1&limit=1"), 400);
        assert_eq!(refused(Method::GET, "/v1/agenda", "limit=101"), 400);
        assert_eq!(refused(Method::GET, "/v1/accounts/0x12", ""), 400);
        assert_eq!(refused(Method::GET, "/v1/openapi.json", "a=1"), 400);
    }

    #[test]
    fn a_body_has_its_fields_and_no_others() {
        let route = ROUTES.iter().find(|route| route.verb == Verb::Post).unwrap();
        assert_eq!(route.read_body(br#"{"raw":"0x72"}"#).unwrap(), [json!("0x72")]);
        for bad in [
            "",
            "[]",
            "{}",
            r#"{"raw":1}"#,
            r#"{"raw":"72"}"#,
            r#"{"raw":"0x72","b":1}"#,
            r#"{"raw":"0x72","raw":"0x72"}"#,
        ] {
            assert!(route.read_body(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    /// The words of this table are those of JSON-RPC.
    #[test]
    fn lanes_and_doors_are_those_of_the_chain() {
        let names = Lane::ALL.map(|lane| serde_json::to_value(LaneName::from(lane)).unwrap());
        assert_eq!(json!(names), json!(LANES));
        assert_eq!(Door::ALL.map(Door::name)[..], *DOORS);
    }
}
