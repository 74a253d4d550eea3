//! Who gets what, door by door: the table of money as a test. A new door does not compile without its rows.

use alloy_primitives::{Address, Bytes, U256};
use almanac_primitives::{
    Gas, GasPrice, Lane, Outcome, RunTransaction, ScheduleId, ScheduleRef, TimestampMs, Wei,
};
use almanac_schedule::{
    Record,
    callback::{CallbackTerms, Priority},
    capacity::Shares,
    cron::Charge,
    decide::{Decision, End, Moment, RunEnd, Settlement, decide},
    doors::{Door, Terms},
    market::BidTerms,
    record::{Head, Status},
    signed::SignedTerms,
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
    /// How long after its due time.
    late_ms: u64,
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
                late_ms: 0,
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
        Door::Callback => callback_rows(),
        Door::Market => market_rows(),
        Door::Signed => signed_rows(),
    }
}

/// The base part pays the block, the premium burns; half returns on cancel, and all of it where the chain is at fault.
fn callback_rows() -> Vec<Row> {
    let (high, low) = (callback(Priority::High, Status::Pending), callback(Priority::Low, Status::Pending));
    let aside = callback(Priority::Medium, Status::Quarantined);
    let row = |record: &Record, late_ms, when, [burn, fee_recipient, refund]: [u64; 3]| Row {
        record: record.clone(),
        late_ms,
        when,
        burn,
        fee_recipient,
        refund,
    };
    let (run, cancel) = (When::Run { gas_used: 9 }, When::Ends(End::Cancelled));
    let on_time = [FEE - BASE_PART, BASE_PART, 0];
    let halves = [LEFT / 2 + 1, 0, LEFT / 2];
    let mut rows = vec![
        row(&high, 0, run, on_time),
        row(&high, 60_000, run, on_time),
        row(&high, 60_001, run, [0, 0, FEE]),
        row(&low, 60_001, run, on_time),
        row(&high, 0, cancel, halves),
        row(&high, 60_000, cancel, halves),
        row(&high, 60_001, cancel, [0, 0, LEFT]),
        row(&low, 60_001, cancel, halves),
        row(&aside, 0, cancel, [0, 0, LEFT]),
    ];
    let others = End::ALL.into_iter().filter(|end| *end != End::Cancelled);
    rows.extend(others.map(|end| row(&high, 0, When::Ends(end), [0, 0, LEFT])));
    rows
}

/// The gas used burns at the price of the block, all else returns; whatever ends it without a run, all of it returns.
fn market_rows() -> Vec<Row> {
    let row = |status, when, burn, refund| Row {
        record: bidding(status),
        late_ms: 0,
        when,
        burn,
        fee_recipient: 0,
        refund,
    };
    let run = |gas_used, burn| {
        [Status::Pending, Status::Waiting]
            .map(|status| row(status, When::Run { gas_used }, burn, BID * GAS.0 - burn))
    };
    // The table's price is 7.
    let runs = [run(1_001, 7_007), run(1_000, 7_000), run(1, 7), run(0, 0)].into_iter().flatten();
    let ends = End::ALL.into_iter().flat_map(|end| {
        [Status::Pending, Status::Waiting, Status::Quarantined]
            .map(|status| row(status, When::Ends(end), 0, LEFT))
    });
    runs.chain(ends).collect()
}

/// The gas used burns, the rest returns to the payer. What was prepaid for a second is divided as for a callback: half of
/// it returns where the second is not used.
fn signed_rows() -> Vec<Row> {
    let row = |record: &Record, when, [burn, fee_recipient, refund]: [u64; 3]| Row {
        record: record.clone(),
        late_ms: 0,
        when,
        burn,
        fee_recipient,
        refund,
    };
    let (plain, timed) = (signed(None), signed(Some(11)));
    let runs = [(1_001, 7_007), (1_000, 7_000), (0, 0)]
        .map(|(gas_used, burn)| row(&plain, When::Run { gas_used }, [burn, 0, CHARGE - burn]));
    let mut rows: Vec<_> = runs.into_iter().collect();
    rows.extend(End::ALL.map(|end| row(&plain, When::Ends(end), [0, 0, LEFT])));
    rows.push(row(&timed, When::Run { gas_used: 9 }, [FEE - BASE_PART, BASE_PART, 0]));
    rows.extend(End::ALL.map(|end| {
        let is_unused = matches!(end, End::Cancelled | End::Expired);
        let parts = if is_unused { [LEFT / 2 + 1, 0, LEFT / 2] } else { [0, 0, LEFT] };
        row(&timed, When::Ends(end), parts)
    }));
    rows
}

fn signed(effort: Option<u64>) -> Record {
    let mut record = job(Charge::GasLimit);
    let booked = effort.map(|effort| CallbackTerms {
        priority: Priority::Medium,
        effort,
        price: 7,
        refund_bps: 5_000,
    });
    record.head = Head { status: Status::Pending, lane: Lane::Signed, ..record.head };
    record.escrow = wei(if booked.is_some() { FEE } else { CHARGE });
    record.body.terms = Terms::Signed(SignedTerms {
        payer: None,
        admin_key: Bytes::new(),
        max_fee_per_gas: U256::MAX,
        memo: "rent".to_owned(),
        nonce: 1,
        execution_time: 0,
        round: 0,
        identity: alloy_primitives::B256::repeat_byte(5),
        booked,
    });
    record
}

/// What it pays per gas at most.
const BID: u64 = 9;

fn bidding(status: Status) -> Record {
    let mut record = job(Charge::GasLimit);
    record.head = Head { status, lane: Lane::Market, priority: BID, ..record.head };
    let txn_id = alloy_primitives::B256::repeat_byte(4);
    record.body.terms =
        Terms::Market(BidTerms { scheduled_ms: 1_000, bid: BID, expiry_blocks: 100, epoch: 0, txn_id });
    record.escrow = wei(BID * GAS.0);
    record
}

/// AIP125-15: the price is the highest of the block's user transactions, between the base fee and the bid.
#[test]
fn aip125_15_the_price_is_between_the_base_fee_and_the_bid() {
    let terms = bidding(Status::Pending).body.terms;
    let price = |top| terms.price_at_end(BASE_FEE, GasPrice(top));
    let expected = [(0, 7), (6, 7), (7, 7), (8, 8), (9, 9), (10, 9), (u128::MAX, 9)];
    for (top, paid) in expected {
        assert_eq!(price(top), Some(GasPrice(paid)), "top {top}");
    }
}

/// AIP125-15: one below the base fee waits.
#[test]
fn aip125_15_a_bid_below_the_base_fee_waits() {
    let record = bidding(Status::Pending);
    let at = |base_fee| decide(&record, Moment { base_fee: GasPrice(base_fee), ..moment(0) });
    assert!(matches!(at(9), Decision::Run { price: GasPrice(9), .. }), "GASPRICE is the base fee");
    assert_eq!(at(10), Decision::Wait);
}

/// Gas of 11 effort at 7 wei, and a fee that is no multiple of it.
const BASE_PART: u64 = 11 * 2_100 * 7;
const FEE: u64 = 10 * BASE_PART + 1;

fn callback(priority: Priority, status: Status) -> Record {
    let mut record = job(Charge::GasLimit);
    record.head = Head { status, lane: priority.lane(), priority: priority.rank(), ..record.head };
    record.escrow = wei(FEE);
    record.body.terms = Terms::Callback(CallbackTerms { priority, effort: 11, price: 7, refund_bps: 5_000 });
    record
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
    let Terms::Cron(terms) = &mut record.body.terms else { panic!("planted schedules are jobs") };
    terms.charge = charge;
    record
}

fn moment(late_ms: u64) -> Moment {
    Moment {
        block: 9,
        now: TimestampMs(1_000 + late_ms),
        base_fee: BASE_FEE,
        fee_recipient: Address::repeat_byte(3),
        // What is late was held up by the chain itself.
        held_until: TimestampMs(1_000 + late_ms),
        shares: Shares::DEFAULT,
        ended_kept_until: 1_009,
    }
}

fn wei(amount: u64) -> Wei {
    Wei(U256::from(amount))
}

fn divided(record: &Record, late_ms: u64, when: When) -> (Wei, Settlement) {
    let moment = moment(late_ms);
    match when {
        When::Run { gas_used } => {
            let Decision::Run { charge, .. } = decide(record, moment) else { panic!("it runs") };
            let expected = if record.body.door() == Door::Cron { wei(CHARGE) } else { record.escrow };
            assert_eq!(charge, expected, "the charge before the call");
            let ended = RunEnd {
                outcome: &Outcome::Success,
                gas_used: Gas(gas_used),
                price: BASE_FEE,
                place: Wei::ZERO,
            };
            (charge, record.body.terms.settle_run(record, charge, ended, moment))
        }
        When::Ends(end) => {
            let left = Record { escrow: wei(LEFT), ..record.clone() };
            (left.escrow, left.body.terms.settle_end(&left, end, moment))
        }
    }
}

#[test]
fn every_wei_goes_where_the_table_says() {
    for door in Door::ALL {
        let rows = rows(door);
        for Row { record, late_ms, when, burn, fee_recipient, refund } in &rows {
            let expected =
                Settlement { burn: wei(*burn), fee_recipient: wei(*fee_recipient), refund: wei(*refund) };
            let (amount, settlement) = divided(record, *late_ms, *when);
            assert_eq!(settlement, expected, "{}: {when:?}", door.name());
            assert_eq!(settlement.total(), Some(amount), "{}: {when:?}", door.name());
        }
        for end in End::ALL {
            let is_there = rows.iter().any(|row| matches!(row.when, When::Ends(other) if other == end));
            assert!(is_there, "{}: a row for {end:?}", door.name());
        }
    }
}

/// A callback is paid in full when it is created: no base fee takes its run away, and none gives it another.
#[test]
fn flip330_05_a_paid_callback_has_one_run_at_any_base_fee() {
    let record = callback(Priority::High, Status::Pending);
    for base_fee in [0, 1, u128::MAX].map(GasPrice) {
        assert_eq!((record.charge(base_fee), record.runway(base_fee)), (wei(FEE), 1));
    }
}
