//! The methods of the doors that schedule for signatures, for a price, and for a time: to be measured, and to be called with
//! every amount of gas.

use super::*;

/// A schedule that is as dear to read as can be: a long body, and all of eight signatures but the last.
pub(super) fn waiting_wish() -> Wish {
    let call = |n| ServiceCall {
        data: vec![7; 1_500].into(),
        ..service_call(Key::from(ed_person(n)).address(), contracts::COUNTER)
    };
    let admin_key = threshold(1, &(0..32).map(|n| Key::from(ed_person(n)).encoded()).collect::<Vec<_>>());
    let mut wish = Wish { admin_key, ..Wish::new((0..8).map(call).collect()) };
    wish.body.gasLimit = 5_000_000;
    wish
}

/// Creates it, and fills the fund of the contract that calls.
pub(super) fn waiting_schedule(chain: &mut TestChain) -> ScheduleId {
    let wish = waiting_wish();
    let caller = person(5).address.create(chain.nonce(person(5).address));
    let nonce = chain.nonce(person(0).address);
    let entries = (0..7).map(|n| wish.signed(ed_person(n))).collect();
    let create = call(person(0), nonce, SCHEDULE_SERVICE, wish.create(entries), 10_000_000);
    let produced = chain.produce(vec![create, signed::funding(person(0), nonce + 1, caller, 10u64.pow(18))]);
    let outcomes: Vec<_> = produced.output.receipts.iter().map(|receipt| &receipt.outcome).collect();
    assert!(outcomes.iter().all(|outcome| outcome.is_success()), "{outcomes:?}");
    signed::created(produced.receipt(0))
}

/// Every method of the schedule service, with as many signatures as a call may bring, for a schedule that waits and for
/// none.
pub(super) fn signed_entries(id: ScheduleId) -> Vec<Entry> {
    let leaves: Vec<Key> = (0..32).map(|n| ed_person(n).into()).collect();
    let calls: Vec<_> =
        leaves[..8].iter().map(|key| service_call(key.address(), contracts::COUNTER)).collect();
    let wish = Wish {
        admin_key: threshold(1, &leaves.iter().map(Key::encoded).collect::<Vec<_>>()),
        ..Wish::new(calls)
    };
    let entries: Vec<_> = leaves[..8].iter().map(|key| wish.signed(*key)).collect();
    let unknown = ScheduleId(7);
    let (body, key, account) = (wish.bytes(), wish.admin_key.clone(), person(0).address);
    let waiting = waiting_wish();
    let known: Vec<_> = (0..7).map(|n| waiting.signed(ed_person(n))).collect();
    // The last of them is of another round, so all are checked for nothing.
    let stale = Wish { round: 1, ..waiting.clone() }.signed(ed_person(6));
    let wrong: Vec<_> = known[..6].iter().cloned().chain([stale]).collect();
    let methods: [(&str, Vec<u8>); 14] = [
        ("createSchedule", wish.create(vec![])),
        ("createSchedule, signed", wish.create(entries.clone())),
        ("createSchedule, pending", waiting.create(known.clone())),
        ("signSchedule, unknown", signing(unknown, entries.clone())),
        ("signSchedule, nothing new", signing(id, known)),
        ("signSchedule, the last is wrong", signing(id, wrong.clone())),
        ("deleteSchedule, unknown", deleting(unknown, entries)),
        ("deleteSchedule, wrong", deleting(id, wrong)),
        ("getScheduleInfo, unknown", signed::getScheduleInfoCall { scheduleID: 7 }.abi_encode()),
        ("getScheduleInfo", signed::getScheduleInfoCall { scheduleID: id.0 }.abi_encode()),
        (
            "roundOf",
            signed::roundOfCall { transactionBody: body, adminKey: key, payer: Address::ZERO }.abi_encode(),
        ),
        (
            "hasScheduleCapacity",
            signed::hasScheduleCapacityCall { second: U256::MAX, gasLimit: U256::ONE }.abi_encode(),
        ),
        ("fundOf", signed::fundOfCall { account }.abi_encode()),
        ("withdraw", signed::withdrawCall { amount: U256::ONE }.abi_encode()),
    ];
    let fund = plain("fund, paid", SCHEDULE_SERVICE, signed::fundCall { account }.abi_encode());
    let no_method = plain("schedule service, no method", SCHEDULE_SERVICE, vec![1, 2, 3, 4]);
    let methods = methods.into_iter().map(|(name, head)| plain(name, SCHEDULE_SERVICE, head));
    methods.chain([Entry { value: U256::ONE, ..fund }, no_method]).collect()
}

/// Every method of HIP-1215, by a contract with a fund; the facades at a schedule's address, and where there is none.
pub(super) fn hip1215_entries(chain: &TestChain, id: ScheduleId) -> Vec<Entry> {
    let second = U256::from(chain.next_seconds() + HOUR);
    let (to, payer) = (contracts::COUNTER, person(0).address);
    let (gas, value, data) = (U256::from(100_000), 0, Bytes::new());
    let schedule = Address::from_word(U256::from(id.0).into());
    let order =
        hip1215::scheduleCallCall { to, expirySecond: second, gasLimit: gas, value, callData: data.clone() };
    let for_payer = hip1215::scheduleCallWithPayerCall {
        to,
        payer,
        expirySecond: second,
        gasLimit: gas,
        value,
        callData: data.clone(),
    };
    let on_signature = hip1215::executeCallOnPayerSignatureCall {
        to,
        payer,
        expirySecond: second,
        gasLimit: gas,
        value,
        callData: data.clone(),
    };
    let named = |name, entry: Entry| Entry { name, to: HIP1215_SERVICE, ..entry };
    let native = hip1215::scheduleNativeCall { systemContractAddress: to, callData: data.clone(), payer };
    let capacity = hip1215::hasScheduleCapacityCall { expirySecond: second, gasLimit: gas };
    let own: [(&str, Vec<u8>); 9] = [
        ("0x16b, no input", vec![]),
        ("0x16b, no method", vec![1, 2, 3, 4]),
        ("0x16b deleteSchedule", hip1215::deleteSchedule_0Call { scheduleAddress: schedule }.abi_encode()),
        (
            "0x16b deleteSchedule, unknown",
            hip1215::deleteSchedule_0Call { scheduleAddress: payer }.abi_encode(),
        ),
        ("0x16b deleteSchedule()", hip1215::deleteSchedule_1Call {}.abi_encode()),
        ("0x16b hasScheduleCapacity", capacity.abi_encode()),
        ("0x16b authorizeSchedule", hip1215::authorizeScheduleCall { schedule }.abi_encode()),
        ("0x16b signSchedule()", hip1215::signSchedule_0Call {}.abi_encode()),
        ("0x16b signSchedule", hip1215::signSchedule_1Call { schedule, signatureMap: data }.abi_encode()),
    ];
    let with_bytes = |name, call: Vec<u8>| {
        let head = move |bytes| with_length(call.clone(), bytes);
        named(name, with_data("", [7; 32], head))
    };
    let mut entries = vec![
        with_bytes("0x16b scheduleCall", order.abi_encode()),
        with_bytes("0x16b scheduleCallWithPayer", for_payer.abi_encode()),
        with_bytes("0x16b executeCallOnPayerSignature", on_signature.abi_encode()),
        plain("0x16b scheduleNative", HIP1215_SERVICE, native.abi_encode()),
    ];
    entries.extend(own.into_iter().map(|(name, head)| plain(name, HIP1215_SERVICE, head)));
    for (name, at) in [("a facade", schedule), ("a facade of nobody", NO_SCHEDULE)] {
        entries.push(plain(name, at, hip1215::deleteSchedule_1Call {}.abi_encode()));
    }
    entries.push(plain("signSchedule() of a facade", schedule, hip1215::signSchedule_0Call {}.abi_encode()));
    entries
}

/// An address that could be a schedule's.
pub(super) const NO_SCHEDULE: Address = address!("0x000000000000000000000000ffffffffffffffff");

/// A call of each method of the schedule service that reads something, by person 0, who has created one.
pub(super) fn signed_calls(chain: &mut TestChain) -> Vec<(Address, U256, Bytes)> {
    let persons = [0, 1, 2].map(person);
    let wish = Wish {
        admin_key: Key::from(person(0)).encoded(),
        ..Wish::new(persons.map(|person| service_call(person.address, contracts::COUNTER)).to_vec())
    };
    let (id, _) = chain.create(person(3), &wish, vec![wish.signed(person(1))]);
    let mut other = wish.clone();
    other.body.nonce = 1;
    let account = person(0).address;
    let inputs = [
        other.create(vec![other.signed(person(1)), other.signed(person(2))]),
        wish.create(vec![wish.signed(person(2))]),
        signing(id, vec![wish.signed(person(2))]),
        deleting(id, vec![]),
        signed::getScheduleInfoCall { scheduleID: id.0 }.abi_encode(),
        signed::fundOfCall { account }.abi_encode(),
    ];
    let calls = inputs.into_iter().map(|input| (SCHEDULE_SERVICE, U256::ZERO, input.into()));
    calls.chain(hip1215_calls(chain, id)).collect()
}

/// A call of each method of HIP-1215 that reads something, by person 0, who has a fund.
pub(super) fn hip1215_calls(chain: &mut TestChain, id: ScheduleId) -> Vec<(Address, U256, Bytes)> {
    let nonce = chain.nonce(person(0).address);
    chain.produce(vec![signed::funding(person(0), nonce, person(0).address, 10u64.pow(18))]);
    let (second, gas) = (U256::from(chain.next_seconds() + HOUR), U256::from(100_000));
    let schedule = Address::from_word(U256::from(id.0).into());
    let order = hip1215::scheduleCallCall {
        to: contracts::COUNTER,
        expirySecond: second,
        gasLimit: gas,
        value: 0,
        callData: Bytes::new(),
    };
    let on_signature = hip1215::executeCallOnPayerSignatureCall {
        to: contracts::COUNTER,
        payer: person(1).address,
        expirySecond: second,
        gasLimit: gas,
        value: 0,
        callData: Bytes::new(),
    };
    let capacity = hip1215::hasScheduleCapacityCall { expirySecond: second, gasLimit: gas };
    let calls = [
        (HIP1215_SERVICE, order.abi_encode()),
        (HIP1215_SERVICE, on_signature.abi_encode()),
        (HIP1215_SERVICE, hip1215::deleteSchedule_0Call { scheduleAddress: schedule }.abi_encode()),
        (HIP1215_SERVICE, capacity.abi_encode()),
        (HIP1215_SERVICE, hip1215::authorizeScheduleCall { schedule }.abi_encode()),
        (schedule, hip1215::signSchedule_0Call {}.abi_encode()),
        (schedule, hip1215::deleteSchedule_1Call {}.abi_encode()),
    ];
    calls.into_iter().map(|(to, input)| (to, U256::ZERO, input.into())).collect()
}

/// Every method of the scheduled transactions.
pub(super) fn market_entries(chain: &TestChain) -> Vec<Entry> {
    let caller = person(5).address.create(chain.nonce(person(5).address));
    let paid = U256::from(10u64.pow(17));
    let txn = ScheduledTransaction {
        senderAddr: caller,
        maxGasAmount: 5_000_000,
        maxGasUnitPrice: 10_000_000_000,
        ..market::txn((chain.next_seconds() + HOUR) * 1_000)
    };
    let insert = |txn: &ScheduledTransaction| {
        let call = IScheduledTransactions::insertCall { txn: txn.clone() };
        with_data("", [7; 32], move |bytes| order_head(&call, bytes))
    };
    let named = |name, entry: Entry| Entry { name, to: SCHEDULED_TRANSACTIONS, ..entry };
    let foreign = ScheduledTransaction { senderAddr: person(1).address, ..txn.clone() };
    let mut entries = vec![
        named("market insert for a stranger", insert(&foreign)),
        named("market insert, unpaid", insert(&txn)),
        Entry { value: paid, ..named("market insert, paid", insert(&txn)) },
    ];
    let key = market::no_key();
    let methods = [
        ("market cancel", IScheduledTransactions::cancelCall { key: key.clone() }.abi_encode()),
        ("market cancelAll", IScheduledTransactions::cancelAllCall {}.abi_encode()),
        ("market claim", IScheduledTransactions::claimCall { key: key.clone() }.abi_encode()),
        ("market get", IScheduledTransactions::getCall { key }.abi_encode()),
        ("market keyOf", IScheduledTransactions::keyOfCall { id: U256::from(7) }.abi_encode()),
        ("market nowMs", IScheduledTransactions::nowMsCall {}.abi_encode()),
        ("market service", IScheduledTransactions::serviceCall {}.abi_encode()),
    ];
    entries.extend(methods.into_iter().map(|(name, head)| plain(name, SCHEDULED_TRANSACTIONS, head)));
    entries
}

/// A call of each method of the scheduled transactions that reads something, by person 0, who has inserted one.
pub(super) fn market_calls(chain: &mut TestChain) -> Vec<(Address, U256, Bytes)> {
    let txn = market::txn((chain.next_seconds() + HOUR) * 1_000);
    let insert = IScheduledTransactions::insertCall { txn: txn.clone() }.abi_encode();
    let receipt = chain.send(person(0), SCHEDULED_TRANSACTIONS, market::deposit(&txn), insert.clone());
    let said = market::only::<TransactionScheduledEvent>(&receipt.logs);
    let key = said.key;
    let calls = [
        (market::deposit(&txn) + U256::ONE, insert),
        (U256::ZERO, IScheduledTransactions::cancelCall { key: key.clone() }.abi_encode()),
        (U256::ZERO, IScheduledTransactions::cancelAllCall {}.abi_encode()),
        (U256::ZERO, IScheduledTransactions::claimCall { key: key.clone() }.abi_encode()),
        (U256::ZERO, IScheduledTransactions::getCall { key }.abi_encode()),
        (U256::ZERO, IScheduledTransactions::keyOfCall { id: said.id }.abi_encode()),
        (U256::ZERO, IScheduledTransactions::serviceCall {}.abi_encode()),
    ];
    calls.into_iter().map(|(value, input)| (SCHEDULED_TRANSACTIONS, value, input.into())).collect()
}

/// A call of each function of the callback scheduler that reads something, by person 0, who has booked a callback.
pub(super) fn callback_calls(chain: &mut TestChain) -> Vec<(Address, U256, Bytes)> {
    let (own, paid) = (person(0).address, U256::from(10u64.pow(17)));
    let (timestamp, priority, effort) = (chain.next_seconds() + HOUR, Priority::Medium, 100);
    let schedule = |handler| {
        ICallbackScheduler::scheduleCall {
            handler,
            data: Bytes::new(),
            timestamp,
            priority,
            executionEffort: effort,
        }
        .abi_encode()
    };
    let receipt = chain.send(person(0), CALLBACKS, paid, schedule(own));
    let id = only::<CallbackScheduled>(&receipt.logs).id;
    let (scheduler, data) = (person(1).address, Bytes::new());
    let calls = [
        (paid, schedule(own)),
        (paid, schedule(scheduler)),
        (
            U256::ZERO,
            ICallbackScheduler::estimateCall { data, timestamp, priority, executionEffort: effort }
                .abi_encode(),
        ),
        (U256::ZERO, ICallbackScheduler::cancelCall { id }.abi_encode()),
        (U256::ZERO, ICallbackScheduler::getStatusCall { id }.abi_encode()),
        (U256::ZERO, ICallbackScheduler::getSlotAvailableEffortCall { timestamp, priority }.abi_encode()),
        (U256::ZERO, ICallbackScheduler::setSchedulerCall { scheduler, allowed: true }.abi_encode()),
        (U256::ZERO, ICallbackScheduler::mayScheduleCallbackCall { handler: own, scheduler }.abi_encode()),
    ];
    calls.into_iter().map(|(value, input)| (CALLBACKS, value, input.into())).collect()
}
