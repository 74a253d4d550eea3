//! Attacks on those who pay for transactions that wait for signatures: with a key that was replaced, with a fee that
//! nobody allowed, and with a tip on the trigger alone.

use crate::{
    keys::rotating,
    support::{contracts::*, market, native::*, signed::*, *},
};
use alloy_primitives::{TxKind, U256};
use almanac_primitives::{
    Gas, GasPrice, Receipt, ScheduleId, TimestampMs,
    addresses::{SCHEDULE_SERVICE, SCHEDULED_TRANSACTIONS},
};

const COIN: u64 = 1_000_000_000_000_000_000;
const GWEI: u128 = 1_000_000_000;

/// A schedule that person 1 has made and pays for, and that person 2 runs whenever it likes. Then person 1 replaces its
/// key.
fn made_by_an_old_key(chain: &mut TestChain) -> ScheduleId {
    let mut wish = Wish::new(vec![service_call(person(2).address, COUNTER)]);
    wish.body.executionTime = chain.input().timestamp.seconds() + 60 * 86_400;
    let (id, _) = chain.create(person(1), &wish, vec![]);
    let key = Key::from(ed_person(1));
    let produced = chain.produce(vec![rotating(person(1), 1, &key.encoded(), 1, &[key])]);
    assert!(produced.receipt(0).outcome.is_success());
    id
}

/// Who has a key only until it is replaced could have prepared schedules that its account pays for, for two months, at
/// any base fee.
#[test]
fn attack_39_a_replaced_key_has_spent_nothing() {
    let mut chain = TestChain::new();
    let id = made_by_an_old_key(&mut chain);
    let before = chain.balance(person(1).address);
    let produced = chain.serve(person(2), signing(id, vec![]));
    assert_eq!((code(produced.receipt(0)), run_codes(&produced)), (22, vec![]), "signed, and not run");
    assert_eq!(chain.add(person(9), id, vec![]), 205);
    assert_eq!(chain.balance(person(1).address), before);
    chain.replay();
}

/// A creator that calls with its new key agrees once more, and by that alone.
#[test]
fn hedera_15_a_creator_that_replaced_its_key_agrees_once_more() {
    let mut chain = TestChain::new();
    let id = made_by_an_old_key(&mut chain);
    chain.serve(person(2), signing(id, vec![]));
    let looked = |chain: &TestChain| {
        let record = ledger::records(&chain.state).into_iter().find(|record| record.id == id).unwrap();
        let found = almanac_exec::agreement(&chain.state, &record).unwrap().unwrap();
        found.parties.into_iter().map(|party| (party.account, party.has_agreed)).collect::<Vec<_>>()
    };
    assert_eq!(looked(&chain), [(person(2).address, true), (person(1).address, false)]);
    let call = native_call(SCHEDULE_SERVICE, 0, signing(id, vec![]));
    let mut native = native(person(1).address, chain.nonce(person(1).address), vec![call]);
    native.gas_limit = PLENTY_GAS;
    let produced = chain.produce(vec![sign_native(native, &[ed_person(1).into()])]);
    assert_eq!(run_codes(&produced), [(id.0, 22)]);
    chain.replay();
}

/// A transaction that waits for its second, made by person 0, for which person 6 pays.
fn paid_by_another(chain: &TestChain, cap: u64) -> Wish {
    let mut wish = Wish::new(vec![service_call(person(1).address, COUNTER)]);
    wish.body.executionTime = chain.input().timestamp.seconds() + 10;
    wish.body.waitForExpiry = true;
    wish.body.maxFeePerGas = U256::from(cap);
    Wish { payer: Some(person(6).address), ..wish }
}

fn prepaid(chain: &mut TestChain, wish: &Wish) -> Receipt {
    let nonce = chain.nonce(person(0).address);
    let mut tx = eip1559(nonce, TxKind::Call(SCHEDULE_SERVICE), 0, wish.create(vec![]), PLENTY_GAS);
    tx.value = U256::from(COIN);
    chain.produce(vec![sign(tx, person(0).secret)]).receipt(0).clone()
}

/// HEDERA-15: a payer's signature names a cap and no moment, so somebody could create at the dearest moment what the
/// payer returns later.
#[test]
fn hedera_15_another_payer_returns_no_more_than_its_cap() {
    let mut chain = TestChain::new();
    // Medium at the floor is 5 gwei; two accounts are judged with 18 of effort beside the run's 96.
    let least = 5_000_000_000u64 * (96 + 18) * 2_100 / 200_000;
    let low = paid_by_another(&chain, least - 1);
    assert_eq!(code(&prepaid(&mut chain, &low)), 9);
    let wish = paid_by_another(&chain, least);
    let receipt = prepaid(&mut chain, &wish);
    assert_eq!(code(&receipt), 22);
    let id = created(&receipt);
    assert_eq!(chain.add(person(9), id, vec![wish.signed(person(1)), wish.signed(person(6))]), 22);
    let before = chain.balance(person(6).address);
    let input = chain.input_at(TimestampMs(wish.body.executionTime * 1_000));
    assert_eq!(run_codes(&chain.produce_with(&input, vec![])), [(id.0, 22)]);
    let paid = before - chain.balance(person(6).address);
    assert!(paid > U256::ZERO && paid <= wish.body.maxFeePerGas * U256::from(wish.body.gasLimit), "{paid}");
    chain.replay();
}

/// A schedule of person 0 for all the gas that a run may have, which person 1 can trigger.
fn large(chain: &mut TestChain, gas: u64) -> ScheduleId {
    let mut wish = Wish::new(vec![service_call(person(1).address, BURNER)]);
    wish.body.gasLimit = gas;
    chain.create(person(0), &wish, vec![]).0
}

/// The front of the block was for sale at a hundredth of its price: a tip on the gas of the trigger alone put the run of
/// a hundred times that gas before everybody else's.
#[test]
fn attack_29_who_triggers_a_run_pays_for_its_place() {
    const TIP: u128 = 100 * GWEI;
    let mut chain = TestChain::new();
    let id = large(&mut chain, 10_000_000);
    let nonce = chain.nonce(person(1).address);
    let mut tx = eip1559(nonce, TxKind::Call(SCHEDULE_SERVICE), 0, signing(id, vec![]), 10_300_000);
    (tx.max_priority_fee_per_gas, tx.max_fee_per_gas) = (TIP, 2 * TIP);
    let before = [person(1).address, FEE_RECIPIENT].map(|account| chain.balance(account));
    let produced = chain.produce(vec![sign(tx, person(1).secret)]);
    let (trigger, run) = (produced.receipt(0), runs::run_receipt(&produced.output, id.0));
    assert_eq!(run.gas_used, Gas(10_000_000));
    let place = Gas(10_000_000).cost(GasPrice(TIP)).0;
    let paid = before[0] - chain.balance(person(1).address);
    assert_eq!(paid, trigger.gas_used.cost(trigger.effective_gas_price).0 + place);
    let tips = chain.balance(FEE_RECIPIENT) - before[1];
    assert_eq!(tips, trigger.gas_used.cost(GasPrice(TIP)).0 + place);
    chain.replay();
}

/// The same for a native transaction, whose fee payer buys the place.
#[test]
fn attack_29_a_fee_payer_pays_for_the_place_of_a_run() {
    let mut chain = TestChain::new();
    let id = large(&mut chain, 1_000_000);
    let call = native_call(SCHEDULE_SERVICE, 0, signing(id, vec![]));
    let mut tx = native(person(1).address, chain.nonce(person(1).address), vec![call]);
    tx.gas_limit = 1_300_000;
    (tx.max_priority_fee_per_gas, tx.max_fee_per_gas) = (GWEI, 50 * GWEI);
    let before = chain.balance(person(1).address);
    let produced = chain.produce(vec![sign_native(tx, &[person(1).into()])]);
    assert_eq!(run_codes(&produced).len(), 1);
    let trigger = produced.receipt(0);
    let own = trigger.gas_used.cost(trigger.effective_gas_price).0;
    let paid = before - chain.balance(person(1).address);
    assert_eq!(paid, own + Gas(1_000_000).cost(GasPrice(GWEI)).0);
}

/// What a frame set aside before the whole transaction failed bought nothing.
#[test]
fn attack_29_a_failed_trigger_buys_no_place() {
    let mut chain = TestChain::new();
    let id = large(&mut chain, 1_000_000);
    let input = to(SCHEDULE_SERVICE, &signing(id, vec![]));
    let nonce = chain.nonce(person(1).address);
    let before = chain.balance(person(1).address);
    let produced = chain.produce(vec![call(person(1), nonce, FORWARD_AND_REVERT, input, 1_500_000)]);
    let receipt = produced.receipt(0);
    assert!(!receipt.outcome.is_success() && run_codes(&produced).is_empty());
    assert_eq!(
        before - chain.balance(person(1).address),
        receipt.gas_used.cost(receipt.effective_gas_price).0
    );
}

/// A market run buys a place with its bid; what it triggers follows there, and the bid counts for that too.
#[test]
fn aip125_15_a_market_run_pays_for_the_place_of_what_it_triggers() {
    let mut market = market::Market::new();
    let gas = 3_000_000;
    let id = large(&mut market.chain, gas);
    let at = market.next() + 5_000;
    let order = market::ScheduledTransaction {
        senderAddr: person(1).address,
        maxGasAmount: gas + 400_000,
        to: SCHEDULE_SERVICE,
        data: signing(id, vec![]).into(),
        ..market::txn(at)
    };
    let value = market::deposit(&order);
    let input =
        alloy_sol_types::SolCall::abi_encode(&market::IScheduledTransactions::insertCall { txn: order });
    let nonce = market.chain.nonce(person(1).address);
    let mut tx = eip1559(nonce, TxKind::Call(SCHEDULED_TRANSACTIONS), 0, input, PLENTY_GAS);
    tx.value = value;
    assert!(market.chain.produce(vec![sign(tx, person(1).secret)]).receipt(0).outcome.is_success());
    let before = market.chain.balance(person(1).address);
    // A user whose price is the price of the block.
    let mut dear = eip1559(market.chain.nonce(person(3).address), TxKind::Call(COUNTER), 0, vec![], 100_000);
    (dear.max_priority_fee_per_gas, dear.max_fee_per_gas) = (3 * GWEI, 50 * GWEI);
    let input = market.chain.input_at(TimestampMs(at));
    let produced = market.chain.produce_with(&input, vec![sign(dear, person(3).secret)]);
    assert_eq!(run_codes(&produced), [(id.0, 30)], "the burner uses all its gas");
    let run = produced
        .output
        .receipts
        .iter()
        .find(|receipt| receipt.outcome.is_success() && receipt.schedule_ref.is_some());
    let run = run.unwrap();
    let (price, base) = (run.effective_gas_price, base_fee(&produced.output));
    assert!(price.0 > base.0, "{price:?} {base:?}");
    let place = Gas(gas).cost(GasPrice(price.0 - base.0)).0;
    let returned = market.chain.balance(person(1).address) - before;
    assert_eq!(value - returned, run.gas_used.cost(price).0 + place);
    market.chain.replay();
}
