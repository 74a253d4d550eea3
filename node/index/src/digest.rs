//! One hash over all rows, to compare two indexes.

use crate::{error::Fault, store::View};
use alloy_primitives::{B256, Keccak256};

/// Keccak-256 over all rows of all tables in order, keys and values each prefixed with their length.
pub(crate) fn digest(view: &View<'_>) -> Result<B256, Fault> {
    let mut hasher = Keccak256::new();
    for row in view.all() {
        let (key, value) = row?;
        write(&mut hasher, &key);
        write(&mut hasher, &value);
    }
    Ok(hasher.finalize())
}

fn write(hasher: &mut Keccak256, bytes: &[u8]) {
    let length = u64::try_from(bytes.len()).expect("a length fits 64 bits");
    hasher.update(length.to_be_bytes());
    hasher.update(bytes);
}
