//! Doors: system contracts that have an address, and whether one answers there.

use crate::tidy::{document, repository::Repository};
use std::collections::BTreeSet;

pub(crate) struct Door {
    /// The constant of its address.
    pub(crate) name: String,
    /// Its address as documents write it: `0x…a105`.
    pub(crate) address: String,
    pub(crate) is_built: bool,
}

/// Addresses at which nothing answers a call: an account without code, and Ethereum's own contract.
const NOT_DOORS: [&str; 3] = ["DEVELOPER", "BLOCK_HASH_HISTORY", "BURN"];

pub(crate) fn doors(repository: &Repository) -> Vec<Door> {
    let sources = repository.files.iter().filter(|path| path.starts_with("protocol/exec/src/doors"));
    let sources: Vec<String> = sources.map(|path| repository.read(path)).collect();
    let doors = read(&repository.read("protocol/primitives/src/addresses.rs"), &sources);
    assert!(doors.len() >= 9, "{} doors", doors.len());
    doors
}

/// A door is built when the code of doors names its address.
fn read(addresses: &str, sources: &[String]) -> Vec<Door> {
    let used: BTreeSet<&str> = sources.iter().flat_map(|source| document::words(source)).collect();
    let constants = addresses.lines().filter_map(|line| line.strip_prefix("pub const "));
    let constants =
        constants.filter_map(|line| Some((line.split_once(':')?.0, line.split_once("address!(\"0x")?.1)));
    let door = |(name, rest): (&str, &str)| {
        let digits = rest.split('"').next().unwrap_or_default().trim_start_matches('0');
        // A byte, or two.
        let width = if digits.len() <= 2 { 2 } else { 4 };
        let address = format!("0x…{digits:0>width$}");
        Door { name: name.to_owned(), address, is_built: used.contains(name) }
    };
    constants.filter(|(name, _)| !NOT_DOORS.contains(name)).map(door).collect()
}

/// Rows of the table of specs: the file without its ending, and what it states about the door.
fn rows(overview: &str) -> impl Iterator<Item = (&str, &str)> {
    let rows = overview.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| {
        Some((row.split_once(".md`")?.0, row.trim_end_matches('|').rsplit_once('|')?.1.trim()))
    })
}

/// The specs whose doors are built, by the table of specs, which [`check_specs`] compares with the sources.
pub(crate) fn built_specs(overview: &str) -> Vec<String> {
    rows(overview)
        .filter(|(_, state)| !state.contains("not built"))
        .map(|(name, _)| name.to_owned())
        .collect()
}

/// Complains where the table of specs and the sources disagree about what is built.
pub(crate) fn check_specs(overview: &str, doors: &[Door]) -> Vec<String> {
    let mut complaints = Vec::new();
    for (name, state) in rows(overview) {
        for door in doors.iter().filter(|door| state.contains(&format!("`{}`", door.address))) {
            if door.is_built == state.contains("not built") {
                complaints.push(format!("specs/README.md: {name}: {} is {}", door.name, built(door)));
            }
        }
    }
    complaints
}

pub(crate) fn built(door: &Door) -> &'static str {
    if door.is_built { "built" } else { "not built" }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESSES: &str = "/// Cron.\n\
        pub const CRON: Address = address!(\"0x0000000000000000000000000000000000000006\");\n\
        pub const CALLBACKS: Address = address!(\"0x000000000000000000000000000000000000a102\");\n\
        pub const SERVICE: Address = address!(\"0x000000000000000000000000000000000000016b\");\n\
        pub const DEVELOPER: Address = address!(\"0x000000000000000000000000000000000000a1d0\");\n";

    fn doors() -> Vec<Door> {
        read(ADDRESSES, &["match address { CRON => cron::call, }".to_owned()])
    }

    #[test]
    fn doors_are_read_from_the_sources() {
        let found: Vec<_> =
            doors().into_iter().map(|door| (door.name, door.address, door.is_built)).collect();
        let expected =
            [("CRON", "0x…06", true), ("CALLBACKS", "0x…a102", false), ("SERVICE", "0x…016b", false)];
        assert_eq!(
            found,
            expected.map(|(name, address, built)| (name.to_owned(), address.to_owned(), built))
        );
    }

    #[test]
    fn a_wrong_table_of_specs_is_caught() {
        let right = "| file | door |\n|---|---|\n| `arc21.md` | x | `0x…06` |\n| `flip.md` | x | `0x…a102`, not built |\n";
        assert_eq!(built_specs(right), ["arc21"]);
        assert!(check_specs(right, &doors()).is_empty());
        let late = right.replace("`0x…06`", "`0x…06`, not built");
        assert_eq!(check_specs(&late, &doors()), ["specs/README.md: arc21: CRON is built"]);
        let early = right.replace(", not built", "");
        assert_eq!(check_specs(&early, &doors()), ["specs/README.md: flip: CALLBACKS is not built"]);
    }
}
