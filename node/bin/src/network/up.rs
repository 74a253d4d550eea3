//! Runs all nodes of a directory as processes, and prints their heights and what is due.

use super::{
    config::NodeConfig,
    new::{self, Kind},
    ports,
};
use crate::{http::Endpoint, shutdown::Shutdown};
use anyhow::{Context as _, ensure};
use clap::Args;
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{
    fs::File,
    io::Write as _,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};
use tokio::sync::mpsc;

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

/// Runs the nodes until this process is asked to end, or all of them have ended.
pub(super) async fn run(network: &NetworkUp) -> anyhow::Result<()> {
    let mut shutdown = Shutdown::listen()?;
    let homes = homes(network)?;
    for (name, home) in &homes {
        check_free(name, home)?;
    }
    let mut nodes =
        homes.into_iter().map(|(name, home)| start(name, home)).collect::<anyhow::Result<Vec<_>>>()?;
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
    home: PathBuf,
    rpc: SocketAddr,
    child: Child,
    /// How it ended, once it has.
    ended: Option<ExitStatus>,
}

/// The name and folder of every node.
fn homes(network: &NetworkUp) -> anyhow::Result<Vec<(String, PathBuf)>> {
    let mut homes = Vec::new();
    for kind in [Kind::Validator, Kind::Follower] {
        let all = (0..).map(|index| (kind.name(index), new::home(&network.dir, kind, index)));
        homes.extend(all.take_while(|(_, home)| home.join("config.json").exists()));
        ensure!(!homes.is_empty(), "{} has no validators: run almanac network new", network.dir.display());
    }
    Ok(homes)
}

/// Refuses to start a node whose ports somebody has, most likely the same node.
fn check_free(name: &str, home: &Path) -> anyhow::Result<()> {
    let config = NodeConfig::read(&home.join("config.json"))?;
    ports::check_free(&config, None)
        .with_context(|| format!("{name} cannot start: is this network up already?"))
}

fn start(name: String, home: PathBuf) -> anyhow::Result<Running> {
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
    Ok(Running { name, home, rpc: config.rpc, child, ended: None })
}

/// Prints a line now and then, and restarts the node whose name is typed. Ends when all nodes have.
async fn watch(nodes: &mut [Running]) -> anyhow::Result<()> {
    let rpc: Vec<String> = nodes.iter().map(|node| format!("http://{}", node.rpc)).collect();
    writeln!(
        std::io::stdout(),
        "rpc {}\nCtrl-C stops all. If a node goes down, its name and Enter start it again.",
        rpc.join(" ")
    )?;
    let mut typed = typed_lines();
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        while let Ok(line) = typed.try_recv() {
            restart(nodes, line.trim())?;
        }
        let mut heights = Vec::new();
        for node in &mut *nodes {
            node.look()?;
            let rpc = node.rpc;
            heights.push(match node.ended {
                Some(_) => Health::Down,
                None => {
                    tokio::task::spawn_blocking(move || height(rpc)).await?.map_or(Health::Silent, Health::At)
                }
            });
        }
        ensure!(nodes.iter().any(|node| node.ended.is_none()), "all nodes have ended: see their node.log");
        let names = nodes.iter().map(|node| node.name.as_str());
        let heights = describe(names.zip(heights.iter().copied()));
        writeln!(std::io::stdout(), "{heights}  {}", next_due(nodes).await?)?;
    }
}

/// What is typed on standard input, line by line.
fn typed_lines() -> mpsc::UnboundedReceiver<String> {
    let (lines, typed) = mpsc::unbounded_channel();
    // A thread of its own: a read from a terminal cannot be cancelled, and must not keep the process from ending.
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            if lines.send(line).is_err() {
                return;
            }
        }
    });
    typed
}

/// Starts a node again that has ended.
fn restart(nodes: &mut [Running], name: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    match nodes.iter_mut().find(|node| node.name == name) {
        _ if name.is_empty() => {}
        None => writeln!(out, "there is no node {name:?}")?,
        Some(node) if node.ended.is_none() => writeln!(out, "{name} is running")?,
        Some(node) => {
            *node = start(node.name.clone(), node.home.clone())?;
            writeln!(out, "{name} starts again")?;
        }
    }
    Ok(())
}

/// What is known of a node.
#[derive(Clone, Copy, Debug)]
enum Health {
    At(u64),
    Silent,
    Down,
}

/// Heights, and how far each is behind the highest.
fn describe<'a>(nodes: impl Iterator<Item = (&'a str, Health)> + Clone) -> String {
    let heights = nodes.clone().filter_map(|(_, health)| match health {
        Health::At(height) => Some(height),
        Health::Silent | Health::Down => None,
    });
    let highest = heights.max().unwrap_or_default();
    let one = |(name, health): (&str, Health)| match health {
        Health::Down => format!("{name} down"),
        Health::Silent => format!("{name} no answer"),
        Health::At(height) if height == highest => format!("{name} {height}"),
        Health::At(height) => format!("{name} {height} (-{})", highest - height),
    };
    nodes.map(one).collect::<Vec<_>>().join("  ")
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
    struct Page {
        block: u64,
    }
    let health = Endpoint::at(rpc).page("/health", ANSWER_PATIENCE).ok()?;
    Some(serde_json::from_str::<Page>(&health).ok()?.block)
}

impl Running {
    /// Notes that the process has ended, and tells it once.
    fn look(&mut self) -> anyhow::Result<()> {
        if self.ended.is_none()
            && let Some(status) = self.child.try_wait()?
        {
            self.ended = Some(status);
            writeln!(
                std::io::stdout(),
                "{} ended ({status}): see {}",
                self.name,
                self.home.join("node.log").display()
            )?;
        }
        Ok(())
    }

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
        let nodes =
            [("v0", Health::At(12)), ("v1", Health::At(9)), ("v2", Health::Silent), ("v3", Health::Down)];
        assert_eq!(describe(nodes.into_iter()), "v0 12  v1 9 (-3)  v2 no answer  v3 down");
        assert_eq!(describe([("v0", Health::Silent)].into_iter()), "v0 no answer");
    }

    #[test]
    fn the_line_says_what_is_due_next() {
        let agenda = json!({ "entries": [{ "id": "2-1-0", "due": { "iso": "2026-11-15T16:40:00.000Z" } }] });
        assert_eq!(describe_due(Some(&agenda)), "due 2-1-0 at 2026-11-15T16:40:00.000Z");
        assert_eq!(describe_due(Some(&json!({ "entries": [] }))), "due nothing");
        assert_eq!(describe_due(None), "due ?");
    }
}
