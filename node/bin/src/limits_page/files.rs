//! Size limits of files that are read.

use super::{Row, bytes, row};
use crate::{
    backup::ITEM_BYTES_MAX,
    regular_file::{
        CERTIFICATE_BYTES_MAX, CONFIG_BYTES_MAX, EVIDENCE_BYTES_MAX, GENESIS_BYTES_MAX, KEY_BYTES_MAX,
        KEYSTORE_BYTES_MAX, NOTE_BYTES_MAX, PROOF_BYTES_MAX, TRANSACTION_BYTES_MAX,
    },
};

/// Every size of `regular_file.rs`, and of the parts of a backup.
pub(super) fn files() -> Vec<Row> {
    let file = |name, bytes_max: u64| {
        let bytes_max = usize::try_from(bytes_max).expect("limits fit 64 bits");
        row(name, bytes(bytes_max), "\"has … bytes or more, at most … are read\"")
    };
    let item = usize::try_from(ITEM_BYTES_MAX).expect("limits fit 64 bits");
    vec![
        file("genesis", GENESIS_BYTES_MAX),
        file("configuration of a node", CONFIG_BYTES_MAX),
        file("key", KEY_BYTES_MAX),
        file("encrypted key", KEYSTORE_BYTES_MAX),
        file("certificate chain of gRPC, or its key", CERTIFICATE_BYTES_MAX),
        file("proof", PROOF_BYTES_MAX),
        file("transaction to sign, or its calls", TRANSACTION_BYTES_MAX),
        file("evidence of conflicting votes", EVIDENCE_BYTES_MAX),
        file("small files of the data directory", NOTE_BYTES_MAX),
        row("backup", "no limit", "read part by part"),
        row(
            "part of a backup: genesis, block, certificate",
            bytes(item),
            "\"an item of … bytes is above the limit\"",
        ),
    ]
}
