//! The archive of blocks on disk: what is in it stays, in order, with its receipts.

use alloy_primitives::{Address, B256, Bytes, Log};
use almanac_primitives::{Block, Gas, GasPrice, Header, Outcome, Receipt};
use almanac_state::{ArchiveError, ArchivedBlock, BlockArchive as _, BlockJournal, QmdbConfig};
use commonware_runtime::{
    Runner as _, Storage as _, Supervisor as _,
    deterministic::{self, Context, FaultConfig},
};
use commonware_utils::{NZU64, probability};

fn config() -> QmdbConfig {
    QmdbConfig { file_blocks: NZU64!(4), ..QmdbConfig::new("a") }
}

fn run<T>(test: impl AsyncFnOnce(Context) -> T) -> T {
    deterministic::Runner::default().start(async |context| test(context).await)
}

async fn open(context: &Context) -> BlockJournal<Context> {
    BlockJournal::open(context.child("blocks"), &config()).await.unwrap()
}

/// A block and as many receipts as the last digit of its number. `version` tells one fork from another.
fn block(number: u64, version: u64) -> (Block, Vec<Receipt>) {
    let header = Header { number, gas_limit: Gas(version), ..Header::default() };
    let receipt = |index: u64| Receipt {
        transaction_type: 2,
        transaction_hash: B256::with_last_byte(7),
        outcome: if index == 0 { Outcome::Success } else { Outcome::Reverted(Bytes::from(vec![9; 50])) },
        gas_used: Gas(index),
        cumulative_gas_used: Gas(number),
        effective_gas_price: GasPrice(3),
        contract_address: None,
        failed_call: None,
        schedule_ref: None,
        logs: vec![Log::new_unchecked(Address::with_last_byte(1), vec![B256::ZERO], Bytes::from(vec![1; 9]))],
    };
    (Block { header, transactions: Vec::new() }, (0..number % 10).map(receipt).collect())
}

async fn append(archive: &BlockJournal<Context>, number: u64, version: u64) -> Result<(), ArchiveError> {
    let (block, receipts) = block(number, version);
    archive.append(&block, &receipts, None).await
}

/// Everything that is in the archive, from the first block on.
async fn all(archive: &BlockJournal<Context>) -> Vec<(Block, Vec<Receipt>)> {
    let mut found = Vec::new();
    for number in 1..=archive.height().await.unwrap() {
        let ArchivedBlock { block, receipts, certificate } = archive.get(number).await.unwrap().unwrap();
        assert_eq!(certificate, None);
        found.push((block, receipts));
    }
    found
}

#[test]
fn blocks_come_back_with_their_receipts_also_after_reopening() {
    run(async |context| {
        let archive = open(&context).await;
        assert_eq!(archive.height().await, Ok(0));
        for number in 1..=30 {
            append(&archive, number, 0).await.unwrap();
            assert_eq!(archive.height().await, Ok(number));
        }
        let expected: Vec<_> = (1..=30).map(|number| block(number, 0)).collect();
        assert_eq!(all(&archive).await, expected);
        drop(archive);
        let archive = open(&context).await;
        assert_eq!(all(&archive).await, expected);
        for nowhere in [0, 31, u64::MAX] {
            assert_eq!(archive.get(nowhere).await, Ok(None));
        }
    });
}

#[test]
fn only_the_next_block_can_be_appended() {
    run(async |context| {
        let archive = open(&context).await;
        append(&archive, 1, 0).await.unwrap();
        append(&archive, 2, 0).await.unwrap();
        for given in [0, 1, 2, 4, u64::MAX] {
            let refused = ArchiveError::NotNext { partition: "a-blocks".to_owned(), height: 2, given };
            assert_eq!(append(&archive, given, 0).await, Err(refused));
        }
        append(&archive, 3, 0).await.expect("a refusal closes nothing");
        assert_eq!(archive.height().await, Ok(3));
    });
}

#[test]
fn blocks_above_a_height_can_be_forgotten_and_replaced() {
    run(async |context| {
        let archive = open(&context).await;
        for number in 1..=10 {
            append(&archive, number, 0).await.unwrap();
        }
        drop(archive);
        for (height, left) in [(11, 10), (10, 10), (7, 7), (4, 4), (3, 3), (1, 1), (0, 0)] {
            let archive = BlockJournal::open_at(context.child("back"), &config(), height).await.unwrap();
            assert_eq!(archive.height().await, Ok(left));
            assert_eq!(archive.get(left + 1).await, Ok(None));
            append(&archive, left + 1, height).await.unwrap();
            drop(archive);
            let archive = open(&context).await;
            let mut expected: Vec<_> = (1..=left).map(|number| block(number, 0)).collect();
            expected.push(block(left + 1, height));
            assert_eq!(all(&archive).await, expected, "it is so for good");
            drop(archive);
            // Back to blocks of the first version for the next round.
            drop(BlockJournal::open_at(context.child("clean"), &config(), left).await.unwrap());
        }
    });
}

#[test]
fn an_archive_that_failed_is_closed_and_keeps_what_it_had() {
    run(async |context| {
        let archive = open(&context).await;
        append(&archive, 1, 0).await.unwrap();
        *context.storage_fault_config().write() = FaultConfig::default().sync(probability!(1.0));
        let error = append(&archive, 2, 0).await.unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("injected") && text.contains("a-blocks_data") && text.contains("make room"),
            "{text}"
        );
        *context.storage_fault_config().write() = FaultConfig::default();
        assert_eq!(append(&archive, 2, 0).await, Err(ArchiveError::Closed));
        assert_eq!(archive.height().await, Err(ArchiveError::Closed));
        assert_eq!(archive.get(1).await, Err(ArchiveError::Closed));
        drop(archive);
        let archive = open(&context).await;
        assert_eq!(all(&archive).await, [block(1, 0)]);
        append(&archive, 2, 1).await.unwrap();
        assert_eq!(all(&archive).await, [block(1, 0), block(2, 1)]);
    });
}

/// Blocks from a height on are there, and those before answer with a name.
async fn check_kept_from(archive: &BlockJournal<Context>, first: u64, last: u64) {
    assert_eq!(archive.height().await, Ok(last));
    for height in 1..=last {
        let found = archive.get(height).await;
        if height < first {
            assert_eq!(found, Err(ArchiveError::Pruned { height, first }));
            assert_eq!(archive.signed(height).await, Err(ArchiveError::Pruned { height, first }));
        } else {
            let (block, receipts) = block(height, 0);
            assert_eq!(found, Ok(Some(ArchivedBlock { block, receipts, certificate: None })), "{height}");
        }
    }
}

#[test]
fn old_blocks_are_pruned_a_file_at_a_time_and_stay_pruned() {
    run(async |context| {
        let archive = open(&context).await;
        for number in 1..=14 {
            append(&archive, number, 0).await.unwrap();
        }
        assert_eq!(archive.prune(4).await, Ok(false), "block 4 is in the first file");
        check_kept_from(&archive, 1, 14).await;
        assert_eq!(archive.prune(5).await, Ok(true));
        assert_eq!(archive.prune(5).await, Ok(false));
        check_kept_from(&archive, 5, 14).await;
        drop(archive);
        let archive = open(&context).await;
        check_kept_from(&archive, 5, 14).await;
        append(&archive, 15, 0).await.unwrap();
        while archive.prune(u64::MAX).await.unwrap() {}
        check_kept_from(&archive, 13, 15).await;
        drop(archive);
        check_kept_from(&open(&context).await, 13, 15).await;
    });
}

/// The note of what was pruned must not excuse files that are missing beyond it.
#[test]
fn a_file_that_was_not_pruned_is_missed() {
    run(async |context| {
        let archive = open(&context).await;
        for number in 1..=14 {
            append(&archive, number, 0).await.unwrap();
        }
        assert_eq!(archive.prune(5).await, Ok(true));
        drop(archive);
        let name = |section: u64| section.to_be_bytes();
        context.remove("a-blocks_data", Some(&name(1))).await.unwrap();
        let refused = BlockJournal::open(context.child("blocks"), &config()).await.err().unwrap();
        let expected = ArchiveError::Incomplete { partition: "a-blocks".to_owned(), first: 1, missing: 8 };
        assert_eq!(refused, expected);
    });
}
