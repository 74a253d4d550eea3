//! Fuzz targets: every decoder of bytes that come from others, and every RPC method.
//!
//! A target takes bytes and panics where a property does not hold: no panic below, bounded memory, and for an encoding,
//! that what decodes is encoded as it was. libFuzzer drives `main.rs`; `tests/corpus.rs` runs stored inputs without it.

pub mod decoders;
pub mod memory;
pub mod rpc;
pub mod seeds;

#[path = "../../node/bin/src/accounts.rs"]
#[allow(dead_code, reason = "shared with the binary")]
mod accounts;
#[path = "../../node/bin/src/backup.rs"]
#[allow(dead_code, reason = "shared with the binary")]
mod backup;
#[path = "../../node/bin/src/regular_file.rs"]
#[allow(dead_code, reason = "shared with the binary")]
mod regular_file;

/// Largest input that means anything: libFuzzer is told less.
const INPUT_BYTES_MAX: usize = 1 << 20;

/// Something to be fuzzed.
pub struct Target {
    /// Its name, and that of its folder of inputs.
    pub name: &'static str,
    /// What is done with an input.
    pub run: fn(&[u8]),
    /// Most bytes on the heap for an input, beside [`Self::growth`].
    pub memory: usize,
    /// Most bytes on the heap for a byte of the input.
    pub growth: usize,
}

impl Target {
    const fn decoder(name: &'static str, run: fn(&[u8])) -> Self {
        Self { name, run, memory: 1 << 20, growth: 64 }
    }
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target::decoder("transaction", decoders::transaction),
    Target::decoder("header", decoders::header),
    Target::decoder("block", decoders::block),
    Target::decoder("receipt", decoders::receipt),
    Target::decoder("run", decoders::run),
    Target::decoder("prologue", decoders::prologue),
    Target::decoder("account", decoders::account),
    Target::decoder("schedule-body", decoders::schedule_body),
    Target::decoder("schedule-head", decoders::schedule_head),
    Target::decoder("calendar", decoders::calendar),
    Target::decoder("state-proof", decoders::state_proof),
    Target::decoder("receipt-proof", decoders::receipt_proof),
    Target::decoder("proof-file", decoders::proof_file),
    Target::decoder("genesis", decoders::genesis),
    Target::decoder("archive", decoders::archive),
    Target::decoder("backup", decoders::backup),
    Target::decoder("floor", decoders::floor),
    Target::decoder("sync-question", decoders::sync_question),
    Target::decoder("sync-answer", decoders::sync_answer),
    Target::decoder("standing", decoders::standing),
    Target::decoder("gossip", decoders::gossip),
    Target::decoder("consensus-block", decoders::consensus_block),
    Target::decoder("certificate", decoders::certificate),
    Target::decoder("evidence", decoders::evidence),
    Target { name: "rpc", run: rpc::run, memory: 512 << 20, growth: 0 },
];

/// The target of a name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

impl Target {
    /// Runs an input and checks what it took.
    pub fn check(&self, input: &[u8]) {
        if input.len() > INPUT_BYTES_MAX {
            return;
        }
        let most = self.memory + self.growth * input.len();
        let taken = memory::peak_of(|| (self.run)(input));
        assert!(taken <= most, "{} takes {taken} bytes for {}, at most {most}", self.name, input.len());
    }
}

/// What `corpus.rs` calls: the same names as in the tests over sockets, on a chain in this process.
mod support {
    pub(crate) use crate::rpc::{
        chain::{ALICE, BOB, Node, cron},
        to_bob,
    };
}
