//! Keys that a block is about to read, so that a store can fetch them in parallel.
//!
//! What every block reads is known before it begins. Transactions are prefetched a step at a time: the accounts
//! of the next few with the first keys of their access lists, whether they are valid or not. The rest of an
//! access list is fetched when its transaction has passed the rules and therefore pays for each key.

use crate::choose::TransactionSource;
use alloy_primitives::{Address, U256};
use almanac_primitives::{
    RecoveredTransaction, StateKey, StateRead,
    addresses::{BLOCK_HASH_HISTORY, PARAMETERS},
    params::{BLOCK_HASH_HISTORY_LEN, PARAMETERS as ALL_PARAMETERS},
};

/// Transactions per step.
const STEP_TRANSACTIONS: usize = 128;

/// Keys of each access list that are fetched before its transaction has passed. Most lists are shorter.
const LIST_KEYS_AHEAD: usize = 8;

/// Keys that block `number` reads whatever it contains.
pub fn prefetch(number: u64, fee_recipient: Address) -> Vec<StateKey> {
    let history_slot = number.saturating_sub(1) % BLOCK_HASH_HISTORY_LEN;
    let accounts = [BLOCK_HASH_HISTORY, fee_recipient].map(StateKey::Account);
    let history = StateKey::Slot(BLOCK_HASH_HISTORY, U256::from(history_slot));
    let parameters = ALL_PARAMETERS.map(|parameter| StateKey::Slot(PARAMETERS, U256::from(parameter.slot)));
    accounts.into_iter().chain([history]).chain(parameters).collect()
}

/// Prefetches the keys of transactions a step ahead of their execution.
#[derive(Debug, Default)]
pub(crate) struct Lookahead {
    /// How many of the upcoming transactions have been prefetched.
    seen: usize,
}

impl Lookahead {
    /// Announces the keys of `next` and of those after it, unless an earlier step did.
    pub(crate) fn step(
        &mut self,
        state: &dyn StateRead,
        next: &RecoveredTransaction,
        source: &dyn TransactionSource,
    ) {
        if let Some(seen) = self.seen.checked_sub(1) {
            self.seen = seen;
            return;
        }
        let mut keys = Vec::with_capacity(2 * STEP_TRANSACTIONS);
        push_ahead(&mut keys, next);
        source.upcoming(&mut |transaction| {
            push_ahead(&mut keys, transaction);
            self.seen += 1;
            self.seen < STEP_TRANSACTIONS - 1
        });
        state.announce(&keys);
    }
}

/// Announces the remaining keys of a transaction that has passed the rules and will be executed.
pub(crate) fn announce_paid(state: &dyn StateRead, transaction: &RecoveredTransaction) {
    let rest = list_keys(transaction).skip(LIST_KEYS_AHEAD);
    let authorities = transaction.authorities().iter().flatten().copied().map(StateKey::Account);
    let keys: Vec<StateKey> = rest.chain(authorities).collect();
    if !keys.is_empty() {
        state.announce(&keys);
    }
}

fn push_ahead(keys: &mut Vec<StateKey>, transaction: &RecoveredTransaction) {
    keys.push(StateKey::Account(transaction.sender()));
    keys.extend(transaction.transaction().to().map(StateKey::Account));
    if let Some(native) = transaction.transaction().native() {
        let further = native.calls.iter().filter_map(|call| call.to).take(LIST_KEYS_AHEAD);
        keys.extend(further.chain(native.fee_payer).map(StateKey::Account));
        if transaction.transaction().is_orderless() {
            keys.push(StateKey::Nonce(native.sender, native.nonce));
        }
    }
    keys.extend(list_keys(transaction).take(LIST_KEYS_AHEAD));
}

/// The keys of an access list, in its order.
fn list_keys(transaction: &RecoveredTransaction) -> impl Iterator<Item = StateKey> + '_ {
    let list = transaction.transaction().access_list();
    list.into_iter().flat_map(|list| &list.0).flat_map(|item| {
        let slots = item.storage_keys.iter().map(|slot| StateKey::Slot(item.address, (*slot).into()));
        std::iter::once(StateKey::Account(item.address)).chain(slots)
    })
}
