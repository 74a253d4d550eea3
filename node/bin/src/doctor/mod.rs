//! `almanac doctor`: looks for what commonly keeps a node or a command from working, and says what to do.

mod chain;
mod directory;
mod machine;

use crate::{
    client::{
        node::NodeArgs,
        output::{Colour, OutputArgs},
    },
    send::KeyArgs,
};
use clap::Args;
use serde_json::json;
use std::path::PathBuf;

/// What to look at.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  almanac doctor
  almanac doctor --rpc http://127.0.0.1:9545 --key alice
  almanac doctor --datadir ./chain --port 8545 --port 9000 --json

Exits with 1 if anything is broken. Warnings do not count.")]
pub(crate) struct DoctorArgs {
    /// Data directory of a node.
    #[arg(long, value_name = "DIR")]
    datadir: Option<PathBuf>,

    /// Port that a node is to listen on; may be repeated.
    #[arg(long = "port", value_name = "PORT")]
    ports: Vec<u16>,

    #[command(flatten)]
    key: KeyArgs,

    #[command(flatten)]
    node: NodeArgs,

    #[command(flatten)]
    output: OutputArgs,
}

/// How a check went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Well,
    Doubtful,
    Broken,
}

impl Verdict {
    fn name(self) -> &'static str {
        match self {
            Self::Well => "ok",
            Self::Doubtful => "warning",
            Self::Broken => "broken",
        }
    }

    fn colour(self) -> Colour {
        match self {
            Self::Well => Colour::Green,
            Self::Doubtful => Colour::Yellow,
            Self::Broken => Colour::Red,
        }
    }
}

/// What was looked at, what was found, and what to do about it.
#[derive(Clone, Debug)]
struct Check {
    name: &'static str,
    verdict: Verdict,
    found: String,
    advice: Option<String>,
}

impl Check {
    fn well(name: &'static str, found: impl Into<String>) -> Self {
        Self { name, verdict: Verdict::Well, found: found.into(), advice: None }
    }

    fn doubtful(name: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { name, verdict: Verdict::Doubtful, found: found.into(), advice: Some(advice.into()) }
    }

    fn broken(name: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { name, verdict: Verdict::Broken, found: found.into(), advice: Some(advice.into()) }
    }
}

/// Makes every check, and fails if one of them did.
pub(crate) fn run(args: &DoctorArgs) -> anyhow::Result<()> {
    let mut checks = chain::checks(&args.node);
    match args.key.read() {
        Ok(None) => {}
        Ok(Some(key)) => checks.push(chain::balance(&args.node, key.leaf().account())),
        Err(error) => checks.push(Check::broken(
            "key",
            format!("{error:#}"),
            "name a key that `almanac key list` shows",
        )),
    }
    checks.extend(args.ports.iter().map(|port| machine::port(*port)));
    checks.push(machine::open_files());
    checks.extend(args.datadir.as_deref().map(directory::checks).unwrap_or_default());
    let broken = checks.iter().filter(|check| check.verdict == Verdict::Broken).count();
    args.output.print(
        || {
            let checks = checks.iter().map(|check| {
                json!({ "name": check.name, "result": check.verdict.name(), "found": check.found, "advice": check.advice })
            });
            json!({ "isWell": broken == 0, "checks": checks.collect::<Vec<_>>() })
        },
        || checks.iter().map(shown).collect(),
    )?;
    anyhow::ensure!(broken == 0, "{broken} of {} checks found something broken", checks.len());
    Ok(())
}

fn shown(check: &Check) -> String {
    let verdict = check.verdict.colour().paint(&format!("{:<8}", check.verdict.name()));
    let advice = check.advice.as_ref().map(|advice| format!("{:20}→ {advice}\n", "")).unwrap_or_default();
    format!("{verdict} {:<11}{}\n{advice}", check.name, check.found)
}
