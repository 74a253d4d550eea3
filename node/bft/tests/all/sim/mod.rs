//! Whole networks in the deterministic simulator: the real application, state, archive, pool, gossip and engine.
//!
//! `ALMANAC_SIM_SEED` chooses one seed, `ALMANAC_SIM_SEEDS` how many are run of each campaign; see `docs/testing.md`.
#![allow(clippy::disallowed_methods, reason = "the seed comes from the environment")]
#![allow(unreachable_pub, reason = "modules of a test")]

mod accuser;
mod answers;
mod blob;
mod book;
mod campaigns;
mod client;
mod clock;
mod copy;
mod disk;
mod disks;
mod draw;
mod durable;
mod false_answers;
mod faults;
mod host;
mod jobs;
mod liar;
mod lies;
mod line;
mod machine;
mod market;
mod marks;
mod names;
mod network;
mod node;
mod numbers;
mod opened;
mod orderless;
mod orders;
mod properties;
mod run;
mod scenario;
mod signed;
mod tamper;
mod times;
mod troubles;
mod twins;
mod votes;
mod wire;
mod witness;
mod work;

use almanac_bft::{Finality, FinalityError, Namespace};
use almanac_primitives::testing::{person, recovered};
use almanac_state::ArchivedBlock;
use commonware_utils::test_rng;
use faults::{Faults, good, lossy};
use network::Network;
use run::run;
use std::time::Duration;

/// A number from the environment.
fn setting(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name} is a number, not {value:?}")))
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn four_validators_agree_on_transfers() {
    let network = Network::new(4);
    let outcome = run(&network, 1, good(), Faults::default(), 30);
    let (own, passed_on) = transfers_by_proposer(&network, &outcome.chain);
    assert_eq!(own + passed_on, 80);
    assert_eq!(jobs::check(&outcome.chain), Ok(4 * 3), "each client's job has run three times");
    assert!(passed_on > 40, "{passed_on} of 80 transfers reached another validator than their client's");
    let certified = outcome.chain.iter().filter(|archived| archived.certificate.is_some()).count();
    assert_eq!(certified, outcome.chain.len(), "without faults every block has its own certificate");
    let again = run(&Network::new(4), 1, good(), Faults::default(), 30);
    assert_eq!(again.digest, outcome.digest);
    assert_eq!(again.chain, outcome.chain);
}

/// Whoever has the genesis can check it, and nothing else passes.
#[test]
fn headers_and_a_certificate_show_that_a_block_is_final() {
    let network = Network::new(4);
    let chain = run(&network, 6, good(), Faults::default(), 10).chain;
    let finality = |numbers: std::ops::RangeInclusive<usize>, certified: usize| Finality {
        headers: numbers.map(|number| chain[number - 1].block.header.clone()).collect(),
        certificate: chain[certified - 1].certificate.clone().unwrap(),
    };
    let verify = |finality: &Finality| {
        let shown = finality.verify(&network.validators, &network.namespace, &mut test_rng());
        shown.map(|(header, _)| header.number)
    };
    assert_eq!(verify(&finality(5..=5, 5)).unwrap(), 5);
    assert_eq!(verify(&finality(3..=6, 6)).unwrap(), 3, "a later certificate covers what is below");

    assert!(matches!(verify(&finality(5..=5, 6)), Err(FinalityError::OtherBlock { .. })));
    assert!(matches!(verify(&finality(5..=7, 6)), Err(FinalityError::OtherBlock { .. })));
    let mut gap = finality(3..=6, 6);
    gap.headers.remove(1);
    assert!(matches!(verify(&gap), Err(FinalityError::NotLinked { number: 5 })));
    let mut other = finality(5..=5, 5);
    other.headers[0].gas_used.0 += 1;
    assert!(matches!(verify(&other), Err(FinalityError::OtherBlock { .. })));
    assert!(matches!(
        verify(&Finality { headers: Vec::new(), ..finality(5..=5, 5) }),
        Err(FinalityError::Empty)
    ));

    let whole = finality(5..=5, 5);
    for position in 0..whole.certificate.len() {
        let mut bytes = whole.certificate.to_vec();
        bytes[position] ^= 1;
        let forged = Finality { certificate: bytes.into(), ..whole.clone() };
        assert!(verify(&forged).is_err(), "byte {position} of the certificate");
    }
    let elsewhere = Namespace(network.genesis_header.parent_hash);
    assert!(whole.verify(&network.validators, &elsewhere, &mut test_rng()).is_err(), "another chain");
    let strangers = Network::new(7).validators;
    assert!(whole.verify(&strangers, &network.namespace, &mut test_rng()).is_err(), "other validators");
}

/// Transfers that the validator of their client proposed, and those that another one did.
fn transfers_by_proposer(network: &Network, chain: &[ArchivedBlock]) -> (usize, usize) {
    let (mut own, mut passed_on) = (0, 0);
    for archived in chain {
        let proposer = network.proposer(&archived.block.header);
        for transaction in &archived.block.transactions {
            let sender = recovered(transaction.clone()).sender();
            if !(0..network.keys.len() as u64).any(|client| sender == person(client).address) {
                continue;
            }
            let is_own = sender == person(proposer as u64).address;
            *(if is_own { &mut own } else { &mut passed_on }) += 1;
        }
    }
    (own, passed_on)
}

#[test]
fn one_validator_alone_makes_blocks() {
    let outcome = run(&Network::new(1), 1, good(), Faults::default(), 30);
    assert!(outcome.chain.len() >= 30);
}

#[test]
fn a_network_without_a_quorum_waits_and_goes_on() {
    let network = Network::new(4);
    let faults = Faults::default().partition(seconds(2)..seconds(8), &[0, 1], &[2, 3]);
    let outcome = run(&network, 2, lossy(50), faults, 30);
    let times = outcome.chain.iter().map(|archived| archived.block.header.timestamp.0);
    let gap = times.clone().zip(times.skip(1)).map(|(a, b)| b - a).max().unwrap();
    assert!(gap > 5_000, "the partition of 6 s shows as a gap of {gap} ms");
}

#[test]
fn a_validator_that_crashed_catches_up() {
    let network = Network::new(4);
    let faults = Faults::default().crash(&network, &[1], seconds(2)..seconds(7));
    let outcome = run(&network, 3, good(), faults, 50);
    assert_eq!(outcome.crashes, 1);
}

#[test]
fn a_network_that_crashed_as_a_whole_goes_on() {
    let network = Network::new(4);
    let faults = Faults::default().crash(&network, &[0, 1, 2, 3], seconds(3)..seconds(5));
    let outcome = run(&network, 4, good(), faults, 50);
    assert_eq!(outcome.crashes, 4);
}

#[test]
fn a_validator_that_hears_and_is_not_heard_does_no_harm() {
    let network = Network::new(4);
    let faults = Faults::default().cut(seconds(1)..seconds(6), &[2], &[0, 1, 3]);
    run(&network, 5, good(), faults, 30);
}
