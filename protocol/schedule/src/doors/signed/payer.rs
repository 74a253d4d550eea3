//! Who pays for a run, and what from its fund (HEDERA-15).

use super::{SignedTerms, Tally, parties};
use crate::record::Body;
use alloy_primitives::{Address, U256};
use almanac_primitives::Wei;

/// Who pays for a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payer {
    /// The account.
    pub account: Address,
    /// Whether it pays from its fund, because only code made it agree.
    pub is_from_fund: bool,
}

impl Payer {
    /// The payer of a schedule that was triggered. `body` is the body with these terms.
    pub fn of(terms: &SignedTerms, body: &Body, tally: &Tally) -> Self {
        let account = terms.payer.unwrap_or(body.owner);
        let is_from_fund = if account == body.owner {
            tally.is_created_nested
        } else {
            let place = parties(terms, body).iter().position(|party| *party == account);
            place.is_some_and(|party| tally.is_nested(party))
        };
        Self { account, is_from_fund }
    }
}

/// The creator, where it pays from its balance when the schedule runs because its transaction made it: it agreed with
/// its key of then, and does not pay for what a key that it has replaced ordered.
pub fn creator_that_pays(terms: &SignedTerms, body: &Body, tally: &Tally) -> Option<Address> {
    let pays_later = terms.booked.is_none() && !tally.is_created_nested;
    Some(body.owner).filter(|owner| pays_later && terms.payer.is_none_or(|payer| payer == *owner))
}

/// Value that accounts are lent from their funds for a run: only code made them agree.
pub fn loans(terms: &SignedTerms, body: &Body, tally: &Tally) -> Vec<(Address, Wei)> {
    let parties = parties(terms, body);
    let nested = parties.iter().enumerate().filter(|(party, _)| tally.is_nested(*party));
    let lent = nested.map(|(_, from)| (*from, value_from(body, *from)));
    lent.filter(|(_, value)| *value > Wei::ZERO).collect()
}

/// Value that the calls of one account take along. A sum that overflows is more than there is.
fn value_from(body: &Body, from: Address) -> Wei {
    let values = body.calls.iter().filter(|call| call.from == from).map(|call| call.value.0);
    Wei(values.fold(U256::ZERO, U256::saturating_add))
}
