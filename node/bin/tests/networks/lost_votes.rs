//! Validators whose files do not tell all that they have signed: they come back, and sign nothing twice.

use crate::support::{network::*, *};
use serde_json::{Value, json};
use std::{
    fs,
    os::unix::fs::FileTypeExt as _,
    path::{Path, PathBuf},
    thread::sleep,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// The one that loses its directory.
const LOST: usize = 3;

/// It copies the state and follows. It has no vote yet: where a third validator is missing, blocks stop. Once a block
/// that is later than its return is final, it votes and proposes: the third may be missing then. That stays so when
/// it is killed and started again.
#[test]
fn a_validator_that_lost_its_votes_is_silent_before_it_votes_again() {
    let directory = tempfile::tempdir().unwrap();
    let configs = new_network(&directory.path().join("net"), 200);
    let mut nodes: Vec<Node> = configs.iter().map(|config| start(config)).collect();
    agree_at(&nodes, 5);
    all_vote(&nodes);

    nodes.truncate(LOST);
    fs::remove_dir_all(Path::new(&configs[LOST]).with_file_name("data")).unwrap();
    set(&configs[LOST], "sync", Some(json!("state")));
    nodes.push(start(&configs[LOST]));
    wait_for_role(&nodes[LOST], "silent");
    nodes[0].signal("-STOP");
    // What had its votes already may still become final.
    sleep(Duration::from_millis(1_500));
    let height = nodes[1].height();
    sleep(Duration::from_secs(3));
    assert_eq!((role(&nodes[LOST]), nodes[1].height()), ("silent".to_owned(), height), "two votes of four");
    nodes[0].signal("-CONT");

    wait_for_role(&nodes[LOST], "validator");
    nodes[0].signal("-STOP");
    let height = nodes[1].height();
    agree_at(&nodes[1..], height + 8);
    let own = fee_recipient(&directory.path().join("net/genesis.json"), LOST);
    let is_own = |number: u64| {
        let block = nodes[1].result("eth_getBlockByNumber", json!([format!("{number:#x}"), false]));
        block["miner"] == own
    };
    assert!((height..=height + 8).any(is_own), "it proposes as well");

    nodes[LOST].signal("-KILL");
    nodes[LOST].wait();
    nodes[LOST] = start(&configs[LOST]);
    wait_for_role(&nodes[LOST], "validator");
    let height = nodes[1].height();
    agree_at(&nodes[1..], height + 8);
    nodes[0].signal("-CONT");
    agree_at(&nodes, height + 8);
    nobody_signed_twice(&configs);
}

/// What a node says it is.
fn role(node: &Node) -> String {
    health(&node.address).expect("the node answers")["role"].as_str().unwrap().to_owned()
}

/// Waits until a validator is that. It is not there for a moment while it becomes a voter.
fn wait_for_role(node: &Node, role: &str) {
    let begin = Instant::now();
    while health(&node.address).is_none_or(|health| health["role"] != role) {
        assert!(begin.elapsed() < 2 * PATIENCE, "it is not {role}: {:?}", health(&node.address));
        sleep(Duration::from_millis(50));
    }
}

/// Checks that no validator has seen two votes that conflict.
fn nobody_signed_twice(configs: &[String]) {
    for config in configs {
        let log = log(config);
        assert!(!log.contains("equivocat") && !log.contains("conflicting"), "{config}: {log}");
        let shown = run(&["network", "evidence", "--config", config]);
        assert!(shown.status.success(), "{shown:?}");
        let said = String::from_utf8_lossy(&shown.stdout);
        assert!(said.starts_with("this node has received no conflicting votes"), "{shown:?}");
    }
}

fn log(config: &str) -> String {
    fs::read_to_string(log_of(config)).unwrap()
}

/// How long a mark is believed without asking others, and some more.
const LEASE: Duration = Duration::from_secs(12);

/// A network, and a copy of all files of one validator from a moment in which it ran and voted.
struct Copied {
    directory: TempDir,
    configs: Vec<String>,
    nodes: Vec<Node>,
}

impl Copied {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let configs = new_network(&directory.path().join("net"), 200);
        let mut nodes: Vec<Node> = configs.iter().map(|config| start(config)).collect();
        agree_at(&nodes, 5);
        all_vote(&nodes);
        // Stopped, so that the copy is of one moment, as that of a volume is.
        nodes[LOST].signal("-STOP");
        copy(&home(&configs), &directory.path().join("copy"));
        nodes[LOST].signal("-CONT");
        let height = nodes[0].height();
        agree_at(&nodes, height + 10);
        nodes[LOST].signal("-KILL");
        nodes[LOST].wait();
        nodes.truncate(LOST);
        Self { directory, configs, nodes }
    }

    /// Puts a file or directory of the validator back to what it was.
    fn restore(&self, name: &str) {
        let (now, then) = (home(&self.configs).join(name), self.directory.path().join("copy").join(name));
        if now.is_dir() {
            fs::remove_dir_all(&now).unwrap();
        }
        copy(&then, &now);
    }

    /// Puts key, mark and directory back.
    fn restore_all(&self) {
        for name in ["validator.key", "validator.key.views", "data"] {
            self.restore(name);
        }
    }

    /// Starts it again: it is silent first, and votes later.
    fn comes_back_silent(mut self, why: &str) {
        let before = log(&self.configs[LOST]).len();
        self.nodes.push(start(&self.configs[LOST]));
        wait_for_role(&self.nodes[LOST], "silent");
        self.votes_after_silence(before, why);
    }

    /// Waits for the end of a silence for which it has logged a reason.
    fn votes_after_silence(self, before: usize, why: &str) {
        wait_for_role(&self.nodes[LOST], "validator");
        let said = log(&self.configs[LOST])[before..].to_owned();
        assert!(said.contains(why), "{why:?} is not in: {said}");
        self.votes();
    }

    /// Starts it again: it votes without having been silent.
    fn comes_back_voting(mut self) {
        let before = log(&self.configs[LOST]).len();
        self.nodes.push(start(&self.configs[LOST]));
        wait_for_role(&self.nodes[LOST], "validator");
        let said = log(&self.configs[LOST])[before..].to_owned();
        assert!(!said.contains("does not know what it has signed"), "{said}");
        self.votes();
    }

    /// Checks that its vote counts, and that it signs nothing twice.
    fn votes(self) {
        self.nodes[0].signal("-STOP");
        let height = self.nodes[1].height();
        agree_at(&self.nodes[1..], height + 5);
        self.nodes[0].signal("-CONT");
        agree_at(&self.nodes, height + 5);
        nobody_signed_twice(&self.configs);
    }
}

fn home(configs: &[String]) -> PathBuf {
    Path::new(&configs[LOST]).parent().unwrap().to_owned()
}

fn copy(from: &Path, to: &Path) {
    if from.is_dir() {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            // A socket is there while the node runs, and is nothing to copy.
            if !entry.file_type().unwrap().is_socket() {
                copy(&entry.path(), &to.join(entry.file_name()));
            }
        }
    } else {
        fs::copy(from, to).unwrap();
    }
}

/// Key, mark and directory from the same moment: nothing among them shows that they are old. The others go on, and all
/// that it has signed is in views that are over: it votes after them at once.
#[test]
fn a_validator_that_is_restored_as_a_whole_votes_after_the_newest_block() {
    let copied = Copied::new();
    copied.restore_all();
    sleep(LEASE);
    copied.comes_back_voting();
}

/// The same where its last votes are in a view that is not over, and a peer has them: it is silent first.
#[test]
fn a_validator_that_is_restored_as_a_whole_is_silent_where_a_peer_has_its_later_vote() {
    let mut copied = Copied::new();
    copied.nodes.push(start(&copied.configs[LOST]));
    wait_for_role(&copied.nodes[LOST], "validator");
    let height = copied.nodes[0].height();
    agree_at(&copied.nodes, height + 5);
    // Two of four: once they have lost patience they say that the view has failed, and it does not end.
    for node in &copied.nodes[..2] {
        node.signal("-STOP");
    }
    sleep(LEASE);
    copied.nodes[LOST].signal("-KILL");
    copied.nodes[LOST].wait();
    copied.nodes.truncate(LOST);
    copied.restore_all();
    copied.nodes[1].signal("-CONT");
    let config = copied.configs[LOST].clone();
    let before = log(&config).len();
    copied.nodes.push(start(&config));
    wait_for_role(&copied.nodes[LOST], "silent");
    copied.nodes[0].signal("-CONT");
    copied.votes_after_silence(before, "a peer has its vote in view");
}

/// The mark beside the key has votes that the directory lacks, however short ago they were signed.
#[test]
fn a_directory_that_is_restored_alone_is_not_believed() {
    let copied = Copied::new();
    copied.restore("data");
    copied.comes_back_silent("they are an older copy, or were truncated");
}

/// Consensus cuts its files where a checksum is wrong, and goes on without what was behind. The mark has it.
#[test]
fn votes_that_are_damaged_on_disk_are_missed() {
    let copied = Copied::new();
    let votes = home(&copied.configs).join("data/chain/consensus-votes");
    let mut files: Vec<PathBuf> = fs::read_dir(votes).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files.iter().rev().take(3) {
        let mut bytes = fs::read(file).unwrap();
        // Behind the page with the file's header, in the first thing that was written in the view.
        if let Some(byte) = bytes.get_mut(4_096 + 20) {
            *byte ^= 1;
        }
        fs::write(file, bytes).unwrap();
    }
    copied.comes_back_silent("they are an older copy, or were truncated");
}

/// That a key was never used is not taken for granted: it votes after the newest final block only.
#[test]
fn an_unused_key_votes_after_the_newest_block_where_the_chain_goes_on() {
    let copied = Copied::new();
    let home = home(&copied.configs);
    fs::remove_dir_all(home.join("data")).unwrap();
    fs::remove_file(home.join("validator.key.views")).unwrap();
    fs::write(home.join("validator.key.unused"), "").unwrap();
    let height = copied.nodes[0].height();
    agree_at(&copied.nodes, height + 3);
    copied.comes_back_voting();
}

/// It was away, and the chain went on; then another one failed for good. Three of four are there, and nobody has to
/// help them.
#[test]
fn a_validator_that_was_away_votes_where_it_is_needed() {
    let mut copied = Copied::new();
    sleep(LEASE);
    let failed = copied.nodes.remove(0);
    drop(failed);
    let height = copied.nodes[0].height();
    copied.nodes.push(start(&copied.configs[LOST]));
    agree_at(&copied.nodes, height + 8);
    nobody_signed_twice(&copied.configs);
}

/// The last of four is started when blocks are final, and another one has failed by then.
#[test]
fn a_validator_that_starts_late_votes_where_it_is_needed() {
    let directory = tempfile::tempdir().unwrap();
    let configs = new_network(&directory.path().join("net"), 200);
    let mut nodes: Vec<Node> = configs[..LOST].iter().map(|config| start(config)).collect();
    agree_at(&nodes, 3);
    drop(nodes.remove(0));
    let height = nodes[0].height();
    nodes.push(start(&configs[LOST]));
    agree_at(&nodes, height + 8);
    nobody_signed_twice(&configs);
}

/// All at once, and longer than any mark is believed: nobody can show a new block, and nobody needs to.
#[test]
fn a_network_that_was_down_as_a_whole_comes_back_by_itself() {
    let directory = tempfile::tempdir().unwrap();
    let configs = new_network(&directory.path().join("net"), 200);
    let mut nodes: Vec<Node> = configs.iter().map(|config| start(config)).collect();
    agree_at(&nodes, 8);
    let height = nodes[0].height();
    for node in &nodes {
        node.signal("-KILL");
    }
    for node in &mut nodes {
        node.wait();
    }
    sleep(LEASE);
    let nodes: Vec<Node> = configs.iter().map(|config| start(config)).collect();
    agree_at(&nodes, height + 10);
    nobody_signed_twice(&configs);
}

/// Who gets the tips of a validator, as it is written in blocks.
fn fee_recipient(genesis: &Path, index: usize) -> Value {
    let genesis: Value = serde_json::from_str(&fs::read_to_string(genesis).unwrap()).unwrap();
    let recipient = genesis["validators"][index]["feeRecipient"].as_str().expect("a recipient of tips");
    json!(recipient.to_lowercase())
}
