//! Proposers that lie: their blocks are refused, and nothing else suffers.

use crate::sim::{
    faults::{Faults, good},
    liar::Lie,
    marks::Mark,
    network::Network,
    run::{Outcome, run},
    seconds,
};

/// Runs a network with one liar. Where it lies in all of its turns, none of its blocks may become final.
fn refused(lie: Lie) {
    let network = Network::new(4).lie(LIAR, lie);
    let outcome = told(&network, lie);
    assert_eq!(of_liar(&network, &outcome), 0, "{lie:?}");
}

const LIAR: usize = 2;

fn told(network: &Network, lie: Lie) -> Outcome {
    let outcome = run(network, 10, good(), Faults::default(), 15);
    let told = outcome.marks.count(Mark::Told(lie));
    assert!(told >= 1, "{lie:?} was told {told} times");
    outcome
}

fn of_liar(network: &Network, outcome: &Outcome) -> usize {
    outcome.chain.iter().filter(|archived| network.proposer(&archived.block.header) == LIAR).count()
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

/// Views decide how much due work a block holds, so a leader must not choose them.
#[test]
fn lies_about_views_are_refused() {
    refused(Lie::Views);
}

#[test]
fn bodies_that_are_not_what_headers_say_and_missing_proposals_do_no_harm() {
    for lie in [Lie::Body, Lie::Silence] {
        refused(lie);
    }
}

#[test]
fn conflicting_votes_do_no_harm() {
    for network in [Network::new(4).lie(2, Lie::Votes), Network::new(7).lie(2, Lie::Votes).lie(5, Lie::Votes)]
    {
        let outcome = run(&network, 11, good(), Faults::default(), 15);
        outcome.marks.require(&[Mark::Evidence]);
    }
}

/// All roots are those of what it executed, and it executed something else than what is due.
#[test]
fn due_runs_that_are_dropped_repeated_or_reordered_are_refused() {
    for lie in [Lie::DropRun, Lie::RepeatRun, Lie::ReorderRuns] {
        told(&Network::new(4).lie(LIAR, lie), lie);
    }
}

/// Those who got a block pass it on to those who did not, once it is certified.
#[test]
fn blocks_that_are_withheld_from_some_do_no_harm() {
    let network = Network::new(4).lie(LIAR, Lie::Withhold);
    let outcome = told(&network, Lie::Withhold);
    assert!(of_liar(&network, &outcome) > 0, "some became final without having reached everyone");
}

/// A header names its body by a root. Whoever kept a block under its header alone would keep a body that nobody
/// executed, and could never commit it.
#[test]
fn other_bodies_under_the_header_of_a_true_block_do_no_harm() {
    let network = Network::new(4).lie(LIAR, Lie::OtherBody);
    let outcome = told(&network, Lie::OtherBody);
    assert!(of_liar(&network, &outcome) > 0, "those who got the true body made some of them final");
}

/// The control: with more liars than a third, a lie becomes final, and an honest validator stops at it.
#[test]
#[should_panic(expected = "cannot be committed")]
fn three_liars_of_four_are_noticed() {
    let network = (1..4).fold(Network::new(4), |network, liar| network.lie(liar, Lie::StateRoot));
    run(&network, 13, good(), Faults::default(), 15);
}

/// The control: two of four that vote for whatever each of the others wants to hear make two chains final.
#[test]
#[should_panic(expected = "fork detected at height 1")]
fn two_of_four_that_vote_twice_make_a_fork_that_is_noticed() {
    let network = Network::new(4).lie(2, Lie::Sides).lie(3, Lie::Sides);
    let apart = Faults::default().partition(seconds(0)..seconds(100), &[0], &[1]);
    run(&network, 14, good(), apart, 15);
}
