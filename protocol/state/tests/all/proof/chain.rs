//! A chain of state changes on a store in the deterministic runtime, and values to put into it.

use alloy_primitives::{Address, Bytes, KECCAK256_EMPTY, U256, keccak256};
use almanac_primitives::{
    Account, Header, ScheduleId, StateChange, StateDiff, StateKey, TimestampMs,
    state::{Meta, encode_slot},
};
use almanac_state::{QmdbConfig, QmdbStore, SealedBatch as _, StateProof, StateStore as _};
use commonware_runtime::{Runner as _, Spawner, deterministic};
use commonware_storage::Context;
use std::collections::BTreeMap;

pub(crate) type Values = BTreeMap<StateKey, Bytes>;

/// Runs a test to its end.
pub(crate) fn run<T>(test: impl AsyncFnOnce(deterministic::Context) -> T) -> T {
    deterministic::Runner::default().start(|context| async move { test(context).await })
}

pub(crate) struct Chain<E: Context + Spawner = deterministic::Context> {
    pub(crate) store: QmdbStore<E>,
    pub(crate) header: Header,
    pub(crate) values: Values,
}

impl<E: Context + Spawner> Chain<E> {
    pub(crate) async fn start(context: E, genesis: Values) -> Self {
        Self::start_with(context, &QmdbConfig::new("proven"), genesis).await
    }

    pub(crate) async fn start_with(context: E, config: &QmdbConfig, genesis: Values) -> Self {
        let store = QmdbStore::open(context, config, &genesis).await.unwrap();
        let header = Header { commitment: store.tip().commitment(), ..Header::default() };
        Self { store, header, values: genesis }
    }

    /// Makes the next block.
    pub(crate) async fn commit(&mut self, writes: impl IntoIterator<Item = (StateKey, Option<Bytes>)>) {
        let mut changes = Vec::new();
        for (key, new) in writes {
            let old = match new.clone() {
                Some(value) => self.values.insert(key, value),
                None => self.values.remove(&key),
            };
            changes.push(StateChange { key, old, new });
        }
        let batch = self.store.seal(&self.store.tip(), &StateDiff::new(changes)).await.unwrap();
        self.store.commit(&batch).await.unwrap();
        self.header = Header {
            parent_hash: self.header.hash(),
            number: self.header.number + 1,
            timestamp: TimestampMs(self.header.timestamp.0 + 100),
            commitment: batch.commitment(),
            ..Header::default()
        };
    }

    pub(crate) async fn prove(&self, key: StateKey) -> StateProof {
        self.store.prove(&self.header, key).await.unwrap()
    }
}

pub(crate) const ALICE: Address = Address::repeat_byte(0xa1);
pub(crate) const TOKEN: Address = Address::repeat_byte(0x70);
pub(crate) const BODY: StateKey = StateKey::Body(ScheduleId(0xb0));
pub(crate) const NODE: StateKey = StateKey::Calendar(7);
pub(crate) const GENESIS: StateKey = StateKey::Meta(Meta::Genesis);

pub(crate) fn alice() -> Account {
    let coins = U256::from(1_500_000_000_000_000_000_u64);
    Account { nonce: 3, balance: coins, code_hash: KECCAK256_EMPTY, is_keyed: false }
}

pub(crate) fn token() -> Account {
    Account { nonce: 1, balance: U256::ZERO, code_hash: keccak256(token_code()), is_keyed: false }
}

pub(crate) fn token_code() -> Bytes {
    Bytes::from_static(&[0x60, 0x01, 0x60, 0x00, 0x55])
}

pub(crate) fn slot(n: u64) -> StateKey {
    StateKey::Slot(TOKEN, U256::from(n))
}

pub(crate) fn stored_slot(value: u64) -> Bytes {
    encode_slot(U256::from(value)).expect("not zero")
}

/// A value of each kind.
pub(crate) fn genesis() -> Values {
    BTreeMap::from([
        (GENESIS, Bytes::from_static(b"chain 31337")),
        (StateKey::Account(ALICE), alice().encode()),
        (StateKey::Account(TOKEN), token().encode()),
        (slot(5), stored_slot(0x0102_0304)),
        (StateKey::Code(token().code_hash), token_code()),
        (BODY, Bytes::from_static(b"who calls whom")),
        (NODE, Bytes::from_static(b"what is due when")),
    ])
}

/// As many slots again, so that the log of operations fills whole chunks of 256.
pub(crate) fn fill(count: u64) -> impl Iterator<Item = (StateKey, Option<Bytes>)> {
    (1_000..1_000 + count).map(|n| (slot(n), Some(stored_slot(n))))
}
