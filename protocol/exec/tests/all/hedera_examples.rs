//! The examples of transactions that wait for signatures: what their users see, in good times and bad ones. With viem, on
//! a running chain, they are in `tests/clients/hedera.mjs`.

use crate::support::{artifacts::deploy, native::*, signed::*, *};
use alloy_primitives::{Address, B256, Bytes, U256};
use alloy_sol_types::{SolCall, SolError, SolEvent, SolValue};
use almanac_primitives::{
    Outcome, ScheduleId, TimestampMs,
    addresses::{ACCOUNTS, SCHEDULE_SERVICE},
};

alloy_sol_types::sol!("../../contracts/IAccounts.sol");
alloy_sol_types::sol! {
    #![sol(all_derives = true)]
    interface Token {
        function transfer(address to, uint256 amount) external returns (bool);
        function balanceOf(address account) external view returns (uint256);
    }
    interface Payroll {
        struct Salary { address employee; uint256 amount; }
        event Paid(uint256 indexed month, uint256 employees, uint256 total);
        error NotCfo(address caller);
        function pay(uint256 month, Salary[] calldata salaries) external;
        function isPaid(uint256 month) external view returns (bool);
    }
    interface Alarm {
        event Answered(int64 responseCode, address schedule);
        event Rang(uint256 count, uint256 second);
        function set(uint256 second, uint256 gasLimit) external returns (int64);
        function setFor(address payer, uint256 second, uint256 gasLimit) external returns (int64);
        function stop() external returns (int64);
        function stopThere() external returns (int64);
        function native() external returns (int64);
        function free(uint256 second, uint256 gasLimit, uint256 tries) external view returns (uint256);
        function rings() external view returns (uint256);
    }
}

const COIN: u64 = 1_000_000_000_000_000_000;
/// The accountant, who prepares things and pays for that.
const CLERK: u64 = 0;

#[expect(clippy::needless_pass_by_value, reason = "a call is written where it is sent")]
fn read<C: SolCall>(chain: &TestChain, at: Address, call: C) -> C::Return {
    let result = chain.call(person(9).address, at, call.abi_encode());
    assert_eq!(result.outcome, Outcome::Success);
    C::abi_decode_returns(&result.output).unwrap()
}

fn told<E: SolEvent>(produced: &Produced, from: Address) -> Vec<E> {
    let logs = produced.output.receipts.iter().flat_map(|receipt| &receipt.logs);
    let logs = logs.filter(|log| log.address == from);
    logs.filter_map(|log| E::decode_raw_log(log.topics().iter().copied(), &log.data.data).ok()).collect()
}

fn produce_at(chain: &mut TestChain, second: u64) -> Produced {
    let input = chain.input_at(TimestampMs(second * 1_000));
    chain.produce_with(&input, vec![])
}

/// A treasury that belongs to three of five, with so many coins.
fn treasury(chain: &mut TestChain, members: &[Key; 5], value: U256) -> Address {
    let leaves = members.each_ref().map(Key::encoded);
    let create = IAccounts::createAccountCall { key: threshold(3, &leaves), salt: B256::ZERO };
    let receipt = chain.send(person(CLERK), ACCOUNTS, U256::ZERO, create.abi_encode());
    let log = receipt.logs.iter().find_map(|log| IAccounts::AccountCreated::decode_log(log).ok());
    let treasury = log.expect("it was created").account;
    chain.send(person(CLERK), treasury, value, Bytes::new());
    treasury
}

/// Three of five members pay a supplier; what the others signed in vain pays nobody a second time.
#[test]
fn hedera_11_example_three_of_five_pay_from_the_treasury() {
    let mut chain = TestChain::new();
    // Either curve: three wallets, two hardware keys.
    let members: [Key; 5] =
        [person(1).into(), person(2).into(), person(3).into(), ed_person(4).into(), ed_person(5).into()];
    let treasury = treasury(&mut chain, &members, U256::from(COIN));
    let supplier = Address::repeat_byte(0x77);
    let mut wish = Wish::new(vec![ServiceCall {
        from: treasury,
        to: supplier,
        value: U256::from(COIN / 2),
        data: Bytes::new(),
    }]);
    // The treasury pays for the gas too, so anybody may bring the signatures.
    wish.payer = Some(treasury);
    let (id, _) = chain.create(person(CLERK), &wish, vec![wish.signed(members[0])]);
    assert_eq!(chain.add(person(8), id, vec![wish.signed(members[3])]), 22);
    assert_eq!((chain.balance(supplier), chain.info(id).1.signers.len()), (U256::ZERO, 2), "two of five");
    assert_eq!(chain.add(person(8), id, vec![wish.signed(person(9))]), 208, "not a member");
    let produced = chain.serve(person(8), signing(id, vec![wish.signed(members[4])]));
    assert_eq!(run_codes(&produced), [(id.0, 22)]);
    assert_eq!(chain.balance(supplier), U256::from(COIN / 2));
    let left = U256::from(COIN / 2) - chain.balance(treasury);
    assert!(left > U256::ZERO && left < U256::from(COIN / 1_000), "the treasury paid for the run: {left}");

    // The members who were not needed have signed too, and one signature more is easily had.
    let spent = [members[1], members[2], members[0]].map(|member| wish.signed(member)).to_vec();
    assert_eq!(code(chain.serve(person(8), wish.create(spent)).receipt(0)), 10_001);
    assert_eq!(chain.balance(supplier), U256::from(COIN / 2));
    chain.replay();
}

/// Two parties swap tokens: both transfers, or none.
#[test]
fn hedera_07_example_two_parties_swap_tokens_or_keep_them() {
    let (mut chain, ann, ben) = (TestChain::new(), person(1), person(2));
    let supply = U256::from(1_000).abi_encode();
    let gold = deploy(&mut chain, ann, "PlainToken", U256::ZERO, &supply);
    let silver = deploy(&mut chain, ben, "PlainToken", U256::ZERO, &supply);
    let leg = |from: Person, token, to: Person, amount: u64| ServiceCall {
        from: from.address,
        to: token,
        value: U256::ZERO,
        data: Token::transferCall { to: to.address, amount: U256::from(amount) }.abi_encode().into(),
    };
    let held = |chain: &TestChain| {
        [(gold, ann), (gold, ben), (silver, ann), (silver, ben)].map(|(token, whose)| {
            read(chain, token, Token::balanceOfCall { account: whose.address }).to::<u64>()
        })
    };
    let swap = |amount| Wish::new(vec![leg(ann, gold, ben, 100), leg(ben, silver, ann, amount)]);
    // Ann proposes, which is her signature; Ben accepts.
    let (id, _) = chain.create(ann, &swap(250), vec![]);
    assert_eq!(held(&chain), [1_000, 0, 0, 1_000], "Ben may still say no");
    let produced = chain.serve(ben, signing(id, vec![]));
    assert_eq!(run_codes(&produced), [(id.0, 22)]);
    assert_eq!(held(&chain), [900, 100, 250, 750]);

    // Ben has promised more than he has: Ann's half returns with his.
    let (id, _) = chain.create(ann, &swap(751), vec![]);
    let produced = chain.serve(ben, signing(id, vec![]));
    assert_eq!(produced.receipt(0).outcome, Outcome::Success, "his signature stands");
    assert_eq!(run_codes(&produced), [(id.0, 33)]);
    assert_eq!(held(&chain), [900, 100, 250, 750]);
    chain.replay();
}

/// The CFO signs in time and salaries leave on payday; or does not, and the list lapses.
#[test]
fn hedera_20_example_a_payroll_needs_the_cfo_by_friday() {
    let (mut chain, cfo) = (TestChain::new(), person(1));
    let payroll = deploy(&mut chain, person(CLERK), "Payroll", U256::from(COIN), &cfo.address.abi_encode());
    let employees = [Address::repeat_byte(0x71), Address::repeat_byte(0x72)];
    let list = |month: u64| Payroll::payCall {
        month: U256::from(month),
        salaries: employees.map(|employee| Payroll::Salary { employee, amount: U256::from(7) }).to_vec(),
    };
    let stolen = chain.send(person(CLERK), payroll, U256::ZERO, list(1).abi_encode()).outcome;
    let not_cfo = Payroll::NotCfo { caller: person(CLERK).address };
    assert_eq!(stolen, Outcome::Reverted(not_cfo.abi_encode().into()));

    let week = 7 * 24 * 60 * 60;
    let friday = chain.input().timestamp.seconds() + week;
    for (month, has_signed) in [(1, true), (2, false)] {
        let payday = friday + (month - 1) * week;
        let call =
            ServiceCall { data: list(month).abi_encode().into(), ..service_call(cfo.address, payroll) };
        let mut wish = Wish::new(vec![call]);
        (wish.body.executionTime, wish.body.waitForExpiry) = (payday, true);
        let receipt = chain.send(person(CLERK), SCHEDULE_SERVICE, U256::from(COIN), wish.create(vec![]));
        let id = created(&receipt);
        if has_signed {
            // From wherever the CFO is; the clerk brings it.
            assert_eq!(chain.add(person(CLERK), id, vec![wish.signed(cfo)]), 22);
        }
        assert_eq!(chain.balance(employees[0]), U256::from(7 * (month - 1)), "not before Friday");
        let before = chain.balance(person(CLERK).address);
        let produced = produce_at(&mut chain, payday);
        let paid = told::<Payroll::Paid>(&produced, payroll);
        assert_eq!(
            paid.iter().map(|paid| paid.total.to::<u64>()).sum::<u64>(),
            if has_signed { 14 } else { 0 }
        );
        assert_eq!(chain.info(id).1.ended, if has_signed { 1 } else { 3 });
        assert_eq!(read(&chain, payroll, Payroll::isPaidCall { month: U256::from(month) }), has_signed);
        let returned = chain.balance(person(CLERK).address) > before;
        assert_eq!(returned, !has_signed, "half of what was prepaid for a second that is not used");
    }
    assert_eq!(employees.map(|one| chain.balance(one)), [U256::from(7); 2]);
    chain.replay();
}

/// What the alarm's schedule service answered, and the schedule that it spoke of.
fn answered(chain: &mut TestChain, alarm: Address, call: &impl SolCall) -> (i64, Address) {
    let receipt = chain.send(person(CLERK), alarm, U256::ZERO, call.abi_encode());
    assert_eq!(receipt.outcome, Outcome::Success, "never a revert");
    let logs = receipt.logs.iter().filter(|log| log.address == alarm);
    let mut said = logs.filter_map(|log| Alarm::Answered::decode_log(log).ok());
    said.next().map(|said| (said.responseCode, said.schedule)).expect("it reports the code")
}

/// A contract for Hedera, compiled as it is, that has a fund and nothing else.
#[test]
fn hedera_22_example_an_alarm_for_hedera_rings_here() {
    let mut chain = TestChain::new();
    let alarm = deploy(&mut chain, person(CLERK), "HederaAlarm", U256::ZERO, &[]);
    let second = chain.input().timestamp.seconds() + 100;
    let set = |second: u64| Alarm::setCall { second: U256::from(second), gasLimit: U256::from(100_000) };
    assert_eq!(answered(&mut chain, alarm, &set(second)), (10, Address::ZERO), "no fund yet");
    let nonce = chain.nonce(person(CLERK).address);
    chain.produce(vec![funding(person(CLERK), nonce, alarm, COIN)]);
    assert_eq!(chain.balance(alarm), U256::ZERO);
    assert_eq!(answered(&mut chain, alarm, &set(1)), (307, Address::ZERO));
    assert_eq!(answered(&mut chain, alarm, &set(second + 63 * 86_400)), (306, Address::ZERO));
    assert_eq!(answered(&mut chain, alarm, &Alarm::nativeCall {}).0, 13);

    let free = |tries: u64| Alarm::freeCall {
        second: U256::from(second - 1),
        gasLimit: U256::from(100_000),
        tries: U256::from(tries),
    };
    assert_eq!(read(&chain, alarm, free(3)).to::<u64>(), second);
    let (code, schedule) = answered(&mut chain, alarm, &set(second));
    assert_eq!(code, 22);
    let id = ScheduleId(U256::from_be_bytes(schedule.into_word().0).to());
    let produced = produce_at(&mut chain, second);
    assert_eq!(run_codes(&produced), [(id.0, 22)]);
    assert_eq!(told::<Alarm::Rang>(&produced, alarm)[0].second.to::<u64>(), second);

    // One at the service, one at the schedule's address.
    for stop in [Alarm::stopCall {}.abi_encode(), Alarm::stopThereCall {}.abi_encode()] {
        let (code, _) = answered(&mut chain, alarm, &set(second + 200));
        assert_eq!(code, 22);
        let receipt = chain.send(person(CLERK), alarm, U256::ZERO, stop);
        let codes = receipt.logs.iter().filter_map(|log| Alarm::Answered::decode_log(log).ok());
        assert_eq!(codes.map(|said| said.responseCode).collect::<Vec<_>>(), [22]);
    }
    assert_eq!(answered(&mut chain, alarm, &Alarm::stopCall {}).0, 212, "deleted already");
    produce_at(&mut chain, second + 200);
    assert_eq!(read(&chain, alarm, Alarm::ringsCall {}), U256::ONE);

    // Another account pays and signs; the alarm is what it calls.
    let wait = Alarm::setForCall {
        payer: person(1).address,
        second: U256::from(second + 900),
        gasLimit: U256::from(100_000),
    };
    let (code, schedule) = answered(&mut chain, alarm, &wait);
    assert_eq!(code, 22);
    let id = ScheduleId(U256::from_be_bytes(schedule.into_word().0).to());
    let produced = chain.serve(person(1), signing(id, vec![]));
    assert_eq!(run_codes(&produced), [(id.0, 22)]);
    assert_eq!(read(&chain, alarm, Alarm::ringsCall {}), U256::from(2));
    assert!(chain.fund_of(alarm) < U256::from(COIN), "what was booked came from its fund");
    chain.replay();
}
