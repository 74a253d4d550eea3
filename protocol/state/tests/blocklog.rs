//! A log of blocks under truncation, flipped bits, garbage and a second opener.

use alloy_consensus::{TxEip1559, TxLegacy, transaction::RlpEcdsaEncodableTx};
use alloy_primitives::{Address, Signature, U256, keccak256};
use almanac_primitives::{
    Block, Header, UserTransaction,
    params::{BLOCK_BODY_BYTES_MAX, BLOCK_TRANSACTIONS_MAX, TRANSACTION_BYTES_MAX},
};
use almanac_state::{BlockLog, BlockLogError, blocklog::Recovery};
use proptest::{collection::vec, prelude::*};
use std::{fs, path::PathBuf, sync::LazyLock};
use tempfile::TempDir;

/// Magic and version.
const PREAMBLE_BYTES: usize = 12;

/// A path in a folder of its own, which goes when this does.
struct Place {
    _folder: TempDir,
    path: PathBuf,
}

fn place() -> Place {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("blocks.log");
    Place { _folder: folder, path }
}

impl Place {
    fn holding(bytes: &[u8]) -> Self {
        let place = place();
        fs::write(&place.path, bytes).expect("the folder is writable");
        place
    }

    fn open(&self) -> Result<(BlockLog, Recovery), BlockLogError> {
        BlockLog::open(&self.path)
    }

    fn bytes(&self) -> Vec<u8> {
        fs::read(&self.path).expect("the file is there")
    }
}

fn blocks_of(log: &mut BlockLog) -> Vec<Block> {
    log.blocks().collect::<Result<_, _>>().expect("an open log can be read")
}

fn signed(transaction: &impl RlpEcdsaEncodableTx) -> UserTransaction {
    let mut bytes = Vec::new();
    transaction.eip2718_encode(&Signature::test_signature(), &mut bytes);
    UserTransaction::decode(&bytes).expect("a canonical transaction")
}

fn carrying(input: Vec<u8>) -> UserTransaction {
    signed(&TxEip1559 { chain_id: 7, nonce: 3, input: input.into(), ..TxEip1559::default() })
}

fn block(number: u64, transactions: Vec<UserTransaction>) -> Block {
    Block { header: Header { number, ..Header::default() }, transactions }
}

fn three_blocks() -> [Block; 3] {
    let transfer = TxLegacy {
        nonce: 9,
        gas_limit: 21_000,
        to: Address::repeat_byte(1).into(),
        value: U256::from(5),
        ..TxLegacy::default()
    };
    [
        block(1, vec![]),
        block(2, vec![signed(&transfer), carrying(vec![1, 2, 3])]),
        block(3, vec![carrying(vec![0; 40])]),
    ]
}

/// The bytes of a log with three blocks, and where each record ends.
fn three_block_file() -> (Vec<u8>, [usize; 3]) {
    static FILE: LazyLock<(Vec<u8>, [usize; 3])> = LazyLock::new(|| {
        let place = place();
        let (mut log, _) = place.open().expect("a new log");
        let ends = three_blocks().map(|block| {
            log.append(&block).expect("an append");
            place.bytes().len()
        });
        (place.bytes(), ends)
    });
    FILE.clone()
}

#[test]
fn blocks_survive_a_restart_and_more_can_follow() {
    let place = place();
    let mut expected = Vec::new();
    for (count, block) in (0..).zip(three_blocks()) {
        let (mut log, recovery) = place.open().expect("it opens");
        assert_eq!(recovery, Recovery { blocks: count, dropped_bytes: 0 });
        log.append(&block).expect("an append");
        expected.push(block);
        assert_eq!(blocks_of(&mut log), expected, "what was appended can be read without opening again");
        assert_eq!(blocks_of(&mut log), expected, "more than once");
    }
}

#[test]
fn appending_after_reading_does_not_overwrite() {
    let place = place();
    let (mut log, _) = place.open().expect("a new log");
    // Larger than what a reader takes in at once, so that it stops in the middle of the file.
    let blocks = [1, 2, 3].map(|number| block(number, vec![carrying(vec![7; 50_000])]));
    log.append(&blocks[0]).expect("an append");
    log.append(&blocks[1]).expect("an append");
    assert!(log.blocks().next().is_some(), "it reads the first and stops");
    log.append(&blocks[2]).expect("an append");
    assert_eq!(blocks_of(&mut log), blocks);
}

#[test]
fn the_format_does_not_drift() {
    let (bytes, ends) = three_block_file();
    assert_eq!(&bytes[..PREAMBLE_BYTES], b"ALMBLOCK\0\0\0\x01");
    let first = three_blocks()[0].encode();
    let length = u32::try_from(first.len()).expect("small").to_be_bytes();
    assert_eq!(bytes[12..16], length);
    assert_eq!(bytes[16..48], keccak256(&first)[..]);
    let place = [&12u64.to_be_bytes()[..], &length, &keccak256(&first)[..]].concat();
    assert_eq!(bytes[48..56], keccak256(place)[..8]);
    assert_eq!(bytes[56..ends[0]], first);
}

#[test]
fn a_file_cut_anywhere_keeps_every_whole_block() {
    let (bytes, ends) = three_block_file();
    for cut in 0..=bytes.len() {
        let place = Place::holding(&bytes[..cut]);
        let (mut log, recovery) = place.open().unwrap_or_else(|error| panic!("cut at {cut}: {error}"));
        let whole = ends.iter().filter(|end| **end <= cut).count();
        let good = if cut < PREAMBLE_BYTES {
            0
        } else {
            whole.checked_sub(1).map_or(PREAMBLE_BYTES, |last| ends[last])
        };
        let expected = Recovery { blocks: whole as u64, dropped_bytes: (cut - good) as u64 };
        assert_eq!(recovery, expected, "cut at {cut}");
        assert_eq!(blocks_of(&mut log), three_blocks()[..whole], "cut at {cut}");

        // Not after every cut: an append waits for the disk.
        if cut % 37 == 0 || cut < PREAMBLE_BYTES + 2 {
            for block in &three_blocks()[whole..] {
                log.append(block).expect("an append");
            }
            assert_eq!(place.bytes(), bytes, "cut at {cut}: the rest can be written anew");
        }
    }
}

#[test]
fn a_flipped_bit_costs_at_most_the_last_block_and_is_an_error_before() {
    let (bytes, ends) = three_block_file();
    let starts = [PREAMBLE_BYTES, ends[0], ends[1]];
    for at in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        let place = Place::holding(&flipped);
        let hit = ends.iter().filter(|end| **end <= at).count();
        match place.open() {
            Err(BlockLogError::NotABlockLog { .. }) => assert!(at < 8, "byte {at}"),
            Err(BlockLogError::UnknownVersion { .. }) => {
                assert!((8..PREAMBLE_BYTES).contains(&at), "byte {at}");
            }
            Err(BlockLogError::Damaged { offset, .. }) => {
                assert!(at >= PREAMBLE_BYTES && hit < 2, "byte {at}");
                assert_eq!(offset, starts[hit] as u64, "byte {at}");
            }
            Err(other) => panic!("byte {at}: {other}"),
            Ok((mut log, recovery)) => {
                assert!(at >= starts[2], "byte {at}");
                let dropped_bytes = (ends[2] - starts[2]) as u64;
                assert_eq!(recovery, Recovery { blocks: 2, dropped_bytes }, "byte {at}");
                assert_eq!(blocks_of(&mut log), three_blocks()[..2]);
                continue;
            }
        }
        assert_eq!(place.bytes(), flipped, "byte {at}: a file that is refused is left as it is");
    }
}

#[test]
fn a_flip_and_a_cut_together_do_not_hide_the_flip() {
    let (bytes, ends) = three_block_file();
    // The body of the second block, with the third torn in the middle of its body.
    let mut hit = bytes[..ends[2] - 10].to_vec();
    hit[ends[1] - 10] ^= 1;
    let error = Place::holding(&hit).open().expect_err("the second block was durable");
    assert!(matches!(error, BlockLogError::Damaged { offset, .. } if offset == ends[0] as u64));
    // The same with nothing but a byte of the third left.
    let error = Place::holding(&hit[..=ends[1]]).open().expect_err("the second block was durable");
    assert!(matches!(error, BlockLogError::Damaged { offset, .. } if offset == ends[0] as u64));
}

/// A record as the log writes it, with any bytes in it.
fn record(offset: usize, bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).expect("small").to_be_bytes();
    let place = [&(offset as u64).to_be_bytes()[..], &length, &keccak256(bytes)[..]].concat();
    [&length[..], &keccak256(bytes)[..], &keccak256(place)[..8], bytes].concat()
}

#[test]
fn an_intact_record_that_is_no_block_is_an_error_even_at_the_end() {
    let (bytes, ends) = three_block_file();
    for count in [0usize, 2, 3] {
        let offset = count.checked_sub(1).map_or(PREAMBLE_BYTES, |last| ends[last]);
        let mut file = bytes[..offset].to_vec();
        file.extend(record(offset, b"no block"));
        let place = Place::holding(&file);
        let error = place.open().expect_err("no block");
        assert!(
            matches!(error, BlockLogError::NotABlock { offset: at, .. } if at == offset as u64),
            "{error}"
        );
        assert_eq!(place.bytes(), file);
    }
    // The helper of this test writes what the log writes.
    assert_eq!(record(ends[1], &three_blocks()[2].encode()), bytes[ends[1]..]);
}

#[test]
fn another_file_or_a_newer_version_is_left_alone() {
    let other = Place::holding(b"# a text file of some length");
    assert!(matches!(other.open(), Err(BlockLogError::NotABlockLog { .. })));
    assert_eq!(other.bytes(), b"# a text file of some length");

    for short in [&b"A"[..], b"ALMBLOC", b"ALMBLOCK", b"ALMBLOCK\0\0\0"] {
        let (_, recovery) = Place::holding(short).open().expect("a beginning that was cut short");
        assert_eq!(recovery, Recovery { blocks: 0, dropped_bytes: short.len() as u64 });
    }
    for short in [&b"B"[..], b"ALMBLOCk", b"ALMBLOCK\x01"] {
        assert!(matches!(Place::holding(short).open(), Err(BlockLogError::NotABlockLog { .. })), "{short:?}");
    }

    let newer = Place::holding(b"ALMBLOCK\0\0\0\x02and what it may hold");
    let error = newer.open().expect_err("a newer version");
    assert!(matches!(error, BlockLogError::UnknownVersion { given: 2, .. }));
    let message = error.to_string();
    assert!(message.contains("version 2") && message.contains("version 1") && message.contains("blocks.log"));
}

#[test]
fn errors_name_the_file_the_place_and_the_remedy() {
    let (mut bytes, ends) = three_block_file();
    bytes[ends[0] + 50] ^= 1;
    let place = Place::holding(&bytes);
    let message = place.open().expect_err("damaged").to_string();
    assert!(message.contains(&place.path.display().to_string()), "{message}");
    assert!(message.contains(&format!("cut it to {} bytes", ends[0])), "{message}");

    fs::OpenOptions::new()
        .write(true)
        .open(&place.path)
        .expect("a file")
        .set_len(ends[0] as u64)
        .expect("cut");
    let (_, recovery) = place.open().expect("the remedy works");
    assert_eq!(recovery, Recovery { blocks: 1, dropped_bytes: 0 });
}

#[test]
fn damage_that_happens_while_the_log_is_open_is_found_by_reading() {
    let (bytes, ends) = three_block_file();
    let place = Place::holding(&bytes);
    let (mut log, _) = place.open().expect("a good log");
    let mut hit = bytes;
    hit[ends[2] - 1] ^= 1;
    fs::write(&place.path, &hit).expect("the file is writable");
    let read: Vec<_> = log.blocks().collect();
    assert_eq!(read.len(), 3);
    assert!(read[..2].iter().all(Result::is_ok));
    assert!(matches!(read[2], Err(BlockLogError::Damaged { offset, .. }) if offset == ends[1] as u64));
}

#[test]
fn a_log_is_open_once() {
    let place = place();
    let (log, _) = place.open().expect("a new log");
    let error = place.open().expect_err("it is open already");
    assert!(matches!(error, BlockLogError::InUse { .. }));
    assert!(error.to_string().contains("in use by another process"));
    drop(log);
    place.open().expect("it is free again");
}

#[test]
fn a_folder_that_is_missing_is_named() {
    let place = place();
    let path = place.path.join("missing").join("blocks.log");
    let error = BlockLog::open(&path).expect_err("there is no such folder");
    assert!(matches!(error, BlockLogError::Io { doing: "open it", .. }));
    assert!(error.to_string().contains("missing"));
}

/// Transactions whose body has exactly this size.
fn body_of(bytes: usize) -> Vec<UserTransaction> {
    let around = carrying(vec![1; 100_000]).encoded().len() - 100_000 + 4;
    let mut transactions = Vec::new();
    let mut left = bytes;
    while left > 0 {
        // Never so little left for the last one that its lengths would take fewer bytes than here.
        let this = if left > 240_000 {
            110_000
        } else if left > 120_000 {
            left / 2
        } else {
            left
        };
        assert!(this <= TRANSACTION_BYTES_MAX);
        transactions.push(carrying(vec![1; this - around]));
        left -= this;
    }
    transactions
}

#[test]
fn the_largest_body_can_be_kept_and_a_larger_one_is_refused() {
    let place = place();
    let (mut log, _) = place.open().expect("a new log");
    let largest = block(1, body_of(BLOCK_BODY_BYTES_MAX));
    log.append(&largest).expect("the largest body");

    let error = log.append(&block(2, body_of(BLOCK_BODY_BYTES_MAX + 1))).expect_err("a byte too much");
    assert!(
        matches!(error, BlockLogError::TooLarge { number: 2, bytes, .. } if bytes == BLOCK_BODY_BYTES_MAX + 1)
    );
    let many = |count| block(2, vec![carrying(vec![]); count]);
    let count = BLOCK_TRANSACTIONS_MAX + 1;
    let error = log.append(&many(count)).expect_err("one too many");
    assert!(matches!(error, BlockLogError::TooLarge { transactions, .. } if transactions == count));
    log.append(&many(BLOCK_TRANSACTIONS_MAX)).expect("as many as are allowed");
    drop(log);

    let (mut log, recovery) = place.open().expect("it opens");
    assert_eq!(recovery, Recovery { blocks: 2, dropped_bytes: 0 });
    assert_eq!(blocks_of(&mut log), [largest, many(BLOCK_TRANSACTIONS_MAX)]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn garbage_never_opens_as_blocks(bytes in vec(any::<u8>(), 0..400)) {
        let alone = Place::holding(&bytes);
        match alone.open() {
            Ok((_, recovery)) => {
                prop_assert_eq!(recovery, Recovery { blocks: 0, dropped_bytes: bytes.len() as u64 });
                prop_assert!(bytes.len() < PREAMBLE_BYTES, "only a cut preamble is taken for one");
            }
            Err(_) => prop_assert_eq!(&alone.bytes(), &bytes),
        }

        let (good, _) = three_block_file();
        let (mut log, recovery) = Place::holding(&[&good[..], &bytes].concat()).open().expect("a torn tail");
        prop_assert_eq!(recovery, Recovery { blocks: 3, dropped_bytes: bytes.len() as u64 });
        prop_assert_eq!(blocks_of(&mut log), three_blocks());
    }

    #[test]
    fn any_blocks_come_back(inputs in vec(vec(vec(any::<u8>(), 0..100), 0..4), 0..6)) {
        let place = place();
        let (mut log, _) = place.open().expect("a new log");
        let blocks: Vec<_> = (1..)
            .zip(inputs)
            .map(|(number, inputs)| block(number, inputs.into_iter().map(carrying).collect()))
            .collect();
        for block in &blocks {
            log.append(block).expect("an append");
        }
        drop(log);
        let (mut log, recovery) = place.open().expect("it opens");
        prop_assert_eq!(recovery, Recovery { blocks: blocks.len() as u64, dropped_bytes: 0 });
        prop_assert_eq!(blocks_of(&mut log), blocks);
    }
}
