//! What somebody does: a call of a door, or of a contract that calls one.

use super::dice::Dice;
use crate::support::{callbacks as cb, contracts::*, cron, ledger, market, native::Key, signed::*, *};
use alloy_primitives::{Address, Bytes, U256};
use alloy_sol_types::SolCall as _;
use almanac_primitives::addresses::{
    BURN, CALLBACKS, CRON_REGISTRY, HIP1215_SERVICE, LEDGER, SCHEDULE_SERVICE, SCHEDULED_TRANSACTIONS,
};
use almanac_schedule::{Record, record::Door};

alloy_sol_types::sol!("../../contracts/IHederaScheduleService.sol");

const COIN: u64 = 1_000_000_000_000_000_000;

/// How deep acts are nested in each other.
const DEPTH_MAX: u32 = 4;

/// One call.
pub(super) struct Act {
    pub(super) to: Address,
    pub(super) value: U256,
    pub(super) input: Bytes,
}

impl Act {
    fn new(to: Address, value: U256, input: impl Into<Bytes>) -> Self {
        Self { to, value, input: input.into() }
    }
}

/// A call that `by` makes. `depth` counts what is around it.
pub(super) fn draw(dice: &mut Dice, chain: &TestChain, by: Address, depth: u32) -> Act {
    if depth < DEPTH_MAX && dice.below(10) < 4 {
        return through_a_contract(dice, chain, depth);
    }
    if dice.once_in(8) {
        return with_an_extreme(dice, chain, by);
    }
    match dice.below(13) {
        0 | 1 => cron_job(dice, chain, depth),
        2 => callback(dice, chain, by),
        3..=5 => bid(dice, chain, by, depth),
        6 => {
            let input = market::IScheduledTransactions::cancelAllCall {}.abi_encode();
            Act::new(SCHEDULED_TRANSACTIONS, U256::ZERO, input)
        }
        7 | 8 => waiting(dice, chain, by, depth),
        9 => alarm(dice, chain, by),
        10 => {
            let account = dice.of(&[FORWARDER, ECHO, by]);
            Act::new(SCHEDULE_SERVICE, U256::from(COIN), fundCall { account }.abi_encode())
        }
        11 => change(dice, chain, by),
        _ => {
            let to = dice.of(&[COUNTER, REVERTER, FAILER, BURN, LEDGER]);
            Act::new(to, U256::from(dice.of(&[0u64, 3])), Bytes::from_static(&[1, 2, 3, 4]))
        }
    }
}

/// The same by a contract, or by an account that may have taken a contract's code.
fn through_a_contract(dice: &mut Dice, chain: &TestChain, depth: u32) -> Act {
    let contracts = [
        FORWARDER,
        FORWARDER,
        FORWARDER,
        ECHO,
        FORWARD_AND_REVERT,
        STATIC_CALLER,
        DELEGATOR,
        CREATOR,
        DESTRUCTIBLE,
    ];
    let people = [0, 1, 2, 3].map(|n| person(n).address);
    let via = dice.of(&[&contracts[..], &people].concat());
    let inner = draw(dice, chain, via, depth + 1);
    Act::new(via, inner.value, to(inner.to, &inner.input))
}

/// What a schedule calls: another act, or the counter where that would be nested too deeply.
fn inner(dice: &mut Dice, chain: &TestChain, by: Address, depth: u32) -> (Address, Bytes) {
    const METHOD: Bytes = Bytes::from_static(&[1, 2, 3, 4]);
    if depth >= DEPTH_MAX {
        return (COUNTER, METHOD);
    }
    let act = draw(dice, chain, by, depth + 1);
    (act.to, if act.input.len() < METHOD.len() { METHOD } else { act.input })
}

fn soon(dice: &mut Dice, chain: &TestChain) -> u64 {
    chain.input().timestamp.seconds() + 1 + dice.below(20)
}

fn cron_job(dice: &mut Dice, chain: &TestChain, depth: u32) -> Act {
    let (target, data) = inner(dice, chain, CRON_REGISTRY, depth);
    let gas = dice.of(&[21_000, 100_000, 600_000, 3_000_000, 5_000_000]);
    let mut order = cron::order(chain).at(soon(dice, chain)).calling(target, data).gas(gas);
    order.value =
        U256::from(gas) * U256::from(chain.next_base_fee().0) * U256::from(dice.of(&[1u64, 2, 3, 10]));
    if dice.once_in(2) {
        order = order.every(dice.of(&[1u64, 2, 7]));
    }
    let refund_to =
        dice.of(&[person(1).address, FORWARDER, ECHO, LEDGER, BURN, SCHEDULED_TRANSACTIONS, FEE_RECIPIENT]);
    order = order.with_options(dice.of(&[0u64, 1, 0x100, 0x101, 0x200, 0x201])).refunding(refund_to);
    Act::new(CRON_REGISTRY, order.value, order.calldata())
}

fn callback(dice: &mut Dice, chain: &TestChain, by: Address) -> Act {
    let second = soon(dice, chain);
    let call = cb::ICallbackScheduler::scheduleCall {
        handler: by,
        data: Bytes::new(),
        timestamp: dice.of(&[0, second, second]),
        priority: dice.of(&[cb::Priority::High, cb::Priority::Medium, cb::Priority::Low]),
        executionEffort: dice.of(&[15u64, 100, 2_000, 4_900]),
    };
    Act::new(CALLBACKS, cb::PLENTY, call.abi_encode())
}

fn bid(dice: &mut Dice, chain: &TestChain, by: Address, depth: u32) -> Act {
    let pass = dice.once_in(2);
    let (target, data) = inner(dice, chain, if pass { by } else { SCHEDULED_TRANSACTIONS }, depth);
    let fee = u64::try_from(chain.next_base_fee().0).unwrap();
    let txn = market::ScheduledTransaction {
        senderAddr: by,
        scheduledTimeMs: chain.input().timestamp.0 + 1 + dice.below(20_000),
        maxGasAmount: dice.of(&[100_000u64, 700_000, 5_000_000]),
        maxGasUnitPrice: fee * dice.of(&[1u64, 1, 2, 3]),
        passSigner: pass,
        to: target,
        value: U256::from(dice.of(&[0u64, 0, 5, COIN])),
        data,
        expiryBlocks: dice.of(&[0u32, 1, 2, 5]),
    };
    let value = market::deposit(&txn);
    Act::new(SCHEDULED_TRANSACTIONS, value, market::IScheduledTransactions::insertCall { txn }.abi_encode())
}

/// A transaction that waits for signatures, of which it brings some.
fn waiting(dice: &mut Dice, chain: &TestChain, by: Address, depth: u32) -> Act {
    let calls = (0..1 + dice.below(2)).map(|_| {
        let from = person(dice.below(4)).address;
        let from = dice.of(&[from, FORWARDER, ECHO, by]);
        let Act { to, value, input: data } = draw(dice, chain, from, depth + 2);
        let value = if dice.once_in(3) { value } else { U256::ZERO };
        ServiceCall { from, to, value, data }
    });
    let mut wish = Wish::new(calls.collect());
    wish.body.gasLimit = dice.of(&[200_000u64, 900_000, 3_000_000]);
    wish.body.nonce = u32::try_from(dice.below(3)).unwrap();
    if dice.once_in(3) {
        (wish.body.executionTime, wish.body.waitForExpiry) = (soon(dice, chain), !dice.once_in(3));
    }
    wish.admin_key = Key::from(person(dice.below(4))).encoded();
    wish.payer = dice.of(&[None, Some(FORWARDER), Some(person(2).address), Some(by)]);
    let asked = (0..4).filter(|n| {
        let address = person(*n).address;
        let pays = wish.payer == Some(address) && by != address;
        pays || wish.body.calls.iter().any(|call| call.from == address)
    });
    let signing: Vec<u64> = asked.filter(|_| !dice.once_in(4)).collect();
    let entries = signing.into_iter().map(|n| wish.signed(person(n))).collect();
    let value = if wish.body.waitForExpiry { U256::from(COIN) } else { U256::ZERO };
    Act::new(SCHEDULE_SERVICE, value, wish.create(entries))
}

/// The same as contracts for Hedera write it.
fn alarm(dice: &mut Dice, chain: &TestChain, by: Address) -> Act {
    let call = IHederaScheduleService::scheduleCallWithPayerCall {
        to: COUNTER,
        payer: by,
        expirySecond: U256::from(soon(dice, chain)),
        gasLimit: U256::from(100_000),
        value: 0,
        callData: Bytes::from_static(&[9; 4]),
    };
    Act::new(HIP1215_SERVICE, U256::ZERO, call.abi_encode())
}

/// Cancels, tops up, claims, signs or deletes what is there, mostly what is one's own.
fn change(dice: &mut Dice, chain: &TestChain, by: Address) -> Act {
    let mut records = ledger::records(&chain.state);
    let own_key =
        (0..4).map(person).find(|person| person.address == by).map(|person| Key::from(person).encoded());
    let is_own = |record: &Record| match record.body.terms.signed() {
        Some(terms) => Some(&terms.admin_key) == own_key.as_ref(),
        None => record.body.owner == by,
    };
    if !dice.once_in(4) && records.iter().any(is_own) {
        records.retain(is_own);
    }
    if records.is_empty() {
        return Act::new(COUNTER, U256::ZERO, Bytes::new());
    }
    let record = dice.of(&records);
    let id = U256::from(record.id.0);
    match record.body.door() {
        Door::Cron if dice.once_in(3) => Act::new(CRON_REGISTRY, U256::from(7), cron::top_up_data(id)),
        Door::Cron => Act::new(CRON_REGISTRY, U256::ZERO, cron::cancel_data(id)),
        Door::Callback => {
            let input = cb::ICallbackScheduler::cancelCall { id: record.id.0 }.abi_encode();
            Act::new(CALLBACKS, U256::ZERO, input)
        }
        Door::Market => Act::new(SCHEDULED_TRANSACTIONS, U256::ZERO, end_of_bid(dice, &record)),
        Door::Signed if dice.once_in(3) => {
            Act::new(SCHEDULE_SERVICE, U256::ZERO, deleting(record.id, vec![]))
        }
        Door::Signed => Act::new(SCHEDULE_SERVICE, U256::ZERO, signing(record.id, vec![])),
    }
}

fn end_of_bid(dice: &mut Dice, record: &Record) -> Vec<u8> {
    let key = record.body.terms.market().unwrap().key();
    let key = market::ScheduleMapKey { time: key.time, gasPriority: key.gas_priority, txnId: key.txn_id };
    match dice.once_in(2) {
        true => market::IScheduledTransactions::cancelCall { key }.abi_encode(),
        false => market::IScheduledTransactions::claimCall { key }.abi_encode(),
    }
}

/// An order with one number at the end of what its type holds.
fn with_an_extreme(dice: &mut Dice, chain: &TestChain, by: Address) -> Act {
    let words = [U256::MAX, U256::from(u64::MAX), U256::from(u128::MAX), U256::ZERO, U256::from(1u64 << 63)];
    let word = dice.of(&words);
    let number = dice.of(&[u64::MAX, 0, u64::MAX / 1_000, 1 << 63, u64::MAX / 2_100, u64::MAX - 1]);
    match dice.below(4) {
        0 => {
            let mut order = cron::order(chain);
            match dice.below(4) {
                0 => order.next_run_at = word,
                1 => order.interval = word,
                2 => order.max_runs = word,
                _ => order.gas_limit = word,
            }
            Act::new(CRON_REGISTRY, order.value, order.calldata())
        }
        1 => {
            let mut txn = market::ScheduledTransaction {
                senderAddr: by,
                ..market::txn(chain.input().timestamp.0 + 5_000)
            };
            match dice.below(5) {
                0 => txn.scheduledTimeMs = number,
                1 => txn.maxGasAmount = number,
                2 => txn.maxGasUnitPrice = number,
                3 => txn.value = word,
                _ => txn.expiryBlocks = u32::MAX,
            }
            let input = market::IScheduledTransactions::insertCall { txn }.abi_encode();
            Act::new(SCHEDULED_TRANSACTIONS, U256::from(COIN), input)
        }
        2 => {
            let call = ServiceCall { from: FORWARDER, to: COUNTER, value: word, data: Bytes::new() };
            let mut wish = Wish::new(vec![call; dice.of(&[0usize, 1, 2, 16, 17])]);
            match dice.below(3) {
                0 => wish.body.gasLimit = number,
                1 => wish.body.maxFeePerGas = word,
                _ => (wish.body.executionTime, wish.body.waitForExpiry) = (number, dice.once_in(2)),
            }
            Act::new(SCHEDULE_SERVICE, U256::from(COIN), wish.create(vec![]))
        }
        _ => Act::new(SCHEDULE_SERVICE, U256::ZERO, withdrawCall { amount: word }.abi_encode()),
    }
}
