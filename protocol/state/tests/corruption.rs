//! Files that were damaged: an error that names them and says what to do, or a recovery to something true.

mod support;

use almanac_primitives::{Block, Header, Receipt, StateCommitment};
use almanac_state::{BlockArchive as _, BlockJournal, QmdbStore, SealedBatch as _, StateStore as _, StateView as _};
use commonware_runtime::{Runner as _, Supervisor as _, tokio::{self, Context}};
use std::{collections::BTreeMap, fs, panic::{AssertUnwindSafe, catch_unwind}, path::{Path, PathBuf}};
use support::*;

fn on_disk<T>(directory: &Path, work: impl AsyncFnOnce(Context) -> T) -> T {
    let config = tokio::Config::default().with_storage_directory(directory).with_worker_threads(1);
    tokio::Runner::new(config).start(async |context| work(context).await)
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)); } else { found.push(path); }
    }
    found.sort();
    found
}

fn copy(from: &Path, to: &Path) {
    for file in files(from) {
        let target = to.join(file.strip_prefix(from).unwrap());
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::copy(file, target).unwrap();
    }
}

#[test]
fn explore() {
    let pristine = ::tempfile::tempdir().unwrap();
    let mut commitments: Vec<StateCommitment> = Vec::new();
    on_disk(pristine.path(), async |context| {
        let store = open(&context, "a").await.unwrap();
        commitments.push(store.head().commitment());
        for height in 1..=60 {
            commitments.push(advance(&store, height).await.commitment());
            if height == 40 && std::env::var("PRUNE").is_ok() { store.prune(&store.head().commitment()).await.unwrap(); }
        }
        let archive = BlockJournal::open(context.child("x"), &config("a")).await.unwrap();
        for number in 1..=20 {
            let block = Block { header: Header { number, ..Header::default() }, transactions: vec![] };
            archive.append(&block, &[]).await.unwrap();
        }
    });
    for file in files(pristine.path()) {
        println!("{} {}", file.strip_prefix(pristine.path()).unwrap().display(), fs::metadata(&file).unwrap().len());
    }
    let all = files(pristine.path());
    let mut outcomes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in &all {
        let name = file.strip_prefix(pristine.path()).unwrap();
        let length = fs::metadata(file).unwrap().len();
        for damage in ["none", "flip start", "flip 10", "flip third", "flip half", "flip end", "flip all", "cut 1", "cut half", "cut all", "remove", "garbage", "zero tail"] {
            let dir = ::tempfile::tempdir().unwrap();
            copy(pristine.path(), dir.path());
            let path = dir.path().join(name);
            let mut bytes = fs::read(&path).unwrap();
            let len = bytes.len();
            if len == 0 { continue }
            match damage {
                "none" => {}
                "flip start" => bytes[0] ^= 0x55,
                "flip 10" => bytes[10.min(len-1)] ^= 0x55,
                "flip third" => bytes[len / 3] ^= 0x55,
                "flip half" => bytes[len / 2] ^= 0x55,
                "flip end" => bytes[len - 1] ^= 0x55,
                "flip all" => bytes.iter_mut().for_each(|b| *b ^= 0x55),
                "cut 1" => bytes.truncate(len - 1),
                "cut half" => bytes.truncate(len / 2),
                "cut all" => bytes.clear(),
                "garbage" => bytes.extend([0x77; 100]),
                "zero tail" => { let n = len / 2; bytes[n..].fill(0) }
                _ => {}
            }
            if damage == "remove" { fs::remove_file(&path).unwrap() } else { fs::write(&path, bytes).unwrap() }
            let result = catch_unwind(AssertUnwindSafe(|| on_disk(dir.path(), async |context| {
                let state = match open(&context, "a").await {
                    Err(error) => format!("ERR {}", error.to_string().chars().take(150).collect::<String>()),
                    Ok(store) => {
                        let right = commitments.get(store.height() as usize) == Some(&store.head().commitment());
                        let read = store.head().get_many(&keys(40)).await;
                        format!("state {} {} {}", if store.height() == 60 { "whole".into() } else { format!("short at {}", store.height()) }, if right {"right"} else {"WRONG ROOT"}, match read { Ok(_) => "read".into(), Err(e) => format!("READ ERR {}", e.reason.chars().take(100).collect::<String>()) })
                    }
                };
                let blocks = match BlockJournal::open(context.child("x"), &config("a")).await {
                    Err(error) => format!("ERR {}", error.to_string().chars().take(150).collect::<String>()),
                    Ok(archive) => {
                        let height = archive.height().await.unwrap();
                        let mut bad = vec![];
                        for number in 1..=height { match archive.get(number).await { Ok(Some(b)) if b.block.header.number == number => {}, Ok(other) => bad.push(format!("{number}: {:?}", other.is_some())), Err(e) => bad.push(e.to_string().chars().take(120).collect()) } }
                        format!("blocks {height} bad {bad:?}")
                    }
                };
                (state, blocks)
            })));
            let text = match result { Ok((s, b)) => format!("{s} | {b}"), Err(p) => format!("PANIC {:?}", p.downcast_ref::<String>().cloned().or(p.downcast_ref::<&str>().map(|s| s.to_string()))) };
            let usual = "state whole right read | blocks 20 bad []";
            if text != usual { outcomes.entry(text).or_default().push(format!("{} [{damage}]", name.display())); }
        }
        let _ = length;
    }
    for (outcome, causes) in outcomes { println!("== {outcome}\n     {}", causes.join("; ")); }
    let _: Vec<Receipt> = vec![];
}
