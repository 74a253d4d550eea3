//! How commands print: JSON for programs, tables and colours on a terminal, plain text in a pipe.

use anyhow::Context as _;
use clap::Args;
use serde_json::Value;
use std::{
    fmt::Write as _,
    io::{IsTerminal as _, Write as _},
};

/// For whom to print.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct OutputArgs {
    /// Print JSON.
    #[arg(long = "json")]
    pub(crate) is_json: bool,
}

impl OutputArgs {
    /// Prints one of the two.
    pub(crate) fn print(
        self,
        json: impl FnOnce() -> Value,
        text: impl FnOnce() -> String,
    ) -> anyhow::Result<()> {
        match self.is_json {
            true => print(&format!("{}\n", json())),
            false => print(&text()),
        }
    }
}

/// Writes to standard output at once: a reader at the other end of a pipe waits for it.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("cannot print")
}

/// Writes to standard error. Where that is closed, nobody reads it.
pub(crate) fn eprint(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Colours of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    Bold,
    Dim,
    Red,
    Green,
    Yellow,
    Cyan,
}

impl Colour {
    fn code(self) -> u8 {
        match self {
            Self::Bold => 1,
            Self::Dim => 2,
            Self::Red => 31,
            Self::Green => 32,
            Self::Yellow => 33,
            Self::Cyan => 36,
        }
    }

    /// The text in this colour, if people look at standard output. <https://no-color.org>
    pub(crate) fn paint(self, text: &str) -> String {
        match is_coloured() {
            true => format!("\x1b[{}m{text}\x1b[0m", self.code()),
            false => text.to_owned(),
        }
    }
}

fn is_coloured() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    std::io::stdout().is_terminal()
        && !is_set("NO_COLOR")
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// The colour of a status of a schedule, or of a check.
pub(crate) fn status_colour(status: &str) -> Colour {
    match status {
        "succeeded" | "ok" => Colour::Green,
        "failed" | "quarantined" => Colour::Red,
        "exhausted" | "cancelled" => Colour::Yellow,
        _ => Colour::Cyan,
    }
}

/// Rows in aligned columns, two spaces apart.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(titles: &[&str]) -> Self {
        Self { rows: vec![titles.iter().map(|title| (*title).to_owned()).collect()] }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The lines. The titles are bold on a terminal.
    pub(crate) fn text(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let width = |column: usize| {
            self.rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for (index, row) in self.rows.iter().enumerate() {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
            let line = cells.collect::<Vec<_>>().join("  ");
            let line = line.trim_end();
            let _ = writeln!(text, "{}", if index == 0 { Colour::Bold.paint(line) } else { line.to_owned() });
        }
        text
    }
}

/// Lines of a name and a value, the values below each other.
#[derive(Default)]
pub(crate) struct Facts {
    lines: Vec<(String, String)>,
}

impl Facts {
    pub(crate) fn add(&mut self, name: &str, value: impl Into<String>) {
        self.lines.push((name.to_owned(), value.into()));
    }

    pub(crate) fn text(&self) -> String {
        let width = self.lines.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        let line = |(name, value): &(String, String)| {
            format!("{}  {value}\n", Colour::Dim.paint(&format!("{name:<width$}")))
        };
        self.lines.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests run in a pipe, so nothing is coloured.
    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&["id", "status"]);
        table.row(["2-1-0".to_owned(), "ok".to_owned()]);
        table.row(["10-1-0".to_owned(), "päng".to_owned()]);
        assert_eq!(table.text(), "id      status\n2-1-0   ok\n10-1-0  päng\n");
        let mut facts = Facts::default();
        facts.add("a", "1");
        facts.add("long", "2");
        assert_eq!(facts.text(), "a     1\nlong  2\n");
    }
}
