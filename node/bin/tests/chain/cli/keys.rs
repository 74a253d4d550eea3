//! The encrypted keystore, and that `send` and `schedule` sign with its keys.

use super::{chain, command, refusal};
use crate::support::*;
use serde_json::{Value, json};
use std::{fs, os::unix::fs::PermissionsExt as _, process::Output};

const SEVEN: &str = "0x0707070707070707070707070707070707070707";

/// KEYSTORE-06: a key is made, listed, used, exported and imported again; only its owner can read its file.
#[test]
fn keystore_06_a_key_is_made_listed_used_and_exported() {
    let node = chain();
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (keys, password) = (place("keys"), place("password"));
    let private = |path: &str, text: &str| {
        fs::write(path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    };
    private(&password, "correct horse\n");
    private(&place("alice.key"), ALICE_KEY);
    let key = |words: &[&str]| run(&[&["key"], words, &["--keystore", &keys]].concat());
    let with = |words: &[&str]| key(&[words, &["--password-file", &password]].concat());
    assert!(told(&key(&["list"])).contains("no keys: make one with `almanac key new NAME`"));
    let made: Value = serde_json::from_str(&told(&with(&["new", "fresh", "--json"]))).unwrap();
    let imported = told(&with(&["import", "alice", "--key-file", &place("alice.key")]));
    assert!(imported.to_lowercase().contains(ALICE), "{imported}");
    let listed: Value = serde_json::from_str(&told(&key(&["list", "--json"]))).unwrap();
    assert_eq!(listed[1]["name"], "fresh");
    assert_eq!((listed[0]["address"].as_str().unwrap(), &listed[1]["address"]), (ALICE, &made["address"]));
    let file = format!("{keys}/alice.json");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!fs::read_to_string(&file).unwrap().contains(&ALICE_KEY[..16]));
    // Signing with it, and with a wrong password.
    let send =
        format!("send --key alice --keystore {keys} --password-file {password} --to {SEVEN} --value 5");
    assert!(told(&command(&node, &send)).contains("status     success"));
    assert_eq!(node.balance(SEVEN).to_string(), "5");
    private(&place("wrong"), "wrong");
    let wrong = refusal(&command(&node, &send.replace(&password, &place("wrong"))));
    assert!(wrong.contains("WrongPassword: the password does not open the key"), "{wrong}");
    let order = format!(
        "schedule at \"in 2 hours\" --to {SEVEN} --data 0x01020304 --key alice --keystore {keys} --password-file {password} --yes"
    );
    assert!(told(&command(&node, &order)).contains("scheduled "));
    assert_eq!(
        node.result("almanac_listSchedules", json!([{ "owner": ALICE }]))["schedules"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    // Out and in again, encrypted and not.
    told(&with(&["export", "alice", "--out", &place("out.json")]));
    told(&with(&["export", "alice", "--out", &place("out.key"), "--decrypted"]));
    assert_eq!(fs::read_to_string(place("out.key")).unwrap().trim(), ALICE_KEY);
    assert_eq!(fs::metadata(place("out.key")).unwrap().permissions().mode() & 0o777, 0o600);
    let again: Value =
        serde_json::from_str(&told(&with(&["import", "again", "--from", &place("out.json"), "--json"])))
            .unwrap();
    assert_eq!(again["address"], ALICE);
    for (words, expected) in [
        (&["new", "alice"][..], "KeyExists: there is a key \"alice\" already"),
        (&["new", "../alice"], "\"../alice\" is no name of a key"),
        (
            &["export", "bob", "--out", "x"],
            "UnknownKey: there is no key \"bob\"; there are again, alice, fresh",
        ),
        (&["export", "alice", "--out", &place("out.key")], "it must not exist"),
    ] {
        let said = refusal(&with(words));
        assert!(said.contains(expected), "{words:?}: {said}");
    }
    let silent = refusal(&key(&["new", "bob"]));
    assert!(silent.contains("NoPassword: nobody can type a password here: pass --password-file"), "{silent}");
}

fn told(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}
