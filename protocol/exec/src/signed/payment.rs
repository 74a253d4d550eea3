//! Who pays for a run, from what (HEDERA-15).
//!
//! The payer is debited the whole gas limit at the base fee and gets back what was not used. An account that agreed with
//! its keys pays from its balance, one that code made agree pays from its fund: value too, which it is lent for the run.

use crate::{
    error::StateFault,
    ledger::{ScheduleFault, SystemLedger},
};
use alloy_primitives::Address;
use almanac_primitives::{Wei, addresses::LEDGER};
use almanac_schedule::{
    Ledger as _, Record,
    decide::Moment,
    signed::{self, Payer, SignedTerms, Tally, loans},
};

/// What a run costs its parties.
#[derive(Clone, Debug)]
pub(super) struct Payment {
    payer: Payer,
    /// What the payer is debited.
    amount: Wei,
    /// Value that accounts are lent from their funds.
    loans: Vec<(Address, Wei)>,
}

impl Payment {
    /// What the run of a schedule costs.
    pub(super) fn of(record: &Record, terms: &SignedTerms, tally: &Tally, moment: Moment) -> Self {
        let payer = Payer::of(terms, &record.body, tally);
        // What was booked is paid; another payer than the creator returns that to it.
        let amount = match terms.booked {
            None => record.body.gas_limit.cost(moment.base_fee),
            Some(_) if payer.account == record.body.owner => Wei::ZERO,
            Some(_) => record.escrow,
        };
        Self { payer, amount, loans: loans(terms, &record.body, tally) }
    }

    /// Takes what the run costs, or nothing of it. Returns what the escrow gets of it, or `None` if somebody has too
    /// little.
    pub(super) fn collect(
        &self,
        ledger: &mut SystemLedger<'_, '_>,
        record: &Record,
        terms: &SignedTerms,
    ) -> Result<Option<Wei>, StateFault> {
        let (Payer { account, is_from_fund }, amount) = (self.payer, self.amount);
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
        let (Payer { account, is_from_fund }, amount) = (self.payer, self.amount);
        let mut taken = self.loans.clone();
        match taken.iter_mut().find(|(from, _)| is_from_fund && *from == account) {
            Some((_, needed)) => *needed = Wei(needed.0.saturating_add(amount.0)),
            None if is_from_fund => taken.push((account, amount)),
            None => {}
        }
        taken
    }

    /// Returns what a run was charged, and loans of one that failed.
    pub(super) fn undo(
        &self,
        ledger: &mut SystemLedger<'_, '_>,
        is_success: bool,
        charged: Wei,
    ) -> Result<(), ScheduleFault> {
        let payer = self.payer.account;
        if charged > Wei::ZERO {
            ledger.credit(payer, charged)?;
        }
        self.put_back(ledger, is_success, Some((payer, charged)))
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
        let Payer { account, is_from_fund } = self.payer;
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
