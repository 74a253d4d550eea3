//! Small histories, and a store on disk to play them on.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]

use alloy_primitives::{Address, Bytes, U256, keccak256};
use almanac_primitives::{ScheduleId, StateChange, StateDiff, StateKey, state::Meta};
use almanac_state::{OpenError, QmdbConfig, QmdbStore, StateStore, StateView as _};
use commonware_runtime::Spawner;
use commonware_storage::Context;
use commonware_utils::{NZU64, NZUsize};
use std::{collections::BTreeMap, fmt};

pub type Values = BTreeMap<StateKey, Bytes>;

/// New values by the number of their key; `None` removes.
pub type Writes = BTreeMap<u64, Option<Bytes>>;

pub fn text(value: impl fmt::Display) -> Bytes {
    value.to_string().into_bytes().into()
}

/// The n-th key: every kind takes its turn.
pub fn key(number: u64) -> StateKey {
    let address = Address::left_padding_from(&number.to_be_bytes());
    match number % 5 {
        0 => StateKey::Account(address),
        1 => StateKey::Slot(address, U256::from(number)),
        2 => StateKey::Code(keccak256(number.to_be_bytes())),
        3 => StateKey::Body(ScheduleId(number % 256)),
        _ => StateKey::Calendar(number),
    }
}

pub fn keys(count: u64) -> Vec<StateKey> {
    (0..count).map(key).collect()
}

/// A genesis with the first keys, and a name that sets it apart.
pub fn genesis(count: u64, name: &str) -> Values {
    let values = (0..count).map(|number| (key(number), text(format_args!("genesis {number}"))));
    values.chain([(StateKey::Meta(Meta::Genesis), text(name))]).collect()
}

/// What block `height` of the common history writes: some of 40 keys, now and then removing one.
pub fn writes(height: u64) -> Writes {
    let draw = |n: u64| u64::from(keccak256([height.to_be_bytes(), n.to_be_bytes()].concat())[7]);
    let value = |n: u64| (draw(n) % 7 != 0).then(|| text(format_args!("{height}/{n}")));
    (0..10).map(|n| (draw(100 + n) % 40, value(n))).collect()
}

/// Small files and buffers, so that a short history crosses many borders.
pub fn config(partition: &str) -> QmdbConfig {
    QmdbConfig {
        page_cache_bytes: 64 << 10,
        open_cache_keys: 100,
        write_buffer_bytes: NZUsize!(512),
        file_operations: NZU64!(100),
        file_blocks: NZU64!(7),
        ..QmdbConfig::new(partition)
    }
}

pub async fn open<E: Context + Spawner>(context: &E, partition: &str) -> Result<QmdbStore<E>, OpenError> {
    QmdbStore::open(context.child("state"), &config(partition), &genesis(30, partition)).await
}

/// Values of a batch, key by key.
pub async fn read<S: StateStore>(batch: &S::Batch, count: u64) -> Vec<Option<Bytes>> {
    batch.get_many(&keys(count)).await.expect("the batch is live")
}

/// The diff that makes `writes` of a batch.
pub async fn diff<S: StateStore>(parent: &S::Batch, writes: &Writes) -> StateDiff {
    let keys: Vec<_> = writes.keys().map(|number| key(*number)).collect();
    let old = parent.get_many(&keys).await.expect("the parent is live");
    let new = writes.values().cloned();
    let changes = keys.into_iter().zip(old).zip(new);
    StateDiff::new(changes.map(|((key, old), new)| StateChange { key, old, new }).collect())
}

/// Seals `writes` on a batch.
pub async fn seal<S: StateStore>(store: &S, parent: &S::Batch, writes: &Writes) -> S::Batch {
    let diff = diff::<S>(parent, writes).await;
    store.seal(parent, &diff).await.expect("the diff fits its parent")
}

/// Seals and commits a block of the common history on the tip.
pub async fn advance<S: StateStore>(store: &S, height: u64) -> S::Batch {
    let batch = seal(store, &store.tip(), &writes(height)).await;
    store.commit(&batch).await.expect("it is on the tip");
    batch
}
