//! Proposers that lie: their blocks are refused, and nothing else suffers.

use crate::{
    faults::{Faults, good},
    liar::Lie,
    network::Network,
    run::run,
};

/// Runs a network with one liar. None of its blocks may become final.
fn refused(lie: Lie) {
    let liar = 2;
    let network = Network::new(4).lie(liar, lie);
    let outcome = run(&network, 10, good(), Faults::default(), 15);
    let told = *network.told.lock().unwrap();
    assert!(told >= 2, "{lie:?} was told {told} times");
    let of_liar =
        outcome.chain.iter().filter(|archived| network.proposer(&archived.block.header) == liar).count();
    assert_eq!(of_liar, 0, "{lie:?}");
}

#[test]
fn lies_about_roots_are_refused() {
    for lie in [Lie::StateRoot, Lie::OpsRoot, Lie::ReceiptsRoot] {
        refused(lie);
    }
}

#[test]
fn lies_about_gas_and_fees_are_refused() {
    for lie in [Lie::Gas, Lie::BaseFee, Lie::FeeRecipient] {
        refused(lie);
    }
}

#[test]
fn blocks_that_are_not_after_their_parents_are_refused() {
    for lie in [Lie::EqualTime, Lie::EarlyTime] {
        refused(lie);
    }
}

#[test]
fn bodies_that_are_not_what_headers_say_and_missing_proposals_do_no_harm() {
    for lie in [Lie::Body, Lie::Silence] {
        refused(lie);
    }
}

#[test]
fn conflicting_votes_do_no_harm() {
    run(&Network::new(4).lie(2, Lie::Votes), 11, good(), Faults::default(), 15);
    run(&Network::new(7).lie(2, Lie::Votes).lie(5, Lie::Votes), 12, good(), Faults::default(), 15);
}

/// The control: with more liars than a third, a lie becomes final, and an honest validator stops at it.
#[test]
#[should_panic(expected = "final blocks can be committed")]
fn three_liars_of_four_are_noticed() {
    let network = (1..4).fold(Network::new(4), |network, liar| network.lie(liar, Lie::StateRoot));
    run(&network, 13, good(), Faults::default(), 15);
}
