//! Every way into native code: each method of each door, each way of calling it, with little and much input and with
//! no gas, a little too little, and enough. None may take longer for its gas than three times plain work.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a stopwatch beside the transition")]

use crate::attacks::{
    IParameters, cheap_order,
    looper::{Input, Looper, Scheme},
    price::{direct_work, plain_median},
    stopwatch::{process_time, since, thread_time},
    wide_chain,
};
use crate::support::{
    callbacks::{CallbackScheduled, ICallbackScheduler, Priority, only},
    cron::*,
    market::{self, IScheduledTransactions, ScheduledTransaction, TransactionScheduledEvent},
    native::*,
    signed::{self, ServiceCall, Wish, deleting, service_call, signing},
    *,
};
use alloy_primitives::{Address, B256, Bytes, TxKind, U256, address, hex};
use alloy_sol_types::SolCall;
use almanac_exec::{
    BlockInput, Call, CallResult, Candidates, Environment, Refusal, SimulateError, TransactionError, execute,
    prefetch, simulate, simulate_in,
};
use almanac_primitives::{
    Gas, RecoveredTransaction, ScheduleId, StateKey, StateRead, StateReadError,
    addresses::{
        ACCOUNTS, CALLBACKS, CRON_REGISTRY, DEVELOPER_DOOR, HIP1215_SERVICE, LEDGER, PARAMETERS,
        SCHEDULE_SERVICE, SCHEDULED_TRANSACTIONS,
    },
    params::BLOCK_GAS_MAX,
};
use almanac_schedule::Agenda;
use almanac_state::{QmdbConfig, QmdbStore, StateStore as _, with_reader};
use commonware_runtime::{Runner as _, tokio};
use std::{cell::RefCell, collections::BTreeSet, sync::Arc, time::Duration};

alloy_sol_types::sol!("../../contracts/IAccounts.sol");
alloy_sol_types::sol!("../../contracts/IHederaScheduleService.sol");
use IHederaScheduleService as hip1215;
alloy_sol_types::sol!("../../contracts/IDeveloper.sol");

mod recovery;
mod schedulers;

use schedulers::*;

/// Ethereum's ecMul: the precompile that borrows its input and charges first, as all should.
const ECRECOVER: Address = address!("0x0000000000000000000000000000000000000001");
const EC_MUL: Address = address!("0x0000000000000000000000000000000000000007");

const KIB_16: usize = 16 * 1_024;
const MIB_2: usize = 2 * 1_024 * 1_024;

/// A method, with an input for each length.
struct Entry {
    name: &'static str,
    to: Address,
    inputs: Vec<(&'static str, Input)>,
    value: U256,
}

/// The method's own arguments, and the same with zeros behind them.
fn plain(name: &'static str, to: Address, head: impl Into<Vec<u8>>) -> Entry {
    let head = head.into();
    let inputs = [("own", 0), ("16 KiB", KIB_16), ("2 MiB", MIB_2 - 32)]
        .map(|(size, length)| (size, Input::padded(head.clone(), length + head.len() % 32)));
    Entry { name, to, inputs: inputs.into(), value: U256::ZERO }
}

/// No input at all.
fn empty(name: &'static str, to: Address) -> Entry {
    Entry { name, to, inputs: vec![("empty", Input::padded(vec![], 0))], value: U256::ZERO }
}

/// A method with `head` before `length` bytes of data, whose length is the last word of the head.
fn with_data(name: &'static str, fill: [u8; 32], head: impl Fn(usize) -> Vec<u8>) -> Entry {
    let inputs = [("own", 32), ("16 KiB", KIB_16), ("2 MiB", MIB_2 - 512)].map(|(size, length)| {
        let head = head(length);
        (size, Input { length: head.len() + length, head, fill })
    });
    Entry { name, to: CRON_REGISTRY, inputs: inputs.into(), value: U256::ZERO }
}

/// An order whose data is as long as wanted, less the data.
fn order_head<C: SolCall>(call: &C, data_bytes: usize) -> Vec<u8> {
    with_length(call.abi_encode(), data_bytes)
}

/// Arguments that end with bytes, of which there are none yet, as if there were so many.
fn with_length(mut encoded: Vec<u8>, data_bytes: usize) -> Vec<u8> {
    // The data was empty, so the last word is its length.
    let place = encoded.len() - 32;
    encoded[place..].copy_from_slice(&U256::from(data_bytes).to_be_bytes::<32>());
    encoded
}

/// `schedule` whose method and arguments are the same bytes.
fn overlapping_head(order: &JobOrder, data_bytes: usize) -> Vec<u8> {
    let call = ICronRegistry::scheduleCall {
        target: order.target,
        method: String::new(),
        args: Bytes::new(),
        nextRunAt: order.next_run_at,
        intervalSec: order.interval,
        maxRuns: order.max_runs,
        gasLimit: order.gas_limit,
    };
    let mut head = call.abi_encode();
    // Seven words of arguments, then one length for both.
    head.truncate(4 + 7 * 32);
    for offset in [1, 2].map(|argument| 4 + argument * 32) {
        head[offset..offset + 32].copy_from_slice(&U256::from(7 * 32).to_be_bytes::<32>());
    }
    head.extend(U256::from(data_bytes).to_be_bytes::<32>());
    head
}

fn cron_entries(chain: &TestChain, id: U256) -> Vec<Entry> {
    let order = cheap_order(chain).gas(5_000_000);
    let (target, gas_limit, zero) = (order.target, order.gas_limit, U256::ZERO);
    let calldata = ICronRegistry::scheduleCalldataCall {
        target,
        data: Bytes::new(),
        nextRunAt: order.next_run_at,
        intervalSec: zero,
        maxRuns: zero,
        gasLimit: gas_limit,
    };
    let with = ICronRegistry::scheduleWithCall {
        target,
        data: Bytes::new(),
        nextRunAt: order.next_run_at,
        intervalSec: zero,
        maxRuns: zero,
        gasLimit: gas_limit,
        refundTo: target,
        options: zero,
    };
    let value = U256::from(10u64.pow(16));
    vec![
        with_data("schedule", [b'a'; 32], |bytes| overlapping_head(&order, bytes)),
        with_data("schedule, not ASCII", NOT_ASCII, |bytes| overlapping_head(&order, bytes)),
        with_data("scheduleCalldata", [7; 32], |bytes| order_head(&calldata, bytes)),
        Entry { value, ..with_data("scheduleCalldata, paid", [7; 32], |bytes| order_head(&calldata, bytes)) },
        with_data("scheduleWith", [7; 32], |bytes| order_head(&with, bytes)),
        plain("cancel", CRON_REGISTRY, cancel_data(id)),
        plain("topUp", CRON_REGISTRY, top_up_data(id)),
        Entry { value: U256::ONE, ..plain("topUp, paid", CRON_REGISTRY, top_up_data(id)) },
        plain("getJob of 16 KiB", CRON_REGISTRY, ICronRegistry::getJobCall { id }.abi_encode()),
        plain("getJob of nobody", CRON_REGISTRY, ICronRegistry::getJobCall { id: U256::MAX }.abi_encode()),
    ]
}

/// Every method of the callback scheduler. The contract that calls is its own handler.
fn callback_entries(chain: &TestChain, id: U256) -> Vec<Entry> {
    let caller = person(5).address.create(chain.nonce(person(5).address));
    let (data, effort, id) = (Bytes::new(), 11, id.to::<u64>());
    let at = chain.next_seconds() + HOUR;
    let schedule = |handler, priority| {
        let order = ICallbackScheduler::scheduleCall {
            handler,
            data: Bytes::new(),
            timestamp: at,
            priority,
            executionEffort: effort,
        };
        with_data("callback", [7; 32], move |bytes| order_head(&order, bytes))
    };
    let estimate = |priority| ICallbackScheduler::estimateCall {
        data: data.clone(),
        timestamp: at,
        priority,
        executionEffort: effort,
    };
    let paid = U256::from(10u64.pow(15));
    let named = |name, to, entry: Entry| Entry { name, to, ..entry };
    let [high, medium] = [Priority::High, Priority::Medium].map(estimate);
    let (scheduler, priority) = (Address::repeat_byte(1), Priority::Medium);
    let methods: [(&str, Vec<u8>); 6] = [
        ("callback cancel", ICallbackScheduler::cancelCall { id: 7 }.abi_encode()),
        ("callback cancel of another door's", ICallbackScheduler::cancelCall { id }.abi_encode()),
        ("callback getStatus", ICallbackScheduler::getStatusCall { id }.abi_encode()),
        (
            "callback getSlotAvailableEffort",
            ICallbackScheduler::getSlotAvailableEffortCall { timestamp: at, priority }.abi_encode(),
        ),
        (
            "callback setScheduler",
            ICallbackScheduler::setSchedulerCall { scheduler, allowed: true }.abi_encode(),
        ),
        (
            "callback mayScheduleCallback",
            ICallbackScheduler::mayScheduleCallbackCall { handler: caller, scheduler }.abi_encode(),
        ),
    ];
    let mut entries = vec![
        named("callback schedule of a stranger", CALLBACKS, schedule(scheduler, Priority::High)),
        named("callback estimate High", CALLBACKS, with_data("", [7; 32], |bytes| order_head(&high, bytes))),
        named(
            "callback estimate Medium",
            CALLBACKS,
            with_data("", [7; 32], |bytes| order_head(&medium, bytes)),
        ),
    ];
    for (name, priority) in [
        ("callback schedule High, paid", Priority::High),
        ("callback schedule Medium, paid", Priority::Medium),
        ("callback schedule Low, paid", Priority::Low),
    ] {
        entries.push(Entry { value: paid, ..named(name, CALLBACKS, schedule(caller, priority)) });
    }
    entries.extend(methods.into_iter().map(|(name, head)| plain(name, CALLBACKS, head)));
    entries
}

/// `é` again and again: text that is not ASCII takes longest to check.
const NOT_ASCII: [u8; 32] = hex!("c3a9c3a9c3a9c3a9c3a9c3a9c3a9c3a9c3a9c3a9c3a9c3a9c3a9c3a9c3a9c3a9");

fn parameter_entries() -> Vec<Entry> {
    let (name, value, index) = (BLOCK_GAS_MAX.name_word(), U256::ONE, U256::ONE);
    let new_owner = Address::repeat_byte(1);
    let methods: [(&str, Vec<u8>); 10] = [
        ("get", IParameters::getCall { name }.abi_encode()),
        ("next", IParameters::nextCall { name }.abi_encode()),
        ("bounds", IParameters::boundsCall { name }.abi_encode()),
        ("count", IParameters::countCall {}.abi_encode()),
        ("nameAt", IParameters::nameAtCall { index }.abi_encode()),
        ("set", IParameters::setCall { name, value }.abi_encode()),
        ("owner", IParameters::ownerCall {}.abi_encode()),
        ("pendingOwner", IParameters::pendingOwnerCall {}.abi_encode()),
        ("transferOwnership", IParameters::transferOwnershipCall { newOwner: new_owner }.abi_encode()),
        ("acceptOwnership", IParameters::acceptOwnershipCall {}.abi_encode()),
    ];
    methods.into_iter().map(|(name, head)| plain(name, PARAMETERS, head)).collect()
}

/// With a key that has leaves, and with as many signatures as there may be.
fn account_entries() -> Vec<Entry> {
    let (account, digest) = (person(0).address, B256::repeat_byte(1));
    let leaves: Vec<Bytes> = (0..32).map(|n| Key::from(ed_person(n)).encoded()).collect();
    let key = threshold(1, &leaves);
    let signatures = sign_all(&(0..32).map(|n| ed_person(n).into()).collect::<Vec<_>>(), digest);
    let one = Key::from(person(0)).encoded();
    let methods: [(&str, Vec<u8>); 8] = [
        ("rotateKey", IAccounts::rotateKeyCall { key: key.clone(), proofs: signatures.clone() }.abi_encode()),
        ("createAccount", IAccounts::createAccountCall { key: key.clone(), salt: digest }.abi_encode()),
        ("createAccount, one leaf", IAccounts::createAccountCall { key: one, salt: digest }.abi_encode()),
        ("keyOf", IAccounts::keyOfCall { account }.abi_encode()),
        ("addressOfKey", IAccounts::addressOfKeyCall { ed25519: digest }.abi_encode()),
        (
            "isSatisfied",
            IAccounts::isSatisfiedCall { account, digest, signatures: signatures.clone() }.abi_encode(),
        ),
        (
            "isSatisfied, one signature",
            IAccounts::isSatisfiedCall { account, digest, signatures: signatures[..1].to_vec() }.abi_encode(),
        ),
        ("rotationDigest", IAccounts::rotationDigestCall { account, key }.abi_encode()),
    ];
    methods.into_iter().map(|(name, head)| plain(name, ACCOUNTS, head)).collect()
}

fn developer_entries() -> Vec<Entry> {
    let (account, slot, value) = (Address::repeat_byte(1), U256::ONE, U256::ONE);
    let methods: [(&str, Vec<u8>); 5] = [
        ("setBalance", IDeveloper::setBalanceCall { account, balance: value }.abi_encode()),
        ("setCode", IDeveloper::setCodeCall { account, code: Bytes::new() }.abi_encode()),
        ("setNonce", IDeveloper::setNonceCall { account, nonce: 7 }.abi_encode()),
        ("setStorageAt", IDeveloper::setStorageAtCall { account, slot, value }.abi_encode()),
        ("setNextBaseFee", IDeveloper::setNextBaseFeeCall { baseFee: value }.abi_encode()),
    ];
    let methods = methods.into_iter().map(|(name, head)| plain(name, DEVELOPER_DOOR, head));
    methods.chain([empty("developer's door", DEVELOPER_DOOR)]).collect()
}

/// Calls of doors that are for none of their methods. Those of the first three have no input of their own.
fn other_entries() -> Vec<Entry> {
    vec![
        plain("ecAdd", CRON_REGISTRY, vec![]),
        plain("ecMul", EC_MUL, vec![]),
        plain("ledger", LEDGER, vec![]),
        empty("scheduled transactions", SCHEDULED_TRANSACTIONS),
        empty("callbacks", CALLBACKS),
        empty("schedule service", SCHEDULE_SERVICE),
        empty("a facade of nobody", NO_SCHEDULE),
        empty("accounts", ACCOUNTS),
        empty("parameters", PARAMETERS),
        plain("parameters, no method", PARAMETERS, vec![1, 2, 3, 4]),
        plain("developer's door, where there is none", DEVELOPER_DOOR, vec![1, 2, 3, 4]),
    ]
}

/// Ethereum sets what it costs to do what these do; here it counts that they do nothing for less.
fn is_ethereums(entry: &Entry) -> bool {
    matches!(entry.name, "ecAdd" | "ecMul")
}

/// One line of the table.
struct Row {
    name: String,
    looper: Looper,
    /// Whether its price is ours.
    is_ours: bool,
}

/// Whether a line's calls have no gas.
fn is_bare(name: &str) -> bool {
    name.ends_with("gas: none")
}

/// All lines of an entry: ways of calling, lengths, and amounts of gas.
fn rows(chain: &TestChain, entry: &Entry) -> Vec<Row> {
    let mut rows = Vec::new();
    for scheme in Scheme::ALL {
        for (size, input) in &entry.inputs {
            let value = if scheme == Scheme::Call { entry.value } else { U256::ZERO };
            let looper = Looper { scheme, to: entry.to, input: input.clone(), value, gas: 0 };
            let needed = gas_needed(chain, &looper);
            // What decoding costs and no more, too little for what comes then.
            let decoded = 1_000 + 12 * input.length.div_ceil(32) as u64;
            let too_little = needed.saturating_sub(1);
            let amounts = [("none", 0), ("enough", needed), ("too little", too_little), ("decoded", decoded)];
            let distinct = amounts.into_iter().take(match needed {
                0 => 1,
                _ if decoded < too_little => 4,
                _ => 3,
            });
            for (amount, gas) in distinct {
                rows.push(Row {
                    name: format!("{}, {scheme:?}, {size}, gas: {amount}", entry.name),
                    looper: Looper { gas, ..looper.clone() },
                    is_ours: !(is_ethereums(entry) && amount == "enough"),
                });
            }
        }
    }
    rows
}

/// Gas that one call needs beyond what calling costs: what the caller loses with plenty of it, less what it loses with
/// none. A call that stops for want of gas uses up all it was given.
fn gas_needed(chain: &TestChain, looper: &Looper) -> u64 {
    let [with_none, with_plenty] = [0, 20_000_000].map(|gas| {
        let input = Looper { gas, ..looper.clone() }.once();
        let value = looper.value * U256::from(10);
        let (from, gas_limit) = (person(5).address, Gas(60_000_000));
        let call = Call { from, to: None, value, input, gas_limit, ..Call::default() };
        let result = simulate(&chain.state, &chain.input(), call).unwrap();
        assert!(result.outcome.is_success(), "{:?}", result.outcome);
        U256::from_be_slice(&result.output).to::<u64>()
    });
    with_plenty.saturating_sub(with_none)
}

/// The transaction that gets an attack ready and makes it, or only gets it ready.
fn attack(chain: &TestChain, looper: &Looper, code: Bytes, gas: u64) -> RecoveredTransaction {
    let from = person(5);
    let mut tx = eip1559(chain.nonce(from.address), TxKind::Create, 0, code, gas);
    if !looper.value.is_zero() {
        tx.value = U256::from(10u64.pow(18));
    }
    recovered(sign(tx, from.secret))
}

/// What a block took and used.
#[derive(Clone, Copy)]
struct Taken {
    /// `None` if it could not be told.
    time: Option<Duration>,
    gas: u64,
}

impl Taken {
    /// Nanoseconds per gas beyond another block; endless if the time of one of them could not be told.
    fn since(self, before: Self) -> f64 {
        let (Some(time), Some(time_before)) = (self.time, before.time) else { return f64::MAX };
        (time.as_nanos() as f64 - time_before.as_nanos() as f64) / (self.gas - before.gas).max(1) as f64
    }
}

fn timed(
    state: &dyn StateRead,
    agenda: &dyn Agenda,
    input: &BlockInput,
    transaction: RecoveredTransaction,
    clock: fn() -> Duration,
) -> Taken {
    let mut source = Candidates::new(vec![transaction]);
    let start = clock();
    let output = execute(state, agenda, input, &mut source).unwrap();
    let time = since(start, clock);
    assert_eq!(source.refusals(), []);
    // What it has triggered may fail: nobody funds it.
    let mut own = output.receipts.iter().filter(|receipt| receipt.schedule_ref.is_none());
    assert!(own.all(|receipt| receipt.outcome.is_success()), "the attacker goes on");
    Taken { time, gas: output.gas_used.0 }
}

/// A chain with a job of 16 KiB, and that job's id.
fn chain_with_job(mut chain: TestChain) -> (TestChain, U256) {
    let wealth = U256::from(10u64.pow(17));
    let large = cheap_order(&chain)
        .calling(crate::attacks::NOBODY, vec![7; KIB_16])
        .gas(5_000_000)
        .with_value(wealth);
    let id = chain.schedule(person(0), &large).unwrap();
    (chain, id)
}

/// How much slower than plain work a call may be for its gas.
const SLOWER_MAX: f64 = 3.0;

/// How much slower than ecMul a call may be that has no gas: it pays for CALL alone, at Ethereum's price, and does what
/// a call of ecMul does.
const BARE_SLOWER_MAX: f64 = 1.3;

/// Gas of each line of the table.
const LOOP_GAS: u64 = 30_000_000;

/// Lines that are as fast as this need no second look. Calls without gas are never much faster.
const FAST: f64 = 2.4;
const BARE_FAST: f64 = 4.0;

/// A line that is too slow is measured so often before it counts: other work on the machine is no fault of ours.
const TRIES: usize = 6;

/// No entry may take three times as long for its gas as the median of plain work.
///
/// Slow, and only worth something with optimised code: `make bench-prices`.
#[test]
#[ignore = "measures time; make bench-prices"]
fn attack_27_every_entry_is_worth_its_gas() {
    let median = plain_median();
    let mut measured = table(median);
    for work in direct_work() {
        measured.push((format!("{}, directly", work.name), work.measure() / median));
    }
    let bare_calls = measured.iter().filter(|(name, _)| name.starts_with("ecMul") && is_bare(name));
    let bare = bare_calls.map(|(_, ratio)| *ratio).fold(0.0, f64::max);
    println!("calls of ecMul without gas: {bare:.2} x the median of plain work");
    let recovery = recovery_time() / median;
    println!("ecrecover: {recovery:.2} x the median of plain work");
    let limit = |name: &str| match name {
        _ if is_bare(name) => SLOWER_MAX.max(BARE_SLOWER_MAX * bare),
        _ if checks_signatures(name) => SLOWER_MAX.max(recovery),
        _ => SLOWER_MAX,
    };
    let of_limit = measured.iter().map(|(name, ratio)| (name, ratio, ratio / limit(name)));
    let worst = of_limit.clone().max_by(|a, b| a.2.total_cmp(&b.2)).unwrap();
    println!("{} lines; nearest to its limit: {} at {:.2} x", measured.len(), worst.0, worst.1);
    let slow: Vec<_> = of_limit.filter(|(_, _, share)| *share > 1.0).collect();
    assert!(slow.is_empty(), "too slow for their gas: {slow:#?}");
}

/// Whether an entry is there to check signatures: then it may be as slow for its gas as Ethereum's own check of one, to
/// which anybody has access anyway.
fn checks_signatures(name: &str) -> bool {
    let methods = [
        "rotateKey",
        "isSatisfied",
        "createSchedule, signed",
        "createSchedule, pending",
        "signSchedule",
        "deleteSchedule",
    ];
    methods.iter().any(|method| name.starts_with(method))
}

/// Nanoseconds per gas of ecrecover, with a signature that is right.
pub fn recovery_time() -> f64 {
    let digest = B256::repeat_byte(1);
    let signature = Key::from(person(0)).sign(digest);
    let (v, gas) = (signature[64] % 27 + 27, 3_000);
    let input = [digest.as_slice(), B256::with_last_byte(v).as_slice(), &signature[..64]].concat();
    let (scheme, input) = (Scheme::StaticCall, Input::padded(input, 0));
    let looper = Looper { scheme, to: ECRECOVER, input, value: U256::ZERO, gas };
    time_per_gas(&wide_chain(), &looper, LOOP_GAS)
}

/// The table of `make bench-prices`. A line is the time for its gas in a loop, over a store on disk, against the median
/// of plain work.
fn table(median: f64) -> Vec<(String, f64)> {
    let (mut chain, id) = chain_with_job(wide_chain());
    let entries = entries(&mut chain, id);
    let mut measured = measure_all(chain, &entries, median);
    let mut genesis = developer_genesis();
    genesis.parameters.insert("block_gas_max".into(), 120_000_000);
    measured.extend(measure_all(TestChain::from_genesis(&genesis), &developer_entries(), median));
    measured
}

/// All entries of an ordinary chain, with a job.
fn entries(chain: &mut TestChain, job: U256) -> Vec<Entry> {
    let mut entries = other_entries();
    entries.extend(cron_entries(chain, job));
    entries.extend(callback_entries(chain, job));
    entries.extend(market_entries(chain));
    entries.extend(parameter_entries());
    entries.extend(account_entries());
    let id = waiting_schedule(chain);
    entries.extend(signed_entries(id));
    entries.extend(hip1215_entries(chain, id));
    entries.push(empty("a facade", Address::from_word(U256::from(id.0).into())));
    entries
}

/// A method without a line would be priced by nobody.
#[test]
fn attack_27_every_method_of_every_door_has_a_line() {
    let (mut chain, job) = chain_with_job(wide_chain());
    let doors: [(Address, &[[u8; 4]]); 8] = [
        (CRON_REGISTRY, ICronRegistry::ICronRegistryCalls::SELECTORS),
        (SCHEDULED_TRANSACTIONS, IScheduledTransactions::IScheduledTransactionsCalls::SELECTORS),
        (CALLBACKS, ICallbackScheduler::ICallbackSchedulerCalls::SELECTORS),
        (SCHEDULE_SERVICE, signed::IScheduleService::IScheduleServiceCalls::SELECTORS),
        (HIP1215_SERVICE, hip1215::IHederaScheduleServiceCalls::SELECTORS),
        (ACCOUNTS, IAccounts::IAccountsCalls::SELECTORS),
        (PARAMETERS, IParameters::IParametersCalls::SELECTORS),
        (DEVELOPER_DOOR, IDeveloper::IDeveloperCalls::SELECTORS),
    ];
    let mut entries = entries(&mut chain, job);
    entries.extend(developer_entries());
    for (door, selectors) in doors {
        let lines = entries.iter().filter(|entry| entry.to == door).flat_map(|entry| &entry.inputs);
        let measured: BTreeSet<_> = lines.filter_map(|(_, input)| input.head.get(..4)).collect();
        let missing: Vec<_> =
            selectors.iter().filter(|selector| !measured.contains(&selector[..])).map(hex::encode).collect();
        assert!(!selectors.is_empty() && missing.is_empty(), "{door} has no lines for {missing:?}");
    }
}

fn measure_all(chain: TestChain, entries: &[Entry], median: f64) -> Vec<(String, f64)> {
    let rows: Vec<Row> = entries.iter().flat_map(|entry| rows(&chain, entry)).collect();
    let directory = tempfile::tempdir().unwrap();
    let config = tokio::Config::new().with_storage_directory(directory.path());
    let values = chain.state.0.clone();
    tokio::Runner::new(config).start(|context| async move {
        let store = QmdbStore::open(context, &QmdbConfig::new("entries"), &values).await.unwrap();
        let (input, agenda) = (Arc::new(chain.input()), chain.agenda.clone());
        let once = async |transaction: RecoveredTransaction| {
            let keys = prefetch(input.parent.number + 1, input.fee_recipient);
            let (input, agenda) = (input.clone(), agenda.clone());
            let work = move |state: &dyn StateRead| timed(state, &*agenda, &input, transaction, process_time);
            with_reader(&store.tip(), &keys, work).await.unwrap()
        };
        let mut measured = Vec::new();
        for Row { name, looper, is_ours } in rows {
            let mut best = f64::MAX;
            let fast = if looper.gas == 0 { BARE_FAST } else { FAST };
            for _ in 0..TRIES {
                let idle = once(attack(&chain, &looper, looper.idle(), LOOP_GAS)).await;
                let looping = once(attack(&chain, &looper, looper.looping(), LOOP_GAS)).await;
                best = best.min(looping.since(idle) / median);
                if best <= fast {
                    break;
                }
            }
            println!("{name:<64} {:>9} gas each {:>7.2} x", looper.gas, best);
            if is_ours {
                measured.push((name, best));
            }
        }
        measured
    })
}

/// The lines that were worst, for every build: a call with much input and no gas took as long as copying the input,
/// which is a hundred times as long as calling ecMul in the same way.
#[test]
fn attack_27_input_is_paid_for_before_it_is_touched() {
    // So much that copying it takes far longer than a call does in a build that is not optimised. The memory takes
    // 34 M of the gas.
    const BYTES: usize = 4 * 1_024 * 1_024;
    const GAS: u64 = 35_000_000;
    let chain = wide_chain();
    let get_job = ICronRegistry::getJobCall { id: U256::ONE }.abi_encode();
    let method_bytes = BYTES / 32 * 32 + 4;
    let looper = |scheme, to, head: &[u8], length| Looper {
        scheme,
        to,
        input: Input::padded(head, length),
        value: U256::ZERO,
        gas: 0,
    };
    let time = |looper: &Looper| time_per_gas(&chain, looper, GAS);
    let fair = time(&looper(Scheme::StaticCall, EC_MUL, &[], BYTES));
    let attacks = [
        ("ecAdd", looper(Scheme::StaticCall, CRON_REGISTRY, &[], BYTES)),
        ("a method", looper(Scheme::StaticCall, CRON_REGISTRY, &get_job, method_bytes)),
        ("a method by delegatecall", looper(Scheme::DelegateCall, CRON_REGISTRY, &get_job, method_bytes)),
        ("the ledger by delegatecall", looper(Scheme::DelegateCall, LEDGER, &[], BYTES)),
        ("the ledger", looper(Scheme::Call, LEDGER, &[], BYTES)),
        ("parameters by callcode", looper(Scheme::CallCode, PARAMETERS, &get_job, BYTES)),
        ("parameters", looper(Scheme::StaticCall, PARAMETERS, &get_job, BYTES)),
    ];
    let slower = attacks.map(|(name, looper)| (name, time(&looper) / fair));
    println!("against ecMul at {fair:.1} ns per gas: {slower:.1?}");
    for (name, ratio) in slower {
        assert!(ratio < 5.0, "{name} takes {ratio:.0} times as long as ecMul");
    }
}

/// The same for each function of the callback scheduler and of the scheduled transactions: with no gas, and with what any
/// call of it costs but nothing for the input.
#[test]
fn attack_27_schedulers_pay_for_input_before_it_is_touched() {
    let (chain, id) = chain_with_job(wide_chain());
    let entries = callback_entries(&chain, id).into_iter().chain(market_entries(&chain));
    check_input_is_paid_for(&chain, 1_000, entries);
}

/// The same for the schedule service and for HIP-1215, which refuse what is too long by its length.
#[test]
fn attack_27_signatures_pay_for_input_before_it_is_touched() {
    let mut chain = wide_chain();
    let id = waiting_schedule(&mut chain);
    let entries = signed_entries(id).into_iter().chain(hip1215_entries(&chain, id));
    check_input_is_paid_for(&chain, 100, entries);
}

/// Each call asks for `least` gas and what its input costs, and takes no time without them.
fn check_input_is_paid_for(chain: &TestChain, least: u64, entries: impl IntoIterator<Item = Entry>) {
    // The memory takes 8.6 M of it.
    const GAS: u64 = 9_500_000;
    const FLAT_GAS: u64 = 1_000;
    let largest = |entry: &Entry| entry.inputs.last().unwrap().1.clone();
    let looper = |entry: &Entry, gas| Looper {
        scheme: Scheme::Call,
        to: entry.to,
        input: largest(entry),
        value: entry.value,
        gas,
    };
    let fair = time_per_gas(chain, &looper(&plain("ecMul", EC_MUL, vec![]), 0), GAS);
    for entry in entries {
        let input_gas = 12 * largest(&entry).length.div_ceil(32) as u64;
        // A call with value brings gas of its own.
        let stipend = if entry.value.is_zero() { 0 } else { 2_300 };
        let needed = gas_needed(chain, &looper(&entry, 0)) + stipend;
        assert!(needed >= least + input_gas, "{} asks for {needed} gas", entry.name);
        for gas in [0, FLAT_GAS] {
            let ratio = time_per_gas(chain, &looper(&entry, gas), GAS) / fair;
            println!("{}, {gas} gas: {ratio:.1} x ecMul", entry.name);
            assert!(ratio < 5.0, "{} with {gas} gas takes {ratio:.0} times as long as ecMul", entry.name);
        }
    }
}

/// Nanoseconds per gas of calls in a loop: the best of three.
fn time_per_gas(chain: &TestChain, looper: &Looper, gas: u64) -> f64 {
    let input = chain.input();
    let tries = (0..3).map(|_| {
        let [idle, looping] = [looper.idle(), looper.looping()].map(|code| {
            let transaction = attack(chain, looper, code, gas);
            timed(&chain.state, &*chain.agenda, &input, transaction, thread_time)
        });
        looping.since(idle)
    });
    tries.fold(f64::MAX, f64::min)
}

/// Remembers what was read.
pub struct Counted<'s> {
    pub state: &'s MapState,
    pub read: RefCell<Vec<StateKey>>,
}

impl StateRead for Counted<'_> {
    fn read(&self, key: StateKey) -> Result<Option<Bytes>, StateReadError> {
        self.read.borrow_mut().push(key);
        self.state.read(key)
    }
}

/// Whatever gas a call has, it reads no more from the store than it can pay for.
#[test]
fn attack_27_a_read_is_paid_for_before_it_is_made() {
    let (mut chain, id) = chain_with_job(TestChain::new());
    let refund_to = address!("0x00000000000000000000000000000000000d0d0d");
    let elsewhere = chain.schedule(person(0), &order(&chain).refunding(refund_to)).unwrap();
    let callbacks = callback_calls(&mut chain);
    let market = market_calls(&mut chain);
    let signed = signed_calls(&mut chain);
    let environment = Environment::derive(&chain.input(), &chain.state).unwrap();
    let order = order(&chain);
    let name = BLOCK_GAS_MAX.name_word();
    let others: [(Address, U256, Bytes); 7] = [
        (CRON_REGISTRY, U256::ZERO, ICronRegistry::getJobCall { id }.abi_encode().into()),
        (CRON_REGISTRY, U256::ZERO, cancel_data(id)),
        (CRON_REGISTRY, U256::ZERO, cancel_data(elsewhere)),
        (CRON_REGISTRY, U256::ONE, top_up_data(id)),
        (CRON_REGISTRY, order.value, order.calldata()),
        (PARAMETERS, U256::ZERO, IParameters::nextCall { name }.abi_encode().into()),
        (PARAMETERS, U256::ZERO, IParameters::setCall { name, value: U256::ONE }.abi_encode().into()),
    ];
    for (to, value, input) in others.into_iter().chain(callbacks).chain(market).chain(signed) {
        let attempt = |gas: u64| {
            let counted = Counted { state: &chain.state, read: RefCell::default() };
            let from = person(0).address;
            let call = Call {
                from,
                to: Some(to),
                value,
                input: input.clone(),
                gas_limit: Gas(gas),
                ..Call::default()
            };
            let result = simulate_in(&counted, &environment, call);
            let price: u64 = counted.read.into_inner().into_iter().map(|key| price(key, refund_to)).sum();
            (result, price)
        };
        // What the transaction costs before its call, and the least that it must have.
        let intrinsic = gas_asked(attempt(0).0).expect("a transaction needs gas");
        let least = gas_asked(attempt(intrinsic).0).unwrap_or(intrinsic);
        let enough = attempt(1_000_000).0.unwrap().gas_used.0;
        let (mut reads, most) = (0, enough.max(least + 5_000));
        // Far less than a read costs.
        let step = usize::try_from((most - least) / 1_000).unwrap().clamp(50, 500);
        for gas in (least..most).step_by(step) {
            let (result, price) = attempt(gas);
            let left = gas - intrinsic;
            assert!(result.is_ok(), "{result:?}");
            assert!(price <= left, "{price} gas of reads for {left} of a call of {to} with {input}");
            reads = reads.max(price);
        }
        assert!(reads > 0, "{to} with {input} reads something");
    }
}

/// The gas that a transaction is refused without.
fn gas_asked(result: Result<CallResult, SimulateError>) -> Option<u64> {
    match result.err()? {
        SimulateError::Refused {
            reason: Refusal::Rule(TransactionError::IntrinsicGasTooLow { needed, .. }),
        } => Some(needed),
        other => panic!("{other}"),
    }
}

/// What the EVM asks for a cold read.
fn price(key: StateKey, refund_to: Address) -> u64 {
    match key {
        StateKey::Slot(LEDGER | PARAMETERS | CALLBACKS | ACCOUNTS | SCHEDULE_SERVICE, _) => 2_100,
        StateKey::Account(account) if account == refund_to => 2_600,
        StateKey::Body(_) => 2_600,
        _ => 0,
    }
}
