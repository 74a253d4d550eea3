//! Transactions that create, cancel and crowd.

use alloy_primitives::{Address, Bytes, TxKind, U256, address};
use alloy_sol_types::SolCall;
use almanac_primitives::{
    RecoveredTransaction,
    addresses::CRON_REGISTRY,
    testing::{eip1559, person, recovered, sign},
};

alloy_sol_types::sol!("../../contracts/ICronRegistry.sol");

/// Creates schedules in a loop: words of calldata are how many, seconds between two, value of each; then the call.
pub(crate) const BULK: Address = address!("0x00000000000000000000000000000000000b0001");

/// Nobody: the least that a call can be.
pub(crate) const TARGET: Address = address!("0x00000000000000000000000000000000000b0002");

/// Gas of a run: what a call of nobody takes, with four bytes of calldata.
pub(crate) const RUN_GAS: u64 = 21_160;

/// Escrow of a schedule: several runs at the base fee of the start, which only falls here.
pub(crate) const ESCROW: u64 = 10 * RUN_GAS * 1_000_000_000;

/// The loop in bytecode. It moves the due time in the calldata that it has copied to memory.
pub(crate) fn bulk_code() -> Bytes {
    Bytes::from_static(&[
        0x61, 0x01, 0x04, 0x60, 0x60, 0x5f, 0x37, 0x5f, 0x35, // calldatacopy(0, 96, 260); n
        0x5b, 0x80, 0x15, 0x60, 0x2e, 0x57, // while n
        0x5f, 0x5f, 0x61, 0x01, 0x04, 0x5f, 0x60, 0x40, 0x35, 0x60, 0x06, 0x5a, 0xf1,
        0x50, // call(6, value)
        0x60, 0x44, 0x51, 0x60, 0x20, 0x35, 0x01, 0x60, 0x44, 0x52, // mem[68] += step
        0x60, 0x01, 0x90, 0x03, 0x60, 0x09, 0x56, // n -= 1
        0x5b, 0x00,
    ])
}

/// One transaction that creates `count` schedules, `step_s` seconds apart.
pub(crate) fn bulk(nonce: u64, count: u64, first_s: u64, step_s: u64) -> RecoveredTransaction {
    let mut input = [count, step_s, ESCROW].map(|word| U256::from(word).to_be_bytes::<32>()).concat();
    input.extend(order(first_s));
    let mut tx = eip1559(nonce, TxKind::Call(BULK), 0, input, 110_000_000);
    tx.value = U256::from(ESCROW) * U256::from(count);
    recovered(sign(tx, person(0).secret))
}

/// One transaction that creates one schedule.
pub(crate) fn single(nonce: u64, at_s: u64) -> RecoveredTransaction {
    let mut tx = eip1559(nonce, TxKind::Call(CRON_REGISTRY), 0, order(at_s), 200_000);
    tx.value = U256::from(ESCROW);
    recovered(sign(tx, person(0).secret))
}

pub(crate) fn cancel(nonce: u64, id: U256) -> RecoveredTransaction {
    let input = ICronRegistry::cancelCall { id }.abi_encode();
    recovered(sign(eip1559(nonce, TxKind::Call(CRON_REGISTRY), 0, input, 100_000), person(0).secret))
}

pub(crate) fn transfer(nonce: u64) -> RecoveredTransaction {
    recovered(sign(eip1559(nonce, TxKind::Call(TARGET), 1, Bytes::new(), 21_000), person(1).secret))
}

fn order(at_s: u64) -> Vec<u8> {
    ICronRegistry::scheduleCalldataCall {
        target: TARGET,
        data: Bytes::from_static(&[1, 2, 3, 4]),
        nextRunAt: U256::from(at_s),
        intervalSec: U256::ZERO,
        maxRuns: U256::ZERO,
        gasLimit: U256::from(RUN_GAS),
    }
    .abi_encode()
}
