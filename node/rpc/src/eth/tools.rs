//! Small methods: versions, chain id, sync status, pool status.

use super::Eth;
use crate::{
    answer::{Answer, Room},
    error,
    types::RpcTransaction,
};
use alloy_primitives::{Address, B256, Bytes, U64, keccak256};
use almanac_consensus::SharedPool;
use almanac_mempool::Readiness;
use almanac_primitives::{RecoveredTransaction, UserTransaction};
use jsonrpsee::{core::RpcResult, proc_macros::rpc};
use serde::Serialize;
use std::collections::BTreeMap;

#[rpc(server)]
pub(crate) trait ToolsApi {
    /// Chain id that transactions must be signed for.
    #[method(name = "eth_chainId")]
    fn chain_id(&self) -> RpcResult<U64>;

    /// Whether blocks are still being fetched. Never: a node answers for what it has.
    #[method(name = "eth_syncing")]
    fn syncing(&self) -> RpcResult<bool>;

    /// Version of Ethereum's wire protocol that clients expect.
    #[method(name = "eth_protocolVersion")]
    fn protocol_version(&self) -> RpcResult<String>;

    /// Always false: blocks are proposed, not mined.
    #[method(name = "eth_mining")]
    fn mining(&self) -> RpcResult<bool>;

    /// Hashes per second.
    #[method(name = "eth_hashrate")]
    fn hashrate(&self) -> RpcResult<U64>;

    /// The chain id again, as a decimal string.
    #[method(name = "net_version")]
    fn net_version(&self) -> RpcResult<String>;

    /// Whether connections are taken.
    #[method(name = "net_listening")]
    fn net_listening(&self) -> RpcResult<bool>;

    /// Other nodes that this one speaks to.
    #[method(name = "net_peerCount")]
    fn net_peer_count(&self) -> RpcResult<U64>;

    /// Who answers here.
    #[method(name = "web3_clientVersion")]
    fn client_version(&self) -> RpcResult<String>;

    /// Keccak-256 of the bytes.
    #[method(name = "web3_sha3")]
    fn sha3(&self, data: Bytes) -> RpcResult<B256>;

    /// Namespaces that are served.
    #[method(name = "rpc_modules")]
    fn modules(&self) -> RpcResult<BTreeMap<&'static str, &'static str>>;

    /// How many transactions wait, and how many of them wait for another.
    #[method(name = "txpool_status")]
    fn txpool_status(&self) -> RpcResult<PoolStatus>;

    /// All that wait, by sender and number; orderless ones by nonce, as `orderless-7`.
    #[method(name = "txpool_content")]
    async fn txpool_content(&self) -> RpcResult<Answer<PoolContent<RpcTransaction>>>;

    /// What waits of one sender.
    #[method(name = "txpool_contentFrom")]
    async fn txpool_content_from(&self, sender: Address) -> RpcResult<Answer<SenderContent<RpcTransaction>>>;

    /// All that wait, a line each.
    #[method(name = "txpool_inspect")]
    async fn txpool_inspect(&self) -> RpcResult<Answer<PoolContent<String>>>;

    /// Merkle-Patricia proofs, which this chain does not have.
    #[method(name = "eth_getProof")]
    fn proof(
        &self,
        params: Option<Address>,
        _slots: Option<serde_json::Value>,
        _block: Option<serde_json::Value>,
    ) -> RpcResult<()>;
}

/// How many transactions wait.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PoolStatus {
    pending: U64,
    queued: U64,
}

/// What waits, by sender and number: ready for a block, and waiting for something.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PoolContent<T: Clone> {
    pending: BTreeMap<Address, BTreeMap<String, Answer<T>>>,
    queued: BTreeMap<Address, BTreeMap<String, Answer<T>>>,
}

/// What waits of one sender, by number.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct SenderContent<T: Clone> {
    pending: BTreeMap<String, Answer<T>>,
    queued: BTreeMap<String, Answer<T>>,
}

#[jsonrpsee::core::async_trait]
impl ToolsApiServer for Eth {
    fn chain_id(&self) -> RpcResult<U64> {
        Ok(U64::from(self.view.chain.id))
    }

    fn syncing(&self) -> RpcResult<bool> {
        Ok(false)
    }

    fn protocol_version(&self) -> RpcResult<String> {
        Ok("0x41".to_owned())
    }

    fn mining(&self) -> RpcResult<bool> {
        Ok(false)
    }

    fn hashrate(&self) -> RpcResult<U64> {
        Ok(U64::ZERO)
    }

    fn net_version(&self) -> RpcResult<String> {
        Ok(self.view.chain.id.to_string())
    }

    fn net_listening(&self) -> RpcResult<bool> {
        Ok(true)
    }

    fn net_peer_count(&self) -> RpcResult<U64> {
        Ok(U64::ZERO)
    }

    fn client_version(&self) -> RpcResult<String> {
        Ok(self.client_version.to_string())
    }

    fn sha3(&self, data: Bytes) -> RpcResult<B256> {
        Ok(keccak256(data))
    }

    fn modules(&self) -> RpcResult<BTreeMap<&'static str, &'static str>> {
        let mut names = vec!["eth", "net", "web3", "txpool", "rpc", "debug", "trace", "ots", "almanac"];
        if self.impersonation.is_some() {
            names.extend(["evm", "anvil", "hardhat"]);
        }
        Ok(names.into_iter().map(|name| (name, "1.0")).collect())
    }

    fn txpool_status(&self) -> RpcResult<PoolStatus> {
        let pool = self.admission.pool().lock();
        Ok(PoolStatus { pending: U64::from(pool.ready_count()), queued: U64::from(pool.parked_count()) })
    }

    async fn txpool_content(&self) -> RpcResult<Answer<PoolContent<RpcTransaction>>> {
        let pool = self.admission.pool().clone();
        self.heavy.answer(ONE_SENDER, move || content(&pool, RpcTransaction::pending)).await
    }

    async fn txpool_content_from(&self, sender: Address) -> RpcResult<Answer<SenderContent<RpcTransaction>>> {
        let pool = self.admission.pool().clone();
        let work = move || content_of(&pool, sender, &RpcTransaction::pending, &mut Room::new(ONE_BY_ONE));
        self.heavy.answer(ONE_BY_ONE, work).await
    }

    async fn txpool_inspect(&self) -> RpcResult<Answer<PoolContent<String>>> {
        let pool = self.admission.pool().clone();
        let line = |waiting: &RecoveredTransaction| {
            let transaction = waiting.transaction();
            let to = transaction.to().map_or("contract creation".to_owned(), |to| to.to_string());
            let (value, gas) = (transaction.value(), transaction.gas_limit());
            format!("{to}: {value} wei + {gas} gas × {} wei", transaction.fee_cap().0)
        };
        self.heavy.answer(ONE_SENDER, move || content(&pool, line)).await
    }

    fn proof(
        &self,
        _: Option<Address>,
        _: Option<serde_json::Value>,
        _: Option<serde_json::Value>,
    ) -> RpcResult<()> {
        Err(error::unsupported(
            "eth_getProof",
            "the state is not a Merkle-Patricia trie; use almanac_getProof, or `almanac proof get`",
        ))
    }
}

/// Begins the names of orderless transactions; a plain number is a sequence number.
const ORDERLESS: &str = "orderless-";

/// How to ask for less of the pool.
const ONE_SENDER: &str = "ask for one sender with txpool_contentFrom, or for numbers with txpool_status";
const ONE_BY_ONE: &str = "ask for transactions one by one with eth_getTransactionBySenderAndNonce";

/// What waits. The pool is held for one sender at a time, and nothing is written meanwhile: blocks need it too.
fn content<T: Clone + Serialize>(
    pool: &SharedPool,
    show: impl Fn(&RecoveredTransaction) -> T,
) -> RpcResult<PoolContent<T>> {
    let senders: Vec<Address> = pool.lock().senders().collect();
    let (mut pending, mut queued) = (BTreeMap::new(), BTreeMap::new());
    let mut room = Room::new(ONE_SENDER);
    for sender in senders {
        let of_sender = content_of(pool, sender, &show, &mut room)?;
        if !of_sender.pending.is_empty() {
            pending.insert(sender, of_sender.pending);
        }
        if !of_sender.queued.is_empty() {
            queued.insert(sender, of_sender.queued);
        }
    }
    Ok(PoolContent { pending, queued })
}

fn content_of<T: Clone + Serialize>(
    pool: &SharedPool,
    sender: Address,
    show: &impl Fn(&RecoveredTransaction) -> T,
    room: &mut Room,
) -> RpcResult<SenderContent<T>> {
    let (mut pending, mut queued) = (BTreeMap::new(), BTreeMap::new());
    for (waiting, readiness) in waiting_of(pool, sender) {
        let list = if readiness == Readiness::Ready { &mut pending } else { &mut queued };
        list.insert(name(waiting.transaction()), room.write(&show(&waiting))?);
    }
    Ok(SenderContent { pending, queued })
}

/// A sender's sequence numbers and orderless transactions, which are always ready.
fn waiting_of(pool: &SharedPool, sender: Address) -> Vec<(RecoveredTransaction, Readiness)> {
    let pool = pool.lock();
    let numbered = pool.pending_of(sender).map(|(waiting, readiness)| (waiting.clone(), readiness));
    let orderless = pool.orderless_of(sender).map(|waiting| (waiting.clone(), Readiness::Ready));
    numbered.chain(orderless).collect()
}

/// What a sender's transaction is listed under. A nonce that is no sequence number must not hide one.
fn name(transaction: &UserTransaction) -> String {
    let nonce = transaction.nonce();
    if transaction.is_orderless() { format!("{ORDERLESS}{nonce}") } else { nonce.to_string() }
}
