//! What goes wrong with machines, one at a time: slow disks and states, pauses, clocks, restored files, bad reads,
//! overload. And followers, votes, and long runs.

use crate::sim::{
    disk::Failure,
    faults::{Faults, Notice, good, lossy},
    liar::Lie,
    marks::Mark,
    network::Network,
    run::{LONG_HEIGHT, run},
    seconds,
};
use std::time::Duration;

/// How many blocks a validator made final in a time, in milliseconds.
fn made_final(network: &Network, validator: usize, during: std::ops::Range<u64>) -> usize {
    let log = network.log.lock().unwrap();
    log.iter().filter(|seen| seen.validator == validator && during.contains(&seen.at.0)).count()
}

/// Three blocks a second: they wait 700 ms in each fourth view, for the leader that does nothing.
fn assert_others_go_on(network: &Network) {
    let made = made_final(network, 0, 2_500..6_000);
    assert!(made >= 8, "the others made {made} blocks final in 3.5 s");
}

#[test]
fn a_slow_disk_slows_its_validator_and_not_the_others() {
    let network = Network::new(4);
    let faults = Faults::default().slow_disk(1, seconds(2)..seconds(6), 400);
    let outcome = run(&network, 40, good(), faults, 30);
    outcome.marks.require(&[Mark::SlowDisk]);
    assert_others_go_on(&network);
}

#[test]
fn a_process_that_stands_still_does_nothing_and_goes_on() {
    let network = Network::new(4);
    let faults = Faults::default().pause(1, seconds(2)..seconds(6));
    let outcome = run(&network, 41, good(), faults, 30);
    outcome.marks.require(&[Mark::Pause]);
    assert_eq!(made_final(&network, 1, 2_000..6_000), 0, "it stands still");
    assert_others_go_on(&network);
}

/// All at once: nobody can tell how long it was.
#[test]
fn a_network_that_stands_still_as_a_whole_goes_on() {
    let network = Network::new(4);
    let faults = (0..4).fold(Faults::default(), |faults, index| faults.pause(index, seconds(2)..seconds(9)));
    run(&network, 42, good(), faults, 30).marks.require(&[Mark::Pause]);
}

#[test]
fn clocks_that_jump_and_drift_do_no_harm() {
    for by in [-3_600_000, -1_800, 1_800, 3_600_000] {
        let network = Network::new(4);
        let faults = Faults::default().jump(1, seconds(2)..seconds(5), by).drift(2, 20_000, seconds(7));
        run(&network, 43, good(), faults, 30).marks.require(&[Mark::ClockJump, Mark::ClockDrift]);
    }
}

/// Blocks are executed twice at once; and where one validator is absent, every vote waits for a state that fails.
#[test]
fn states_that_are_slow_and_fail_for_a_moment_cost_no_verdict() {
    // Those who miss one ask it for some seconds whether they have voted before.
    for (lie, during) in [(Lie::None, seconds(1)..seconds(6)), (Lie::Absent, seconds(7)..seconds(12))] {
        let network = Network::new(4).lie(3, lie);
        let faults = (0..2)
            .fold(Faults::default(), |faults, validator| faults.slow_seals(validator, during.clone(), 150));
        run(&network, 53, good(), faults, 30).marks.require(&[Mark::SlowSeal, Mark::FailedSeal]);
    }
}

/// A read that gives other bytes than were written, once and always: the validator may stop, and lies to nobody.
#[test]
fn bytes_that_are_read_wrongly_are_noticed() {
    for failure in [Failure::Misread, Failure::Misreads] {
        let network = Network::new(4);
        let faults = Faults::default().disk(&network, 1, failure, 0, seconds(2)..seconds(6));
        run(&network, 44, good(), faults, 30).marks.require(&[Mark::Misread]);
        assert_others_go_on(&network);
    }
}

/// Forty transfers of each client at once, of which six fit into a block.
#[test]
fn more_transactions_than_fit_get_in_one_after_the_other() {
    let network = Network {
        transfers: 40,
        transfers_ahead: 40,
        transaction_time: Duration::from_millis(8),
        ..Network::new(4)
    };
    let outcome = run(&network, 45, good(), Faults::default(), 30);
    outcome.marks.require(&[Mark::Overload]);
    let most = outcome.chain.iter().map(|archived| archived.block.transactions.len()).max().unwrap();
    assert!(most <= 10, "{most} transactions in a block, and choosing ends after 50 ms");
}

#[test]
fn a_follower_copies_the_state_and_follows() {
    let network = Network::new(4).with_follower();
    let outcome = run(&network, 46, lossy(20), Faults::default(), 60);
    outcome.marks.require(&[Mark::Copied]);
    assert!(made_final(&network, 4, 0..100_000) > 10);
    let liar = Network::new(4).with_follower().lie(0, Lie::StateRoot);
    run(&liar, 47, good(), Faults::default(), 60).marks.require(&[Mark::Copied, Mark::BadAnswer]);
}

/// Validator 1 is cut off from the moment of its crash on, so that nobody tells it in time what it missed.
fn restored(notice: Notice) -> (Network, Faults) {
    restored_in(Network::new(4), notice)
}

pub fn restored_in(network: Network, notice: Notice) -> (Network, Faults) {
    let faults = Faults::default().partition(seconds(4)..seconds(9), &[1], &[0, 2, 3]).restore(
        &network,
        1,
        seconds(2),
        seconds(4)..seconds(5),
        notice,
    );
    (network, faults)
}

#[test]
fn a_validator_that_notes_an_older_copy_of_its_files_is_silent_first() {
    let (network, faults) = restored(Notice::Note);
    let marks = run(&network, 48, good(), faults, 60).marks;
    marks.require(&[Mark::Restored, Mark::Silent, Mark::VotedAgain]);
}

/// The same copy, with the note beside the key: all that it signed later is in views that are over by now.
#[test]
fn a_validator_on_an_older_copy_votes_after_the_newest_block() {
    let (network, faults) = restored(Notice::Peers);
    let marks = run(&network, 48, good(), faults, 60).marks;
    marks.require(&[Mark::Restored, Mark::Asked, Mark::VotesAfter]);
    assert_eq!(marks.count(Mark::Silent), 0);
}

/// Two and two do not hear each other, so validator 1 votes in a view that does not end. It starts again on an older
/// copy, note included, while 3 is away: the others need its vote in that view, and 0 has heard what it was.
#[test]
fn a_validator_on_an_older_copy_is_silent_where_a_peer_has_its_later_vote() {
    let network = Network::new(4);
    let faults = Faults::default()
        .partition(seconds(4)..seconds(8), &[0, 1], &[2, 3])
        .crash(&network, &[3], seconds(7)..seconds(20))
        .restore(&network, 1, seconds(2), seconds(6)..seconds(8), Notice::Peers);
    let marks = run(&network, 51, good(), faults, 60).marks;
    marks.require(&[Mark::Restored, Mark::Asked, Mark::Silent, Mark::VotedAgain]);
}

/// Validator 1 is away while the others go on, and comes back after 2 has failed: three of four are there.
#[test]
fn a_validator_that_was_away_is_not_waited_for_by_those_who_need_it() {
    let network = Network::new(4);
    let faults = Faults::default().crash(&network, &[1], seconds(2)..seconds(5)).crash(
        &network,
        &[2],
        seconds(4)..seconds(30),
    );
    let outcome = run(&network, 52, good(), faults, 60);
    let made = made_final(&network, 0, 12_000..30_000);
    assert!(made >= 30, "{made} blocks in 18 s with three of four");
    outcome.marks.require(&[Mark::Asked, Mark::VotesAfter]);
}

/// The control: without the silence, it signs again in views that it has signed in.
#[test]
#[should_panic(expected = "validator 1 signed two votes in view")]
fn a_validator_that_does_not_notice_an_older_copy_is_noticed() {
    let (network, faults) = restored(Notice::Nobody);
    run(&network, 48, good(), faults, 60);
}

/// The control: two validators with one key sign twice, and where they are not expected to, that is noticed.
#[test]
#[should_panic(expected = "signed two votes in view")]
fn two_votes_with_one_key_are_noticed() {
    let network = Network { trusts_everyone: true, ..Network::new(4).lie(2, Lie::Twins) };
    run(&network, 49, good(), Faults::default(), 30);
}

#[test]
fn a_chain_past_the_borders_of_its_files_goes_on() {
    let outcome = run(&Network::new(4), 50, good(), Faults::default(), LONG_HEIGHT);
    outcome.marks.require(&[Mark::LateCrash]);
    assert!(outcome.chain.len() > 1_100);
}

/// The one that lies goes on with the block from the future, and so does the one who made it. Had the others voted for
/// it, they would wait for its time now, an hour.
#[test]
fn a_clock_far_ahead_stops_nobody_beside_one_that_lies() {
    for lie in [Lie::BaseFee, Lie::EarlyTime, Lie::ReorderRuns] {
        let mut network = Network::new(4);
        network.lies[1] = lie;
        let faults = Faults::default().jump(2, seconds(1)..seconds(6), 3_600_000);
        run(&network, 47, good(), faults, 30).marks.require(&[Mark::ClockJump]);
    }
}
