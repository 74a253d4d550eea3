//! Plays a history on the chain and on the model, and compares them after every block.

use super::{
    act::{Act, Doing, SCRIPTED, script, scripted_code},
    model::{Event, Job, Model, Now, Ran, TARGETS},
    plan::{ActPlan, BlockPlan, PEOPLE, TransactionPlan, settle},
};
use crate::support::{cron::*, *};
use alloy_consensus::TxEip1559;
use alloy_primitives::{Address, Bytes, Log, TxKind, U256};
use alloy_sol_types::{SolCall, SolInterface};
use almanac_exec::{BlockInput, Environment};
use almanac_primitives::{
    Genesis, Outcome, Receipt, TimestampMs, UserTransaction, Wei,
    addresses::{CRON_REGISTRY, DEVELOPER, DEVELOPER_DOOR, PARAMETERS},
    genesis::Allocation,
    params::Parameter,
};
use std::collections::BTreeMap;

alloy_sol_types::sol!("../../contracts/IParameters.sol");
alloy_sol_types::sol!("../../contracts/IDeveloper.sol");

const TIP: u64 = 1_000_000_000;
const TRANSACTION_GAS: u64 = 5_000_000;

/// Plays a history and answers with what happened in it.
pub fn play(plans: &[BlockPlan], care: Care) -> BTreeMap<&'static str, u64> {
    let mut chain = TestChain::from_genesis(&genesis_of_model());
    let mut model =
        Model::new(accounts().into_iter().map(|account| (account, chain.balance(account))).collect());
    for plan in plans {
        play_block(&mut chain, &mut model, plan, care);
        // Time that passes is an operation, too.
        model.saw("operations");
    }
    for id in model.ever.clone() {
        compare_job(&chain, &model, U256::from(id));
    }
    if care == Care::Full {
        chain.replay();
    }
    model.seen
}

/// How much is checked beside what the model says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Care {
    /// Every block is built and verified twice, and all are replayed.
    Full,
    /// Every block is executed once.
    Once,
}

/// Something that a transaction does.
#[derive(Clone, Debug)]
enum Deed {
    Direct(Person, Doing),
    Script(Person, Vec<Act>),
    Parameter(Parameter, u64),
    BaseFee(u64),
}

fn people() -> Vec<Person> {
    (0..PEOPLE).map(person).collect()
}

/// Who owns the parameters.
fn governor() -> Person {
    person(PEOPLE)
}

fn accounts() -> Vec<Address> {
    let people = people().into_iter().chain([governor()]).map(|person| person.address);
    people.chain(TARGETS).chain([DEVELOPER, FEE_RECIPIENT]).collect()
}

fn genesis_of_model() -> Genesis {
    let mut genesis = Genesis { governance: governor().address, ..developer_genesis() };
    let balance = Wei(U256::from(10).pow(U256::from(30)));
    for person in people() {
        genesis.allocations.get_mut(&person.address).unwrap().balance = balance;
    }
    let scripted = Allocation { balance, code: scripted_code(), ..Default::default() };
    genesis.allocations.insert(SCRIPTED, scripted);
    genesis
}

fn play_block(chain: &mut TestChain, model: &mut Model, plan: &BlockPlan, care: Care) {
    let input = chain.input_at(TimestampMs(plan.wait.end(chain.head.timestamp.0)));
    let environment = Environment::derive(&input, &chain.state).unwrap();
    let base_fee = u64::try_from(environment.base_fee.0).unwrap();
    let now = Now { number: environment.number, milliseconds: input.timestamp.0, base_fee };

    // A rehearsal: ids and what people know of each other do not depend on gas.
    let mut rehearsal = model.clone();
    let (_, ran) = open_block(&mut rehearsal, now, |gas, _| gas);
    let deeds = rehearse(&mut rehearsal, plan, now, 1 + ran.len());

    let transactions = transactions(chain, &deeds, now);
    let receipts = execute_block(chain, &input, transactions, care);
    let expected_burned = model.burned;
    compare_block(chain, model, now, &deeds, &receipts);
    let burned = chain.outputs.last().unwrap().burned.0;
    assert_eq!(model.burned - expected_burned, burned, "burned");
    compare_state(chain, model, now);
}

/// The chain's part of a block: who is told what at its start, and the runs.
fn open_block(
    model: &mut Model,
    now: Now,
    mut gas_used: impl FnMut(u64, usize) -> u64,
) -> (Vec<Event>, Vec<Ran>) {
    let (events, chosen) = model.open(now);
    let mut ran = Vec::new();
    for id in chosen {
        model.enter(1 + ran.len());
        let nth = ran.len();
        ran.extend(model.run(id, now, |gas| gas_used(gas, nth)));
    }
    (events, ran)
}

fn rehearse(model: &mut Model, plan: &BlockPlan, now: Now, first_index: usize) -> Vec<Deed> {
    let mut deeds = Vec::new();
    for (n, plan) in plan.transactions.iter().enumerate() {
        model.enter(first_index + n);
        let deed = match plan {
            TransactionPlan::Direct(who, doing) => {
                let person = person(*who);
                Deed::Direct(person, settle(doing, person.address, None, model, now))
            }
            TransactionPlan::Script(who, acts) => {
                Deed::Script(person(*who), settle_acts_in_order(acts, model, now))
            }
            TransactionPlan::Parameter(parameter, value) => Deed::Parameter(*parameter, *value),
            TransactionPlan::BaseFee(base_fee) => Deed::BaseFee(*base_fee),
        };
        model.enter(first_index + n);
        let _ = perform(model, &deed, now);
        deeds.push(deed);
    }
    deeds
}

/// Each act of a script in a transaction is settled when those before it are done.
fn settle_acts_in_order(plans: &[ActPlan], model: &Model, now: Now) -> Vec<Act> {
    let mut model = model.clone();
    let mut acts = Vec::new();
    for plan in plans {
        let act = Act { doing: settle(&plan.0, SCRIPTED, None, &model, now), is_tolerated: plan.1 };
        let _ = model.act(SCRIPTED, &act.doing, now);
        acts.push(act);
    }
    acts
}

/// What a transaction does to the model: events, or the name of the error.
fn perform(model: &mut Model, deed: &Deed, now: Now) -> Result<Vec<Event>, &'static str> {
    match deed {
        Deed::Direct(person, doing) => {
            let done = model.act(person.address, doing, now);
            done.map(|event| event.into_iter().collect())
        }
        Deed::Script(_, acts) => {
            let (before, mut events) = (model.clone(), Vec::new());
            if model.script(acts, now, &mut events) {
                return Ok(events);
            }
            model.undo(before);
            Err("")
        }
        Deed::Parameter(parameter, value) => {
            let rules = &mut model.rules_next;
            match parameter.name {
                "cron_enabled" => rules.is_enabled = *value == 1,
                "cron_paused" => rules.is_paused = *value == 1,
                "cron_interval_seconds_min" => rules.interval_min = *value,
                "cron_run_gas_max" => rules.run_gas_max = *value,
                "cron_block_gas_max" => rules.block_gas = *value,
                "cron_block_exhaustions_max" => rules.exhaustions_max = *value,
                unknown => panic!("{unknown}"),
            }
            Ok(Vec::new())
        }
        Deed::BaseFee(_) => Ok(Vec::new()),
    }
}

fn sender(deed: &Deed) -> Address {
    match deed {
        Deed::Direct(person, _) | Deed::Script(person, _) => person.address,
        Deed::Parameter(..) => governor().address,
        Deed::BaseFee(_) => DEVELOPER,
    }
}

/// Nobody signs: that would be most of the time that a history takes.
fn transactions(chain: &TestChain, deeds: &[Deed], now: Now) -> Vec<UserTransaction> {
    let mut nonces = BTreeMap::new();
    let mut transactions = Vec::new();
    for deed in deeds {
        let (to, value, input): (_, _, Bytes) = match deed {
            Deed::Direct(_, doing) => (doing.target(), doing.value(), doing.data()),
            Deed::Script(_, acts) => (SCRIPTED, U256::ZERO, script(acts)),
            Deed::Parameter(parameter, value) => {
                let call = IParameters::setCall { name: parameter.name_word(), value: U256::from(*value) };
                (PARAMETERS, U256::ZERO, call.abi_encode().into())
            }
            Deed::BaseFee(base_fee) => {
                let call = IDeveloper::setNextBaseFeeCall { baseFee: U256::from(*base_fee) };
                (DEVELOPER_DOOR, U256::ZERO, call.abi_encode().into())
            }
        };
        let from = sender(deed);
        let nonce = nonces.entry(from).or_insert_with(|| chain.nonce(from));
        transactions.push(impersonate(
            from,
            TxEip1559 {
                value,
                max_fee_per_gas: (now.base_fee + TIP).into(),
                ..eip1559(*nonce, TxKind::Call(to), 0, input, TRANSACTION_GAS)
            },
        ));
        *nonce += 1;
    }
    transactions
}

fn execute_block(
    chain: &mut TestChain,
    input: &BlockInput,
    transactions: Vec<UserTransaction>,
    care: Care,
) -> Vec<Receipt> {
    let produced = match care {
        Care::Full => chain.produce_with(input, transactions),
        Care::Once => chain.produce_once(input, transactions),
    };
    assert_eq!(produced.refused, [], "every transaction fits");
    produced.output.receipts
}

fn compare_block(chain: &TestChain, model: &mut Model, now: Now, deeds: &[Deed], receipts: &[Receipt]) {
    let (prologue, rest) = receipts.split_first().unwrap();
    let run_count = rest.len() - deeds.len();
    let (run_receipts, deed_receipts) = rest.split_at(run_count);

    let (events, ran) = open_block(model, now, |_, nth| {
        run_receipts.get(nth).map_or_else(|| panic!("run {nth} did not take place"), |run| run.gas_used.0)
    });
    assert_eq!(told(&prologue.logs), events, "the start of block {}", now.number);
    let really_ran: Vec<_> = run_receipts.iter().map(as_ran).collect();
    assert_eq!(really_ran, ran, "the runs of block {}", now.number);

    for (n, (deed, receipt)) in deeds.iter().zip(deed_receipts).enumerate() {
        model.enter(1 + run_count + n);
        model.saw("operations");
        let expected = perform(model, deed, now);
        let really = match &receipt.outcome {
            Outcome::Success => Ok(told(&receipt.logs)),
            Outcome::Reverted(reason) => Err(error_name(reason)),
            Outcome::Halted(halt) => panic!("{deed:?} was stopped: {halt:?}"),
        };
        if let Deed::Script(_, acts) = deed {
            assert_eq!(really.is_ok(), expected.is_ok(), "{deed:?}");
            (1..acts.len()).for_each(|_| model.saw("operations"));
        }
        match expected {
            Ok(events) => assert_eq!(really, Ok(events), "{deed:?}"),
            Err("" | "Fail") => assert!(really.is_err(), "{deed:?}"),
            Err(name) => assert_eq!(really, Err(name.into()), "{deed:?}"),
        }
        pay_fee(model, sender(deed), receipt, now);
    }
    assert_eq!(chain.head.number, now.number);
}

fn pay_fee(model: &mut Model, sender: Address, receipt: &Receipt, now: Now) {
    let gas = U256::from(receipt.gas_used.0);
    let (burned, tip) = (gas * U256::from(now.base_fee), gas * U256::from(TIP));
    *model.balances.get_mut(&sender).unwrap() -= burned + tip;
    *model.balances.get_mut(&FEE_RECIPIENT).unwrap() += tip;
    model.burned += burned;
}

fn as_ran(receipt: &Receipt) -> Ran {
    let reference = receipt.schedule_ref.expect("a run");
    Ran {
        id: reference.schedule.0,
        number: reference.number,
        is_success: receipt.outcome.is_success(),
        events: told(&receipt.logs),
    }
}

/// What the registry told in logs.
fn told(logs: &[Log]) -> Vec<Event> {
    use ICronRegistry::ICronRegistryEvents as Told;
    let id = |id: U256| id.to::<u64>();
    let ours = logs.iter().filter(|log| log.address == CRON_REGISTRY);
    let event = |log: &Log| match <Told as alloy_sol_types::SolEventInterface>::decode_raw_log(
        log.topics(),
        &log.data.data,
    )
    .unwrap()
    {
        Told::JobScheduled(e) => {
            Event::Scheduled { id: id(e.id), owner: e.owner, target: e.target, at: e.nextRunAt }
        }
        Told::JobExecuted(e) => {
            Event::Executed { id: id(e.id), is_success: e.success, gas_used: e.gasUsed.to() }
        }
        Told::JobCancelled(e) => Event::Cancelled { id: id(e.id), owner: e.owner, refunded: e.refunded },
        Told::JobToppedUp(e) => Event::ToppedUp { id: id(e.id), amount: e.amount, total: e.totalEscrow },
        Told::JobExhausted(e) => Event::Exhausted { id: id(e.id), reason: e.reason },
    };
    ours.map(event).collect()
}

fn error_name(reason: &[u8]) -> String {
    CronError::abi_decode(reason).map_or_else(
        |_| String::new(),
        |error| format!("{error:?}").split('(').next().unwrap_or_default().to_owned(),
    )
}

/// Compares everything that outlasts the block.
fn compare_state(chain: &TestChain, model: &Model, now: Now) {
    for (account, balance) in &model.balances {
        assert_eq!(chain.balance(*account), *balance, "balance of {account} in block {}", now.number);
    }
    let mut jobs: Vec<_> = model.jobs.iter().collect();
    jobs.sort_unstable_by_key(|job| job.id);
    let records = ledger::records(&chain.state);
    let really: Vec<_> = records
        .iter()
        .map(|record| (record.id.0, record.head.due.0, record.head.runs, record.escrow.0))
        .collect();
    let expected: Vec<_> = jobs.iter().map(|job| (job.id, job.at * 1_000, job.runs, job.escrow)).collect();
    assert_eq!(really, expected, "the jobs after block {}", now.number);
    // A call costs as much as a block, so one job is asked for, another one each time.
    if let Some(id) = model.ever.get(now.number as usize % model.ever.len().max(1)) {
        compare_job(chain, model, U256::from(*id));
    }
}

/// What `getJob` says of a job, dead or alive.
fn compare_job(chain: &TestChain, model: &Model, id: U256) {
    let told = chain.job(id);
    let Some(job) = model.job(id) else {
        assert_eq!((told.id, told.owner, told.gasEscrow), (U256::ZERO, Address::ZERO, U256::ZERO));
        return;
    };
    let Job { owner, at, interval, runs_max, gas, runs, escrow, .. } = *job;
    let number = U256::from::<u64>;
    assert_eq!(
        (told.id, told.owner, told.target, told.nextRunAt, told.intervalSec, told.maxRuns),
        (id, owner, job.order.target, number(at), number(interval), number(runs_max))
    );
    assert_eq!(told.runsLeft, number(runs_max.saturating_sub(runs)));
    assert_eq!((told.gasLimit, told.gasEscrow), (number(gas), escrow));
    assert_eq!([told.selector.as_slice(), &told.args].concat(), job.order.data.to_vec());
}
