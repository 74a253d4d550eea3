//! REST's page, from the OpenAPI document of a running node.

use super::capitalized;
use crate::{rest::found, support::Node};
use serde_json::Value;
use std::fmt::Write as _;

const HEAD: &str = "# REST reference

Every route with its parameters and its answer, then the shapes that they name. [REST](rest.md) says what they are for. Written from `/v1/openapi.json`, the document that every node serves, by `node/bin/tests/chain/reference`, which CI compares.
";

pub(super) fn page() -> String {
    let document = document();
    let mut out = HEAD.to_owned();
    for (path, verbs) in document["paths"].as_object().unwrap() {
        for (verb, operation) in verbs.as_object().unwrap() {
            write_operation(&mut out, path, verb, operation);
        }
    }
    out.push_str("\n## Shapes\n");
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        write!(out, "\n### {name}\n\n").unwrap();
        if let Some(about) = schema["description"].as_str() {
            writeln!(out, "{about}.\n").unwrap();
        }
        write_shape(&mut out, schema);
    }
    out
}

fn document() -> Value {
    found(&Node::start(&[]), "/v1/openapi.json")
}

fn write_operation(out: &mut String, path: &str, verb: &str, operation: &Value) {
    let summary = operation["summary"].as_str().unwrap();
    write!(out, "\n## {} {path}\n\n{}.\n\n", verb.to_uppercase(), capitalized(summary)).unwrap();
    for parameter in operation["parameters"].as_array().unwrap() {
        let place = if parameter["in"] == "path" { "in the path" } else { "optional" };
        let (name, about) = (parameter["name"].as_str().unwrap(), parameter["description"].as_str().unwrap());
        writeln!(out, "- `{name}`, {place}: {}. {}", form(&parameter["schema"]), capitalized(about)).unwrap();
    }
    let body = &operation["requestBody"]["content"]["application/json"]["schema"];
    for (name, schema) in body["properties"].as_object().into_iter().flatten() {
        let about = schema["description"].as_str().unwrap_or_default();
        writeln!(out, "- `{name}`, in the body: {}. {}", form(schema), capitalized(about)).unwrap();
    }
    let mut refusals = Vec::new();
    for (status, answer) in operation["responses"].as_object().unwrap() {
        let schema = &answer["content"]["application/json"]["schema"];
        match status.starts_with('2') {
            true => writeln!(out, "- answer {status}: {}", form(schema)).unwrap(),
            false => refusals.push(status.as_str()),
        }
    }
    refusals.sort_unstable();
    writeln!(out, "- refusals: {}", refusals.join(", ")).unwrap();
}

fn write_shape(out: &mut String, schema: &Value) {
    match schema["properties"].as_object() {
        None => writeln!(out, "{}.", capitalized(&form(schema))).unwrap(),
        Some(fields) => fields.iter().for_each(|(name, field)| {
            let is_required =
                schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
            let optional = if is_required { "" } else { ", where there is one" };
            let about = field["description"].as_str().map(|about| format!(". {}", capitalized(about)));
            writeln!(out, "- `{name}`: {}{optional}{}", form(field), about.unwrap_or_default()).unwrap();
        }),
    }
}

/// What a value looks like, in words.
fn form(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(words) = schema["enum"].as_array() {
        return words
            .iter()
            .map(|word| format!("`{}`", word.as_str().unwrap()))
            .collect::<Vec<_>>()
            .join(", ");
    }
    for (key, between) in [("anyOf", " or "), ("oneOf", " or ")] {
        if let Some(all) = schema[key].as_array() {
            return all.iter().map(form).collect::<Vec<_>>().join(between);
        }
    }
    let range = match (schema["minimum"].as_u64(), schema["maximum"].as_u64()) {
        (Some(0), Some(u64::MAX)) => " below 2⁶⁴".to_owned(),
        (Some(min), Some(max)) => format!(" in {min}..={max}"),
        _ => String::new(),
    };
    match schema["type"].as_str() {
        Some("array") => format!("list of {}", form(&schema["items"])),
        Some("object") => {
            let fields: Vec<_> = schema["properties"].as_object().into_iter().flatten().collect();
            let shown = fields.iter().map(|(name, field)| format!("`{name}`: {}", form(field)));
            if fields.is_empty() {
                "object".to_owned()
            } else {
                format!("{{ {} }}", shown.collect::<Vec<_>>().join(", "))
            }
        }
        Some("string") => match schema["pattern"].as_str() {
            Some(pattern) => format!("text like `{pattern}`"),
            None => "text".to_owned(),
        },
        Some("integer") => format!("number{range}"),
        Some("boolean") => "true or false".to_owned(),
        Some("null") => "null".to_owned(),
        _ => "any".to_owned(),
    }
}
