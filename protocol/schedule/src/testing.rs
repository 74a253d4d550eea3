//! Writes schedules into a state by hand, for tests of higher layers: schedules that no door creates yet.

use crate::{
    Calendar,
    calendar::Change,
    cron::{CatchUp, Charge, CronTerms},
    market::{BidTerms, Named},
    record::{
        Body, Call, Head, LastRun, Record, Status, Terms, Trigger, escrow_slot, head_slot, name_slot,
        name_word,
    },
};
use alloy_primitives::{Address, Bytes, U256};
use almanac_primitives::{
    Account, Lane, RunTransaction, StateKey, StateRead, TimestampMs, Wei, addresses::LEDGER,
    state::encode_slot,
};

/// Receives the refunds of planted schedules, so that no other balance changes.
pub const REFUNDED: Address = Address::repeat_byte(0xfd);

/// Escrow per unit of a planted schedule's gas: more than any test's base fee.
const ESCROW_PER_GAS: u64 = 1_000_000_000_000;

/// Blocks that a planted market run waits for a price.
const EXPIRY_BLOCKS: u32 = 100;

/// A schedule that makes this run once it is due, and then ends. In the market lane, the run's price is its
/// bid, and the escrow holds the value.
pub fn record(due: TimestampMs, run: &RunTransaction) -> Record {
    let is_market = run.lane == Lane::Market;
    let bid = if is_market { u64::try_from(run.gas_price.0).unwrap() } else { 0 };
    let cron = Terms::Cron(CronTerms {
        interval_ms: None,
        runs_max: None,
        catch_up: CatchUp::All,
        charge: Charge::GasLimit,
    });
    let (terms, escrow) = match is_market {
        true => (bid_terms(due, run, bid), run.gas_limit.cost(run.gas_price).0 + run.value.0),
        false => (cron, U256::from(run.gas_limit.0) * U256::from(ESCROW_PER_GAS)),
    };
    let call = Call { from: run.from, to: run.to, value: run.value, input: run.input.clone() };
    Record {
        id: run.schedule_ref.schedule,
        head: Head {
            status: Status::Pending,
            lane: run.lane,
            last: LastRun::None,
            due: Some(due),
            priority: bid,
            runs: u32::try_from(run.schedule_ref.number).unwrap(),
            until: 0,
        },
        escrow: Wei(escrow),
        body: Body {
            owner: run.from,
            refund_to: REFUNDED,
            gas_limit: run.gas_limit,
            trigger: Trigger::Time,
            terms,
            calls: vec![call],
        },
    }
}

fn bid_terms(due: TimestampMs, run: &RunTransaction, bid: u64) -> Terms {
    let named = Named {
        id: run.schedule_ref.schedule,
        sender: run.from,
        scheduled_ms: due.0,
        gas_limit: run.gas_limit,
        bid,
        passes_signer: true,
        to: run.to,
        value: run.value,
        input: &run.input,
        expiry_blocks: EXPIRY_BLOCKS,
    };
    let (scheduled_ms, expiry_blocks, txn_id) = (due.0, EXPIRY_BLOCKS, named.txn_id());
    Terms::Market(BidTerms { scheduled_ms, bid, expiry_blocks, epoch: 0, txn_id })
}

/// The state changes that add these schedules, including their money in the ledger.
pub fn plant(state: &dyn StateRead, records: &[Record]) -> Vec<(StateKey, Bytes)> {
    let account = state.read(StateKey::Account(LEDGER)).unwrap();
    let mut account = account.map_or_else(Account::default, |account| Account::decode(&account).unwrap());
    let mut planted = Vec::new();
    for record in records {
        account.balance += record.escrow.0;
        let slots =
            [(head_slot(record.id), record.full_head().to_word()), (escrow_slot(record.id), record.escrow.0)];
        let name = record.body.terms.hash_name().map(|name| (name_slot(name), name_word(record.id)));
        planted.extend(
            slots
                .into_iter()
                .chain(name)
                .filter_map(|(slot, word)| Some((StateKey::Slot(LEDGER, slot), encode_slot(word)?))),
        );
        planted.push((StateKey::Body(record.id), record.body.encode()));
    }
    planted.push((StateKey::Account(LEDGER), account.encode()));
    let entries = records.iter().flat_map(|record| record.head.entries(record.id));
    let changes: Vec<_> = entries.map(Change::Insert).collect();
    let nodes = Calendar::new(state).apply(&changes).unwrap();
    planted.extend(nodes.into_iter().map(|change| (change.key, change.new.expect("nothing is removed"))));
    planted
}
