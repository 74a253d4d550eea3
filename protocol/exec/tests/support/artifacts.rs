//! Contracts of `contracts/`, as npm's solc compiled them.

use super::{Person, TestChain, eip1559, sign};
use alloy_primitives::{Address, TxKind, U256, hex};
use almanac_primitives::Outcome;

/// Deploys one with its constructor's arguments.
pub fn deploy(chain: &mut TestChain, from: Person, name: &str, value: U256, arguments: &[u8]) -> Address {
    let path = format!("{}/../../contracts/artifacts/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let file: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let mut code = hex::decode(file["bytecode"].as_str().unwrap()).unwrap();
    code.extend_from_slice(arguments);
    let mut tx = eip1559(chain.nonce(from.address), TxKind::Create, 0, code, 6_000_000);
    tx.value = value;
    let receipt = chain.produce(vec![sign(tx, from.secret)]).receipt(0).clone();
    assert_eq!(receipt.outcome, Outcome::Success, "{name}");
    receipt.contract_address.unwrap()
}
