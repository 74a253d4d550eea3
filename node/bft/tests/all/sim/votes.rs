//! `one_vote_in_a_view`: what each key signs, read where it goes onto the wire, restarts included.

use almanac_bft::BlockDigest;
use commonware_codec::{Copying, Decode as _};
use commonware_consensus::{
    Viewable as _,
    simplex::{
        scheme::ed25519::Scheme,
        types::{Proposal, Vote},
    },
};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

/// What a key has signed in a view.
#[derive(Default)]
struct Signed {
    notarized: Option<Proposal<BlockDigest>>,
    finalized: Option<Proposal<BlockDigest>>,
    is_nullified: bool,
}

impl Signed {
    /// Whether a block that it signed is another than one that it has signed before.
    fn is_other(before: Option<&Proposal<BlockDigest>>, proposal: &Proposal<BlockDigest>) -> bool {
        before.is_some_and(|before| before != proposal)
    }

    /// Adds a vote, and answers how it conflicts with those before.
    fn add(&mut self, vote: Vote<Scheme, BlockDigest>) -> Option<&'static str> {
        match vote {
            Vote::Notarize(vote) => {
                let is_other = Self::is_other(self.notarized.as_ref(), &vote.proposal)
                    || Self::is_other(self.finalized.as_ref(), &vote.proposal);
                self.notarized = Some(vote.proposal);
                is_other.then_some("to notarize two blocks")
            }
            Vote::Finalize(vote) => {
                let is_other = Self::is_other(self.notarized.as_ref(), &vote.proposal)
                    || Self::is_other(self.finalized.as_ref(), &vote.proposal);
                self.finalized = Some(vote.proposal);
                match (is_other, self.is_nullified) {
                    (true, _) => Some("to finalize another block"),
                    (false, true) => Some("to nullify and to finalize"),
                    (false, false) => None,
                }
            }
            Vote::Nullify(_) => {
                self.is_nullified = true;
                self.finalized.is_some().then_some("to finalize and to nullify")
            }
        }
    }
}

/// All votes of a simulation, by validator and view. Cloning shares it.
#[derive(Clone, Default)]
pub struct Votes(Arc<Mutex<BTreeMap<(usize, u64), Signed>>>);

impl Votes {
    /// Notes a message on the channel of votes, and answers what is wrong with it.
    pub fn note(&self, validator: usize, message: &[u8]) -> Result<(), String> {
        let vote = Vote::<Scheme, BlockDigest>::decode_cfg(Copying(message), &())
            .map_err(|error| format!("validator {validator} sent something else than a vote: {error}"))?;
        let view = vote.view().get();
        let conflict = self.0.lock().unwrap().entry((validator, view)).or_default().add(vote);
        conflict.map_or(Ok(()), |conflict| {
            Err(format!("validator {validator} signed two votes in view {view}: {conflict}"))
        })
    }

    /// How many views a validator has voted in.
    pub fn views(&self, validator: usize) -> usize {
        self.0.lock().unwrap().keys().filter(|(of, _)| *of == validator).count()
    }
}
