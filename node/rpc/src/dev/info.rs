//! Information about the node for tools.

use super::Dev;
use crate::error;
use alloy_primitives::{B256, U64, U256, keccak256};
use almanac_exec::environment::{base_fee_after, read_parameters};
use almanac_index::IndexedBlock;
use almanac_primitives::{Fork, StateKey, StateRead as _, genesis, state::Meta};
use jsonrpsee::{core::RpcResult, proc_macros::rpc};
use serde::Serialize;
use std::{collections::BTreeMap, sync::Arc};

#[rpc(server)]
pub(crate) trait InfoApi {
    /// The chain as it is now, and the rules that it follows.
    #[method(name = "anvil_nodeInfo", aliases = ["hardhat_nodeInfo"])]
    fn node_info(&self) -> RpcResult<NodeInfo>;

    /// Who answers here, and on which chain.
    #[method(name = "anvil_metadata", aliases = ["hardhat_metadata"])]
    fn metadata(&self) -> RpcResult<Metadata>;
}

/// The fork whose rules the EVM follows, as tools spell it.
const HARD_FORK: &str = "osaka";

/// The answer to `anvil_nodeInfo`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NodeInfo {
    current_block_number: U64,
    current_block_timestamp: u64,
    current_block_hash: B256,
    hard_fork: &'static str,
    transaction_order: &'static str,
    environment: NodeEnvironment,
    fork_config: NodeFork,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct NodeEnvironment {
    base_fee: U256,
    chain_id: u64,
    gas_limit: U64,
    gas_price: U256,
}

/// Whose state the chain started from, if it is a fork. The address of that node may hold a secret, so it is not told.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct NodeFork {
    fork_url: Option<String>,
    fork_block_number: Option<u64>,
    fork_retry_backoff: Option<u64>,
}

/// The answer to `hardhat_metadata`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Metadata {
    client_version: Arc<str>,
    chain_id: u64,
    instance_id: B256,
    latest_block_number: u64,
    latest_block_hash: B256,
    /// Snapshots are not listed; clients insist on the field.
    snapshots: BTreeMap<u64, ()>,
    #[serde(skip_serializing_if = "Option::is_none")]
    forked_network: Option<ForkedNetwork>,
}

/// The chain below a fork.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ForkedNetwork {
    chain_id: u64,
    fork_block_number: u64,
    fork_block_hash: B256,
}

impl InfoApiServer for Dev {
    fn node_info(&self) -> RpcResult<NodeInfo> {
        let (tip, state) = self.view.state(None)?;
        let parameters = read_parameters(&state).map_err(error::internal)?;
        let header = &tip.block.header;
        let base_fee = base_fee_after(header, &parameters, &state).map_err(error::internal)?;
        Ok(NodeInfo {
            current_block_number: U64::from(tip.number()),
            current_block_timestamp: header.timestamp.seconds(),
            current_block_hash: tip.hash,
            hard_fork: HARD_FORK,
            transaction_order: "fees",
            environment: NodeEnvironment {
                base_fee: U256::from(base_fee.0),
                chain_id: self.view.chain.id,
                gas_limit: U64::from(parameters.block_gas_max().0),
                gas_price: U256::from(base_fee.0),
            },
            fork_config: NodeFork {
                fork_block_number: self.fork()?.map(|fork| fork.number),
                ..NodeFork::default()
            },
        })
    }

    fn metadata(&self) -> RpcResult<Metadata> {
        let tip = self.view.block(None)?;
        Ok(Metadata {
            client_version: self.client_version.clone(),
            chain_id: self.view.chain.id,
            instance_id: self.instance_id()?,
            latest_block_number: tip.number(),
            latest_block_hash: tip.hash,
            snapshots: BTreeMap::new(),
            forked_network: self.fork()?.map(|Fork { chain_id, number, hash }| ForkedNetwork {
                chain_id,
                fork_block_number: number,
                fork_block_hash: hash,
            }),
        })
    }
}

impl Dev {
    /// The block below the chain, if it is a fork.
    fn fork(&self) -> RpcResult<Option<Fork>> {
        let meta =
            self.view.index.tip_state().read(StateKey::Meta(Meta::Genesis)).map_err(error::internal)?;
        genesis::fork_of(&meta.unwrap_or_default()).map_err(error::internal)
    }

    /// Tells chains apart that were started anew under the same id: their first blocks differ.
    fn instance_id(&self) -> RpcResult<B256> {
        let genesis: Option<Arc<IndexedBlock>> = self.view.index.block(0).map_err(error::internal)?;
        Ok(genesis.map_or(B256::ZERO, |genesis| keccak256(genesis.hash)))
    }
}
