//! A network of four on loopback, run by one command, and proofs got from it.

use crate::support::{
    cron::{ICronRegistry, REGISTRY, TARGET},
    network::{PATIENCE, new_network, wait_for},
    *,
};
use alloy_primitives::{TxKind, U256, hex};
use alloy_sol_types::SolCall;
use almanac_primitives::testing;
use serde_json::{Value, json};
use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// A network on loopback that one command runs.
pub(crate) struct Network {
    pub(crate) directory: PathBuf,
    pub(crate) address: String,
    up: Child,
}

impl Network {
    /// Writes and starts one below `directory`.
    pub(crate) fn start(directory: &Path) -> Self {
        let directory = directory.to_owned();
        let configs = new_network(&directory.join("net"), 200);
        let said = File::create(directory.join("said")).unwrap();
        let up = Command::new(env!("CARGO_BIN_EXE_almanac"))
            .args(["network", "up", "--dir", directory.join("net").to_str().unwrap()])
            .stdout(said)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let config: Value = serde_json::from_str(&fs::read_to_string(&configs[0]).unwrap()).unwrap();
        let address = config["rpc"].as_str().unwrap().to_owned();
        Self { directory, address, up }
    }

    pub(crate) fn genesis(&self) -> PathBuf {
        self.directory.join("net/genesis.json")
    }

    /// The result of a call to the first validator, or nothing where it does not answer.
    pub(crate) fn try_result(&self, method: &str, params: Value) -> Option<Value> {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let answer: Value = serde_json::from_str(&try_post(&self.address, &body.to_string()).ok()?).ok()?;
        assert!(answer["error"].is_null(), "{method}: {answer}");
        Some(answer["result"].clone())
    }

    pub(crate) fn result(&self, method: &str, params: Value) -> Value {
        self.try_result(method, params).expect("the validator answers")
    }

    pub(crate) fn send(&self, nonce: u64, to: &str, value: u64, input: Vec<u8>) -> Value {
        let to = TxKind::Call(to.parse().unwrap());
        let transaction =
            testing::sign(testing::eip1559(nonce, to, value, input, 2_000_000), ALICE_KEY.parse().unwrap());
        let hash =
            self.result("eth_sendRawTransaction", json!([hex::encode_prefixed(transaction.encoded())]));
        let receipt = wait_for("receipt", || {
            let receipt = self.result("eth_getTransactionReceipt", json!([hash]));
            (!receipt.is_null()).then_some(receipt)
        });
        assert_eq!(receipt["status"], "0x1", "{receipt}");
        receipt
    }

    /// A job that runs in two seconds and then every minute.
    pub(crate) fn schedule(&self, nonce: u64) -> String {
        let last = self.result("eth_getBlockByNumber", json!(["latest", false]));
        let call = ICronRegistry::scheduleWithCall {
            target: TARGET.parse().unwrap(),
            data: hex!("01020304").into(),
            nextRunAt: U256::from(number(&last["timestamp"]) + 2),
            intervalSec: U256::from(60),
            maxRuns: U256::ZERO,
            gasLimit: U256::from(100_000),
            refundTo: ALICE.parse().unwrap(),
            options: U256::ZERO,
        };
        let receipt = self.send(nonce, REGISTRY, 1_500_000_000_000_000, call.abi_encode());
        let number: U256 = receipt["logs"][0]["topics"][1].as_str().unwrap().parse().unwrap();
        let id = self.result("almanac_getSchedule", json!([format!("{number:#x}")]))["id"].clone();
        id.as_str().unwrap().to_owned()
    }

    /// Gets a proof with the command, and answers with the file.
    pub(crate) fn prove(&self, name: &str, what: &[&str]) -> PathBuf {
        let path = self.directory.join(name);
        let rpc = format!("http://{}", self.address);
        let out = path.to_str().unwrap();
        let said = run(&[&["proof", "get", "--rpc", &rpc, "--out", out], what].concat());
        assert!(said.status.success() && said.stderr.is_empty(), "{what:?}: {said:?}");
        path
    }

    /// Stops everything. What was proven stays.
    pub(crate) fn stop(&mut self) {
        let pid = self.up.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &pid]).status();
        let begin = Instant::now();
        while matches!(self.up.try_wait(), Ok(None)) && begin.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Network {
    /// Asked first: killed, it would leave its validators behind.
    fn drop(&mut self) {
        if matches!(self.up.try_wait(), Ok(None)) {
            self.stop();
        }
        let _ = self.up.kill();
        let _ = self.up.wait();
    }
}
