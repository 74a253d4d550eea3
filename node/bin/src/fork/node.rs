//! The node that a fork reads its origin's state from, over JSON-RPC.

use crate::http::{CallError, Endpoint};
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, keccak256};
use almanac_primitives::{Account, Fork, StateKey, TimestampMs, state::encode_slot};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex, PoisonError, mpsc},
    time::{Duration, Instant},
};
use tokio::{
    runtime::{Builder, Handle, Runtime, RuntimeFlavor},
    sync::Semaphore,
    task::JoinSet,
    time::timeout,
};

/// Time for one answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Time for all values that are asked for at once.
const FETCH_PATIENCE: Duration = Duration::from_secs(60);

/// Waits before a question that got no answer is asked again.
const RETRY_PAUSES: [Duration; 3] =
    [Duration::from_millis(250), Duration::from_secs(1), Duration::from_secs(2)];

/// For so long after a failure no other question is asked: what waits behind it fails at once.
const DOWN: Duration = Duration::from_secs(1);

/// Questions under way at once.
const QUESTIONS_MAX: usize = 8;

/// Longest text of a node that an error repeats.
const SHOWN_CHARS_MAX: usize = 200;

/// Code of JSON-RPC errors about limits: another attempt may succeed.
const LIMIT_EXCEEDED: i64 = -32_005;

/// Words with which nodes say that they do not have the state of a block.
const PRUNED: [&str; 10] = [
    "missing trie node",
    "pruned",
    "no longer kept",
    "state is gone",
    "historical state",
    "state not available",
    "state is not available",
    "header not found",
    "unknown block",
    "out of range",
];

/// Why a value of the origin is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OriginError {
    /// Nobody answers, or not in time, or not in JSON.
    #[error(
        "the origin cannot be reached, after {attempts} attempts: {reason}; values that were read before need no origin"
    )]
    Unreachable { attempts: usize, reason: String },
    /// It answers too slowly.
    #[error("{host} did not answer for {count} values within {patience:?}: repeat the request")]
    Late { host: String, count: usize, patience: Duration },
    /// The node has dropped the state.
    #[error(
        "{host} does not have the state of block {number} ({reason}): fork a newer block, or use a node that keeps \
         all states (an archive node)"
    )]
    Pruned { host: String, number: u64, reason: String },
    /// The node refuses for another reason.
    #[error("{host} refuses: {reason}")]
    Refused { host: String, reason: String },
    /// An answer that is not what the method gives.
    #[error("{host} answers {method} with {answer}, expected {expected}: is it an Ethereum node?")]
    WrongAnswer { host: String, method: &'static str, answer: String, expected: &'static str },
    /// The block does not exist.
    #[error("{host} has no block {number}: choose one up to its last, with --fork-block")]
    NoBlock { host: String, number: u64 },
    /// Another chain, or one that went back.
    #[error(
        "{host} has {found} as block {}, the fork stands on {}: it is another chain, or one that was reorganised; \
         start a new fork in another --datadir", .fork.number, .fork.hash
    )]
    OtherBlock { host: String, fork: Fork, found: B256 },
    /// Another chain id.
    #[error(
        "{host} has the chain id {found}, the fork is one of chain {}: give the URL of that chain, or start a new fork \
         in another --datadir", .fork.chain_id
    )]
    OtherChain { host: String, fork: Fork, found: u64 },
    /// There is no node to ask.
    #[error("it was never read before, and the chain runs without its origin: start it with --fork-url")]
    NoNode,
}

/// A node of the origin.
pub(super) struct OriginNode {
    asker: Asker,
    /// `None` while it is being dropped.
    runtime: Option<Runtime>,
    /// Time for all values that are asked for at once.
    patience: Duration,
    /// The last failure, and when it was.
    down: Mutex<Option<(Instant, OriginError)>>,
}

/// The block that a fork starts from.
pub(crate) struct ForkBlock {
    pub(crate) fork: Fork,
    pub(crate) time: TimestampMs,
}

/// A value with the code that comes with it.
pub(super) type Fetched = Vec<(StateKey, Option<Bytes>)>;

impl OriginNode {
    /// The node at an address.
    pub(super) fn new(endpoint: Endpoint) -> std::io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("origin")
            .enable_all()
            .on_thread_start(almanac_priority::lower_thread)
            .build()?;
        let asker = Asker { endpoint: Arc::new(endpoint), turns: Arc::new(Semaphore::new(QUESTIONS_MAX)) };
        Ok(Self { asker, runtime: Some(runtime), patience: FETCH_PATIENCE, down: Mutex::default() })
    }

    /// Where it is.
    pub(super) fn host(&self) -> &str {
        self.asker.endpoint.host()
    }

    /// The block to fork: the given one, or the last.
    pub(super) fn block(&self, number: Option<u64>) -> Result<ForkBlock, OriginError> {
        let asker = self.asker.clone();
        self.run(async move {
            let chain_id = asker.chain_id().await?;
            let number = match number {
                Some(number) => number,
                None => asker.ask("eth_blockNumber", json!([]), "a number", read_u64).await?,
            };
            let (hash, time) = asker.block(number).await?;
            Ok(ForkBlock { fork: Fork { chain_id, number, hash }, time })
        })
    }

    /// Checks that the node has the block that a fork stands on.
    pub(super) fn check(&self, fork: Fork) -> Result<(), OriginError> {
        let asker = self.asker.clone();
        self.run(async move {
            let host = asker.endpoint.host().to_owned();
            let found = asker.chain_id().await?;
            if found != fork.chain_id {
                return Err(OriginError::OtherChain { host, fork, found });
            }
            match asker.block(fork.number).await? {
                (found, _) if found != fork.hash => Err(OriginError::OtherBlock { host, fork, found }),
                _ => Ok(()),
            }
        })
    }

    /// The values of accounts and slots after a block, side by side. The first failure ends all of it.
    pub(super) fn fetch(&self, keys: &[StateKey], number: u64) -> Result<Fetched, OriginError> {
        if let Some((when, error)) = &*self.down.lock().unwrap_or_else(PoisonError::into_inner)
            && when.elapsed() < DOWN
        {
            return Err(error.clone());
        }
        let (asker, keys) = (self.asker.clone(), keys.to_vec());
        let patience = self.patience;
        let late = OriginError::Late { host: self.host().to_owned(), count: keys.len(), patience };
        let fetch = async move {
            let mut tasks = JoinSet::new();
            for key in keys {
                let asker = asker.clone();
                tasks.spawn(async move { asker.value(key, number).await });
            }
            let mut all = Vec::new();
            while let Some(fetched) = tasks.join_next().await {
                all.extend(fetched.expect("a question does not panic")?);
            }
            Ok(all)
        };
        let fetched = self.run(async move { timeout(patience, fetch).await.unwrap_or(Err(late)) });
        if let Err(error) = &fetched {
            *self.down.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), error.clone()));
        }
        fetched
    }

    /// Runs questions on the node's own thread, and waits for the answers.
    fn run<T: Send + 'static>(
        &self,
        questions: impl Future<Output = Result<T, OriginError>> + Send + 'static,
    ) -> Result<T, OriginError> {
        let (sender, receiver) = mpsc::channel();
        let runtime = self.runtime.as_ref().expect("it is there until the node is dropped");
        runtime.spawn(async move {
            // Nobody waits any more where the process ends.
            let _ = sender.send(questions.await);
        });
        let wait = || receiver.recv().expect("a question is answered or refused");
        match Handle::try_current().map(|current| current.runtime_flavor()) {
            // A thread that serves others passes them on while it waits.
            Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(wait),
            _ => wait(),
        }
    }
}

impl Drop for OriginNode {
    // The usual end waits, which a thread that serves others must not.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[derive(Clone)]
struct Asker {
    endpoint: Arc<Endpoint>,
    turns: Arc<Semaphore>,
}

impl Asker {
    /// What is stored under a key; with an account comes its code.
    async fn value(&self, key: StateKey, number: u64) -> Result<Fetched, OriginError> {
        match key {
            StateKey::Account(address) => self.account(address, number).await,
            StateKey::Slot(address, slot) => {
                let params = json!([address, format!("{slot:#x}"), format!("{number:#x}")]);
                let value = self.ask_state("eth_getStorageAt", params, number, "a word", read_u256).await?;
                Ok(vec![(key, encode_slot(value))])
            }
            _ => unreachable!("the origin is asked for accounts and slots"),
        }
    }

    async fn account(&self, address: Address, number: u64) -> Result<Fetched, OriginError> {
        let params = json!([address, format!("{number:#x}")]);
        let (balance, nonce, code) = tokio::try_join!(
            self.ask_state("eth_getBalance", params.clone(), number, "an amount", read_u256),
            self.ask_state("eth_getTransactionCount", params.clone(), number, "a number", read_u64),
            self.ask_state("eth_getCode", params.clone(), number, "bytes", read_bytes),
        )?;
        let code_hash = if code.is_empty() { KECCAK256_EMPTY } else { keccak256(&code) };
        let account = Account { nonce, balance, code_hash, is_keyed: false };
        let stored = (account != Account::default()).then(|| account.encode());
        let mut all = vec![(StateKey::Account(address), stored)];
        if !code.is_empty() {
            all.push((StateKey::Code(code_hash), Some(code)));
        }
        Ok(all)
    }

    async fn chain_id(&self) -> Result<u64, OriginError> {
        self.ask("eth_chainId", json!([]), "a number", read_u64).await
    }

    /// Hash and time of a block.
    async fn block(&self, number: u64) -> Result<(B256, TimestampMs), OriginError> {
        let read = |block: &Value| {
            if block.is_null() {
                return Some(None);
            }
            let hash = block["hash"].as_str()?.parse().ok()?;
            Some(Some((hash, TimestampMs::from_seconds(read_u64(&block["timestamp"])?)?)))
        };
        let params = json!([format!("{number:#x}"), false]);
        let block = self.ask("eth_getBlockByNumber", params, "a block", read).await?;
        block.ok_or_else(|| OriginError::NoBlock { host: self.endpoint.host().to_owned(), number })
    }

    /// A question about the state after a block.
    async fn ask_state<T>(
        &self,
        method: &'static str,
        params: Value,
        number: u64,
        expected: &'static str,
        read: impl Fn(&Value) -> Option<T>,
    ) -> Result<T, OriginError> {
        let answer = self.ask(method, params, expected, read).await;
        answer.map_err(|error| match error {
            OriginError::Refused { host, reason } if is_pruned(&reason) => {
                OriginError::Pruned { host, number, reason }
            }
            error => error,
        })
    }

    /// Asks until there is an answer, a few times.
    async fn ask<T>(
        &self,
        method: &'static str,
        params: Value,
        expected: &'static str,
        read: impl Fn(&Value) -> Option<T>,
    ) -> Result<T, OriginError> {
        let host = || self.endpoint.host().to_owned();
        let mut pauses = RETRY_PAUSES.iter();
        loop {
            let turn = self.turns.acquire().await.expect("the semaphore is never closed");
            let answer = self.endpoint.call_later(method, &params, PATIENCE).await;
            drop(turn);
            let reason = match answer {
                Ok(answer) => {
                    let wrong = || {
                        let answer = shown(&answer.to_string());
                        OriginError::WrongAnswer { host: host(), method, answer, expected }
                    };
                    return read(&answer).ok_or_else(wrong);
                }
                Err(CallError::Refused { code, message }) if code != LIMIT_EXCEEDED => {
                    return Err(OriginError::Refused { host: host(), reason: shown(&message) });
                }
                Err(CallError::Refused { message, .. }) => shown(&message),
                Err(CallError::Failed(error)) => shown(&format!("{error:#}")),
            };
            match pauses.next() {
                Some(pause) => tokio::time::sleep(*pause).await,
                None => {
                    return Err(OriginError::Unreachable { attempts: RETRY_PAUSES.len() + 1, reason });
                }
            }
        }
    }
}

fn is_pruned(reason: &str) -> bool {
    let reason = reason.to_lowercase();
    PRUNED.iter().any(|words| reason.contains(words))
}

/// The start of a text.
fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn read_u256(value: &Value) -> Option<U256> {
    value.as_str().filter(|text| text.starts_with("0x"))?.parse().ok()
}

fn read_u64(value: &Value) -> Option<u64> {
    read_u256(value)?.try_into().ok()
}

fn read_bytes(value: &Value) -> Option<Bytes> {
    value.as_str().filter(|text| text.starts_with("0x"))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        io::{Read as _, Write as _},
        net::TcpListener,
    };

    const KEY: StateKey = StateKey::Slot(Address::repeat_byte(1), U256::ZERO);

    /// Answers connections with these results or errors, in order, and then no more.
    fn node(answers: Vec<Value>) -> OriginNode {
        node_with(answers, Duration::ZERO)
    }

    /// Answers one connection after the other, with a pause before each.
    fn slow_node(count: usize, pause: Duration) -> OriginNode {
        node_with(vec![result("0x7"); count], pause)
    }

    fn node_with(answers: Vec<Value>, pause: Duration) -> OriginNode {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for answer in answers {
                let (mut socket, _) = listener.accept().unwrap();
                std::thread::sleep(pause);
                let _ = socket.read(&mut [0; 4096]);
                let body = answer.to_string();
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
                let _ = socket.write_all((head + &body).as_bytes());
            }
        });
        OriginNode::new(Endpoint::at(address)).unwrap()
    }

    fn result(value: &str) -> Value {
        json!({ "jsonrpc": "2.0", "id": 1, "result": value })
    }

    fn error(code: i64, message: &str) -> Value {
        json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": code, "message": message } })
    }

    fn fetched(answers: Vec<Value>) -> Result<Fetched, OriginError> {
        node(answers).fetch(&[KEY], 7)
    }

    #[test]
    fn fork_11_a_value_comes_as_it_is_stored() {
        let seven = Some(Bytes::from_static(&[7]));
        assert_eq!(fetched(vec![result("0x7")]), Ok(vec![(KEY, seven)]));
        let zero = format!("0x{}", "0".repeat(64));
        assert_eq!(fetched(vec![result(&zero)]), Ok(vec![(KEY, None)]), "a zero slot is not stored");
    }

    /// A node whose every answer is in time, and all of them together are not: a block would wait for minutes.
    #[test]
    fn fork_15_all_values_together_have_a_time_too() {
        let keys: Vec<_> =
            (0..64).map(|slot| StateKey::Slot(Address::repeat_byte(1), U256::from(slot))).collect();
        let slow = |pause_ms, patience_ms| {
            let mut node = slow_node(keys.len(), Duration::from_millis(pause_ms));
            node.patience = Duration::from_millis(patience_ms);
            node
        };
        let began = Instant::now();
        let late = slow(100, 300).fetch(&keys, 7).unwrap_err();
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        assert!(
            late.to_string().ends_with("did not answer for 64 values within 300ms: repeat the request"),
            "{late}"
        );
        assert_eq!(slow(0, 60_000).fetch(&keys, 7).unwrap().len(), 64, "those that answer in time are heard");
        assert_eq!(node(vec![]).patience, Duration::from_secs(60));
    }

    /// Limits and lost connections are tried again; what cannot change is not.
    #[test]
    fn fork_12_what_another_attempt_may_mend_is_tried_again() {
        let busy = || error(LIMIT_EXCEEDED, "slow down");
        let seven = Some(Bytes::from_static(&[7]));
        let answers = vec![busy(), json!("not JSON-RPC"), result("0x7")];
        assert_eq!(fetched(answers), Ok(vec![(KEY, seven)]));
    }

    #[test]
    fn fork_13_errors_name_what_is_wrong() {
        for (answer, expected) in [
            (
                error(-32_000, "missing trie node 0xab (path )"),
                "fork a newer block, or use a node that keeps",
            ),
            (error(-32_601, "the method is not available"), "refuses: eth_getStorageAt: the method"),
            (result("seven"), "answers eth_getStorageAt with \"seven\", expected a word"),
            (json!({ "id": 1 }), "with null, expected a word"),
        ] {
            let told = fetched(vec![answer]).unwrap_err().to_string();
            assert!(told.contains(expected), "{told}");
        }
    }

    /// After a failure, what waits behind it does not wait as long again.
    #[test]
    fn fork_14_a_node_that_is_down_is_not_asked_at_once() {
        let node = node(vec![error(-32_000, "no"), result("0x7")]);
        let first = node.fetch(&[KEY], 7).unwrap_err();
        assert_eq!(node.fetch(&[KEY], 7).unwrap_err(), first);
        std::thread::sleep(DOWN);
        assert!(node.fetch(&[KEY], 7).is_ok());
    }
}
