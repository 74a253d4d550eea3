//! The `eth_`, `net_` and `web3_` methods.

use crate::{error, estimate::estimate, types::RpcReceipt, view::View};
use alloy_eips::BlockId;
use alloy_primitives::{Address, Bytes, TxHash, TxKind, U64, U256};
use alloy_rpc_types_eth::TransactionRequest;
use almanac_consensus::Admission;
use almanac_exec::{Call, CallResult, Environment, SimulateError, environment::read_parameters, simulate_in};
use almanac_index::{HistoricalState, IndexedBlock};
use almanac_primitives::{Gas, Header, fees::next_base_fee};
use jsonrpsee::{core::RpcResult, proc_macros::rpc};

/// What clients may ask.
#[rpc(server)]
pub trait EthApi {
    /// Chain id that transactions must be signed for.
    #[method(name = "eth_chainId")]
    fn chain_id(&self) -> RpcResult<U64>;

    /// Height of the last block.
    #[method(name = "eth_blockNumber")]
    fn block_number(&self) -> RpcResult<U64>;

    /// Money of an account after a block.
    #[method(name = "eth_getBalance")]
    fn balance(&self, address: Address, block: Option<BlockId>) -> RpcResult<U256>;

    /// Next nonce of an account; "pending" counts what waits in the pool.
    #[method(name = "eth_getTransactionCount")]
    fn transaction_count(&self, address: Address, block: Option<BlockId>) -> RpcResult<U64>;

    /// A price per gas that the next block takes.
    #[method(name = "eth_gasPrice")]
    fn gas_price(&self) -> RpcResult<U256>;

    /// Tries a call out.
    #[method(name = "eth_call")]
    async fn call(&self, request: TransactionRequest, block: Option<BlockId>) -> RpcResult<Bytes>;

    /// The gas that a call needs.
    #[method(name = "eth_estimateGas")]
    async fn estimate_gas(&self, request: TransactionRequest, block: Option<BlockId>) -> RpcResult<U64>;

    /// Takes a signed transaction into the pool.
    #[method(name = "eth_sendRawTransaction")]
    async fn send_raw_transaction(&self, encoded: Bytes) -> RpcResult<TxHash>;

    /// What became of a transaction, or null while it is not in a block.
    #[method(name = "eth_getTransactionReceipt")]
    fn transaction_receipt(&self, hash: TxHash) -> RpcResult<Option<RpcReceipt>>;

    /// The chain id again, as a decimal string.
    #[method(name = "net_version")]
    fn net_version(&self) -> RpcResult<String>;

    /// Who answers here.
    #[method(name = "web3_clientVersion")]
    fn client_version(&self) -> RpcResult<String>;
}

/// Answers from the index.
#[derive(Clone)]
pub struct Eth {
    view: View,
    admission: Admission,
}

impl Eth {
    /// Answers from `view`, and hands transactions to `admission`.
    pub fn new(view: View, admission: Admission) -> Self {
        Self { view, admission }
    }

    /// Runs `work` with a call and a way to try it, off the threads that serve connections.
    async fn try_out<T: Send + 'static>(
        &self,
        request: TransactionRequest,
        id: Option<BlockId>,
        work: impl FnOnce(Call, &Attempt) -> RpcResult<T> + Send + 'static,
    ) -> RpcResult<T> {
        let (block, state) = self.view.state(id)?;
        let chain_id = self.view.chain_id;
        let is_pending = id.is_some_and(|id| id.is_pending());
        let task = tokio::task::spawn_blocking(move || {
            let parameters = read_parameters(&state).map_err(error::internal)?;
            let header = if is_pending { upcoming(&block, &parameters) } else { block.block.header.clone() };
            let environment = Environment::of_header(&header, chain_id, parameters);
            let call = Call {
                from: request.from.unwrap_or_default(),
                to: request.to.and_then(TxKind::into_to),
                value: request.value.unwrap_or_default(),
                input: request.input.into_input().unwrap_or_default(),
                gas_limit: request.gas.map_or(header.gas_limit, |gas| Gas(gas).min(header.gas_limit)),
                ..Call::default()
            };
            work(call, &Attempt { state, environment })
        });
        task.await.map_err(error::internal)?
    }
}

/// Header of the block that would come next, as far as calls can see it.
fn upcoming(tip: &IndexedBlock, parameters: &almanac_primitives::params::Parameters) -> Header {
    let header = &tip.block.header;
    Header {
        number: header.number.saturating_add(1),
        parent_hash: tip.hash,
        timestamp: almanac_primitives::TimestampMs(header.timestamp.0.saturating_add(1)),
        gas_limit: parameters.block_gas_max(),
        base_fee: next_base_fee(
            header.base_fee,
            header.gas_used,
            header.gas_limit,
            parameters.base_fee_floor(),
        ),
        ..header.clone()
    }
}

/// The state and the block that calls are tried in.
struct Attempt {
    state: HistoricalState,
    environment: Environment,
}

impl Attempt {
    fn run(&self, call: Call) -> Result<CallResult, SimulateError> {
        simulate_in(&self.state, &self.environment, call)
    }
}

#[jsonrpsee::core::async_trait]
impl EthApiServer for Eth {
    fn chain_id(&self) -> RpcResult<U64> {
        Ok(U64::from(self.view.chain_id))
    }

    fn block_number(&self) -> RpcResult<U64> {
        Ok(U64::from(self.view.index.tip().block.header.number))
    }

    fn balance(&self, address: Address, block: Option<BlockId>) -> RpcResult<U256> {
        Ok(self.view.account(address, block)?.balance)
    }

    fn transaction_count(&self, address: Address, block: Option<BlockId>) -> RpcResult<U64> {
        let nonce = self.view.account(address, block)?.nonce;
        if block.is_some_and(|id| id.is_pending()) {
            return Ok(U64::from(self.admission.pool().lock().next_nonce(address, nonce)));
        }
        Ok(U64::from(nonce))
    }

    fn gas_price(&self) -> RpcResult<U256> {
        let (block, state) = self.view.state(None)?;
        let parameters = read_parameters(&state).map_err(error::internal)?;
        let base_fee = upcoming(&block, &parameters).base_fee.0;
        // Room for one full block in between, and a tip.
        Ok(U256::from(base_fee) + U256::from(base_fee / 8) + U256::from(1_000_000_000u64))
    }

    async fn call(&self, request: TransactionRequest, block: Option<BlockId>) -> RpcResult<Bytes> {
        self.try_out(request, block, |call, attempt| {
            let result = attempt.run(call).map_err(|error| error::simulate(&error))?;
            if result.outcome.is_success() { Ok(result.output) } else { Err(error::failed_call(&result)) }
        })
        .await
    }

    async fn estimate_gas(&self, request: TransactionRequest, block: Option<BlockId>) -> RpcResult<U64> {
        let block = block.unwrap_or(BlockId::pending());
        self.try_out(request, Some(block), |call, attempt| {
            match estimate(&call, |call| attempt.run(call)).map_err(|error| error::simulate(&error))? {
                Ok(gas) => Ok(U64::from(gas.0)),
                Err(failed) => Err(error::failed_call(&failed)),
            }
        })
        .await
    }

    async fn send_raw_transaction(&self, encoded: Bytes) -> RpcResult<TxHash> {
        let admission = self.admission.clone();
        // Recovering a signature takes tens of microseconds of pure computing.
        let task = tokio::task::spawn_blocking(move || admission.submit(&encoded));
        task.await.map_err(error::internal)?.map_err(|error| error::submit(&error))
    }

    fn transaction_receipt(&self, hash: TxHash) -> RpcResult<Option<RpcReceipt>> {
        let found = self.view.index.transaction(hash).map_err(error::internal)?;
        Ok(found.and_then(|(location, block)| RpcReceipt::new(&block, location.index)))
    }

    fn net_version(&self) -> RpcResult<String> {
        Ok(self.view.chain_id.to_string())
    }

    fn client_version(&self) -> RpcResult<String> {
        Ok(concat!("almanac/v", env!("CARGO_PKG_VERSION")).to_owned())
    }
}
