//! A validator that turns hostile, and strangers without a key: the other validators go on.
#![allow(unreachable_pub, reason = "parts of one test")]

mod flood;
mod line;
mod messages;
mod strangers;
mod watch;

use crate::support::{faults::go_on, network::*, *};
use alloy_consensus::TxLegacy;
use alloy_primitives::Bytes;
use almanac_primitives::{Header, testing};
use flood::{Flood, Manner, Source};
use line::{Enemy, Victim};
use messages::{BACKFILL, BLOCKS, RESOLVER, STATE, STATE_MAX, TRANSACTIONS, VOTES, all, garbage};
use serde_json::json;
use std::{sync::atomic::Ordering::SeqCst, thread::sleep, time::Duration};
use strangers::Strangers;
use watch::Watch;

const BLOCK_TIME_MS: u64 = 300;

/// Transactions of 100 KB that fill a block or two: as dear for an unoptimised build as full ones for another.
const LARGE: u64 = 8;

/// Messages of each flood that every victim reads at least.
const TAKEN_MIN: u64 = 8;

/// How long each flood lasts.
const FLOOD: Duration = Duration::from_millis(2_500);

/// One of four has its key in the hands of the test, which speaks the real protocol with it.
#[test]
fn a_hostile_validator_and_strangers_stop_nobody() {
    machine::alone();
    let mut net = Network::direct(BLOCK_TIME_MS);
    agree_at(&net.nodes, 2);
    let large = fill_blocks(&net);
    let enemy = take_over(&mut net, 3);
    let absent_from = tip(&net).consensus.view + 4;
    go_on(&net, &[3], 8);
    let tip = tip(&net);
    let votes = messages::votes(&enemy, absent_from..tip.consensus.view);
    let calm = Flood::start(&enemy, Manner::Calm, votes.clone());
    sleep(Duration::from_secs(2));
    let mut watch = Watch::start(&net.nodes[..3], LARGE, 2 * FLOOD);
    calm.stop();
    let (votes_max, blocks_max) = (messages::votes_max(&enemy), messages::blocks_max(&enemy));
    let floods: Vec<(&str, Source)> = vec![
        ("votes", votes),
        ("certificates", messages::certificates(&certificates(&net))),
        ("missing certificates", all(messages::missing(RESOLVER, votes_max, messages::views()))),
        ("missing blocks", all(messages::missing(BACKFILL, blocks_max, messages::heights(large.clone())))),
        ("blocks", all(vec![messages::blocks(), garbage(BLOCKS, blocks_max)])),
        ("worthless transactions", messages::transactions()),
        ("other transactions", all(messages::other_transactions())),
        ("questions for the state", all(vec![messages::questions(&tip), garbage(STATE, STATE_MAX)])),
    ];
    let together = all(floods.iter().map(|(_, source)| source.clone()).collect());
    let deaf = all(vec![messages::heights(large), messages::questions(&tip)]);
    for (name, source) in floods {
        flood(&net, &mut watch, &enemy, name, Flood::start(&enemy, Manner::Wild, source));
    }
    flood(&net, &mut watch, &enemy, "all together", Flood::start(&enemy, Manner::Wild, together));
    flood(
        &net,
        &mut watch,
        &enemy,
        "questions of one that is deaf",
        Flood::start(&enemy, Manner::Deaf, deaf),
    );
    bother(&mut net, &mut watch, &enemy);
    is_as_before(&mut net, &mut watch);
    is_cut_off(&mut net, &mut watch, &enemy);
    watch.end();
}

/// Two votes for one view, to each of the others: they keep both, count them, and anyone can check them.
#[test]
fn conflicting_votes_are_kept_as_evidence() {
    machine::alone();
    let mut net = Network::direct(BLOCK_TIME_MS);
    agree_at(&net.nodes, 2);
    let enemy = take_over(&mut net, 3);
    let evidence = |index: usize| {
        let shown = run(&["network", "evidence", "--config", &net.configs[index]]);
        assert!(shown.status.success(), "{shown:?}");
        String::from_utf8(shown.stdout).unwrap()
    };
    assert!(evidence(0).starts_with("this node has received no"), "{}", evidence(0));
    let view = tip(&net).consensus.view;
    let votes = messages::conflicting_votes(&enemy, view + 3..view + 63);
    let flood = Flood::start(&enemy, Manner::Wild, votes);
    for index in 0..3 {
        let shown = wait_for("evidence", || Some(evidence(index)).filter(|shown| shown.starts_with("v3 ")));
        assert!(
            shown.contains("signed conflicting votes: view ") && !shown.contains("no evidence"),
            "{shown}"
        );
        let counted = page(&net.nodes[index].address, "/metrics").unwrap();
        let counted = counted.lines().filter(|line| line.starts_with("almanac_conflicting_votes_total"));
        assert!(counted.clone().any(|line| line.contains("validator=\"v3\"")), "{:?}", counted.count());
        assert!(net.log(index).contains("validator v3 signed conflicting votes"), "{}", net.log(index));
    }
    flood.stop();
    go_on(&net, &[3], 3);
}

/// Makes some blocks of megabytes, and answers with their heights.
fn fill_blocks(net: &Network) -> Vec<u64> {
    let large = |nonce| {
        let transfer = testing::legacy(nonce, BOB.parse().unwrap(), 1);
        let transaction = TxLegacy { gas_limit: 1_100_000, input: vec![0; 100_000].into(), ..transfer };
        testing::sign(transaction, ALICE_KEY.parse().unwrap())
    };
    let hashes: Vec<_> = (0..LARGE).map(|nonce| net.nodes[0].send(&large(nonce))["result"].clone()).collect();
    let mut heights: Vec<u64> =
        hashes.iter().map(|hash| number(&net.nodes[0].receipt(hash)["blockNumber"])).collect();
    heights.dedup();
    heights
}

/// Ends a validator and takes its key.
fn take_over(net: &mut Network, index: usize) -> Enemy {
    net.nodes[index].signal("-TERM");
    assert!(net.nodes[index].wait().success());
    let genesis = net.nodes[0].result("eth_getBlockByNumber", json!(["0x0", false]));
    Enemy::of(&net.configs[index], genesis["hash"].as_str().unwrap().parse().unwrap())
}

/// The newest block of the first validator.
fn tip(net: &Network) -> Header {
    let finality =
        net.nodes[0].result("almanac_getFinality", json!([format!("{:#x}", net.nodes[0].height())]));
    let header: Bytes = finality["headers"][0].as_str().unwrap().parse().unwrap();
    Header::decode(&header).unwrap()
}

/// What a quorum signed about each block so far.
fn certificates(net: &Network) -> Vec<Bytes> {
    let signed = |height: u64| {
        let finality = net.nodes[0].result("almanac_getFinality", json!([format!("{height:#x}")]));
        finality["certificate"].as_str().unwrap().parse().unwrap()
    };
    (1..net.nodes[0].height()).map(signed).collect()
}

/// Lets a flood do its work, and sees that the others do theirs.
fn flood(net: &Network, watch: &mut Watch, enemy: &Enemy, name: &str, flood: Flood) {
    let received = || [0, 1, 2].map(|index| messages_received(&net.nodes[index], enemy));
    let before = received();
    let taken =
        || -> Vec<u64> { before.iter().zip(received()).map(|(before, after)| after - before).collect() };
    wait_for("way in for the enemy", || taken().iter().all(|count| *count > 0).then_some(()));
    watch.check(&net.nodes[..3], name, FLOOD);
    let (sent, taken) = (flood.stop(), taken());
    println!("{:<32} {taken:?} messages, {} MB", "", sent.bytes.load(SeqCst) >> 20);
    assert!(taken.iter().all(|count| *count >= TAKEN_MIN), "{name}: {taken:?} messages came through");
}

/// Messages of the enemy that a validator has read so far.
fn messages_received(node: &Node, enemy: &Enemy) -> u64 {
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", node.address);
    let (page, key) = (exchange(&node.address, request.as_bytes()), enemy.name());
    let counters =
        page.lines().filter(|line| line.contains("messages_received_total") && line.contains(&key));
    counters.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

/// Strangers call from many addresses, and meanwhile a validator has to find the others again.
fn bother(net: &mut Network, watch: &mut Watch, enemy: &Enemy) {
    let strangers = Strangers::call(enemy.victims.iter().map(|victim| victim.address));
    sleep(Duration::from_secs(1));
    watch.check(&net.nodes[..3], "strangers", FLOOD);
    net.nodes[2].signal("-KILL");
    net.nodes[2].wait();
    net.restart(2);
    go_on(net, &[3], 3);
    println!("{:<32} {} calls", "", strangers.calls());
}

/// With its own key back, the validator takes part as before.
fn is_as_before(net: &mut Network, watch: &mut Watch) {
    net.restart(3);
    go_on(net, &[], 3);
    let height = net.nodes[0].height();
    agree_at(&net.nodes, height);
    watch.check(&net.nodes[..3], "afterwards", FLOOD);
}

/// Votes that are none, and messages that are too large for their channel, cut a peer off for hours.
fn is_cut_off(net: &mut Network, watch: &mut Watch, enemy: &Enemy) {
    net.nodes[3].signal("-KILL");
    net.nodes[3].wait();
    let bad = [
        garbage(VOTES, 100),
        garbage(RESOLVER, messages::votes_max(enemy) + 1),
        garbage(TRANSACTIONS, messages::TRANSACTIONS_MAX + 1),
    ];
    let against =
        |(victim, source): (&Victim, Source)| Flood::start(&enemy.against(victim), Manner::Wild, source);
    let floods: Vec<Flood> = enemy.victims.iter().zip(bad).map(against).collect();
    let reasons = ["decoding error", "larger than any", "larger than any"];
    let is_out = |index: usize| net.log(index).contains(reasons[index]);
    wait_for("cut", || (0..3).all(is_out).then_some(()));
    let lines = || -> Vec<u64> { floods.iter().map(Flood::lines).collect() };
    let before = lines();
    watch.check(&net.nodes[..3], "cut off", FLOOD);
    assert_eq!(lines(), before, "nobody lets it in again");
}
