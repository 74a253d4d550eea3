//! Copying a state from another store: what is served, what is believed, and where the copy goes on.

use crate::support::*;
use alloy_primitives::{B256, Bytes};
use almanac_primitives::{Block, Header};
use almanac_state::{
    ArchiveError, BlockArchive as _, BlockJournal, QmdbStore, SealedBatch as _, StateStore as _,
    qmdb::{
        Family,
        serve::{ANSWER_BYTES_MAX, ANSWER_OPERATIONS_MAX, ServeError},
        sync::{Digest, Operation, SyncError, SyncRequest, SyncResponse, is_proven},
    },
};
use commonware_codec::EncodeSize as _;
use commonware_runtime::{
    Runner as _, Supervisor as _,
    deterministic::{self, Context},
};
use commonware_storage::{mmr::Location, qmdb::sync::source};
use commonware_utils::NZU64;
use std::{
    num::NonZeroU64,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

type Store = QmdbStore<Context>;

fn run<T>(test: impl AsyncFnOnce(Context) -> T) -> T {
    deterministic::Runner::default().start(async |context| test(context).await)
}

/// A store as a source, without a network between.
struct Direct(Store);

impl source::Source for Direct {
    type Family = Family;
    type Digest = Digest;
    type Op = Operation;
    type Error = ServeError;

    async fn serve(&self, request: SyncRequest) -> source::Result<Self> {
        Ok((self.0.serve(request).await?, None))
    }
}

fn header(number: u64, store: &Store) -> Header {
    Header { number, commitment: store.tip().commitment(), ..Header::default() }
}

/// A store at a height of the common history, and the header after each block.
async fn played(context: &Context, height: u64) -> (Store, Vec<Header>) {
    let store = open(context, "a").await.unwrap();
    let mut headers = vec![header(0, &store)];
    for number in 1..=height {
        advance(&store, number).await;
        headers.push(header(number, &store));
    }
    (store, headers)
}

async fn copy(context: &Context, to: &str, from: &Store, header: &Header) -> Result<Store, SyncError> {
    let source = Direct(from.clone());
    QmdbStore::sync(context.child("copy"), &config(to), &genesis(30, "a"), header, source).await
}

fn operations(size: u64, start: u64, max_ops: NonZeroU64) -> SyncRequest {
    SyncRequest::Operations { size: Location::new(size), start: Location::new(start), max_ops }
}

/// Of the newest state and of older ones: all values are the same, they are counted right, and both stores go on
/// with the same roots, also after they were closed.
#[test]
fn a_copy_is_the_same_state_and_goes_on_the_same_way() {
    run(async |context| {
        let (store, headers) = played(&context, 60).await;
        for height in [60usize, 31, 2, 0] {
            let header = &headers[height];
            let name = format!("copy{height}");
            let copied = copy(&context, &name, &store, header).await.unwrap();
            assert_eq!(copied.height(), header.number);
            assert_eq!(copied.tip().commitment(), header.commitment);
            let values = read::<Store>(&copied.tip(), 40).await;
            let live = values.iter().flatten().count() as u64 + 1;
            assert_eq!(copied.live_values().await, Ok(live), "and the name of the genesis");
            drop(copied);
            let genesis = genesis(30, "a");
            let again = QmdbStore::open(context.child("again"), &config(&name), &genesis).await.unwrap();
            assert_eq!((again.height(), again.tip().commitment()), (header.number, header.commitment));
            for next in header.number + 1..=60 {
                let batch = advance(&again, next).await;
                assert_eq!(batch.commitment(), headers[usize::try_from(next).unwrap()].commitment);
            }
            assert_eq!(read::<Store>(&again.tip(), 40).await, read::<Store>(&store.tip(), 40).await);
        }
    });
}

/// A copy can be copied.
#[test]
fn a_copy_serves_others() {
    run(async |context| {
        let (store, headers) = played(&context, 40).await;
        let copied = copy(&context, "b", &store, &headers[40]).await.unwrap();
        assert!(headers[40].commitment.ops_start > 0, "the copy lacks the beginning of the log");
        let second = copy(&context, "c", &copied, &headers[40]).await.unwrap();
        assert_eq!(second.tip().commitment(), headers[40].commitment);
        let refused = copied.serve(operations(headers[40].commitment.ops_end, 0, NZU64!(1))).await;
        let size = headers[40].commitment.ops_end;
        assert_eq!(refused.unwrap_err(), ServeError::Pruned { start: 0, size });
    });
}

#[test]
fn a_header_that_says_something_else_is_found_out() {
    run(async |context| {
        let (store, headers) = played(&context, 20).await;
        let (right, other) = (&headers[20], B256::repeat_byte(7));
        let mut wrong = right.clone();
        wrong.commitment.ops_root = other;
        assert!(matches!(
            copy(&context, "b", &store, &wrong).await,
            Err(SyncError::Source { number: 20, .. })
        ));
        let mut wrong = right.clone();
        wrong.commitment.state_root = other;
        let error = copy(&context, "c", &store, &wrong).await.err().unwrap();
        assert!(matches!(error, SyncError::OtherState { number: 20, .. }), "{error}");
        let wrong = Header { number: 21, ..right.clone() };
        let error = copy(&context, "d", &store, &wrong).await.err().unwrap();
        assert!(matches!(error, SyncError::OtherStamp { number: 21, .. }), "{error}");
        let source = Direct(store.clone());
        let (other, to) = (genesis(30, "other"), config("e"));
        let error = QmdbStore::sync(context.child("other"), &to, &other, right, source).await.err().unwrap();
        assert!(matches!(error, SyncError::OtherStamp { number: 20, .. }), "{error}");
        let mut wrong = right.clone();
        wrong.commitment.ops_start = wrong.commitment.ops_end;
        let end = wrong.commitment.ops_end;
        let expected = SyncError::Range { number: 20, start: end, end };
        assert_eq!(copy(&context, "f", &store, &wrong).await.err(), Some(expected));
    });
}

#[test]
fn a_store_says_what_it_cannot_serve() {
    run(async |context| {
        let (store, headers) = played(&context, 40).await;
        let newest = headers[40].commitment.ops_end;
        assert!(store.serve(operations(newest, newest - 1, NZU64!(1))).await.is_ok());
        let ahead = store.serve(operations(newest + 1, newest, NZU64!(1))).await;
        assert_eq!(ahead.unwrap_err(), ServeError::Ahead { asked: newest + 1, newest });
        while store.prune(&headers[40].commitment).await.unwrap() {}
        let (size, start) = (headers[3].commitment.ops_end, headers[3].commitment.ops_start);
        let gone = store.serve(operations(size, start, NZU64!(1))).await;
        assert_eq!(gone.unwrap_err(), ServeError::Pruned { start, size });
        let error = copy(&context, "b", &store, &headers[3]).await.err().unwrap();
        assert!(
            matches!(&error, SyncError::Source { number: 3, reason } if reason.contains("pruned")),
            "{error}"
        );
        copy(&context, "c", &store, &headers[40]).await.unwrap();
    });
}

/// An answer keeps within its bytes, down to a single operation, and a copy of large values still gets them all.
#[test]
fn answers_keep_within_their_size() {
    run(async |context| {
        let store = open(&context, "a").await.unwrap();
        let large = Bytes::from(vec![7; 60_000]);
        let writes = (0..40).map(|number| (number, Some(large.clone()))).collect();
        let batch = seal(&store, &store.tip(), &writes).await;
        store.commit(&batch).await.unwrap();
        let header = header(1, &store);
        let size = header.commitment.ops_end;
        let mut start = header.commitment.ops_start;
        let mut answers = 0;
        while start < size {
            let request = operations(size, start, NonZeroU64::MAX);
            let response = store.serve(request).await.unwrap();
            assert!(response.encode_size() <= ANSWER_BYTES_MAX);
            assert!(is_proven(&request, header.commitment.ops_root, &response));
            let SyncResponse::Operations { operations, .. } = response else { panic!("operations") };
            assert!((1..=ANSWER_OPERATIONS_MAX.get()).contains(&(operations.len() as u64)));
            start += operations.len() as u64;
            answers += 1;
        }
        assert!(answers > 2, "{answers} answers");
        let copied = copy(&context, "b", &store, &header).await.unwrap();
        assert_eq!(read::<Store>(&copied.tip(), 40).await, vec![Some(large); 40]);
    });
}

/// Whatever is changed about an answer, it is no answer to the question any more.
#[test]
fn an_answer_proves_what_was_asked_and_nothing_else() {
    run(async |context| {
        let (store, headers) = played(&context, 30).await;
        let commitment = headers[30].commitment;
        let (size, start, root) = (commitment.ops_end, commitment.ops_start, commitment.ops_root);
        let request = operations(size, start, NZU64!(5));
        let response = store.serve(request).await.unwrap();
        assert!(is_proven(&request, root, &response));
        assert!(!is_proven(&request, headers[29].commitment.ops_root, &response), "another block's root");
        for other in [
            operations(size, start + 1, NZU64!(5)),
            operations(size - 1, start, NZU64!(5)),
            operations(size, start, NZU64!(4)),
            SyncRequest::Boundary { size: Location::new(size), start: Location::new(start) },
        ] {
            assert!(!is_proven(&other, root, &response), "{other}");
        }
        let SyncResponse::Operations { proof, operations } = response else { panic!("operations") };
        let with = |operations| SyncResponse::Operations { proof: proof.clone(), operations };
        assert!(!is_proven(&request, root, &with(operations[..4].to_vec())), "one left out");
        assert!(!is_proven(&request, root, &with(Vec::new())), "none at all");
        let mut swapped = operations;
        swapped.swap(0, 1);
        assert!(!is_proven(&request, root, &with(swapped)));

        let request = SyncRequest::Boundary { size: Location::new(size), start: Location::new(start) };
        let response = store.serve(request).await.unwrap();
        assert!(is_proven(&request, root, &response));
        let SyncResponse::Boundary { proof, op, mut pinned_nodes } = response else { panic!("a boundary") };
        assert!(pinned_nodes.pop().is_some());
        let cut = SyncResponse::Boundary { proof, op, pinned_nodes };
        assert!(!is_proven(&request, root, &cut), "without a node of the beginning");
    });
}

/// A source that gives few operations at a time, counts them, and has enough at some point.
struct Tiring {
    store: Store,
    answers_left: AtomicU64,
    served: Arc<AtomicU64>,
}

impl Tiring {
    fn new(store: &Store, answers: u64) -> (Self, Arc<AtomicU64>) {
        let served = Arc::new(AtomicU64::new(0));
        (Self { store: store.clone(), answers_left: answers.into(), served: served.clone() }, served)
    }
}

impl source::Source for Tiring {
    type Family = Family;
    type Digest = Digest;
    type Op = Operation;
    type Error = ServeError;

    async fn serve(&self, request: SyncRequest) -> source::Result<Self> {
        let left = self.answers_left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
        left.map_err(|_| ServeError::Store { reason: "tired".to_owned() })?;
        let request = match request {
            SyncRequest::Operations { size, start, .. } => operations(*size, *start, NZU64!(2)),
            boundary @ SyncRequest::Boundary { .. } => boundary,
        };
        let response = self.store.serve(request).await?;
        if let SyncResponse::Operations { operations, .. } = &response {
            self.served.fetch_add(operations.len() as u64, Relaxed);
        }
        Ok((response, None))
    }
}

/// An attempt that was cut short leaves operations. The next one, for a later block, fetches the others only.
#[test]
fn a_copy_goes_on_with_what_an_earlier_attempt_left() {
    run(async |context| {
        let (store, headers) = played(&context, 60).await;
        let (first, second) = (&headers[55], &headers[60]);
        let count = |header: &Header| header.commitment.ops_end - header.commitment.ops_start;
        let (needed, total) = (count(first) / 2, count(second));
        let genesis = genesis(30, "a");
        for answers in [0, 1, needed / 2, needed * 9 / 10] {
            let to = config(&format!("copy{answers}"));
            let (source, _) = Tiring::new(&store, answers);
            let error =
                QmdbStore::sync(context.child("cut"), &to, &genesis, first, source).await.err().unwrap();
            assert!(matches!(error, SyncError::Source { number: 55, .. }), "{error}");

            let (source, served) = Tiring::new(&store, u64::MAX);
            let copied = QmdbStore::sync(context.child("rest"), &to, &genesis, second, source).await.unwrap();
            assert_eq!(copied.tip().commitment(), second.commitment);
            assert_eq!(read::<Store>(&copied.tip(), 40).await, read::<Store>(&store.tip(), 40).await);
            let served = served.load(Relaxed);
            if answers == 0 {
                assert!(served + 1 >= total, "{served} of {total}");
            }
            if answers > needed / 2 {
                assert!(served < total * 3 / 4, "{served} of {total}: what was on disk was kept");
            }
        }
    });
}

/// Peers that have moved on and pruned can no longer answer for the block that a copy began with. The next attempt,
/// for a block of now, goes on with what there is.
#[test]
fn a_copy_whose_peers_prune_goes_on_with_a_newer_block() {
    run(async |context| {
        let (store, headers) = played(&context, 60).await;
        let (first, second) = (&headers[40], &headers[60]);
        let (to, genesis) = (config("b"), genesis(30, "a"));
        let (source, _) = Tiring::new(&store, 20);
        assert!(QmdbStore::sync(context.child("cut"), &to, &genesis, first, source).await.is_err());
        while store.prune(&second.commitment).await.unwrap() {}
        let source = Direct(store.clone());
        let error = QmdbStore::sync(context.child("old"), &to, &genesis, first, source).await.err().unwrap();
        assert!(error.to_string().contains("was pruned beyond"), "{error}");
        assert!(matches!(error, SyncError::Source { number: 40, .. }), "{error}");
        let copied = copy(&context, "b", &store, second).await.unwrap();
        assert_eq!(copied.tip().commitment(), second.commitment);
        assert_eq!(read::<Store>(&copied.tip(), 40).await, read::<Store>(&store.tip(), 40).await);
    });
}

/// What an earlier attempt left is believed only if it leads to the root that the header names.
#[test]
fn operations_of_another_log_are_found_out() {
    run(async |context| {
        let (store, headers) = played(&context, 60).await;
        let other = open(&context, "other").await.unwrap();
        for number in 1..=60 {
            advance(&other, number).await;
        }
        let other_header = header(60, &other);
        assert_eq!(
            other_header.commitment.ops_end, headers[60].commitment.ops_end,
            "as long, with other values"
        );
        assert_ne!(other_header.commitment.ops_root, headers[60].commitment.ops_root);
        let to = config("b");
        let source = Direct(other.clone());
        let foreign = genesis(30, "other");
        drop(QmdbStore::sync(context.child("other"), &to, &foreign, &other_header, source).await.unwrap());
        let error = copy(&context, "b", &store, &headers[60]).await.err().unwrap();
        assert!(matches!(error, SyncError::Damaged { number: 60, .. }), "{error}");
        copy(&context, "c", &store, &headers[60]).await.unwrap();
    });
}

fn block(number: u64) -> Block {
    Block { header: Header { number, ..Header::default() }, transactions: Vec::new() }
}

/// The archive of a copied chain begins behind the block that was copied, wherever files begin.
#[test]
fn an_archive_begins_behind_its_floor() {
    run(async |context| {
        for floor in [1u64, 6, 7, 8, 100] {
            let to = config(&format!("blocks{floor}"));
            let archive = BlockJournal::begin_after(context.child("begin"), &to, floor).await.unwrap();
            assert_eq!(archive.height().await, Ok(floor));
            drop(archive);
            for number in floor + 1..floor + 20 {
                let archive = BlockJournal::open_after(context.child("open"), &to, floor).await.unwrap();
                assert_eq!(archive.height().await, Ok(number - 1));
                let refused = archive.append(&block(number + 1), &[], None).await;
                assert!(matches!(refused, Err(ArchiveError::NotNext { .. })));
                archive.append(&block(number), &[], None).await.unwrap();
                assert_eq!(archive.get(floor).await, Ok(None));
                assert_eq!(archive.get(floor + 1).await.unwrap().unwrap().block, block(floor + 1));
            }
            for other in [0, floor - 1, floor + 1] {
                let opened = BlockJournal::open_after(context.child("other"), &to, other).await;
                if other != floor {
                    assert!(matches!(opened.err(), Some(ArchiveError::Incomplete { .. })), "{other}");
                }
            }
        }
    });
}
