//! A developer's chain in memory with all its methods, put together as `almanac dev` does.

use crate::accounts;
use alloy_primitives::Address;
use almanac_consensus::{Admission, Application, Mode, SharedPool, Sink, Solo, SoloConfig, SystemClock};
use almanac_feed::IndexFeed;
use almanac_index::{Index, IndexConfig};
use almanac_mempool::{Pool, PoolConfig};
use almanac_primitives::TimestampMs;
use almanac_rpc::{
    bounds::{ANSWER_BYTES_MAX, ENVELOPE_BYTES},
    heads::Heads,
    heavy::{Heavy, HeavyLimits},
    served::{NodeKind, Served},
    view::View,
    wallet::Wallet,
};
use almanac_schedule::CalendarAgenda;
use almanac_state::MemoryStore;
pub(crate) use cron::ICronRegistry;
use jsonrpsee::RpcModule;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::runtime::Runtime;

pub(crate) const ALICE: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
pub(crate) const BOB: &str = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";

/// Longest time for what is executed on request.
const CALL_TIME_MAX: Duration = Duration::from_millis(100);

/// Largest answer with a result: methods keep to it.
const RESULT_BYTES_MAX: usize = ANSWER_BYTES_MAX + ENVELOPE_BYTES;

/// Largest answer with an error. Gas bounds what a call reverts with; the server, which is not here, bounds it to less.
const ERROR_BYTES_MAX: usize = 64 << 20;

/// The chain and its methods.
pub(crate) struct Node {
    runtime: Runtime,
    methods: RpcModule<()>,
    /// Lives as long as its methods.
    _solo: Solo,
}

impl Node {
    pub(crate) fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_time()
            .build()
            .expect("threads");
        let (solo, methods) = runtime.block_on(async { methods().await.expect("a chain in memory") });
        Self { runtime, methods, _solo: solo }
    }

    /// The answer to a request.
    pub(crate) fn call(&self, method: &str, params: &Value) -> Value {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let answer = self.runtime.block_on(self.methods.raw_json_request(&request, 1));
        let Ok((answer, _)) = answer else { return json!({ "error": { "code": -32_700 } }) };
        let (bytes, json) = (answer.get().len(), serde_json::from_str::<Value>(answer.get()));
        let json = json.expect("an answer is JSON");
        let most = if json["error"].is_null() { RESULT_BYTES_MAX } else { ERROR_BYTES_MAX };
        assert!(bytes <= most, "{method} answers {bytes} bytes, at most {most}");
        json
    }

    pub(crate) fn result(&self, method: &str, params: Value) -> Value {
        let answer = self.call(method, &params);
        assert!(answer["error"].is_null(), "{method} {params}: {answer}");
        answer["result"].clone()
    }

    pub(crate) fn receipt(&self, hash: &Value) -> Value {
        for _ in 0..1_000 {
            let found = self.result("eth_getTransactionReceipt", json!([hash]));
            if found.is_object() {
                return found;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("no receipt of {hash}");
    }
}

async fn methods() -> anyhow::Result<(Solo, RpcModule<()>)> {
    let genesis = accounts::genesis(accounts::CHAIN_ID, TimestampMs(1_700_000_000_000));
    let (state, agenda) = (genesis.state()?, Arc::new(CalendarAgenda));
    let store = MemoryStore::from_genesis(state.clone());
    let (application, tip) = Application::new(&genesis, store, agenda.clone())?;
    let index = Arc::new(Index::in_memory(IndexConfig::archive(), tip.header.clone(), state)?);
    let chain = application.chain();
    let base_fee = application.next_environment(&tip).await?.base_fee;
    let pool = SharedPool::new(Pool::new(PoolConfig::developer(), base_fee));
    let heads = Heads::new(index.clone());
    let feed = Arc::new(IndexFeed(index.clone()));
    let sinks: Vec<Arc<dyn Sink>> = vec![feed.clone(), heads.clone()];
    let config = SoloConfig::new(Mode::OnDemand, Address::ZERO);
    let (solo, sequencer) = Solo::start(Arc::new(application), tip, pool.clone(), sinks, SystemClock, config);
    tokio::spawn(sequencer);
    let admission = Admission::new(chain, pool, feed);
    let controls = solo.controls().clone();
    let next = controls.clone();
    let view =
        View { chain, index, agenda, next_time: Arc::new(move || next.next_time()) };
    let wallet = Wallet::new(accounts::ACCOUNTS.map(|account| account.secret));
    let heavy = Heavy::new(HeavyLimits::default());
    let served =
        Served { view, admission, heads, heavy, client_version: "fuzz", call_time_max: CALL_TIME_MAX };
    let methods = served.methods(NodeKind::Developer { wallet, controls, set_logging: Arc::new(|_| ()) });
    Ok((solo, methods))
}

/// What the corpus needs of the support of the tests over sockets.
pub(crate) mod cron {
    use super::{ALICE, BOB, Node};
    use alloy_primitives::{Bytes, U256, hex};
    use alloy_sol_types::{SolCall as _, sol};
    use serde_json::{Value, json};

    sol!("../contracts/ICronRegistry.sol");

    /// A job to be made.
    pub(crate) struct Job {
        at: u64,
        interval: u64,
        runs: u64,
    }

    impl Job {
        pub(crate) fn once(node: &Node, wait: u64) -> Self {
            let last = node.result("eth_getBlockByNumber", json!(["latest", false]));
            let time: U256 = last["timestamp"].as_str().expect("a time").parse().expect("a number");
            Self { at: time.to::<u64>() + wait, interval: 0, runs: 0 }
        }

        pub(crate) fn every(self, interval: u64, runs: u64) -> Self {
            Self { interval, runs, ..self }
        }

        /// Makes it for Alice, and answers with its number and the receipt.
        pub(crate) fn make(&self, node: &Node) -> (Value, Value) {
            let call = super::ICronRegistry::scheduleWithCall {
                target: BOB.parse().expect("an address"),
                data: Bytes::from_static(&[1, 2, 3, 4]),
                nextRunAt: U256::from(self.at),
                intervalSec: U256::from(self.interval),
                maxRuns: U256::from(self.runs),
                gasLimit: U256::from(100_000),
                refundTo: ALICE.parse().expect("an address"),
                options: U256::ZERO,
            };
            let request = json!({ "from": ALICE, "to": "0x0000000000000000000000000000000000000006",
                "value": "0x38d7ea4c68000", "data": hex::encode_prefixed(call.abi_encode()), "gas": "0x200000" });
            let receipt = node.receipt(&node.result("eth_sendTransaction", json!([request])));
            let id: U256 = receipt["logs"][0]["topics"][1].as_str().expect("a log").parse().expect("an id");
            (json!(format!("{id:#x}")), receipt)
        }
    }
}
