//! Transactions by sender and nonce, against a linear scan.

use alloy_primitives::{Address, Bytes};
use almanac_index::{Direction, Index, IndexConfig, Location, Parties, RevertError, Sent};
use almanac_primitives::{
    Block, Gas, GasPrice, Header, Lane, Outcome, Receipt, RunTransaction, ScheduleId, ScheduleRef,
    StateChange, StateDiff, StateKey, StateRead as _, TimestampMs, UserTransaction, Wei,
    native::NATIVE_TYPE,
    run::{PROLOGUE_TYPE, RUN_TYPE},
    testing::{Person, native::*, person, transfer},
};
use proptest::{collection::vec, prelude::*};
use std::sync::Arc;

/// What runs in a block, in order.
#[derive(Clone, Copy, Debug)]
enum Action {
    /// Somebody signs, this many nonces further than the last time.
    Sign { who: u64, skipped: u64 },
    /// Somebody signs an orderless batch, which takes no sequence number. Its calls may share a target, and one may
    /// be the sender.
    Batch { who: u64, targets: [u64; 3], count: usize },
    /// A run of somebody, which takes no nonce.
    Run { who: u64 },
}

fn any_action() -> impl Strategy<Value = Action> {
    let skipped = prop_oneof![4 => Just(0u64), 1 => 1..3u64];
    prop_oneof![
        2 => (0..3u64, skipped).prop_map(|(who, skipped)| Action::Sign { who, skipped }),
        1 => (0..3u64, [0..4u64, 0..4, 0..4], 1..4usize)
            .prop_map(|(who, targets, count)| Action::Batch { who, targets, count }),
        1 => (0..3u64).prop_map(|who| Action::Run { who }),
    ]
}

#[derive(Default)]
struct Made {
    nonces: [u64; 3],
    found: Vec<(Address, u64, Sent)>,
}

fn apply(index: &Index, actions: &[Action], made: &mut Made) {
    let tip = index.tip();
    let number = tip.number() + 1;
    let header =
        Header { number, parent_hash: tip.hash, timestamp: TimestampMs(number), ..Header::default() };
    let (mut transactions, mut receipts) = (Vec::new(), vec![receipt(PROLOGUE_TYPE, Default::default())]);
    let mut parties = vec![Parties { from: Address::ZERO, to: Some(Address::ZERO), run: None }];
    for action in actions {
        let location = Location { number, index: receipts.len() };
        match *action {
            Action::Sign { who, skipped } => {
                let nonce = &mut made.nonces[who as usize];
                let from: Person = person(who);
                let signed: UserTransaction = transfer(from, *nonce + skipped, person(9).address, 1);
                made.found.push((from.address, *nonce + skipped, Sent { location, hash: signed.hash() }));
                *nonce += skipped + 1;
                receipts.push(receipt(2, signed.hash()));
                parties.push(Parties { from: from.address, to: Some(person(9).address), run: None });
                transactions.push(signed);
            }
            Action::Batch { who, targets, count } => {
                let from = person(who);
                let calls = targets[..count].iter().map(|to| native_call(person(*to).address, 1, vec![]));
                let nonce = 1_000 * number + receipts.len() as u64;
                let signed = orderless(from.address, nonce, 60, calls.collect());
                let signed = sign_native(signed, &[from.into()]);
                receipts.push(receipt(NATIVE_TYPE, signed.hash()));
                parties.push(Parties { from: from.address, to: signed.to(), run: None });
                transactions.push(signed);
            }
            Action::Run { who } => {
                let run = run(person(who).address, number, receipts.len() as u64);
                receipts.push(receipt(RUN_TYPE, run.hash()));
                parties.push(Parties { from: run.from, to: Some(run.to), run: Some(run) });
            }
        }
    }
    let block = Arc::new(Block { header, transactions });
    index.apply(&block, &receipts, parties, &[], &StateDiff::default()).unwrap();
}

fn receipt(transaction_type: u8, transaction_hash: alloy_primitives::TxHash) -> Receipt {
    Receipt {
        transaction_type,
        transaction_hash,
        outcome: Outcome::Success,
        gas_used: Gas(21_000),
        cumulative_gas_used: Gas(21_000),
        effective_gas_price: GasPrice(1),
        contract_address: None,
        failed_call: None,
        schedule_ref: None,
        logs: Vec::new(),
    }
}

fn run(from: Address, schedule: u64, number: u64) -> RunTransaction {
    RunTransaction {
        schedule_ref: ScheduleRef { schedule: ScheduleId(schedule), number },
        lane: Lane::Cron,
        from,
        to: person(9).address,
        value: Wei::ZERO,
        input: Default::default(),
        gas_limit: Gas(50_000),
        gas_price: GasPrice(7),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn transactions_by_nonce_as_by_a_linear_scan(blocks in vec(vec(any_action(), 0..5), 0..12)) {
        let index = Index::in_memory(IndexConfig::default(), Header::default(), []).unwrap();
        let mut made = Made::default();
        for actions in &blocks {
            apply(&index, actions, &mut made);
        }
        for who in 0..4 {
            let sender = person(who).address;
            for nonce in (0..made.nonces.get(who as usize).map_or(2, |next| next + 2)).chain([u64::MAX]) {
                let expected = made.found.iter().find(|(from, given, _)| *from == sender && *given == nonce);
                let found = index.signed_with_nonce(sender, nonce).unwrap();
                prop_assert_eq!(found, expected.map(|(_, _, sent)| *sent), "{} {}", who, nonce);
            }
        }
    }
}

/// Whoever a native transaction calls takes part in it once, however many of its calls share a target. The row of such a
/// target was written twice, which ended the node: every transaction with one call has its target as its recipient.
#[test]
fn orderless_01_targets_of_native_calls_take_part_once() {
    let index = Index::in_memory(IndexConfig::default(), Header::default(), []).unwrap();
    let batch = |targets, count| Action::Batch { who: 0, targets, count };
    let actions = [batch([1, 0, 0], 1), batch([1, 1, 2], 3), batch([0, 1, 0], 3)];
    apply(&index, &actions, &mut Made::default());
    let places = |who| {
        let all = Location::first_of(0)..=Location::last_of(9);
        let found =
            index.transactions_involving(person(who).address, &all, Direction::Ascending, 10).unwrap();
        found.iter().map(|sent| sent.location.index).collect::<Vec<_>>()
    };
    assert_eq!([places(0), places(1), places(2)], [vec![1, 2, 3], vec![1, 2, 3], vec![2]]);
}

/// A chain can be reverted as far as its nonces are kept, and reads what they were then.
#[test]
fn orderless_06_reverts_restore_nonces_as_far_as_they_are_kept() {
    let config = IndexConfig { nonce_depth: 3, ..IndexConfig::archive() };
    let index = Index::in_memory(config, Header::default(), []).unwrap();
    let key = StateKey::Nonce(person(0).address, 7);
    let value = |n: u64| (n > 0).then(|| Bytes::from(n.to_be_bytes().to_vec()));
    let add = |number: u64| {
        let tip = index.tip();
        let header =
            Header { number, parent_hash: tip.hash, timestamp: TimestampMs(number), ..Header::default() };
        let block = Arc::new(Block { header, transactions: Vec::new() });
        let diff = StateDiff::new(vec![StateChange { key, old: value(number - 1), new: value(number) }]);
        index.apply(&block, &[], Vec::new(), &[], &diff).unwrap();
    };
    let read = |height| index.state_at(height).unwrap().read(key).unwrap();
    (1..=10).for_each(add);
    assert_eq!([6, 7, 8, 10].map(read), [None, value(7), value(8), value(10)]);
    assert!(matches!(index.revert_to(6), Err(RevertError::Pruned { given: 6, oldest: 7 })));
    index.revert_to(8).unwrap();
    assert_eq!([6, 7, 8].map(read), [None, value(7), value(8)]);
    add(9);
    index.revert_to(7).unwrap();
    assert_eq!(index.tip_state().read(key).unwrap(), value(7));
}
