//! What a block will certainly read, so that a store can fetch it in one go.

use alloy_consensus::Transaction as _;
use alloy_primitives::{Address, U256};
use almanac_primitives::{
    RecoveredTransaction, StateKey,
    addresses::{BLOCK_HASH_HISTORY, PARAMETERS},
    params::{BLOCK_HASH_HISTORY_LEN, PARAMETERS as ALL_PARAMETERS},
};

/// Keys that executing these transactions in block `number` reads. Not all it may read: the rest is found on
/// the way.
pub fn prefetch(number: u64, fee_recipient: Address, transactions: &[RecoveredTransaction]) -> Vec<StateKey> {
    let mut keys = Vec::with_capacity(16 + 2 * transactions.len());
    keys.extend([BLOCK_HASH_HISTORY, fee_recipient].map(StateKey::Account));
    let history_slot = number.saturating_sub(1) % BLOCK_HASH_HISTORY_LEN;
    keys.push(StateKey::Slot(BLOCK_HASH_HISTORY, U256::from(history_slot)));
    keys.extend(ALL_PARAMETERS.map(|parameter| StateKey::Slot(PARAMETERS, U256::from(parameter.slot))));
    for recovered in transactions {
        let tx = recovered.transaction().envelope();
        keys.push(StateKey::Account(recovered.sender()));
        keys.extend(tx.to().map(StateKey::Account));
        for item in tx.access_list().into_iter().flat_map(|list| &list.0) {
            keys.push(StateKey::Account(item.address));
            keys.extend(item.storage_keys.iter().map(|slot| StateKey::Slot(item.address, (*slot).into())));
        }
    }
    keys
}
