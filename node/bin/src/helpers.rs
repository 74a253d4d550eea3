//! Contracts that tools expect on every chain, in the genesis of a developer chain and on request in that of a network.

use alloy_primitives::{Address, Bytes, address, bytes};
use almanac_primitives::{Genesis, Wei, genesis::Allocation};
use serde::Deserialize;

/// The deployer through which tools create contracts at addresses that depend on their code alone (CREATE2).
pub(crate) const CREATE2_DEPLOYER: Address = address!("0x4e59b44847b379578588920cA78FbF26c0B4956C");

/// Its code: CREATE2 with the first word of the calldata as salt and the rest as init code.
const CREATE2_DEPLOYER_CODE: Bytes = bytes!(
    "0x7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe03601600081602082378035828234f58015156039578182fd5b8082525050506014600cf3"
);

/// Where clients look for a contract that makes many calls at once.
pub(crate) const MULTICALL3: Address = address!("0xcA11bde05977b3631167028862bE2a173976CA11");

/// `contracts/Multicall.sol`, compiled.
const MULTICALL_ARTIFACT: &str = include_str!("../../../contracts/artifacts/Multicall.json");

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Artifact {
    deployed_bytecode: Bytes,
}

/// Adds them to a genesis.
pub(crate) fn add(genesis: &mut Genesis) {
    let artifact: Artifact = serde_json::from_str(MULTICALL_ARTIFACT).expect("contracts/build wrote it");
    let contract = |code| Allocation { balance: Wei::ZERO, nonce: 1, code, ..Allocation::default() };
    genesis.allocations.insert(CREATE2_DEPLOYER, contract(CREATE2_DEPLOYER_CODE));
    genesis.allocations.insert(MULTICALL3, contract(artifact.deployed_bytecode));
}
