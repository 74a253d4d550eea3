//! A node as a real process, spoken to over a real socket.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]
#![allow(clippy::needless_pass_by_value, reason = "requests are written in place")]

pub mod audit;
pub mod callbacks;
pub mod cron;
pub mod faults;
pub mod load;
pub mod machine;
pub mod market;
pub mod network;
pub mod pace;
pub mod polite;
pub mod relay;
pub mod socket;

use alloy_primitives::{Address, U256, hex};
use almanac_primitives::{UserTransaction, testing};
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, Command, ExitStatus, Output, Stdio},
    time::{Duration, Instant},
};

pub const ALICE: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
pub const BOB: &str = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";
pub const ALICE_KEY: &str = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";

/// A running `almanac dev`. Dropping it kills it.
pub struct Node {
    pub child: Child,
    pub address: String,
    pub banner: String,
}

impl Node {
    pub fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_almanac"))
            .args(["dev", "--port", "0"])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut banner = String::new();
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            banner += &(line.unwrap() + "\n");
            if banner.contains("Ctrl-C") {
                break;
            }
        }
        let address =
            banner.lines().find_map(|line| line.split("http://").nth(1)).unwrap_or_default().to_owned();
        assert!(!address.is_empty(), "the banner names the address: {banner:?}");
        Self { child, address, banner }
    }

    /// A node that says in JSON where it is, and writes its log to a file.
    pub fn start_for_programs(arguments: &[&str], log: &std::fs::File) -> (Self, Value) {
        let mut child = Command::new(env!("CARGO_BIN_EXE_almanac"))
            .args(["dev", "--port", "0", "--json"])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(log.try_clone().unwrap())
            .spawn()
            .unwrap();
        let mut banner = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut banner).unwrap();
        let facts: Value = serde_json::from_str(&banner).unwrap();
        let address = facts["http"].as_str().unwrap().trim_start_matches("http://").to_owned();
        (Self { child, address, banner }, facts)
    }

    /// The most memory that the process ever had.
    pub fn memory_peak_kilobytes(&self) -> u64 {
        self.status_kilobytes("VmHWM:")
    }

    /// The memory that the process has now.
    pub fn memory_kilobytes(&self) -> u64 {
        self.status_kilobytes("VmRSS:")
    }

    /// The memory that the process has now, without the pages of the program itself, which come as they are first used.
    pub fn own_memory_kilobytes(&self) -> u64 {
        self.status_kilobytes("RssAnon:")
    }

    /// How many of its threads run, or would if there were more processors.
    pub fn running_threads(&self) -> usize {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        // Behind the name, which may have any characters but ends with a bracket. A thread may have ended meanwhile.
        let is_running =
            |stat: &String| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('R'));
        let stats = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("stat")).ok());
        stats.filter(is_running).count()
    }

    fn status_kilobytes(&self, field: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let value = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        value.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// How many files and sockets the process has open now.
    pub fn open_files(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap().count()
    }

    pub fn call(&self, method: &str, params: Value) -> Value {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        serde_json::from_str(&post(&self.address, &body.to_string())).unwrap()
    }

    /// The result of a call, or `None` where the node is gone.
    pub fn try_result(&self, method: &str, params: Value) -> Option<Value> {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let answer: Value = serde_json::from_str(&try_post(&self.address, &body.to_string()).ok()?).ok()?;
        assert!(answer["error"].is_null(), "{method}: {answer}");
        Some(answer["result"].clone())
    }

    pub fn result(&self, method: &str, params: Value) -> Value {
        let answer = self.call(method, params);
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].clone()
    }

    pub fn height(&self) -> u64 {
        number(&self.result("eth_blockNumber", json!([])))
    }

    pub fn balance(&self, address: &str) -> U256 {
        self.result("eth_getBalance", json!([address, "latest"])).as_str().unwrap().parse().unwrap()
    }

    pub fn send(&self, transaction: &UserTransaction) -> Value {
        self.call("eth_sendRawTransaction", json!([hex::encode_prefixed(transaction.encoded())]))
    }

    pub fn receipt(&self, hash: &Value) -> Value {
        let begin = Instant::now();
        loop {
            let receipt = self.result("eth_getTransactionReceipt", json!([hash]));
            if !receipt.is_null() || begin.elapsed() > Duration::from_secs(20) {
                return receipt;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    pub fn wait(&mut self) -> ExitStatus {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(begin.elapsed() < Duration::from_secs(20), "the process ends in time");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A number as Ethereum writes it.
pub fn number(value: &Value) -> u64 {
    value.as_str().unwrap().parse::<U256>().unwrap().to()
}

/// The digest that `almanac index` printed.
pub fn digest_line(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().find_map(|line| line.strip_prefix("digest ")).expect("a digest").to_owned()
}

pub fn post(address: &str, body: &str) -> String {
    try_post(address, body).unwrap()
}

/// The answer to a request, or an error where the node is gone.
pub fn try_post(address: &str, body: &str) -> std::io::Result<String> {
    post_within(Duration::from_secs(20), address, body)
}

/// The answer to a request, or an error where there is none in time.
pub fn post_within(time: Duration, address: &str, body: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(time))?;
    let length = body.len();
    write!(
        stream,
        "POST / HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
    body.ok_or_else(|| std::io::ErrorKind::UnexpectedEof.into())
}

/// Everything that comes back for these bytes, until the node hangs up.
pub fn exchange(address: &str, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // The node may answer and hang up before it has read all.
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// A request for [`exchange`].
pub fn with_body(host: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "POST / HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

pub fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_almanac")).args(arguments).output().unwrap()
}

pub fn to_bob(nonce: u64) -> UserTransaction {
    let bob: Address = BOB.parse().unwrap();
    testing::sign(testing::legacy(nonce, bob, 1), ALICE_KEY.parse().unwrap())
}
