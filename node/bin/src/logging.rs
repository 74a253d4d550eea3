//! Target and format of log lines.

use clap::{Args, ValueEnum};
use std::io::IsTerminal as _;
use tracing_subscriber::{EnvFilter, fmt};

/// How log lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Readable text.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// The flag of every node.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct LogFlags {
    /// Format of log lines.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) log_format: LogFormat,
}

/// Writes log lines to standard error from here on. RUST_LOG says which; without it, `level` does.
pub(crate) fn start(format: LogFormat, level: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| level.into());
    // Colours are for eyes, not for files.
    let is_seen = std::io::stderr().is_terminal();
    let lines = fmt().with_env_filter(filter).with_ansi(is_seen).with_writer(std::io::stderr);
    match format {
        LogFormat::Text => lines.with_target(false).init(),
        LogFormat::Json => lines.json().flatten_event(true).init(),
    }
}
