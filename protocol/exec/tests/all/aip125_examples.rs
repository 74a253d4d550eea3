//! The examples of scheduled transactions in Solidity, through the door: what their users see, in good times and bad
//! ones.

use crate::support::{artifacts::deploy, contracts::*, market::*, *};
use alloy_primitives::{Address, U256};
use alloy_sol_types::{SolCall, SolError, SolEvent, SolValue};
use almanac_primitives::{Outcome, Receipt};

alloy_sol_types::sol! {
    #![sol(all_derives = true)]
    interface Vault {
        event Paid(uint256 indexed payment, address indexed to, uint256 amount);
        error NotOwner(address caller);
        error NotAllowed(address caller);
        error NotSelf(address caller);
        function order(address to, uint256 amount, uint64 price) external returns (uint256 payment);
        function stop(uint256 payment) external;
        function release(uint256 payment, address to, uint256 amount) external payable;
    }
    interface Bank {
        event Sliced(uint256 from, uint256 to);
        event RoundStopped(uint256 reached, bytes reason);
        event RoundDone(uint256 accounts);
        error BalanceTooLow(uint256 balance, uint256 deposit);
        error RoundUnderWay(uint256 reached, uint256 end);
        error NothingLeft();
        function open(address account, uint256 balance) external;
        function start(uint64 sliceGas, uint64 price) external;
        function resume(uint64 sliceGas, uint64 price) external;
        function reached() external view returns (uint256);
        function balanceOf(address account) external view returns (uint256);
    }
    interface Switch {
        event Released(address indexed heir, uint256 amount);
        error TooEarly(uint64 nowMs, uint64 deadlineMs);
        error AlreadyReleased();
        function alive(uint64 price) external;
        function release() external;
        function deadlineMs() external view returns (uint64);
        function isReleased() external view returns (bool);
    }
}

const PRICE: u64 = 5 * GWEI;

fn coins(milli: u64) -> U256 {
    U256::from(milli) * U256::from(10u64.pow(15))
}

fn owner() -> Person {
    person(3)
}

#[expect(clippy::needless_pass_by_value, reason = "a call is written where it is sent")]
fn send(market: &mut Market, from: Person, to: Address, call: impl SolCall) -> Receipt {
    market.chain.send(from, to, U256::ZERO, call.abi_encode())
}

#[expect(clippy::needless_pass_by_value, reason = "a call is written where it is sent")]
fn read<C: SolCall>(market: &Market, at: Address, call: C) -> C::Return {
    let result = market.chain.call(person(9).address, at, call.abi_encode());
    assert_eq!(result.outcome, Outcome::Success);
    C::abi_decode_returns(&result.output).unwrap()
}

#[expect(clippy::needless_pass_by_value, reason = "an error is written where it is expected")]
fn reverted(error: impl SolError) -> Outcome {
    Outcome::Reverted(error.abi_encode().into())
}

/// Events of one kind that a contract emitted in the last block.
fn told<E: SolEvent>(market: &Market, from: Address) -> Vec<E> {
    let receipts = &market.chain.outputs.last().unwrap().receipts;
    let logs = receipts.iter().flat_map(|receipt| &receipt.logs).filter(|log| log.address == from);
    logs.filter_map(|log| E::decode_raw_log(log.topics().iter().copied(), &log.data.data).ok()).collect()
}

/// What the runs of the last block burned.
fn burned(market: &Market) -> U256 {
    let said = market.said::<TransactionExecutedEvent>();
    said.iter().map(|said| said.gasUsed * said.gasUnitPriceCharged).sum()
}

#[test]
fn aip125_18_example_payments_leave_later_and_a_guardian_stops_them() {
    let (mut market, guardian, payee) = (Market::new(), person(4), Address::repeat_byte(0x77));
    let arguments = (guardian.address, 10_000u64).abi_encode_params();
    let vault = deploy(&mut market.chain, owner(), "DelayedPayment", coins(2_000), &arguments);
    let order = |to, amount| Vault::orderCall { to, amount, price: PRICE };
    let refused = send(&mut market, person(5), vault, order(payee, coins(1))).outcome;
    assert_eq!(refused, reverted(Vault::NotOwner { caller: person(5).address }));
    let stolen = Vault::releaseCall { payment: U256::ZERO, to: person(5).address, amount: coins(1) };
    let refused = send(&mut market, person(5), vault, stolen).outcome;
    assert_eq!(refused, reverted(Vault::NotSelf { caller: person(5).address }));
    for (to, amount) in [(payee, coins(500)), (payee, coins(300)), (REVERTER, coins(100))] {
        assert_eq!(send(&mut market, owner(), vault, order(to, amount)).outcome, Outcome::Success);
    }
    let stop = Vault::stopCall { payment: U256::ONE };
    let refused = send(&mut market, person(5), vault, stop.clone()).outcome;
    assert_eq!(refused, reverted(Vault::NotAllowed { caller: person(5).address }));
    assert_eq!(send(&mut market, guardian, vault, stop).outcome, Outcome::Success);

    let ran = market.at(market.now() + 20_000);
    assert_eq!(ran.len(), 2, "the payee's, and one that cannot be paid");
    let paid = told::<Vault::Paid>(&market, vault);
    assert_eq!(paid.iter().map(|paid| (paid.to, paid.amount)).collect::<Vec<_>>(), [(payee, coins(500))]);
    assert_eq!(market.chain.balance(payee), coins(500));
    let left = coins(1_500) - burned(&market);
    assert_eq!(market.chain.balance(vault), left, "what was stopped and what failed stays in the vault");
    market.chain.replay();
}

/// A bank with so many accounts of 1,000, and money for deposits.
fn bank(market: &mut Market, accounts: u8, milli: u64) -> Address {
    let bank = deploy(&mut market.chain, owner(), "SlicedWork", coins(milli), &[]);
    for n in 1..=accounts {
        let open = Bank::openCall { account: Address::repeat_byte(n), balance: U256::from(1_000) };
        assert_eq!(send(market, owner(), bank, open).outcome, Outcome::Success);
    }
    bank
}

/// Gas of a slice: room for some accounts, and for scheduling the next one.
const SLICE_GAS: u64 = 450_000;

#[test]
fn aip125_18_example_long_work_goes_on_by_itself_until_it_is_done() {
    let mut market = Market::new();
    let bank = bank(&mut market, 30, 1_000);
    let start = Bank::startCall { sliceGas: SLICE_GAS, price: PRICE };
    assert_eq!(send(&mut market, owner(), bank, start.clone()).outcome, Outcome::Success);
    let again = send(&mut market, owner(), bank, start).outcome;
    assert!(matches!(again, Outcome::Reverted(_)), "one round at a time");
    // The block of the second start has run the first slice.
    let (mut from, mut slices) = (read(&market, bank, Bank::reachedCall {}), 1);
    assert!(from > U256::ZERO);
    while read(&market, bank, Bank::reachedCall {}) < U256::from(30) {
        assert_eq!(market.at(market.now() + 200).len(), 1, "each run schedules the next");
        let sliced = told::<Bank::Sliced>(&market, bank);
        assert_eq!((sliced.len(), sliced[0].from), (1, from), "goes on where the last one ended");
        assert!(sliced[0].to > from, "each does something");
        (from, slices) = (sliced[0].to, slices + 1);
    }
    assert!(slices > 1, "{slices} slices");
    assert_eq!(told::<Bank::RoundDone>(&market, bank).len(), 1);
    for n in 1..=30 {
        let balance = read(&market, bank, Bank::balanceOfCall { account: Address::repeat_byte(n) });
        assert_eq!(balance, U256::from(1_010), "each account once");
    }
    assert_eq!(market.at(market.now() + 1_000), [], "and it is over");
    market.chain.replay();
}

/// The deposit of a run returns at the end of its block, so two must be there: with one, the round stops and says so.
#[test]
fn aip125_18_example_a_round_without_money_stops_and_is_resumed() {
    let mut market = Market::new();
    let deposit = U256::from(SLICE_GAS) * U256::from(PRICE);
    let bank = bank(&mut market, 30, 3);
    assert!(market.chain.balance(bank) > deposit && market.chain.balance(bank) < deposit * U256::from(2));
    let start = Bank::startCall { sliceGas: SLICE_GAS, price: PRICE };
    assert_eq!(send(&mut market, owner(), bank, start).outcome, Outcome::Success);
    market.at(market.now() + 200);
    let stopped = told::<Bank::RoundStopped>(&market, bank);
    assert_eq!(stopped.len(), 1);
    let reason = Bank::BalanceTooLow::abi_decode(&stopped[0].reason).unwrap();
    assert_eq!(reason.deposit, deposit);
    let reached = read(&market, bank, Bank::reachedCall {});
    assert!(reached == stopped[0].reached && reached > U256::ZERO, "what the slice did stays");
    assert_eq!(market.chain.send(owner(), bank, coins(100), vec![]).outcome, Outcome::Success);
    let resume = Bank::resumeCall { sliceGas: SLICE_GAS, price: PRICE };
    assert_eq!(send(&mut market, owner(), bank, resume.clone()).outcome, Outcome::Success);
    for _ in 0..30 {
        market.at(market.now() + 200);
    }
    assert_eq!(read(&market, bank, Bank::reachedCall {}), U256::from(30));
    let balance = read(&market, bank, Bank::balanceOfCall { account: Address::repeat_byte(1) });
    assert_eq!(balance, U256::from(1_010), "nothing was done twice");
    let over = send(&mut market, owner(), bank, resume).outcome;
    assert_eq!(over, reverted(Bank::NothingLeft {}));
    market.chain.replay();
}

#[test]
fn aip125_06_example_a_sign_of_life_puts_the_release_off() {
    let (mut market, heir) = (Market::new(), Address::repeat_byte(0x77));
    let arguments = (heir, 60_000u64, PRICE).abi_encode_params();
    let held = deploy(&mut market.chain, owner(), "DeadMansSwitch", coins(1_000), &arguments);
    let first: u64 = read(&market, held, Switch::deadlineMsCall {});
    market.at(first - 5_000);
    assert_eq!(
        send(&mut market, owner(), held, Switch::aliveCall { price: PRICE }).outcome,
        Outcome::Success
    );
    let second: u64 = read(&market, held, Switch::deadlineMsCall {});
    assert!(second > first);
    assert_eq!(market.at(first + 1_000), [], "the first release is cancelled");
    let early = send(&mut market, person(5), held, Switch::releaseCall {}).outcome;
    assert!(matches!(&early, Outcome::Reverted(reason) if Switch::TooEarly::abi_decode(reason).is_ok()));
    assert_eq!(market.at(second + 1_000).len(), 1);
    let deposit = U256::from(100_000) * U256::from(PRICE);
    let released = told::<Switch::Released>(&market, held);
    assert_eq!(released.iter().map(|one| one.amount).collect::<Vec<_>>(), [coins(1_000) - deposit]);
    assert_eq!(market.chain.balance(heir), coins(1_000) - deposit);
    // The rest of the deposit came after the release; anyone sends it on.
    assert_eq!(market.chain.balance(held), deposit - burned(&market));
    assert_eq!(send(&mut market, person(5), held, Switch::releaseCall {}).outcome, Outcome::Success);
    assert_eq!(market.chain.balance(held), U256::ZERO);
    let late = send(&mut market, owner(), held, Switch::aliveCall { price: PRICE }).outcome;
    assert_eq!(late, reverted(Switch::AlreadyReleased {}));
    market.chain.replay();
}

/// While the base fee is above its price the release waits, and expires; then anyone releases.
#[test]
fn aip125_11_example_a_release_that_expired_is_made_by_anyone() {
    let (mut market, heir) = (Market::new(), Address::repeat_byte(0x77));
    let price = 2 * GWEI;
    let arguments = (heir, 60_000u64, price).abi_encode_params();
    let held = deploy(&mut market.chain, owner(), "DeadMansSwitch", coins(1_000), &arguments);
    let deadline: u64 = read(&market, held, Switch::deadlineMsCall {});
    market.congest(u128::from(price) * 2);
    assert_eq!(market.at(deadline + 1_000), [], "too dear");
    for _ in 0..101 {
        let filling = market.filling(6, market.base_fee() * 2, 16_000_000);
        market.produce_in(100, vec![filling]);
    }
    assert!(!read(&market, held, Switch::isReleasedCall {}));
    assert_eq!(market.chain.balance(held), coins(1_000), "the whole deposit is back");
    assert_eq!(send(&mut market, person(5), held, Switch::releaseCall {}).outcome, Outcome::Success);
    assert_eq!(market.chain.balance(heir), coins(1_000));
    market.chain.replay();
}
