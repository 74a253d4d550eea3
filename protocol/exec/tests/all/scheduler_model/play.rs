//! Plays a history on the chain and on the model, and compares them after every block.

use super::{
    act::{Act, Doing, SCRIPTED, script, scripted_code},
    compare::{compare_block, compare_job, compare_state},
    model::{Event, Model, Now, Ran, TARGETS},
    plan::{ActPlan, BlockPlan, PEOPLE, TransactionPlan, settle},
};
use crate::support::*;
use alloy_consensus::TxEip1559;
use alloy_primitives::{Address, Bytes, TxKind, U256};
use alloy_sol_types::SolCall;
use almanac_exec::{BlockInput, Environment};
use almanac_primitives::{
    Genesis, Receipt, TimestampMs, UserTransaction, Wei,
    addresses::{DEVELOPER, DEVELOPER_DOOR, PARAMETERS},
    genesis::Allocation,
    params::Parameter,
};
use std::{collections::BTreeMap, sync::LazyLock};

alloy_sol_types::sol!("../../contracts/IParameters.sol");
alloy_sol_types::sol!("../../contracts/IDeveloper.sol");

pub const TIP: u64 = 1_000_000_000;
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
pub enum Deed {
    Direct(Address, Doing),
    Script(Address, Vec<Act>),
    Parameter(Parameter, u64),
    BaseFee(u64),
}

/// People, and behind them who owns the parameters. Kept, since to make a person is to sign something.
static PEOPLE_AND_GOVERNOR: LazyLock<Vec<Address>> =
    LazyLock::new(|| (0..=PEOPLE).map(|n| person(n).address).collect());

fn citizen(n: u64) -> Address {
    PEOPLE_AND_GOVERNOR[usize::try_from(n).unwrap()]
}

fn governor() -> Address {
    citizen(PEOPLE)
}

fn accounts() -> Vec<Address> {
    PEOPLE_AND_GOVERNOR.iter().copied().chain(TARGETS).chain([DEVELOPER, FEE_RECIPIENT]).collect()
}

fn genesis_of_model() -> Genesis {
    let mut genesis = Genesis { governance: governor(), ..developer_genesis() };
    let balance = Wei(U256::from(10).pow(U256::from(30)));
    for address in PEOPLE_AND_GOVERNOR.iter() {
        genesis.allocations.get_mut(address).unwrap().balance = balance;
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
pub fn open_block(
    model: &mut Model,
    now: Now,
    mut gas_used: impl FnMut(u64, usize) -> u64,
) -> (Vec<Event>, Vec<Ran>) {
    let (events, mut chosen) = model.open(now);
    let mut ran = Vec::new();
    while !chosen.is_empty() {
        let mut has_room_again = false;
        for (id, gas) in std::mem::take(&mut chosen) {
            model.enter(1 + ran.len());
            let nth = ran.len();
            match model.run(id, now, |gas| gas_used(gas, nth)) {
                Some(run) => ran.push(run),
                None => {
                    model.give_back(gas);
                    has_room_again = true;
                }
            }
        }
        if has_room_again {
            chosen = model.choose(now, &mut Vec::new());
        }
    }
    model.close();
    (events, ran)
}

fn rehearse(model: &mut Model, plan: &BlockPlan, now: Now, first_index: usize) -> Vec<Deed> {
    let mut deeds = Vec::new();
    for (n, plan) in plan.transactions.iter().enumerate() {
        model.enter(first_index + n);
        let deed = match plan {
            TransactionPlan::Direct(who, doing) => {
                Deed::Direct(citizen(*who), settle(doing, citizen(*who), None, model, now))
            }
            TransactionPlan::Script(who, acts) => {
                Deed::Script(citizen(*who), settle_acts_in_order(acts, model, now))
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
pub fn perform(model: &mut Model, deed: &Deed, now: Now) -> Result<Vec<Event>, &'static str> {
    match deed {
        Deed::Direct(who, doing) => {
            let done = model.act(*who, doing, now);
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

pub fn sender(deed: &Deed) -> Address {
    match deed {
        Deed::Direct(who, _) | Deed::Script(who, _) => *who,
        Deed::Parameter(..) => governor(),
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
