//! How plans are drawn at random.

use super::*;

pub(super) fn block_plan() -> impl Strategy<Value = BlockPlan> {
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

pub(super) fn action() -> impl Strategy<Value = Action> {
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
pub(super) fn heavy_action() -> impl Strategy<Value = Action> {
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

pub(super) fn form() -> impl Strategy<Value = Form> {
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
    // Few nonces, so that many come twice.
    let orderless =
        prop::option::weighted(0.7, (0..6u64, prop_oneof![9 => 2..60u64, 1 => 0..2u64, 1 => Just(500)]));
    let further = prop::option::of(select(vec![COUNTER, REVERTER, LOGGER, WRITER]));
    let payer = prop::option::weighted(0.3, 0..PEOPLE);
    let native = (orderless, further, payer).prop_map(|(orderless, further, payer)| NativeForm {
        orderless,
        further,
        payer,
    });
    prop_oneof![
        4 => native.prop_map(Form::Native),
        2 => Just(Form::Legacy),
        2 => vec(item, 0..4).prop_map(|items| Form::Eip2930(AccessList(items))),
        4 => Just(Form::Eip1559),
        3 => vec(delegation, 1..4).prop_map(Form::Eip7702),
    ]
}

pub(super) fn delegate() -> impl Strategy<Value = Address> {
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

pub(super) fn what() -> impl Strategy<Value = What> {
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

pub(super) fn route() -> impl Strategy<Value = Option<Address>> {
    let routes = vec![FORWARDER, FORWARD_AND_REVERT, DELEGATOR, STATIC_CALLER, CODE_CALLER, ECHO];
    prop_oneof![1 => Just(None), 6 => select(routes).prop_map(Some)]
}

pub(super) fn init() -> impl Strategy<Value = Init> {
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
pub(super) fn any_target() -> impl Strategy<Value = Address> {
    prop_oneof![
        4 => (0..PEOPLE).prop_map(|n| person(n as u64).address),
        2 => (0..6u8).prop_map(|n| Address::with_last_byte(0xd0 + n)),
        3 => select(contracts::all().into_iter().map(|(address, _)| address).collect::<Vec<_>>()),
        1 => (1..0x12u8).prop_map(Address::with_last_byte),
        1 => select(vec![PARAMETERS, LEDGER, CALLBACKS, FEE_RECIPIENT, Address::ZERO, CREATOR.create(1)]),
    ]
}

/// A call that its target understands, or not.
pub(super) fn payload() -> impl Strategy<Value = (Address, Bytes)> {
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

pub(super) fn run_plan() -> impl Strategy<Value = RunPlan> {
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
    (select(Lane::SERVED.to_vec()), from, call, amount, gas, 0..8u64).prop_map(
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
pub(super) fn heavy_run() -> impl Strategy<Value = RunPlan> {
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
