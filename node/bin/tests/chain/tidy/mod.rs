//! Documents match the sources: every path, target, method, parameter, crate and flag that they name exists, the map
//! and the status are complete, and every case of a built door has a test.
//!
//! A check takes texts and returns complaints, so that each has a unit test with a planted error beside it.

mod cases;
mod commands;
mod decisions;
mod document;
mod doors;
mod map;
mod methods;
mod names;
mod paths;
mod repository;
mod targets;

use document::{Document, Span};
use repository::Repository;

/// Runs a check on every document and fails with all complaints, each with its file and line.
fn check_documents(check: impl Fn(&Document, &Span) -> Vec<String>) {
    let repository = Repository::open();
    let mut complaints = Vec::new();
    for document in repository.documents() {
        for span in &document.spans {
            let found = check(&document, span).into_iter();
            complaints.extend(found.map(|complaint| format!("{}:{}: {complaint}", document.path, span.line)));
        }
    }
    fail_with(&complaints);
}

fn fail_with(complaints: &[String]) {
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}

#[test]
fn documents_name_existing_paths() {
    let tree = paths::Tree::new(&Repository::open().files);
    check_documents(|_, span| paths::check(span, &tree));
}

#[test]
fn links_lead_somewhere() {
    let documents = Repository::open().documents();
    let tree = paths::Tree::new(&Repository::open().files);
    fail_with(&paths::check_links(&documents, &tree));
}

/// The explorer shows the contents beside each page: what is not in them is not found.
#[test]
fn the_contents_have_every_page() {
    let repository = Repository::open();
    let missing = paths::missing_in_contents(&repository.read("docs/README.md"), &repository.files);
    fail_with(&missing);
}

#[test]
fn documents_name_existing_make_targets() {
    let known = targets::targets(&Repository::open().read("Makefile"));
    assert!(known.contains("test") && known.contains("sim-long"), "{known:?}");
    check_documents(|_, span| targets::check(span, &known));
}

#[test]
fn documents_name_existing_methods() {
    let known = methods::listed(&Repository::open().read("docs/methods.md"));
    assert!(known.len() > 150 && known.contains("eth_call"), "{}", known.len());
    check_documents(|_, span| methods::check(span, &known));
}

#[test]
fn documents_name_existing_parameters() {
    let known = names::parameters(&Repository::open().read("protocol/primitives/src/params/governed.rs"));
    assert!(known.contains("cron_block_gas_max"), "{known:?}");
    check_documents(|_, span| names::check_parameters(span, &known));
}

#[test]
fn documents_name_existing_crates() {
    let known = Repository::open().crates();
    let names: Vec<String> = known.into_iter().map(|(name, _)| name).collect();
    assert!(names.contains(&"almanac-exec".to_owned()), "{names:?}");
    check_documents(|_, span| names::check_crates(span, &names));
}

#[test]
fn documents_name_existing_identifiers() {
    let known = names::words(&Repository::open().sources());
    check_documents(|_, span| names::check_identifiers(span, &known));
}

#[test]
fn documents_name_existing_commands_and_flags() {
    let known = commands::Commands::of_binary(env!("CARGO_BIN_EXE_almanac"));
    check_documents(|_, span| known.check(span));
}

#[test]
fn documents_name_existing_decisions() {
    let repository = Repository::open();
    let known = decisions::numbers(&repository.files);
    let complaints: Vec<String> = repository
        .documents()
        .iter()
        .flat_map(|document| decisions::check_numbers(document, &known))
        .collect();
    fail_with(&complaints);
}

#[test]
fn the_map_has_every_crate() {
    let repository = Repository::open();
    let members: Vec<String> = repository.crates().into_iter().map(|(_, path)| path).collect();
    let architecture = repository.read("ARCHITECTURE.md");
    fail_with(&map::check_crates(&architecture, &members));
    fail_with(&map::check_files(&architecture, &members, &repository.files));
}

#[test]
fn the_map_the_status_and_the_specs_have_every_door() {
    let repository = Repository::open();
    let doors = doors::doors(&repository);
    let built: Vec<&str> = doors.iter().filter(|door| door.is_built).map(|door| door.name.as_str()).collect();
    assert!(built.contains(&"CRON_REGISTRY") && built.contains(&"PARAMETERS"), "{built:?}");
    let mut complaints =
        map::check_doors("ARCHITECTURE.md", &repository.read("ARCHITECTURE.md"), "## The map", &doors);
    complaints.extend(map::check_doors("README.md", &repository.read("README.md"), "## Status", &doors));
    complaints.extend(doors::check_specs(&repository.read("specs/README.md"), &doors));
    fail_with(&complaints);
}

#[test]
fn every_case_of_a_built_door_has_a_test() {
    let repository = Repository::open();
    let built = doors::built_specs(&repository.read("specs/README.md"));
    assert!(built.contains(&"arc21".to_owned()), "{built:?}");
    let tests = cases::tests(&repository);
    for spec in &built {
        let text = repository.read(&format!("specs/{spec}.md"));
        let cases = cases::cases(&text);
        assert!(cases.len() >= 20, "specs/{spec}.md: {} cases", cases.len());
        fail_with(&cases::check(&cases, &tests));
    }
    assert!(cases::cases(&repository.read("specs/arc21.md")).len() >= 28 + 8);
}

#[test]
fn decisions_claim_as_unbuilt_only_what_is_not_there() {
    let repository = Repository::open();
    let words = names::words(&repository.sources());
    let tree = paths::Tree::new(&repository.files);
    let built = doors::built_specs(&repository.read("specs/README.md"));
    let overview = repository.read("docs/decisions/README.md");
    let mut complaints = Vec::new();
    for path in repository.files.iter().filter(|path| decisions::is_record(path)) {
        let record = decisions::Record::new(path, &repository.read(path));
        complaints.extend(record.check(&words, &tree, &built));
        complaints.extend(record.check_overview(&overview));
    }
    fail_with(&complaints);
}
