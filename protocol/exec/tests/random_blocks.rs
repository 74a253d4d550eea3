//! Blocks of anything: whatever people and schedules do, builder and verifiers agree and no money is lost.
//!
//! `TestChain` checks at every block that building equals verifying, twice, and that value is conserved; here the
//! state is looked over as well, and every case is replayed from genesis. What happened is counted, so that the
//! generator cannot become boring unnoticed.

mod support;

use alloy_consensus::{TxEip1559, TxEip2930, TxEip7702, TxLegacy};
use alloy_eips::{
    eip2930::{AccessList, AccessListItem},
    eip7702::SignedAuthorization,
};
use alloy_primitives::{
    Address, B256, Bloom, Bytes, KECCAK256_EMPTY, TxHash, TxKind, U256, address, keccak256,
};
use alloy_sol_types::SolCall;
use almanac_exec::{BlockInput, Environment, Executed, TransactionError, recover};
use almanac_primitives::{
    Account, Gas, GasPrice, Genesis, Halt, Lane, Outcome, Receipt, RunTransaction, ScheduleId, ScheduleRef,
    StateKey, TimestampMs, UserTransaction, Wei,
    addresses::{CALLBACKS, CRON_REGISTRY, LEDGER, PARAMETERS, SYSTEM_ACCOUNTS},
    params::PARAMETERS as ALL_PARAMETERS,
};
use proptest::{collection::vec, prelude::*, sample::select, test_runner::TestRunner};
use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use support::{
    agenda::{Due, TestAgenda},
    contracts::*,
    *,
};

alloy_sol_types::sol!("../../contracts/IParameters.sol");

const CASES: u32 = 96;
const PEOPLE: usize = 8;

#[test]
fn anything_goes_and_nothing_is_lost() {
    let counts = RefCell::new(Counts::default());
    TestRunner::new(ProptestConfig {
        cases: CASES,
        max_shrink_iters: 2_000,
        failure_persistence: None,
        ..Default::default()
    })
    .run(&vec(block_plan(), 5..=8), |plans| {
        counts.borrow_mut().merge(play(&plans));
        Ok(())
    })
    .unwrap();
    counts.borrow().assert_interesting();
}

/// Plays a chain of planned blocks and answers with what happened.
fn play(plans: &[BlockPlan]) -> Counts {
    let mut counts = Counts::default();
    let mut chain = TestChain::from_genesis(&Genesis { governance: FORWARDER, ..genesis() });
    let mut due = Vec::new();
    for plan in plans {
        let timestamp = TimestampMs(chain.head.timestamp.0 + plan.milliseconds);
        let input = BlockInput { fee_recipient: plan.fee_recipient, ..chain.input_at(timestamp) };
        let base_fee = Environment::derive(&input, &chain.state).unwrap().base_fee;
        let runs = plan.runs.iter().enumerate().map(|(n, run)| {
            run.run(
                &chain,
                ScheduleRef { schedule: ScheduleId(n as u64), number: chain.head.number },
                base_fee,
            )
        });
        let runs: Vec<_> = runs.collect();
        due.extend(runs.iter().map(|run| (Due::In(timestamp), run.clone())));
        chain.agenda = Arc::new(TestAgenda::new(due.clone()));

        let (candidates, labels) = candidates(&chain, plan, base_fee, &mut counts);
        let before = chain.state.clone();
        let produced = chain.produce_with(&input, candidates);

        look_over(&chain, &produced);
        counts.block(&produced, &labels, &runs, (&before, &chain.state));
    }
    chain.replay();
    counts
}

/// What must hold of any state and any block.
fn look_over(chain: &TestChain, produced: &Produced) {
    let output = &produced.output;
    let mut accounts = BTreeSet::new();
    for (key, bytes) in &chain.state.0 {
        match key {
            StateKey::Account(address) => {
                let account = Account::decode(bytes).unwrap();
                assert_ne!(account, Account::default(), "{address} is empty and yet stored");
                if account.code_hash != KECCAK256_EMPTY {
                    let code = chain.state.0.get(&StateKey::Code(account.code_hash));
                    assert!(code.is_some(), "{address} has code that is nowhere");
                }
                accounts.insert(*address);
            }
            StateKey::Slot(address, _) => assert!(accounts.contains(address), "storage of nobody, {address}"),
            StateKey::Code(hash) => assert_eq!(keccak256(bytes), *hash),
            StateKey::Body(_) | StateKey::Calendar(_) | StateKey::Meta(_) => {}
        }
    }
    for address in SYSTEM_ACCOUNTS {
        let account = chain.state.account(address);
        assert_eq!((account.nonce, account.code_hash), (1, keccak256([0xfe])), "{address}");
    }
    assert!(output.gas_used <= output.environment.gas_limit);
    let mut sum = 0;
    for (executed, receipt) in output.transactions.iter().zip(&output.receipts) {
        let limit = match executed {
            Executed::Prologue(_) => 0,
            Executed::Run(run) => run.gas_limit.0,
            Executed::User(user) => alloy_consensus::Transaction::gas_limit(user.transaction().envelope()),
        };
        assert!(receipt.gas_used.0 <= limit);
        sum += receipt.gas_used.0;
        assert_eq!(receipt.cumulative_gas_used, Gas(sum));
        assert_eq!(Receipt::decode(&receipt.encode()).unwrap(), *receipt);
        assert!(receipt.outcome.is_success() || receipt.logs.is_empty());
    }
    assert_eq!(sum, output.gas_used.0 + output.reserved_gas_used.0);
    let hashes: BTreeSet<_> = output.receipts.iter().map(|receipt| receipt.transaction_hash).collect();
    assert_eq!(hashes.len(), output.receipts.len());
    let bloom = output.receipts.iter().fold(Bloom::ZERO, |bloom, receipt| bloom | receipt.bloom());
    assert_eq!(output.logs_bloom, bloom);
}

// ---- What is planned ----

/// One block.
#[derive(Clone, Debug)]
struct BlockPlan {
    actions: Vec<Action>,
    runs: Vec<RunPlan>,
    fee_recipient: Address,
    milliseconds: u64,
    is_reversed: bool,
}

/// One signed transaction.
#[derive(Clone, Debug)]
struct Action {
    sender: usize,
    form: Form,
    what: What,
    amount: Amount,
    gas: GasLimit,
    nonce: i64,
    price: Price,
    is_doubled: bool,
}

#[derive(Clone, Debug)]
enum Form {
    Legacy,
    Eip2930(AccessList),
    Eip1559,
    Eip7702(Vec<Delegation>),
}

#[derive(Clone, Copy, Debug)]
struct Delegation {
    authority: usize,
    delegate: Address,
    flaw: Option<Flaw>,
}

#[derive(Clone, Copy, Debug)]
enum Flaw {
    Nonce,
    Chain,
    Signature,
}

#[derive(Clone, Debug)]
enum What {
    Call(Address, Bytes),
    Create(Init),
}

/// What a creation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Init {
    Deploy,
    Nothing,
    Die(Address),
    Burn,
    Revert,
    OutOfGas,
    Invalid,
    BadJump,
    Underflow,
    OutOfOffset,
    TooLarge,
    StartsWithEf,
}

#[derive(Clone, Copy, Debug)]
enum Amount {
    Nothing,
    Little(u64),
    Whole,
    TooMuch,
}

#[derive(Clone, Copy, Debug)]
enum GasLimit {
    Least,
    Extra(u64),
    Below,
}

#[derive(Clone, Copy, Debug)]
enum Price {
    Above(u64),
    Base,
    BelowBase,
}

/// One run that is due.
#[derive(Clone, Debug)]
struct RunPlan {
    lane: Lane,
    from: Address,
    target: Address,
    input: Bytes,
    amount: Amount,
    gas: u64,
    steps: u64,
}

// ---- How it is drawn ----

fn block_plan() -> impl Strategy<Value = BlockPlan> {
    let recipients = vec![
        FEE_RECIPIENT,
        person(1).address,
        COUNTER,
        LEDGER,
        PARAMETERS,
        Address::ZERO,
        // May be born, and die, in this very block.
        CREATOR.create(1),
        CREATOR.create(2),
    ];
    let time = prop_oneof![Just(1_000), 1..10u64, Just(3_600_000)];
    (
        vec(prop_oneof![20 => action(), 1 => heavy_action()], 0..20),
        vec(prop_oneof![8 => run_plan(), 1 => heavy_run()], 0..6),
        select(recipients),
        time,
        prop::bool::weighted(0.1),
    )
        .prop_map(|(actions, runs, fee_recipient, milliseconds, is_reversed)| BlockPlan {
            actions,
            runs,
            fee_recipient,
            milliseconds,
            is_reversed,
        })
}

fn action() -> impl Strategy<Value = Action> {
    let amount = prop_oneof![
        30 => Just(Amount::Nothing),
        15 => (1..1_000u64).prop_map(Amount::Little),
        1 => Just(Amount::Whole),
        1 => Just(Amount::TooMuch),
    ];
    let gas = prop_oneof![
        2 => Just(GasLimit::Least),
        4 => (0..30_000u64).prop_map(GasLimit::Extra),
        24 => (100_000..400_000u64).prop_map(GasLimit::Extra),
        1 => (1_000_000..29_000_000u64).prop_map(GasLimit::Extra),
        1 => Just(GasLimit::Below),
    ];
    let nonce = prop_oneof![90 => Just(0), 1 => Just(-1), 1 => Just(1), 1 => Just(1_000)];
    let price = prop_oneof![40 => (0..8u64).prop_map(Price::Above), 2 => Just(Price::Base), 1 => Just(Price::BelowBase)];
    (0..PEOPLE, form(), what(), amount, gas, nonce, price, prop::bool::weighted(0.03)).prop_map(
        |(sender, form, what, amount, gas, nonce, price, is_doubled)| Action {
            sender,
            form,
            what,
            amount,
            gas,
            nonce,
            price,
            is_doubled,
        },
    )
}

/// One that uses a large part of a block.
fn heavy_action() -> impl Strategy<Value = Action> {
    (0..PEOPLE, 10_000_000..29_000_000u64, 0..8u64).prop_map(|(sender, gas, steps)| Action {
        sender,
        form: Form::Eip1559,
        what: What::Call(FAILER, Bytes::new()),
        amount: Amount::Nothing,
        gas: GasLimit::Extra(gas),
        nonce: 0,
        price: Price::Above(steps),
        is_doubled: false,
    })
}

fn form() -> impl Strategy<Value = Form> {
    let item = (any_target(), vec(0..30u64, 0..3)).prop_map(|(address, slots)| AccessListItem {
        address,
        storage_keys: slots.into_iter().map(|slot| B256::from(U256::from(slot))).collect(),
    });
    let flaw = prop_oneof![
        6 => Just(None),
        1 => Just(Some(Flaw::Nonce)),
        1 => Just(Some(Flaw::Chain)),
        1 => Just(Some(Flaw::Signature)),
    ];
    let delegation = (0..PEOPLE, delegate(), flaw).prop_map(|(authority, delegate, flaw)| Delegation {
        authority,
        delegate,
        flaw,
    });
    prop_oneof![
        2 => Just(Form::Legacy),
        2 => vec(item, 0..4).prop_map(|items| Form::Eip2930(AccessList(items))),
        4 => Just(Form::Eip1559),
        3 => vec(delegation, 1..4).prop_map(Form::Eip7702),
    ]
}

fn delegate() -> impl Strategy<Value = Address> {
    let contracts = vec![
        COUNTER,
        REVERTER,
        FORWARDER,
        CREATOR,
        WRITER,
        CLEARER,
        DELEGATOR,
        DESTRUCTIBLE,
        WITNESS,
        ECHO,
        FAILER,
    ];
    prop_oneof![
        6 => select(contracts),
        3 => Just(Address::ZERO),
        1 => select(vec![PARAMETERS, LEDGER, CALLBACKS, CRON_REGISTRY, Address::with_last_byte(1)]),
        1 => (0..PEOPLE).prop_map(|n| person(n as u64).address),
    ]
}

fn what() -> impl Strategy<Value = What> {
    let call = |(target, input)| What::Call(target, input);
    let nested = (route(), init()).prop_map(|(route, init)| match route {
        Some(route) => What::Call(route, to(CREATOR, &init.code())),
        None => What::Call(CREATOR, init.code()),
    });
    prop_oneof![
        3 => any_target().prop_map(|target| What::Call(target, Bytes::new())),
        8 => payload().prop_map(call),
        6 => (route(), payload()).prop_map(|(route, (target, input))| match route {
            Some(route) => What::Call(route, to(target, &input)),
            None => What::Call(target, input),
        }),
        5 => init().prop_map(What::Create),
        4 => nested,
    ]
}

fn route() -> impl Strategy<Value = Option<Address>> {
    let routes = vec![FORWARDER, FORWARD_AND_REVERT, DELEGATOR, STATIC_CALLER, CODE_CALLER, ECHO];
    prop_oneof![1 => Just(None), 6 => select(routes).prop_map(Some)]
}

fn init() -> impl Strategy<Value = Init> {
    prop_oneof![
        4 => Just(Init::Deploy),
        1 => Just(Init::Nothing),
        3 => any_target().prop_map(Init::Die),
        2 => Just(Init::Burn),
        1 => Just(Init::Revert),
        1 => Just(Init::OutOfGas),
        1 => Just(Init::Invalid),
        1 => Just(Init::BadJump),
        1 => Just(Init::Underflow),
        1 => Just(Init::OutOfOffset),
        1 => Just(Init::TooLarge),
        1 => Just(Init::StartsWithEf),
    ]
}

/// Anyone who can be paid: people, newcomers, contracts, precompiles, system accounts.
fn any_target() -> impl Strategy<Value = Address> {
    prop_oneof![
        4 => (0..PEOPLE).prop_map(|n| person(n as u64).address),
        2 => (0..6u8).prop_map(|n| Address::with_last_byte(0xd0 + n)),
        3 => select(contracts::all().into_iter().map(|(address, _)| address).collect::<Vec<_>>()),
        1 => (1..0x12u8).prop_map(Address::with_last_byte),
        1 => select(vec![PARAMETERS, LEDGER, CALLBACKS, FEE_RECIPIENT, Address::ZERO, CREATOR.create(1)]),
    ]
}

/// A call that its target understands, or not.
fn payload() -> impl Strategy<Value = (Address, Bytes)> {
    let two_words = (0..12u64, 0..20u64).prop_map(|(n, start)| words(n, start));
    let set = (0..ALL_PARAMETERS.len(), 0..=8u64).prop_map(|(n, part)| {
        let parameter = ALL_PARAMETERS[n];
        // Not so high that nobody can pay any more, not so low that nothing fits.
        let (low, high) = (parameter.min.max(1), parameter.default);
        let value = U256::from(low + (high.saturating_sub(low)) / 8 * part);
        Bytes::from(IParameters::setCall { name: parameter.name_word(), value }.abi_encode())
    });
    let person_input = vec(any::<u8>(), 0..70).prop_map(Bytes::from);
    prop_oneof![
        3 => Just((COUNTER, Bytes::new())),
        1 => Just((REVERTER, Bytes::new())),
        1 => Just((BURNER, Bytes::new())),
        1 => Just((FAILER, Bytes::new())),
        1 => Just((WITNESS, Bytes::new())),
        2 => vec(any::<u8>(), 0..100).prop_map(|bytes| (LOGGER, bytes.into())),
        4 => (select(vec![WRITER, CLEARER, CHASER]), two_words),
        2 => any_target().prop_map(|heir| (DESTRUCTIBLE, to(heir, &[]))),
        1 => (0..20u64).prop_map(|number| (HASHER, U256::from(number).to_be_bytes_vec().into())),
        1 => Just((TELLER, Bytes::new())),
        1 => set.clone().prop_map(|input| (PARAMETERS, input)),
        // The forwarder owns the parameters.
        2 => set.prop_map(|input| (FORWARDER, to(PARAMETERS, &input))),
        // The delegator writes and clears the same few slots, its own.
        3 => (select(vec![WRITER, CLEARER]), 1..6u64, 0..3u64)
            .prop_map(|(target, n, start)| (DELEGATOR, to(target, &words(n, start)))),
        2 => ((1..0x12u8).prop_map(Address::with_last_byte), vec(any::<u8>(), 0..140).prop_map(Bytes::from)),
        2 => ((0..PEOPLE).prop_map(|n| person(n as u64).address), person_input),
    ]
}

fn run_plan() -> impl Strategy<Value = RunPlan> {
    let from = prop_oneof![
        4 => (0..PEOPLE).prop_map(|n| person(n as u64).address),
        1 => select(vec![COUNTER, FORWARDER, CALLBACKS, address!("0x00000000000000000000000000000000000d0001")]),
    ];
    let amount = prop_oneof![
        6 => Just(Amount::Nothing),
        2 => (1..1_000u64).prop_map(Amount::Little),
        1 => Just(Amount::Whole),
        1 => Just(Amount::TooMuch),
    ];
    let call = prop_oneof![
        4 => payload(),
        1 => any_target().prop_map(|target| (target, Bytes::new())),
        1 => init().prop_map(|init| (CREATOR, init.code())),
    ];
    let gas = prop_oneof![2 => Just(0), 5 => 0..400_000u64, 2 => 1_000_000..20_000_000u64];
    (select(Lane::ALL.to_vec()), from, call, amount, gas, 0..8u64).prop_map(
        |(lane, from, (target, input), amount, gas, steps)| RunPlan {
            lane,
            from,
            target,
            input,
            amount,
            gas,
            steps,
        },
    )
}

/// One that needs a large part of a block for itself.
fn heavy_run() -> impl Strategy<Value = RunPlan> {
    (15_000_000..29_000_000u64, 0..8u64).prop_map(|(gas, steps)| RunPlan {
        lane: Lane::Market,
        from: person(0).address,
        target: COUNTER,
        input: Bytes::new(),
        amount: Amount::Nothing,
        gas,
        steps,
    })
}

// ---- How a plan becomes transactions ----

impl Init {
    fn code(self) -> Bytes {
        match self {
            Self::Deploy => deploy(&[0x60, 1, 0x5f, 0x55, 0x00]),
            Self::Nothing => Bytes::new(),
            Self::Die(heir) => born_to_die(heir),
            Self::Burn => born_to_burn(),
            Self::Revert => Bytes::from_static(&[0x5f, 0x5f, 0xfd]),
            Self::OutOfGas => Bytes::from_static(&[0x5b, 0x5f, 0x56]),
            Self::Invalid => Bytes::from_static(&[0xfe]),
            Self::BadJump => Bytes::from_static(&[0x5f, 0x56]),
            Self::Underflow => Bytes::from_static(&[0x01]),
            // returndatacopy(0, 0, 1)
            Self::OutOfOffset => Bytes::from_static(&[0x60, 1, 0x5f, 0x5f, 0x3e]),
            // return(0, 24577)
            Self::TooLarge => Bytes::from_static(&[0x61, 0x60, 0x01, 0x5f, 0xf3]),
            Self::StartsWithEf => deploy(&[0xef]),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Deploy => "deploy",
            Self::Nothing => "nothing",
            Self::Die(_) => "die",
            Self::Burn => "burn",
            Self::Revert => "revert",
            Self::OutOfGas => "out of gas",
            Self::Invalid => "invalid",
            Self::BadJump => "bad jump",
            Self::Underflow => "underflow",
            Self::OutOfOffset => "out of offset",
            Self::TooLarge => "too large",
            Self::StartsWithEf => "starts with ef",
        }
    }
}

/// The signed candidates of a block that keep the rules without state, with a label for each.
fn candidates(
    chain: &TestChain,
    plan: &BlockPlan,
    base_fee: GasPrice,
    counts: &mut Counts,
) -> (Vec<UserTransaction>, BTreeMap<TxHash, &'static str>) {
    // The nonces that people think they are at.
    let mut nonces: Vec<u64> = (0..PEOPLE).map(|n| chain.nonce(person(n as u64).address)).collect();
    let mut candidates = Vec::new();
    let mut labels = BTreeMap::new();
    for action in &plan.actions {
        let transaction = action.sign(chain, &mut nonces, base_fee);
        if recover(transaction.clone(), &rules()).is_err() {
            counts.add("refused without state");
            continue;
        }
        labels.insert(transaction.hash(), action.label());
        candidates.extend(std::iter::repeat_n(transaction, 1 + usize::from(action.is_doubled)));
    }
    if plan.is_reversed {
        candidates.reverse();
    }
    (candidates, labels)
}

impl Action {
    fn label(&self) -> &'static str {
        match (&self.what, &self.form) {
            (_, Form::Eip7702(_)) => "7702",
            (What::Create(init), _) => init.name(),
            (What::Call(..), Form::Legacy) => "legacy call",
            (What::Call(..), Form::Eip2930(_)) => "2930 call",
            (What::Call(..), Form::Eip1559) => "1559 call",
        }
    }

    fn sign(&self, chain: &TestChain, nonces: &mut [u64], base_fee: GasPrice) -> UserTransaction {
        let sender = person(self.sender as u64);
        let nonce = nonces[self.sender].saturating_add_signed(self.nonce);
        if self.nonce == 0 {
            nonces[self.sender] += 1;
        }
        let (to, input) = match &self.what {
            What::Call(target, input) => (TxKind::Call(*target), input.clone()),
            What::Create(init) => (TxKind::Create, init.code()),
        };
        let least = self.least_gas(&input);
        let gas_limit = match self.gas {
            GasLimit::Least => least,
            GasLimit::Extra(gas) => least + gas,
            GasLimit::Below => least - 1,
        };
        let price = match self.price {
            Price::Above(steps) => step_price(base_fee, steps),
            Price::Base => base_fee.0,
            Price::BelowBase => base_fee.0 - 1,
        };
        let balance = chain.balance(sender.address);
        let value = amount(self.amount, balance, U256::from(gas_limit) * U256::from(price));
        let tip = price;
        match &self.form {
            Form::Legacy => {
                let tx = TxLegacy {
                    chain_id: Some(CHAIN_ID),
                    nonce,
                    gas_price: price,
                    gas_limit,
                    to,
                    value,
                    input,
                };
                sign(tx, sender.secret)
            }
            Form::Eip2930(access_list) => {
                let access_list = access_list.clone();
                let tx = TxEip2930 {
                    chain_id: CHAIN_ID,
                    nonce,
                    gas_price: price,
                    gas_limit,
                    to,
                    value,
                    access_list,
                    input,
                };
                sign(tx, sender.secret)
            }
            Form::Eip1559 => {
                let tx = TxEip1559 {
                    max_fee_per_gas: price,
                    max_priority_fee_per_gas: tip,
                    value,
                    ..eip1559(nonce, to, 0, input, gas_limit)
                };
                sign(tx, sender.secret)
            }
            Form::Eip7702(delegations) => {
                let list = delegations.iter().map(|delegation| delegation.sign(nonces)).collect();
                // There is no 7702 creation: those who planned one call nobody with their init code.
                let target = to.to().copied().unwrap_or(COUNTER);
                let tx = TxEip7702 {
                    max_fee_per_gas: price,
                    max_priority_fee_per_gas: tip,
                    value,
                    input,
                    ..eip7702(nonce, target, list, gas_limit)
                };
                sign(tx, sender.secret)
            }
        }
    }

    /// The least gas limit of this form and input.
    fn least_gas(&self, input: &[u8]) -> u64 {
        let zeroes = input.iter().filter(|byte| **byte == 0).count() as u64;
        let tokens = zeroes + 4 * (input.len() as u64 - zeroes);
        let is_create =
            matches!((&self.what, &self.form), (What::Create(_), form) if !matches!(form, Form::Eip7702(_)));
        let create = if is_create { 32_000 + 2 * input.len().div_ceil(32) as u64 } else { 0 };
        let listed = match &self.form {
            Form::Eip2930(list) => {
                list.0.iter().map(|item| 2_400 + 1_900 * item.storage_keys.len() as u64).sum::<u64>()
            }
            Form::Eip7702(delegations) => 25_000 * delegations.len() as u64,
            Form::Legacy | Form::Eip1559 => 0,
        };
        21_000 + (4 * tokens + create + listed).max(10 * tokens)
    }
}

impl Delegation {
    fn sign(self, nonces: &mut [u64]) -> SignedAuthorization {
        let authority = person(self.authority as u64);
        let nonce = nonces[self.authority];
        match self.flaw {
            None => {
                nonces[self.authority] += 1;
                authorize(authority, nonce, self.delegate)
            }
            Some(Flaw::Nonce) => authorize(authority, nonce + 3, self.delegate),
            Some(Flaw::Chain) => {
                let mut inner = authorize(authority, nonce, self.delegate).inner().clone();
                inner.chain_id = U256::from(CHAIN_ID + 1);
                let hash = inner.signature_hash();
                let signature =
                    alloy_consensus::crypto::secp256k1::sign_message(authority.secret, hash).unwrap();
                inner.into_signed(signature)
            }
            Some(Flaw::Signature) => {
                let signed = authorize(authority, nonce, self.delegate);
                SignedAuthorization::new_unchecked(signed.inner().clone(), 0, U256::MAX, signed.s())
            }
        }
    }
}

impl RunPlan {
    fn run(&self, chain: &TestChain, schedule_ref: ScheduleRef, base_fee: GasPrice) -> RunTransaction {
        let least = 21_000 + self.input.iter().map(|byte| if *byte == 0 { 10 } else { 40 }).sum::<u64>();
        RunTransaction {
            schedule_ref,
            lane: self.lane,
            from: self.from,
            to: self.target,
            value: Wei(amount(self.amount, chain.balance(self.from), U256::ZERO)),
            input: self.input.clone(),
            gas_limit: Gas(least + self.gas),
            gas_price: GasPrice(step_price(base_fee, self.steps)),
        }
    }
}

/// Few steps, so that runs and transactions often have the same price.
fn step_price(base_fee: GasPrice, steps: u64) -> u128 {
    base_fee.0 + u128::from(steps) * 10_000_000
}

fn amount(amount: Amount, balance: U256, cost: U256) -> U256 {
    match amount {
        Amount::Nothing => U256::ZERO,
        Amount::Little(value) => U256::from(value),
        Amount::Whole => balance.saturating_sub(cost),
        Amount::TooMuch => balance.saturating_add(U256::from(1)),
    }
}

// ---- What happened ----

/// How often each thing happened.
#[derive(Debug, Default)]
struct Counts(BTreeMap<String, usize>);

impl Counts {
    fn add(&mut self, what: impl Into<String>) {
        *self.0.entry(what.into()).or_default() += 1;
    }

    fn merge(&mut self, other: Self) {
        for (what, count) in other.0 {
            *self.0.entry(what).or_default() += count;
        }
    }

    fn block(
        &mut self,
        produced: &Produced,
        labels: &BTreeMap<TxHash, &'static str>,
        due: &[RunTransaction],
        (before, after): (&MapState, &MapState),
    ) {
        let output = &produced.output;
        for (_, error) in &produced.refused {
            self.add(format!("refused: {}", refusal(error)));
        }
        for (executed, receipt) in output.transactions.iter().zip(&output.receipts) {
            let outcome = outcome(&receipt.outcome);
            match executed {
                Executed::Prologue(_) => {}
                Executed::Run(run) => self.add(format!("run in {:?}: {outcome}", run.lane)),
                Executed::User(_) => self.add(format!("{}: {outcome}", labels[&receipt.transaction_hash])),
            }
            self.add(outcome);
            if receipt.contract_address.is_some() {
                self.add("created at the top");
            }
        }
        let is_signed = |receipt: &&Receipt| receipt.schedule_ref.is_none();
        let user_gas: u64 = output.receipts.iter().filter(is_signed).map(|receipt| receipt.gas_used.0).sum();
        let fees = U256::from(user_gas) * U256::from(output.environment.base_fee.0);
        assert!(output.burned.0 >= fees);
        if output.burned.0 > fees {
            self.add("burned more than fees");
        }
        for n in 0..PEOPLE {
            let of = |state: &MapState| state.account(person(n as u64).address).code_hash;
            match (of(before) == KECCAK256_EMPTY, of(after) == KECCAK256_EMPTY) {
                (true, false) => self.add("delegated"),
                (false, true) => self.add("delegation taken back"),
                _ => {}
            }
        }
        let creations = after.account(CREATOR).nonce - before.account(CREATOR).nonce;
        (0..creations).for_each(|_| self.add("created by a contract"));
        let ran: BTreeSet<_> = output.receipts.iter().filter_map(|receipt| receipt.schedule_ref).collect();
        if due.iter().any(|run| run.lane == Lane::Market && !ran.contains(&run.schedule_ref)) {
            self.add("a market run had to wait");
        }
        if output.diff.changes().iter().any(|change| matches!(change.key, StateKey::Slot(PARAMETERS, _))) {
            self.add("a parameter changed");
        }
        let cleared = |key: &StateKey| matches!(key, StateKey::Slot(..)) && !after.0.contains_key(key);
        if before.0.keys().any(cleared) {
            self.add("a slot was cleared");
        }
    }

    fn assert_interesting(&self) {
        let mut expected: Vec<String> = [
            "success",
            "reverted",
            "created at the top",
            "created by a contract",
            "burned more than fees",
            "delegated",
            "delegation taken back",
            "a market run had to wait",
            "a parameter changed",
            "a slot was cleared",
            "refused without state",
            "refused: nonce too low",
            "refused: nonce too high",
            "refused: insufficient funds",
            "refused: fee cap below base fee",
            "refused: does not fit",
            "legacy call: success",
            "2930 call: success",
            "1559 call: success",
            "7702: success",
            "7702: reverted",
            "deploy: success",
            "nothing: success",
            "die: success",
            "burn: success",
            "revert: reverted",
            "out of gas: halted OutOfGas",
            "invalid: halted InvalidOpcode",
            "bad jump: halted InvalidJump",
            "underflow: halted Stack",
            "out of offset: halted Other",
            "too large: halted Create",
            "starts with ef: halted Create",
        ]
        .map(String::from)
        .to_vec();
        // A static call fails inside a call, and a transaction's value is checked before: a run's is not.
        let halts = [
            Halt::OutOfGas,
            Halt::InvalidOpcode,
            Halt::InvalidJump,
            Halt::Stack,
            Halt::Precompile,
            Halt::Create,
            Halt::InsufficientBalance,
            Halt::Other,
        ];
        expected.extend(halts.map(|halt| format!("halted {halt:?}")));
        for lane in Lane::ALL {
            expected.extend(
                ["success", "reverted", "halted OutOfGas"].map(|end| format!("run in {lane:?}: {end}")),
            );
        }
        let missing: Vec<_> = expected.iter().filter(|what| !self.0.contains_key(*what)).collect();
        assert!(missing.is_empty(), "never happened: {missing:#?}\nhappened: {:#?}", self.0);
        let (successes, all) = (self.0["success"], self.total());
        assert!(successes * 4 > all, "most of it fails: {successes} of {all} succeed");
    }

    fn total(&self) -> usize {
        let ends = self
            .0
            .iter()
            .filter(|(what, _)| *what == "success" || *what == "reverted" || what.starts_with("halted "));
        ends.map(|(_, count)| count).sum()
    }
}

fn outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Success => "success".into(),
        Outcome::Reverted(_) => "reverted".into(),
        Outcome::Halted(halt) => format!("halted {halt:?}"),
    }
}

fn refusal(error: &TransactionError) -> &'static str {
    match error {
        TransactionError::NonceTooLow { .. } => "nonce too low",
        TransactionError::NonceTooHigh { .. } => "nonce too high",
        TransactionError::InsufficientFunds { .. } => "insufficient funds",
        TransactionError::FeeCapBelowBaseFee { .. } => "fee cap below base fee",
        TransactionError::DoesNotFit { .. } => "does not fit",
        other => panic!("no candidate here should be refused for: {other}"),
    }
}
