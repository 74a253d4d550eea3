//! `almanac top`: a dashboard of a running chain, drawn again every second.
//!
//! ```text
//! node ──> Picture ──> frame (lines of text) ──> Screen
//! ```

mod frame;
mod picture;
mod screen;

use crate::{
    cli::parse_duration,
    client::{
        node::NodeArgs,
        output::{OutputArgs, print},
    },
};
use almanac_primitives::DurationMs;
use clap::Args;
use picture::Picture;
use screen::{Key, Screen};
use std::{
    io::IsTerminal as _,
    time::{Duration, Instant},
};

/// What to watch.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  almanac top
  almanac top --rpc http://127.0.0.1:9545 --refresh 2s
  almanac top --once

Quits with q. In a pipe, and with --once or --json, it prints one frame.")]
pub(crate) struct TopArgs {
    /// Time between two looks.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "1s")]
    refresh: DurationMs,

    /// Print one frame and exit.
    #[arg(long = "once")]
    is_once: bool,

    #[command(flatten)]
    node: NodeArgs,

    #[command(flatten)]
    output: OutputArgs,
}

/// Width of a frame that goes to a file.
const PLAIN_WIDTH: usize = 100;

/// Shows it.
pub(crate) fn run(args: &TopArgs) -> anyhow::Result<()> {
    let mut picture = Picture::take(&args.node)?;
    if args.output.is_json {
        return print(&format!("{}\n", picture.to_json()));
    }
    if args.is_once || !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        return print(&frame::text(&frame::lines(&picture, PLAIN_WIDTH)));
    }
    let screen = Screen::open()?;
    let mut error: Option<String> = None;
    loop {
        let (width, height) = screen.size();
        let mut lines = frame::lines(&picture, width);
        if let Some(error) = &error {
            lines.insert(1, frame::warning(&format!("no answer: {error}"), width));
        }
        screen.draw(&lines, height)?;
        let next = Instant::now() + Duration::from_millis(args.refresh.0);
        while Instant::now() < next {
            match screen.key()? {
                Some(Key::Quit) => return Ok(()),
                Some(Key::Other) => break,
                None => {}
            }
        }
        // A node that restarts is watched on.
        error = picture.refresh(&args.node).err().map(|error| format!("{error:#}"));
    }
}
