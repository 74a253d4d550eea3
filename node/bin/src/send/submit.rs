//! Sends the calls of another command as one orderless transaction, all or nothing.

use super::{
    draft::Draft,
    fill::{EXPIRES_IN, Source},
    outcome,
};
use crate::{client::node::NodeArgs, secret_file};
use almanac_primitives::{NativeCall, NativeTransaction, keys::SecretKey, native::Kind};
use serde_json::{Value, json};

/// The receipt of the calls. An error if the node refuses them, or if one of them failed.
pub(crate) fn submit(node: &NodeArgs, key: &SecretKey, calls: Vec<NativeCall>) -> anyhow::Result<Value> {
    let source = Source::Node(node);
    let (chain, sender) = (source.chain()?, key.leaf().account());
    let priority_fee = source.priority_fee()?;
    let mut transaction = NativeTransaction {
        chain_id: chain.id,
        sender,
        kind: Kind::Orderless,
        nonce: u64::from_be_bytes(secret_file::random()?),
        max_priority_fee_per_gas: priority_fee,
        max_fee_per_gas: source.max_fee(priority_fee)?,
        gas_limit: 0,
        expiration: source.now()?.saturating_add(EXPIRES_IN.0 / 1_000),
        calls,
        fee_payer: None,
        signatures: Vec::new(),
        fee_payer_signatures: Vec::new(),
    };
    transaction.gas_limit = source.gas(&transaction)?;
    let mut draft = Draft { chain, transaction };
    draft.sign(key, None)?;
    let (encoded, hash) = draft.encoded()?;
    node.ask("eth_sendRawTransaction", &json!([encoded]))?;
    let receipt = outcome::wait(node, hash)?;
    outcome::check(&receipt)?;
    Ok(receipt)
}
