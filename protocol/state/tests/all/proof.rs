//! Proofs: what is there can be proven, and nothing else can.
//!
//! Everything that our verifier accepts or refuses goes through a dull one as well, written from the
//! description of the format with two hash functions and nothing else.

mod chain;
mod dull;
mod vectors;

use alloy_primitives::{B256, Bytes, U256, keccak256};
use almanac_primitives::{
    Header, StateKey,
    codec::DecodeError,
    params::STATE_VALUE_BYTES_MAX,
    state::{Meta, decode_slot},
};
use almanac_state::{
    ContentError, ProofDecodeError, ProveError, ProvenValue, QmdbConfig, QmdbStore, StateProof, VerifyError,
    proof::PROOF_BYTES_MAX, verify,
};
use chain::{ALICE, BODY, Chain, GENESIS, NODE, TOKEN, alice, fill, genesis, run, slot, stored_slot, token};
use commonware_runtime::{Runner as _, Spawner, Supervisor as _, deterministic, reschedule, tokio};
use commonware_storage::Context;
use commonware_utils::{NZU64, NZUsize, probability};
use proptest::{collection::vec, option, prelude::*, sample::Index};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

/// What a proof that arrives as bytes is worth, with the name of what is wrong. The dull verifier must agree.
fn outcome(header: &Header, encoded: &[u8]) -> Result<ProvenValue, &'static str> {
    let outcome = match StateProof::decode(encoded) {
        Err(_) => Err("Malformed"),
        Ok(proof) => {
            assert_eq!(proof.encode(), encoded, "one proof has one encoding");
            verify(header, &proof).map_err(|error| match error {
                VerifyError::OtherBlock { .. } => "OtherBlock",
                VerifyError::WrongRoot { .. } => "WrongRoot",
            })
        }
    };
    let dull = dull::verify(&header.encode(), encoded);
    let expected = dull.as_ref().map(|(key, value)| (keccak256(key), &value[..]));
    let found = outcome.as_ref().ok().map(|proven| (proven.key().hashed(), &value(proven)[..]));
    assert_eq!(found, expected, "the dull verifier sees it differently: {outcome:?}");
    outcome
}

fn value(proven: &ProvenValue) -> &Bytes {
    proven.value_of(proven.key()).unwrap()
}

/// The proof as someone would write it who wants it to pass for one of another block.
fn rebased(proof: &StateProof, header: &Header) -> StateProof {
    StateProof { block_number: header.number, block_hash: header.hash(), ..proof.clone() }
}

// ---- What is there ----

#[test]
fn every_kind_of_value_is_proven_and_read() {
    run(async |context| {
        let mut chain = Chain::start(context, genesis()).await;
        chain.commit(fill(900)).await;
        let header = &chain.header;
        let mut proven = BTreeMap::new();
        for (key, stored) in genesis() {
            let found = outcome(header, &chain.prove(key).await.encode()).unwrap();
            assert_eq!((found.key(), value(&found)), (key, &stored));
            assert_eq!((found.block_number(), found.block_hash()), (1, header.hash()));
            proven.insert(key, found);
        }
        let of = |key| &proven[&key];
        assert_eq!(of(StateKey::Account(ALICE)).account(ALICE), Ok(alice()));
        assert_eq!(of(StateKey::Account(TOKEN)).account(TOKEN), Ok(token()));
        assert_eq!(of(slot(5)).slot(TOKEN, U256::from(5)), Ok(U256::from(0x0102_0304)));
        let code = StateKey::Code(token().code_hash);
        assert_eq!(of(code).code(token().code_hash), Ok(&chain::token_code()));
        for key in [BODY, NODE, GENESIS] {
            assert_eq!(of(key).value_of(key), Ok(&genesis()[&key]));
        }
    });
}

#[test]
fn a_value_is_read_only_as_what_it_is() {
    run(async |context| {
        let wrong_code = B256::repeat_byte(0xc0);
        let zero = Bytes::from_static(&[0]);
        let writes = [
            (StateKey::Account(TOKEN), Some(Bytes::from_static(b"no account"))),
            (slot(5), Some(zero.clone())),
            (StateKey::Code(wrong_code), Some(Bytes::from_static(b"other"))),
        ];
        let mut chain = Chain::start(context, genesis()).await;
        chain.commit(writes).await;
        let proven = async |key| verify(&chain.header, &chain.prove(key).await).unwrap();

        let account = proven(StateKey::Account(ALICE)).await;
        let other_key = |asked| Err(ContentError::OtherKey { asked, proven: StateKey::Account(ALICE) });
        assert_eq!(account.account(TOKEN).map(drop), other_key(StateKey::Account(TOKEN)));
        assert_eq!(account.slot(ALICE, U256::ZERO).map(drop), other_key(StateKey::Slot(ALICE, U256::ZERO)));
        assert_eq!(account.code(B256::ZERO).map(drop), other_key(StateKey::Code(B256::ZERO)));
        assert_eq!(account.value_of(NODE).map(drop), other_key(NODE));

        let malformed = proven(StateKey::Account(TOKEN)).await.account(TOKEN);
        assert!(matches!(malformed, Err(ContentError::Malformed { key: StateKey::Account(TOKEN), .. })));
        let error = decode_slot(&zero).unwrap_err();
        let read = proven(slot(5)).await.slot(TOKEN, U256::from(5));
        assert_eq!(read, Err(ContentError::Malformed { key: slot(5), error }));
        let found = keccak256("other");
        let other_code = Err(ContentError::OtherCode { named: wrong_code, found });
        assert_eq!(proven(StateKey::Code(wrong_code)).await.code(wrong_code), other_code);
    });
}

#[test]
fn the_largest_value_fits_and_a_larger_one_does_not() {
    run(async |context| {
        let mut chain = Chain::start(context, genesis()).await;
        chain.commit([(BODY, Some(vec![7; STATE_VALUE_BYTES_MAX].into()))]).await;
        let proof = chain.prove(BODY).await;
        let encoded = proof.encode();
        assert_eq!(value(&outcome(&chain.header, &encoded).unwrap()).len(), STATE_VALUE_BYTES_MAX);
        assert!(encoded.len() <= PROOF_BYTES_MAX);

        let larger = StateProof { value: vec![7; STATE_VALUE_BYTES_MAX + 1].into(), ..proof };
        let (given, max) = (STATE_VALUE_BYTES_MAX + 1, STATE_VALUE_BYTES_MAX);
        let too_long = DecodeError::TooLong { what: "value", given, max };
        assert_eq!(StateProof::decode(&larger.encode()), Err(ProofDecodeError::Field(too_long)));
    });
}

#[test]
fn the_longest_path_can_be_read_and_a_longer_one_cannot() {
    run(async |context| {
        let chain = Chain::start(context, genesis()).await;
        let mut proof = chain.prove(NODE).await;
        let digest = proof.path.range_proof.ops_root;
        proof.path.range_proof.proof.digests = vec![digest; 122];
        assert_eq!(StateProof::decode(&proof.encode()).as_ref(), Ok(&proof));
        assert_eq!(outcome(&chain.header, &proof.encode()), Err("WrongRoot"));
        proof.path.range_proof.proof.digests.push(digest);
        assert!(matches!(StateProof::decode(&proof.encode()), Err(ProofDecodeError::Path { .. })));

        proof.path.range_proof.proof.digests.resize(200, digest);
        let given = proof.encode().len() - chain.prove(NODE).await.encode().len();
        let error = StateProof::decode(&proof.encode()).unwrap_err();
        assert!(
            matches!(error, ProofDecodeError::Field(DecodeError::TooLong { what: "path", .. })),
            "{given}"
        );
    });
}

/// Pruning drops operations that no value needs, and reopening builds the tree anew.
#[test]
fn proofs_survive_pruning_and_reopening() {
    run(async |context| {
        let config = QmdbConfig {
            file_operations: NZU64!(64),
            write_buffer_bytes: NZUsize!(4_096),
            ..QmdbConfig::new("pruned")
        };
        let mut chain = Chain::start_with(context.child("first"), &config, genesis()).await;
        for round in 0..8 {
            chain.commit(fill(150).map(|(key, _)| (key, Some(stored_slot(round + 1))))).await;
        }
        assert!(chain.header.commitment.ops_start > 256, "whole chunks can be pruned");
        while chain.store.prune(&chain.header.commitment).await.unwrap() {}
        let Chain { store, header, values } = chain;
        let prove_all = async |store: &QmdbStore<deterministic::Context>| {
            for (key, stored) in &values {
                let proof = store.prove(&header, *key).await.unwrap();
                assert_eq!(value(&outcome(&header, &proof.encode()).unwrap()), stored);
            }
        };
        prove_all(&store).await;
        drop(store);
        let reopened = QmdbStore::open(context.child("again"), &config, &genesis()).await.unwrap();
        prove_all(&reopened).await;
    });
}

// ---- What cannot be proven ----

#[test]
fn absence_is_refused_by_name() {
    run(async |context| {
        let mut chain = Chain::start(context, genesis()).await;
        chain.commit([(slot(5), None)]).await;
        for key in [slot(5), slot(6), StateKey::Account(B256::ZERO.0[..20].try_into().unwrap())] {
            let refused = chain.store.prove(&chain.header, key).await;
            assert_eq!(refused, Err(ProveError::AbsenceUnprovable { key, block_number: 1 }));
        }
    });
}

#[test]
fn only_the_last_committed_block_is_proven() {
    run(async |context| {
        let mut chain = Chain::start(context, genesis()).await;
        let before = chain.header.clone();
        chain.commit([(slot(5), Some(stored_slot(6)))]).await;
        let stale = |header: &Header| ProveError::Stale {
            block_number: header.number,
            state_root: header.commitment.state_root,
            store_height: 1,
            store_root: chain.header.commitment.state_root,
        };
        assert_eq!(chain.store.prove(&before, NODE).await, Err(stale(&before)));
        let mut ahead = chain.header.clone();
        ahead.number += 1;
        ahead.commitment.state_root.0[0] ^= 1;
        assert_eq!(chain.store.prove(&ahead, NODE).await, Err(stale(&ahead)));
        assert!(chain.store.prove(&chain.header, NODE).await.is_ok());
    });
}

/// A proof is of the header that was asked for, or there is none, however the two interleave with commits.
#[test]
fn a_proof_and_its_header_are_of_one_commit() {
    let (mut proven, mut stale) = (0, 0);
    for seed in 0..8 {
        let (ok, refused) = deterministic::Runner::seeded(seed).start(race);
        proven += ok;
        stale += refused;
    }
    assert!(proven > 0 && stale > 0, "both happened: {proven} proven, {stale} stale");
}

/// The same on real threads and a real disk, where proving and committing do run at the same time.
#[test]
fn a_proof_and_its_header_are_of_one_commit_on_threads() {
    let directory = tempfile::tempdir().unwrap();
    let config = tokio::Config::new().with_storage_directory(directory.path()).with_worker_threads(2);
    let (proven, stale) = tokio::Runner::new(config).start(race);
    assert!(proven > 0 && stale > 0, "both happened: {proven} proven, {stale} stale");
}

/// Proves what the last known header says, over and over, while blocks are committed. Counts the proofs, and
/// how often the store was ahead of the header.
async fn race<E: Context + Spawner>(context: E) -> (u64, u64) {
    const BLOCKS: u64 = 40;
    let mut values = genesis();
    values.insert(slot(5), stored_slot(1));
    let config = QmdbConfig { page_cache_bytes: 4_096, ..QmdbConfig::new("raced") };
    let mut chain = Chain::start_with(context.child("store"), &config, values).await;
    let tip = Arc::new(Mutex::new(chain.header.clone()));
    let (store, seen) = (chain.store.clone(), tip.clone());
    let reader = context.child("reader").spawn(move |_| async move {
        let (mut proven, mut stale) = (0, 0);
        loop {
            let header = seen.lock().unwrap().clone();
            match store.prove(&header, slot(5)).await {
                Ok(proof) => {
                    let found = verify(&header, &proof).unwrap().slot(TOKEN, U256::from(5));
                    assert_eq!(found, Ok(U256::from(header.number + 1)));
                    proven += 1;
                }
                Err(ProveError::Stale { .. }) => stale += 1,
                Err(other) => panic!("{other}"),
            }
            if header.number == BLOCKS {
                return (proven, stale);
            }
            reschedule().await;
        }
    });
    for number in 1..=BLOCKS {
        let filler = (0..50).map(|n| (slot(10_000 + n), Some(stored_slot(number))));
        chain.commit(filler.chain([(slot(5), Some(stored_slot(number + 1)))])).await;
        // The store is ahead of what the reader knows for a while.
        context.sleep(Duration::from_micros(100)).await;
        *tip.lock().unwrap() = chain.header.clone();
        context.sleep(Duration::from_micros(100)).await;
    }
    reader.await.unwrap()
}

#[test]
fn a_failed_disk_makes_no_proof() {
    run(async |context| {
        let config = QmdbConfig {
            page_cache_bytes: 4_096,
            write_buffer_bytes: NZUsize!(1_024),
            ..QmdbConfig::new("failing")
        };
        let mut chain = Chain::start_with(context.child("store"), &config, genesis()).await;
        chain.commit(fill(2_000)).await;
        context.storage_fault_config().write().read_rate = Some(probability!(1.0));
        let failed = chain.store.prove(&chain.header, slot(1_001)).await;
        assert!(matches!(failed, Err(ProveError::Store { key, .. }) if key == slot(1_001)), "{failed:?}");
        context.storage_fault_config().write().read_rate = None;
        assert!(chain.store.prove(&chain.header, slot(1_001)).await.is_ok(), "a read can be tried again");
    });
}

#[test]
fn a_closed_store_makes_no_proof() {
    run(async |context| {
        use almanac_state::StateStore as _;
        let chain = Chain::start(context.child("store"), genesis()).await;
        let change = almanac_primitives::StateChange { key: slot(9), old: None, new: Some(stored_slot(9)) };
        let diff = almanac_primitives::StateDiff::new(vec![change]);
        let batch = chain.store.seal(&chain.store.tip(), &diff).await.unwrap();
        context.storage_fault_config().write().sync_rate = Some(probability!(1.0));
        chain.store.commit(&batch).await.unwrap_err();
        context.storage_fault_config().write().sync_rate = None;
        assert_eq!(chain.store.prove(&chain.header, NODE).await, Err(ProveError::Closed));
    });
}

// ---- What is refused ----

/// In a small state no chunk is full; in a larger one the path passes a grafted node.
#[test]
fn every_flipped_bit_of_a_proof_is_refused() {
    run(async |context| {
        let mut chain = Chain::start(context, genesis()).await;
        for is_large in [false, true] {
            if is_large {
                chain.commit(fill(1_500)).await;
            }
            let keys =
                if is_large { vec![slot(1_001), slot(2_499)] } else { genesis().into_keys().collect() };
            for key in keys {
                let encoded = chain.prove(key).await.encode();
                outcome(&chain.header, &encoded).unwrap();
                for bit in 0..8 * encoded.len() {
                    let refused = outcome(&chain.header, &flipped(&encoded, bit)).unwrap_err();
                    // Version, number and hash of the block come first.
                    match bit / 8 {
                        0 => assert_eq!(refused, "Malformed"),
                        1..41 => assert_eq!(refused, "OtherBlock"),
                        _ => assert!(matches!(refused, "Malformed" | "WrongRoot"), "bit {bit}: {refused}"),
                    }
                }
                for length in 0..encoded.len() {
                    assert_eq!(outcome(&chain.header, &encoded[..length]), Err("Malformed"));
                }
                assert_eq!(outcome(&chain.header, &[&encoded[..], &[0]].concat()), Err("Malformed"));
            }
        }
    });
}

fn flipped(bytes: &[u8], bit: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[bit / 8] ^= 1 << (bit % 8);
    bytes
}

#[test]
fn every_flipped_bit_of_a_header_is_refused() {
    run(async |context| {
        let mut chain = Chain::start(context, genesis()).await;
        chain.commit(fill(300)).await;
        let proof = chain.prove(slot(1_000)).await;
        let encoded = chain.header.encode();
        for bit in 8..8 * encoded.len() {
            let header = Header::decode(&flipped(&encoded, bit)).unwrap();
            assert_eq!(outcome(&header, &proof.encode()), Err("OtherBlock"), "bit {bit}");
        }
        // A root that the proof does not lead to, in a header that the proof names.
        for bit in 0..256 {
            let mut header = chain.header.clone();
            header.commitment.state_root = B256::from_slice(&flipped(&header.commitment.state_root.0, bit));
            assert_eq!(outcome(&header, &rebased(&proof, &header).encode()), Err("WrongRoot"), "bit {bit}");
        }
    });
}

#[test]
fn parts_of_two_proofs_do_not_fit_together() {
    run(async |context| {
        let mut chain = Chain::start(context, genesis()).await;
        chain.commit(fill(600)).await;
        let mut keys: Vec<StateKey> = genesis().into_keys().collect();
        keys.extend([slot(1_000), slot(1_001), slot(1_300), slot(1_599)]);
        let mut proofs = Vec::new();
        for key in keys {
            proofs.push(chain.prove(key).await);
        }
        for (n, one) in proofs.iter().enumerate() {
            for other in proofs.iter().skip(n + 1).chain(&proofs[..n]) {
                let StateProof { key, value, path, .. } = other.clone();
                for mixed in [
                    StateProof { key, ..one.clone() },
                    StateProof { value: value.clone(), ..one.clone() },
                    StateProof { path, ..one.clone() },
                    StateProof { key, value, ..one.clone() },
                ] {
                    assert_eq!(outcome(&chain.header, &mixed.encode()), Err("WrongRoot"), "{mixed:?}");
                }
            }
        }
    });
}

#[test]
fn old_values_and_deleted_ones_are_refused() {
    run(async |context| {
        let mut chain = Chain::start(context, genesis()).await;
        chain.commit(fill(300)).await;
        let (overwritten, deleted, kept) = (slot(1_001), slot(1_002), slot(1_003));
        let before = chain.header.clone();
        let old = [chain.prove(overwritten).await, chain.prove(deleted).await, chain.prove(kept).await];
        chain.commit([(overwritten, Some(stored_slot(77))), (deleted, None)]).await;
        let now = chain.header.clone();
        let path_now = chain.prove(overwritten).await.path;
        for proof in &old {
            assert!(outcome(&before, &proof.encode()).is_ok(), "it was so, and stays proven of that block");
            assert_eq!(outcome(&now, &proof.encode()), Err("OtherBlock"));
            assert_eq!(outcome(&now, &rebased(proof, &now).encode()), Err("WrongRoot"));
            let mixed = StateProof { path: path_now.clone(), ..rebased(proof, &now) };
            assert_eq!(outcome(&now, &mixed.encode()), Err("WrongRoot"));
        }
        // And what is true now was not true before.
        let new = chain.prove(overwritten).await;
        assert_eq!(outcome(&before, &new.encode()), Err("OtherBlock"));
        assert_eq!(outcome(&before, &rebased(&new, &before).encode()), Err("WrongRoot"));
    });
}

#[test]
fn a_proof_of_another_chain_is_refused() {
    run(async |context| {
        let mut other_genesis = genesis();
        other_genesis.insert(StateKey::Meta(Meta::Genesis), Bytes::from_static(b"chain 31338"));
        let ours = Chain::start(context.child("ours"), genesis()).await;
        let config = QmdbConfig::new("theirs");
        let theirs = Chain::start_with(context.child("theirs"), &config, other_genesis).await;
        let proof = theirs.prove(StateKey::Account(ALICE)).await;
        assert!(outcome(&theirs.header, &proof.encode()).is_ok());
        assert_eq!(outcome(&ours.header, &proof.encode()), Err("OtherBlock"));
        assert_eq!(outcome(&ours.header, &rebased(&proof, &ours.header).encode()), Err("WrongRoot"));
    });
}

// ---- At random ----

#[derive(Clone, Debug)]
struct Damage {
    at: Index,
    with: Vec<u8>,
    removed: usize,
}

fn damage() -> impl Strategy<Value = Damage> {
    (any::<Index>(), vec(any::<u8>(), 0..4), 0..4usize).prop_map(|(at, with, removed)| Damage {
        at,
        with,
        removed,
    })
}

impl Damage {
    fn apply(&self, bytes: &[u8]) -> Vec<u8> {
        let at = self.at.index(bytes.len());
        let rest = (at + self.removed).min(bytes.len());
        [&bytes[..at], &self.with, &bytes[rest..]].concat()
    }
}

type Writes = Vec<(u64, Option<u64>)>;

fn histories() -> impl Strategy<Value = Vec<Writes>> {
    vec(vec((0..400u64, option::weighted(0.8, 1..u64::MAX)), 0..200), 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// After every block of a random history every value is proven, every deleted one is not, and no proof
    /// survives damage.
    #[test]
    fn whatever_happened_before(blocks in histories(), damages in vec((any::<Index>(), damage()), 64)) {
        run(async |context| {
            let mut chain = Chain::start(context, genesis()).await;
            for writes in blocks {
                let writes: BTreeMap<_, _> = writes.into_iter().collect();
                let touched: Vec<_> = writes.keys().map(|n| slot(*n)).collect();
                chain.commit(writes.into_iter().map(|(n, value)| (slot(n), value.map(stored_slot)))).await;
                let mut proofs = Vec::new();
                for (key, stored) in &chain.values {
                    let encoded = chain.prove(*key).await.encode();
                    assert_eq!(value(&outcome(&chain.header, &encoded).unwrap()), stored);
                    proofs.push(encoded);
                }
                for key in touched.into_iter().filter(|key| !chain.values.contains_key(key)) {
                    let refused = chain.store.prove(&chain.header, key).await;
                    assert!(matches!(refused, Err(ProveError::AbsenceUnprovable { .. })));
                }
                for (which, damage) in &damages {
                    let encoded = which.get(&proofs);
                    let damaged = damage.apply(encoded);
                    assert_eq!(outcome(&chain.header, &damaged).is_ok(), damaged == *encoded);
                }
            }
        });
    }

    #[test]
    fn garbage_is_refused_without_a_panic(bytes in vec(any::<u8>(), 0..600), kind in 0..6u8) {
        let header = Header::default();
        let _ = outcome(&header, &bytes);
        // Past the fields whose form is fixed, so that the path itself is garbage.
        let key = [&[4][..], &[kind; 8]].concat();
        let front = [&[1], &[0; 8][..], header.hash().as_slice(), &key, &[0, 0, 0, 1, 9]].concat();
        let length = u32::try_from(bytes.len()).unwrap().to_be_bytes();
        prop_assert!(outcome(&header, &[&front[..], &length, &bytes].concat()).is_err());
    }

    /// Numbers that a log of operations can never have, where the verifier calculates with them.
    #[test]
    fn wild_numbers_are_refused_without_a_panic(
        numbers: [u64; 3],
        shifts in [0..64u32, 0..64u32, 0..64u32],
        digests in 0..123usize,
        partial: bool,
    ) {
        let header = Header::default();
        let [location, leaves, inactive] = std::array::from_fn(|n| varint(numbers[n] >> shifts[n]));
        let partial = if partial { vec![1; 33] } else { vec![0] };
        let count = varint(u64::try_from(digests).unwrap());
        let digests = vec![3; 32 * digests];
        let numbers = [&location[..], &[0xff; 32], &leaves, &inactive, &count].concat();
        let path = [&numbers[..], &digests, &partial, &[4; 32]].concat();
        let front = [&[1], &[0; 8][..], header.hash().as_slice(), &[4; 9], &[0, 0, 0, 1, 9]].concat();
        let length = u32::try_from(path.len()).unwrap().to_be_bytes();
        prop_assert!(outcome(&header, &[&front[..], &length, &path].concat()).is_err());
    }
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value > 127 {
        out.push(u8::try_from(value & 127).unwrap() | 128);
        value >>= 7;
    }
    out.push(u8::try_from(value).unwrap());
    out
}

// ---- How large, how fast ----

#[test]
#[allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "measures; nothing depends on it")]
fn size_and_time_at_ten_thousand_keys() {
    use std::time::Instant;
    const PROOFS: u64 = 1_000;
    run(async |context| {
        let mut chain = Chain::start(context, genesis()).await;
        chain.commit(fill(10_000)).await;
        // Some churn, so that the log is longer than the state.
        chain.commit(fill(10_000).step_by(3).map(|(key, _)| (key, Some(stored_slot(1))))).await;
        let keys: Vec<_> = (0..PROOFS).map(|n| slot(1_000 + n * 10)).collect();
        let start = Instant::now();
        let mut proofs = Vec::new();
        for key in keys {
            proofs.push(chain.prove(key).await.encode());
        }
        let made = start.elapsed();
        let start = Instant::now();
        for proof in &proofs {
            verify(&chain.header, &StateProof::decode(proof).unwrap()).unwrap();
        }
        let verified = start.elapsed();
        let sizes: Vec<_> = proofs.iter().map(Vec::len).collect();
        let (least, most) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
        println!(
            "{} keys, {} operations: proofs of {least} to {most} bytes, made in {} us, verified in {} us",
            chain.values.len(),
            chain.header.commitment.ops_end,
            made.as_micros() / u128::from(PROOFS),
            verified.as_micros() / u128::from(PROOFS),
        );
        assert!(*most < 1_024, "a proof grows with the logarithm of the log: {most} bytes");
    });
}
