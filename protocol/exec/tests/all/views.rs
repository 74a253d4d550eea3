//! Due work shrinks where views fail, the same for whoever proposes and whoever verifies.

use crate::support::{contracts::*, runs::run, *};
use alloy_primitives::{Address, B256, address};
use almanac_exec::{Candidates, execute};
use almanac_primitives::{
    ConsensusContext, Lane,
    params::{BLOCK_GAS_MAX, CRON_BLOCK_GAS_MAX},
};

const NOWHERE: Address = address!("0x00000000000000000000000000000000000d0001");

fn after_failed_views(failed: u64) -> ConsensusContext {
    ConsensusContext { epoch: 0, view: 7 + failed, leader: B256::ZERO, parent_view: 6 }
}

/// Makes twenty runs of 5 M gas due, more than any block takes.
fn fill(chain: &mut TestChain) {
    let first = 20 * chain.blocks.len() as u64;
    let runs: Vec<_> =
        (first..first + 20).map(|id| run(id, Lane::Cron, NOWHERE, COUNTER, 5_000_000)).collect();
    chain.plant_runs(&runs);
}

/// How many runs of 5 M gas a block takes of a lane that is full of them.
fn runs_after(failed: u64, chain: &mut TestChain) -> usize {
    let mut input = chain.input();
    input.consensus = after_failed_views(failed);
    fill(chain);
    let output = chain.produce_with(&input, Vec::new()).output;
    output.receipts.iter().filter(|receipt| receipt.schedule_ref.is_some()).count()
}

/// Proposed, and verified from the header alone.
#[test]
fn arc21_17_due_work_halves_with_every_failed_view_beyond_the_first() {
    let mut genesis = genesis();
    for (parameter, value) in [(BLOCK_GAS_MAX, 120_000_000), (CRON_BLOCK_GAS_MAX, 60_000_000)] {
        genesis.parameters.insert(parameter.name.to_owned(), value);
    }
    let mut chain = TestChain::from_genesis(&genesis);
    let ran = [0, 1, 2, 3, 4, 5, 6, 70, u64::MAX - 7].map(|failed| runs_after(failed, &mut chain));
    assert_eq!(ran, [12, 12, 6, 3, 1, 1, 1, 1, 1]);
    assert_eq!(runs_after(0, &mut chain), 12, "the next block has the whole budget again");
}

/// Whoever writes other views into the header than the block was made in has other due work, and other roots.
#[test]
fn a_header_with_other_views_is_another_block() {
    let mut chain = TestChain::new();
    let mut input = chain.input();
    fill(&mut chain);
    input.consensus = after_failed_views(0);
    let built = execute(&chain.state, &*chain.agenda, &input, &mut Candidates::default()).unwrap();
    let mut next = chain.state.clone();
    next.apply(&built.diff);
    let honest = built.block(next.commitment());
    assert!(chain.verify(&honest).is_ok());
    let mut lie = honest;
    lie.header.consensus.view += 2;
    assert!(chain.verify(&lie).is_err(), "two failed views halve the budget");
}
