//! Every error names what was wrong, and what to do.

use super::{chain, command, refusal};
use crate::support::{
    cron::{COUNTER, REVERTER, TARGET, set_code},
    *,
};
use std::net::TcpListener;

/// CLI-05: what cannot be done exactly, or not by this key, is refused before anything is sent.
#[test]
fn cli_05_errors_name_what_was_wrong_and_what_to_do() {
    let node = chain();
    set_code(&node, COUNTER);
    let at = |when: &str, more: &str| {
        format!("schedule at \"{when}\" --to {TARGET} --data 0xd09de08a --dev-account 0 {more}")
    };
    let every = |rhythm: &str, more: &str| {
        format!("schedule every \"{rhythm}\" --to {TARGET} --data 0xd09de08a --dev-account 0 {more}")
    };
    let height = node.height();
    for (line, expected) in [
        (at("2026-12-01 09:00", "--yes"), "NoTimeZone: \"2026-12-01 09:00\" names no time zone: add UTC"),
        (at("2026-12-01", "--yes"), "NoTimeOfDay"),
        (at("in 2 months", "--yes"), "LengthVaries: a month has no fixed length: name the date"),
        (at("soon", "--yes"), "TimeUnclear: \"soon\" is no time: write"),
        (
            at("2020-01-01 09:00 UTC", "--yes"),
            "TimeNotInFuture: 2020-01-01 09:00 UTC is not after the chain's time",
        ),
        (
            at("2026-12-01T09:00:00.5Z", "--yes"),
            "TimeNotExact: 2026-12-01 09:00:00.500 UTC cannot be kept exactly",
        ),
        (
            at("2099-01-01 09:00 UTC", "--yes"),
            "OrderRefused: 4070941200 (2099-01-01T09:00:00.000Z) is later than",
        ),
        (at("in 2 hours", ""), "NotConfirmed: nobody can answer here: pass --yes to send it, or --dry-run"),
        (
            at("in 2 hours", "--value 5 --yes"),
            "NoValue: a run of the cron door sends no value: use --door market",
        ),
        (at("in 2 hours", "--bid 5gwei --yes"), "FlagOfAnotherDoor: --bid"),
        (
            format!("schedule at \"in 2 hours\" --to {TARGET} --dev-account 0 --yes"),
            "NoMethod: a cron job calls a method, and this one has 0 bytes of data: pass --method",
        ),
        (at("in 2 hours", "--gas 5 --yes"), "OrderRefused: gas limit 5 is not in 21000..=5000000"),
        (
            at("in 2 hours", "--escrow 5 --yes"),
            "OrderRefused: 5 wei were sent, and one run at the current base fee costs",
        ),
        (at("in 2 hours", "--door callback --yes"), "has not allowed it: call setScheduler"),
        (
            at("in 2 hours", "--priority low --yes"),
            "FlagOfAnotherDoor: --priority is of the callback door, not of cron",
        ),
        (every("month on the 1st at 09:00 UTC", "--yes"), "NoEnd: this becomes one schedule for each run"),
        (
            every("month on the 31st at 09:00 UTC, 3 times", "--yes"),
            "DayNotInEveryMonth: not every month has a day 31",
        ),
        (
            every("day at 09:00 UTC", "--yes"),
            "NoEscrow: a series without an end runs until its escrow is empty: pass --escrow",
        ),
        (
            every("10 seconds, 3 times", "--yes"),
            "OrderRefused: an interval of 10 s is neither 0 (one run) nor at least 60 s",
        ),
        (every("day at 09:00 UTC", "--door market --yes"), "NoEnd"),
        ("schedule show 9-9-9".to_owned(), "UnknownSchedule: there is no schedule 9-9-9: list them"),
        ("schedule show nine".to_owned(), "is neither of the form 1042-3-0 nor a number"),
        ("schedule cancel 9-9-9 --dev-account 0 --yes".to_owned(), "UnknownSchedule"),
        ("account".to_owned(), "whose account? give an address, --key"),
        (
            "account --key nobody --keystore /nonexistent/keys".to_owned(),
            "UnknownKey: there is no key \"nobody\"",
        ),
    ] {
        let said = refusal(&command(&node, &line));
        assert!(said.contains(expected), "{line}: {said}");
        assert!(said.starts_with("almanac: ") && said.lines().count() == 1, "{line}: {said}");
    }
    let mistyped = "0x70997970C51812dc3A010C7d01b50e0d17dc79C7";
    let said = refusal(&command(&node, &at("in 2 hours", "--yes").replace(TARGET, mistyped)));
    assert!(said.contains(&format!("WrongChecksum: {mistyped}")), "{said}");
    assert_eq!(node.height(), height, "nothing was sent");
    set_code(&node, REVERTER);
    let said = refusal(&command(&node, &at("in 2 hours", "--yes")));
    assert!(said.contains("GasUnknown: the call fails now"), "{said}");
    let output = command(&node, &at("2026-12-24 18:00 UTC", "--gas 50000 --yes"));
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("the run fails: execution reverted"),
        "{output:?}"
    );
    let foreign = refusal(&command(&node, "schedule cancel 4-1-0 --dev-account 1 --yes"));
    assert!(foreign.contains("NotOwner: schedule 4-1-0 belongs to 0xf39fd6e5"), "{foreign}");
    node.result("evm_increaseTime", serde_json::json!([40 * 86_400]));
    let late = refusal(&command(&node, "schedule cancel 4-1-0 --dev-account 0 --yes"));
    assert!(late.contains("AlreadyEnded: schedule 4-1-0 is failed"), "{late}");
    let watched = refusal(&command(&node, "schedule watch 4-1-0"));
    assert!(watched.contains("the last run failed"), "{watched}");
}

/// CLI-06: without a node, every command says how to get one.
#[test]
fn cli_06_a_missing_node_is_named() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{free}");
    for words in
        [&["agenda"][..], &["schedule", "list"], &["top", "--once"], &["account", "--dev-account", "0"]]
    {
        let said = refusal(&run(&[words, &["--rpc", &url]].concat()));
        assert!(
            said.contains(&format!("NoNode: {free} does not answer as a node: start one with `almanac dev`")),
            "{said}"
        );
    }
}
