//! `almanac_getAccount`: an account with its key.

use crate::{
    error,
    view::{View, slot},
};
use alloy_primitives::{Address, Bytes};
use almanac_index::HistoricalState;
use almanac_primitives::{
    Account, StateKey, StateRead as _,
    addresses::ACCOUNTS,
    keys::{KeyRecord, KeyTree, Leaf},
};
use jsonrpsee::core::RpcResult;
use serde::Serialize;

/// An account after the last block. Numbers are decimal: this is the shape of REST.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RpcAccount {
    address: Address,
    sequence_number: String,
    balance: String,
    /// The bytes of its key tree.
    key: Bytes,
    /// How often its key was changed.
    rotation: String,
    /// Whether the chain has no record of it.
    stateless: bool,
}

/// An account after the last block.
pub(super) fn read(view: &View, address: Address) -> RpcResult<RpcAccount> {
    let state = view.state_only(None)?;
    let stored = state.read(StateKey::Account(address)).map_err(error::internal)?;
    let stateless = stored.is_none();
    let account = stored.map_or_else(|| Ok(Account::default()), |bytes| Account::decode(&bytes));
    let Account { nonce, balance, .. } = account.map_err(error::internal)?;
    let (key, rotation) = key(&state, address)?;
    Ok(RpcAccount {
        address,
        sequence_number: nonce.to_string(),
        balance: balance.to_string(),
        key,
        rotation: rotation.to_string(),
        stateless,
    })
}

/// The key of an account, and how often it was changed; as `keyOf` of the accounts contract answers.
fn key(state: &HistoricalState, address: Address) -> RpcResult<(Bytes, u64)> {
    let word = slot(state, ACCOUNTS, KeyRecord::slot(address))?;
    let record = KeyRecord::from_word(word).map_err(error::internal)?;
    let key = match record.key {
        Some(_) => {
            let stored = state.read(StateKey::AccountKey(address)).map_err(error::internal)?;
            stored.ok_or_else(|| error::internal(format!("the key of {address} is missing")))?
        }
        None => KeyTree::single(Leaf::Secp256k1(address)).encoded().clone(),
    };
    Ok((key, record.rotation))
}
