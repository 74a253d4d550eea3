//! Validators as real processes on loopback, with wires between them that can be cut.

use super::{
    Node, machine,
    relay::{Relay, Wire},
    run, to_bob,
};
use serde_json::{Value, json};
use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU16, Ordering},
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Longest wait for anything: a fault must be over by then.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// How many validators a network has: one may fail.
pub const VALIDATORS: usize = 4;

/// Calls `check` until it answers, and says what was waited for where it does not.
pub fn wait_for<T>(what: &str, mut check: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = check() {
            return found;
        }
        assert!(begin.elapsed() < PATIENCE, "no {what} after {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Most ports of one network: of four validators and two followers, each with one for peers and one for RPC.
const PORTS: u16 = 12;

/// The first of so many ports in a row that nobody uses now. Below those that the system gives to connections:
/// the port of a validator that is down must be free when it comes back. Processes that run at the same time
/// begin to look at different places, and the tests of one process get different ports.
pub fn free_ports() -> u16 {
    static GIVEN: AtomicU16 = AtomicU16::new(0);
    let start = 20_000 + PORTS * u16::try_from(std::process::id() % 1_000).unwrap();
    let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    loop {
        let first = start + PORTS * GIVEN.fetch_add(1, Ordering::Relaxed);
        assert!(first < 32_700, "free ports");
        if (first..first + PORTS).all(is_free) {
            return first;
        }
    }
}

/// Makes the files of four validators, and answers with their configurations as the command said them.
pub fn new_network(directory: &Path, block_time_ms: u64) -> Vec<String> {
    with_followers(directory, block_time_ms, 0)
}

/// Makes the files of four validators and some followers, which come last.
pub fn with_followers(directory: &Path, block_time_ms: u64, followers: usize) -> Vec<String> {
    machine::share();
    let first = free_ports();
    let (p2p, rpc) = (first.to_string(), (first + PORTS / 2).to_string());
    let path = directory.to_str().unwrap();
    let made = run(&[
        "network",
        "new",
        "--validators",
        "4",
        "--followers",
        &followers.to_string(),
        "--dir",
        path,
        "--p2p-port",
        &p2p,
        "--rpc-port",
        &rpc,
        "--block-time-ms",
        &block_time_ms.to_string(),
    ]);
    assert!(made.status.success(), "{made:?}");
    let said = String::from_utf8(made.stdout).unwrap();
    let configs: Vec<String> = said
        .lines()
        .filter_map(|line| line.trim().strip_prefix("almanac node --config "))
        .map(str::to_owned)
        .collect();
    assert_eq!(configs.len(), VALIDATORS + followers, "{said}");
    configs
}

/// Starts a node by the command that `network new` printed. What it logs is next to its configuration.
pub fn start(config: &str) -> Node {
    running(config, launch(config, "warn"))
}

/// The same with further flags, and a log of what it does.
pub fn start_with(config: &str, flags: &[&str]) -> Node {
    running(config, command(config, "info").args(flags).spawn().unwrap())
}

/// The same with further variables in its environment.
pub fn start_in<'v>(config: &str, variables: impl IntoIterator<Item = (&'v str, &'v Path)>) -> Node {
    running(config, command(config, "warn").envs(variables).spawn().unwrap())
}

/// Waits until a node says where it serves.
fn running(config: &str, mut child: Child) -> Node {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let banner: String = lines.map(|line| line.unwrap() + "\n").take(2).collect();
    let address =
        banner.lines().find_map(|line| line.strip_prefix("rpc http://")).unwrap_or_default().to_owned();
    let log = || fs::read_to_string(log_of(config)).unwrap();
    assert!(!address.is_empty(), "the node says where it serves: {banner:?}\n{}", log());
    Node { child, address, banner }
}

/// Starts the process of a node, and does not wait for anything.
pub fn launch(config: &str, log_level: &str) -> Child {
    command(config, log_level).spawn().unwrap()
}

fn command(config: &str, log_level: &str) -> Command {
    let log = File::options().create(true).append(true).open(log_of(config)).unwrap();
    // With SIGXFSZ ignored, a limit on the size of files is an error of the write, as a full disk is.
    let mut command = Command::new("sh");
    command
        .env("RUST_LOG", log_level)
        .env("RUST_BACKTRACE", "0")
        .args(["-c", "trap '' XFSZ; exec \"$@\"", "sh"])
        .args([env!("CARGO_BIN_EXE_almanac"), "node", "--config", config])
        .stdout(Stdio::piped())
        .stderr(log);
    command
}

/// Waits until every validator votes. One that was away for long asks the others first.
pub fn all_vote(nodes: &[Node]) {
    let begin = Instant::now();
    for (index, node) in nodes.iter().enumerate() {
        while health(&node.address).is_none_or(|health| health["role"] != "validator") {
            assert!(begin.elapsed() < 2 * PATIENCE, "v{index} votes: {:?}", health(&node.address));
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Where a node logs.
pub fn log_of(config: &str) -> PathBuf {
    Path::new(config).with_file_name("node.log")
}

/// Waits until every node has a block at `height`, and checks that it is the same with the same state.
pub fn agree_at(nodes: &[Node], height: u64) {
    let block = |node: &Node| {
        wait_for(&format!("block {height}"), || {
            let block = node.result("eth_getBlockByNumber", json!([format!("{height:#x}"), true]));
            (!block.is_null()).then_some(block)
        })
    };
    let first = block(&nodes[0]);
    assert!(first["stateRoot"].is_string(), "{first}");
    for node in nodes {
        assert_eq!(block(node), first, "block {height}");
    }
}

/// Sends a transfer to one node, and answers with the receipt once all of them have the same.
pub fn transfer_seen_by_all(nodes: &[Node], sender: usize, nonce: u64) -> Value {
    let hash = nodes[sender].send(&to_bob(nonce))["result"].clone();
    assert!(hash.is_string(), "{hash}");
    let receipt = |node: &Node| {
        wait_for("receipt", || {
            let receipt = node.result("eth_getTransactionReceipt", json!([hash]));
            (!receipt.is_null()).then_some(receipt)
        })
    };
    let first = receipt(&nodes[0]);
    assert_eq!(first["status"], "0x1", "{first}");
    for node in nodes {
        assert_eq!(receipt(node), first);
    }
    first
}

/// Four validators that run, and the wires between them.
pub struct Network {
    pub nodes: Vec<Node>,
    pub configs: Vec<String>,
    wires: Vec<(usize, usize, Relay)>,
    pub directory: TempDir,
}

impl Network {
    /// A new network whose wires can be cut. Jobs may come as often as every second.
    pub fn start(block_time_ms: u64) -> Self {
        Self::make(block_time_ms, |configs| (0..VALIDATORS).flat_map(|near| wire(configs, near)).collect())
    }

    /// The same where the index of each node writes in so many MiB of memory, and each node keeps so many of what it has
    /// read: they are full soon, as they are in use.
    pub fn with_memory(block_time_ms: u64, buffer_mb: u64, cache_mb: u64) -> Self {
        Self::make(block_time_ms, |configs| {
            for config in configs {
                edit(Path::new(config), |config| {
                    (config["indexBufferMb"], config["cacheMb"]) = (json!(buffer_mb), json!(cache_mb));
                });
            }
            (0..VALIDATORS).flat_map(|near| wire(configs, near)).collect()
        })
    }

    /// A new network with nothing between the validators.
    pub fn direct(block_time_ms: u64) -> Self {
        Self::make(block_time_ms, |_| Vec::new())
    }

    /// The same with another genesis and other configurations.
    pub fn with(block_time_ms: u64, change: impl Fn(&mut Value, &mut Value)) -> Self {
        Self::make(block_time_ms, |configs| {
            let genesis = Path::new(&configs[0]).parent().unwrap().with_file_name("genesis.json");
            for config in configs {
                let mut json = read_json(Path::new(config));
                edit(&genesis, |genesis| change(genesis, &mut json));
                fs::write(config, json.to_string()).unwrap();
            }
            Vec::new()
        })
    }

    fn make(block_time_ms: u64, wires: impl FnOnce(&[String]) -> Vec<(usize, usize, Relay)>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path().join("net");
        let configs = new_network(&home, block_time_ms);
        edit(&home.join("genesis.json"), |genesis| {
            genesis["parameters"]["cron_interval_seconds_min"] = json!(1);
        });
        let wires = wires(&configs);
        let nodes: Vec<Node> = configs.iter().map(|config| start(config)).collect();
        Self { nodes, configs, wires, directory }
    }

    /// Starts a validator again that has ended.
    pub fn restart(&mut self, index: usize) {
        self.nodes[index] = start(&self.configs[index]);
    }

    /// Changes the wires between these validators and the others.
    pub fn set_wires(&self, some: &[usize], wire: Wire) {
        for (near, far, relay) in &self.wires {
            if some.contains(near) != some.contains(far) {
                relay.set(wire);
            }
        }
    }

    /// Bytes between all validators so far.
    pub fn wire_bytes(&self) -> u64 {
        self.wires.iter().map(|(_, _, relay)| relay.bytes()).sum()
    }

    /// Empties the log of a validator, which appends to it.
    pub fn forget_log(&self, index: usize) {
        File::options().write(true).truncate(true).open(log_of(&self.configs[index])).unwrap();
    }

    /// What a validator has logged since its first start, or since its log was emptied.
    pub fn log(&self, index: usize) -> String {
        fs::read_to_string(log_of(&self.configs[index])).unwrap()
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for index in 0..VALIDATORS {
                let log = self.log(index);
                let last: Vec<&str> = log.lines().rev().take(12).collect();
                eprintln!("--- v{index}\n{}", last.into_iter().rev().collect::<Vec<_>>().join("\n"));
            }
        }
    }
}

/// Puts a relay between one validator and each of its peers.
fn wire(configs: &[String], near: usize) -> Vec<(usize, usize, Relay)> {
    let mut wires = Vec::new();
    let peers = (0..configs.len()).filter(|far| *far != near);
    edit(Path::new(&configs[near]), |config| {
        for (far, peer) in peers.zip(config["peers"].as_array_mut().unwrap()) {
            let relay = Relay::to(peer["address"].as_str().unwrap().parse().unwrap());
            peer["address"] = json!(relay.address);
            wires.push((near, far, relay));
        }
    });
    wires
}

/// Changes a setting in a configuration.
pub fn set(config: &str, name: &str, value: Option<Value>) {
    edit(Path::new(config), |json| {
        let settings = json.as_object_mut().unwrap();
        match value {
            Some(value) => settings.insert(name.to_owned(), value),
            None => settings.remove(name),
        };
    });
}

/// What a node's health page says, if the node is there.
pub fn health(address: &str) -> Option<Value> {
    serde_json::from_str(&page(address, "/health")?).ok()
}

/// A page of a node that may not be there.
pub fn page(address: &str, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer.split_once("\r\n\r\n")?.1.to_owned())
}

/// Changes a file of JSON.
pub fn edit(path: &Path, change: impl FnOnce(&mut Value)) {
    let mut json = read_json(path);
    change(&mut json);
    fs::write(path, json.to_string()).unwrap();
}

/// What is in a file of JSON.
pub fn read_json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}
