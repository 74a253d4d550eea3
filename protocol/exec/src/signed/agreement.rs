//! Who a schedule waits for, for those who only look: the rules are the door's.

use super::keys::{count, creator_agrees, load_parties};
use crate::{error::StateFault, state::BlockState};
use alloy_primitives::Address;
use almanac_primitives::{StateRead, keys::KeyTree};
use almanac_schedule::{
    Record,
    signed::{Consent, PartyKey, Signer, Tally, consent, parties, read_signers},
};

/// Whose agreement a schedule needs, and what it has.
#[derive(Clone, Debug)]
pub struct Agreement {
    /// The accounts that must agree, in the order in which the schedule names them, and the creator if it has to agree to
    /// pay once more, with its new key.
    pub parties: Vec<Party>,
    /// What is recorded and counts, in the order in which it came: not what a key has signed that was replaced since.
    pub signers: Vec<Signer>,
}

/// An account that must agree.
#[derive(Clone, Debug)]
pub struct Party {
    /// The account.
    pub account: Address,
    /// Its present key.
    pub key: KeyTree,
    /// Whether what is recorded satisfies that key.
    pub has_agreed: bool,
}

/// Whose agreement a schedule needs by the present keys of a state; `None` for one that no signature triggers.
pub fn agreement(state: &dyn StateRead, record: &Record) -> Result<Option<Agreement>, StateFault> {
    let Some(terms) = record.body.terms.signed() else { return Ok(None) };
    let mut keys = BlockState::new(state);
    let (mut signers, mut counted) = (Vec::new(), Vec::new());
    for signer in read_signers(state, record.id)? {
        let counts = count(&mut keys, [signer].iter())?;
        signers.extend(counts.iter().map(|_| signer));
        counted.extend(counts);
    }
    let mut parties = load_parties(&mut keys, parties(terms, &record.body))?;
    let mut consents: Vec<Consent> = parties.iter().map(|party| consent(party, &counted)).collect();
    let tally = Tally::read(state, record.id)?;
    if !creator_agrees(&mut keys, record, terms, &tally, &consents)? {
        let creator = record.body.owner;
        match parties.iter().position(|party| party.account() == creator) {
            Some(place) => consents[place] = Consent::Missing,
            None => {
                parties.extend(load_parties(&mut keys, vec![creator])?);
                consents.push(Consent::Missing);
            }
        }
    }
    let look = |(party, consent): (PartyKey, Consent)| {
        let has_agreed = consent != Consent::Missing;
        Party { account: party.account(), key: party.into_key(), has_agreed }
    };
    let parties = parties.into_iter().zip(consents).map(look).collect();
    Ok(Some(Agreement { parties, signers }))
}
