//! Keys of transactions are fetched a step at a time, and only those that somebody pays for.

use crate::support::{contracts::*, *};
use alloy_consensus::TxEip2930;
use alloy_eips::eip2930::{AccessList, AccessListItem};
use alloy_primitives::{Address, Bytes, U256, address};
use almanac_exec::{BlockBody, Candidates, Rules, TransactionError, TransactionSource, execute, recover_all};
use almanac_primitives::{Block, Gas, Header, StateKey, StateRead, StateReadError, UserTransaction};
use std::cell::RefCell;

const NOWHERE: Address = address!("0x00000000000000000000000000000000000d0001");

/// Counts what is announced.
struct Announced<'a> {
    state: &'a MapState,
    batches: RefCell<Vec<usize>>,
}

impl StateRead for Announced<'_> {
    fn read(&self, key: StateKey) -> Result<Option<Bytes>, StateReadError> {
        self.state.read(key)
    }

    fn announce(&self, keys: &[StateKey]) {
        self.batches.borrow_mut().push(keys.len());
    }
}

const LIST_KEYS: u64 = 3_800;

/// A transaction with a long access list, all of which it pays for.
fn with_list(from: Person, nonce: u64) -> UserTransaction {
    let slots = (0..LIST_KEYS).map(|slot| U256::from(slot).into()).collect();
    let list = AccessList(vec![AccessListItem { address: COUNTER, storage_keys: slots }]);
    let tx: TxEip2930 = eip2930(nonce, NOWHERE, list, 7_400_000);
    sign(tx, from.secret)
}

fn announced(source: &mut dyn TransactionSource) -> Vec<usize> {
    let chain = TestChain::new();
    let state = Announced { state: &chain.state, batches: RefCell::default() };
    execute(&state, &*chain.agenda, &chain.input(), source).unwrap();
    state.batches.into_inner()
}

/// A block has gas for four. What the others ask for is not fetched, beyond its first keys.
#[test]
fn only_the_lists_of_what_is_executed_are_fetched() {
    let people: Vec<_> = (0..10).map(person).collect();
    let offered: Vec<_> = (0..300).map(|n| recovered(with_list(people[n % 10], (n / 10) as u64))).collect();
    let batches = announced(&mut Candidates::new(offered));
    let lists = batches.iter().filter(|keys| **keys > 2_000).count();
    assert_eq!(lists, 4, "30 M gas hold four: {batches:?}");
    assert!(batches.iter().all(|keys| *keys <= LIST_KEYS as usize + 1), "{batches:?}");
    let rest: usize = batches.iter().filter(|keys| **keys <= 2_000).sum();
    assert!(rest <= 300 * 10, "{rest} keys for what is refused");
}

/// Nobody pays for what is refused, so none of its list is fetched beyond the first keys.
#[test]
fn a_refused_transaction_fetches_no_list() {
    let offered = (0..100).map(|n| recovered(with_list(person(n % 10), 7 + n))).collect();
    let batches = announced(&mut Candidates::new(offered));
    assert!(batches.iter().sum::<usize>() <= 100 * 10, "{batches:?}");
    let body = (0..4).map(|nonce| recovered(with_list(person(0), nonce))).collect();
    let batches = announced(&mut BlockBody::new(body));
    assert_eq!(batches.iter().filter(|keys| **keys > 2_000).count(), 4, "a body's are: {batches:?}");
}

/// Both sides: as much as could be in a block is recovered, and a body that asks for more is refused at once.
#[test]
fn a_body_that_no_block_can_hold_is_refused_before_anything_is_recovered() {
    let rules = Rules { chain: CHAIN, gas_max: Gas(30_000_000), is_developer: false };
    let body: Vec<_> = (0..6).map(|nonce| with_list(person(0), nonce)).collect();
    assert_eq!(recover_all(&body[..5], &rules).unwrap().len(), 5, "a fifth of the gas may be given back");
    let (index, error) = recover_all(&body, &rules).unwrap_err();
    assert!(index == 5 && matches!(error, TransactionError::DoesNotFit { .. }), "{index}: {error}");
    let chain = TestChain::new();
    let header = chain.head.clone();
    let block = Block { header: Header { number: 1, ..header }, transactions: body };
    assert!(chain.verify(&block).unwrap_err().contains("does not fit"));
}
