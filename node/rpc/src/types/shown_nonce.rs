//! A nonce for what has none in Ethereum's sense: runs, and orderless transactions.
//!
//! Libraries look for a transaction that replaced theirs by its sender and nonce, and would take any that shows the same
//! pair for it. So each shows one of its own, above every sequence number that an account can reach and small enough for
//! numbers of JavaScript.

use alloy_primitives::{TxHash, U64};

/// Where these begin. 2^53 is where numbers of JavaScript end.
const FIRST: u64 = 1 << 52;

/// What a transaction with this hash shows as its nonce.
pub(super) fn shown_nonce(hash: TxHash) -> U64 {
    let [.., a, b, c, d, e, f, g] = hash.0;
    let low = u64::from_be_bytes([0, a, b, c, d, e, f, g]);
    U64::from(FIRST | low & (FIRST - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::b256;

    #[test]
    fn they_are_above_sequence_numbers_and_below_where_numbers_of_javascript_end() {
        for (hash, expected) in [
            (TxHash::ZERO, 1u64 << 52),
            (TxHash::repeat_byte(0xff), (1 << 53) - 1),
            (b256!("0xffffffffffffffffffffffffffffffffffffffffffffffffff00000000000007"), (1 << 52) + 7),
        ] {
            assert_eq!(shown_nonce(hash), U64::from(expected), "{hash}");
        }
    }
}
