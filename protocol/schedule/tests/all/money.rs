//! Who gets what, door by door: the table of money as a test. A new door does not compile without its rows.

use alloy_primitives::{Address, Bytes, U256};
use almanac_primitives::{
    Gas, GasPrice, Lane, Outcome, RunTransaction, ScheduleId, ScheduleRef, TimestampMs, Wei,
};
use almanac_schedule::{
    Record,
    cron::Charge,
    decide::{Decision, End, Moment, RunEnd, Settlement, decide},
    doors::{Door, Terms},
    testing,
};

const BASE_FEE: GasPrice = GasPrice(7);
const GAS: Gas = Gas(1_001);
const CHARGE: u64 = 7_007;
/// What is left of the escrow when it ends.
const LEFT: u64 = 12_345;

/// What happens to the money of a schedule.
#[derive(Clone, Copy, Debug)]
enum When {
    /// A run used so much gas, and its charge is divided.
    Run { gas_used: u64 },
    /// It ends, and what is left of its escrow is divided.
    Ends(End),
}

/// A row of the table.
struct Row {
    record: Record,
    when: When,
    burn: u64,
    fee_recipient: u64,
    refund: u64,
}

fn rows(door: Door) -> Vec<Row> {
    match door {
        Door::Cron => {
            let row = |charge, when, burn, refund| Row {
                record: job(charge),
                when,
                burn,
                fee_recipient: 0,
                refund,
            };
            let runs = [
                // The whole limit at the base fee, whatever was used.
                row(Charge::GasLimit, When::Run { gas_used: 1_001 }, CHARGE, 0),
                row(Charge::GasLimit, When::Run { gas_used: 0 }, CHARGE, 0),
                // What was used, and at least half of the charge; an odd wei is burned.
                row(Charge::GasUsed, When::Run { gas_used: 1_001 }, CHARGE, 0),
                row(Charge::GasUsed, When::Run { gas_used: 1_000 }, 7_000, 7),
                row(Charge::GasUsed, When::Run { gas_used: 501 }, 3_507, 3_500),
                row(Charge::GasUsed, When::Run { gas_used: 500 }, 3_504, 3_503),
                row(Charge::GasUsed, When::Run { gas_used: 0 }, 3_504, 3_503),
            ];
            // Whatever the reason: the owner paid for runs that do not come.
            let ends = End::ALL.map(|end| row(Charge::GasLimit, When::Ends(end), 0, LEFT));
            runs.into_iter().chain(ends).collect()
        }
    }
}

fn job(charge: Charge) -> Record {
    let run = RunTransaction {
        schedule_ref: ScheduleRef { schedule: ScheduleId(1), number: 0 },
        lane: Lane::Cron,
        from: Address::repeat_byte(1),
        to: Address::repeat_byte(2),
        value: Wei::ZERO,
        input: Bytes::new(),
        gas_limit: GAS,
        gas_price: BASE_FEE,
    };
    let mut record = testing::record(TimestampMs(1_000), &run);
    let Terms::Cron(terms) = &mut record.body.terms;
    terms.charge = charge;
    record
}

fn moment() -> Moment {
    let now = TimestampMs(1_000);
    let fee_recipient = Address::repeat_byte(3);
    Moment { block: 9, now, base_fee: BASE_FEE, fee_recipient, ended_kept_until: 1_009 }
}

fn wei(amount: u64) -> Wei {
    Wei(U256::from(amount))
}

fn divided(record: &Record, when: When) -> (Wei, Settlement) {
    match when {
        When::Run { gas_used } => {
            let Decision::Run { charge, .. } = decide(record, moment()) else { panic!("it runs") };
            assert_eq!(charge, wei(CHARGE), "the charge before the call");
            let ended = RunEnd { outcome: &Outcome::Success, gas_used: Gas(gas_used) };
            (charge, record.body.terms.settle_run(record, charge, ended, moment()))
        }
        When::Ends(end) => {
            let left = Record { escrow: wei(LEFT), ..record.clone() };
            (left.escrow, left.body.terms.settle_end(&left, end))
        }
    }
}

#[test]
fn every_wei_goes_where_the_table_says() {
    for door in Door::ALL {
        let rows = rows(door);
        for Row { record, when, burn, fee_recipient, refund } in &rows {
            let expected =
                Settlement { burn: wei(*burn), fee_recipient: wei(*fee_recipient), refund: wei(*refund) };
            let (amount, settlement) = divided(record, *when);
            assert_eq!(settlement, expected, "{}: {when:?}", door.name());
            assert_eq!(settlement.total(), Some(amount), "{}: {when:?}", door.name());
        }
        for end in End::ALL {
            let is_there = rows.iter().any(|row| matches!(row.when, When::Ends(other) if other == end));
            assert!(is_there, "{}: a row for {end:?}", door.name());
        }
    }
}
