//! What a block tells of schedules: neutral events in order, each with the receipt of its transaction, and nothing of what
//! was reverted.

mod support;

use alloy_primitives::U256;
use almanac_exec::BlockOutput;
use almanac_primitives::{Gas, Lane, ScheduleId, TimestampMs, Wei, addresses::CRON_REGISTRY};
use almanac_schedule::{
    decide::End,
    life::{LifeEvent, What},
    record::Door,
};
use support::{contracts::*, cron::*, *};

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
    let mut chain = TestChain::new();
    let order = order(&chain);
    let (value, data) = (order.value, order.calldata());
    let through = to(CRON_REGISTRY, &data);
    let produced = chain.produce(vec![
        paid_call(person(0), 0, CRON_REGISTRY, value, data.clone()),
        paid_call(person(1), 0, FORWARDER, value, to(FORWARD_AND_REVERT, &through)),
        paid_call(person(2), 0, FORWARD_AND_REVERT, value, through.clone()),
        paid_call(person(3), 0, FORWARDER, value, through),
    ]);
    let outcomes = [0, 1, 2, 3].map(|n| produced.receipt(n).outcome.is_success());
    assert_eq!(outcomes, [true, true, false, true]);
    let due = Some(TimestampMs(order.next_run_at.to::<u64>() * 1_000));
    let created = |owner| What::Created { owner, target: COUNTER, lane: Lane::Cron, due };
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
            (1, id, What::Executed { is_success: true, gas_used }),
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
