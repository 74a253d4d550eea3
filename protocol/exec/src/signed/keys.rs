//! Which recorded signatures count by the current keys of accounts. Doors pay for every key that is read, the chain itself
//! was paid before.

use crate::{error::StateFault, state::BlockState};
use alloy_primitives::Address;
use almanac_primitives::keys::{KeyRecord, KeyTree, Leaf};
use almanac_schedule::{
    Record,
    signed::{Consent, Counted, PartyKey, SignedTerms, Signer, Tally, creator_that_pays, parties},
};

/// The current keys of accounts.
pub(crate) trait Keys {
    /// Why a key cannot be read.
    type Error;

    /// The record of an account's key.
    fn record(&mut self, account: Address) -> Result<KeyRecord, Self::Error>;

    /// The key that the record of an account is of.
    fn key(&mut self, account: Address, record: KeyRecord) -> Result<KeyTree, Self::Error>;
}

impl Keys for BlockState<'_> {
    type Error = StateFault;

    fn record(&mut self, account: Address) -> Result<KeyRecord, StateFault> {
        self.key_record(account)
    }

    fn key(&mut self, account: Address, record: KeyRecord) -> Result<KeyTree, StateFault> {
        match record.key {
            Some(stored) => self.stored_key(account, stored),
            None => Ok(KeyTree::single(Leaf::Secp256k1(account))),
        }
    }
}

/// The keys of the accounts that a schedule needs.
pub(crate) fn load_parties<K: Keys>(keys: &mut K, accounts: Vec<Address>) -> Result<Vec<PartyKey>, K::Error> {
    let mut parties = Vec::with_capacity(accounts.len());
    for account in accounts {
        let record = keys.record(account)?;
        parties.push(match record.key {
            Some(_) => PartyKey::Recorded(account, keys.key(account, record)?),
            None => PartyKey::Own(account),
        });
    }
    Ok(parties)
}

/// The recorded signatures that count.
pub(crate) fn count<'s, K: Keys>(
    keys: &mut K,
    recorded: impl Iterator<Item = &'s Signer>,
) -> Result<Vec<Counted>, K::Error> {
    let mut counted = Vec::new();
    for signer in recorded {
        match *signer {
            Signer::Leaf(leaf) if is_in_force(keys, leaf)? => {
                counted.push(Counted { leaf, caller: None, is_nested: false });
            }
            Signer::Caller { account, rotation, is_nested } if keys.record(account)?.rotation == rotation => {
                let leaf = Leaf::Secp256k1(account);
                counted.push(Counted { leaf, caller: Some(account), is_nested });
            }
            Signer::Leaf(_) | Signer::Caller { .. } => {}
        }
    }
    Ok(counted)
}

/// Whether a creator that pays has agreed to that with its present key: by its call, or as one of the parties, of which
/// these are the consents.
pub(crate) fn creator_agrees<K: Keys>(
    keys: &mut K,
    record: &Record,
    terms: &SignedTerms,
    tally: &Tally,
    consents: &[Consent],
) -> Result<bool, K::Error> {
    let Some(creator) = creator_that_pays(terms, &record.body, tally) else { return Ok(true) };
    let place = parties(terms, &record.body).iter().position(|party| *party == creator);
    let has_signed = place.is_some_and(|place| consents.get(place) == Some(&Consent::Own));
    Ok(has_signed || keys.record(creator)?.rotation == tally.creator_rotation)
}

/// Whether a leaf may sign: the secp256k1 key of an account that has another key by now may not.
pub(crate) fn is_in_force<K: Keys>(keys: &mut K, leaf: Leaf) -> Result<bool, K::Error> {
    match leaf {
        Leaf::Secp256k1(account) => Ok(keys.record(account)?.key.is_none()),
        Leaf::Ed25519(_) => Ok(true),
    }
}
