//! Commands and flags of the binary, as its help states them.

use crate::tidy::document::Span;
use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
};

/// Flags of other programs that the documents name on their own.
const FOREIGN: [&str; 2] = ["--target", "--update-gaps"];

/// The flags of each command, by its words: `db export`. The binary itself has no words.
pub(crate) struct Commands {
    flags: BTreeMap<String, BTreeSet<String>>,
}

impl Commands {
    pub(crate) fn of_binary(binary: &str) -> Self {
        let mut commands = Self { flags: BTreeMap::new() };
        commands.add(&[], &|words: &[String]| {
            let output = Command::new(binary).args(words).arg("--help").output().unwrap();
            assert!(output.status.success(), "almanac {} --help", words.join(" "));
            String::from_utf8(output.stdout).unwrap()
        });
        assert!(
            commands.flags.len() > 10 && commands.flags["dev"].contains("--port"),
            "{:?}",
            commands.flags
        );
        commands
    }

    fn add(&mut self, words: &[String], help: &impl Fn(&[String]) -> String) {
        let text = help(words);
        let flag = |line: &str| {
            let word = line.split_whitespace().find(|word| word.starts_with("--"))?;
            line.trim_start().starts_with('-').then(|| word.trim_end_matches(',').to_owned())
        };
        self.flags.insert(words.join(" "), text.lines().filter_map(flag).collect());
        let inner = text.split("\nCommands:\n").nth(1).and_then(|rest| rest.split("\n\n").next());
        for name in inner.unwrap_or_default().lines().flat_map(names) {
            if name != "help" {
                self.add(&[words, &[name.to_owned()]].concat(), help);
            }
        }
    }

    /// Complains of commands and flags that the binary does not know. A flag on its own may belong to any command.
    pub(crate) fn check(&self, span: &Span) -> Vec<String> {
        let words: Vec<&str> = span.text.split('#').next().unwrap_or_default().split_whitespace().collect();
        match arguments(&words) {
            Some(arguments) => self.check_command(arguments),
            None if words.first().is_some_and(|word| word.starts_with("--")) => self.check_alone(&words),
            None => Vec::new(),
        }
    }

    fn check_command(&self, arguments: &[&str]) -> Vec<String> {
        let mut command = String::new();
        for word in arguments {
            let longer = format!("{command} {word}").trim().to_owned();
            if self.flags.contains_key(&longer) {
                command = longer;
            } else {
                let has_inner = self.flags.keys().any(|key| *key != command && key.starts_with(&command));
                if has_inner && word.chars().all(|c| c.is_ascii_lowercase()) {
                    return vec![format!("no such command: almanac {longer}")];
                }
                break;
            }
        }
        let known = &self.flags[&command];
        let given = arguments.iter().filter(|word| word.starts_with("--")).map(|word| name(word));
        let wrong = given.filter(|flag| !known.contains(*flag) && !["--help", "--version"].contains(flag));
        wrong.map(|flag| format!("almanac {command} has no flag {flag}")).collect()
    }

    fn check_alone(&self, words: &[&str]) -> Vec<String> {
        let given = words.iter().filter(|word| word.starts_with("--")).map(|word| name(word));
        // Flags of other nodes have dots: `--http.vhosts`.
        let given = given.filter(|flag| !flag.contains('.') && !FOREIGN.contains(flag));
        let wrong = given.filter(|flag| !self.flags.values().any(|known| known.contains(*flag)));
        wrong.map(|flag| format!("no command has the flag {flag}")).collect()
    }
}

/// `--flag=value`, `--flag,` and `[--flag` as `--flag`.
fn name(word: &str) -> &str {
    word.split(['=', ',', ']', ';', ')']).next().unwrap_or_default()
}

/// What is handed to the binary, if it is the program that is called.
fn arguments<'a, 'b>(words: &'a [&'b str]) -> Option<&'a [&'b str]> {
    let program = words.iter().position(|word| !word.contains('='))?;
    match words[program] {
        "almanac" => Some(&words[program + 1..]),
        "cargo" if words.get(program + 1) == Some(&"run") => {
            words.iter().position(|word| *word == "--").map(|dashes| &words[dashes + 1..])
        }
        _ => None,
    }
}

/// The names of a command in the list of a help text: `show  Shows one [alias: info]`.
fn names(line: &str) -> impl Iterator<Item = &str> {
    let aliases = line.rsplit_once("[alias").and_then(|(_, rest)| rest.split_once(": "));
    let aliases = aliases.map(|(_, list)| list.trim_end_matches(']').split(", ")).into_iter().flatten();
    line.split_whitespace().next().into_iter().chain(aliases)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands() -> Commands {
        let mut commands = Commands { flags: BTreeMap::new() };
        commands.add(&[], &|words: &[String]| {
            let help = match words.join(" ").as_str() {
                "" => "A chain.\n\nCommands:\n  dev   Start\n  db    Back up [alias: store]\n  help  Print\n\nOptions:\n  -h, --help  Print\n",
                "db" | "store" => "Back up.\n\nCommands:\n  export  Write\n\nOptions:\n  -h, --help  Print\n",
                "db export" | "store export" => "Options:\n      --out <FILE>  Where to\n  -h, --help  Print --nothing\n",
                _ => "Options:\n      --port <PORT>\n          Port; see --nothing\n",
            };
            help.to_owned()
        });
        commands
    }

    #[test]
    fn wrong_commands_and_flags_are_caught() {
        for (wrong, complaint) in [
            ("almanac dev --ports 3", "almanac dev has no flag --ports"),
            ("cargo run --release -- dev --ports", "almanac dev has no flag --ports"),
            ("RUST_LOG=off almanac db export --port 3", "almanac db export has no flag --port"),
            ("almanac db exports --out FILE", "no such command: almanac db exports"),
            ("almanac store exports", "no such command: almanac store exports"),
            ("almanac develop", "no such command: almanac develop"),
            ("--ports 3", "no command has the flag --ports"),
            ("--nothing", "no command has the flag --nothing"),
        ] {
            assert_eq!(commands().check(&Span::block(wrong)), [complaint], "{wrong}");
        }
    }

    #[test]
    fn right_commands_and_other_programs_pass() {
        for right in [
            "almanac dev --port=3 # --ports",
            "almanac db export --out FILE",
            "almanac --help",
            "--port",
            "cast send --value 1",
            "cargo run --release -- dev",
            "cargo test --nocapture",
            "--http.vhosts",
        ] {
            assert!(commands().check(&Span::inline(right)).is_empty(), "{right}");
        }
    }
}
