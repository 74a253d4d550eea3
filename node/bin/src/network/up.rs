//! Runs all nodes of a directory as processes, and prints their heights and what is due.

use super::{
    config::NodeConfig,
    new::{self, Kind},
};
use crate::{http::Endpoint, shutdown::Shutdown};
use anyhow::{Context as _, bail, ensure};
use clap::Args;
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{
    fs::File,
    io::Write as _,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// Runs a local network.
#[derive(Clone, Debug, Args)]
pub(crate) struct NetworkUp {
    /// The directory that `almanac network new` wrote.
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
}

/// Time between two looks at the nodes.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Time that a node has to answer.
const ANSWER_PATIENCE: Duration = Duration::from_millis(300);

/// Time that a node has to stop before it is killed.
const STOP_PATIENCE: Duration = Duration::from_secs(10);

/// Runs the nodes until this process is asked to end, or one of them ends.
pub(super) async fn run(network: &NetworkUp) -> anyhow::Result<()> {
    let mut shutdown = Shutdown::listen()?;
    let mut nodes = start_all(network)?;
    let result = tokio::select! {
        _ = shutdown.requested() => Ok(()),
        ended = watch(&mut nodes) => ended,
    };
    for node in &mut nodes {
        node.stop();
    }
    result
}

/// A node that runs. Dropping it kills it.
struct Running {
    name: String,
    rpc: SocketAddr,
    child: Child,
}

fn start_all(network: &NetworkUp) -> anyhow::Result<Vec<Running>> {
    let mut nodes = Vec::new();
    for kind in [Kind::Validator, Kind::Follower] {
        for index in 0.. {
            let home = new::home(&network.dir, kind, index);
            if !home.join("config.json").exists() {
                break;
            }
            nodes.push(start(kind.name(index), &home)?);
        }
        ensure!(!nodes.is_empty(), "{} has no validators: run almanac network new", network.dir.display());
    }
    Ok(nodes)
}

fn start(name: String, home: &Path) -> anyhow::Result<Running> {
    let path = home.join("config.json");
    let config = NodeConfig::read(&path)?;
    let log = home.join("node.log");
    let log = File::options()
        .create(true)
        .append(true)
        .open(&log)
        .with_context(|| format!("cannot write {}", log.display()))?;
    let program = std::env::current_exe().context("cannot find this program")?;
    let child = Command::new(program)
        .args(["node", "--config"])
        .arg(&path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .with_context(|| format!("cannot start {}", path.display()))?;
    Ok(Running { name, rpc: config.rpc, child })
}

/// Prints a line now and then. Ends when a node does.
async fn watch(nodes: &mut [Running]) -> anyhow::Result<()> {
    let rpc: Vec<String> = nodes.iter().map(|node| format!("http://{}", node.rpc)).collect();
    writeln!(std::io::stdout(), "rpc {}\nCtrl-C stops all.", rpc.join(" "))?;
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let mut heights = Vec::new();
        for node in &mut *nodes {
            if let Some(status) = node.child.try_wait()? {
                bail!("{} ended ({status}): see its node.log", node.name);
            }
            let rpc = node.rpc;
            heights.push(tokio::task::spawn_blocking(move || height(rpc)).await?);
        }
        let names = nodes.iter().map(|node| node.name.as_str());
        let heights = describe(names.zip(heights.iter().copied()));
        writeln!(std::io::stdout(), "{heights}  {}", next_due(nodes).await?)?;
    }
}

/// Heights, and how far each is behind the highest.
fn describe<'a>(heights: impl Iterator<Item = (&'a str, Option<u64>)> + Clone) -> String {
    let highest = heights.clone().filter_map(|(_, height)| height).max().unwrap_or_default();
    let one = |(name, height): (&str, Option<u64>)| match height {
        None => format!("{name} no answer"),
        Some(height) if height == highest => format!("{name} {height}"),
        Some(height) => format!("{name} {height} (-{})", highest - height),
    };
    heights.map(one).collect::<Vec<_>>().join("  ")
}

/// What is due next, as the first node that answers says.
async fn next_due(nodes: &[Running]) -> anyhow::Result<String> {
    let nodes: Vec<Endpoint> = nodes.iter().map(|node| Endpoint::at(node.rpc)).collect();
    let ask = move || {
        let first = json!([{ "limit": 1 }]);
        nodes.iter().find_map(|node| node.call("almanac_agenda", &first, ANSWER_PATIENCE).ok())
    };
    Ok(describe_due(tokio::task::spawn_blocking(ask).await?.as_ref()))
}

fn describe_due(agenda: Option<&Value>) -> String {
    let Some(agenda) = agenda else { return "due ?".to_owned() };
    let first = &agenda["entries"][0];
    match (first["id"].as_str(), first["due"]["iso"].as_str()) {
        (Some(id), Some(due)) => format!("due {id} at {due}"),
        _ => "due nothing".to_owned(),
    }
}

/// The height that a node's health page says.
fn height(rpc: SocketAddr) -> Option<u64> {
    #[derive(Deserialize)]
    struct Health {
        block: u64,
    }
    let health = Endpoint::at(rpc).page("/health", ANSWER_PATIENCE).ok()?;
    Some(serde_json::from_str::<Health>(&health).ok()?.block)
}

impl Running {
    /// Asks the process to end, and waits for it.
    fn stop(&mut self) {
        if let Ok(Some(_)) = self.child.try_wait() {
            return;
        }
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        // Ctrl-C has reached it already where it shares our terminal.
        let _ = pid.map(|pid| kill_process(pid, Signal::TERM));
        let begin = Instant::now();
        while begin.elapsed() < STOP_PATIENCE {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_who_is_behind_and_who_does_not_answer() {
        let heights = [("v0", Some(12)), ("v1", Some(9)), ("v2", None), ("v3", Some(12))];
        assert_eq!(describe(heights.into_iter()), "v0 12  v1 9 (-3)  v2 no answer  v3 12");
        assert_eq!(describe([("v0", None)].into_iter()), "v0 no answer");
    }

    #[test]
    fn the_line_says_what_is_due_next() {
        let agenda = json!({ "entries": [{ "id": "2-1-0", "due": { "iso": "2026-11-15T16:40:00.000Z" } }] });
        assert_eq!(describe_due(Some(&agenda)), "due 2-1-0 at 2026-11-15T16:40:00.000Z");
        assert_eq!(describe_due(Some(&json!({ "entries": [] }))), "due nothing");
        assert_eq!(describe_due(None), "due ?");
    }
}
