//! A fixed story of ten blocks, whose hashes are recorded: consensus cannot change by accident.
//!
//! `specs/vectors/blocks.json` holds each block's hash and what leads to it, so that a difference shows where it
//! begins. To change consensus on purpose, run `make vectors` and review the difference like code.

use crate::support::{contracts::*, runs::run, *};
use alloy_consensus::TxEip1559;
use alloy_eips::eip2930::{AccessList, AccessListItem};
use alloy_primitives::{Address, B256, Bytes, TxKind, U256, keccak256};
use alloy_sol_types::SolCall;
use almanac_exec::BlockInput;
use almanac_primitives::{
    ConsensusContext, GasPrice, Genesis, Halt, Lane, Outcome, Receipt, RunTransaction, StateDiff,
    TimestampMs, UserTransaction, Wei,
    addresses::{LEDGER, PARAMETERS},
    params::{BASE_FEE_FLOOR_WEI, BLOCK_GAS_MAX, Parameter},
};
use almanac_schedule::testing::record;
use serde_json::{Value, json};
use std::{collections::BTreeSet, fs, path::PathBuf};

alloy_sol_types::sol!("../../contracts/IParameters.sol");

#[test]
fn blocks_are_what_they_were() {
    let chain = story();
    chain.replay();
    let told = tell(&chain);
    if is_update() {
        fs::write(path(), serde_json::to_string_pretty(&told).unwrap() + "\n").unwrap();
        return;
    }
    let recorded = fs::read_to_string(path()).expect("specs/vectors/blocks.json is part of the repository");
    let recorded: Vec<Value> = serde_json::from_str(&recorded).unwrap();
    for (recorded, told) in recorded.iter().zip(&told) {
        assert_eq!(
            told, recorded,
            "this block is not what the chain was built on. A change of consensus forks the chain. If it is meant, \
             run\nmake vectors\nand review the difference of specs/vectors/blocks.json."
        );
    }
    assert_eq!(recorded.len(), told.len());
}

/// The story is worth recording only if it has something of everything.
#[test]
fn the_story_has_something_of_everything() {
    let chain = story();
    let receipts: Vec<_> = chain.outputs.iter().flat_map(|output| &output.receipts).collect();
    let kinds: BTreeSet<_> = receipts.iter().map(|receipt| receipt.transaction_type).collect();
    assert_eq!(kinds, BTreeSet::from([0, 1, 2, 4, 0x70, 0x71]));
    let has = |test: &dyn Fn(&Receipt) -> bool| receipts.iter().any(|receipt| test(receipt));
    assert!(has(&|receipt| matches!(receipt.outcome, Outcome::Reverted(_))));
    for halt in
        [Halt::OutOfGas, Halt::InvalidOpcode, Halt::Precompile, Halt::Create, Halt::InsufficientBalance]
    {
        assert!(has(&|receipt| receipt.outcome == Outcome::Halted(halt)), "{halt:?}");
    }
    assert!(has(&|receipt| receipt.contract_address.is_some()));
    assert!(has(&|receipt| receipt.logs.iter().any(|log| log.address == PARAMETERS)));
    let lanes =
        chain.outputs.iter().flat_map(|output| &output.transactions).filter_map(|executed| match executed {
            almanac_exec::Executed::Run(run) => Some(run.lane),
            _ => None,
        });
    assert_eq!(lanes.collect::<BTreeSet<_>>(), BTreeSet::from(Lane::SERVED));
    let fees = chain.blocks.iter().map(|block| block.header.base_fee).collect::<BTreeSet<_>>();
    assert!(fees.len() >= 5, "the base fee moves");
    assert!(chain.burned > U256::ZERO);
}

fn path() -> PathBuf {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../specs/vectors/blocks.json").into()
}

#[allow(clippy::disallowed_methods, reason = "decides whether a file is rewritten, never what it says")]
fn is_update() -> bool {
    std::env::var("UPDATE_VECTORS").is_ok_and(|value| value == "1")
}

/// What is recorded of each block. Everything but the hash is there to find out what changed.
fn tell(chain: &TestChain) -> Vec<Value> {
    let genesis = json!({ "number": 0, "hash": chain.genesis_header.hash() });
    let blocks = chain.blocks.iter().zip(&chain.outputs).map(|(block, output)| {
        let header = &block.header;
        json!({
            "number": header.number,
            "hash": block.hash(),
            "block": keccak256(block.encode()),
            "transactionsRoot": header.transactions_root,
            "receiptsRoot": header.receipts_root,
            "gasUsed": header.gas_used,
            "reservedGasUsed": header.reserved_gas_used,
            "baseFee": header.base_fee,
            "burned": output.burned.to_string(),
            "changes": diff_hash(&output.diff),
            "receipts": output.receipts.iter().map(receipt_line).collect::<Vec<_>>(),
        })
    });
    [genesis].into_iter().chain(blocks).collect()
}

fn receipt_line(receipt: &Receipt) -> String {
    let outcome = match &receipt.outcome {
        Outcome::Success => "success".into(),
        Outcome::Reverted(data) => format!("reverted {data}"),
        Outcome::Halted(halt) => format!("halted {halt:?}"),
    };
    let (kind, gas, logs) = (receipt.transaction_type, receipt.gas_used.0, receipt.logs.len());
    format!("type {kind:#04x}, {gas} gas, {logs} logs, {outcome}")
}

/// Keys, old and new values; the header's own commitment depends on the store, which is not part of this.
fn diff_hash(diff: &StateDiff) -> B256 {
    let mut bytes = Vec::new();
    for change in diff.changes() {
        bytes.extend_from_slice(change.key.hashed().as_slice());
        for value in [&change.old, &change.new] {
            match value {
                Some(value) => {
                    bytes.push(1);
                    bytes.extend_from_slice(&(value.len() as u64).to_be_bytes());
                    bytes.extend_from_slice(value);
                }
                None => bytes.push(0),
            }
        }
    }
    keccak256(bytes)
}

// ---- The story ----

/// Ten blocks, each with an idea of its own. Signatures are deterministic (RFC 6979), so the hashes are too.
fn story() -> TestChain {
    let mut chain = TestChain::from_genesis(&story_genesis());
    let blocks: [fn(&TestChain) -> Vec<UserTransaction>; 10] = [
        |_| vec![],
        |_| transfers(),
        |_| calls(),
        |_| creations(),
        |_| delegations(),
        |_| after_delegations(),
        |_| governance(),
        |_| failures(),
        priced,
        |_| heavy(),
    ];
    for (n, block) in blocks.iter().enumerate() {
        let n = n as u64;
        let timestamp = TimestampMs(chain.head.timestamp.0 + 1 + 700 * n);
        let input = BlockInput {
            fee_recipient: if n.is_multiple_of(2) { FEE_RECIPIENT } else { person(9).address },
            consensus: ConsensusContext {
                epoch: 1,
                view: n,
                leader: B256::repeat_byte(7),
                // One failed view at most, so that budgets are whole.
                parent_view: (n / 2).max(n.saturating_sub(2)),
            },
            ..chain.input_at(timestamp)
        };
        chain.plant(runs(n).iter().map(|run| record(timestamp, run)).collect());
        let candidates = block(&chain);
        let produced = chain.produce_with(&input, candidates);
        assert_eq!(produced.refused, [], "block {}", n + 1);
    }
    chain
}

/// Its contracts are listed, so that a new one for another test does not change the story.
fn story_genesis() -> Genesis {
    let contracts = [
        COUNTER,
        REVERTER,
        BURNER,
        FORWARDER,
        FORWARD_AND_REVERT,
        CREATOR,
        LOGGER,
        WRITER,
        DELEGATOR,
        STATIC_CALLER,
        DESTRUCTIBLE,
        HASHER,
        TELLER,
        FAILER,
        WITNESS,
        CLEARER,
        ECHO,
    ];
    let people: Vec<_> = (0..10).map(|n| person(n).address).collect();
    let mut genesis = Genesis { governance: person(0).address, ..genesis() };
    genesis.allocations.retain(|address, _| contracts.contains(address) || people.contains(address));
    genesis
}

fn transfers() -> Vec<UserTransaction> {
    let newcomer = Address::repeat_byte(0x77);
    let list = AccessList(vec![AccessListItem { address: COUNTER, storage_keys: vec![B256::ZERO] }]);
    vec![
        transfer(person(0), 0, person(1).address, 12_345),
        sign(legacy(0, newcomer, 1), person(1).secret),
        sign(eip2930(1, newcomer, list, 60_000), person(1).secret),
        transfer(person(2), 0, FEE_RECIPIENT, 0),
    ]
}

fn calls() -> Vec<UserTransaction> {
    vec![
        call(person(0), 1, COUNTER, vec![], 100_000),
        call(person(0), 2, FORWARDER, to(COUNTER, &[]), 100_000),
        call(person(0), 3, WRITER, words(6, 40), 300_000),
        call(person(0), 4, DELEGATOR, to(WRITER, &words(6, 40)), 300_000),
        call(person(0), 5, DELEGATOR, to(CLEARER, &words(6, 40)), 300_000),
        call(person(0), 6, LOGGER, (0..100).collect::<Vec<u8>>(), 100_000),
        call(person(0), 7, ECHO, to(TELLER, &[]), 100_000),
        call(person(0), 8, ECHO, to(HASHER, &U256::from(2).to_be_bytes::<32>()), 100_000),
        sign(eip1559(0, TxKind::Call(WITNESS), 77, vec![], 200_000), person(3).secret),
        call(person(3), 1, Address::with_last_byte(2), vec![1, 2, 3], 100_000),
    ]
}

fn creations() -> Vec<UserTransaction> {
    let create = |nonce, init: Bytes, value| {
        sign(eip1559(nonce, TxKind::Create, value, init, 300_000), person(4).secret)
    };
    let by_contract = |nonce, init: Bytes, value| {
        sign(eip1559(nonce, TxKind::Call(CREATOR), value, init, 300_000), person(4).secret)
    };
    vec![
        create(0, deploy(&[0x60, 1, 0x5f, 0x55, 0x00]), 5),
        create(1, born_to_die(person(5).address), 6),
        create(2, born_to_burn(), 7),
        create(3, deploy(&[0xef]), 0),
        by_contract(4, deploy(&[0x00]), 8),
        by_contract(5, born_to_die(LEDGER), 9),
        by_contract(6, born_to_burn(), 10),
        sign(
            eip1559(7, TxKind::Call(DESTRUCTIBLE), 11, to(person(6).address, &[]), 100_000),
            person(4).secret,
        ),
    ]
}

fn delegations() -> Vec<UserTransaction> {
    let list = vec![
        authorize(person(6), 0, COUNTER),
        authorize(person(7), 0, WITNESS),
        authorize(person(7), 5, FAILER),
        authorize(person(8), 0, PARAMETERS),
        // Self-sponsored: the sender's nonce has been raised already.
        authorize(person(5), 1, DESTRUCTIBLE),
    ];
    vec![
        sign(eip7702(0, person(6).address, list, 400_000), person(5).secret),
        sign(eip1559(2, TxKind::Call(person(7).address), 3, vec![], 200_000), person(5).secret),
        call(person(5), 3, person(8).address, vec![], 100_000),
    ]
}

fn after_delegations() -> Vec<UserTransaction> {
    vec![
        call(person(6), 1, person(6).address, vec![], 100_000),
        sign(eip7702(2, NOBODY, vec![authorize(person(7), 1, Address::ZERO)], 100_000), person(6).secret),
        call(person(6), 3, person(7).address, vec![], 100_000),
        call(person(5), 4, person(5).address, to(person(2).address, &[]), 100_000),
    ]
}

const NOBODY: Address = Address::repeat_byte(0x99);

fn governance() -> Vec<UserTransaction> {
    let set = |parameter: Parameter, value: u64| {
        IParameters::setCall { name: parameter.name_word(), value: U256::from(value) }.abi_encode()
    };
    let offer = IParameters::transferOwnershipCall { newOwner: person(1).address }.abi_encode();
    vec![
        call(person(0), 9, PARAMETERS, set(BASE_FEE_FLOOR_WEI, 900_000_000), 200_000),
        call(person(0), 10, PARAMETERS, set(BLOCK_GAS_MAX, 36_000_000), 200_000),
        call(person(0), 11, PARAMETERS, set(BLOCK_GAS_MAX, 1), 200_000),
        call(person(0), 12, PARAMETERS, offer, 200_000),
        call(person(1), 2, PARAMETERS, IParameters::acceptOwnershipCall {}.abi_encode(), 200_000),
        call(person(2), 1, PARAMETERS, set(BASE_FEE_FLOOR_WEI, 1), 200_000),
        call(person(2), 2, LEDGER, vec![], 100_000),
    ]
}

fn failures() -> Vec<UserTransaction> {
    vec![
        call(person(0), 13, REVERTER, vec![], 100_000),
        call(person(0), 14, BURNER, vec![], 60_000),
        call(person(0), 15, FAILER, vec![], 60_000),
        call(person(0), 16, FORWARD_AND_REVERT, to(WRITER, &words(3, 3)), 200_000),
        // ecAdd of a point that is not on the curve.
        call(person(0), 17, Address::with_last_byte(6), vec![1; 128], 100_000),
        call(person(0), 18, STATIC_CALLER, to(WRITER, &words(3, 3)), 200_000),
        call(person(0), 19, COUNTER, vec![1; 500], 100_000),
    ]
}

/// Prices around those of the market runs of the same block.
fn priced(chain: &TestChain) -> Vec<UserTransaction> {
    let paying = |n: u64, tip: u128| {
        let tx = eip1559(chain.nonce(person(n).address), TxKind::Call(COUNTER), 0, Bytes::new(), 100_000);
        sign(
            TxEip1559 { max_priority_fee_per_gas: tip, max_fee_per_gas: 100_000_000_000, ..tx },
            person(n).secret,
        )
    };
    vec![paying(0, 4_000_000_000), paying(1, 1_000_000_000), paying(2, 2_500_000_000)]
}

/// More than half a block, so that the base fee rises.
fn heavy() -> Vec<UserTransaction> {
    vec![call(person(0), 21, FAILER, vec![], 20_000_000), call(person(1), 4, FAILER, vec![], 10_000_000)]
}

/// The runs of a block, in the order of their lanes.
fn runs(n: u64) -> Vec<RunTransaction> {
    let from = person(3).address;
    let with_price = |id, price: u128| RunTransaction {
        gas_price: GasPrice(price),
        ..run(id, Lane::Market, from, COUNTER, 100_000)
    };
    match n {
        3 => vec![
            run(1, Lane::Reserved, from, COUNTER, 100_000),
            RunTransaction { input: words(2, 9), ..run(2, Lane::Cron, from, WRITER, 200_000) },
            RunTransaction { value: Wei(U256::from(3)), ..run(3, Lane::Spare, from, NOBODY, 21_000) },
        ],
        7 => vec![
            run(4, Lane::Cron, from, REVERTER, 100_000),
            RunTransaction { value: Wei(U256::MAX), ..run(5, Lane::Cron, from, NOBODY, 30_000) },
            run(6, Lane::Spare, from, FAILER, 1_000_000),
        ],
        8 => vec![with_price(7, 6_000_000_000), with_price(8, 4_000_000_000), with_price(9, 3_000_000_000)],
        9 => vec![run(10, Lane::Reserved, from, FAILER, 40_000_000)],
        _ => vec![],
    }
}
