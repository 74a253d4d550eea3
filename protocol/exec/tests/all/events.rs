//! What a block tells of schedules: neutral events in order, each with the receipt of its transaction, and nothing of what
//! was reverted.

use crate::support::{contracts::*, cron::*, *};
use alloy_primitives::{Address, U256, address, hex};
use almanac_exec::BlockOutput;
use almanac_primitives::{
    Gas, Lane, ScheduleId, TimestampMs, Wei, addresses::CRON_REGISTRY, genesis::Allocation,
};
use almanac_schedule::{
    decide::End,
    life::{LifeEvent, What},
    record::Door,
};

/// Calls the address in the first word with the rest of the calldata and all value, and does not mind if that fails.
const TRIER: Address = address!("0x00000000000000000000000000000000000d0002");
/// PUSH1 32 CALLDATASIZE SUB, DUP1 PUSH1 32 PUSH0 CALLDATACOPY, PUSH0 PUSH0 DUP3 PUSH0 CALLVALUE PUSH0 CALLDATALOAD GAS
/// CALL, STOP
const TRIER_CODE: [u8; 19] = hex!("602036038060205f375f5f825f345f355af100");

/// What happened, with receipt index and schedule.
fn told(output: &BlockOutput) -> Vec<(usize, ScheduleId, What)> {
    let told = |LifeEvent { index, event }: &LifeEvent| {
        assert_eq!(event.door, Some(Door::Cron));
        (*index, event.id, event.what.clone())
    };
    output.events.iter().map(told).collect()
}

fn made(block: u64, index: u32, nth: u16) -> ScheduleId {
    ScheduleId::new(block, index, nth).unwrap()
}

/// A call inside of a call reverts, and the transaction goes on: what the inner one made was never made.
#[test]
fn nothing_is_told_of_what_was_reverted() {
    let mut genesis = genesis();
    genesis.allocations.insert(TRIER, Allocation { code: TRIER_CODE.into(), ..Allocation::default() });
    let mut chain = TestChain::from_genesis(&genesis);
    let order = order(&chain);
    let (value, data) = (order.value, order.calldata());
    let through = to(CRON_REGISTRY, &data);
    let produced = chain.produce(vec![
        paid_call(person(0), 0, CRON_REGISTRY, value, data),
        paid_call(person(1), 0, TRIER, value, to(FORWARD_AND_REVERT, &through)),
        paid_call(person(2), 0, FORWARD_AND_REVERT, value, through.clone()),
        paid_call(person(3), 0, FORWARDER, value, through),
    ]);
    let outcomes = [0, 1, 2, 3].map(|n| produced.receipt(n).outcome.is_success());
    assert_eq!(outcomes, [true, true, false, true]);
    let due = Some(TimestampMs(order.next_run_at.to::<u64>() * 1_000));
    let created = |owner| What::Created {
        owner,
        target: COUNTER,
        lane: Lane::Cron,
        due,
        gas_limit: Gas(RUN_GAS),
        priority: 0,
    };
    assert_eq!(
        told(&produced.output),
        [(1, made(1, 1, 0), created(person(0).address)), (4, made(1, 4, 0), created(FORWARDER))]
    );
    chain.replay();
}

#[test]
fn a_life_is_told_step_by_step_with_its_receipts() {
    let mut chain = TestChain::new();
    let due = chain.next_seconds() + 3;
    let order = order(&chain).at(due).runs(1).every(MINUTE);
    let (value, alice) = (order.value, person(0));
    let id = made(1, 1, 0);
    chain.produce(vec![paid_call(alice, 0, CRON_REGISTRY, value, order.calldata())]);
    let top_up = paid_call(alice, 1, CRON_REGISTRY, U256::from(5), top_up_data(U256::from(id.0)));
    let escrow = Wei(value + U256::from(5));
    assert_eq!(
        told(&chain.produce(vec![top_up]).output),
        [(1, id, What::ToppedUp { amount: Wei(U256::from(5)), escrow })]
    );
    assert_eq!(told(&chain.produce(vec![]).output), [], "nothing happens");

    let output = chain.produce(vec![]).output;
    let charge = Gas(RUN_GAS).cost(base_fee(&output));
    let gas_used = output.receipts[1].gas_used;
    assert_eq!(
        told(&output),
        [
            (1, id, What::Executed { is_success: true, gas_used, fee: charge }),
            (
                1,
                id,
                What::Ended {
                    end: End::RunsReached,
                    owner: alice.address,
                    refunded: Wei(escrow.0 - charge.0)
                }
            ),
        ]
    );
    chain.replay();
}
