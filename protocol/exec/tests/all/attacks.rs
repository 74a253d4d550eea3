//! Attacks on the scheduler, one test each, numbered as in the list of attacks that the design keeps.
//!
//! | attack | here |
//! |---|---|
//! | 2 fill and cancel slots | priced in `denial.rs`; that the room is free again is in `flip330_door.rs` |
//! | 4 reentrant booking | in `flip330_door.rs`, and in the random histories of `flip330_model.rs` |
//! | 14 proposer moves time | what execution can see; how far ahead a clock may be is the node's business |
//! | 20 cron shadows ecAdd | beside `precompiles.rs`, which runs the vectors |
//! | 32 double charge, 33 hostile token | in `subscriptions.rs`: they are attacks on a contract |
//! | 35, 36, 38 signatures and keys | in `keys.rs`, and in the tests of `almanac-primitives` |
//! | 43–49 nonces | in `orderless.rs`; with pools, restarts and proposers in the tests of the nodes |
//! | 34, 39, 41, 42 signed schedules | in `hedera_door.rs`, `hedera_runs.rs` and `hedera_model.rs`; 39 also in `payers.rs` |
//! | 50, 51 nodes | in the tests of `almanac-bft` |
//!
//! All others of 1–33 are below, and 37, the key-tree bomb, and 40, the schedule that a stranger makes first. `denial.rs` adds up what keeping others out costs.
#![allow(unreachable_pub, reason = "parts of one test")]

mod authority;
mod callbacks;
mod denial;
mod entries;
mod faults;
mod load;
mod looper;
mod market;
mod money;
mod native;
mod payers;
mod price;
mod signatures;
mod stopwatch;
mod time;

pub use entries::Counted;

use crate::support::{cron::*, *};
use alloy_primitives::{Address, Bytes, TxKind, U256, address};
use alloy_sol_types::SolCall;
use almanac_primitives::{
    Genesis, UserTransaction,
    addresses::PARAMETERS,
    genesis::Allocation,
    params::{BLOCK_GAS_MAX, CRON_BLOCK_EXHAUSTIONS_MAX, CRON_BLOCK_GAS_MAX, Parameter},
};

alloy_sol_types::sol!("../../contracts/IParameters.sol");

/// Calls the registry as often as its first word says, each time with the value of the second and the rest as data.
pub const FLOODER: Address = address!("0x00000000000000000000000000000000000c0200");
/// The same, whether the registry refuses or not.
pub const TRIER: Address = address!("0x00000000000000000000000000000000000c0202");

/// Gas of a run that calls nobody with four bytes: intrinsic gas and nothing else.
pub const LEAST_RUN_GAS: u64 = 21_160;

/// Has neither code nor a key.
pub const NOBODY: Address = address!("0x00000000000000000000000000000000000c0201");

/// Who owns the parameters.
pub fn governor() -> Person {
    person(7)
}

/// A chain with a flooder and room for it, until [`shrink`].
pub fn wide_chain() -> TestChain {
    let mut genesis = flooded(Genesis { governance: governor().address, ..genesis() });
    genesis.parameters.insert(BLOCK_GAS_MAX.name.into(), BLOCK_GAS_MAX.max);
    TestChain::from_genesis(&genesis)
}

/// A chain whose lanes are as large as governance may make them.
pub fn largest_chain() -> TestChain {
    let mut genesis = genesis();
    for parameter in [BLOCK_GAS_MAX, CRON_BLOCK_GAS_MAX, CRON_BLOCK_EXHAUSTIONS_MAX] {
        genesis.parameters.insert(parameter.name.into(), parameter.max);
    }
    TestChain::from_genesis(&genesis)
}

/// With the two contracts that call the registry again and again.
pub fn flooded(mut genesis: Genesis) -> Genesis {
    for (address, is_tolerant) in [(FLOODER, false), (TRIER, true)] {
        let code = flooder_code(is_tolerant);
        genesis.allocations.insert(address, Allocation { code, ..Default::default() });
    }
    genesis
}

fn flooder_code(is_tolerant: bool) -> Bytes {
    // calldatacopy(0, 64, calldatasize - 64); [n]: while n != 0
    let mut code =
        vec![0x60, 64, 0x36, 0x03, 0x60, 64, 0x5f, 0x37, 0x5f, 0x35, 0x5b, 0x80, 0x60, 16, 0x57, 0x00, 0x5b];
    // call(gas, 6, value, 0, calldatasize - 64, 0, 0)
    code.extend([0x5f, 0x5f, 0x60, 64, 0x36, 0x03, 0x5f, 0x60, 32, 0x35, 0x60, 6, 0x5a, 0xf1]);
    if is_tolerant {
        code.push(0x50);
    } else {
        // or revert with what that said
        code.extend([0x60, 41, 0x57, 0x3d, 0x5f, 0x5f, 0x3e, 0x3d, 0x5f, 0xfd, 0x5b]);
    }
    // n -= 1
    code.extend([0x60, 1, 0x90, 0x03, 0x60, 10, 0x56]);
    code.into()
}

/// Calldata of the flooder.
pub fn flooder_data(count: u64, value: U256, data: &[u8]) -> Bytes {
    let mut out = U256::from(count).to_be_bytes_vec();
    out.extend(value.to_be_bytes_vec());
    out.extend(data);
    out.into()
}

/// Back to the block gas that chains have.
pub fn shrink(chain: &mut TestChain) {
    set_parameter(chain, BLOCK_GAS_MAX, BLOCK_GAS_MAX.default);
}

/// Sets a parameter from the next block on.
pub fn set_parameter(chain: &mut TestChain, parameter: Parameter, value: u64) {
    let set = IParameters::setCall { name: parameter.name_word(), value: U256::from(value) };
    assert!(chain.send(governor(), PARAMETERS, U256::ZERO, set.abi_encode()).outcome.is_success());
}

/// A transaction with which the flooder gives `count` equal orders; it owns the jobs.
pub fn flood(chain: &TestChain, from: Person, count: u64, order: &JobOrder, gas: u64) -> UserTransaction {
    let data = flooder_data(count, order.value, &order.calldata());
    let mut tx = eip1559(chain.nonce(from.address), TxKind::Call(FLOODER), 0, data, gas);
    tx.value = order.value * U256::from(count);
    sign(tx, from.secret)
}

/// Makes many equal jobs, in as many blocks as it takes, and answers with their ids.
pub fn fill(chain: &mut TestChain, count: u64, order: &JobOrder) -> Vec<U256> {
    let mut ids = Vec::new();
    while (ids.len() as u64) < count {
        let now = 700.min(count - ids.len() as u64);
        let transaction = flood(chain, person(6), now, order, 118_000_000);
        let produced = chain.produce_once(&chain.input(), vec![transaction]);
        assert_eq!(produced.refused, []);
        let scheduled = events::<JobScheduled>(&produced.logs());
        assert_eq!(scheduled.len() as u64, now, "{:?}", produced.receipt(0).outcome);
        ids.extend(scheduled.into_iter().map(|event| event.id));
    }
    ids
}

/// An order for the cheapest run there is, with money for ten.
pub fn cheap_order(chain: &TestChain) -> JobOrder {
    let value = U256::from(10 * LEAST_RUN_GAS) * U256::from(chain.next_base_fee().0);
    order(chain).calling(NOBODY, Bytes::from_static(&[1, 2, 3, 4])).gas(LEAST_RUN_GAS).with_value(value)
}
