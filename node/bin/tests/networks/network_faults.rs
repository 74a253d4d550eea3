//! Faults of real processes under load. The chain stays one, and goes on.
//!
//! `ALMANAC_FAULT_ROUNDS` repeats them all (once without it).

use crate::support::{
    audit::audit,
    faults::{FAULTS, go_on, strike},
    load::Load,
    machine,
    network::{Network, VALIDATORS},
};

const BLOCK_TIME_MS: u64 = 200;

#[test]
fn one_two_and_all_fail_under_load() {
    machine::alone();
    let rounds = std::env::var("ALMANAC_FAULT_ROUNDS").map_or(1, |text| text.parse().expect("a number"));
    let mut net = Network::start(BLOCK_TIME_MS);
    let load = Load::start(net.nodes.iter().map(|node| node.address.clone()));
    go_on(&net, &[], 3);
    for round in 0..rounds {
        for (index, fault) in FAULTS.iter().enumerate() {
            // Another one each time, so that each is a leader, a voter and a victim.
            let one = (round + index) % VALIDATORS;
            strike(&mut net, fault, &[one]);
            strike(&mut net, fault, &[one, (one + 1) % VALIDATORS]);
        }
        strike(&mut net, &FAULTS[0], &[0, 1, 2, 3]);
    }
    let clients = load.stop();
    audit(&net.nodes, &clients);
    for node in &mut net.nodes {
        node.signal("-TERM");
        assert!(node.wait().success(), "a validator stops in good order");
    }
}
