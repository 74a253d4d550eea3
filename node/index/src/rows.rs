//! The encoding of keys and values. Keys sort as bytes, so numbers are big-endian, and a tag precedes parts of
//! variable length and determines the length.
//!
//! ```text
//! state      state key                -> value           as it is at the tip
//! history    state key, height        -> 0 | 1 value     what it was until this height; 0 = there was none
//! changes    height                   -> state keys      what a block changed
//! headers    height                   -> header
//! bodies     height                   -> body
//! receipts   height, index            -> parties, number of its first log, run or nothing, receipt; the calldata of
//!                                        a run is not here if the body of its schedule has it
//! numbers    block hash               -> height
//! locations  transaction hash         -> height, index
//! involved   address, part, height, index -> transaction hash  who had a part in what, see [`Part`]
//! postings   term, height             -> indexes         receipts that have a log with this term
//! meta       name                     -> format, genesis, tip, oldest, floor
//! ```
//!
//! The tables of schedules are in [`crate::schedules`].

use crate::{
    block::{Location, Parties},
    error::Fault,
    participants::Part,
};
use alloy_primitives::{Address, B256, Bytes, Log, TxHash};
use almanac_primitives::{
    Origin, Receipt, RunTransaction, StateKey,
    codec::{DecodeError, Reader, Writer},
    params::RUN_INPUT_BYTES_MAX,
};
use std::borrow::Cow;

const ABSENT: u8 = 0;
const PRESENT: u8 = 1;

/// Tags: no run, a run with its calldata, and a run whose calldata is in its schedule's body.
const NO_RUN: u8 = 0;
const WHOLE_RUN: u8 = 1;
const RUN_OF_BODY: u8 = 2;

/// Largest encoded run: its calldata and its other fields.
const RUN_BYTES_MAX: usize = RUN_INPUT_BYTES_MAX + 256;

/// Length of an encoded state key by its tag.
const STATE_KEY_BYTES: [usize; 9] = [21, 53, 33, 9, 9, 2, 29, 17, 21];

/// A state key: its tag, then its parts.
pub(crate) fn state_key(key: &StateKey) -> Vec<u8> {
    let mut out = Writer::default();
    write_state_key(&mut out, key);
    out.finish()
}

fn write_state_key(out: &mut Writer, key: &StateKey) {
    match key {
        StateKey::Account(address) => {
            out.u8(0);
            out.address(*address);
        }
        StateKey::Slot(address, slot) => {
            out.u8(1);
            out.address(*address);
            out.u256(*slot);
        }
        StateKey::Code(hash) => {
            out.u8(2);
            out.b256(*hash);
        }
        StateKey::Body(schedule) => {
            out.u8(3);
            out.u64(schedule.0);
        }
        StateKey::Calendar(node) => {
            out.u8(4);
            out.u64(*node);
        }
        StateKey::Meta(meta) => {
            out.u8(5);
            out.u8(*meta as u8);
        }
        StateKey::Nonce(address, nonce) => {
            out.u8(6);
            out.address(*address);
            out.u64(*nonce);
        }
        StateKey::NonceLog(second, part) => {
            out.u8(7);
            out.u64(*second);
            out.u64(*part);
        }
        StateKey::AccountKey(address) => {
            out.u8(8);
            out.address(*address);
        }
    }
}

/// Whether an encoded state key is of the history of nonces.
pub(crate) fn is_nonce(key: &[u8]) -> bool {
    matches!(key.first(), Some(6 | 7))
}

/// Reads the key of an account or a slot.
pub(crate) fn read_account_key(key: &[u8]) -> Result<StateKey, Fault> {
    let row = |error| Fault::Row { table: "state", error };
    let mut input = Reader::new(key);
    let tag = input.u8("tag of a state key").map_err(row)?;
    let address = input.address("address").map_err(row)?;
    let read = match tag {
        0 => StateKey::Account(address),
        1 => StateKey::Slot(address, input.u256("slot").map_err(row)?),
        _ => return Err(odd("state", "tag of an account's key", u64::from(tag))),
    };
    input.finish("state key").map_err(row)?;
    Ok(read)
}

/// A value as a forked chain stores it under an encoded key.
pub(crate) fn marked(key: &[u8], value: Option<Bytes>) -> Result<Option<Bytes>, Fault> {
    match key.first() {
        Some(0 | 1) => Ok(Origin::to_stored(&read_account_key(key)?, value)),
        // The others are never marked.
        _ => Ok(value),
    }
}

/// A key followed by a height.
pub(crate) fn at_height(key: &[u8], height: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(key.len() + 8);
    out.extend_from_slice(key);
    out.extend_from_slice(&height.to_be_bytes());
    out
}

/// The height at the end of a key.
pub(crate) fn height_of(key: &[u8]) -> Result<u64, Fault> {
    let tail = key.last_chunk().ok_or(short("key", "height", 8, key.len()))?;
    Ok(u64::from_be_bytes(*tail))
}

/// Encodes an old value.
pub(crate) fn old(value: Option<&Bytes>) -> Vec<u8> {
    let Some(value) = value else { return vec![ABSENT] };
    let mut out = Vec::with_capacity(1 + value.len());
    out.push(PRESENT);
    out.extend_from_slice(value);
    out
}

/// Decodes an old value.
pub(crate) fn read_old(row: &[u8]) -> Result<Option<Bytes>, Fault> {
    match row {
        [ABSENT] => Ok(None),
        [PRESENT, value @ ..] => Ok(Some(Bytes::copy_from_slice(value))),
        [given, ..] => Err(odd("history", "kind of value", u64::from(*given))),
        [] => Err(short("history", "kind of value", 1, 0)),
    }
}

/// The keys that a block changed.
pub(crate) fn changes<'a>(keys: impl Iterator<Item = &'a StateKey>) -> Vec<u8> {
    let mut out = Writer::default();
    keys.for_each(|key| write_state_key(&mut out, key));
    out.finish()
}

/// Reads the keys that a block changed, each as [`state_key`] writes it.
pub(crate) fn read_changes(mut row: &[u8]) -> Result<Vec<&[u8]>, Fault> {
    let mut keys = Vec::new();
    while let Some(tag) = row.first() {
        let length = STATE_KEY_BYTES.get(usize::from(*tag)).copied();
        let length = length.ok_or(odd("changes", "tag of a state key", u64::from(*tag)))?;
        let (key, rest) =
            row.split_at_checked(length).ok_or(short("changes", "state key", length, row.len()))?;
        keys.push(key);
        row = rest;
    }
    Ok(keys)
}

/// Encodes a position in a block, for use as key and value.
pub(crate) fn place(location: Location) -> [u8; 12] {
    let mut out = [0; 12];
    out[..8].copy_from_slice(&location.number.to_be_bytes());
    out[8..].copy_from_slice(&index_word(location.index));
    out
}

/// Saturates: real indices are far lower, and one that stands for "the end of the block" must sort last.
fn index_word(index: usize) -> [u8; 4] {
    u32::try_from(index).unwrap_or(u32::MAX).to_be_bytes()
}

/// Decodes a position in a block.
pub(crate) fn read_place(row: &[u8]) -> Result<Location, Fault> {
    row_of("locations", row, |input| {
        let number = input.u64("number")?;
        let index = input.u32("index")?;
        Ok(Location { number, index: usize::try_from(index).expect("an index fits the memory it counts") })
    })
}

/// The key of a transaction in which an address had a role.
pub(crate) fn involved(address: Address, part: Part, location: Location) -> Vec<u8> {
    [address.as_slice(), &[part as u8], &place(location)].concat()
}

/// Decodes where that transaction ran.
pub(crate) fn read_involved(key: &[u8]) -> Result<Location, Fault> {
    read_place(key.get(21..).ok_or(short("involved", "address and part", 21, key.len()))?)
}

/// Reads a hash.
pub(crate) fn read_hash(table: &'static str, row: &[u8]) -> Result<B256, Fault> {
    row_of(table, row, |input| input.b256("hash"))
}

/// Reads a height.
pub(crate) fn read_height(table: &'static str, row: &[u8]) -> Result<u64, Fault> {
    row_of(table, row, |input| input.u64("height"))
}

/// A receipt with what is needed to find and show its logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReceiptRow {
    pub(crate) parties: Parties,
    /// Whether the run's calldata is stored in its schedule's body; it is empty here then.
    pub(crate) is_input_in_body: bool,
    /// Number of logs of the block before its own.
    pub(crate) first_log: u32,
    pub(crate) receipt: Receipt,
}

/// Encodes a row of `receipts`. Calldata can be large and is the same in every run, so it is omitted if the
/// schedule's body has it.
pub(crate) fn receipt(
    parties: &Parties,
    is_input_in_body: bool,
    first_log: usize,
    receipt: &Receipt,
) -> Vec<u8> {
    let mut out = Writer::default();
    out.address(parties.from);
    out.u8(parties.to.is_some().into());
    out.address(parties.to.unwrap_or_default());
    out.count(first_log);
    match &parties.run {
        None => out.u8(NO_RUN),
        Some(run) => {
            out.u8(if is_input_in_body { RUN_OF_BODY } else { WHOLE_RUN });
            let run = match is_input_in_body {
                true => Cow::Owned(RunTransaction { input: Bytes::new(), ..run.clone() }),
                false => Cow::Borrowed(run),
            };
            out.bytes(&run.encode());
        }
    }
    out.raw(&receipt.encode());
    out.finish()
}

/// Reads a row of `receipts`.
pub(crate) fn read_receipt(row: &[u8]) -> Result<ReceiptRow, Fault> {
    read_receipt_row(row).map_err(|error| Fault::Row { table: "receipts", error })
}

fn read_receipt_row(row: &[u8]) -> Result<ReceiptRow, DecodeError> {
    let mut input = Reader::new(row);
    let from = input.address("from")?;
    let has_to = input.u8("whether there is a to")? != 0;
    let to = input.address("to")?;
    let first_log = input.u32("first log")?;
    let kind = input.u8("kind of run")?;
    let run = match kind {
        NO_RUN => None,
        WHOLE_RUN | RUN_OF_BODY => Some(RunTransaction::decode(&input.bytes("run", RUN_BYTES_MAX)?)?),
        given => return Err(DecodeError::UnknownValue { what: "kind of run", given: given.into() }),
    };
    let receipt = Receipt::decode(input.rest())?;
    let parties = Parties { from, to: has_to.then_some(to), run };
    Ok(ReceiptRow { parties, is_input_in_body: kind == RUN_OF_BODY, first_log, receipt })
}

/// The terms by which logs are indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Term {
    /// Any log.
    Any,
    /// A log of this contract.
    Address(Address),
    /// A log with this topic at this position.
    Topic(u8, B256),
}

impl Term {
    /// The terms of a log.
    pub(crate) fn of(log: &Log) -> impl Iterator<Item = Self> {
        let topics = (0u8..).zip(log.topics()).map(|(position, topic)| Self::Topic(position, *topic));
        [Self::Any, Self::Address(log.address)].into_iter().chain(topics)
    }

    /// The prefix of its keys in `postings`.
    pub(crate) fn prefix(&self) -> Vec<u8> {
        let mut out = Writer::default();
        match self {
            Self::Any => out.u8(0),
            Self::Address(address) => {
                out.u8(1);
                out.address(*address);
            }
            Self::Topic(position, topic) => {
                out.u8(2 + position);
                out.b256(*topic);
            }
        }
        out.finish()
    }
}

/// Indexes of receipts, ascending.
pub(crate) fn posting(indexes: &[u32]) -> Vec<u8> {
    indexes.iter().flat_map(|index| index.to_be_bytes()).collect()
}

/// Reads indexes of receipts.
pub(crate) fn read_posting(row: &[u8]) -> Result<Vec<u32>, Fault> {
    let (words, rest) = row.as_chunks();
    if !rest.is_empty() {
        return Err(short("postings", "index", 4, rest.len()));
    }
    Ok(words.iter().map(|word| u32::from_be_bytes(*word)).collect())
}

/// Encodes the tip for `meta`.
pub(crate) fn tip(height: u64, hash: TxHash) -> Vec<u8> {
    let mut out = Writer::default();
    out.u64(height);
    out.b256(hash);
    out.finish()
}

/// Reads the tip.
pub(crate) fn read_tip(row: &[u8]) -> Result<(u64, B256), Fault> {
    row_of("meta", row, |input| Ok((input.u64("height")?, input.b256("hash")?)))
}

/// Reads a format version.
pub(crate) fn read_format(row: &[u8]) -> Result<u32, Fault> {
    row_of("meta", row, |input| input.u32("format"))
}

/// Reads a whole row of a table.
pub(crate) fn row_of<T>(
    table: &'static str,
    row: &[u8],
    read: impl FnOnce(&mut Reader<'_>) -> Result<T, DecodeError>,
) -> Result<T, Fault> {
    let mut input = Reader::new(row);
    let value = read(&mut input);
    value.and_then(|value| input.finish(table).map(|()| value)).map_err(|error| Fault::Row { table, error })
}

/// The error of a row that is too short.
pub(crate) fn short(table: &'static str, what: &'static str, needed: usize, left: usize) -> Fault {
    Fault::Row { table, error: DecodeError::TooShort { what, needed, left } }
}

fn odd(table: &'static str, what: &'static str, given: u64) -> Fault {
    Fault::Row { table, error: DecodeError::UnknownValue { what, given } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::U256;
    use almanac_primitives::{ScheduleId, state::Meta};
    use proptest::prelude::*;

    fn any_key() -> impl Strategy<Value = StateKey> {
        prop_oneof![
            any::<[u8; 20]>().prop_map(|a| StateKey::Account(a.into())),
            (any::<[u8; 20]>(), any::<[u8; 32]>())
                .prop_map(|(a, s)| StateKey::Slot(a.into(), U256::from_be_bytes(s))),
            any::<[u8; 32]>().prop_map(|h| StateKey::Code(h.into())),
            any::<u64>().prop_map(|id| StateKey::Body(ScheduleId(id))),
            any::<u64>().prop_map(StateKey::Calendar),
            Just(StateKey::Meta(Meta::Genesis)),
            (any::<[u8; 20]>(), any::<u64>()).prop_map(|(a, n)| StateKey::Nonce(a.into(), n)),
            (any::<u64>(), any::<u64>()).prop_map(|(second, part)| StateKey::NonceLog(second, part)),
            any::<[u8; 20]>().prop_map(|a| StateKey::AccountKey(a.into())),
        ]
    }

    /// A block whose changes cannot be read back can be neither pruned nor reverted. Every tag has a length, and every
    /// key of the state is among those that the tests draw: a new kind fails to compile here.
    #[test]
    fn every_kind_of_key_has_its_length() {
        let drawn = |key: &StateKey| match key {
            StateKey::Account(_)
            | StateKey::Slot(..)
            | StateKey::Code(_)
            | StateKey::Body(_)
            | StateKey::Calendar(_)
            | StateKey::Meta(_)
            | StateKey::Nonce(..)
            | StateKey::NonceLog(..)
            | StateKey::AccountKey(_) => state_key(key).len(),
        };
        let (nobody, none) = (Address::ZERO, B256::ZERO);
        let lengths = [
            StateKey::Account(nobody),
            StateKey::Slot(nobody, U256::ZERO),
            StateKey::Code(none),
            StateKey::Body(ScheduleId(0)),
            StateKey::Calendar(0),
            StateKey::Meta(Meta::Genesis),
            StateKey::Nonce(nobody, 0),
            StateKey::NonceLog(0, 0),
            StateKey::AccountKey(nobody),
        ]
        .map(|key| drawn(&key));
        assert_eq!(lengths, STATE_KEY_BYTES);
    }

    proptest! {
        #[test]
        fn changed_keys_are_read_as_written(keys in proptest::collection::vec(any_key(), 0..20)) {
            let row = changes(keys.iter());
            let expected: Vec<_> = keys.iter().map(state_key).collect();
            prop_assert_eq!(read_changes(&row).unwrap(), expected);
        }

        /// Bytes sort as the keys do, so that a sorted diff is written in the order of the store.
        #[test]
        fn keys_sort_as_their_bytes(a in any_key(), b in any_key()) {
            prop_assert_eq!(state_key(&a).cmp(&state_key(&b)), a.cmp(&b));
        }

        /// No key is a prefix of another, so that a search for a key's last version cannot return a version of
        /// another key.
        #[test]
        fn no_key_begins_another(a in any_key(), b in any_key()) {
            prop_assert!(a == b || !state_key(&a).starts_with(&state_key(&b)));
        }

        #[test]
        fn garbage_is_refused_and_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = (read_old(&bytes), read_changes(&bytes), read_place(&bytes), read_involved(&bytes));
            let _ = (read_receipt(&bytes), read_tip(&bytes), height_of(&bytes));
            prop_assert_eq!(read_posting(&bytes).is_ok(), bytes.len() % 4 == 0);
        }
    }

    #[test]
    fn an_empty_value_is_not_an_absent_one() {
        assert_eq!(read_old(&old(Some(&Bytes::new()))).unwrap(), Some(Bytes::new()));
        assert_eq!(read_old(&old(None)).unwrap(), None);
    }

    #[test]
    fn the_end_of_a_block_sorts_after_everything_in_it() {
        let inside = Location { number: 7, index: 1 << 20 };
        assert!(place(inside) < place(Location::last_of(7)));
        assert!(place(Location::last_of(7)) < place(Location::first_of(8)));
    }
}
