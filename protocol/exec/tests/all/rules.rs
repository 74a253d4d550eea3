//! Every rule that a transaction can break, on both sides of its limit: at submission, as a candidate, in a body.

use crate::support::{contracts::*, *};
use alloy_consensus::{SignableTransaction, TxLegacy};
use alloy_eips::{
    eip2718::Encodable2718,
    eip2930::{AccessList, AccessListItem},
};
use alloy_primitives::{B256, Bytes, Signature, TxKind, U256, uint};
use almanac_exec::{
    BlockBody, BlockError, BlockOutput, Candidates, Environment, Room, Rules, Sender, TransactionError,
    TransactionSource, check_inclusion, check_static, check_submission, cost_max,
    environment::read_parameters, execute, recover, recover_all,
};
use almanac_primitives::{
    Gas, GasPrice, UserTransaction, Wei,
    addresses::{BLOCK_HASH_HISTORY, DEVELOPER_DOOR, SYSTEM_ACCOUNTS},
    block::block_body_bytes,
    genesis::Allocation,
    params::{
        BASE_FEE_FLOOR_WEI, BLOCK_BODY_BYTES_MAX, BLOCK_GAS_MAX, BLOCK_TRANSACTIONS_MAX, INIT_CODE_BYTES_MAX,
        TRANSACTION_BYTES_MAX,
    },
};

const GWEI: u128 = 1_000_000_000;

/// Where each rule is tested. A new one does not compile until it has a place here.
fn tested_by(error: &TransactionError) -> &'static str {
    match error {
        TransactionError::WrongChain { .. } => "a_transaction_is_for_one_chain",
        TransactionError::GasLimitAboveBlock { .. } => "gas_up_to_the_block_limit",
        TransactionError::IntrinsicGasTooLow { .. } => "intrinsic_gas_to_the_unit",
        TransactionError::TipAboveFeeCap { .. } => "a_tip_fits_its_cap",
        TransactionError::InitCodeTooLarge { .. } => "init_code_up_to_its_limit",
        TransactionError::EmptyAuthorizationList => "an_authorization_list_is_not_empty",
        TransactionError::NonceAtMaximum { .. } => "the_last_nonce_is_never_used",
        TransactionError::NotSigned { .. } => "only_a_developers_chain_takes_what_nobody_signed",
        TransactionError::SystemSender { .. } => "nobody_acts_as_the_chain_itself",
        TransactionError::Signature(_) => "signatures_are_low_s",
        TransactionError::NonceTooLow { .. } | TransactionError::NonceTooHigh { .. } => {
            "nonces_follow_each_other"
        }
        TransactionError::InsufficientFunds { .. } => "funds_to_the_wei",
        TransactionError::CostOverflow => "the_worst_case_fits_its_bits",
        TransactionError::FeeCapBelowBaseFee { .. } => "a_fee_cap_reaches_the_base_fee",
        TransactionError::Underpriced { .. } => "a_fee_cap_reaches_the_floor",
        TransactionError::SenderHasCode { .. } => "contracts_do_not_sign",
        TransactionError::DoesNotFit { .. } => "a_block_is_full_of_gas_or_of_bytes",
        TransactionError::BlockCountFull { .. } => "a_block_is_full_of_transactions",
        TransactionError::BehindRuns { .. } => {
            "market_order::aip125_14_what_a_verifier_would_order_differently_is_left_for_later"
        }
        TransactionError::Authenticator(_) => "orderless::signatures_that_prove_nothing_are_refused",
        TransactionError::KeyNotSatisfied { .. } => "hedera_02_an_account_without_a_record_is_its_own_keys",
        TransactionError::SignatureSuperfluous { .. } => {
            "hedera_02_an_account_without_a_record_is_its_own_keys"
        }
        TransactionError::KeyRotated { .. } => "orderless_14_the_old_key_is_worth_nothing",
        TransactionError::FeePayerFunds { .. } => "a_fee_payer_pays_for_gas_and_nothing_else",
        TransactionError::OrderlessDisabled => {
            "orderless_11_the_flag_turns_them_off_and_leaves_sequence_numbers"
        }
        TransactionError::NonceAlreadyUsed { .. } => "orderless_02_a_stored_pair_is_refused",
        TransactionError::ExpirationTooFar { .. } | TransactionError::TransactionExpired { .. } => {
            "orderless_03_expiration_on_both_sides"
        }
    }
}

/// Executes a body on the chain's state as a validator does.
fn verify_body(chain: &TestChain, body: &[UserTransaction]) -> Result<BlockOutput, BlockError> {
    let senders = recover_all(body, &Rules::read(CHAIN, &chain.state).unwrap())
        .map_err(|(index, error)| BlockError::InvalidTransaction { index, error })?;
    execute(&chain.state, &*chain.agenda, &chain.input(), &mut BlockBody::new(senders))
}

/// Two transactions that are fine, from people whom no test here uses otherwise.
fn fine(chain: &TestChain) -> [UserTransaction; 2] {
    [8, 9].map(|n| transfer(person(n), chain.nonce(person(n).address), person(7).address, 1))
}

/// In a body it voids the block and is named with its position; as a candidate it is left out, and the block
/// is as if it had never been offered.
#[track_caller]
fn refused(chain: &TestChain, transaction: &UserTransaction, expected: &TransactionError) {
    let [before, after] = fine(chain);
    let body = vec![before.clone(), transaction.clone(), after.clone()];
    let invalid = BlockError::InvalidTransaction { index: 1, error: expected.clone() };
    assert_eq!(verify_body(chain, &body).unwrap_err(), invalid, "{}", tested_by(expected));

    let rules = Rules::read(CHAIN, &chain.state).unwrap();
    let Ok(candidate) = recover(transaction.clone(), &rules) else {
        // It is nobody's candidate: the rules that need no state keep it out.
        assert_eq!(recover(transaction.clone(), &rules).unwrap_err(), *expected);
        return;
    };
    let without = verify_body(chain, &[before.clone(), after.clone()]).unwrap();
    let mut source = Candidates::new(vec![recovered(before), candidate, recovered(after)]);
    let built = execute(&chain.state, &*chain.agenda, &chain.input(), &mut source).unwrap();
    assert_eq!(source.refusals(), [(transaction.hash(), expected.clone())]);
    assert_eq!(built, without, "nothing is left of a refused candidate");
}

#[track_caller]
fn accepted(chain: &TestChain, transaction: &UserTransaction) -> BlockOutput {
    let output = verify_body(chain, std::slice::from_ref(transaction)).unwrap();
    assert_eq!(output.block_body().count(), 1);
    output
}

/// Breaks a rule that needs no state, and says so at every entrance.
#[track_caller]
fn refused_statically(chain: &TestChain, transaction: &UserTransaction, expected: &TransactionError) {
    assert_eq!(check_static(transaction, &rules()).unwrap_err(), *expected);
    assert_eq!(recover(transaction.clone(), &rules()).unwrap_err(), *expected);
    refused(chain, transaction, expected);
}

#[track_caller]
fn submit(chain: &TestChain, transaction: &UserTransaction) -> Result<(), TransactionError> {
    let sender = recovered(transaction.clone()).sender();
    let floor = read_parameters(&chain.state).unwrap().base_fee_floor();
    check_submission(transaction, sender, &Sender::read(&chain.state, sender).unwrap(), floor)
}

fn with_account(n: u64, allocation: Allocation) -> TestChain {
    let mut genesis = genesis();
    genesis.allocations.insert(person(n).address, allocation);
    TestChain::from_genesis(&genesis)
}

fn with_balance(n: u64, balance: U256) -> TestChain {
    with_account(n, Allocation { balance: Wei(balance), ..Default::default() })
}

fn next_fee(chain: &TestChain) -> u128 {
    Environment::derive(&chain.input(), &chain.state).unwrap().base_fee.0
}

#[test]
fn only_a_developers_chain_takes_what_nobody_signed() {
    let sender = person(0).address;
    let list = vec![authorize(person(2), 0, COUNTER)];
    let kinds = [
        impersonate(sender, legacy(0, person(1).address, 1)),
        impersonate(sender, eip2930(0, person(1).address, Default::default(), 30_000)),
        impersonate(sender, eip1559(0, TxKind::Call(person(1).address), 1, vec![], 21_000)),
        impersonate(sender, eip7702(0, person(1).address, list, 100_000)),
    ];
    let (network, developer) = (TestChain::new(), TestChain::from_genesis(&developer_genesis()));
    for transaction in kinds {
        refused_statically(&network, &transaction, &TransactionError::NotSigned { sender });
        let output = accepted(&developer, &transaction);
        assert_eq!(output.receipts[1].transaction_hash, transaction.hash());
        assert_eq!(output.transactions[1].from(), sender);
        assert_eq!(output.receipts[1].transaction_type, u8::from(transaction.envelope().unwrap().tx_type()));
    }
    // The other rules hold for them too.
    let too_high = impersonate(sender, legacy(1, person(1).address, 1));
    refused(&developer, &too_high, &TransactionError::NonceTooHigh { given: 1, account: 0 });
    let mut foreign = legacy(0, person(1).address, 1);
    foreign.chain_id = Some(1);
    let expected = TransactionError::WrongChain { given: 1, chain: CHAIN_ID };
    refused(&developer, &impersonate(sender, foreign), &expected);
}

#[test]
fn nobody_acts_as_the_chain_itself() {
    let chain = TestChain::from_genesis(&developer_genesis());
    for sender in SYSTEM_ACCOUNTS.into_iter().chain([BLOCK_HASH_HISTORY, DEVELOPER_DOOR]) {
        let transaction = impersonate(sender, legacy(0, person(1).address, 0));
        refused(&chain, &transaction, &TransactionError::SystemSender { sender });
    }
}

#[test]
fn a_transaction_is_for_one_chain() {
    let chain = TestChain::new();
    let (alice, bob) = (person(0), person(1).address);
    for given in [CHAIN_ID - 1, CHAIN_ID, CHAIN_ID + 1, 0, u64::MAX] {
        let kinds = [
            sign(TxLegacy { chain_id: Some(given), ..legacy(0, bob, 1) }, alice.secret),
            sign(
                alloy_consensus::TxEip2930 {
                    chain_id: given,
                    ..eip2930(0, bob, AccessList::default(), 21_000)
                },
                alice.secret,
            ),
            sign(
                alloy_consensus::TxEip1559 {
                    chain_id: given,
                    ..eip1559(0, TxKind::Call(bob), 1, Bytes::new(), 21_000)
                },
                alice.secret,
            ),
            sign(
                alloy_consensus::TxEip7702 {
                    chain_id: given,
                    ..eip7702(0, bob, vec![authorize(person(2), 0, COUNTER)], 50_000)
                },
                alice.secret,
            ),
        ];
        for (kind, transaction) in kinds.iter().enumerate() {
            // A legacy chain id so large that it leaves no room for the parity cannot be signed at all.
            if kind == 0 && given == u64::MAX {
                continue;
            }
            if given == CHAIN_ID {
                accepted(&chain, transaction);
            } else {
                refused_statically(
                    &chain,
                    transaction,
                    &TransactionError::WrongChain { given, chain: CHAIN_ID },
                );
            }
        }
    }
    let without = sign(TxLegacy { chain_id: None, ..legacy(0, bob, 1) }, alice.secret);
    accepted(&chain, &without);
}

#[test]
fn gas_up_to_the_block_limit() {
    let chain = TestChain::new();
    let with_gas = |gas| call(person(0), 0, COUNTER, vec![], gas);
    accepted(&chain, &with_gas(30_000_000));
    let expected = TransactionError::GasLimitAboveBlock { given: 30_000_001, max: 30_000_000 };
    refused_statically(&chain, &with_gas(30_000_001), &expected);
    let expected = TransactionError::GasLimitAboveBlock { given: u64::MAX, max: 30_000_000 };
    refused_statically(&chain, &with_gas(u64::MAX), &expected);
}

/// A pool may have let a transaction in before governance lowered the limit.
#[test]
fn a_candidate_above_a_lowered_block_limit_does_not_fit() {
    let mut genesis = genesis();
    genesis.parameters.insert("block_gas_max".into(), 10_000_000);
    genesis.parameters.insert("cron_block_gas_max".into(), 5_000_000);
    let mut chain = TestChain::from_genesis(&genesis);

    let produced = chain.produce(vec![call(person(0), 0, COUNTER, vec![], 10_000_001)]);

    let [(_, TransactionError::DoesNotFit { gas, gas_left, .. })] = produced.refused[..] else {
        panic!("{:?}", produced.refused)
    };
    assert_eq!((gas, gas_left), (Gas(10_000_001), Gas(10_000_000)));
}

#[test]
fn intrinsic_gas_to_the_unit() {
    let chain = TestChain::new();
    let (alice, bob) = (person(0), person(1).address);
    let plain =
        |input: Vec<u8>| move |gas| sign(eip1559(0, TxKind::Call(bob), 0, input.clone(), gas), alice.secret);
    let create =
        |input: Vec<u8>| move |gas| sign(eip1559(0, TxKind::Create, 0, input.clone(), gas), alice.secret);
    let listing = |accounts: usize, slots: usize| {
        let item = AccessListItem { address: COUNTER, storage_keys: vec![B256::ZERO; slots] };
        let list = AccessList(vec![item; accounts]);
        move |gas| sign(eip2930(0, bob, list.clone(), gas), alice.secret)
    };
    let authorizing = |count: u64| {
        move |gas| {
            let list = (0..count).map(|n| authorize(person(2 + n), 0, COUNTER)).collect();
            sign(eip7702(0, bob, list, gas), alice.secret)
        }
    };
    type Make = Box<dyn Fn(u64) -> UserTransaction>;
    let cases: Vec<(&str, Make, u64)> = vec![
        ("plain", Box::new(plain(vec![])), 21_000),
        // EIP-7623: 10 per token, of which a zero byte is one and another byte four.
        ("zero byte", Box::new(plain(vec![0])), 21_000 + 10),
        ("byte", Box::new(plain(vec![1])), 21_000 + 40),
        ("calldata", Box::new(plain([vec![0; 100], vec![7; 50]].concat())), 21_000 + 100 * 10 + 50 * 40),
        // EIP-3860: 32,000 and 2 per word; calldata at 4 per token while that is above the floor.
        ("create", Box::new(create(vec![])), 53_000),
        ("create one word", Box::new(create(vec![0; 32])), 53_000 + 2 + 32 * 4),
        ("create 33 bytes", Box::new(create(vec![1; 33])), 53_000 + 4 + 33 * 16),
        ("create above the floor", Box::new(create(vec![1; 2_000])), 21_000 + 2_000 * 40),
        ("access list", Box::new(listing(1, 0)), 21_000 + 2_400),
        ("access list slots", Box::new(listing(2, 3)), 21_000 + 2 * 2_400 + 6 * 1_900),
        ("one authorization", Box::new(authorizing(1)), 21_000 + 25_000),
        ("three authorizations", Box::new(authorizing(3)), 21_000 + 3 * 25_000),
    ];
    for (name, make, needed) in cases {
        let output = accepted(&chain, &make(needed));
        assert!(output.gas_used.0 <= needed, "{name}");
        let expected = TransactionError::IntrinsicGasTooLow { given: needed - 1, needed };
        refused_statically(&chain, &make(needed - 1), &expected);
        let expected = TransactionError::IntrinsicGasTooLow { given: 0, needed };
        refused_statically(&chain, &make(0), &expected);
    }
}

#[test]
fn a_tip_fits_its_cap() {
    let chain = TestChain::new();
    let (alice, bob) = (person(0), person(1).address);
    let fees = |cap: u128, tip: u128| {
        let tx = eip1559(0, TxKind::Call(bob), 0, Bytes::new(), 21_000);
        let tx = alloy_consensus::TxEip1559 { max_fee_per_gas: cap, max_priority_fee_per_gas: tip, ..tx };
        let delegating = eip7702(0, bob, vec![authorize(person(2), 0, COUNTER)], 50_000);
        let delegating =
            alloy_consensus::TxEip7702 { max_fee_per_gas: cap, max_priority_fee_per_gas: tip, ..delegating };
        [sign(tx, alice.secret), sign(delegating, alice.secret)]
    };
    for transaction in fees(2 * GWEI, 2 * GWEI) {
        accepted(&chain, &transaction);
    }
    for transaction in fees(2 * GWEI, 2 * GWEI + 1) {
        let expected =
            TransactionError::TipAboveFeeCap { tip: GasPrice(2 * GWEI + 1), cap: GasPrice(2 * GWEI) };
        refused_statically(&chain, &transaction, &expected);
    }
}

#[test]
fn init_code_up_to_its_limit() {
    let chain = TestChain::new();
    let alice = person(0);
    let with_size = |kind, size| sign(eip1559(0, kind, 0, vec![0; size], 2_000_000), alice.secret);
    accepted(&chain, &with_size(TxKind::Create, INIT_CODE_BYTES_MAX));
    let expected =
        TransactionError::InitCodeTooLarge { given: INIT_CODE_BYTES_MAX + 1, max: INIT_CODE_BYTES_MAX };
    refused_statically(&chain, &with_size(TxKind::Create, INIT_CODE_BYTES_MAX + 1), &expected);
    // The limit is for init code: calldata of that size is only expensive.
    accepted(&chain, &with_size(TxKind::Call(COUNTER), INIT_CODE_BYTES_MAX + 1));
}

#[test]
fn an_authorization_list_is_not_empty() {
    let chain = TestChain::new();
    let with_list = |list| sign(eip7702(0, person(1).address, list, 100_000), person(0).secret);
    accepted(&chain, &with_list(vec![authorize(person(2), 0, COUNTER)]));
    refused_statically(&chain, &with_list(vec![]), &TransactionError::EmptyAuthorizationList);
}

#[test]
fn the_last_nonce_is_never_used() {
    let coins = genesis().allocations[&person(0).address].balance;
    let old = Allocation { balance: coins, nonce: u64::MAX - 1, ..Default::default() };
    let mut chain = with_account(0, old);
    let with_nonce = |nonce| transfer(person(0), nonce, person(1).address, 1);
    let expected = TransactionError::NonceAtMaximum { given: u64::MAX };
    refused_statically(&chain, &with_nonce(u64::MAX), &expected);

    chain.produce(vec![with_nonce(u64::MAX - 1)]);

    assert_eq!(chain.nonce(person(0).address), u64::MAX);
    refused_statically(&chain, &with_nonce(u64::MAX), &expected);
    let spent = TransactionError::NonceTooLow { given: u64::MAX - 1, account: u64::MAX };
    refused(&chain, &with_nonce(u64::MAX - 1), &spent);
}

/// A creation raises the nonce at another place in the EVM than a call does.
#[test]
fn the_last_usable_nonce_can_create() {
    let coins = genesis().allocations[&person(0).address].balance;
    let mut chain = with_account(0, Allocation { balance: coins, nonce: u64::MAX - 1, ..Default::default() });
    let init = deploy(&[0x00]);
    let create = sign(eip1559(u64::MAX - 1, TxKind::Create, 0, init, 200_000), person(0).secret);
    let produced = chain.produce(vec![create]);
    assert_eq!(produced.receipt(0).contract_address, Some(person(0).address.create(u64::MAX - 1)));
    assert_eq!(chain.nonce(person(0).address), u64::MAX);
}

#[test]
fn signatures_are_low_s() {
    const ORDER: U256 = uint!(0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141_U256);
    let chain = TestChain::new();
    let tx = eip1559(0, TxKind::Call(person(1).address), 1, Bytes::new(), 21_000);
    let good = sign(tx.clone(), person(0).secret);
    accepted(&chain, &good);

    let signature = *good.envelope().unwrap().as_eip1559().unwrap().signature();
    let high = Signature::new(signature.r(), ORDER - signature.s(), !signature.v());
    let zero = Signature::new(U256::ZERO, signature.s(), signature.v());
    let beyond = Signature::new(U256::MAX, signature.s(), signature.v());
    for bad in [high, zero, beyond] {
        let bytes = tx.clone().into_signed(bad).encoded_2718();
        let transaction = UserTransaction::decode(&bytes).unwrap();
        check_static(&transaction, &rules()).unwrap();
        let error = recover(transaction.clone(), &rules()).unwrap_err();
        assert!(matches!(&error, TransactionError::Signature(error) if error.hash == transaction.hash()));
        refused(&chain, &transaction, &error);
    }
}

#[test]
fn nonces_follow_each_other() {
    let mut chain = TestChain::new();
    let with_nonce = |nonce| transfer(person(0), nonce, person(1).address, 1);
    let too_high = TransactionError::NonceTooHigh { given: 1, account: 0 };
    refused(&chain, &with_nonce(1), &too_high);
    assert_eq!(submit(&chain, &with_nonce(1)), Ok(()), "a pool may keep it until the one before has come");

    chain.produce(vec![with_nonce(0)]);

    let too_low = TransactionError::NonceTooLow { given: 0, account: 1 };
    assert_eq!(submit(&chain, &with_nonce(0)), Err(too_low.clone()));
    refused(&chain, &with_nonce(0), &too_low);
    accepted(&chain, &with_nonce(1));
    refused(&chain, &with_nonce(2), &TransactionError::NonceTooHigh { given: 2, account: 1 });
    let far = TransactionError::NonceTooHigh { given: u64::MAX - 1, account: 1 };
    refused(&chain, &with_nonce(u64::MAX - 1), &far);

    // Twice the same in one body: the second comes too late.
    let twice = verify_body(&chain, &[with_nonce(1), with_nonce(1)]).unwrap_err();
    let error = TransactionError::NonceTooLow { given: 1, account: 2 };
    assert_eq!(twice, BlockError::InvalidTransaction { index: 1, error });
}

#[test]
fn funds_to_the_wei() {
    // The worst case counts: value and the whole gas limit at the fee cap, although less will be paid.
    let cost = U256::from(50_000) * U256::from(20 * GWEI) + U256::from(5);
    let transaction = sign(eip1559(0, TxKind::Call(person(1).address), 5, vec![], 50_000), person(0).secret);
    assert_eq!(cost_max(&transaction).unwrap(), Wei(cost));

    let chain = with_balance(0, cost);
    assert_eq!(submit(&chain, &transaction), Ok(()));
    accepted(&chain, &transaction);

    let chain = with_balance(0, cost - U256::from(1));
    let expected = TransactionError::InsufficientFunds {
        sender: person(0).address,
        needed: Wei(cost),
        balance: Wei(cost - U256::from(1)),
    };
    assert_eq!(submit(&chain, &transaction), Err(expected.clone()));
    refused(&chain, &transaction, &expected);

    // Someone who never had anything.
    let stranger = transfer(person(77), 0, person(1).address, 0);
    let needed = cost_max(&stranger).unwrap();
    let expected =
        TransactionError::InsufficientFunds { sender: person(77).address, needed, balance: Wei::ZERO };
    refused(&chain, &stranger, &expected);
}

/// Money that an earlier transaction of the same body brings or takes counts.
#[test]
fn funds_are_those_of_the_moment() {
    let mut chain = TestChain::new();
    let newcomer = person(77);
    let gift = sign(
        eip1559(0, TxKind::Call(newcomer.address), 10_000_000_000_000_000, vec![], 21_000),
        person(0).secret,
    );
    let spend = transfer(newcomer, 0, person(1).address, 1);
    let early = verify_body(&chain, &[spend.clone(), gift.clone()]).unwrap_err();
    assert!(matches!(
        early,
        BlockError::InvalidTransaction { index: 0, error: TransactionError::InsufficientFunds { .. } }
    ));
    assert_eq!(chain.produce(vec![gift, spend]).output.block_body().count(), 2);
}

#[test]
fn the_worst_case_fits_its_bits() {
    let pays = |price, value| {
        sign(TxLegacy { gas_price: price, value, ..legacy(0, person(1).address, 0) }, person(0).secret)
    };
    let price_max = u128::MAX / 21_000;
    let gas_max = U256::from(price_max * 21_000);
    assert_eq!(cost_max(&pays(price_max, U256::ZERO)), Ok(Wei(gas_max)));
    assert_eq!(cost_max(&pays(price_max + 1, U256::ZERO)), Err(TransactionError::CostOverflow));
    assert_eq!(cost_max(&pays(u128::MAX, U256::MAX)), Err(TransactionError::CostOverflow));
    assert_eq!(cost_max(&pays(price_max, U256::MAX - gas_max)), Ok(Wei(U256::MAX)));
    let over = U256::MAX - gas_max + U256::from(1);
    assert_eq!(cost_max(&pays(price_max, over)), Err(TransactionError::CostOverflow));

    let poor = TestChain::new();
    refused(&poor, &pays(price_max, over), &TransactionError::CostOverflow);
    assert_eq!(submit(&poor, &pays(price_max, over)), Err(TransactionError::CostOverflow));

    // The EVM itself refuses such a price even from one who could pay it. A block must not stop there.
    let rich = with_balance(0, U256::from(1) << 200);
    accepted(&rich, &pays(price_max, U256::ZERO));
    refused(&rich, &pays(price_max + 1, U256::ZERO), &TransactionError::CostOverflow);
    refused(&rich, &pays(u128::MAX, U256::ZERO), &TransactionError::CostOverflow);
}

#[test]
fn a_fee_cap_reaches_the_base_fee() {
    let mut chain = TestChain::new();
    chain.produce(vec![]);
    let base_fee = next_fee(&chain);
    let bob = TxKind::Call(person(1).address);
    let capped = |cap: u128| {
        let tx = eip1559(0, bob, 0, Bytes::new(), 21_000);
        let tx =
            alloy_consensus::TxEip1559 { max_fee_per_gas: cap, max_priority_fee_per_gas: cap.min(7), ..tx };
        let old = TxLegacy { gas_price: cap, ..legacy(0, person(1).address, 0) };
        [sign(tx, person(0).secret), sign(old, person(0).secret)]
    };
    for transaction in capped(base_fee) {
        let output = accepted(&chain, &transaction);
        assert_eq!(output.receipts[1].effective_gas_price, GasPrice(base_fee), "nothing is left for a tip");
    }
    for transaction in capped(base_fee - 1) {
        let expected = TransactionError::FeeCapBelowBaseFee {
            cap: GasPrice(base_fee - 1),
            base_fee: GasPrice(base_fee),
        };
        refused(&chain, &transaction, &expected);
        assert_eq!(submit(&chain, &transaction), Ok(()), "the base fee may fall that low");
        let sender = Sender::read(&chain.state, person(0).address).unwrap();
        let included = check_inclusion(&transaction, person(0).address, &sender, GasPrice(base_fee));
        assert_eq!(included, Err(expected));
    }
}

#[test]
fn a_fee_cap_reaches_the_floor() {
    let chain = TestChain::new();
    let floor = u128::from(BASE_FEE_FLOOR_WEI.default);
    let capped =
        |gas_price| sign(TxLegacy { gas_price, ..legacy(0, person(1).address, 0) }, person(0).secret);
    assert_eq!(submit(&chain, &capped(floor)), Ok(()));
    let expected = TransactionError::Underpriced { cap: GasPrice(floor - 1), floor: GasPrice(floor) };
    assert_eq!(submit(&chain, &capped(floor - 1)), Err(expected.clone()));
    assert!(!tested_by(&expected).is_empty());
}

#[test]
fn contracts_do_not_sign() {
    let coins = genesis().allocations[&person(0).address].balance;
    let holding = |code: Vec<u8>| {
        with_account(0, Allocation { balance: coins, nonce: 1, code: code.into(), ..Default::default() })
    };
    let transaction = transfer(person(0), 1, person(1).address, 1);
    let expected = TransactionError::SenderHasCode { sender: person(0).address };
    let delegation = [&[0xef, 0x01, 0x00], COUNTER.as_slice()].concat();

    let chain = holding(vec![0x00]);
    refused(&chain, &transaction, &expected);
    assert_eq!(submit(&chain, &transaction), Err(expected.clone()));

    let chain = holding(delegation.clone());
    assert_eq!(submit(&chain, &transaction), Ok(()));
    accepted(&chain, &transaction);

    // What only looks like a delegation is code.
    for broken in [&delegation[..22], &[&delegation[..], &[0]].concat(), &[0xef, 0x01], &[0xef, 0x01, 0x01]] {
        refused(&holding(broken.to_vec()), &transaction, &expected);
    }
}

/// A delegation that was set on chain is still there in later blocks, for the sender and for those who call it.
#[test]
fn a_delegated_account_signs_and_answers() {
    let mut chain = TestChain::new();
    let (alice, bob) = (person(0), person(1));
    let delegating = eip7702(0, bob.address, vec![authorize(bob, 0, COUNTER)], 200_000);
    chain.produce(vec![
        sign(delegating, alice.secret),
        // In the block in which it was set,
        transfer(bob, 1, alice.address, 1),
        call(alice, 1, bob.address, vec![], 100_000),
    ]);
    // and in a later one.
    let produced =
        chain.produce(vec![transfer(bob, 2, alice.address, 1), call(alice, 2, bob.address, vec![], 100_000)]);

    assert_eq!(produced.output.block_body().count(), 2);
    let slot = U256::from_be_slice(alice.address.as_slice());
    let counted = chain.state.0.get(&almanac_primitives::StateKey::Slot(bob.address, slot)).unwrap();
    assert_eq!(counted[..], [3], "the counter's code ran three times on the delegator's storage");
    chain.replay();
}

#[test]
fn a_block_is_full_of_gas_or_of_bytes() {
    // Gas: 30,000,000 less what a failer used.
    let chain = TestChain::new();
    let failer = call(person(0), 0, FAILER, vec![], 29_979_000);
    let last = |gas| sign(eip1559(0, TxKind::Call(person(2).address), 0, vec![], gas), person(1).secret);
    verify_body(&chain, &[failer.clone(), last(21_000)]).unwrap();
    let error = TransactionError::DoesNotFit {
        gas: Gas(21_001),
        bytes: block_body_bytes(&last(21_001)),
        gas_left: Gas(21_000),
        bytes_left: BLOCK_BODY_BYTES_MAX - block_body_bytes(&failer),
    };
    let full = verify_body(&chain, &[failer.clone(), last(21_001)]).unwrap_err();
    assert_eq!(full, BlockError::InvalidTransaction { index: 1, error: error.clone() });
    let small = fine(&chain)[0].clone();
    let offered = [failer, last(21_001), small.clone()].map(recovered);
    let mut source = Candidates::new(offered.to_vec());
    let built = execute(&chain.state, &*chain.agenda, &chain.input(), &mut source).unwrap();
    assert_eq!(source.refusals(), [(last(21_001).hash(), error)]);
    assert_eq!(built.block_body().last(), Some(&small), "a smaller one behind it still gets in");
    assert_eq!(built.gas_used, Gas(30_000_000));
}

/// A transaction of exactly `bytes` bytes that calls nobody with zeroes.
fn of_size(nonce: u64, bytes: usize) -> UserTransaction {
    let with = |length: usize, value: u64| {
        sign(
            eip1559(nonce, TxKind::Call(person(1).address), value, vec![0; length], 1_400_000),
            person(0).secret,
        )
    };
    let overhead = with(bytes - 200, 1).encoded().len() - (bytes - 200);
    // Now and then a signature is a byte shorter; another value gives another signature.
    (1..100).map(|value| with(bytes - overhead, value)).find(|tx| tx.encoded().len() == bytes).unwrap()
}

#[test]
fn a_body_is_full_to_the_byte() {
    let mut genesis = genesis();
    genesis.parameters.insert("block_gas_max".into(), BLOCK_GAS_MAX.max);
    let chain = TestChain::from_genesis(&genesis);
    let mut body: Vec<_> = (0..31).map(|nonce| of_size(nonce, TRANSACTION_BYTES_MAX)).collect();
    let bytes_left = BLOCK_BODY_BYTES_MAX - body.iter().map(block_body_bytes).sum::<usize>();
    let (fits, too_large) = (of_size(31, bytes_left - 4), of_size(31, bytes_left - 3));
    assert_eq!((block_body_bytes(&fits), block_body_bytes(&too_large)), (bytes_left, bytes_left + 1));

    body.push(fits);
    let output = verify_body(&chain, &body).unwrap();
    let block = output.block(Default::default());
    assert_eq!(almanac_primitives::Block::decode(&block.encode()).unwrap(), block, "it can be sent");
    *body.last_mut().unwrap() = too_large.clone();
    let error = TransactionError::DoesNotFit {
        gas: Gas(1_400_000),
        bytes: bytes_left + 1,
        gas_left: Gas(BLOCK_GAS_MAX.max - (output.gas_used.0 - output.receipts.last().unwrap().gas_used.0)),
        bytes_left,
    };
    let full = verify_body(&chain, &body).unwrap_err();
    assert_eq!(full, BlockError::InvalidTransaction { index: 31, error: error.clone() });
    let mut source = Candidates::new(body.into_iter().map(recovered).collect());
    let built = execute(&chain.state, &*chain.agenda, &chain.input(), &mut source).unwrap();
    assert_eq!((built.block_body().count(), source.refusals()), (31, &[(too_large.hash(), error)][..]));
}

/// No gas limit that governance can set lets a block reach its number of transactions, so only the source can
/// be asked here; the rule itself is tested where it is written.
#[test]
fn a_block_is_full_of_transactions() {
    assert!(BLOCK_TRANSACTIONS_MAX as u64 * 21_000 > BLOCK_GAS_MAX.max);
    let offer = |count_left, gas_left| {
        let mut source = Candidates::new(vec![recovered(transfer(person(0), 0, person(1).address, 1))]);
        source
            .next(Room {
                gas_left: Gas(gas_left),
                bytes_left: BLOCK_BODY_BYTES_MAX,
                count_left,
                runs_gas: Gas(0),
            })
            .is_some()
    };
    assert!(offer(1, 21_000));
    assert!(!offer(0, 21_000), "no place");
    assert!(!offer(1, 20_999), "not even the cheapest would fit");
}

/// One refused transaction takes the rest of its sender's with it, and nobody else's.
#[test]
fn candidates_behind_a_refused_one_of_their_sender_are_left_out() {
    let mut chain = TestChain::new();
    let (alice, bob) = (person(0), person(1));
    let produced = chain.produce(vec![
        transfer(alice, 1, bob.address, 1),
        transfer(alice, 0, bob.address, 1),
        transfer(bob, 0, alice.address, 1),
    ]);
    assert_eq!(produced.refused.len(), 1, "the second was not even tried");
    assert_eq!(produced.output.block_body().count(), 1);
    assert_eq!(chain.nonce(bob.address), 1);
}

#[test]
fn empty_blocks_bring_the_base_fee_to_its_floor() {
    let mut chain = TestChain::new();
    let floor = u128::from(BASE_FEE_FLOOR_WEI.default);
    let mut fees = vec![chain.head.base_fee.0];
    while fees.last() != Some(&floor) {
        chain.produce(vec![]);
        fees.push(chain.head.base_fee.0);
        assert!(fees.len() < 40, "it arrives: {fees:?}");
    }
    assert!(fees.is_sorted_by(|a, b| a > b), "{fees:?}");
    for pair in fees.windows(2) {
        assert_eq!(pair[1], (pair[0] - pair[0] / 8).max(floor), "an eighth down, and not below the floor");
    }
    chain.produce(vec![]);
    assert_eq!(chain.head.base_fee.0, floor, "and it stays");
    // A transaction that pays the floor and nothing else gets in.
    let cheap = TxLegacy { gas_price: floor, ..legacy(0, person(1).address, 1) };
    assert_eq!(chain.produce(vec![sign(cheap, person(0).secret)]).output.block_body().count(), 1);
}

#[test]
fn the_base_fee_follows_the_gas_of_the_parent() {
    let uses = |gas| {
        let mut chain = TestChain::new();
        chain.produce(vec![call(person(0), 0, FAILER, vec![], gas)]);
        assert_eq!(chain.head.gas_used, Gas(gas));
        (chain.head.base_fee.0, next_fee(&chain))
    };
    let (base, full) = uses(30_000_000);
    assert_eq!(full, base + base / 8, "an eighth up after a full block");
    assert_eq!(uses(15_000_000).1, base, "still at half");
    let (_, over) = uses(15_000_001);
    assert_eq!(over, base + (base / 15_000_000 / 8).max(1), "and any more moves it");
    let (_, under) = uses(14_999_999);
    assert_eq!(under, base - base / 15_000_000 / 8);
}

/// Full blocks never stop raising the fee: what pays for one does not pay for many.
#[test]
fn full_blocks_outprice_a_fixed_cap() {
    let mut chain = TestChain::new();
    let cap = 2 * chain.head.base_fee.0;
    let mut blocks = 0;
    loop {
        let tx = TxLegacy { gas_price: cap, gas_limit: 30_000_000, ..legacy(blocks, FAILER, 0) };
        let produced = chain.produce(vec![sign(tx, person(0).secret)]);
        let Some((_, error)) = produced.refused.first() else {
            blocks += 1;
            assert!(blocks < 20, "the fee does not rise");
            continue;
        };
        let base_fee = produced.output.environment.base_fee;
        assert_eq!(*error, TransactionError::FeeCapBelowBaseFee { cap: GasPrice(cap), base_fee });
        break;
    }
    // An eighth down in the first block, then up: 0.875 * 1.125^n exceeds 2 for n = 8.
    assert_eq!(blocks, 8);
}
