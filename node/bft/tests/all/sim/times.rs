//! Proposers and voters whose clocks are wrong.

use crate::sim::{
    clock::Skew,
    faults::{Faults, good},
    liar::Lie,
    network::Network,
    run::{Outcome, run},
};

/// Height of every run.
const HEIGHT: u64 = 24;

/// Runs a network and checks that no validator with a right clock made a block final before its time.
fn run_by_clocks(network: &Network, seed: u64) -> Outcome {
    let outcome = run(network, seed, good(), Faults::default(), HEIGHT);
    for seen in network.log.lock().unwrap().iter() {
        if network.clocks[seen.validator] == Skew::Offset(0) {
            let latest = seen.at.0 + network.time.tolerance.0;
            assert!(seen.block_time.0 <= latest, "{seen:?} came from the future");
        }
    }
    outcome
}

fn blocks_of(network: &Network, outcome: &Outcome, proposer: usize) -> usize {
    outcome.chain.iter().filter(|archived| network.proposer(&archived.block.header) == proposer).count()
}

/// When the validators made their last block final.
fn ended_at(network: &Network) -> u64 {
    network.log.lock().unwrap().iter().map(|seen| seen.at.0).max().unwrap()
}

#[test]
fn a_proposer_an_hour_ahead_loses_its_turns_and_no_more() {
    let network = Network::new(4).proposer_clock(3, Skew::Offset(3_600_000));
    let outcome = run_by_clocks(&network, 20);
    assert_eq!(blocks_of(&network, &outcome, 3), 0);
    let last = outcome.chain.last().unwrap().block.header.timestamp.0;
    assert!(last <= ended_at(&network), "the chain's time did not jump");
}

#[test]
fn a_proposer_within_the_tolerance_is_not_waited_for() {
    let network = Network::new(4).proposer_clock(3, Skew::Offset(400));
    let outcome = run_by_clocks(&network, 21);
    assert!(blocks_of(&network, &outcome, 3) >= 3);
}

#[test]
fn a_proposer_a_little_beyond_the_tolerance_is_waited_for() {
    let network = Network::new(4).proposer_clock(3, Skew::Offset(900));
    let outcome = run_by_clocks(&network, 22);
    assert!(blocks_of(&network, &outcome, 3) >= 3, "its blocks become final when their time has come");
}

/// It delays due work in its own turns alone: the next one catches up.
#[test]
fn a_proposer_that_holds_time_back_is_overtaken_by_the_next() {
    let network = Network::new(4).proposer_clock(3, Skew::Frozen);
    let outcome = run_by_clocks(&network, 23);
    assert!(blocks_of(&network, &outcome, 3) >= 3);
    let mut parent = network.genesis_header.clone();
    for archived in &outcome.chain {
        let header = &archived.block.header;
        let step = header.timestamp.0 - parent.timestamp.0;
        if network.proposer(header) == 3 {
            assert_eq!(step, 1, "block {}", header.number);
        } else {
            assert!(step >= network.time.block_time.0 - 1, "block {} came {step} ms later", header.number);
        }
        parent = header.clone();
    }
    let behind = ended_at(&network) - parent.timestamp.0;
    assert!(behind < 1_000, "the chain is {behind} ms behind the clocks");
}

#[test]
fn clocks_two_seconds_apart_from_the_others_do_no_harm() {
    let network = Network::new(4).clock(0, Skew::Offset(2_000)).clock(1, Skew::Offset(-2_000));
    run_by_clocks(&network, 24);
    assert!(ended_at(&network) < 60_000, "{} ms for {HEIGHT} blocks", ended_at(&network));
}

/// No three of them agree about the time within the tolerance.
#[test]
fn clocks_that_are_split_in_the_middle_slow_the_network_and_do_not_stop_it() {
    let network = Network::new(4)
        .clock(0, Skew::Offset(2_000))
        .clock(1, Skew::Offset(2_000))
        .clock(2, Skew::Offset(-2_000))
        .clock(3, Skew::Offset(-2_000));
    run_by_clocks(&network, 25);
    assert!(ended_at(&network) < 120_000, "{} ms for {HEIGHT} blocks", ended_at(&network));
}

/// The fourth is no help, so the other three must be together in a view to make a block final. The one that is late
/// comes after the one with the right clock, which has gone on by then.
fn late_among_three(behind: i64) -> Network {
    Network::new(4).lie(3, Lie::Votes).clock(1, Skew::Offset(-behind))
}

#[test]
fn a_clock_behind_by_less_than_the_certification_timeout_slows_a_network_that_needs_it() {
    let network = late_among_three(2_100);
    run_by_clocks(&network, 26);
    // At first the others wait 5 s for validator 3, which does not answer whether they may vote.
    assert!(ended_at(&network) < 65_000, "{} ms for {HEIGHT} blocks", ended_at(&network));
}

/// The control: further behind, it gives each view up just before it may vote, and is as good as down.
#[test]
#[should_panic(expected = "runtime timeout")]
fn a_clock_behind_by_more_than_the_certification_timeout_stops_a_network_that_needs_it() {
    run_by_clocks(&late_among_three(2_250), 26);
}
