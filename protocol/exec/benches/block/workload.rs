//! Blocks to measure: a state, signed transactions on it, and what they are.

use alloy_consensus::{SignableTransaction, TxEip1559, crypto::secp256k1::sign_message};
use alloy_eips::eip2718::Encodable2718;
use alloy_primitives::{Address, B256, Bytes, TxKind, U256, address, keccak256, map::HashMap};
use almanac_exec::{BlockInput, Rules, recover_all};
use almanac_primitives::{
    Chain, Gas, Genesis, RecoveredTransaction, StateCommitment, StateDiff, StateKey, StateRead,
    StateReadError, TimestampMs, UserTransaction, Wei, genesis::Allocation,
};
use std::collections::BTreeMap;

const CHAIN_ID: u64 = 31_337;
const CHAIN: Chain = Chain { id: CHAIN_ID, genesis: B256::ZERO };
const BLOCK_GAS: u64 = 120_000_000;
pub(crate) const CONTRACT: Address = address!("0x00000000000000000000000000000000000c0de0");
/// Accounts that exist beside the senders, so that the maps have some size.
const BYSTANDERS: u64 = 8_000;

pub(crate) const RULES: Rules = Rules { chain: CHAIN, gas_max: Gas(BLOCK_GAS), is_developer: false };

/// A block's parent state in memory: what a store looks like when everything a block reads is in its cache.
#[derive(Clone, Default)]
pub(crate) struct WarmState(HashMap<StateKey, Bytes>);

impl StateRead for WarmState {
    fn read(&self, key: StateKey) -> Result<Option<Bytes>, StateReadError> {
        Ok(self.0.get(&key).cloned())
    }
}

impl WarmState {
    pub(crate) fn put(&mut self, values: impl IntoIterator<Item = (StateKey, Bytes)>) {
        self.0.extend(values);
    }

    pub(crate) fn apply(&mut self, diff: &StateDiff) {
        for change in diff.changes() {
            match &change.new {
                Some(new) => self.0.insert(change.key, new.clone()),
                None => self.0.remove(&change.key),
            };
        }
    }
}

/// A block to be executed, and what it is made of.
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    pub(crate) genesis: BTreeMap<StateKey, Bytes>,
    pub(crate) state: WarmState,
    pub(crate) input: BlockInput,
    pub(crate) transactions: Vec<UserTransaction>,
    pub(crate) recovered: Vec<RecoveredTransaction>,
}

/// 2,000 transfers, each from another account to another one that exists.
pub(crate) fn transfers() -> Workload {
    let senders = persons(2_000);
    let messages = senders.iter().enumerate().map(|(n, _)| Message {
        to: bystander(n as u64 * 3 % BYSTANDERS),
        value: 1_000 + n as u64,
        input: Bytes::new(),
        gas_limit: 21_000,
    });
    workload("2,000 transfers", &senders, messages.collect(), Allocation::default())
}

/// 2,000 token transfers, each from another holder to another holder.
pub(crate) fn token_transfers() -> Workload {
    let senders = persons(2_000);
    let holders: Vec<_> =
        senders.iter().map(|person| person.address).chain((0..BYSTANDERS).map(bystander)).collect();
    let storage = holders.iter().map(|holder| (balance_slot(*holder), U256::from(1_000_000))).collect();
    let messages = senders.iter().enumerate().map(|(n, _)| Message {
        to: CONTRACT,
        value: 0,
        input: token_transfer(bystander(n as u64 * 3 % BYSTANDERS), 1_000 + n as u64),
        gas_limit: 60_000,
    });
    let token = Allocation { code: token_code(), storage, ..Default::default() };
    workload("2,000 ERC-20 transfers", &senders, messages.collect(), token)
}

/// 200 transactions that each write 20 slots for the first time and 20 again.
pub(crate) fn storage_writes() -> Workload {
    let senders = persons(200);
    let storage = (0..200 * 64).map(|slot| (U256::from(slot), U256::from(7))).collect();
    let messages = (0..200u64).map(|n| Message {
        to: CONTRACT,
        value: 0,
        input: words([1_000_000 + 64 * n, 64 * n, 1_000 + n]),
        gas_limit: 580_000,
    });
    let writer = Allocation { code: writer_code(), storage, ..Default::default() };
    workload("200 × (20 fresh + 20 rewritten slots)", &senders, messages.collect(), writer)
}

pub(crate) struct Message {
    pub(crate) to: Address,
    pub(crate) value: u64,
    pub(crate) input: Bytes,
    pub(crate) gas_limit: u64,
}

pub(crate) struct Person {
    secret: B256,
    pub(crate) address: Address,
}

pub(crate) fn persons(count: u64) -> Vec<Person> {
    let person = |n: u64| {
        let secret = keccak256(n.to_be_bytes());
        let signature = sign_message(secret, B256::ZERO).expect("a hash is a key");
        let address = signature.recover_address_from_prehash(&B256::ZERO).expect("just signed");
        Person { secret, address }
    };
    (0..count).map(person).collect()
}

fn bystander(n: u64) -> Address {
    Address::from_word(keccak256([b"bystander", &n.to_be_bytes()[..]].concat()))
}

pub(crate) fn workload(
    name: &'static str,
    senders: &[Person],
    messages: Vec<Message>,
    contract: Allocation,
) -> Workload {
    let genesis = genesis(senders, contract);
    let values = genesis.state().expect("the genesis is sound");
    let parent = genesis.header(StateCommitment::default()).expect("the genesis is sound");
    let transactions: Vec<_> =
        senders.iter().zip(messages).map(|(sender, message)| sign(sender, message)).collect();
    let mut state = WarmState::default();
    state.put(values.clone());
    Workload {
        name,
        state,
        genesis: values,
        input: BlockInput {
            chain: CHAIN,
            parent_hash: parent.hash(),
            timestamp: TimestampMs(parent.timestamp.0 + 1_000),
            fee_recipient: Address::repeat_byte(0xfe),
            consensus: Default::default(),
            parent,
        },
        recovered: recover_all(&transactions, &RULES).expect("all are signed"),
        transactions,
    }
}

fn genesis(senders: &[Person], contract: Allocation) -> Genesis {
    let coins = Wei(U256::from(10).pow(U256::from(21)));
    let funded = || Allocation { balance: coins, ..Default::default() };
    let mut allocations: BTreeMap<_, _> = senders.iter().map(|person| (person.address, funded())).collect();
    allocations.extend((0..BYSTANDERS).map(|n| (bystander(n), funded())));
    if !contract.code.is_empty() {
        allocations.insert(CONTRACT, contract);
    }
    Genesis {
        chain_id: CHAIN_ID,
        timestamp_ms: TimestampMs(1_700_000_000_000),
        governance: Address::repeat_byte(0xaa),
        parameters: [("block_gas_max".to_owned(), BLOCK_GAS)].into(),
        validators: Vec::new(),
        developer: false,
        fork: None,
        allocations,
    }
}

fn sign(sender: &Person, message: Message) -> UserTransaction {
    let tx = TxEip1559 {
        chain_id: CHAIN_ID,
        nonce: 0,
        gas_limit: message.gas_limit,
        max_fee_per_gas: 20_000_000_000,
        max_priority_fee_per_gas: 1_000_000_000,
        to: TxKind::Call(message.to),
        value: U256::from(message.value),
        input: message.input,
        ..Default::default()
    };
    let signature = sign_message(sender.secret, tx.signature_hash()).expect("a hash is a key");
    UserTransaction::decode(&tx.into_signed(signature).encoded_2718()).expect("just encoded")
}

fn words<const N: usize>(values: [u64; N]) -> Bytes {
    values.into_iter().flat_map(|value| U256::from(value).to_be_bytes::<32>()).collect()
}

/// `keccak256(holder, 0)`: where Solidity keeps the first mapping of a contract.
fn balance_slot(holder: Address) -> U256 {
    keccak256([holder.into_word(), B256::ZERO].concat()).into()
}

const TRANSFER: [u8; 4] = [0xa9, 0x05, 0x9c, 0xbb];

fn token_transfer(to: Address, amount: u64) -> Bytes {
    [&TRANSFER[..], &to.into_word()[..], &U256::from(amount).to_be_bytes::<32>()].concat().into()
}

/// `transfer(address,uint256)` of a token, as small as it can be: two balances, a check, an event, `true`.
fn token_code() -> Bytes {
    let mut code = vec![0x5f, 0x35, 0x60, 0xe0, 0x1c, 0x63];
    code.extend(TRANSFER);
    // if the selector is another one: revert
    code.extend([0x14, 0x60, 17, 0x57, 0x5f, 0x5f, 0xfd, 0x5b]);
    // [amount, slot, balance] with slot = keccak(caller, 0)
    code.extend([0x60, 36, 0x35, 0x33, 0x5f, 0x52, 0x5f, 0x60, 32, 0x52, 0x60, 64, 0x5f, 0x20, 0x80, 0x54]);
    // if balance < amount: revert
    let enough = u8::try_from(code.len() + 10).expect("short code");
    code.extend([0x82, 0x81, 0x10, 0x15, 0x60, enough, 0x57, 0x5f, 0x5f, 0xfd, 0x5b]);
    // sstore(slot, balance - amount)
    code.extend([0x82, 0x90, 0x03, 0x90, 0x55]);
    // slot = keccak(to, 0); sstore(slot, sload(slot) + amount)
    code.extend([0x60, 4, 0x35, 0x5f, 0x52, 0x60, 64, 0x5f, 0x20, 0x80, 0x54, 0x82, 0x01, 0x90, 0x55]);
    // log3(amount, Transfer, caller, to)
    code.extend([0x5f, 0x52, 0x60, 4, 0x35, 0x33, 0x7f]);
    code.extend(keccak256("Transfer(address,address,uint256)"));
    code.extend([0x60, 32, 0x5f, 0xa3]);
    // return true
    code.extend([0x60, 1, 0x5f, 0x52, 0x60, 32, 0x5f, 0xf3]);
    code.into()
}

/// Calldata: a, b, c. For n from 20 to 1: `sstore(a + n, n)`, `sstore(b + n, c + n)`.
fn writer_code() -> Bytes {
    let mut code = vec![0x60, 20, 0x5b];
    code.extend([0x80, 0x80, 0x5f, 0x35, 0x01, 0x55]);
    code.extend([0x80, 0x60, 64, 0x35, 0x01, 0x81, 0x60, 32, 0x35, 0x01, 0x55]);
    code.extend([0x60, 1, 0x90, 0x03, 0x80, 0x60, 2, 0x57, 0x00]);
    code.into()
}
