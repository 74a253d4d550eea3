//! Writes booked callbacks into a state, with their room: a million by transactions would take minutes.

use crate::workload::WarmState;
use alloy_primitives::{Address, Bytes};
use alloy_sol_types::SolCall as _;
use almanac_primitives::{
    Gas, ScheduleId, StateKey, TimestampMs, Wei,
    addresses::{CALLBACKS, LEDGER},
    params::{EFFORT_GAS, Parameters},
    state::encode_slot,
};
use almanac_schedule::{
    Record,
    callback::{CallbackTerms, Priority},
    capacity::{self, Shares},
    ledger::MemoryLedger,
    record::{Body, Call, Head, LastRun, Status, Terms, Trigger},
    testing::plant,
};

alloy_sol_types::sol!("../../contracts/ICallbackHandler.sol");

/// Callbacks that are written at a time.
const CHUNK: usize = 20_000;

/// The lowest price of gas.
const PRICE: u64 = 1_000_000_000;

/// A callback to be booked.
#[derive(Clone, Copy)]
pub(crate) struct Booking {
    pub(crate) owner: Address,
    pub(crate) handler: Address,
    pub(crate) second: u64,
    pub(crate) priority: Priority,
    pub(crate) effort: u64,
}

/// The call that a handler gets.
pub(crate) fn handler_input(id: u64) -> Bytes {
    ICallbackHandler::executeCallbackCall { id, data: Bytes::new() }.abi_encode().into()
}

/// Books all of them; the first gets the id 1. Ids of the block that is measured are larger.
pub(crate) fn book_all(state: &mut WarmState, bookings: &[Booking]) {
    let (shares, mut ledger) = (Shares::of(&Parameters::default()), MemoryLedger::default());
    for Booking { second, priority, effort, .. } in bookings {
        let class = priority.class().expect("only what books room");
        capacity::book(&mut ledger, shares, *second, class, *effort).expect("there is room");
    }
    let slot = |(slot, word)| Some((StateKey::Slot(LEDGER, slot), encode_slot(word)?));
    state.put(ledger.slots.into_iter().filter_map(slot));
    let records: Vec<_> = (1..).zip(bookings).map(|(id, booking)| booking.record(id)).collect();
    for chunk in records.chunks(CHUNK) {
        let planted = plant(state, chunk);
        state.put(planted);
    }
}

impl Booking {
    fn record(&self, id: u64) -> Record {
        let Self { owner, handler, second, priority, effort } = *self;
        let terms = CallbackTerms { priority, effort, price: PRICE, refund_bps: 5_000 };
        let call = Call { from: CALLBACKS, to: handler, value: Wei::ZERO, input: handler_input(id) };
        Record {
            id: ScheduleId(id),
            head: Head {
                status: Status::Pending,
                lane: priority.lane(),
                last: LastRun::None,
                due: Some(TimestampMs::from_seconds(second).expect("a second of this century")),
                priority: priority.rank(),
                runs: 0,
                until: 0,
            },
            escrow: Wei(terms.base_part().0 * alloy_primitives::U256::from(10)),
            body: Body {
                owner,
                refund_to: owner,
                gas_limit: Gas(effort * EFFORT_GAS),
                trigger: Trigger::Time,
                terms: Terms::Callback(terms),
                calls: vec![call],
            },
        }
    }
}
