//! The dearest legal transactions of each kind, and a chain with people who can pay for them.

use alloy_consensus::{TxEip1559, TxLegacy};
use alloy_eips::{
    eip2930::{AccessList, AccessListItem},
    eip7702::SignedAuthorization,
};
use alloy_primitives::{Address, Bytes, TxKind, U256, keccak256};
use almanac_primitives::{
    Account, Chain, Genesis, NativeCall, NativeTransaction, StateKey, UserTransaction, Wei,
    addresses::ACCOUNTS,
    genesis::Allocation,
    keys::{KEY_LEAVES_MAX, KeyRecord, KeyTree, StoredKey},
    native::CALLS_MAX,
    state::encode_slot,
    testing::{native::*, *},
};
use std::{collections::BTreeMap, sync::LazyLock};

/// Senders of one kind: each has few, so that no cap of the pool keeps any out.
const SENDERS: u64 = 40;

/// The first of those whose accounts have the largest key.
const KEYED: u64 = 1_000;

/// The first of those who pay for them, with the same key.
const PAYERS: u64 = 2_000;

/// The first of those who delegate to a contract.
const AUTHORITIES: u64 = 3_000;

const MUCH: u128 = 10u128.pow(24);

/// Of accounts that did not exist before. Signing them takes a while, so that all have the same.
static DELEGATIONS: LazyLock<Vec<SignedAuthorization>> = LazyLock::new(|| {
    let authority = |n| authorize(person(AUTHORITIES + n), 0, contracts::COUNTER);
    (0..1_000).map(authority).collect()
});

/// The dearest legal transactions of one kind: as large as they may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Calldata of 127 KiB.
    Legacy,
    /// An access list of 3,850 keys.
    List,
    /// Init code that the EVM has to look through.
    Create,
    /// 1,000 authorisations of as many accounts.
    Delegations,
    /// 64 calls of as many accounts, 128 KiB of the cheapest calldata together.
    Batch,
    /// 64 calls of as many accounts, signed by all 32 leaves of the sender's key and of the fee payer's.
    Orderless,
}

impl Kind {
    /// Each, with as many of them as a flood has. Those that take long to sign come in smaller floods.
    pub(super) const FLOODS: [(Self, u64); 6] = [
        (Self::Legacy, 200),
        (Self::List, 400),
        (Self::Create, 200),
        (Self::Delegations, 8),
        (Self::Batch, 400),
        (Self::Orderless, 200),
    ];

    /// The n-th of a flood.
    pub(super) fn nth(self, chain: &Chain, n: u64) -> UserTransaction {
        self.sign(chain, n % SENDERS, n / SENDERS)
    }

    fn sign(self, chain: &Chain, sender: u64, nonce: u64) -> UserTransaction {
        let (from, to) = (person(sender), person(1).address);
        match self {
            Self::Legacy => {
                let input = vec![7; 127 * 1024].into();
                sign(TxLegacy { input, gas_limit: 6_000_000, ..legacy(nonce, to, 0) }, from.secret)
            }
            Self::List => {
                // No key twice, in all of them together.
                let slots =
                    (0..3_850).map(|slot| U256::from_limbs([slot, nonce, sender, 0]).into()).collect();
                let list =
                    AccessList(vec![AccessListItem { address: contracts::COUNTER, storage_keys: slots }]);
                sign(eip2930(nonce, to, list, 7_500_000), from.secret)
            }
            Self::Create => {
                let input = vec![0x5b; 48 * 1024].into();
                let tx = eip1559(nonce, TxKind::Create, 0, Bytes::new(), 6_000_000);
                sign(TxEip1559 { input, ..tx }, from.secret)
            }
            Self::Delegations => sign(eip7702(nonce, to, DELEGATIONS.clone(), 29_000_000), from.secret),
            Self::Batch => {
                let calls = strangers(sender, nonce, &vec![0; 2_016].into());
                let batch = NativeTransaction { gas_limit: 1_500_000, ..native(from.address, nonce, calls) };
                sign_native_on(chain, batch, &[from.into()], &[])
            }
            Self::Orderless => {
                let calls = strangers(sender, nonce, &Bytes::new());
                let transaction = NativeTransaction {
                    gas_limit: 600_000,
                    fee_payer: Some(person(PAYERS + sender).address),
                    ..orderless(person(KEYED + sender).address, nonce, START.seconds() + 30, calls)
                };
                sign_native_on(chain, transaction, &leaves(), &leaves())
            }
        }
    }
}

/// As many calls as a transaction may have, each of an account that no other transaction calls.
fn strangers(sender: u64, nonce: u64, input: &Bytes) -> Vec<NativeCall> {
    let stranger = |call: u64| {
        let name = [sender, nonce, call].map(u64::to_be_bytes).concat();
        native_call(Address::from_word(keccak256(name)), 0, input.clone())
    };
    (0..CALLS_MAX as u64).map(stranger).collect()
}

fn leaves() -> Vec<Key> {
    (0..KEY_LEAVES_MAX as u64).map(|n| ed_person(n).into()).collect()
}

/// The largest key there is: every leaf under thresholds of its own, as deep as they may be, and all must sign.
fn widest_key() -> KeyTree {
    let single = |child: Bytes| threshold(1, &[child]);
    let children: Vec<_> = leaves().iter().map(|leaf| single(single(leaf.encoded()))).collect();
    let all = u8::try_from(children.len()).unwrap();
    KeyTree::decode(&threshold(all, &children)).unwrap()
}

/// A genesis with people who have the money for it.
pub(super) fn rich() -> Genesis {
    let mut genesis = genesis();
    let much = Allocation { balance: Wei(U256::from(MUCH)), ..Default::default() };
    genesis.allocations.extend((0..SENDERS).map(|n| (person(n).address, much.clone())));
    genesis
}

/// Its state, in which some have the largest key.
pub(super) fn rich_state() -> BTreeMap<StateKey, Bytes> {
    let key = widest_key();
    let record = KeyRecord { rotation: 1, key: Some(StoredKey::of(&key)) };
    let account = Account { balance: U256::from(MUCH), is_keyed: true, ..Account::default() };
    let mut state = rich().state().unwrap();
    for n in 0..SENDERS {
        for owner in [KEYED, PAYERS].map(|first| person(first + n).address) {
            state.insert(StateKey::Account(owner), account.encode());
            let slot = StateKey::Slot(ACCOUNTS, KeyRecord::slot(owner));
            state.insert(slot, encode_slot(record.to_word()).unwrap());
            state.insert(StateKey::AccountKey(owner), key.encoded().clone());
        }
    }
    state
}
