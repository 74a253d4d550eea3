//! A chain of headers over a real store, signed by real validators.

use alloy_primitives::{Address, Bytes, U256, keccak256};
use almanac_bft::{BlockDigest, Namespace, ValidatorSet, block::key_bytes};
use almanac_primitives::{
    Genesis, Header, StateChange, StateDiff, StateKey, genesis::Validator, testing::genesis,
};
use almanac_state::{QmdbConfig, QmdbStore, SealedBatch as _, StateStore as _};
use commonware_codec::Encode as _;
use commonware_consensus::{
    simplex::{
        scheme::ed25519::Scheme,
        types::{Finalization, Finalize, Proposal},
    },
    types::{Epoch, Round, View},
};
use commonware_cryptography::{Signer as _, ed25519::PrivateKey};
use commonware_parallel::Sequential;
use commonware_runtime::{Supervisor as _, deterministic::Context};
use commonware_utils::{NZU64, NZUsize, non_empty};
use std::collections::BTreeMap;

/// Everything about a chain, at every height.
pub struct Chain {
    pub keys: Vec<PrivateKey>,
    pub validators: ValidatorSet,
    pub namespace: Namespace,
    pub genesis: BTreeMap<StateKey, Bytes>,
    pub store: QmdbStore<Context>,
    pub headers: Vec<Header>,
    pub states: Vec<BTreeMap<StateKey, Bytes>>,
    pub changed: Vec<Vec<StateKey>>,
}

impl Chain {
    pub async fn new(context: &Context, height: u64) -> Self {
        let mut keys: Vec<_> = (0..4).map(PrivateKey::from_seed).collect();
        keys.sort_by_key(PrivateKey::public_key);
        let validators = ValidatorSet::new(&with_validators(&keys)).unwrap();
        let genesis: BTreeMap<_, _> = (0..3_000).map(|n| (key(n), value(0, n))).collect();
        let store = QmdbStore::open(context.child("store"), &config("chain"), &genesis).await.unwrap();
        let first = Header { commitment: store.tip().commitment(), ..Header::default() };
        let mut chain = Self {
            keys,
            validators,
            namespace: Namespace(first.hash()),
            states: vec![genesis.clone()],
            genesis,
            store,
            headers: vec![first],
            changed: vec![Vec::new()],
        };
        for number in 1..=height {
            chain.grow(number).await;
        }
        chain
    }

    /// Overwrites, removes and adds values.
    async fn grow(&mut self, number: u64) {
        let mut state = self.states.last().unwrap().clone();
        let draw = |n: u64| {
            u64::from_be_bytes(
                keccak256([number.to_be_bytes(), n.to_be_bytes()].concat())[..8].try_into().unwrap(),
            )
        };
        let mut changes = BTreeMap::new();
        for n in 0..60 {
            let key = key(draw(n) % 4_000);
            let old = state.get(&key).cloned();
            let new = (n % 4 != 0).then(|| value(number, n));
            changes.entry(key).or_insert(StateChange { key, old, new });
        }
        let diff = StateDiff::new(changes.into_values().collect());
        for change in diff.changes() {
            match &change.new {
                Some(new) => state.insert(change.key, new.clone()),
                None => state.remove(&change.key),
            };
        }
        let batch = self.store.seal(&self.store.tip(), &diff).await.unwrap();
        self.store.commit(&batch).await.unwrap();
        let parent_hash = self.headers.last().unwrap().hash();
        self.headers.push(Header {
            number,
            parent_hash,
            commitment: batch.commitment(),
            ..Header::default()
        });
        self.states.push(state);
        self.changed.push(diff.changes().iter().map(|change| change.key).collect());
    }

    /// What the validators sign about a block.
    pub fn certificate(&self, header: &Header) -> Bytes {
        self.sign(header, &self.namespace)
    }

    /// The same signatures, of another chain.
    pub fn foreign_certificate(&self, header: &Header) -> Bytes {
        self.sign(header, &Namespace(header.hash()))
    }

    fn sign(&self, header: &Header, namespace: &Namespace) -> Bytes {
        let round = Round::new(Epoch::zero(), View::new(header.number));
        let payload = BlockDigest::from(header.hash());
        let proposal = Proposal::new(round, View::new(header.number - 1), payload);
        let schemes: Vec<Scheme> =
            self.keys.iter().map(|key| self.validators.signer(namespace, key).unwrap()).collect();
        let votes: Vec<_> =
            schemes.iter().map(|scheme| Finalize::sign(scheme, proposal.clone()).unwrap()).collect();
        let signed =
            Finalization::from_finalizes(&schemes[0], non_empty![@votes.iter()], &Sequential).unwrap();
        signed.encode().into()
    }
}

fn with_validators(keys: &[PrivateKey]) -> Genesis {
    let validator = |(index, key): (usize, &PrivateKey)| Validator {
        name: format!("v{index}"),
        public_key: key_bytes(&key.public_key()),
        fee_recipient: Address::repeat_byte(1),
    };
    Genesis { validators: keys.iter().enumerate().map(validator).collect(), ..genesis() }
}

fn key(n: u64) -> StateKey {
    let address = Address::left_padding_from(&(n % 500).to_be_bytes());
    if n < 500 { StateKey::Account(address) } else { StateKey::Slot(address, U256::from(n)) }
}

fn value(number: u64, n: u64) -> Bytes {
    format!("{number}/{n}").into_bytes().into()
}

/// Small files, so that a short chain has several.
pub fn config(partition: &str) -> QmdbConfig {
    QmdbConfig {
        page_cache_bytes: 256 << 10,
        open_cache_keys: 10_000,
        write_buffer_bytes: NZUsize!(4 << 10),
        file_operations: NZU64!(256),
        ..QmdbConfig::new(partition)
    }
}
