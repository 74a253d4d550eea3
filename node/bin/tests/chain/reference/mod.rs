//! The reference pages are written from what the node is made of: JSON-RPC's from the traits and structs of its
//! sources, REST's from the OpenAPI document that a node serves, gRPC's from the proto file. `ALMANAC_BLESS=1` writes
//! them anew; without it they are compared.

mod forms;
mod grpc;
mod rest;
mod rpc;
mod sources;

use std::{fs, path::Path};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

#[test]
fn the_reference_of_json_rpc_is_current() {
    compare("docs/rpc-reference.md", &rpc::page());
}

#[test]
fn the_reference_of_rest_is_current() {
    compare("docs/rest-reference.md", &rest::page());
}

#[test]
fn the_reference_of_grpc_is_current() {
    compare("docs/grpc-reference.md", &grpc::page());
}

fn compare(path: &str, expected: &str) {
    assert!(
        !expected.contains(env!("CARGO_MANIFEST_DIR")),
        "{path} would say where its sources are on this machine"
    );
    let file = Path::new(ROOT).join(path);
    if std::env::var_os("ALMANAC_BLESS").is_some() {
        fs::write(file, expected).unwrap();
        return;
    }
    let shown = fs::read_to_string(file).unwrap_or_default();
    let differing =
        shown.lines().zip(expected.lines()).enumerate().find(|(_, (shown, expected))| shown != expected);
    if let Some((line, (shown, expected))) = differing {
        panic!(
            "{path}:{}: the page says\n{shown}\nand the sources say\n{expected}\nALMANAC_BLESS=1 writes the page anew",
            line + 1
        );
    }
    assert_eq!(shown, expected, "{path} is too short or too long: ALMANAC_BLESS=1 writes it anew");
}

#[test]
fn a_type_without_words_is_seen_at_the_beginning_of_a_sentence() {
    assert_eq!(capitalized(forms::WORDLESS), forms::WORDLESS);
}

/// The first letter in capitals.
fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
