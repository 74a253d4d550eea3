//! A disk under one process that cannot be read for a while: a library that is loaded before all others fails its reads.

use crate::support::{Node, network::start_in};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The files with the values of the state. A verdict has to read them. A commit only appends to them, and what is read
/// after it is in the cache, as verdicts read it too. Other failures end a node by design: of a write, and of the files of
/// consensus.
const VALUES: &str = "data/chain/state-log_data";

/// The disk of one validator.
pub struct Disk {
    library: PathBuf,
    /// Exists while reads fail.
    flag: PathBuf,
    /// Has a line for each read that failed.
    failures: PathBuf,
}

impl Disk {
    /// A disk that works, with its files in this directory.
    pub fn new(directory: &Path) -> Self {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/networks/flaky_disk/failing_reads.c");
        let library = directory.join("failing_reads.so");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-Wall", "-o"]).arg(&library).arg(source).arg("-ldl");
        let compiled = compiler.output().expect("cc, which links Rust programs too");
        assert!(compiled.status.success(), "{compiled:?}");
        Self { library, flag: directory.join("failing"), failures: directory.join("failures") }
    }

    /// Starts a validator on this disk.
    pub fn start(&self, config: &str) -> Node {
        // As the library sees it, which asks the system for the names of open files.
        let values = fs::canonicalize(config).unwrap().with_file_name(VALUES);
        let variables = [
            ("LD_PRELOAD", &self.library),
            ("FAILING_READS_OF", &values),
            ("FAILING_READS_WHILE", &self.flag),
            ("FAILING_READS_LOG", &self.failures),
        ];
        start_in(config, variables.map(|(name, value)| (name, value.as_path())))
    }

    /// From now on it cannot be read.
    pub fn fail(&self) {
        fs::write(&self.flag, "").unwrap();
    }

    /// From now on it works again.
    pub fn recover(&self) {
        fs::remove_file(&self.flag).unwrap();
    }

    /// How many reads have failed.
    pub fn failures(&self) -> usize {
        fs::read_to_string(&self.failures).map_or(0, |lines| lines.lines().count())
    }
}
