//! Orderless transactions that every validator holds in its pool for ever, whatever became of them.

use crate::sim::{
    faults::{Faults, Notice, good},
    marks::Mark,
    network::Network,
    run::run,
    seconds,
    troubles::restored_in,
};
use alloy_primitives::{Address, Bytes, TxHash, U256};
use almanac_consensus::Admission;
use almanac_mempool::SenderState;
use almanac_primitives::{
    Chain, NativeTransaction, RecoveredTransaction, TimestampMs, Wei,
    testing::{Person, native::*, person},
};
use almanac_state::ArchivedBlock;
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// How many there are.
const COUNT: u64 = 32;
/// Senders that they belong to.
const SENDERS: u64 = 4;
/// The time from one to the next: before, between and after what goes wrong.
const STEP_MS: u64 = 250;
/// They expire after the end of any run here, so that nothing but the history of nonces keeps them out.
const EXPIRATION: u64 = 55;
/// All are committed by then.
pub const ENDED_BY: TimestampMs = TimestampMs(COUNT * STEP_MS + 2_000);

/// Who sends the n-th: they have money and no client.
fn sender(nth: u64) -> Person {
    person(4 + nth % SENDERS)
}

/// All of them, signed for a chain.
pub fn signed(chain: &Chain) -> Arc<Vec<RecoveredTransaction>> {
    let sign = |nth| {
        let call = native_call(Address::repeat_byte(0xcd), 1, Bytes::new());
        let transaction = NativeTransaction {
            gas_limit: 100_000,
            ..orderless(sender(nth).address, nth, EXPIRATION, vec![call])
        };
        let signed = sign_native_on(chain, transaction, &[sender(nth).into()], &[]);
        RecoveredTransaction::recover(signed, chain).unwrap()
    };
    Arc::new((0..COUNT).map(sign).collect())
}

/// Puts all that exist by now into a pool, past the checks of submission.
pub fn add_again(transactions: &[RecoveredTransaction], admission: &Admission, now: Duration) {
    let count = usize::try_from(now.as_millis() as u64 / STEP_MS).unwrap();
    let rich = SenderState { balance: Wei(U256::MAX), ..SenderState::default() };
    for transaction in transactions.iter().take(count) {
        let _ = admission.pool().lock().insert(transaction.clone(), rich);
    }
}

/// `committed_once`: each of them is in one block.
pub fn check(chain: &[ArchivedBlock], transactions: &[RecoveredTransaction]) -> Result<(), String> {
    let mut blocks: BTreeMap<TxHash, Vec<u64>> = BTreeMap::new();
    for archived in chain {
        for transaction in archived.block.transactions.iter().filter(|one| one.is_orderless()) {
            blocks.entry(transaction.hash()).or_default().push(archived.block.header.number);
        }
    }
    for transaction in transactions {
        let found = blocks.remove(&transaction.hash()).unwrap_or_default();
        if found.len() != 1 {
            return Err(format!("orderless transaction {} is in blocks {found:?}", transaction.hash()));
        }
    }
    Ok(())
}

/// Several proposers, a restart of all of them, and a follower that copies the state. Its root has every nonce in it.
#[test]
fn orderless_02_nothing_is_committed_twice_by_many_proposers_and_restarts() {
    let network = Network::with_orderless(4).with_follower();
    let faults = Faults::default().crash(&network, &[0, 1, 2, 3], seconds(4)..seconds(6));
    let outcome = run(&network, 31, good(), faults, 30);
    assert_eq!((outcome.crashes, outcome.marks.count(Mark::Copied)), (4, 1));
    let of_orderless = |archived: &&ArchivedBlock| {
        archived.block.transactions.iter().any(|transaction| transaction.is_orderless())
    };
    let made = outcome.chain.iter().filter(of_orderless);
    let proposers: Vec<_> = made.map(|archived| network.proposer(&archived.block.header)).collect();
    assert!((0..4).all(|validator| proposers.contains(&validator)), "{proposers:?}");
}

/// A validator that starts on a snapshot of its directory, older than what it has committed.
#[test]
fn orderless_02_nothing_is_committed_twice_after_a_restored_snapshot() {
    let (network, faults) = restored_in(Network::with_orderless(4), Notice::Note);
    let outcome = run(&network, 32, good(), faults, 30);
    assert!(outcome.marks.count(Mark::Restored) >= 1);
}
