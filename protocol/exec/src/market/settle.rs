//! Settles the market runs of a block at its end, when the highest price of its transactions is known.

use crate::{
    block::{Execution, Owed},
    doors::{self, About},
    error::BlockError,
    ledger::ScheduleFault,
    machine::EvmContext,
    output::Executed,
    quarantine::{Charge, quarantine},
};
use almanac_primitives::{GasPrice, Wei};
use almanac_schedule::{
    decide::RunEnd,
    life::{self, LifeEvent, What},
};
use revm::Inspector;

/// Charges each market run of the block and refunds the rest of its deposit. Price and logs go into its receipt
/// (AIP125-15, -16).
pub(crate) fn settle<'a, I: Inspector<EvmContext<'a>>>(
    execution: &mut Execution<'a, '_, I>,
) -> Result<(), BlockError> {
    let owed = std::mem::take(&mut execution.owed);
    if owed.is_empty() {
        return Ok(());
    }
    let top = highest_price(execution);
    for owed in &owed {
        settle_one(execution, owed, top)?;
    }
    // Each event stands with its transaction.
    execution.events.sort_by_key(|event| event.index);
    Ok(())
}

/// The highest price that a user transaction of the block pays; zero if there is none.
fn highest_price<'a, I: Inspector<EvmContext<'a>>>(execution: &Execution<'a, '_, I>) -> GasPrice {
    let paired = execution.transactions.iter().zip(&execution.receipts);
    let users = paired.filter(|(executed, _)| matches!(executed, Executed::User(_)));
    users.map(|(_, receipt)| receipt.effective_gas_price).max().unwrap_or_default()
}

fn settle_one<'a, I: Inspector<EvmContext<'a>>>(
    execution: &mut Execution<'a, '_, I>,
    owed: &Owed,
    top: GasPrice,
) -> Result<(), BlockError> {
    let Owed { index, begun, held, aside } = owed;
    let (moment, terms) = (execution.moment(), &begun.record.body.terms);
    let price = terms.price_at_end(moment.base_fee, top).unwrap_or(moment.base_fee);
    let receipt = &execution.receipts[*index];
    let (outcome, gas_used) = (receipt.outcome.clone(), receipt.gas_used);
    // What it triggered ran in the place that its bid bought, and paid the base fee.
    let place = aside.cost(GasPrice(price.0.saturating_sub(moment.base_fee.0)));
    let ended = RunEnd { outcome: &outcome, gas_used, price, place };
    let settled: Result<_, ScheduleFault> =
        execution.act(|ledger| Ok(life::settle_finished(ledger, begun, *held, ended, moment)?));
    let events = match settled {
        Ok(events) => events,
        // The call took effect, and all that is held returns to the escrow.
        Err(fault) => {
            let (id, reason) = (begun.record.id, fault.reason()?);
            vec![quarantine(execution, id, Charge::with(*held, begun), &*reason, |_| Ok(*held))?]
        }
    };
    let refunded = events.iter().find_map(|event| match event.what {
        What::Ended { refunded, .. } => Some(refunded),
        _ => None,
    });
    let refunded = refunded.unwrap_or(Wei::ZERO);
    let about = About { outcome: &outcome, record: Some(&begun.record), price, refunded };
    let logs: Vec<_> = events.iter().flat_map(|event| doors::event_logs(event, &about)).collect();
    let receipt = &mut execution.receipts[*index];
    receipt.effective_gas_price = price;
    receipt.logs.extend(logs);
    execution.events.extend(events.into_iter().map(|event| LifeEvent { index: *index, event }));
    Ok(())
}
