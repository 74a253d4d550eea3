//! A node under test as a process: how to start it, and what the system says about it.

use crate::{
    BenchError,
    http::{Connection, request},
};
use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener},
    process::Stdio,
    time::{Duration, Instant},
};
use tokio::process::{Child, Command};

const START_MAX: Duration = Duration::from_secs(20);

/// A program that can be measured.
pub(crate) struct Contender {
    pub(crate) name: &'static str,
    program: String,
    arguments: &'static [&'static str],
}

impl Contender {
    /// As it is started by default: blocks as soon as there are transactions.
    pub(crate) fn almanac(program: String) -> Self {
        Self { name: "almanac", program, arguments: &["dev"] }
    }

    /// With blocks by the clock, since it loses transactions that arrive together otherwise, and with room
    /// for all of them in a block: at its best.
    pub(crate) fn anvil(program: String) -> Self {
        let arguments = &["--silent", "--block-time", "1", "--gas-limit", "1000000000"];
        Self { name: "anvil", program, arguments }
    }

    /// How it is started, for the table.
    pub(crate) fn command(&self) -> String {
        format!("{} {}", self.name, self.arguments.join(" "))
    }
}

/// A started node.
pub(crate) struct Running {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) started_in: Duration,
}

impl Running {
    /// Starts it on a free port and waits for its first answer.
    pub(crate) async fn start(contender: &Contender) -> Result<Self, BenchError> {
        let address = free_address()?;
        let begin = Instant::now();
        let child = Command::new(&contender.program)
            .args(contender.arguments)
            .args(["--port", &address.port().to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|source| BenchError::Start { program: contender.program.clone(), source })?;
        let question = request(1, "eth_chainId", "[]");
        while !answers(address, &question).await {
            if begin.elapsed() > START_MAX {
                return Err(BenchError::Silent {
                    program: contender.program.clone(),
                    ms: START_MAX.as_millis(),
                });
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok(Self { child, address, started_in: begin.elapsed() })
    }

    /// Resident memory in bytes, as the system counts it now.
    pub(crate) fn memory(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()?)).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        Some(line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()? * 1024)
    }

    pub(crate) async fn stop(mut self) {
        // An error means that it has ended already.
        let _ = self.child.kill().await;
    }
}

/// A port that nobody listens on. It could be taken before the node is there; then the node does not start.
fn free_address() -> Result<SocketAddr, BenchError> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

async fn answers(address: SocketAddr, question: &str) -> bool {
    let Ok(mut connection) = Connection::open(address).await else { return false };
    connection
        .post(question)
        .await
        .is_ok_and(|answer| answer.windows(8).any(|window| window == b"\"0x7a69\""))
}
