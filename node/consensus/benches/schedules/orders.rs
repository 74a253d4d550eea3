//! Transactions that create, cancel and crowd.

use alloy_primitives::{Address, Bytes, TxKind, U256, address};
use alloy_sol_types::SolCall;
use almanac_primitives::{
    RecoveredTransaction,
    addresses::{CRON_REGISTRY, PARAMETERS},
    params::Parameter,
    testing::{
        eip1559, person, recovered, sign,
        signed::{Wish, service_call},
    },
};

alloy_sol_types::sol!("../../contracts/ICronRegistry.sol");
alloy_sol_types::sol!("../../contracts/IParameters.sol");
alloy_sol_types::sol!("../../contracts/IScheduledTransactions.sol");

/// The door whose schedules a chain has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Cron,
    Market,
    Signed,
}

/// Creates schedules in a loop: words of calldata are how many, seconds between two, value of each; then the call.
pub(crate) const BULK: Address = address!("0x00000000000000000000000000000000000b0001");

/// Nobody: the least that a call can be.
pub(crate) const TARGET: Address = address!("0x00000000000000000000000000000000000b0002");

/// Gas of a run: what a call of nobody takes, with four bytes of calldata.
pub(crate) const RUN_GAS: u64 = 21_160;

/// More than an insert takes.
const INSERT_GAS_MAX: u64 = 300_000;

/// Escrow of a schedule: several runs at the base fee of the start, which only falls here.
pub(crate) const ESCROW: u64 = 10 * RUN_GAS * 1_000_000_000;

/// The most that a scheduled transaction pays per gas, unless a measure says otherwise: far above what users pay here.
pub(crate) const BID: u64 = 100_000_000_000;

/// The loop in bytecode: calls a door with calldata of `length`, and moves the due time, or the nonce, in the calldata
/// that it has copied to memory.
pub(crate) fn bulk_code(kind: Kind) -> Bytes {
    let (length, door, moved) = match kind {
        Kind::Cron => (260u16, 0x0006u16, 0x44u16),
        Kind::Market => (356, 0xa101, 0x44),
        Kind::Signed => (u16::try_from(signed_order(0).len()).expect("a short call"), 0xa103, SIGNED_NONCE),
    };
    let ([high, low], [door_high, door_low]) = (length.to_be_bytes(), door.to_be_bytes());
    let [at_high, at_low] = moved.to_be_bytes();
    let code = [
        0x61, high, low, 0x60, 0x60, 0x5f, 0x37, 0x5f, 0x35, // calldatacopy(0, 96, length); n
        0x5b, 0x80, 0x15, 0x60, 0x31, 0x57, // while n
        0x5f, 0x5f, 0x61, high, low, 0x5f, 0x60, 0x40, 0x35, 0x61, door_high, door_low, 0x5a, 0xf1,
        0x50, // call(door, value)
        0x61, at_high, at_low, 0x51, 0x60, 0x20, 0x35, 0x01, 0x61, at_high, at_low,
        0x52, // mem[moved] += step
        0x60, 0x01, 0x90, 0x03, 0x60, 0x09, 0x56, // n -= 1
        0x5b, 0x00,
    ];
    Bytes::copy_from_slice(&code)
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

/// One transaction that inserts `count` scheduled transactions, `step_ms` apart, each of which bids so much.
pub(crate) fn bulk_market(
    nonce: u64,
    count: u64,
    first_ms: u64,
    step_ms: u64,
    bid: u64,
) -> RecoveredTransaction {
    let deposit = U256::from(RUN_GAS) * U256::from(bid);
    let words = [U256::from(count), U256::from(step_ms), deposit];
    let mut input = words.map(|word| word.to_be_bytes::<32>()).concat();
    let txn = IScheduledTransactions::ScheduledTransaction {
        senderAddr: BULK,
        scheduledTimeMs: first_ms,
        maxGasAmount: RUN_GAS,
        maxGasUnitPrice: bid,
        passSigner: false,
        to: TARGET,
        value: U256::ZERO,
        data: Bytes::new(),
        expiryBlocks: 1_000,
    };
    input.extend(IScheduledTransactions::insertCall { txn }.abi_encode());
    let mut tx = eip1559(nonce, TxKind::Call(BULK), 0, input, 100_000 + count * INSERT_GAS_MAX);
    tx.value = deposit * U256::from(count);
    recovered(sign(tx, person(0).secret))
}

/// Where the calldata of a creation has the body's nonce.
const SIGNED_NONCE: u16 = 0x144;

/// A creation that waits for two signatures.
fn signed_order(nonce: u32) -> Vec<u8> {
    let calls = [2, 3].map(|from| service_call(person(from).address, TARGET));
    let mut wish = Wish::new(calls.to_vec());
    wish.body.nonce = nonce;
    wish.create(vec![])
}

/// One transaction that creates `count` schedules that wait for signatures, with bodies from `first` on.
pub(crate) fn bulk_signed(nonce: u64, count: u64, first: u32) -> RecoveredTransaction {
    let mut input = [count, 1, 0].map(|word| U256::from(word).to_be_bytes::<32>()).concat();
    input.extend(signed_order(first));
    recovered(sign(eip1559(nonce, TxKind::Call(BULK), 0, input, 110_000_000), person(0).secret))
}

pub(crate) fn set_parameter(nonce: u64, parameter: Parameter, value: u64) -> RecoveredTransaction {
    let input = IParameters::setCall { name: parameter.name_word(), value: U256::from(value) }.abi_encode();
    recovered(sign(eip1559(nonce, TxKind::Call(PARAMETERS), 0, input, 200_000), person(0).secret))
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
