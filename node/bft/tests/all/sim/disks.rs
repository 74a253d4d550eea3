//! Disks that fail, and crashes that tear what was being written.

use crate::sim::{
    disk::{Failure, Unsynced},
    faults::{Faults, good},
    marks::{Mark, Marks},
    network::Network,
    run::run,
    seconds,
};

#[test]
fn a_validator_whose_disk_fails_stops_and_comes_back() {
    for (failure, mark) in
        [(Failure::Once, Mark::FailedWrite), (Failure::Dead, Mark::FailedWrite), (Failure::Halt, Mark::Halt)]
    {
        let network = Network::new(4);
        let faults = Faults::default().disk(&network, 1, failure, 0, seconds(2)..seconds(5));
        let outcome = run(&network, 30, good(), faults, 30);
        outcome.marks.require(&[mark, Mark::Stopped]);
        let log = network.log.lock().unwrap();
        let by_it = log.iter().filter(|seen| seen.validator == 1 && (2_200..4_800).contains(&seen.at.0));
        assert_eq!(by_it.count(), 0, "{failure:?}: it made nothing final while it was down");
        let by_others = log.iter().filter(|seen| seen.validator == 0 && (2_200..4_800).contains(&seen.at.0));
        assert!(by_others.count() > 5, "{failure:?}: the others went on");
    }
}

/// A crash at each of the writes and syncs that a validator makes for a few blocks.
#[test]
fn a_crash_at_any_write_recovers() {
    let marks = Marks::default();
    for after in (0..16).step_by(2) {
        let network = Network { unsynced: Unsynced::Subset, ..Network::new(4) };
        let faults = (0..2).fold(Faults::default(), |faults, validator| {
            let start = seconds(1 + 2 * validator);
            let during = start..start + seconds(1);
            faults.disk(&network, validator as usize, Failure::Halt, after + validator, during)
        });
        marks.merge(&run(&network, 32, good(), faults, 20).marks);
    }
    marks.require(&[Mark::Halt, Mark::TornWrite]);
}

/// Nobody is left who could tell the others what they have lost.
#[test]
fn all_disks_torn_at_once_recover() {
    for unsynced in [Unsynced::Lost, Unsynced::Kept, Unsynced::Prefix, Unsynced::Subset] {
        let network = Network { unsynced, ..Network::new(4) };
        let faults = Faults::default().crash(&network, &[0, 1, 2, 3], seconds(3)..seconds(4));
        run(&network, 31, good(), faults, 40);
    }
}
