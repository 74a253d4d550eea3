//! What a node may sign, and from which view on.

use crate::{
    certificate::CertificateError,
    digest::BlockDigest,
    engine::Ticket,
    network::{Parts, Voice},
    standing::{Leave, Standing},
    sync::Floor,
    validators::{Namespace, ValidatorSet},
    votes::VoteBook,
};
use almanac_state::StateStore;
use commonware_consensus::simplex::{scheme::ed25519::Scheme, types::Finalization};
use commonware_cryptography::ed25519::PrivateKey;
use std::{future::Future, sync::Arc};
use tokio::sync::watch;

/// What a node may sign.
pub(super) struct Rights {
    /// Signs for a validator; verifies only for others.
    pub(super) scheme: Scheme,
    verifier: Scheme,
    /// What the node knows of its votes.
    pub(super) standing: Standing,
    /// What was signed about the block that the node starts from.
    pub(super) floor: Option<Finalization<Scheme, BlockDigest>>,
    /// What was signed about the block after whose view it votes.
    pub(super) votes_after: Option<Finalization<Scheme, BlockDigest>>,
}

impl Rights {
    pub(super) fn new<T: StateStore>(
        parts: &Parts<T>,
        private: &PrivateKey,
        namespace: &Namespace,
    ) -> Result<Self, CertificateError> {
        let validators = &parts.validators;
        // A verifier takes part in everything and signs nothing.
        let (signer, votes_after) = match &parts.voice {
            Voice::None => (None, None),
            Voice::Votes { after } => (validators.signer(namespace, private).ok(), after.as_deref()),
        };
        let verifier = validators.verifier(namespace);
        // Who cannot vote has nothing to ask.
        let standing = if signer.is_some() { parts.standing.clone() } else { Standing::Sure };
        Ok(Self {
            scheme: signer.unwrap_or_else(|| verifier.clone()),
            verifier,
            standing,
            floor: signed_about(parts.floor.as_ref(), validators, namespace)?,
            votes_after: signed_about(votes_after, validators, namespace)?,
        })
    }

    /// Waits for the decision whether the node may vote, and answers how it joins consensus.
    pub(super) fn ticket(
        &self,
        mut decided: watch::Receiver<Option<Leave>>,
        validators: ValidatorSet,
        namespace: Namespace,
    ) -> impl Future<Output = Ticket> + Send + 'static {
        let (scheme, verifier) = (self.scheme.clone(), self.verifier.clone());
        async move {
            let decided = decided.wait_for(Option::is_some).await.ok().and_then(|leave| leave.clone());
            let Some(Leave::Given { after }) = decided else {
                return Ticket { scheme: verifier, after: None };
            };
            let after = after.map(|floor| floor.finalization(&validators, &namespace));
            Ticket { scheme, after: after.transpose().expect("what peers show is checked") }
        }
    }
}

fn signed_about(
    floor: Option<&Floor>,
    validators: &ValidatorSet,
    namespace: &Namespace,
) -> Result<Option<Finalization<Scheme, BlockDigest>>, CertificateError> {
    floor.map(|floor| floor.finalization(validators, namespace)).transpose()
}

/// Notes in `book` whether the node may vote, and then tells everyone who waits for that.
pub(super) fn decide(
    book: Arc<dyn VoteBook>,
    decision: watch::Sender<Option<Leave>>,
) -> impl FnOnce(Leave) + Send + 'static {
    move |leave| {
        // Before consensus goes on: its files will soon look as if this node had been there all the time.
        let noted = match &leave {
            Leave::Given { after: None } => Ok(()),
            Leave::Given { after: Some(floor) } => book.begin_after(floor),
            Leave::Denied { .. } => book.distrust(),
        };
        noted.unwrap_or_else(|error| panic!("io error: {error}"));
        decision.send_replace(Some(leave));
    }
}
