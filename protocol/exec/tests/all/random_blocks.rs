//! Blocks of anything: whatever people and schedules do, builder and verifiers agree and no money is lost.
//!
//! `TestChain` checks at every block that building equals verifying, twice, and that value is conserved; here the
//! state is looked over as well, and every case is replayed from genesis. What happened is counted, so that the
//! generator cannot become boring unnoticed.

mod counts;
mod draw;
mod plan;
mod sign;
use crate::support::{contracts::*, native::*, *};
use alloy_consensus::{TxEip1559, TxEip2930, TxEip7702, TxLegacy};
use alloy_eips::{
    eip2930::{AccessList, AccessListItem},
    eip7702::SignedAuthorization,
};
use alloy_primitives::{
    Address, B256, Bloom, Bytes, KECCAK256_EMPTY, Log, TxHash, TxKind, U256, address, keccak256,
};
use alloy_sol_types::SolCall;
use almanac_exec::{BlockInput, Environment, Executed, TransactionError, recover};
use almanac_primitives::{
    Account, Gas, GasPrice, Genesis, Halt, Lane, NativeCall, NativeTransaction, Outcome, Receipt,
    RunTransaction, ScheduleId, ScheduleRef, StateKey, TimestampMs, UserTransaction, Wei,
    addresses::{CALLBACKS, CRON_REGISTRY, LEDGER, PARAMETERS, SCHEDULED_TRANSACTIONS, SYSTEM_ACCOUNTS},
    params::PARAMETERS as ALL_PARAMETERS,
};
use almanac_schedule::testing::record;
use proptest::{collection::vec, prelude::*, sample::select, test_runner::TestRunner};
use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

use counts::Counts;
use draw::block_plan;
use plan::*;
use sign::candidates;

alloy_sol_types::sol!("../../contracts/IParameters.sol");

const CASES: u32 = 96;
const PEOPLE: usize = 8;

#[test]
fn anything_goes_and_nothing_is_lost() {
    let counts = RefCell::new(Counts::default());
    TestRunner::new(ProptestConfig {
        cases: CASES,
        max_shrink_iters: 2_000,
        failure_persistence: None,
        ..Default::default()
    })
    .run(&vec(block_plan(), 5..=8), |plans| {
        counts.borrow_mut().merge(play(&plans));
        Ok(())
    })
    .unwrap();
    counts.borrow().assert_interesting();
}

/// Plays a chain of planned blocks and answers with what happened.
fn play(plans: &[BlockPlan]) -> Counts {
    let mut counts = Counts::default();
    let mut chain = TestChain::from_genesis(&Genesis { governance: FORWARDER, ..genesis() });
    for plan in plans {
        let timestamp = TimestampMs(chain.head.timestamp.0 + plan.milliseconds);
        let input = BlockInput { fee_recipient: plan.fee_recipient, ..chain.input_at(timestamp) };
        let base_fee = Environment::derive(&input, &chain.state).unwrap().base_fee;
        let runs = plan.runs.iter().enumerate().map(|(n, run)| {
            // Named after the block before, in the order of the plan.
            let schedule = ScheduleId::new(chain.head.number, 0, n as u16 + 1).unwrap();
            run.run(&chain, ScheduleRef { schedule, number: 0 }, base_fee)
        });
        let runs: Vec<_> = runs.collect();
        chain.plant(runs.iter().map(|run| record(timestamp, run)).collect());

        let (candidates, labels) = candidates(&chain, plan, base_fee, &mut counts);
        let before = chain.state.clone();
        let produced = chain.produce_with(&input, candidates);

        look_over(&chain, &produced);
        counts.block(&produced, &labels, &runs, (&before, &chain.state));
    }
    chain.replay();
    counts
}

/// What must hold of any state and any block.
fn look_over(chain: &TestChain, produced: &Produced) {
    let output = &produced.output;
    let mut accounts = BTreeSet::new();
    for (key, bytes) in &chain.state.0 {
        match key {
            StateKey::Account(address) => {
                let account = Account::decode(bytes).unwrap();
                assert_ne!(account, Account::default(), "{address} is empty and yet stored");
                if account.code_hash != KECCAK256_EMPTY {
                    let code = chain.state.0.get(&StateKey::Code(account.code_hash));
                    assert!(code.is_some(), "{address} has code that is nowhere");
                }
                accounts.insert(*address);
            }
            StateKey::Slot(address, _) => assert!(accounts.contains(address), "storage of nobody, {address}"),
            StateKey::Code(hash) => assert_eq!(keccak256(bytes), *hash),
            StateKey::Body(_) | StateKey::Calendar(_) | StateKey::Meta(_) => {}
            StateKey::Nonce(..) | StateKey::NonceLog(..) | StateKey::AccountKey(_) => {}
        }
    }
    for address in SYSTEM_ACCOUNTS {
        let account = chain.state.account(address);
        assert_eq!((account.nonce, account.code_hash), (1, keccak256([system_code(address)])), "{address}");
    }
    assert!(output.gas_used <= output.environment.gas_limit);
    let mut sum = 0;
    for (executed, receipt) in output.transactions.iter().zip(&output.receipts) {
        let limit = match executed {
            Executed::Prologue(_) => 0,
            Executed::Run(run) => run.gas_limit.0,
            Executed::User(user) => user.transaction().gas_limit(),
        };
        assert!(receipt.gas_used.0 <= limit);
        sum += receipt.gas_used.0;
        assert_eq!(receipt.cumulative_gas_used, Gas(sum));
        assert_eq!(Receipt::decode(&receipt.encode()).unwrap(), *receipt);
        // Of a run that failed, its door tells.
        let is_told = receipt.schedule_ref.is_some();
        let is_doors =
            |log: &Log| is_told && [CRON_REGISTRY, SCHEDULED_TRANSACTIONS, LEDGER].contains(&log.address);
        assert!(receipt.outcome.is_success() || receipt.logs.iter().all(is_doors));
    }
    assert_eq!(sum, output.gas_used.0 + output.reserved_gas_used.0);
    let hashes: BTreeSet<_> = output.receipts.iter().map(|receipt| receipt.transaction_hash).collect();
    assert_eq!(hashes.len(), output.receipts.len());
    let bloom = output.receipts.iter().fold(Bloom::ZERO, |bloom, receipt| bloom | receipt.bloom());
    assert_eq!(output.logs_bloom, bloom);
}
