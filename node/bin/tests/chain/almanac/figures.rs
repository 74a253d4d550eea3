//! Banner and `/metrics`.

use crate::support::{
    Node,
    cron::{COUNTER, Job, mine_at, set_code},
    network::wait_for,
};
use serde_json::json;

#[test]
fn banner_and_figures_say_what_waits() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    let mut node = Node::start(&["--datadir", path]);
    assert!(node.banner.contains("schedules none waiting"), "{}", node.banner);
    set_code(&node, COUNTER);
    let job = Job::once(&node, 1_000);
    job.clone().every(60, 0).make(&node);
    // Figures follow the block that a receipt is of.
    wait_for("figure of a waiting job", || {
        figures(&node).contains("almanac_schedules_pending 1").then_some(())
    });
    Job { gas: 21_000, ..job.clone() }.make(&node);
    // Two seconds late.
    mine_at(&node, job.at + 2);
    for line in [
        "almanac_schedules_pending 1",
        "almanac_runs_total{lane=\"cron\"} 2",
        "almanac_runs_total{lane=\"reserved\"} 0",
        "almanac_run_failures_total{lane=\"cron\"} 1",
        "almanac_run_lateness_seconds_sum{lane=\"cron\"} 4",
        "almanac_run_lateness_seconds_count{lane=\"cron\"} 2",
    ] {
        wait_for(line, || figures(&node).lines().any(|found| found == line).then_some(()));
    }
    let next = node.result("almanac_agenda", json!([]))["entries"][0]["due"]["iso"].clone();
    node.signal("-TERM");
    node.wait();
    let node = Node::start(&["--datadir", path]);
    let expected = format!("schedules 1 waiting, the next is due at {}", next.as_str().unwrap());
    assert!(node.banner.contains(&expected), "{}", node.banner);
    assert!(figures(&node).contains("almanac_schedules_pending 1"));
}

fn figures(node: &Node) -> String {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(&node.address).unwrap();
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
