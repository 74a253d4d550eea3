//! `almanac completions`: what a shell needs to complete commands and flags.

use crate::{cli::Cli, client::output::print};
use anyhow::Context as _;
use clap::{Args, CommandFactory as _};
use clap_complete::{Shell, generate};

/// For which shell.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  almanac completions bash > ~/.local/share/bash-completion/completions/almanac
  almanac completions zsh > ~/.zfunc/_almanac
  almanac completions fish > ~/.config/fish/completions/almanac.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell.
    shell: Shell,
}

/// Prints the script.
pub(crate) fn run(args: &CompletionsArgs) -> anyhow::Result<()> {
    let mut script = Vec::new();
    generate(args.shell, &mut Cli::command(), "almanac", &mut script);
    print(&String::from_utf8(script).context("the script is not UTF-8")?)
}
