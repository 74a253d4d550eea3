//! State before and after each transaction, laid end to end, is the state before and after the block.

use crate::support::*;
use alloy_primitives::{Address, B256, Bytes, TxKind, U256, keccak256, map::HashSet};
use alloy_rpc_types_trace::{
    geth::{
        AccountState, DiffMode, GethDebugBuiltInTracerType, GethDebugTracingOptions, GethTrace,
        PreStateConfig, PreStateFrame,
    },
    parity::{ChangedType, Delta, StateDiff, TraceType},
};
use almanac_index::{IndexConfig, IndexedBlock};
use almanac_primitives::{
    Lane, StateKey, StateRead as _, UserTransaction, testing::native::orderless_transfer,
};
use almanac_trace::{CallTraces, GethTracer, Replays};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Height before the eventful block: its schedules are made in one of their own.
const PARENT: u64 = 1;

/// A block with something of everything: two transactions on one slot, creations, destructions, delegations.
fn eventful() -> (Chain, Arc<IndexedBlock>) {
    let chain = Chain::new();
    let heir = Address::with_last_byte(0x77);
    let signed = |from: u64, nonce, to, value, input: Bytes| -> UserTransaction {
        sign(eip1559(nonce, to, value, input, 400_000), person(from).secret)
    };
    let transactions = vec![
        call(person(0), 0, COUNTER, vec![], 100_000),
        call(person(0), 1, COUNTER, vec![], 100_000),
        signed(1, 0, TxKind::Call(Address::with_last_byte(0x99)), 12, Bytes::new()),
        signed(1, 1, TxKind::Create, 3, deploy(&[0x60, 1])),
        signed(1, 2, TxKind::Call(CREATOR), 4, deploy(&[0x00])),
        signed(2, 0, TxKind::Call(CREATOR), 5, born_to_die(heir)),
        signed(2, 1, TxKind::Call(CREATOR), 6, born_to_burn()),
        signed(2, 2, TxKind::Call(FORWARDER), 0, to(REVERTER, &[])),
        signed(3, 0, TxKind::Call(WRITER), 0, words(4, 10)),
        signed(3, 1, TxKind::Call(CLEARER), 0, words(2, 10)),
        sign(eip7702(0, COUNTER, vec![authorize(person(5), 0, COUNTER)], 200_000), person(4).secret),
        call(person(4), 1, person(5).address, vec![], 100_000),
    ];
    let runs =
        vec![run(1, Lane::Reserved, COUNTER, vec![], 100_000), run(2, Lane::Cron, BURNER, vec![], 60_000)];
    let block = chain.produce(transactions, runs);
    assert_eq!(block.number(), PARENT + 1);
    (chain, block)
}

fn prestate(config: PreStateConfig) -> GethTracer {
    let options = GethDebugTracingOptions::new_tracer(GethDebugBuiltInTracerType::PreStateTracer);
    GethTracer::new(options.with_prestate_config(config)).unwrap()
}

fn diffs(chain: &Chain, block: &IndexedBlock) -> Vec<DiffMode> {
    let tracer = prestate(PreStateConfig { diff_mode: Some(true), ..Default::default() });
    let traces = chain.all(block, &tracer);
    traces
        .into_iter()
        .map(|trace| match trace {
            GethTrace::PreStateTracer(PreStateFrame::Diff(diff)) => diff,
            other => panic!("no diff: {other:?}"),
        })
        .collect()
}

/// An account as far as it was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Seen {
    balance: U256,
    nonce: u64,
    code: Bytes,
    storage: BTreeMap<B256, U256>,
}

#[test]
fn differences_lead_from_the_parent_to_the_block() {
    let (chain, block) = eventful();
    let mut accounts = BTreeMap::<Address, Seen>::new();
    let diffs = diffs(&chain, &block);
    assert_eq!(diffs.len(), block.receipts.len());
    for (index, diff) in diffs.iter().enumerate() {
        for (address, before) in &diff.pre {
            let now = accounts.entry(*address).or_insert_with(|| stored(&chain, PARENT, *address));
            check_before(&chain, *address, now, before, index);
        }
        for address in diff.pre.keys().filter(|address| !diff.post.contains_key(*address)) {
            accounts.insert(*address, Seen::default());
        }
        for (address, after) in &diff.post {
            let now = accounts.entry(*address).or_insert_with(|| stored(&chain, PARENT, *address));
            let was = diff.pre.get(address).cloned().unwrap_or_default();
            apply(now, &was, after);
        }
    }
    for (address, now) in &accounts {
        let expected = stored(&chain, PARENT + 1, *address);
        assert_eq!((now.balance, now.nonce), (expected.balance, expected.nonce), "{address}");
        assert_eq!(now.code, expected.code, "{address}");
        for (slot, value) in &now.storage {
            assert_eq!(*value, chain.slot(PARENT + 1, *address, *slot), "{address} {slot}");
        }
    }
    // Whoever sent or received something is among them, and so is what the prologue wrote.
    let history = almanac_primitives::addresses::BLOCK_HASH_HISTORY;
    let someone = [person(0).address, person(9).address, FEE_RECIPIENT, COUNTER, WRITER, history];
    let changed = someone.map(|address| accounts.contains_key(&address));
    assert_eq!(changed, [true, false, true, true, true, true], "the run's sender paid nothing");
    assert_eq!(accounts[&history].storage.values().next(), Some(&block.block.header.parent_hash.into()));
}

fn stored(chain: &Chain, height: u64, address: Address) -> Seen {
    let Some(account) = chain.account(height, address) else { return Seen::default() };
    let code = chain.code(height, account.code_hash);
    Seen { balance: account.balance, nonce: account.nonce, code, storage: BTreeMap::new() }
}

/// What a diff says of an account before is what the diffs before it left.
fn check_before(chain: &Chain, address: Address, now: &mut Seen, before: &AccountState, index: usize) {
    assert!(before.balance.is_none_or(|balance| balance == now.balance), "{index} {address}");
    assert!(before.nonce.is_none_or(|nonce| nonce == now.nonce), "{index} {address}");
    assert!(before.code.as_ref().is_none_or(|code| *code == now.code), "{index} {address}");
    for (slot, value) in &before.storage {
        let known = now.storage.entry(*slot).or_insert_with(|| chain.slot(PARENT, address, *slot));
        assert_eq!(*known, U256::from_be_bytes(value.0), "{index} {address} {slot}");
    }
}

fn apply(now: &mut Seen, before: &AccountState, after: &AccountState) {
    now.balance = after.balance.unwrap_or(now.balance);
    now.nonce = after.nonce.unwrap_or(now.nonce);
    // The before side has all fields, the after side those that changed.
    now.code = after.code.clone().unwrap_or_else(|| std::mem::take(&mut now.code));
    // A slot that is zero afterwards is left out of the after side.
    for slot in before.storage.keys() {
        now.storage.insert(*slot, U256::ZERO);
    }
    for (slot, value) in &after.storage {
        now.storage.insert(*slot, U256::from_be_bytes(value.0));
    }
}

/// Two shapes, one truth.
#[test]
fn both_families_of_tools_hear_the_same() {
    let (chain, block) = eventful();
    let types = HashSet::from_iter([TraceType::StateDiff, TraceType::Trace]);
    let replays = chain.all(&block, &Replays { types });
    for (index, (replay, diff)) in replays.iter().zip(diffs(&chain, &block)).enumerate() {
        let told = replay.state_diff.as_ref().unwrap();
        assert_eq!(changed_balances(told), changed_balances_of(&diff), "{index}");
        let slots: usize = told.values().map(|account| account.storage.len()).sum();
        let both = diff.pre.iter().chain(&diff.post);
        let expected: BTreeSet<_> = both
            .flat_map(|(address, account)| account.storage.keys().map(move |slot| (address, slot)))
            .collect();
        assert_eq!(slots, expected.len(), "{index}");
    }
}

fn changed_balances(diff: &StateDiff) -> BTreeMap<Address, U256> {
    let balances = diff.iter().filter_map(|(address, account)| match &account.balance {
        Delta::Changed(ChangedType { to, .. }) | Delta::Added(to) => Some((*address, *to)),
        Delta::Unchanged | Delta::Removed(_) => None,
    });
    balances.filter(|(_, balance)| !balance.is_zero()).collect()
}

fn changed_balances_of(diff: &DiffMode) -> BTreeMap<Address, U256> {
    let balances = diff.post.iter().filter_map(|(address, account)| Some((*address, account.balance?)));
    balances.collect()
}

/// Without the diff mode, a transaction can be run again on nothing but its pre-state; here it is compared with
/// what the index knows.
#[test]
fn a_prestate_is_the_state_before() {
    let (chain, block) = eventful();
    let tracer = prestate(PreStateConfig::default());
    let GethTrace::PreStateTracer(PreStateFrame::Default(first)) = chain.one(&block, &tracer, 3) else {
        panic!("no prestate");
    };
    // Receipt 3 is the first signed transaction, behind the prologue and two runs that do not touch its sender.
    let sender = &first.0[&person(0).address];
    assert_eq!(sender.balance, Some(chain.account(0, person(0).address).unwrap().balance));
    let code = first.0[&COUNTER].code.clone().unwrap();
    assert_eq!(keccak256(&code), chain.account(0, COUNTER).unwrap().code_hash);
    assert!(first.0[&COUNTER].storage.values().all(|value| value.is_zero()), "not counted yet");
    let GethTrace::PreStateTracer(PreStateFrame::Default(second)) = chain.one(&block, &tracer, 4) else {
        panic!("no prestate");
    };
    assert_eq!(second.0[&person(0).address].nonce, Some(1));
    let counted = second.0[&COUNTER].storage.values().map(|value| U256::from_be_bytes(value.0));
    assert_eq!(counted.collect::<Vec<_>>(), [U256::from(1)], "what came before in the same block is there");
}

/// A block is traced as it was although the index has forgotten which nonces were free before it.
#[test]
fn orderless_06_old_blocks_are_traced_without_their_nonces() {
    let chain = Chain::with_config(IndexConfig { nonce_depth: 2, ..IndexConfig::archive() });
    // Long enough for entries to be collected, by blocks that are traced.
    let blocks: Vec<_> = (0..200)
        .map(|nonce| {
            let expiration = chain.index.tip().block.header.timestamp.seconds() + 40;
            chain
                .produce(vec![orderless_transfer(person(0), nonce, expiration, person(9).address, 1)], vec![])
        })
        .collect();
    let taken = |height: u64| {
        let key = StateKey::Nonce(person(0).address, 190);
        chain.index.state_at(height).unwrap().read(key).unwrap().is_some()
    };
    assert_eq!([chain.index.height() - 3, chain.index.height()].map(taken), [false, true]);
    for block in blocks.iter().step_by(20) {
        // Compared with the stored receipts.
        assert!(!chain.all(block, &CallTraces).is_empty());
    }
}
