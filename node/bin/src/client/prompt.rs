//! Questions to the person at the terminal.

use anyhow::{Context as _, bail};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
use std::io::{self, BufRead, IsTerminal as _, Write as _, stderr, stdin};

/// What Ctrl-C types.
const INTERRUPT: u8 = 0x03;

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
    tcsetattr(stdin(), OptionalActions::Now, &silent(before)).context("cannot hide what is typed")?;
    let answer = ask(question);
    // What ended it was not shown either.
    let _ = writeln!(stderr());
    Ok(answer?.trim_end_matches(['\r', '\n']).to_owned())
}

/// Nothing is shown, and Ctrl-C ends the line instead of the program: it would die before the terminal is set back.
fn silent(mut modes: Termios) -> Termios {
    modes.local_modes.remove(LocalModes::ECHO | LocalModes::ISIG);
    // A character that also ends a line.
    modes.special_codes[SpecialCodeIndex::VEOL] = INTERRUPT;
    modes
}

/// Questions go to standard error: standard output has the answer of the command.
fn ask(question: &str) -> anyhow::Result<String> {
    let _ = write!(stderr(), "{question}").and_then(|()| stderr().flush());
    let line = read_line(stdin().lock()).context("cannot read the answer")?;
    line.context("Interrupted: nothing was done")
}

/// A line as it was typed; `None` if Ctrl-C ended it.
fn read_line(mut input: impl BufRead) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    loop {
        let (read, end) = {
            let bytes = input.fill_buf()?;
            let end = bytes.iter().position(|byte| matches!(*byte, b'\n' | INTERRUPT));
            let read = end.map_or(bytes.len(), |end| end + 1);
            line.extend_from_slice(&bytes[..read]);
            (read, end.is_some() || bytes.is_empty())
        };
        input.consume(read);
        if end {
            break;
        }
    }
    if line.last() == Some(&INTERRUPT) {
        return Ok(None);
    }
    String::from_utf8(line).map(Some).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Sets the terminal back, also where reading fails.
struct Restored(Termios);

impl Drop for Restored {
    fn drop(&mut self) {
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ctrl-C at a password killed the program, and the terminal stayed without echo.
    #[test]
    fn an_interrupted_line_is_no_answer() {
        for (typed, expected) in [
            ("secret\nmore", Some("secret\n")),
            ("secret", Some("secret")),
            ("", Some("")),
            ("secr\x03et\n", None),
            ("\x03", None),
        ] {
            let read = read_line(typed.as_bytes()).unwrap();
            assert_eq!(read.as_deref(), expected, "{typed:?}");
            // As a terminal gives it: piece by piece.
            let piecewise = io::BufReader::with_capacity(2, typed.as_bytes());
            assert_eq!(read_line(piecewise).unwrap().as_deref(), expected, "{typed:?}");
        }
        assert!(read_line(&b"\xff\n"[..]).is_err());
    }
}
