//! Every decoder against hostile input: it never panics, and what it takes has exactly one encoding.

use crate::samples::{Draw, Kind, Unsigned};
use alloy_eips::eip2718::Encodable2718;
use alloy_primitives::{Address, B256, Bytes, Log, LogData, Signature, U256, hex};
use almanac_primitives::{
    Account, Block, Genesis, Header, Lane, Outcome, PrologueTransaction, Receipt, RunTransaction, ScheduleId,
    UserTransaction,
    block::block_body_bytes,
    codec::DecodeError,
    params::{
        BLOCK_BODY_BYTES_MAX, BLOCK_GAS_MAX, BLOCK_TRANSACTIONS_MAX, RECEIPT_REASON_BYTES_MAX,
        RUN_INPUT_BYTES_MAX, TRANSACTION_BYTES_MAX,
    },
    state::{decode_slot, encode_slot},
    transaction::TransactionDecodeError,
};
use proptest::prelude::*;
use std::sync::LazyLock;

/// A decoder, with encodings that it takes.
struct Decoder {
    name: &'static str,
    /// The encoding of what the input was read as, or `None` where it was refused.
    read: fn(&[u8]) -> Option<Vec<u8>>,
    samples: Vec<Vec<u8>>,
    /// Whether some of its encodings begin with another.
    has_prefixes: bool,
}

fn decoders() -> &'static [Decoder] {
    static DECODERS: LazyLock<Vec<Decoder>> = LazyLock::new(make_decoders);
    &DECODERS
}

fn make_decoders() -> Vec<Decoder> {
    let mut draw = Draw::new("decoders");
    let mut many = |encode: fn(&mut Draw) -> Vec<u8>| (0..4).map(|_| encode(&mut draw)).collect::<Vec<_>>();
    let decoder = |name, read, mut samples: Vec<Vec<u8>>, generated: Vec<Vec<u8>>| {
        samples.extend(generated);
        Decoder { name, read, samples, has_prefixes: false }
    };
    vec![
        decoder(
            "transaction",
            |bytes| Some(UserTransaction::decode(bytes).ok()?.envelope().unwrap().encoded_2718()),
            Kind::ALL.map(|kind| crate::samples::signed(kind).encoded().to_vec()).to_vec(),
            many(|draw| draw.transaction().encoded().to_vec()),
        ),
        decoder(
            "header",
            |bytes| Some(Header::decode(bytes).ok()?.encode()),
            vec![crate::samples::header().encode()],
            vec![],
        ),
        decoder(
            "block",
            |bytes| Some(Block::decode(bytes).ok()?.encode()),
            vec![crate::samples::block().encode()],
            many(|draw| draw.block().encode()),
        ),
        decoder(
            "receipt",
            |bytes| Some(Receipt::decode(bytes).ok()?.encode()),
            vec![crate::samples::receipt_full().encode(), crate::samples::receipt(Outcome::Success).encode()],
            many(|draw| draw.receipt().encode()),
        ),
        decoder(
            "run",
            |bytes| Some(RunTransaction::decode(bytes).ok()?.encode()),
            vec![crate::samples::run(Lane::Cron).encode()],
            many(|draw| draw.run().encode()),
        ),
        decoder(
            "prologue",
            |bytes| Some(PrologueTransaction::decode(bytes).ok()?.encode()),
            vec![crate::samples::prologue().encode()],
            vec![],
        ),
        Decoder {
            has_prefixes: true,
            ..decoder(
                "account",
                |bytes| Some(Account::decode(bytes).ok()?.encode().to_vec()),
                vec![crate::samples::account().encode().to_vec(), Account::default().encode().to_vec()],
                many(|draw| draw.account().encode().to_vec()),
            )
        },
        Decoder {
            has_prefixes: true,
            ..decoder(
                "slot",
                |bytes| Some(encode_slot(decode_slot(bytes).ok()?).map_or(vec![], |stored| stored.to_vec())),
                vec![vec![1], vec![1, 0], vec![0xff; 32]],
                many(|draw| encode_slot(draw.u256() | U256::from(1)).unwrap().to_vec()),
            )
        },
        Decoder {
            has_prefixes: true,
            ..decoder(
                "schedule id",
                read_schedule_id,
                vec![b"1042-3-0".to_vec(), b"279709748224".to_vec()],
                vec![],
            )
        },
    ]
}

/// An id has two texts; it must be read from one of them, written exactly so.
fn read_schedule_id(bytes: &[u8]) -> Option<Vec<u8>> {
    let text = str::from_utf8(bytes).ok()?;
    let id = text.parse::<ScheduleId>().ok()?;
    Some(if text.contains('-') { id.to_string() } else { id.0.to_string() }.into_bytes())
}

impl Decoder {
    /// Reads, and checks that what is taken has this encoding and no other.
    #[track_caller]
    fn is_taken(&self, input: &[u8]) -> bool {
        let Some(again) = (self.read)(input) else {
            return false;
        };
        assert!(again == input, "{}: {} is read as {}", self.name, hex::encode(input), hex::encode(again));
        true
    }
}

#[test]
fn samples_are_taken() {
    for decoder in decoders() {
        for sample in &decoder.samples {
            assert!(decoder.is_taken(sample), "{}", decoder.name);
        }
        assert!(!decoder.is_taken(&[]), "{} of nothing", decoder.name);
    }
}

// ---- Every small change to a valid encoding ----

#[test]
fn no_encoding_is_the_beginning_of_another() {
    for decoder in decoders() {
        for sample in &decoder.samples {
            for length in 0..sample.len() {
                let is_taken = decoder.is_taken(&sample[..length]);
                assert!(!is_taken || decoder.has_prefixes, "{} cut off at {length}", decoder.name);
            }
            for extra in 0..=255 {
                let longer = [&sample[..], &[extra]].concat();
                let is_taken = decoder.is_taken(&longer);
                assert!(!is_taken || decoder.has_prefixes, "{} with {extra} at its end", decoder.name);
            }
        }
    }
}

#[test]
fn every_flipped_bit() {
    for decoder in decoders() {
        let mut taken = 0;
        for sample in &decoder.samples {
            for bit in 0..sample.len() * 8 {
                let mut changed = sample.clone();
                changed[bit / 8] ^= 1 << (bit % 8);
                taken += usize::from(decoder.is_taken(&changed));
            }
        }
        assert!(taken > 0, "{}: some bits carry values, so some changes are other values", decoder.name);
    }
}

#[test]
fn every_inserted_removed_and_swapped_byte() {
    for decoder in decoders() {
        for sample in &decoder.samples {
            for at in 0..sample.len() {
                for byte in [0x00, 0x01, 0x30, 0x2d, 0x7f, 0x80, 0xb8, 0xc0, 0xf8, 0xff] {
                    let mut inserted = sample.clone();
                    inserted.insert(at, byte);
                    decoder.is_taken(&inserted);
                    let mut replaced = sample.clone();
                    replaced[at] = byte;
                    decoder.is_taken(&replaced);
                }
                let mut removed = sample.clone();
                removed.remove(at);
                decoder.is_taken(&removed);
                let mut swapped = sample.clone();
                swapped.swap(at, (at + 1) % sample.len());
                decoder.is_taken(&swapped);
            }
        }
    }
}

/// Wherever a length or a count may be, it is set to something that it is not.
#[test]
fn every_length_that_lies() {
    for decoder in decoders() {
        for sample in &decoder.samples {
            for at in 0..sample.len().saturating_sub(3) {
                let field: [u8; 4] = sample[at..at + 4].try_into().unwrap();
                let true_length = u32::from_be_bytes(field);
                for lie in [0, 1, true_length.wrapping_sub(1), true_length.wrapping_add(1), 1 << 16, u32::MAX]
                {
                    let mut changed = sample.clone();
                    changed[at..at + 4].copy_from_slice(&lie.to_be_bytes());
                    decoder.is_taken(&changed);
                }
            }
        }
    }
}

// ---- Anything at all ----

/// One change of many kinds to an encoding.
#[derive(Clone, Debug)]
enum Change {
    Flip(usize, u8),
    Truncate(usize),
    Insert(usize, Vec<u8>),
    Remove(usize, usize),
    Length(usize, u32),
    /// Copies a part of the input over another place.
    Copy(usize, usize, usize),
}

fn change() -> impl Strategy<Value = Change> {
    let place = any::<usize>;
    prop_oneof![
        (place(), 0..8u8).prop_map(|(at, bit)| Change::Flip(at, bit)),
        place().prop_map(Change::Truncate),
        (place(), prop::collection::vec(any::<u8>(), 1..6)).prop_map(|(at, bytes)| Change::Insert(at, bytes)),
        (place(), 1..40usize).prop_map(|(at, count)| Change::Remove(at, count)),
        (place(), prop_oneof![0..600u32, any::<u32>()]).prop_map(|(at, length)| Change::Length(at, length)),
        (place(), place(), 1..40usize).prop_map(|(from, to, count)| Change::Copy(from, to, count)),
    ]
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        let length = bytes.len();
        if length == 0 {
            return;
        }
        match self {
            Self::Flip(at, bit) => bytes[at % length] ^= 1 << bit,
            Self::Truncate(at) => bytes.truncate(at % length),
            Self::Insert(at, more) => {
                let at = at % (length + 1);
                bytes.splice(at..at, more.iter().copied());
            }
            Self::Remove(at, count) => {
                let at = at % length;
                bytes.drain(at..length.min(at + count));
            }
            Self::Length(at, value) => {
                for (byte, new) in bytes.iter_mut().skip(at % length).zip(value.to_be_bytes()) {
                    *byte = new;
                }
            }
            Self::Copy(from, to, count) => {
                let part: Vec<u8> = bytes.iter().copied().skip(from % length).take(*count).collect();
                for (byte, new) in bytes.iter_mut().skip(to % length).zip(part) {
                    *byte = new;
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn arbitrary_bytes(bytes in prop::collection::vec(any::<u8>(), 0..700)) {
        for decoder in decoders() {
            decoder.is_taken(&bytes);
            // Past the first byte, which is a version or a type.
            for first in [1, 2, 4, 0x70, 0x71, 0xf8, 0xf9] {
                decoder.is_taken(&[&[first], &bytes[..]].concat());
            }
        }
    }

    #[test]
    fn changed_encodings(index in any::<usize>(), changes in prop::collection::vec(change(), 1..5)) {
        for decoder in decoders() {
            let mut bytes = decoder.samples[index % decoder.samples.len()].clone();
            for change in &changes {
                change.apply(&mut bytes);
            }
            decoder.is_taken(&bytes);
        }
    }

    #[test]
    fn one_format_read_as_another(index in any::<usize>(), cut in any::<usize>()) {
        let decoders = decoders();
        for from in decoders {
            let sample = &from.samples[index % from.samples.len()];
            for decoder in decoders {
                decoder.is_taken(sample);
                decoder.is_taken(&sample[cut % sample.len()..]);
            }
        }
    }

    /// Digits and dashes, so that most are nearly ids.
    #[test]
    fn nearly_schedule_ids(text in "[0-9+-]{0,24}") {
        let decoder = decoders().last().unwrap();
        prop_assert_eq!(decoder.name, "schedule id");
        decoder.is_taken(text.as_bytes());
    }

    #[test]
    fn arbitrary_text_as_genesis(text in ".{0,200}") {
        let _ = Genesis::from_json(&text);
    }

    #[test]
    fn changed_genesis_files(changes in prop::collection::vec(change(), 1..4)) {
        let mut bytes = crate::samples::genesis().to_json().into_bytes();
        for change in &changes {
            change.apply(&mut bytes);
        }
        if let Ok(genesis) = Genesis::from_json(&String::from_utf8_lossy(&bytes)) {
            prop_assert!(genesis.state().is_ok());
            prop_assert_eq!(Genesis::from_json(&genesis.to_json()).ok(), Some(genesis));
        }
    }
}

#[test]
fn a_genesis_file_cut_off_anywhere() {
    let json = crate::samples::genesis().to_json();
    for length in 0..json.len() {
        assert!(Genesis::from_json(&json[..length]).is_err(), "cut off at {length}");
    }
    let deep = "[".repeat(100_000);
    assert!(Genesis::from_json(&deep).is_err());
}

// ---- Both sides of each bound ----

/// Where the body of an encoded block begins: after the header, its length and the count.
const BODY: usize = 569 + 4 + 4;

fn block_of(transactions: Vec<UserTransaction>) -> Block {
    Block { header: crate::samples::header(), transactions }
}

#[test]
fn block_transactions_max() {
    let transaction = crate::samples::signed(Kind::Legacy);
    let most = block_of(vec![transaction.clone(); BLOCK_TRANSACTIONS_MAX]);
    assert_eq!(Block::decode(&most.encode()), Ok(most));
    let given = BLOCK_TRANSACTIONS_MAX + 1;
    let refused = DecodeError::TooLong { what: "transactions", given, max: BLOCK_TRANSACTIONS_MAX };
    assert_eq!(Block::decode(&block_of(vec![transaction; given]).encode()), Err(refused));
}

#[test]
fn block_body_bytes_max() {
    let (largest, count) =
        (of_size(TRANSACTION_BYTES_MAX), BLOCK_BODY_BYTES_MAX / (TRANSACTION_BYTES_MAX + 4));
    let rest = BLOCK_BODY_BYTES_MAX - count * block_body_bytes(&largest) - 4;
    let full = |rest: usize| block_of([vec![largest.clone(); count], vec![of_size(rest)]].concat());

    let most = full(rest);
    assert_eq!(most.transactions.iter().map(block_body_bytes).sum::<usize>(), BLOCK_BODY_BYTES_MAX);
    assert_eq!(most.encode().len(), BODY + BLOCK_BODY_BYTES_MAX);
    assert_eq!(Block::decode(&most.encode()), Ok(most));

    let given = BLOCK_BODY_BYTES_MAX + 1;
    let refused = DecodeError::TooLong { what: "body", given, max: BLOCK_BODY_BYTES_MAX };
    assert_eq!(Block::decode(&full(rest + 1).encode()), Err(refused));
}

/// A transaction whose encoding has exactly this many bytes.
fn of_size(bytes: usize) -> UserTransaction {
    let encoded = |input_bytes: usize| {
        let Unsigned::Legacy(mut transaction) = crate::samples::unsigned(Kind::Legacy) else {
            unreachable!()
        };
        transaction.input = vec![0x5a; input_bytes].into();
        crate::samples::encoded_with(
            Unsigned::Legacy(transaction),
            Signature::new(U256::MAX, U256::MAX, true),
        )
    };
    let overhead = encoded(bytes - 200).len() - (bytes - 200);
    UserTransaction::decode(&encoded(bytes - overhead)).unwrap()
}

#[test]
fn block_lengths_must_be_true() {
    let block = crate::samples::block();
    let encoded = block.encode();
    let with = |at: usize, value: u32| {
        let mut changed = encoded.clone();
        changed[at..at + 4].copy_from_slice(&value.to_be_bytes());
        Block::decode(&changed)
    };
    let body = u32::try_from(encoded.len() - BODY).unwrap();
    assert_eq!(with(BODY - 8, body), Ok(block), "the test looks at the right place");
    let (needed, left) = (encoded.len() - BODY + 1, encoded.len() - BODY);
    assert_eq!(with(BODY - 8, body + 1), Err(DecodeError::TooShort { what: "body", needed, left }));
    assert_eq!(with(BODY - 8, body - 1), Err(DecodeError::TrailingBytes { what: "block", extra: 1 }));
    assert!(matches!(with(BODY - 8, u32::MAX), Err(DecodeError::TooLong { what: "body", .. })));
    assert!(matches!(with(BODY - 4, 3), Err(DecodeError::TrailingBytes { what: "body", .. })));
    assert!(matches!(with(BODY - 4, 5), Err(DecodeError::TooShort { what: "transaction", .. })));
    assert!(matches!(with(BODY - 4, u32::MAX), Err(DecodeError::TooLong { what: "transactions", .. })));
    assert!(matches!(with(BODY, u32::MAX), Err(DecodeError::TooLong { what: "transaction", .. })));
    let empty = DecodeError::Transaction { index: 0, error: TransactionDecodeError::Empty };
    assert_eq!(with(BODY, 0), Err(empty));
}

#[test]
fn a_bad_transaction_is_named_by_its_place() {
    let mut encoded = crate::samples::block().encode();
    let second = BODY + block_body_bytes(&crate::samples::signed(Kind::Legacy)) + 4;
    encoded[second] = 3;
    let error = Block::decode(&encoded).unwrap_err();
    assert_eq!(error, DecodeError::Transaction { index: 1, error: TransactionDecodeError::BlobUnsupported });
    assert!(error.to_string().starts_with("transaction 1: blob"), "{error}");
}

#[test]
fn versions_and_types_of_others_are_refused() {
    for decoder in decoders().iter().filter(|decoder| !["slot", "schedule id"].contains(&decoder.name)) {
        let sample = &decoder.samples[0];
        // Version 2 of an account is that of one with a key record.
        let is_known = |first: u8| first == sample[0] || (decoder.name == "account" && first == 2);
        for first in (0..=255).filter(|first| !is_known(*first)) {
            let mut changed = sample.clone();
            changed[0] = first;
            assert!(!decoder.is_taken(&changed), "{} with first byte {first}", decoder.name);
        }
    }
    for mut encoded in [crate::samples::run(Lane::Cron).encode(), crate::samples::prologue().encode()] {
        encoded[1] = 2;
        let results = [RunTransaction::decode(&encoded).err(), PrologueTransaction::decode(&encoded).err()];
        let named = |error: &Option<DecodeError>| {
            matches!(error, Some(DecodeError::UnknownVersion { given: 2, known: 1, .. }))
        };
        assert!(results.iter().any(named), "{results:?}");
    }
}

#[test]
fn run_input_bytes_max() {
    let with =
        |bytes: usize| RunTransaction { input: vec![7; bytes].into(), ..crate::samples::run(Lane::Market) };
    let most = with(RUN_INPUT_BYTES_MAX);
    assert_eq!(RunTransaction::decode(&most.encode()), Ok(most));
    let given = RUN_INPUT_BYTES_MAX + 1;
    let refused = DecodeError::TooLong { what: "input", given, max: RUN_INPUT_BYTES_MAX };
    assert_eq!(RunTransaction::decode(&with(given).encode()), Err(refused));
}

#[test]
fn lanes_have_numbers_0_to_4() {
    for number in 0..=255 {
        let mut encoded = crate::samples::run(Lane::Reserved).encode();
        encoded[18] = number;
        let lane = RunTransaction::decode(&encoded).map(|run| run.lane as u8);
        let refused = DecodeError::UnknownValue { what: "lane", given: number.into() };
        assert_eq!(lane, if number < 5 { Ok(number) } else { Err(refused) });
    }
}

#[test]
fn receipt_reason_bytes_max() {
    let with = |bytes: usize| crate::samples::receipt(Outcome::Reverted(vec![7; bytes].into()));
    let most = with(RECEIPT_REASON_BYTES_MAX);
    assert_eq!(Receipt::decode(&most.encode()), Ok(most.clone()));
    let given = RECEIPT_REASON_BYTES_MAX + 1;
    let refused = DecodeError::TooLong { what: "revert reason", given, max: RECEIPT_REASON_BYTES_MAX };
    assert_eq!(Receipt::decode(&with(given).encode()), Err(refused));
    assert_eq!(Outcome::reverted(&vec![7; given].into()), most.outcome, "a longer reason is cut");
}

/// The outcome is the byte at 34, and what follows it is the length of a reason.
#[test]
fn only_a_revert_has_a_reason() {
    let reverted = crate::samples::receipt(Outcome::Reverted(Bytes::from_static(b"no"))).encode();
    let silent = crate::samples::receipt(Outcome::Success).encode();
    for code in 0..=255 {
        let with = |encoded: &[u8]| {
            let mut changed = encoded.to_vec();
            changed[34] = code;
            Receipt::decode(&changed).is_ok()
        };
        assert_eq!(with(&silent), code <= 9 || code == 0x80, "outcome {code}");
        assert_eq!(with(&reverted), code == 0x80, "outcome {code} with a reason");
    }
}

#[test]
fn absent_parts_are_zero_and_flags_are_flags() {
    let encoded = crate::samples::receipt(Outcome::Success).encode();
    let absent = encoded.len() - 4 - 17 - 21;
    for at in absent..encoded.len() - 4 {
        for value in 1..=255 {
            let mut changed = encoded.clone();
            changed[at] = value;
            let is_flag = at == absent || at == absent + 21;
            assert_eq!(Receipt::decode(&changed).is_ok(), is_flag && value == 1, "byte {at} = {value}");
        }
    }
}

#[test]
fn a_log_has_at_most_four_topics() {
    let with = |topics: usize| {
        let data = LogData::new_unchecked(vec![B256::ZERO; topics], Bytes::new());
        Receipt {
            logs: vec![Log { address: Address::ZERO, data }],
            ..crate::samples::receipt(Outcome::Success)
        }
    };
    assert_eq!(Receipt::decode(&with(4).encode()), Ok(with(4)));
    let refused = DecodeError::TooLong { what: "log topics", given: 5, max: 4 };
    assert_eq!(Receipt::decode(&with(5).encode()), Err(refused));
}

/// The bound on logs was once below what the gas of a full block can buy: at 375 gas each, governance could
/// set a limit under which a receipt was written that nobody could read again.
#[test]
fn whatever_a_block_can_log_can_be_read() {
    let count = usize::try_from(BLOCK_GAS_MAX.max / 375).unwrap();
    let log = Log { address: Address::ZERO, data: LogData::new_unchecked(vec![], Bytes::new()) };
    let receipt = Receipt { logs: vec![log; count], ..crate::samples::receipt(Outcome::Success) };
    assert_eq!(Receipt::decode(&receipt.encode()).map(|receipt| receipt.logs.len()), Ok(count));
}

#[test]
fn receipt_counts_that_lie() {
    let encoded = crate::samples::receipt(Outcome::Success).encode();
    let count_at = encoded.len() - 4;
    let with = |value: u32| Receipt::decode(&[&encoded[..count_at], &value.to_be_bytes()].concat());
    assert!(with(0).is_ok());
    assert!(matches!(with(1), Err(DecodeError::TooShort { what: "log address", .. })));
    assert!(matches!(with(1 << 21), Err(DecodeError::TooShort { what: "log address", .. })));
    assert!(matches!(with((1 << 21) + 1), Err(DecodeError::TooLong { what: "logs", .. })));
    assert!(matches!(with(u32::MAX), Err(DecodeError::TooLong { what: "logs", .. })));
}

#[test]
fn a_slot_has_1_to_32_bytes_and_no_leading_zero() {
    assert_eq!(decode_slot(&[0xff; 32]), Ok(U256::MAX));
    assert_eq!(decode_slot(&[1; 33]), Err(DecodeError::TooLong { what: "slot", given: 33, max: 32 }));
    for bad in [&[][..], &[0], &[0, 1], &[0; 32], &[0; 33]] {
        assert!(decode_slot(bad).is_err(), "{bad:?}");
    }
    assert_eq!(encode_slot(U256::ZERO), None);
}

#[test]
fn an_account_has_41_or_73_bytes() {
    for length in 0..100 {
        assert_eq!(Account::decode(&vec![1; length]).is_ok(), [41, 73].contains(&length), "{length} bytes");
    }
    // An account without code is written the short way only.
    let long = [&Account::default().encode()[..], alloy_primitives::KECCAK256_EMPTY.as_slice()].concat();
    assert!(matches!(Account::decode(&long), Err(DecodeError::UnknownValue { .. })));
}
