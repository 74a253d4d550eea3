//! AIP-125's door: what it takes, what it refuses and with which name, and what it answers.

use crate::{
    keys::rotating,
    support::{contracts::*, cron::paid_call, market::*, native::Key, *},
};
use alloy_primitives::{Address, B256, Bytes, U256};
use alloy_sol_types::SolCall;
use almanac_primitives::{
    Outcome, TimestampMs,
    addresses::{LEDGER, SCHEDULED_TRANSACTIONS},
    params::{
        MARKET_ENABLED, MARKET_INPUT_BYTES_MAX, MARKET_PAUSED, MARKET_RUN_GAS_MAX, MARKET_SHUTDOWN,
        SCHEDULE_AHEAD_SECONDS_MAX,
    },
};
use almanac_schedule::{
    ledger::MemoryLedger,
    life,
    market::{BidTerms, Named},
    record::Door,
};

fn soon(market: &Market) -> ScheduledTransaction {
    txn(market.next() + 60_000)
}

#[test]
fn aip125_01_a_scheduled_transaction_carries_what_was_asked_for() {
    let mut market = Market::new();
    let asked = ScheduledTransaction {
        passSigner: false,
        value: U256::from(77),
        data: Bytes::from_static(b"captured"),
        expiryBlocks: 7,
        ..soon(&market)
    };
    let key = market.insert(&asked).unwrap();
    let held = market.get(&key);
    assert_eq!((held._0, held._1, held.deposit), (asked.clone(), Status::Scheduled, deposit(&asked)));
    let plain = soon(&market);
    let key = market.insert(&plain).unwrap();
    let expected = ScheduledTransaction { expiryBlocks: 100, ..plain };
    assert_eq!(market.get(&key)._0, expected, "the parameter's expiry is fixed at insert");
    market.chain.replay();
}

#[test]
fn aip125_02_insert_returns_the_key_and_only_for_the_sender_itself() {
    let mut market = Market::new();
    let asked = soon(&market);
    let call = IScheduledTransactions::insertCall { txn: asked.clone() }.abi_encode();
    let tx = paid_call(sender(), 0, ECHO, deposit(&asked), to(SCHEDULED_TRANSACTIONS, &call));
    // Through a contract, the contract is the caller.
    let receipt = market.chain.produce(vec![tx]).receipt(0).clone();
    let error = MarketError::NotSender(IScheduledTransactions::NotSender {
        caller: ECHO,
        senderAddr: sender().address,
    });
    assert_eq!(alloy_sol_types::SolInterface::abi_encode(&error), receipt.logs[0].data.data.to_vec());

    let other = ScheduledTransaction { senderAddr: ECHO, ..soon(&market) };
    let call = IScheduledTransactions::insertCall { txn: other.clone() }.abi_encode();
    let receipt = market.chain.send(sender(), ECHO, deposit(&other), to(SCHEDULED_TRANSACTIONS, &call));
    let said = only::<TransactionScheduledEvent>(&receipt.logs);
    let answered = receipt.logs.iter().find(|log| log.address == ECHO).unwrap();
    let returned = IScheduledTransactions::insertCall::abi_decode_returns(&answered.data.data).unwrap();
    assert_eq!((said.key, said.senderAddr, said.to), (returned, ECHO, COUNTER));
    let refusal = market.insert_with(person(1), &soon(&market), deposit(&asked)).unwrap_err();
    let expected =
        IScheduledTransactions::NotSender { caller: person(1).address, senderAddr: sender().address };
    assert_eq!(refusal, MarketError::NotSender(expected));
}

#[test]
fn aip125_03_the_key_is_time_price_and_hash() {
    let mut market = Market::new();
    let start = market.next() + 60_000;
    let mut keys = Vec::new();
    for (ms, price) in [(start + 1, 9 * GWEI), (start + 100, 8 * GWEI), (start, 7 * GWEI)] {
        let asked = ScheduledTransaction { maxGasUnitPrice: price, ..txn(ms) };
        let key = market.insert(&asked).unwrap();
        assert_eq!(key.time, ms.div_ceil(100));
        assert_eq!(key.gasPriority, u64::MAX - price);
        let id = market.id(&key);
        let named = Named {
            id,
            sender: asked.senderAddr,
            scheduled_ms: ms,
            gas_limit: almanac_primitives::Gas(100_000),
            bid: price,
            passes_signer: true,
            to: COUNTER,
            value: almanac_primitives::Wei::ZERO,
            input: b"",
            expiry_blocks: 100,
        };
        assert_eq!(key.txnId, named.txn_id());
        assert_eq!(market.read(IScheduledTransactions::keyOfCall { id: U256::from(id.0) }), key);
        keys.push((key.time, key.gasPriority, key.txnId));
    }
    let mut sorted = keys.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, [keys[2], keys[0], keys[1]], "by time, then the higher price");
    let unknown = market.chain.call(
        person(9).address,
        SCHEDULED_TRANSACTIONS,
        IScheduledTransactions::keyOfCall { id: U256::from(5) }.abi_encode(),
    );
    assert!(matches!(unknown.outcome, Outcome::Reverted(_)));
}

#[test]
fn aip125_04_the_time_is_after_the_block_and_within_the_horizon() {
    let mut market = Market::new();
    let now = market.next();
    let given = |at: u64| ScheduledTransaction { scheduledTimeMs: at, ..txn(0) };
    for at in [0, now - 1, now] {
        let refusal = market.insert(&given(at)).unwrap_err();
        let block = market.now();
        // Each refusal makes a block, a second later: what was in the future at the first is the present now.
        let expected =
            IScheduledTransactions::TimeNotInFuture { given: U256::from(at), nowMs: U256::from(block) };
        assert_eq!(refusal, MarketError::TimeNotInFuture(expected));
    }
    let at = market.next();
    assert!(market.insert(&given(at)).is_err(), "the block's own time");
    let at = market.next() + 1;
    assert!(market.insert(&given(at)).is_ok(), "a millisecond later");
    let ahead = SCHEDULE_AHEAD_SECONDS_MAX.default * 1_000;
    let at = market.next() + ahead;
    assert!(market.insert(&given(at)).is_ok());
    let max = market.next() + ahead;
    let expected =
        IScheduledTransactions::TimeBeyondHorizon { given: U256::from(max + 1), max: U256::from(max) };
    assert_eq!(market.insert(&given(max + 1)).unwrap_err(), MarketError::TimeBeyondHorizon(expected));
    assert_eq!(market.read(IScheduledTransactions::nowMsCall {}), market.next());
}

#[test]
fn aip125_05_the_whole_deposit_moves_and_the_rest_returns() {
    let mut market = Market::new();
    let asked = ScheduledTransaction { value: U256::from(1_000), ..soon(&market) };
    let needed = deposit(&asked);
    let expected = IScheduledTransactions::DepositTooLow { given: needed - U256::ONE, needed };
    let refusal = market.insert_with(sender(), &asked, needed - U256::ONE).unwrap_err();
    assert_eq!(refusal, MarketError::DepositTooLow(expected));
    assert_eq!(market.chain.balance(LEDGER), U256::ZERO);
    for extra in [0u64, 12_345] {
        let (held, before) = (market.chain.balance(LEDGER), market.chain.balance(sender().address));
        let call = IScheduledTransactions::insertCall { txn: asked.clone() };
        let receipt = market.send(sender(), needed + U256::from(extra), call);
        assert_eq!(receipt.outcome, Outcome::Success);
        assert_eq!(market.chain.balance(LEDGER) - held, needed);
        let gas = U256::from(receipt.gas_used.0) * U256::from(receipt.effective_gas_price.0);
        assert_eq!(before - market.chain.balance(sender().address), needed + gas, "the rest is back");
    }
    let overflowing = ScheduledTransaction { value: U256::MAX, ..soon(&market) };
    let refusal = market.insert_with(sender(), &overflowing, U256::from(1)).unwrap_err();
    assert!(matches!(refusal, MarketError::DepositTooLow(error) if error.needed == U256::MAX));
    market.chain.replay();
}

#[test]
fn aip125_06_cancel_returns_the_deposit_to_the_sender_alone() {
    let mut market = Market::new();
    let asked = ScheduledTransaction { value: U256::from(5), ..soon(&market) };
    let key = market.insert(&asked).unwrap();
    let refusal = market.cancel(person(1), &key).unwrap_err();
    let expected =
        IScheduledTransactions::NotSender { caller: person(1).address, senderAddr: sender().address };
    assert_eq!(refusal, MarketError::NotSender(expected));
    let unknown = IScheduledTransactions::UnknownKey { txnId: no_key().txnId };
    assert_eq!(market.cancel(sender(), &no_key()).unwrap_err(), MarketError::UnknownKey(unknown));
    for wrong in [
        ScheduleMapKey { time: key.time + 1, ..key.clone() },
        ScheduleMapKey { gasPriority: 0, ..key.clone() },
    ] {
        let unknown = IScheduledTransactions::UnknownKey { txnId: key.txnId };
        assert_eq!(market.cancel(sender(), &wrong).unwrap_err(), MarketError::UnknownKey(unknown));
    }
    let before = market.chain.balance(sender().address);
    let receipt = market.send(sender(), U256::ZERO, IScheduledTransactions::cancelCall { key: key.clone() });
    assert_eq!(only::<TransactionCancelledEvent>(&receipt.logs).refunded, deposit(&asked));
    let gas = U256::from(receipt.gas_used.0) * U256::from(receipt.effective_gas_price.0);
    assert_eq!(market.chain.balance(sender().address), before + deposit(&asked) - gas);
    assert_eq!((market.status(&key), market.get(&key).deposit), (Status::Cancelled, U256::ZERO));
    let again = IScheduledTransactions::AlreadyEnded { txnId: key.txnId, status: Status::Cancelled };
    assert_eq!(market.cancel(sender(), &key).unwrap_err(), MarketError::AlreadyEnded(again));

    let key = market.insert(&txn(market.next() + 1_500)).unwrap();
    market.at(market.now() + 2_000);
    assert_eq!(market.status(&key), Status::Succeeded);
    let executed = IScheduledTransactions::AlreadyExecuted { txnId: key.txnId };
    assert_eq!(market.cancel(sender(), &key).unwrap_err(), MarketError::AlreadyExecuted(executed));
    market.chain.replay();
}

/// Within a block, order decides: a cancel before the run's place works, and one in the run itself is too late.
#[test]
fn aip125_06_until_its_run_begins_it_can_be_cancelled() {
    let mut market = Market::new();
    let due = market.next() + 1_500;
    let key = market.insert(&txn(due)).unwrap();
    let call = IScheduledTransactions::cancelCall { key: key.clone() }.abi_encode();
    let nonce = market.chain.nonce(sender().address);
    let tx = paid_call(sender(), nonce, SCHEDULED_TRANSACTIONS, U256::ZERO, call);
    // The test's transactions pay 2 gwei at most and the run bids 5, so it goes first.
    let produced = market.block(due + 500, vec![tx]);
    assert_eq!(ran(&produced), [market.id(&key)]);
    let error = refused(produced.receipt(0)).unwrap_err();
    assert_eq!(
        error,
        MarketError::AlreadyExecuted(IScheduledTransactions::AlreadyExecuted { txnId: key.txnId })
    );

    let due = market.next() + 1_500;
    let key = market.insert(&ScheduledTransaction { maxGasUnitPrice: GWEI, ..txn(due) }).unwrap();
    let call = IScheduledTransactions::cancelCall { key: key.clone() }.abi_encode();
    let nonce = market.chain.nonce(sender().address);
    let tx = paid_call(sender(), nonce, SCHEDULED_TRANSACTIONS, U256::ZERO, call);
    let produced = market.block(due + 500, vec![tx]);
    assert_eq!(produced.receipt(0).outcome, Outcome::Success, "it pays more than the run bids");
    assert_eq!((ran(&produced), market.status(&key)), (vec![], Status::Cancelled));
    market.chain.replay();
}

#[test]
fn aip125_07_equal_transactions_are_two_schedules() {
    let mut market = Market::new();
    let asked = txn(market.next() + 5_000);
    let keys = market.insert_all(sender(), &[asked.clone(), asked.clone()]);
    assert_ne!(keys[0].txnId, keys[1].txnId);
    assert_eq!(market.chain.balance(LEDGER), deposit(&asked) * U256::from(2));
    market.cancel(sender(), &keys[0]).unwrap();
    assert_eq!(market.at(asked.scheduledTimeMs + 100).len(), 1);
}

#[test]
fn aip125_08_gas_price_input_and_expiry_have_bounds() {
    let mut market = Market::new();
    let (least, most) = (21_000 + 3 * 40, MARKET_RUN_GAS_MAX.default);
    let with_gas = |market: &Market, gas| ScheduledTransaction {
        maxGasAmount: gas,
        data: Bytes::from_static(b"abc"),
        ..soon(market)
    };
    for (gas, fits) in [(least - 1, false), (least, true), (most, true), (most + 1, false)] {
        let asked = with_gas(&market, gas);
        match market.insert(&asked) {
            Ok(_) => assert!(fits, "{gas}"),
            Err(error) => {
                let expected = IScheduledTransactions::GasAmountOutOfBounds {
                    given: U256::from(gas),
                    min: U256::from(least),
                    max: U256::from(most),
                };
                assert_eq!((error, fits), (MarketError::GasAmountOutOfBounds(expected), false));
            }
        }
    }
    let base = market.base_fee();
    let asked = ScheduledTransaction { maxGasUnitPrice: u64::try_from(base).unwrap() - 1, ..soon(&market) };
    let expected =
        IScheduledTransactions::GasUnitPriceTooLow { given: U256::from(base - 1), baseFee: U256::from(base) };
    assert_eq!(market.insert(&asked).unwrap_err(), MarketError::GasUnitPriceTooLow(expected));
    let base = u64::try_from(market.base_fee()).unwrap();
    assert!(market.insert(&ScheduledTransaction { maxGasUnitPrice: base, ..soon(&market) }).is_ok());
    for (blocks, fits) in [(1, true), (1_000, true), (1_001, false), (u32::MAX, false)] {
        let asked = ScheduledTransaction { expiryBlocks: blocks, ..soon(&market) };
        assert_eq!(market.insert(&asked).is_ok(), fits, "{blocks}");
    }
    let nowhere = ScheduledTransaction { to: Address::ZERO, ..soon(&market) };
    let expected = MarketError::TargetIsZero(IScheduledTransactions::TargetIsZero {});
    assert_eq!(market.insert(&nowhere).unwrap_err(), expected);
}

#[test]
fn aip125_08_calldata_has_a_bound() {
    let mut market = Market::with_parameters(&[("market_input_bytes_max", 40)]);
    let with =
        |market: &Market, bytes: usize| ScheduledTransaction { data: vec![7; bytes].into(), ..soon(market) };
    let asked = with(&market, 40);
    assert!(market.insert(&asked).is_ok());
    let asked = with(&market, 41);
    let expected = IScheduledTransactions::InputTooLong { given: U256::from(41), max: U256::from(40) };
    assert_eq!(market.insert(&asked).unwrap_err(), MarketError::InputTooLong(expected));
    assert_eq!(MARKET_INPUT_BYTES_MAX.max, MARKET_INPUT_BYTES_MAX.default);
}

#[test]
fn aip125_19_a_key_of_another_door_or_of_nothing_is_unknown() {
    let market = Market::new();
    let nothing = market.get(&no_key());
    assert_eq!((nothing._1, nothing.id, nothing.deposit), (Status::Unknown, U256::ZERO, U256::ZERO));
}

#[test]
fn aip125_20_paused_nothing_is_taken_or_run_and_cancels_work() {
    let mut market = Market::new();
    let due = market.next() + 3_000;
    let keys = market.insert_all(sender(), &[txn(due), txn(due)]);
    market.govern(MARKET_PAUSED, 1);
    assert_eq!(market.service(), Service::Paused);
    let expected = IScheduledTransactions::ServiceNotActive { service: Service::Paused };
    assert_eq!(market.insert(&soon(&market)).unwrap_err(), MarketError::ServiceNotActive(expected));
    assert_eq!(market.at(due + 1_000), []);
    market.cancel(sender(), &keys[0]).unwrap();
    market.cancel_all(person(3));
    market.govern(MARKET_PAUSED, 0);
    let late = market.now() + 1_000;
    assert_eq!(market.at(late), [market.id(&keys[1])], "it is late by the pause alone");
    market.chain.replay();
}

#[test]
fn aip125_21_a_shutdown_refunds_in_batches_and_says_so() {
    let mut market = Market::with_parameters(&[("market_shutdown_batch", 3)]);
    let due = market.next() + 3_000;
    let far = market.next() + 86_400_000;
    // One waits for a price when the shutdown comes.
    let cheap = ScheduledTransaction { maxGasUnitPrice: GWEI, ..txn(due) };
    let keys = market.insert_all(sender(), &[cheap, txn(far), txn(far), txn(far), txn(far)]);
    market.congest(u128::from(3 * GWEI));
    market.at(due + 1_000);
    assert_eq!(market.status(&keys[0]), Status::Waiting);
    let before = market.chain.balance(LEDGER);
    assert!(before > U256::ZERO);
    market.govern(MARKET_SHUTDOWN, 1);
    assert_eq!(market.service(), Service::ShutdownInProgress, "from the next block");

    assert_eq!(market.step(), []);
    let codes = |market: &Market| -> Vec<_> {
        market.said::<TransactionFailedEvent>().into_iter().map(|said| said.cancelledTxnCode).collect()
    };
    assert_eq!(market.said::<ShutdownEvent>(), [ShutdownEvent { complete: false }]);
    assert_eq!(codes(&market), vec![CancelledTxnCode::Shutdown; 3]);
    assert_eq!(market.status(&keys[0]), Status::Shutdown, "what waits goes first");
    let refusal = market.insert(&soon(&market)).unwrap_err();
    let expected = IScheduledTransactions::ServiceNotActive { service: Service::ShutdownInProgress };
    assert_eq!(refusal, MarketError::ServiceNotActive(expected));
    // The failed insert made a block, which took the last batch.
    assert_eq!(codes(&market).len(), 2);
    assert!(market.said::<ShutdownEvent>().is_empty());
    market.step();
    assert_eq!(market.said::<ShutdownEvent>(), [ShutdownEvent { complete: true }]);
    assert_eq!(market.service(), Service::ShutdownComplete);
    market.step();
    assert!(market.said::<ShutdownEvent>().is_empty(), "once");
    assert_eq!(market.chain.balance(LEDGER), U256::ZERO, "every deposit is back");
    market.govern(MARKET_SHUTDOWN, 0);
    assert_eq!(market.service(), Service::Active);
    market.step();
    assert!(market.insert(&soon(&market)).is_ok(), "the door is open again");
    market.chain.replay();
}

#[test]
fn aip125_21_anyone_may_claim_for_the_sender_before_the_batch_comes() {
    let mut market = Market::with_parameters(&[("market_shutdown_batch", 1)]);
    let far = market.next() + 86_400_000;
    let keys = market.insert_all(sender(), &[txn(far), txn(far), txn(far), txn(far)]);
    let not_yet = IScheduledTransactions::NotClaimable { txnId: keys[3].txnId, status: Status::Scheduled };
    assert_eq!(market.claim(person(2), &keys[3]).unwrap_err(), MarketError::NotClaimable(not_yet));
    market.govern(MARKET_SHUTDOWN, 1);
    let before = market.chain.balance(sender().address);
    let receipt = market.claim(person(2), &keys[3]).unwrap();
    let said = only::<TransactionFailedEvent>(&receipt.logs);
    assert_eq!((said.cancelledTxnCode, said.senderAddr), (CancelledTxnCode::Shutdown, sender().address));
    let refunded = market.chain.balance(sender().address) - before;
    assert_eq!(refunded, deposit(&txn(far)) * U256::from(2), "with the batch of that block");
    let over = IScheduledTransactions::NotClaimable { txnId: keys[3].txnId, status: Status::Shutdown };
    assert_eq!(market.claim(person(2), &keys[3]).unwrap_err(), MarketError::NotClaimable(over));
    market.chain.replay();
}

#[test]
fn aip125_22_cancel_all_is_one_slot_and_each_deposit_returns_when_met_or_claimed() {
    let mut market = Market::new();
    let due = market.next() + 3_000;
    let keys = market.insert_all(sender(), &[txn(due), txn(due), txn(due + 3_600_000)]);
    let other = ScheduledTransaction { senderAddr: person(1).address, ..txn(due) };
    let others = market.insert_all(person(1), &[other]);
    let receipt = market.cancel_all(sender());
    let said = only::<AllCancelledEvent>(&receipt.logs);
    assert_eq!((said.senderAddr, said.epoch), (sender().address, 1));
    assert!(receipt.gas_used.0 < 60_000, "one slot, however many there are: {:?}", receipt.gas_used);
    for key in &keys {
        let held = market.get(key);
        assert_eq!((held._1, held.deposit), (Status::Cancelled, deposit(&txn(due))), "until it is met");
    }
    let ended = IScheduledTransactions::AlreadyEnded { txnId: keys[0].txnId, status: Status::Cancelled };
    assert_eq!(market.cancel(sender(), &keys[0]).unwrap_err(), MarketError::AlreadyEnded(ended));
    let receipt = market.claim(person(2), &keys[2]).unwrap();
    assert_eq!(only::<TransactionCancelledEvent>(&receipt.logs).refunded, deposit(&txn(due)));

    let at = market.now().max(due) + 1_000;
    assert_eq!(market.at(at), [market.id(&others[0])], "only hers are cancelled");
    let met: Vec<_> = market.said::<TransactionCancelledEvent>().iter().map(|said| said.key.txnId).collect();
    assert_eq!(met, [keys[0].txnId, keys[1].txnId]);
    let later = txn(market.next() + 5_000);
    let key = market.insert(&later).unwrap();
    assert_eq!(market.status(&key), Status::Scheduled, "what comes after is of the new epoch");
    assert_eq!(market.at(later.scheduledTimeMs + 1_000), [market.id(&key)]);
    market.chain.replay();
}

/// A cancelAll earlier in the block of the run stops the run; its deposit returns in the next block.
#[test]
fn aip125_22_cancel_all_before_the_place_of_a_run_stops_it() {
    let mut market = Market::new();
    let due = market.next() + 1_500;
    let key = market.insert(&ScheduledTransaction { maxGasUnitPrice: GWEI, ..txn(due) }).unwrap();
    let call = IScheduledTransactions::cancelAllCall {}.abi_encode();
    let nonce = market.chain.nonce(sender().address);
    let produced =
        market.block(due + 500, vec![paid_call(sender(), nonce, SCHEDULED_TRANSACTIONS, U256::ZERO, call)]);
    assert_eq!(ran(&produced), []);
    assert_eq!(market.get(&key).deposit, deposit(&txn(due)) / U256::from(5));
    market.step();
    assert_eq!(market.said::<TransactionCancelledEvent>().len(), 1);
    assert_eq!(market.chain.balance(LEDGER), U256::ZERO);
    market.chain.replay();
}

/// A rotation cancels what the old key has scheduled, before and after it is due; the refunds are the account's.
#[test]
fn aip125_22_a_key_rotation_cancels_what_the_old_key_scheduled() {
    let mut market = Market::new();
    let due = market.next() + 3_000;
    let keys = market.insert_all(sender(), &[txn(due), txn(due + 3_600_000)]);
    let other = ScheduledTransaction { senderAddr: person(1).address, ..txn(due) };
    let others = market.insert_all(person(1), &[other]);
    let new: Key = person(20).into();
    let rotation =
        |market: &Market| rotating(sender(), market.chain.nonce(sender().address), &new.encoded(), 1, &[new]);
    // A rotation that fails cancels nothing.
    let wrong =
        rotating(sender(), market.chain.nonce(sender().address), &new.encoded(), 1, &[person(21).into()]);
    market.block(market.next(), vec![wrong]);
    assert_eq!(market.status(&keys[0]), Status::Scheduled);
    let transaction = rotation(&market);
    let produced = market.block(market.next(), vec![transaction]);
    assert!(produced.receipt(0).outcome.is_success(), "{:?}", produced.receipt(0));
    let said = only::<AllCancelledEvent>(&produced.receipt(0).logs);
    assert_eq!((said.senderAddr, said.epoch), (sender().address, 1));
    let log = produced.receipt(0).logs.iter().find(|log| log.address == SCHEDULED_TRANSACTIONS);
    assert!(log.is_some(), "it is the scheduler's log");
    for key in &keys {
        let held = market.get(key);
        assert_eq!((held._1, held.deposit), (Status::Cancelled, deposit(&txn(due))));
    }
    let receipt = market.claim(person(2), &keys[1]).unwrap();
    assert_eq!(only::<TransactionCancelledEvent>(&receipt.logs).refunded, deposit(&txn(due)));
    let before = market.chain.balance(sender().address);
    assert_eq!(
        market.at(market.now().max(due) + 1_000),
        [market.id(&others[0])],
        "only its own are cancelled"
    );
    assert_eq!(market.chain.balance(sender().address) - before, deposit(&txn(due)));
    market.chain.replay();
}

/// The bump that a key rotation makes has the same effect, and concerns one door and one owner alone.
#[test]
fn aip125_22_an_epoch_is_of_one_door_and_one_owner() {
    let mut ledger = MemoryLedger::default();
    let (alice, bob) = (Address::repeat_byte(1), Address::repeat_byte(2));
    assert_eq!(life::raise_epoch(&mut ledger, Door::Market, alice), Ok(1));
    assert_eq!(life::raise_epoch(&mut ledger, Door::Market, alice), Ok(2));
    for (door, owner, epoch) in
        [(Door::Market, alice, 2), (Door::Market, bob, 0), (Door::Cron, alice, 0), (Door::Callback, alice, 0)]
    {
        assert_eq!(life::epoch(&mut ledger, door, owner), Ok(epoch));
    }
    assert_eq!(ledger.slots.len(), 1);
}

#[test]
fn aip125_24_switched_off_inserts_revert_and_nothing_is_selected() {
    let mut market = Market::new();
    let due = market.next() + 3_000;
    let key = market.insert(&txn(due)).unwrap();
    market.govern(MARKET_ENABLED, 0);
    assert_eq!(market.service(), Service::Disabled);
    let expected = IScheduledTransactions::ServiceNotActive { service: Service::Disabled };
    assert_eq!(market.insert(&soon(&market)).unwrap_err(), MarketError::ServiceNotActive(expected));
    // The other doors are not concerned.
    let job = cron::order(&market.chain);
    market.chain.schedule(sender(), &job).unwrap();
    assert_eq!(market.at(due + 1_000), []);
    assert_eq!(market.status(&key), Status::Scheduled);
    // A shutdown refunds although the door is off.
    market.govern(MARKET_SHUTDOWN, 1);
    market.step();
    assert_eq!(market.status(&key), Status::Shutdown);
    market.chain.replay();
}

/// The terms of a record decode to what they were, and their encoding is fixed.
#[test]
fn aip125_01_terms_survive_their_encoding() {
    let mut market = Market::new();
    let asked = ScheduledTransaction { expiryBlocks: 9, ..soon(&market) };
    let key = market.insert(&asked).unwrap();
    let record = market.record(&key);
    let expected = BidTerms {
        scheduled_ms: asked.scheduledTimeMs,
        bid: 5 * GWEI,
        expiry_blocks: 9,
        epoch: 0,
        txn_id: key.txnId,
    };
    assert_eq!(record.body.terms.market(), Some(&expected));
    assert_eq!(record.head.due, Some(TimestampMs(key.time * 100)));
    assert_ne!(key.txnId, B256::ZERO);
}
