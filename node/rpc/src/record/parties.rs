//! What the parties of a signed schedule paid for its run, and what they got back (HEDERA-15).
//!
//! Funds are money of the ledger. What the ledger itself paid is added with that of other runs.

use super::{terms, transfers::Sums};
use almanac_index::{HistoricalState, KnownSchedule};
use almanac_primitives::{ScheduleId, StateReadError, Wei, addresses::LEDGER};
use almanac_schedule::{
    life::{LifeEvent, What},
    signed::{Payer, Tally, loans},
};

/// Adds what the parties of a run paid. `state` is that after its block.
pub(super) fn add(
    sums: &mut Sums,
    id: ScheduleId,
    index: usize,
    known: &KnownSchedule,
    events: &[LifeEvent],
    state: &HistoricalState,
) -> Result<(), StateReadError> {
    let (Some(terms), Some(body)) = (terms(known), known.body.as_ref()) else { return Ok(()) };
    let tally = Tally::read(state, id)?;
    if tally.is_unpaid {
        return Ok(());
    }
    let Settled { fee, refunded, is_success } = Settled::of(id, index, events);
    let total = Wei(fee.0.saturating_add(refunded.0));
    let (Payer { account, is_from_fund }, is_booked) =
        (Payer::of(terms, body, &tally), terms.booked.is_some());
    // The creator has prepaid what was booked.
    if !is_booked || account != body.owner {
        if !is_from_fund {
            sums.pay(account, LEDGER, total);
        }
        if is_booked {
            sums.pay(LEDGER, body.owner, total);
        }
    }
    sums.pay(body.refund_to, account, refunded);
    if is_from_fund {
        sums.pay(account, LEDGER, refunded);
    }
    // A run that fails returns what its parties were lent.
    for (from, lent) in loans(terms, body, &tally).into_iter().filter(|_| is_success) {
        sums.pay(LEDGER, from, lent);
    }
    Ok(())
}

/// How the events of a run say that it was settled.
struct Settled {
    fee: Wei,
    refunded: Wei,
    is_success: bool,
}

impl Settled {
    fn of(id: ScheduleId, index: usize, events: &[LifeEvent]) -> Self {
        let mut settled = Self { fee: Wei::ZERO, refunded: Wei::ZERO, is_success: false };
        for one in events.iter().filter(|one| one.index == index && one.event.id == id) {
            match one.event.what {
                What::Executed { fee, is_success, .. } => {
                    (settled.fee, settled.is_success) = (fee, is_success);
                }
                What::Ended { refunded, .. } => settled.refunded = refunded,
                _ => {}
            }
        }
        settled
    }
}
