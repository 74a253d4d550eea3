//! The index of a forked chain, against a plain map of every block's state.

use crate::support::keeping;
use alloy_primitives::{Address, Bytes, U256};
use almanac_index::{HistoricalState, Index};
use almanac_primitives::{
    Block, Header, Origin, StateChange, StateDiff, StateKey, StateRead, StateReadError,
};
use proptest::{collection::vec, option, prelude::*};
use std::sync::Arc;

const KEYS: u8 = 4;
type Values = Vec<Option<Bytes>>;

/// Accounts and slots, in turn.
fn key(n: u8) -> StateKey {
    let address = Address::repeat_byte(0x70 + n / 2);
    if n.is_multiple_of(2) { StateKey::Account(address) } else { StateKey::Slot(address, U256::ZERO) }
}

fn value(n: u8) -> Bytes {
    vec![n; 3].into()
}

struct Below(Values);

impl StateRead for Below {
    fn read(&self, wanted: StateKey) -> Result<Option<Bytes>, StateReadError> {
        Ok((0..KEYS).find(|n| key(*n) == wanted).and_then(|n| self.0[usize::from(n)].clone()))
    }
}

fn read(state: &HistoricalState) -> Values {
    (0..KEYS).map(|n| state.read(key(n)).unwrap()).collect()
}

/// Adds a block that sets and removes values; answers with what the state is then.
fn grow(index: &Index, before: &Values, writes: &[(u8, Option<u8>)]) -> Values {
    let mut after = before.clone();
    for (n, new) in writes {
        after[usize::from(*n)] = new.map(value);
    }
    let at = |values: &Values, n: u8| values[usize::from(n)].clone();
    let change = |n| StateChange { key: key(n), old: at(before, n), new: at(&after, n) };
    let parent = index.tip();
    let header =
        Header { number: parent.number() + 1, parent_hash: parent.hash, ..parent.block.header.clone() };
    let block = Arc::new(Block { header, transactions: Vec::new() });
    let diff = StateDiff::new((0..KEYS).map(change).collect());
    index.apply(&block, &[], Vec::new(), &[], &diff).unwrap();
    after
}

proptest! {
    /// Whatever blocks write and remove over an origin, and however often they are taken back, each height has its state.
    #[test]
    fn fork_08_every_height_of_a_fork_has_its_state(
        below in vec(option::of(1..4u8), usize::from(KEYS)),
        rounds in vec((vec(vec((0..KEYS, option::of(1..4u8)), 0..4), 0..5), 0..6usize), 1..4),
    ) {
        let below: Values = below.into_iter().map(|at| at.map(value)).collect();
        let origin = Origin::new(Below(below.clone()));
        let index = Index::in_memory(keeping(u64::MAX), Header::default(), []).unwrap().over(origin);
        let mut states = vec![below];
        for (blocks, back) in rounds {
            for writes in &blocks {
                let after = grow(&index, states.last().unwrap(), writes);
                states.push(after);
            }
            states.truncate((states.len() - back.min(states.len() - 1)).max(1));
            index.revert_to(states.len() as u64 - 1).unwrap();
            for (height, expected) in (0..).zip(&states) {
                prop_assert_eq!(&read(&index.state_at(height).unwrap()), expected, "at {}", height);
            }
            let listed = index.tip_accounts().unwrap();
            prop_assert!(listed.iter().all(|(_, value)| !value.is_empty()), "no mark is shown");
        }
    }
}
