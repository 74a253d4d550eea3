//! Files as an operator and a stranger on the same machine see them: what is written, through which links, and what is
//! read.

use crate::support::*;
use std::{
    fs,
    io::Read as _,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Longest time that a command may take which has nothing to do.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs the binary under a wide umask, and ends it if it hangs. It may use 4 GiB of addresses, so that reading a device without
/// end is an error of this test and not of the machine.
fn run_bounded(arguments: &[&str]) -> Output {
    let mut child = Command::new("sh")
        .args(["-c", "umask 000; ulimit -v 4194304; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_almanac")])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if begin.elapsed() > PATIENCE {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("{arguments:?} did not end in {PATIENCE:?}");
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    child.stdout.take().unwrap().read_to_end(&mut stdout).unwrap();
    child.stderr.take().unwrap().read_to_end(&mut stderr).unwrap();
    Output { status, stdout, stderr }
}

#[track_caller]
fn refused(arguments: &[&str], reason: &str) {
    let output = run_bounded(arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains(reason), "{reason:?} is not in: {said}");
}

/// A data directory with a chain that is stopped.
fn stopped_chain(directory: &TempDir) -> String {
    let chain = directory.path().join("chain").to_str().unwrap().to_owned();
    let mut node = Node::start(&["--datadir", &chain]);
    node.receipt(&node.send(&to_bob(0))["result"]);
    node.signal("-TERM");
    node.wait();
    chain
}

/// Whatever group or others could use, of these and of what is below them.
fn open_to_others(path: &Path, found: &mut Vec<(PathBuf, u32)>) {
    let metadata = fs::symlink_metadata(path).unwrap();
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        found.push((path.to_owned(), mode));
    }
    if metadata.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            open_to_others(&entry.unwrap().path(), found);
        }
    }
}

/// A backup is written where others may write too, such as /tmp, under a name that they may know.
#[test]
fn an_export_follows_no_planted_link() {
    let directory = tempfile::tempdir().unwrap();
    let chain = stopped_chain(&directory);
    let path = |name: &str| directory.path().join(name);
    let (out, victim) = (path("chain.backup"), path("victim"));
    fs::write(&victim, "precious").unwrap();
    // The names of the draft that a stranger could foresee, and the place itself.
    for name in ["chain.unfinished", "chain.backup.unfinished", "chain.new"] {
        symlink(&victim, path(name)).unwrap();
    }
    let export = ["db", "export", "--datadir", &chain, "--out", out.to_str().unwrap()];
    let exported = run_bounded(&export);
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious", "{exported:?}");
    assert!(exported.status.success(), "{exported:?}");
    assert_eq!(fs::metadata(&out).unwrap().permissions().mode() & 0o777, 0o600);
    for target in [&victim, &path("nothing")] {
        fs::remove_file(&out).unwrap();
        symlink(target, &out).unwrap();
        refused(&export, "exists already");
    }
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert!(!path("nothing").exists());
}

#[test]
fn what_is_written_belongs_to_its_owner_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (net, backup, restored) = (path("net"), path("backup"), path("restored"));
    assert!(run_bounded(&["network", "new", "--dir", &net]).status.success());
    assert!(run_bounded(&["keys", "new", "--out", &path("key")]).status.success());
    let chain = stopped_chain(&directory);
    assert!(run_bounded(&["db", "export", "--datadir", &chain, "--out", &backup]).status.success());
    assert!(run_bounded(&["db", "import", "--file", &backup, "--datadir", &restored]).status.success());
    let mut found = Vec::new();
    for entry in fs::read_dir(directory.path()).unwrap() {
        open_to_others(&entry.unwrap().path(), &mut found);
    }
    assert_eq!(found, []);
}

#[test]
fn a_lock_or_a_directory_that_others_can_use_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let chain = stopped_chain(&directory);
    let digest = ["index", "digest", "--datadir", &chain];
    assert!(run_bounded(&digest).status.success());
    let set_mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let lock = Path::new(&chain).join("lock");
    set_mode(&lock, 0o644);
    refused(&digest, "run chmod 600");
    set_mode(&lock, 0o600);
    set_mode(Path::new(&chain), 0o775);
    refused(&digest, "run chmod 700");
    set_mode(Path::new(&chain), 0o700);
    assert!(run_bounded(&digest).status.success());
}

/// Devices that never end, FIFOs that never begin, and files of any size.
#[test]
fn what_is_no_regular_file_is_refused_wherever_a_file_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let net = path("net");
    assert!(run_bounded(&["network", "new", "--dir", &net]).status.success());
    assert!(Command::new("mkfifo").arg(path("fifo")).status().unwrap().success());
    let large = fs::File::create(path("large")).unwrap();
    large.set_len(1 << 40).unwrap();
    let config = |name: &str, given: &str| {
        let mut json = network::read_json(Path::new(&format!("{net}/v0/config.json")));
        json[name] = given.into();
        let place = format!("{net}/v0/{name}.json");
        fs::write(&place, json.to_string()).unwrap();
        place
    };
    let proof = path("proof");
    fs::write(&proof, "{}").unwrap();
    for (given, reason) in
        [("/dev/zero", "is a device"), (&path("fifo"), "is a FIFO"), (&path("large"), "bytes or more")]
    {
        refused(&["node", "--config", given], reason);
        refused(&["node", "--config", &config("genesis", given)], reason);
        refused(&["proof", "verify", "--proof", given], reason);
        if reason != "bytes or more" {
            refused(&["node", "--config", &config("key", given)], reason);
            refused(&["keys", "show", "--file", given], reason);
            refused(&["db", "import", "--file", given, "--datadir", &path("new")], reason);
        }
    }
}
