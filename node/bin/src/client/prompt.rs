//! Questions to the person at the terminal.

use anyhow::{Context as _, bail};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use std::io::{BufRead as _, IsTerminal as _, Write as _, stderr, stdin};

/// Whether to go on. Where nobody can answer, the flag has to.
pub(crate) fn confirm(question: &str, is_confirmed: bool) -> anyhow::Result<()> {
    if is_confirmed {
        return Ok(());
    }
    if !is_answered() {
        bail!("NotConfirmed: nobody can answer here: pass --yes to send it, or --dry-run to only look");
    }
    let answer = ask(&format!("{question} [y/N] "))?;
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => bail!("nothing was sent"),
    }
}

/// Whether a person is there to answer.
pub(crate) fn is_answered() -> bool {
    stdin().is_terminal()
}

/// A line that is not shown while it is typed.
pub(crate) fn hidden(question: &str) -> anyhow::Result<String> {
    let before = tcgetattr(stdin()).context("standard input is not a terminal")?;
    let _restored = Restored(before.clone());
    let mut silent = before;
    silent.local_modes.remove(LocalModes::ECHO);
    tcsetattr(stdin(), OptionalActions::Now, &silent).context("cannot hide what is typed")?;
    let answer = ask(question)?;
    // The line break that ended it was not shown either.
    let _ = writeln!(stderr());
    Ok(answer.trim_end_matches(['\r', '\n']).to_owned())
}

/// Questions go to standard error: standard output has the answer of the command.
fn ask(question: &str) -> anyhow::Result<String> {
    let _ = write!(stderr(), "{question}").and_then(|()| stderr().flush());
    let mut line = String::new();
    stdin().lock().read_line(&mut line).context("cannot read the answer")?;
    Ok(line)
}

/// Sets the terminal back, also where reading fails.
struct Restored(Termios);

impl Drop for Restored {
    fn drop(&mut self) {
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.0);
    }
}
