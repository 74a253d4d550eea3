//! Who pays for a run, from what (HEDERA-15).
//!
//! The payer is debited the whole gas limit at the base fee and gets back what was not used. An account that agreed with
//! its keys pays from its balance, one that code made agree pays from its fund: value too, which it is lent for the run.

use crate::{
    error::StateFault,
    ledger::{ScheduleFault, SystemLedger},
};
use alloy_primitives::{Address, U256};
use almanac_primitives::{Wei, addresses::LEDGER};
use almanac_schedule::{
    Ledger as _, Record,
    decide::Moment,
    signed::{self, SignedTerms, Tally, parties},
};

/// What a run costs its parties.
#[derive(Clone, Debug)]
pub(super) struct Payment {
    payer: Debit,
    /// Value that accounts are lent from their funds.
    loans: Vec<(Address, Wei)>,
}

#[derive(Clone, Copy, Debug)]
struct Debit {
    account: Address,
    amount: Wei,
    is_from_fund: bool,
}

impl Payment {
    /// What the run of a schedule costs.
    pub(super) fn of(record: &Record, terms: &SignedTerms, tally: &Tally, moment: Moment) -> Self {
        let parties = parties(terms, &record.body);
        let place = |account| parties.iter().position(|party| *party == account);
        let account = terms.payer.unwrap_or(record.body.owner);
        let is_from_fund = if account == record.body.owner {
            tally.is_created_nested
        } else {
            place(account).is_some_and(|party| tally.is_nested(party))
        };
        // What was booked is paid; another payer than the creator returns that to it.
        let amount = match terms.booked {
            None => record.body.gas_limit.cost(moment.base_fee),
            Some(_) if account == record.body.owner => Wei::ZERO,
            Some(_) => record.escrow,
        };
        let nested = parties.iter().enumerate().filter(|(party, _)| tally.is_nested(*party));
        let lent = nested.map(|(_, from)| (*from, value_from(record, *from)));
        let loans = lent.filter(|(_, value)| *value > Wei::ZERO).collect();
        Self { payer: Debit { account, amount, is_from_fund }, loans }
    }

    /// Takes what the run costs, or nothing of it. Returns what the escrow gets of it, or `None` if somebody has too
    /// little.
    pub(super) fn collect(
        &self,
        ledger: &mut SystemLedger<'_, '_>,
        record: &Record,
        terms: &SignedTerms,
    ) -> Result<Option<Wei>, StateFault> {
        let Debit { account, amount, is_from_fund } = self.payer;
        for (from, needed) in self.fund_debits() {
            if signed::fund(ledger, from)? < needed {
                return Ok(None);
            }
        }
        if !is_from_fund && ledger.balance(account)? < amount {
            return Ok(None);
        }
        for (from, needed) in self.fund_debits() {
            let is_taken = signed::take(ledger, from, needed)?;
            assert!(is_taken, "a fund that was just read has as much");
        }
        if !is_from_fund {
            ledger.take_back(account, amount)?;
        }
        for (from, lent) in &self.loans {
            ledger.credit(*from, *lent)?;
        }
        if terms.booked.is_none() {
            return Ok(Some(amount));
        }
        if amount > Wei::ZERO {
            ledger.credit(record.body.owner, amount)?;
        }
        Ok(Some(Wei::ZERO))
    }

    /// What is taken from each fund: an account may be payer and sender.
    fn fund_debits(&self) -> Vec<(Address, Wei)> {
        let Debit { account, amount, is_from_fund } = self.payer;
        let mut taken = self.loans.clone();
        match taken.iter_mut().find(|(from, _)| is_from_fund && *from == account) {
            Some((_, needed)) => *needed = Wei(needed.0.saturating_add(amount.0)),
            None if is_from_fund => taken.push((account, amount)),
            None => {}
        }
        taken
    }

    /// Puts back what a run did not use: loans of one that failed, and what returned to a payer that pays from its fund.
    pub(super) fn put_back(
        &self,
        ledger: &mut SystemLedger<'_, '_>,
        is_success: bool,
        returned: Option<(Address, Wei)>,
    ) -> Result<(), ScheduleFault> {
        if !is_success {
            for (from, lent) in &self.loans {
                to_fund(ledger, *from, *lent)?;
            }
        }
        let Some((to, amount)) = returned.filter(|(_, amount)| *amount > Wei::ZERO) else { return Ok(()) };
        let Debit { account, is_from_fund, .. } = self.payer;
        // What was prepaid returns to the creator, to whom its payer has returned it already.
        if to != account {
            ledger.take_back(to, amount)?;
            ledger.credit(account, amount)?;
        }
        if is_from_fund { to_fund(ledger, account, amount) } else { Ok(()) }
    }
}

/// Moves money that an account has just got into its fund.
fn to_fund(ledger: &mut SystemLedger<'_, '_>, account: Address, amount: Wei) -> Result<(), ScheduleFault> {
    debug_assert_ne!(account, LEDGER);
    if amount > Wei::ZERO {
        ledger.take_back(account, amount)?;
        signed::give(ledger, account, amount)?;
    }
    Ok(())
}

/// Value that the calls of one account take along. A sum that overflows is more than there is.
fn value_from(record: &Record, from: Address) -> Wei {
    let values = record.body.calls.iter().filter(|call| call.from == from).map(|call| call.value.0);
    Wei(values.fold(U256::ZERO, U256::saturating_add))
}
