//! Sets the gas limit of later blocks. Refuses settings that this chain does not have, with the reason.

use super::{Dev, refused};
use crate::error;
use alloy_primitives::{B256, U64, U256};
use almanac_exec::environment::read_parameters;
use almanac_primitives::params::{BLOCK_GAS_MAX, CRON_BLOCK_GAS_MAX, Parameter, ParameterError, Parameters};
use jsonrpsee::{core::RpcResult, proc_macros::rpc};
use serde_json::Value;

#[rpc(server)]
pub(crate) trait RulesApi {
    /// Sets the gas limit of later blocks: the parameter `block_gas_max`, by a transaction of the account that governs.
    #[method(name = "evm_setBlockGasLimit", aliases = ["anvil_setBlockGasLimit", "hardhat_setBlockGasLimit"])]
    async fn set_block_gas_limit(&self, gas: U256) -> RpcResult<bool>;

    /// Writes lines about blocks and contracts to the log, or no longer.
    #[method(name = "anvil_setLoggingEnabled", aliases = ["hardhat_setLoggingEnabled"])]
    fn set_logging(&self, is_enabled: bool) -> RpcResult<()>;

    /// Refused: there is a base fee.
    #[method(name = "anvil_setMinGasPrice", aliases = ["hardhat_setMinGasPrice"])]
    fn set_min_gas_price(&self, _price: Option<U256>) -> RpcResult<()>;

    /// Refused: it follows from the parent.
    #[method(name = "hardhat_setPrevRandao", aliases = ["anvil_setPrevRandao"])]
    fn set_prev_randao(&self, _value: Option<B256>) -> RpcResult<()>;

    /// Refused: it is in the genesis, and in every signature.
    #[method(name = "anvil_setChainId", aliases = ["hardhat_setChainId"])]
    fn set_chain_id(&self, _chain_id: Option<U64>) -> RpcResult<()>;

    /// Refused: blocks are final.
    #[method(name = "anvil_reorg", aliases = ["hardhat_reorg"])]
    fn reorg(&self, _options: Option<Value>, _transactions: Option<Value>) -> RpcResult<()>;

    /// Refused: only a point that was remembered can be gone back to.
    #[method(name = "anvil_rollback", aliases = ["hardhat_rollback"])]
    fn rollback(&self, _depth: Option<U64>) -> RpcResult<()>;

    /// Refused: nothing is fetched from another chain.
    #[method(name = "anvil_setRpcUrl", aliases = ["hardhat_setRpcUrl"])]
    fn set_rpc_url(&self, _url: Option<String>) -> RpcResult<()>;
}

#[jsonrpsee::core::async_trait]
impl RulesApiServer for Dev {
    async fn set_block_gas_limit(&self, gas: U256) -> RpcResult<bool> {
        let (_, state) = self.view.state(None)?;
        let mut parameters = read_parameters(&state).map_err(error::internal)?;
        let wanted = u64::try_from(gas).unwrap_or(u64::MAX);
        let changes = changes(&mut parameters, wanted).map_err(error::invalid)?;
        if !changes.is_empty() {
            self.controls.govern(changes).await.map_err(|error| refused(&error))?;
        }
        Ok(true)
    }

    fn set_logging(&self, is_enabled: bool) -> RpcResult<()> {
        (self.set_logging)(is_enabled);
        Ok(())
    }

    fn set_min_gas_price(&self, _: Option<U256>) -> RpcResult<()> {
        let instead = "blocks have a base fee; its floor is the parameter base_fee_floor_wei, and the next one \
                       is set with anvil_setNextBlockBaseFeePerGas";
        Err(error::unsupported("setMinGasPrice", instead))
    }

    fn set_prev_randao(&self, _: Option<B256>) -> RpcResult<()> {
        let instead = "block.prevrandao follows from the parent, so that every block can be run again";
        Err(error::unsupported("setPrevRandao", instead))
    }

    fn set_chain_id(&self, _: Option<U64>) -> RpcResult<()> {
        let instead = "the chain id is part of the genesis; start another chain with --chain-id";
        Err(error::unsupported("setChainId", instead))
    }

    fn reorg(&self, _: Option<Value>, _: Option<Value>) -> RpcResult<()> {
        let instead = "blocks are final; evm_snapshot and evm_revert go back, then send other transactions";
        Err(error::unsupported("reorg", instead))
    }

    fn rollback(&self, _: Option<U64>) -> RpcResult<()> {
        let instead = "the chain goes back to snapshots only: evm_snapshot before, then evm_revert";
        Err(error::unsupported("rollback", instead))
    }

    fn set_rpc_url(&self, _: Option<String>) -> RpcResult<()> {
        Err(error::unsupported("setRpcUrl", "this chain starts from its own genesis only"))
    }
}

/// What gives blocks this much gas. Cron work may have half of it at most, so it can become less too.
fn changes(parameters: &mut Parameters, gas: u64) -> Result<Vec<(Parameter, u64)>, ParameterError> {
    let before = parameters.clone();
    let half = gas / 2;
    if before.get(CRON_BLOCK_GAS_MAX) > half && half >= CRON_BLOCK_GAS_MAX.min {
        parameters.set(CRON_BLOCK_GAS_MAX, half)?;
    }
    parameters.set(BLOCK_GAS_MAX, gas)?;
    let wanted = [CRON_BLOCK_GAS_MAX, BLOCK_GAS_MAX].map(|one| (one, parameters.get(one)));
    Ok(wanted.into_iter().filter(|(one, value)| before.get(*one) != *value).collect())
}
