//! The map of ARCHITECTURE.md and the status of README.md.

use crate::tidy::doors::{Door, built};

/// The part of a document under a heading, up to the next heading of the same depth.
fn section<'a>(text: &'a str, heading: &str) -> &'a str {
    let depth = heading.split(' ').next().unwrap_or_default();
    let start = text.find(&format!("{heading}\n")).unwrap_or_else(|| panic!("no heading {heading:?}"));
    let rest = &text[start + heading.len()..];
    rest.find(&format!("\n{depth} ")).map_or(rest, |end| &rest[..end])
}

/// Complains of crates that the drawing or the list of crates lacks.
pub(crate) fn check_crates(architecture: &str, members: &[String]) -> Vec<String> {
    let drawing = section(architecture, "## The map").split("```").nth(1).expect("a drawing");
    let drawn: Vec<&str> = drawing.split(|c: char| !c.is_ascii_alphanumeric() && c != '/').collect();
    let paragraphs = section(architecture, "## The crates");
    let mut complaints = Vec::new();
    for member in members {
        let name = member.rsplit('/').next().unwrap_or_default();
        if !drawn.contains(&name) && !drawn.contains(&member.as_str()) {
            complaints.push(format!("ARCHITECTURE.md: the drawing of the map lacks {member}"));
        }
        if !paragraphs.lines().any(|line| line.starts_with(&format!("**`{member}`**"))) {
            complaints.push(format!("ARCHITECTURE.md: no paragraph begins with **`{member}`**"));
        }
    }
    complaints
}

/// Complains of Rust files and directories that the paragraphs of a crate name by their last parts, and that this crate
/// does not have: `block.rs`, `sync/`. Another crate may have one of the same name.
pub(crate) fn check_files(architecture: &str, members: &[String], files: &[String]) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut member: Option<&String> = None;
    for line in section(architecture, "## The crates").lines() {
        member = members.iter().find(|member| line.starts_with(&format!("**`{member}`**"))).or(member);
        // A paragraph about anything else ends those of the last crate.
        member = member.filter(|_| !line.starts_with('`'));
        let Some(member) = member else { continue };
        let parts = line.split('`').skip(1).step_by(2).filter(|text| is_part(text, members));
        let has = |part: &str| {
            let within = format!("/{}", part.trim_end_matches('/'));
            let mut own = files.iter().filter_map(|file| file.strip_prefix(member.as_str()));
            own.any(|file| file.ends_with(&within) || file.contains(&format!("{within}/")))
        };
        complaints.extend(
            parts.filter(|part| !has(part)).map(|part| format!("ARCHITECTURE.md: {member} has no {part}")),
        );
    }
    complaints
}

/// Whether a text names a file or a directory inside a crate, rather than one from the root.
fn is_part(text: &str, members: &[String]) -> bool {
    let is_plain = text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_./".contains(c));
    let first = text.split('/').next().unwrap_or_default();
    let is_rooted = members.iter().any(|member| member.starts_with(&format!("{first}/")));
    is_plain
        && (text.ends_with(".rs") || text.ends_with('/'))
        && !is_rooted
        && !["contracts", "docs"].contains(&first)
}

/// Complains of doors that a section lacks, or of which it states wrongly whether they are built: each has a row of a
/// table with its address, which contains "not built" or does not.
pub(crate) fn check_doors(path: &str, text: &str, heading: &str, doors: &[Door]) -> Vec<String> {
    let rows: Vec<&str> = section(text, heading).lines().filter(|line| line.starts_with('|')).collect();
    let mut complaints = Vec::new();
    for door in doors {
        let row = rows.iter().find(|row| row.contains(&format!("`{}`", door.address)));
        match row {
            None => {
                complaints.push(format!("{path}: {heading}: no row has {}, `{}`", door.name, door.address));
            }
            Some(row) if row.contains("not built") == door.is_built => {
                complaints.push(format!("{path}: {heading}: {} is {}", door.name, built(door)));
            }
            Some(_) => {}
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_crate_is_caught() {
        let text =
            "## The map\n```\n+ exec +\n```\n## The crates\n**`protocol/exec`**: runs.\n## Next\nbft\n";
        let members = ["protocol/exec".to_owned(), "node/bft".to_owned()];
        assert!(check_crates(text, &members[..1]).is_empty());
        assert_eq!(
            check_crates(text, &members),
            [
                "ARCHITECTURE.md: the drawing of the map lacks node/bft",
                "ARCHITECTURE.md: no paragraph begins with **`node/bft`**"
            ]
        );
    }

    #[test]
    fn a_file_of_another_crate_is_caught() {
        let text = "## The crates\n**`node/bft`** has `sync/`, `voter.rs`, `docs/a.md`, `node/bin/src/run.rs`.\n\n\
            - `tests/all/sim/`: `run.rs`\n\n**`node/bin`** has `run.rs`, `voter.rs`.\n\n`contracts/` has `voter.rs`.\n";
        let members = ["node/bft", "node/bin"].map(str::to_owned);
        let files = ["node/bft/src/sync/mod.rs", "node/bft/src/voter.rs", "node/bft/tests/all/sim/main.rs"];
        let files: Vec<String> =
            files.into_iter().chain(["node/bin/src/run.rs"]).map(str::to_owned).collect();
        let expected =
            ["ARCHITECTURE.md: node/bft has no run.rs", "ARCHITECTURE.md: node/bin has no voter.rs"];
        assert_eq!(check_files(text, &members, &files), expected);
    }

    #[test]
    fn a_missing_or_misjudged_door_is_caught() {
        let door = |name: &str, address: &str, is_built| Door {
            name: name.into(),
            address: address.into(),
            is_built,
        };
        let doors = [door("CRON", "0x…06", true), door("CALLBACKS", "0x…a102", false)];
        let right = "## Status\n| cron `0x…06` | built |\n| calls `0x…a102` | not built |\n## Next\n";
        assert!(check_doors("R", right, "## Status", &doors).is_empty());
        let without = right.replace("| cron `0x…06` | built |\n", "") + "| cron `0x…06` | built |\n";
        assert_eq!(
            check_doors("R", &without, "## Status", &doors),
            ["R: ## Status: no row has CRON, `0x…06`"]
        );
        let late = right.replace("| built", "| not built");
        assert_eq!(check_doors("R", &late, "## Status", &doors), ["R: ## Status: CRON is built"]);
        let early = right.replace("not built", "built");
        assert_eq!(check_doors("R", &early, "## Status", &doors), ["R: ## Status: CALLBACKS is not built"]);
    }
}
