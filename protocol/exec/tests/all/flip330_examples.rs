//! The examples of callbacks in Solidity, through the door: what their users see, in good times and bad ones.

use crate::support::{artifacts::deploy, callbacks::*, contracts::*, *};
use alloy_primitives::{Address, U256};
use alloy_sol_types::{SolCall, SolError, SolEvent, SolValue};
use almanac_exec::{Candidates, execute};
use almanac_primitives::{
    Gas, Outcome, ScheduleId, StateCommitment, StateKey, TimestampMs,
    addresses::CALLBACKS,
    params::{CALLBACK_SEARCH_READS_MAX, EFFORT_GAS},
};

alloy_sol_types::sol! {
    #![sol(all_derives = true)]
    interface Auction {
        error AuctionClosed();
        error NotScheduler(address caller);
        function isClosed() external view returns (bool);
        function highestBidder() external view returns (address);
        function callback() external view returns (uint64);
        function owed(address account) external view returns (uint256);
        function bid() external payable;
        function withdraw() external;
        function executeCallback(uint64 id, bytes calldata data) external;
    }
    interface Recurring {
        event RunFailed(uint64 indexed id, uint64 due);
        event RecurrenceStopped(uint64 due, bytes reason);
        error AlreadyRunning(uint64 id);
        function restart() external;
        function isRunning() external view returns (bool);
        error BalanceTooLow(uint256 balance, uint256 fee);
        function nextId() external view returns (uint64);
        function nextAt() external view returns (uint64);
        function ticks() external view returns (uint64);
        function gold() external view returns (uint256);
        function weeksLeft() external view returns (uint256);
        function weeksDue() external view returns (uint256);
        function runOnce(uint64 due) external;
    }
}

const WEEK: u64 = 7 * 24 * 60 * 60;

fn coins(milli: u64) -> U256 {
    U256::from(milli) * U256::from(10u64.pow(15))
}

/// Events of one kind that a contract emitted in the last block.
fn told<E: SolEvent>(callbacks: &Callbacks, from: Address) -> Vec<E> {
    let receipts = &callbacks.chain.outputs.last().unwrap().receipts;
    let logs = receipts.iter().flat_map(|receipt| &receipt.logs).filter(|log| log.address == from);
    logs.filter_map(|log| E::decode_raw_log(log.topics().iter().copied(), &log.data.data).ok()).collect()
}

#[test]
fn flip330_example_auction_closes_itself() {
    let mut callbacks = Callbacks::new();
    let (seller, closes) = (person(3), callbacks.now() + 100);
    let (paid, fee) = (coins(100), base_part(100, 1_000_000_000) * U256::from(10));
    let auction = deploy(&mut callbacks.chain, seller, "SelfClosingAuction", paid, &closes.abi_encode());
    let id: u64 = callbacks.read(auction, Auction::callbackCall {});
    assert_eq!(callbacks.status(id), Status::Scheduled, "booked by its constructor");
    for (n, amount) in [(1, 5), (2, 7)] {
        assert_eq!(
            callbacks.send(person(n), auction, coins(amount), Auction::bidCall {}).outcome,
            Outcome::Success
        );
    }
    // Nobody but the scheduler closes it.
    let call = Auction::executeCallbackCall { id, data: Default::default() };
    let refused = callbacks.send(person(2), auction, U256::ZERO, call).outcome;
    let error = Auction::NotScheduler { caller: person(2).address };
    assert_eq!(refused, Outcome::Reverted(error.abi_encode().into()));
    assert!(callbacks.at_ms(closes * 1_000 - 1).is_empty());
    assert_eq!(callbacks.at(closes), [id]);
    assert!(callbacks.read(auction, Auction::isClosedCall {}));
    assert_eq!(callbacks.read(auction, Auction::highestBidderCall {}), person(2).address);
    // The seller gets the bid and what the callback did not cost; the first bidder the money back.
    let owed = |callbacks: &Callbacks, account| callbacks.read(auction, Auction::owedCall { account });
    assert_eq!(owed(&callbacks, seller.address), coins(7) + paid - fee);
    assert_eq!(owed(&callbacks, person(1).address), coins(5));
    let late = callbacks.send(person(4), auction, coins(9), Auction::bidCall {}).outcome;
    assert_eq!(late, Outcome::Reverted(Auction::AuctionClosed {}.abi_encode().into()));
    for who in [seller, person(1)] {
        assert_eq!(
            callbacks.send(who, auction, U256::ZERO, Auction::withdrawCall {}).outcome,
            Outcome::Success
        );
    }
    assert_eq!(callbacks.chain.balance(auction), U256::ZERO);
    callbacks.chain.replay();
}

/// Vesting of so many weeks for a beneficiary, one coin a week, with plenty for fees.
fn vesting(callbacks: &mut Callbacks, to: Address, weeks: u64) -> (Address, u64) {
    let arguments = (to, coins(1_000), U256::from(weeks)).abi_encode_params();
    let value = coins(1_000) * U256::from(weeks) + coins(1_000);
    let vesting = deploy(&mut callbacks.chain, person(3), "WeeklyVesting", value, &arguments);
    (vesting, callbacks.now())
}

#[test]
fn flip330_example_vesting_pays_each_week_and_ends() {
    let (mut callbacks, somebody) = (Callbacks::new(), Address::repeat_byte(0x77));
    let (vesting, start) = vesting(&mut callbacks, somebody, 3);
    for week in 1..=3 {
        let id: u64 = callbacks.read(vesting, Recurring::nextIdCall {});
        assert_eq!(callbacks.read(vesting, Recurring::nextAtCall {}), start + week * WEEK);
        assert_eq!(callbacks.at(start + week * WEEK), [id]);
        assert_eq!(callbacks.status(id), Status::Executed);
        // Others may fill seconds so that finding the next one reads as much as a search may, twice.
        let search = CALLBACK_SEARCH_READS_MAX.max * (2_100 + 100);
        assert!(callbacks.run(id).gas_used.0 + search < 300 * EFFORT_GAS, "the series affords any search");
        assert_eq!(callbacks.chain.balance(somebody), coins(1_000 * week));
    }
    assert_eq!(callbacks.read(vesting, Recurring::nextIdCall {}), 0, "all is paid");
    assert!(callbacks.at(start + 10 * WEEK).is_empty());
    callbacks.chain.replay();
}

/// A beneficiary that refuses or burns all gas ends nothing: the series goes on, and the weeks stay due.
#[test]
fn flip330_example_vesting_survives_a_run_that_fails_or_runs_out_of_gas() {
    for hostile in [REVERTER, BURNER] {
        let mut callbacks = Callbacks::new();
        let (vesting, start) = vesting(&mut callbacks, hostile, 4);
        for week in 1..=2 {
            let id: u64 = callbacks.read(vesting, Recurring::nextIdCall {});
            assert_eq!(callbacks.at(start + week * WEEK), [id]);
            assert_eq!(callbacks.status(id), Status::Executed, "the callback itself did its work");
            let next: u64 = callbacks.read(vesting, Recurring::nextIdCall {});
            assert_eq!((callbacks.status(next), next != id), (Status::Scheduled, true), "week {week}");
        }
        let due: U256 = callbacks.read(vesting, Recurring::weeksDueCall {});
        let left: U256 = callbacks.read(vesting, Recurring::weeksLeftCall {});
        let failed = told::<Recurring::RunFailed>(&callbacks, vesting).len() as u64;
        assert_eq!(due + left, U256::from(4), "no week is lost ({failed} runs failed in the last block)");
        assert_eq!(callbacks.chain.balance(hostile), U256::ZERO);
        callbacks.chain.replay();
    }
}

#[test]
fn flip330_example_vesting_after_a_halt_goes_on_at_the_first_time_to_come() {
    let (mut callbacks, somebody) = (Callbacks::new(), Address::repeat_byte(0x77));
    let (vesting, start) = vesting(&mut callbacks, somebody, 9);
    let id: u64 = callbacks.read(vesting, Recurring::nextIdCall {});
    assert_eq!(callbacks.at(start + 5 * WEEK), [id], "once for all that was missed");
    let next_at = |callbacks: &Callbacks| callbacks.read(vesting, Recurring::nextAtCall {});
    assert_eq!(next_at(&callbacks), start + 6 * WEEK, "a time of the series, not before the block");
    callbacks.at(start + 6 * WEEK + 30);
    assert_eq!(next_at(&callbacks), start + 7 * WEEK, "it does not drift");
    // One second before a time of the series, that one is the next.
    callbacks.at(start + 9 * WEEK - 1);
    assert_eq!(next_at(&callbacks), start + 9 * WEEK);
}

/// The smallest fee of the example: 250 effort at Low.
fn tick_fee() -> U256 {
    base_part(250, 1_000_000_000) * U256::from(2)
}

#[test]
fn flip330_example_game_ticks_and_catches_up() {
    let mut callbacks = Callbacks::new();
    let game = deploy(&mut callbacks.chain, person(3), "GameTick", coins(100), &60u64.abi_encode());
    let start = callbacks.now();
    let world = |callbacks: &Callbacks| {
        let (ticks, gold): (u64, U256) =
            (callbacks.read(game, Recurring::ticksCall {}), callbacks.read(game, Recurring::goldCall {}));
        (ticks, gold.to::<u64>())
    };
    assert_eq!(callbacks.at(start + 1).len(), 1);
    assert_eq!(world(&callbacks), (1, 1));
    assert!(callbacks.at(start + 60).is_empty());
    assert_eq!(callbacks.at(start + 61).len(), 1);
    assert_eq!(world(&callbacks), (2, 61));
    // A halt: one tick for all of it, and the next at a time of the series.
    assert_eq!(callbacks.at(start + 1_000).len(), 1);
    assert_eq!(world(&callbacks), (3, 1_000));
    assert_eq!(callbacks.read(game, Recurring::nextAtCall {}), start + 1 + 17 * 60);
    // Low waits behind a block that is full of booked ones, and is not lost.
    callbacks.schedule(&callback(Priority::High, start + 1 + 17 * 60, 5_000)).unwrap();
    assert_eq!(callbacks.at(start + 1 + 17 * 60).len(), 1);
    assert_eq!(world(&callbacks).0, 3);
    assert_eq!(callbacks.at(start + 2 + 17 * 60).len(), 1);
    assert_eq!(world(&callbacks), (4, 1_022));
    callbacks.chain.replay();
}

#[test]
fn flip330_example_a_series_without_money_says_so_and_stops() {
    let mut callbacks = Callbacks::new();
    let money = tick_fee() * U256::from(3) - U256::ONE;
    let game = deploy(&mut callbacks.chain, person(3), "GameTick", money, &60u64.abi_encode());
    let start = callbacks.now();
    callbacks.at(start + 1);
    assert!(told::<Recurring::RecurrenceStopped>(&callbacks, game).is_empty());
    assert_eq!(callbacks.at(start + 61).len(), 1);
    let reason = Recurring::BalanceTooLow { balance: tick_fee() - U256::ONE, fee: tick_fee() }.abi_encode();
    let stopped = Recurring::RecurrenceStopped { due: start + 61, reason: reason.into() };
    assert_eq!(told::<Recurring::RecurrenceStopped>(&callbacks, game), [stopped]);
    assert_eq!(callbacks.read(game, Recurring::ticksCall {}), 2, "the work of this run was done");
    assert_eq!(callbacks.read(game, Recurring::nextIdCall {}), 0);
    assert!(callbacks.at(start + 500).is_empty());
}

#[test]
fn flip330_example_a_series_that_stopped_can_be_started_again() {
    let mut callbacks = Callbacks::new();
    let game = deploy(&mut callbacks.chain, person(3), "GameTick", tick_fee(), &60u64.abi_encode());
    let start = callbacks.now();
    let id = callbacks.read(game, Recurring::nextIdCall {});
    // The first tick follows in the same block.
    let again = callbacks.send(person(4), game, U256::ZERO, Recurring::restartCall {});
    let running = Recurring::AlreadyRunning { id }.abi_encode();
    assert_eq!(again.outcome, Outcome::Reverted(running.into()), "it runs already");
    assert_eq!((callbacks.now(), callbacks.read(game, Recurring::ticksCall {})), (start + 1, 1));
    assert!(!callbacks.read(game, Recurring::isRunningCall {}), "no money for a second tick");
    callbacks.chain.send(person(4), game, tick_fee(), Vec::new());
    let again = callbacks.send(person(4), game, U256::ZERO, Recurring::restartCall {});
    assert_eq!(again.outcome, Outcome::Success);
    assert!(callbacks.read(game, Recurring::isRunningCall {}));
    let now = callbacks.now();
    assert_eq!(callbacks.at(now + 1).len(), 1);
    assert_eq!(callbacks.read(game, Recurring::ticksCall {}), 2);
}

/// Its own work is not for strangers.
#[test]
fn flip330_example_nobody_else_makes_it_tick() {
    let mut callbacks = Callbacks::new();
    let game = deploy(&mut callbacks.chain, person(3), "GameTick", coins(100), &60u64.abi_encode());
    let id: u64 = callbacks.read(game, Recurring::nextIdCall {});
    let forged = Auction::executeCallbackCall { id, data: Default::default() };
    assert!(!callbacks.send(person(4), game, U256::ZERO, forged).outcome.is_success());
    assert!(
        !callbacks.send(person(4), game, U256::ZERO, Recurring::runOnceCall { due: 1 }).outcome.is_success()
    );
    let order = callback(Priority::High, callbacks.now() + 50, 250).call(game);
    assert!(!callbacks.chain.send(person(4), CALLBACKS, PLENTY, order.abi_encode()).outcome.is_success());
}

/// A run that a fault of the chain put aside ends the series. Starting it again takes the fee back.
#[test]
fn flip330_example_a_quarantined_run_is_cancelled_and_its_fee_returns() {
    let mut callbacks = Callbacks::new();
    let money = tick_fee() * U256::from(2);
    let game = deploy(&mut callbacks.chain, person(3), "GameTick", money, &60u64.abi_encode());
    let start = callbacks.now();
    let id: u64 = callbacks.read(game, Recurring::nextIdCall {});
    // Its record cannot be read when it is due, and can be afterwards.
    let (body, chain) = (StateKey::Body(ScheduleId(id)), &mut callbacks.chain);
    let stored = chain.state.0.remove(&body).unwrap();
    let input = chain.input_at(TimestampMs((start + 1) * 1_000));
    let output = execute(&chain.state, &*chain.agenda, &input, &mut Candidates::new(vec![])).unwrap();
    chain.state.apply(&output.diff);
    chain.state.0.insert(body, stored);
    chain.head = output.block(StateCommitment::default()).header;
    assert_eq!(callbacks.status(id), Status::Quarantined);
    assert!(!callbacks.read(game, Recurring::isRunningCall {}));
    assert_eq!(callbacks.chain.balance(game), tick_fee());
    let again = callbacks.send(person(4), game, U256::ZERO, Recurring::restartCall {});
    assert_eq!(again.outcome, Outcome::Success);
    assert_eq!(callbacks.status(id), Status::Canceled);
    assert_eq!(callbacks.chain.balance(game), tick_fee(), "the fee came back, and the next one is paid");
    let now = callbacks.now();
    assert_eq!(callbacks.at(now + 1).len(), 1);
    assert_eq!(callbacks.read(game, Recurring::ticksCall {}), 1);
}

/// The second tick of a game whose ticks have this effort: whether another one is booked, and what its run had and used.
fn tick_with(effort: u64) -> (bool, u64, Gas) {
    let mut callbacks = Callbacks::new();
    let game = deploy(&mut callbacks.chain, person(3), "GameTick", coins(100), &60u64.abi_encode());
    let start = callbacks.now();
    // nextId, nextAt, intervalSec and executionEffort share the first slot.
    let others = callbacks.chain.state.slot(game, 0) << 64 >> 64;
    callbacks.chain.state.set_slot(game, 0, others | U256::from(effort) << 192);
    callbacks.at(start + 1);
    let id = callbacks.read(game, Recurring::nextIdCall {});
    assert_eq!(callbacks.at(start + 61), [id]);
    let is_booked = callbacks.read(game, Recurring::isRunningCall {});
    let failed = told::<Recurring::RunFailed>(&callbacks, game).len() as u64;
    assert!(!is_booked || failed + callbacks.read(game, Recurring::ticksCall {}) == 2, "{effort} effort");
    (is_booked, failed, callbacks.run(id).gas_used)
}

/// The bug: a run that had less gas left than it keeps for its end reverted, and took the booking along.
#[test]
fn flip330_example_a_run_with_little_gas_left_keeps_the_booking() {
    let mut below = 11;
    let mut enough = 250;
    while enough - below > 1 {
        let middle = (below + enough) / 2;
        *(if tick_with(middle).0 { &mut enough } else { &mut below }) = middle;
    }
    let (is_booked, failed, gas_used) = tick_with(enough);
    assert_eq!((is_booked, failed), (true, 1), "{enough} effort book the next tick, without a rest for work");
    let left = enough * EFFORT_GAS - gas_used.0;
    assert!(left < 10_000, "{left} gas left: less effort would have been enough");
    assert_eq!(tick_with(250).1, 0);
}
