//! Random blocks through our executor and through a bare revm: not one account, slot or receipt may differ.
//!
//! The bare side shares nothing with ours but revm: it builds its own transactions, recovers EIP-7702
//! authorities itself, commits to revm's own in-memory database and applies no rule of ours. What it refuses, we
//! must refuse; what it takes, we must take. Doors are left alone, since a bare revm has none.

use crate::support::{contracts::*, *};
use alloy_consensus::{Transaction as _, TxEip2930, TxEip7702, TxLegacy, crypto::secp256k1::sign_message};
use alloy_eips::{
    eip2930::{AccessList, AccessListItem},
    eip7702::{Authorization, SignedAuthorization},
};
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, Log, TxKind, U256, address, keccak256};
use almanac_exec::{Environment, recover};
use almanac_primitives::{
    Account, Outcome, Receipt, RecoveredTransaction, StateKey, UserTransaction,
    addresses::BLOCK_HASH_HISTORY, genesis::Allocation, params::RECEIPT_REASON_BYTES_MAX, state::decode_slot,
};
use revm::{
    Context, ExecuteCommitEvm, MainBuilder, MainContext,
    context::{BlockEnv, TxEnv},
    context_interface::{
        block::BlobExcessGasAndPrice,
        either::Either,
        result::{ExecutionResult, Output},
    },
    database::{AccountState, CacheDB, EmptyDB},
    primitives::hardfork::SpecId,
    state::{AccountInfo, Bytecode},
};
use std::collections::{BTreeMap, BTreeSet};

const BLOCKS: u64 = 10;
/// Together they ask for less than a block's gas: a bare revm does not know when a block is full.
const BLOCK_TRANSACTIONS: u64 = 60;
const _: () = assert!(BLOCK_TRANSACTIONS * 400_000 < 30_000_000);

#[test]
fn transfers_and_calls_agree() {
    let tally = compare_chain(1, Menu { creations: false, delegations: false });
    assert!(tally.included >= 250 && tally.refused >= 50 && tally.failed >= 50, "{tally:?}");
}

#[test]
fn creations_and_destructions_agree() {
    let tally = compare_chain(2, Menu { creations: true, delegations: false });
    assert!(tally.included >= 250 && tally.created >= 20 && tally.failed >= 50, "{tally:?}");
}

#[test]
fn delegations_agree() {
    let tally = compare_chain(3, Menu { creations: false, delegations: true });
    assert!(tally.included >= 250 && tally.delegated >= 5, "{tally:?}");
}

#[test]
fn everything_together_agrees() {
    let tally = compare_chain(4, Menu { creations: true, delegations: true });
    assert!(tally.included >= 250 && tally.logs >= 10 && tally.slots >= 30, "{tally:?}");
}

/// The comparison can fail: whatever is altered on one side, it says so.
#[test]
fn every_altered_value_is_noticed() {
    let mut chain = TestChain::from_genesis(&random_genesis());
    let transactions =
        vec![call(person(0), 0, COUNTER, vec![], 100_000), call(person(1), 0, LOGGER, vec![1], 100_000)];
    let mut bare = Bare::of(&chain.state);
    let produced = chain.produce(transactions.clone());
    let results = bare.block(&chain, &produced.output.environment, &transactions);
    let (ours, theirs) = (Snapshot::of(&chain.state), bare.snapshot());
    assert_eq!(ours.difference(&theirs), None);

    let alter = |change: &dyn Fn(&mut Snapshot)| {
        let mut altered = theirs.clone();
        change(&mut altered);
        ours.difference(&altered).is_some() && altered.difference(&ours).is_some()
    };
    let (alice, counted) = (person(0).address, U256::from_be_slice(person(0).address.as_slice()));
    assert!(alter(&|s| s.accounts.get_mut(&alice).unwrap().balance += U256::from(1)), "one wei");
    assert!(alter(&|s| s.accounts.get_mut(&alice).unwrap().nonce += 1), "a nonce");
    assert!(alter(&|s| s.accounts.get_mut(&COUNTER).unwrap().code_hash.0[31] ^= 1), "a code hash");
    assert!(alter(&|s| s.accounts.retain(|address, _| *address != FEE_RECIPIENT)), "a missing account");
    assert!(alter(&|s| *s.slots.get_mut(&(COUNTER, counted)).unwrap() += U256::from(1)), "a slot");
    assert!(alter(&|s| s.slots.extend([((COUNTER, U256::from(99)), U256::from(1))])), "another slot");
    assert!(alter(&|s| drop(s.codes.pop_first())), "a code");

    let receipt = produced.receipt(1);
    let result = results[1].as_ref().unwrap();
    assert_eq!(receipt_difference(receipt, result), None);
    let altered = |change: &dyn Fn(&mut Receipt)| {
        let mut altered = receipt.clone();
        change(&mut altered);
        receipt_difference(&altered, result).is_some()
    };
    assert!(altered(&|r| r.gas_used.0 += 1), "gas");
    assert!(altered(&|r| r.outcome = Outcome::Reverted(Bytes::new())), "an outcome");
    assert!(altered(&|r| drop(r.logs.pop())), "a log");
    assert!(altered(&|r| r.logs[0].data.data = Bytes::from_static(&[2])), "a byte of a log");
    assert!(altered(&|r| r.contract_address = Some(COUNTER)), "a created contract");
}

/// And it can fail from end to end: one side starts a wei richer.
#[test]
#[should_panic(expected = "block 1: account")]
fn one_wei_at_the_start_is_noticed() {
    let chain = TestChain::from_genesis(&random_genesis());
    let mut bare = Bare::of(&chain.state);
    bare.db.load_account(person(3).address).unwrap().info.balance += U256::from(1);
    compare(chain, bare, Generator::new(1, Menu { creations: false, delegations: false }));
}

/// What the compared blocks held, to show that the comparison was not of nothing.
#[derive(Debug, Default)]
struct Tally {
    included: usize,
    refused: usize,
    failed: usize,
    created: usize,
    delegated: usize,
    logs: usize,
    slots: usize,
}

fn compare_chain(seed: u64, menu: Menu) -> Tally {
    let chain = TestChain::from_genesis(&random_genesis());
    let bare = Bare::of(&chain.state);
    compare(chain, bare, Generator::new(seed, menu))
}

fn compare(mut chain: TestChain, mut bare: Bare, mut generator: Generator) -> Tally {
    let mut tally = Tally::default();
    for number in 1..=BLOCKS {
        let offered = generator.block(&chain);
        let (valid, invalid): (Vec<_>, Vec<_>) =
            offered.iter().cloned().partition(|transaction| recover(transaction.clone(), &rules()).is_ok());
        let produced = chain.produce(valid);

        // In the order offered, so that both sides see the same state when they judge a transaction.
        let results = bare.block(&chain, &produced.output.environment, &offered);
        let mut included = 0;
        for (transaction, result) in offered.iter().zip(&results) {
            let hash = transaction.hash();
            let is_refused = invalid.iter().any(|other| other.hash() == hash)
                || produced.refused.iter().any(|(other, _)| *other == hash);
            match result {
                Ok(result) => {
                    assert!(!is_refused, "block {number}: we refuse {hash}, bare revm does not");
                    let receipt = produced.receipt(included);
                    assert_eq!(receipt.transaction_hash, hash, "block {number}: order");
                    assert_eq!(receipt_difference(receipt, result), None, "block {number}: {transaction:?}");
                    tally.count(receipt);
                    included += 1;
                }
                Err(Refusal::Rule(reason)) => {
                    assert!(is_refused, "block {number}: bare revm refuses {hash}: {reason}");
                    tally.refused += 1;
                }
                Err(Refusal::Skipped) => assert!(!is_refused, "block {number}: {hash} was to be skipped"),
            }
        }
        assert_eq!(chain.blocks.last().unwrap().transactions.len(), included);
        let (ours, theirs) = (Snapshot::of(&chain.state), bare.snapshot());
        if let Some(difference) = ours.difference(&theirs) {
            panic!("block {number}: {difference}");
        }
        tally.slots = ours.slots.len();
        tally.delegated = ours.codes.values().filter(|code| code.starts_with(&[0xef, 0x01, 0x00])).count();
    }
    chain.replay();
    tally
}

impl Tally {
    fn count(&mut self, receipt: &Receipt) {
        self.included += 1;
        self.failed += usize::from(!receipt.outcome.is_success());
        self.created += usize::from(receipt.contract_address.is_some());
        self.logs += receipt.logs.len();
    }
}

/// Everything that a state holds, in one order.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Snapshot {
    accounts: BTreeMap<Address, Account>,
    slots: BTreeMap<(Address, U256), U256>,
    codes: BTreeMap<B256, Bytes>,
}

impl Snapshot {
    fn of(state: &MapState) -> Self {
        let mut snapshot = Self { accounts: BTreeMap::new(), slots: BTreeMap::new(), codes: BTreeMap::new() };
        for (key, value) in &state.0 {
            match *key {
                StateKey::Account(address) => {
                    snapshot.accounts.insert(address, Account::decode(value).unwrap());
                }
                StateKey::Slot(address, slot) => {
                    snapshot.slots.insert((address, slot), decode_slot(value).unwrap());
                }
                StateKey::Code(hash) => {
                    snapshot.codes.insert(hash, value.clone());
                }
                StateKey::Meta(_) => {}
                StateKey::Body(_) | StateKey::Calendar(_) => panic!("no schedules here"),
                StateKey::Nonce(..) | StateKey::NonceLog(..) | StateKey::AccountKey(_) => {
                    panic!("nothing native here")
                }
            }
        }
        snapshot
    }

    /// The first thing that is not the same in both.
    fn difference(&self, other: &Self) -> Option<String> {
        first_difference("account", &self.accounts, &other.accounts)
            .or_else(|| first_difference("slot", &self.slots, &other.slots))
            .or_else(|| first_difference("code", &self.codes, &other.codes))
    }
}

fn first_difference<K, V>(what: &str, ours: &BTreeMap<K, V>, theirs: &BTreeMap<K, V>) -> Option<String>
where
    K: Ord + std::fmt::Debug,
    V: PartialEq + std::fmt::Debug,
{
    let keys: BTreeSet<_> = ours.keys().chain(theirs.keys()).collect();
    keys.into_iter().find(|key| ours.get(key) != theirs.get(key)).map(|key| {
        format!("{what} {key:?} is {:?} with us, {:?} in bare revm", ours.get(key), theirs.get(key))
    })
}

/// What a receipt says otherwise than revm's own result.
fn receipt_difference(receipt: &Receipt, result: &ExecutionResult) -> Option<String> {
    let is_same_outcome = match (&receipt.outcome, result) {
        (Outcome::Success, ExecutionResult::Success { .. }) => true,
        (Outcome::Reverted(reason), ExecutionResult::Revert { output, .. }) => {
            reason[..] == output[..output.len().min(RECEIPT_REASON_BYTES_MAX)]
        }
        (Outcome::Halted(_), ExecutionResult::Halt { .. }) => true,
        _ => false,
    };
    let (logs, created): (&[Log], _) = match result {
        ExecutionResult::Success { logs, output: Output::Create(_, address), .. } => (logs, *address),
        ExecutionResult::Success { logs, .. } => (logs, None),
        _ => (&[], None),
    };
    let is_same = is_same_outcome
        && receipt.gas_used.0 == result.tx_gas_used()
        && receipt.logs == logs
        && receipt.contract_address == created;
    (!is_same).then(|| format!("receipt {receipt:?} of {result:?}"))
}

/// Why the bare side did not execute a transaction.
#[derive(Debug)]
enum Refusal {
    /// revm's own rules.
    Rule(String),
    /// An earlier one of the same sender was refused, and proposers leave out the rest of that sender's.
    Skipped,
}

/// A chain on nothing but revm.
struct Bare {
    db: CacheDB<EmptyDB>,
}

impl Bare {
    /// Starts from the same allocation.
    fn of(state: &MapState) -> Self {
        let Snapshot { accounts, slots, codes } = Snapshot::of(state);
        let mut db = CacheDB::new(EmptyDB::default());
        for (address, account) in accounts {
            let code = codes.get(&account.code_hash).cloned().map(Bytecode::new_raw);
            let info = AccountInfo {
                nonce: account.nonce,
                balance: account.balance,
                code_hash: account.code_hash,
                code: Some(code.unwrap_or_default()),
                ..AccountInfo::default()
            };
            db.insert_account_info(address, info);
        }
        for ((address, slot), value) in slots {
            db.insert_account_storage(address, slot, value).unwrap();
        }
        Self { db }
    }

    fn block(
        &mut self,
        chain: &TestChain,
        environment: &Environment,
        offered: &[UserTransaction],
    ) -> Vec<Result<ExecutionResult, Refusal>> {
        self.remember_parent(chain, environment.number);
        let mut evm = Context::mainnet()
            .with_db(&mut self.db)
            .with_block(block_env(environment))
            .modify_cfg_chained(|cfg| {
                cfg.set_spec_and_mainnet_gas_params(SpecId::OSAKA);
                cfg.chain_id = CHAIN_ID;
                cfg.tx_gas_limit_cap = Some(u64::MAX);
            })
            .build_mainnet();
        let mut skipped = BTreeSet::new();
        let mut execute = |transaction: &UserTransaction| {
            let sender = RecoveredTransaction::recover(transaction.clone(), &CHAIN).unwrap().sender();
            // One that breaks a rule without regard to state never reaches a proposer's list.
            let is_listed = recover(transaction.clone(), &rules()).is_ok();
            if is_listed && skipped.contains(&sender) {
                return Err(Refusal::Skipped);
            }
            evm.transact_commit(tx_env(transaction, sender)).map_err(|error| {
                if is_listed {
                    skipped.insert(sender);
                }
                Refusal::Rule(error.to_string())
            })
        };
        offered.iter().map(&mut execute).collect()
    }

    /// What our prologue does by EIP-2935, by hand; and BLOCKHASH, which asks this database by number.
    fn remember_parent(&mut self, chain: &TestChain, number: u64) {
        let parent = number - 1;
        let hash = match parent {
            0 => chain.genesis_header.hash(),
            _ => chain.blocks[usize::try_from(parent).unwrap() - 1].hash(),
        };
        self.db.insert_account_storage(BLOCK_HASH_HISTORY, U256::from(parent % 8_191), hash.into()).unwrap();
        self.db.cache.block_hashes.insert(U256::from(parent), hash);
    }

    fn snapshot(&self) -> Snapshot {
        let mut snapshot =
            Snapshot { accounts: BTreeMap::new(), slots: BTreeMap::new(), codes: BTreeMap::new() };
        for (address, account) in self.db.cache.accounts.clone() {
            // EIP-161: an account with nothing in it does not exist, whatever the database remembers of it.
            if account.account_state == AccountState::NotExisting || account.info.is_empty() {
                continue;
            }
            let AccountInfo { nonce, balance, code_hash, .. } = account.info;
            snapshot.accounts.insert(address, Account { nonce, balance, code_hash, is_keyed: false });
            for (slot, value) in account.storage {
                if !value.is_zero() {
                    snapshot.slots.insert((address, slot), value);
                }
            }
        }
        for (hash, code) in self.db.cache.contracts.clone() {
            if hash != B256::ZERO && hash != KECCAK256_EMPTY {
                snapshot.codes.insert(hash, code.original_bytes());
            }
        }
        snapshot
    }
}

fn block_env(environment: &Environment) -> BlockEnv {
    BlockEnv {
        number: U256::from(environment.number),
        beneficiary: FEE_RECIPIENT,
        timestamp: U256::from(environment.timestamp.0 / 1_000),
        gas_limit: environment.gas_limit.0,
        basefee: u64::try_from(environment.base_fee.0).unwrap(),
        difficulty: U256::ZERO,
        prevrandao: Some(keccak256(
            [&environment.parent_hash[..], &environment.number.to_be_bytes()].concat(),
        )),
        blob_excess_gas_and_price: Some(BlobExcessGasAndPrice { excess_blob_gas: 0, blob_gasprice: 1 }),
        ..BlockEnv::default()
    }
}

fn tx_env(transaction: &UserTransaction, sender: Address) -> TxEnv {
    let tx = transaction.envelope().unwrap();
    let mut builder = TxEnv::builder()
        .tx_type(Some(tx.tx_type().into()))
        .caller(sender)
        .nonce(tx.nonce())
        .chain_id(tx.chain_id())
        .gas_limit(tx.gas_limit())
        .gas_price(tx.gas_price().unwrap_or_else(|| tx.max_fee_per_gas()))
        .gas_priority_fee(tx.max_priority_fee_per_gas())
        .kind(tx.kind())
        .value(tx.value())
        .data(tx.input().clone());
    if let Some(list) = tx.access_list() {
        builder = builder.access_list(list.clone());
    }
    if let Some(list) = tx.authorization_list() {
        // Signed, not recovered: revm finds out for itself who authorised.
        builder = builder.authorization_list(list.iter().cloned().map(Either::Left).collect());
    }
    builder.build().unwrap()
}

/// Stores its second word under its first: zeroes too, so that gas is refunded.
const SETTER: Address = address!("0x00000000000000000000000000000000000d0003");
/// Adds its first word to transient slot 7 and stores the sum in slot 7.
const PASSING: Address = address!("0x00000000000000000000000000000000000d0004");
/// Creates a contract from its calldata by CREATE2 and calls it with nothing.
const BREEDER: Address = address!("0x00000000000000000000000000000000000d0005");

fn random_genesis() -> almanac_primitives::Genesis {
    let mut genesis = genesis();
    // sstore(calldataload(0), calldataload(32))
    let setter = vec![0x60, 32, 0x35, 0x5f, 0x35, 0x55, 0x00];
    // tstore(7, tload(7) + calldataload(0)); sstore(7, tload(7))
    let passing = vec![0x60, 7, 0x5c, 0x5f, 0x35, 0x01, 0x60, 7, 0x5d, 0x60, 7, 0x5c, 0x60, 7, 0x55, 0x00];
    // calldatacopy(0, 0, calldatasize); call(gas, create2(callvalue, 0, calldatasize, 1), 0, 0, 0, 0, 0)
    let breeder = vec![
        0x36, 0x5f, 0x5f, 0x37, 0x5f, 0x5f, 0x5f, 0x5f, 0x5f, 0x60, 1, 0x36, 0x5f, 0x34, 0xf5, 0x5a, 0xf1,
        0x00,
    ];
    for (address, code) in [(SETTER, setter), (PASSING, passing), (BREEDER, breeder)] {
        genesis.allocations.insert(address, Allocation { code: code.into(), ..Default::default() });
    }
    genesis
}

/// What a random chain may hold beside transfers and calls.
#[derive(Clone, Copy)]
struct Menu {
    creations: bool,
    delegations: bool,
}

/// Makes blocks from a seed.
struct Generator {
    state: u64,
    menu: Menu,
    nonces: BTreeMap<Address, u64>,
}

impl Generator {
    fn new(seed: u64, menu: Menu) -> Self {
        Self { state: seed, menu, nonces: BTreeMap::new() }
    }

    /// splitmix64: small, seeded, and the same everywhere.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        let index = self.below(choices.len() as u64);
        choices[usize::try_from(index).unwrap()].clone()
    }

    /// True once in `n` times.
    fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn bytes(&mut self, length: u64) -> Vec<u8> {
        (0..length).map(|_| self.next().to_be_bytes()[0]).collect()
    }

    fn block(&mut self, chain: &TestChain) -> Vec<UserTransaction> {
        self.nonces = (0..10).map(|n| (person(n).address, chain.nonce(person(n).address))).collect();
        (0..BLOCK_TRANSACTIONS).map(|_| self.numbered()).collect()
    }

    /// A transaction with the nonce that follows, or now and then one that does not.
    fn numbered(&mut self) -> UserTransaction {
        let from = person(self.below(10));
        let next = self.nonces[&from.address];
        let is_off = self.once_in(30);
        let nonce = if is_off { self.pick(&[next.saturating_sub(1), next + 1]) } else { next };
        // Counted first: an EIP-7702 authorisation by the sender comes after the transaction's own nonce.
        *self.nonces.get_mut(&from.address).unwrap() += u64::from(!is_off);
        let transaction = self.transaction(from, nonce);
        if !is_off && recover(transaction.clone(), &rules()).is_err() {
            *self.nonces.get_mut(&from.address).unwrap() -= 1;
        }
        transaction
    }

    fn transaction(&mut self, from: Person, nonce: u64) -> UserTransaction {
        let (kind, value, input) = self.message();
        // Mostly enough, sometimes not, rarely not even for the calldata.
        let gas_limit = if self.once_in(6) { self.pick(&[120_000, 60_000, 30_000, 21_000]) } else { 400_000 };
        // More than anyone has.
        let value = if self.once_in(60) { U256::from(10).pow(U256::from(22)) } else { U256::from(value) };
        let chain_id = if self.once_in(60) { CHAIN_ID + 1 } else { CHAIN_ID };
        // Around the base fee, above and below.
        let max_fee_per_gas = if self.once_in(4) {
            self.pick(&[2_000_000_000, 1_000_000_000, 700_000_000, 300_000_000])
        } else {
            20_000_000_000
        };
        let max_priority_fee_per_gas = self.pick(&[0, 1, 1_000_000_000, 1_000_000_001]).min(max_fee_per_gas);
        if self.menu.delegations && self.once_in(4) {
            let to = match kind {
                TxKind::Call(to) => to,
                TxKind::Create => from.address,
            };
            let tx = TxEip7702 {
                chain_id,
                nonce,
                gas_limit,
                max_fee_per_gas,
                max_priority_fee_per_gas,
                to,
                value,
                access_list: self.access_list(),
                authorization_list: self.authorizations(from),
                input,
            };
            return sign(tx, from.secret);
        }
        match self.below(4) {
            0 => {
                let chain_id = (!self.once_in(3)).then_some(chain_id);
                let tx = TxLegacy {
                    chain_id,
                    nonce,
                    gas_price: max_fee_per_gas,
                    gas_limit,
                    to: kind,
                    value,
                    input,
                };
                sign(tx, from.secret)
            }
            1 => {
                let access_list = self.access_list();
                let gas_price = max_fee_per_gas;
                let tx =
                    TxEip2930 { chain_id, nonce, gas_price, gas_limit, to: kind, value, access_list, input };
                sign(tx, from.secret)
            }
            _ => {
                let mut tx = eip1559(nonce, kind, 0, input, gas_limit);
                (tx.chain_id, tx.value) = (chain_id, value);
                (tx.max_fee_per_gas, tx.max_priority_fee_per_gas) =
                    (max_fee_per_gas, max_priority_fee_per_gas);
                if self.once_in(3) {
                    tx.access_list = self.access_list();
                }
                sign(tx, from.secret)
            }
        }
    }

    /// To whom, how much, and what.
    fn message(&mut self) -> (TxKind, u64, Bytes) {
        let value = self.pick(&[0, 0, 0, 1, 1_000_000]);
        if self.once_in(4) {
            return (TxKind::Call(self.recipient()), value, Bytes::new());
        }
        if self.menu.creations && self.once_in(2) {
            let init = self.init_code();
            let to = self.pick(&[TxKind::Create, TxKind::Call(CREATOR), TxKind::Call(BREEDER)]);
            return (to, value, init);
        }
        let (to, input) = self.contract_call(0);
        (TxKind::Call(to), value, input)
    }

    /// People, nobody yet, the fee recipient, contracts that take money, precompiles.
    fn recipient(&mut self) -> Address {
        let n = self.below(10);
        let stranger = Address::with_last_byte(0x80 + u8::try_from(self.below(20)).unwrap());
        self.pick(&[
            person(n).address,
            person(n).address,
            stranger,
            stranger,
            FEE_RECIPIENT,
            DESTRUCTIBLE,
            Address::with_last_byte(u8::try_from(n + 1).unwrap()),
            CREATOR.create(n + 1),
        ])
    }

    /// A contract and calldata for it; forwarding ones get another contract to call, a few levels deep.
    fn contract_call(&mut self, depth: u32) -> (Address, Bytes) {
        let forwarders = [FORWARDER, FORWARD_AND_REVERT, DELEGATOR, STATIC_CALLER, CODE_CALLER];
        if depth < 4 && self.once_in(3) {
            let forwarder = self.pick(&forwarders);
            let (target, input) = self.contract_call(depth + 1);
            return (forwarder, to(target, &input));
        }
        let target = self.pick(&[
            COUNTER,
            REVERTER,
            BURNER,
            LOGGER,
            WRITER,
            CHASER,
            DESTRUCTIBLE,
            HASHER,
            TELLER,
            SETTER,
            SETTER,
            PASSING,
            Address::ZERO,
        ]);
        let input = match target {
            WRITER | CHASER => words(self.below(12), self.below(40)),
            SETTER => words(self.below(12), self.below(3)),
            PASSING => words(self.below(9), 0),
            HASHER => words(self.below(6), 0),
            DESTRUCTIBLE => to(self.recipient(), &[]),
            LOGGER => {
                let length = self.below(80);
                self.bytes(length).into()
            }
            Address::ZERO => {
                let length = self.below(200);
                return (self.recipient(), self.bytes(length).into());
            }
            _ => Bytes::new(),
        };
        (target, input)
    }

    fn init_code(&mut self) -> Bytes {
        let heir = self.recipient();
        match self.below(8) {
            0 => born_to_die(heir),
            1 => born_to_burn(),
            // Deploys what destroys itself in favour of whom the caller names: by BREEDER in the same transaction.
            2 | 3 => deploy(&[0x5f, 0x35, 0xff]),
            4 => deploy(&[0x33, 0x54, 0x60, 1, 0x01, 0x33, 0x55, 0x00]),
            // Code that begins with 0xEF is refused; a revert in init code creates nothing.
            5 => deploy(&[0xef, 0x00]),
            6 => Bytes::from_static(&[0x60, 5, 0x60, 6, 0x55, 0x5f, 0x5f, 0xfd]),
            _ => {
                let length = self.below(60);
                self.bytes(length).into()
            }
        }
    }

    fn access_list(&mut self) -> AccessList {
        let items = (0..self.below(4)).map(|_| {
            let address = self.pick(&[COUNTER, WRITER, SETTER, CHASER, FEE_RECIPIENT]);
            let storage_keys = (0..self.below(4)).map(|_| B256::from(U256::from(self.below(12)))).collect();
            AccessListItem { address, storage_keys }
        });
        AccessList(items.collect())
    }

    /// Good ones, and ones with a wrong nonce, for another chain, with a broken signature.
    fn authorizations(&mut self, sender: Person) -> Vec<SignedAuthorization> {
        (0..=self.below(3)).map(|_| self.authorization(sender)).collect()
    }

    fn authorization(&mut self, sender: Person) -> SignedAuthorization {
        let authority = if self.once_in(4) { sender } else { person(self.below(10)) };
        let next = self.nonces[&authority.address];
        let is_off = self.once_in(5);
        let inner = Authorization {
            chain_id: U256::from(self.pick(&[CHAIN_ID, CHAIN_ID, 0, CHAIN_ID + 1])),
            address: self.pick(&[COUNTER, WRITER, DESTRUCTIBLE, LOGGER, REVERTER, Address::ZERO]),
            nonce: next + u64::from(is_off),
        };
        let is_broken = self.once_in(8);
        let digest = if is_broken { B256::ZERO } else { inner.signature_hash() };
        let signature = sign_message(authority.secret, digest).unwrap();
        let is_taken = !is_off && !is_broken && inner.chain_id != U256::from(CHAIN_ID + 1);
        if is_taken {
            // A guess: a transaction that is refused authorises nothing, and the nonces after it are off.
            *self.nonces.get_mut(&authority.address).unwrap() += 1;
        }
        inner.into_signed(signature)
    }
}
