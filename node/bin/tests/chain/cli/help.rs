//! The page about the command line has the help of every command for people, word by word.

use crate::support::run;
use std::{collections::BTreeSet, fs, path::Path};

/// Where the generated part begins.
const MARK: &str = "From here on this page is what `--help` prints; a test compares both.\n";
/// Commands that the page describes, with all below them.
const COMMANDS: [&str; 9] =
    ["schedule", "subscribe", "agenda", "account", "send", "key", "top", "doctor", "completions"];

/// CLI-10: the page has what the commands say.
#[test]
fn cli_10_the_page_is_what_the_commands_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/command-line.md");
    let page = fs::read_to_string(&path).unwrap();
    let (text, found) = page.split_once(MARK).expect("the page has the mark");
    let mut expected = String::new();
    for command in COMMANDS {
        add(&[command], &mut expected);
    }
    if std::env::var_os("ALMANAC_BLESS").is_some() {
        fs::write(&path, format!("{text}{MARK}{expected}")).unwrap();
    } else {
        assert_eq!(found, expected, "if the help is better now, write the page anew with ALMANAC_BLESS=1");
    }
    let all: BTreeSet<String> = inner(&help(&[])).into_iter().collect();
    assert!(COMMANDS.iter().all(|command| all.contains(*command)), "{all:?}");
}

fn add(words: &[&str], page: &mut String) {
    let text = help(words);
    let inner = inner(&text);
    if inner.is_empty() {
        let trimmed: Vec<&str> = text.lines().map(str::trim_end).collect();
        *page +=
            &format!("\n## almanac {}\n\n```text\n{}\n```\n", words.join(" "), trimmed.join("\n").trim_end());
    }
    for name in inner {
        add(&[words, &[name.as_str()]].concat(), page);
    }
}

fn help(words: &[&str]) -> String {
    let output = run(&[words, &["--help"]].concat());
    assert!(output.status.success(), "{words:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The commands below one.
fn inner(help: &str) -> Vec<String> {
    let list =
        help.split("\nCommands:\n").nth(1).and_then(|rest| rest.split("\n\n").next()).unwrap_or_default();
    let names = list.lines().filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(ToOwned::to_owned).collect()
}

/// CLI-11: every shell gets a script that knows the commands.
#[test]
fn cli_11_completions_know_the_commands() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = run(&["completions", shell]);
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(script.contains("topup") && script.contains("password-file"), "{shell}");
    }
}
