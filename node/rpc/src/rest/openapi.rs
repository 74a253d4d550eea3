//! The OpenAPI document, written from the table of routes. Only the shapes of answers are in a file of their own;
//! schemathesis compares them with the answers of a running node (`tests/clients/rest.py`).

use super::{
    form::Form,
    routes::{Field, ROUTES, Route, Verb},
};
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

static DOCUMENT: LazyLock<String> = LazyLock::new(|| written().to_string());

/// The document as JSON.
pub(crate) fn document() -> &'static str {
    &DOCUMENT
}

/// Refusals beside those of each route.
const REFUSALS: [(&str, &str); 8] = [
    ("400", "A value is not of the form that it must have"),
    ("403", "This host or origin may not call"),
    ("405", "The path takes another verb"),
    ("408", "The request did not end in time"),
    ("429", "More than this node answers: ask for less, or later"),
    ("431", "The head of the request is too large"),
    ("500", "A fault of the node"),
    ("503", "The node has no room, or no chain to ask about yet"),
];

fn written() -> Value {
    let mut paths = Map::new();
    for route in ROUTES {
        let verb = match route.verb {
            Verb::Get => "get",
            Verb::Post => "post",
        };
        paths.insert(route.path.to_owned(), json!({ verb: operation(route) }));
    }
    let schemas: Value =
        serde_json::from_str(include_str!("schemas.json")).expect("a file of ours, which tests read");
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Almanac",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "Transactions, accounts, schedules and the agenda of a node",
            "description": "The same data as JSON-RPC, which is served at `/`: see docs/rest.md and docs/methods.md.",
            "license": { "name": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "paths": paths,
        "components": { "schemas": schemas },
    })
}

fn operation(route: &Route) -> Value {
    let places = route.places.iter().map(|field| parameter(field, "path"));
    let query = route.query.iter().map(|field| parameter(field, "query"));
    let mut operation = json!({
        "operationId": name(route),
        "summary": route.summary,
        "parameters": places.chain(query).collect::<Vec<_>>(),
        "responses": responses(route),
    });
    if !route.body.is_empty() {
        operation["requestBody"] = body(route.body);
    }
    operation
}

/// `get_accounts_address`: unique, since a path has one verb.
fn name(route: &Route) -> String {
    let verb = if route.verb == Verb::Get { "get" } else { "post" };
    let words = route.path.trim_start_matches("/v1").replace(['/', '.'], "_").replace(['{', '}'], "");
    format!("{verb}{words}")
}

fn parameter(field: &Field, place: &str) -> Value {
    let mut shown = json!({
        "name": field.name,
        "in": place,
        "required": place == "path",
        "description": field.about,
        "schema": field.form.schema(),
    });
    if matches!(field.form, Form::Choices(_)) {
        // Words with commas between them.
        shown["explode"] = json!(false);
    }
    shown
}

fn body(fields: &[Field]) -> Value {
    let described = |field: &Field| {
        let mut schema = field.form.schema();
        schema["description"] = json!(field.about);
        (field.name.to_owned(), schema)
    };
    let properties: Map<String, Value> = fields.iter().map(described).collect();
    let required: Vec<_> = fields.iter().map(|field| field.name).collect();
    json!({
        "required": true,
        "content": { "application/json": { "schema": {
            "type": "object", "properties": properties, "required": required, "additionalProperties": false,
        } } },
    })
}

fn responses(route: &Route) -> Value {
    let answer = |description: &str, schema: &str| {
        let schema = json!({ "$ref": format!("#/components/schemas/{schema}") });
        json!({ "description": description, "content": { "application/json": { "schema": schema } } })
    };
    let mut all = Map::new();
    all.insert(route.status.as_str().to_owned(), answer(route.summary, route.schema));
    for (status, description) in REFUSALS {
        all.insert(status.to_owned(), answer(description, "Error"));
    }
    if !route.places.is_empty() {
        all.insert("404".to_owned(), answer("This node knows nothing of that name", "Error"));
    }
    if !route.body.is_empty() {
        all.insert("413".to_owned(), answer("The body is too large", "Error"));
        all.insert("415".to_owned(), answer("The body is not application/json", "Error"));
    }
    all.insert("422".to_owned(), answer("Well-formed, but refused: the message says why", "Error"));
    Value::Object(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Every schema that is named exists, and every one that exists is named.
    #[test]
    fn all_schemas_are_there_and_used() {
        let document = written();
        let there = document["components"]["schemas"].as_object().unwrap().keys().cloned();
        let mut named = BTreeSet::new();
        collect(&document, &mut named);
        assert_eq!(there.collect::<BTreeSet<_>>(), named);
    }

    fn collect(value: &Value, named: &mut BTreeSet<String>) {
        match value {
            Value::Object(fields) => {
                if let Some(Value::String(target)) = fields.get("$ref") {
                    named.insert(target.strip_prefix("#/components/schemas/").unwrap().to_owned());
                }
                fields.values().for_each(|inner| collect(inner, named));
            }
            Value::Array(items) => items.iter().for_each(|inner| collect(inner, named)),
            _ => {}
        }
    }

    /// An orderless nonce can come again, so nothing is named by it (ORDERLESS-21).
    #[test]
    fn orderless_21_no_route_names_a_transaction_by_its_nonce() {
        let document = written();
        for (path, operations) in document["paths"].as_object().unwrap() {
            let parameters =
                operations.as_object().unwrap().values().flat_map(|verb| verb["parameters"].as_array());
            let names = parameters.flatten().map(|parameter| parameter["name"].as_str().unwrap());
            assert!(names.chain([path.as_str()]).all(|name| !name.contains("nonce")), "{path}");
        }
    }

    #[test]
    fn every_operation_has_a_name_of_its_own() {
        let names: BTreeSet<String> = ROUTES.iter().map(name).collect();
        assert_eq!(names.len(), ROUTES.len());
        assert!(names.contains("get_accounts_address_transaction_summaries"), "{names:?}");
    }
}
