//! A client that schedules a job and sends transfers to one validator until they are final.

use crate::{jobs, machine::Machine, opened::Store};
use alloy_primitives::{Address, U256};
use almanac_bft::Ledger;
use almanac_consensus::Admission;
use almanac_primitives::{
    Account, StateKey, UserTransaction,
    testing::{person, transfer},
};
use almanac_state::StateView as _;
use commonware_runtime::Clock as _;
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// Gets the transfers of all clients, so that one transfer lost or done twice shows in its balance.
pub const RECEIVER: Address = Address::repeat_byte(0xcc);

/// Transfers that a client has under way.
const AHEAD: u64 = 3;

/// What arrives when each client has sent so many transactions: the first schedules a job, and each transfer of the
/// n-th client is worth n + 1.
pub fn expected_balance(clients: impl Iterator<Item = usize>, transactions: u64) -> U256 {
    clients.map(|client| U256::from((client as u64 + 1) * (transactions - 1))).sum()
}

pub async fn run(
    context: Machine,
    index: usize,
    admission: Admission,
    ledger: Arc<Ledger<Store>>,
    transactions: u64,
) {
    let sender = person(index as u64);
    let mut signed: BTreeMap<u64, UserTransaction> = BTreeMap::new();
    loop {
        // What time it is, a chain can tell from its first block on.
        if ledger.tip().header.number > 0
            && let Some(account) = account(&ledger, sender.address).await
        {
            for nonce in account.nonce..(account.nonce + AHEAD).min(transactions) {
                let transaction = signed.entry(nonce).or_insert_with(|| match nonce {
                    0 => jobs::schedule(sender, nonce, ledger.tip().header.timestamp),
                    _ => transfer(sender, nonce, RECEIVER, index as u64 + 1),
                });
                // Known already, most of the time.
                let _ = admission.submit(transaction.encoded());
            }
        }
        context.sleep(Duration::from_millis(150)).await;
    }
}

/// An account after the last final block. `None` where the chain moves on while it is read.
pub async fn account(ledger: &Ledger<Store>, address: Address) -> Option<Account> {
    let stored = ledger.tip().state.get_many(&[StateKey::Account(address)]).await.ok()?.remove(0);
    Some(stored.map_or_else(Account::default, |bytes| Account::decode(&bytes).unwrap()))
}
