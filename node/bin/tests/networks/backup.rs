//! Backups of a network: made while a validator runs and when it is stopped, changed by a forger, and made a chain of
//! again.

use crate::support::{
    network::{agree_at, new_network, start, transfer_seen_by_all},
    *,
};
use alloy_primitives::keccak256;
use std::{fs, path::Path, process::Output};

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

/// The position and the length of each item after the head of a backup.
fn items(bytes: &[u8]) -> Vec<(usize, usize)> {
    let length = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let mut at = 12 + 4 + length(12) + 8;
    let mut items = Vec::new();
    while at < bytes.len() - 32 {
        items.push((at + 4, length(at)));
        at += 4 + length(at);
    }
    items
}

/// Gives a backup the checksum of what it says.
fn sum(bytes: &mut [u8]) {
    let (content, checksum) = bytes.split_at_mut(bytes.len() - 32);
    checksum.copy_from_slice(keccak256(content).as_slice());
}

/// Changes the bytes of a backup.
type Forge<'a> = &'a dyn Fn(&mut Vec<u8>);

#[test]
fn a_forged_backup_of_a_network_is_refused_and_a_good_one_proves_its_blocks() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let configs = new_network(&directory.path().join("net"), 100);
    let mut nodes: Vec<Node> = configs.iter().map(|config| start(config)).collect();
    let receipt = transfer_seen_by_all(&nodes, 0, 0);
    // The first block may have it, and the forgeries below need a second.
    agree_at(&nodes, 2);
    let (net, datadir) = (path("net"), path("net/v0/data"));
    let (running, stopped) = (path("running.backup"), path("stopped.backup"));
    let exported = run(&["db", "export", "--datadir", &datadir, "--out", &running]);
    assert!(exported.status.success(), "{}", said(&exported));
    for node in &mut nodes {
        node.signal("-TERM");
        node.wait();
    }
    let exported = run(&["db", "export", "--datadir", &datadir, "--out", &stopped]);
    assert!(exported.status.success(), "{}", said(&exported));

    // A forger changes the last block, or its certificate, or leaves it out, and makes the checksum right.
    let (forged, restored, genesis) =
        (path("forged.backup"), path("restored"), format!("{net}/genesis.json"));
    let good = fs::read(&stopped).unwrap();
    let found = items(&good);
    let [.., (block, _), (certificate, length)] = found[..] else { panic!("{found:?}") };
    assert!(found.len() >= 4 && length > 0, "{found:?}");
    let forgeries: [(&str, Forge<'_>); 3] = [
        // A byte of its time, behind version, parent and number.
        ("the certificate of another block", &|bytes| bytes[block + 48] ^= 1),
        ("certificate", &|bytes| bytes[certificate + length - 1] ^= 1),
        ("carries no certificate", &|bytes| {
            bytes.drain(certificate..certificate + length);
            bytes[certificate - 4..certificate].fill(0);
        }),
    ];
    for (reason, forge) in forgeries {
        let mut bytes = good.clone();
        forge(&mut bytes);
        sum(&mut bytes);
        fs::write(&forged, bytes).unwrap();
        let refused = run(&["db", "import", "--file", &forged, "--datadir", &restored]);
        assert!(!refused.status.success() && said(&refused).contains(reason), "{reason}: {}", said(&refused));
        assert!(!Path::new(&restored).exists(), "nothing was made of it");
    }

    // Another network's validators vouch for nothing here.
    let other = path("other");
    new_network(Path::new(&other), 100);
    let import = |file: &str, genesis: &str| {
        run(&["db", "import", "--file", file, "--datadir", &restored, "--genesis", genesis])
    };
    let foreign = import(&stopped, &format!("{other}/genesis.json"));
    assert!(!foreign.status.success() && said(&foreign).contains("its genesis is not"), "{}", said(&foreign));
    for file in [&running, &stopped] {
        let _ = fs::remove_dir_all(&restored);
        let imported = import(file, &genesis);
        assert!(
            imported.status.success() && said(&imported).contains("of the 4 validators"),
            "{}",
            said(&imported)
        );
    }

    // What was restored can show that its blocks are final.
    let (hash, proof) = (receipt["transactionHash"].as_str().unwrap(), path("proof.json"));
    let got = run(&["proof", "get", "--datadir", &restored, "--transaction", hash, "--out", &proof]);
    assert!(got.status.success(), "{}", said(&got));
    let verified = run(&["proof", "verify", "--proof", &proof, "--genesis", &genesis]);
    assert!(verified.status.success() && said(&verified).contains("Final: block"), "{}", said(&verified));
}

/// Nobody signs a developer's chain: a hash from elsewhere shows whose it is.
#[test]
fn a_developers_chain_is_checked_against_a_trusted_hash() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (chain, backup, restored) = (path("chain"), path("backup"), path("restored"));
    let mut node = Node::start(&["--datadir", &chain]);
    let receipt = node.receipt(&node.send(&to_bob(0))["result"]);
    node.signal("-TERM");
    node.wait();
    assert!(run(&["db", "export", "--datadir", &chain, "--out", &backup]).status.success());
    let import =
        |hash: &str| run(&["db", "import", "--file", &backup, "--datadir", &restored, "--block-hash", hash]);
    let refused = import(&format!("{:#066x}", 7));
    assert!(!refused.status.success() && said(&refused).contains("not the trusted"), "{}", said(&refused));
    assert!(!Path::new(&restored).exists());
    let imported = import(receipt["blockHash"].as_str().unwrap());
    assert!(imported.status.success() && said(&imported).contains("that you trust"), "{}", said(&imported));
}
