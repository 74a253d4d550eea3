//! The terminal as a screen: drawn as a whole, with keys that come one by one.

use super::frame::{Line, painted};
use anyhow::Context as _;
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr,
};
use std::{
    fmt::Write as _,
    io::{Read as _, Write as _, stdin, stdout},
};

/// A second screen, without cursor; the first one comes back at the end.
const OPEN: &str = "\x1b[?1049h\x1b[?25l";
const CLOSE: &str = "\x1b[?25h\x1b[?1049l";
const CTRL_C: u8 = 3;
const SIZE_DEFAULT: (usize, usize) = (80, 24);

/// Sets the terminal back when it is dropped.
pub(super) struct Screen {
    before: Termios,
}

/// What was typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Quit,
    Other,
}

impl Screen {
    pub(super) fn open() -> anyhow::Result<Self> {
        let before = tcgetattr(stdin()).context("standard input is not a terminal: use --once")?;
        let mut single = before.clone();
        // Keys come at once and are not shown; Ctrl-C is a key, so that the terminal is set back after it.
        single.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG);
        // Reading waits for a tenth of a second.
        single.special_codes[SpecialCodeIndex::VMIN] = 0;
        single.special_codes[SpecialCodeIndex::VTIME] = 1;
        tcsetattr(stdin(), OptionalActions::Now, &single).context("cannot set the terminal: use --once")?;
        let screen = Self { before };
        stdout().write_all(OPEN.as_bytes()).context("cannot draw")?;
        Ok(screen)
    }

    /// Columns and lines.
    pub(super) fn size(&self) -> (usize, usize) {
        match tcgetwinsize(stdout()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
            _ => SIZE_DEFAULT,
        }
    }

    /// Draws over what is there: clearing first would flicker.
    pub(super) fn draw(&self, lines: &[Line], height: usize) -> anyhow::Result<()> {
        let mut out = String::from("\x1b[H");
        for (index, line) in lines.iter().take(height).enumerate() {
            let _ = write!(out, "{}{}\x1b[K", if index == 0 { "" } else { "\r\n" }, painted(line));
        }
        out += "\x1b[J";
        let mut terminal = stdout().lock();
        terminal.write_all(out.as_bytes()).and_then(|()| terminal.flush()).context("cannot draw")
    }

    /// What was typed, if anything within a tenth of a second.
    pub(super) fn key(&self) -> anyhow::Result<Option<Key>> {
        let mut typed = [0; 16];
        let count = stdin().lock().read(&mut typed).context("cannot read keys")?;
        Ok(match typed[..count].iter().any(|key| matches!(key, b'q' | b'Q' | &CTRL_C)) {
            true => Some(Key::Quit),
            false => (count > 0).then_some(Key::Other),
        })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = stdout().write_all(CLOSE.as_bytes()).and_then(|()| stdout().flush());
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.before);
    }
}
