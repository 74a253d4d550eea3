//! Schedules that wait for their second: a block takes up those that have all signatures, and ends the others
//! (HEDERA-20).

use super::keys::{count, load_parties};
use crate::{
    block::Execution,
    error::BlockError,
    ledger::{ScheduleFault, SystemLedger},
    machine::EvmContext,
};
use alloy_primitives::U256;
use almanac_schedule::{
    Record,
    decide::End,
    life::{self, Event},
    record::Door,
    signed::{Consent, SignedTerms, Tally, consent, parties, signers},
};
use revm::Inspector;

/// Marks a schedule whose second has come, or ends it: without all signatures, or while its door is switched off, which
/// returns all of its fee. Returns what happened to it, and whether its run follows.
pub(crate) fn take_up<'a, I: Inspector<EvmContext<'a>>>(
    execution: &mut Execution<'a, '_, I>,
    record: Record,
) -> Result<(Event, bool), ScheduleFault> {
    let moment = execution.moment();
    if Door::Signed.switches().is_held(&execution.environment.parameters) {
        // Not kept for later: what waits for a switch would stand before the callbacks of the lane, and its second is over.
        let end = |ledger: &mut SystemLedger<'_, '_>| {
            Ok(life::end_without_run(ledger, &record, End::Shutdown, moment)?)
        };
        return execution.act(end).map(|event| (event, false));
    }
    let consents = match record.body.terms.signed() {
        Some(terms) => consents(execution, &record, terms)?,
        None => vec![Consent::Missing],
    };
    let cap = record.body.terms.signed().map_or(U256::ZERO, |terms| terms.max_fee_per_gas);
    let is_ready = !consents.contains(&Consent::Missing) && cap >= U256::from(moment.base_fee.0);
    execution.act(|ledger| {
        if !is_ready {
            return Ok((life::end_without_run(ledger, &record, End::Expired, moment)?, false));
        }
        let tally = Tally { nested: Tally::nested_bits(&consents), ..Tally::load(ledger, record.id)? };
        tally.store(ledger, record.id)?;
        Ok((life::process(ledger, record, moment)?, true))
    })
}

/// How each party has agreed, by current keys.
fn consents<'a, I: Inspector<EvmContext<'a>>>(
    execution: &mut Execution<'a, '_, I>,
    record: &Record,
    terms: &SignedTerms,
) -> Result<Vec<Consent>, BlockError> {
    let recorded = execution.act::<_, BlockError>(|ledger| {
        let tally = Tally::load(ledger, record.id)?;
        Ok(signers(ledger, record.id, &tally)?)
    })?;
    let state = execution.machine.state();
    let parties = load_parties(state, parties(terms, &record.body))?;
    let counted = count(state, recorded.iter().flatten())?;
    Ok(parties.iter().map(|party| consent(party, &counted)).collect())
}
