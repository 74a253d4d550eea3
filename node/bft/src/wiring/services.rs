//! What runs beside consensus: evidence, standing, gossip, the server of state, and the finalizer.

use super::{channels::Guarded, rights};
use crate::{
    engine::Marshal,
    evidence::{self, NewestVotes},
    finalizer::{Delivery, FinalizeError, Finalizer},
    gossip::Gossip,
    network::Parts,
    newest::Newest,
    standing::{Leave, Registrar, Standing},
    sync::Server,
    validators::Namespace,
};
use alloy_primitives::Bytes;
use almanac_consensus::Clock as Time;
use almanac_state::{QmdbStore, StateStore};
use commonware_cryptography::ed25519::PublicKey;
use commonware_p2p::Sender;
use commonware_runtime::{Clock, Handle, Metrics, Spawner, Storage};
use rand_core::CryptoRng;
use std::{borrow::Borrow, num::NonZeroU64};
use tokio::sync::{mpsc, watch};

/// What the services of a node share.
pub(super) struct Services<'a, E, T: StateStore> {
    pub(super) context: &'a E,
    pub(super) parts: Parts<T>,
    pub(super) namespace: Namespace,
    pub(super) marshal: Marshal,
    /// The node's key.
    pub(super) own: PublicKey,
}

impl<E, T> Services<'_, E, T>
where
    E: Clock + CryptoRng + Spawner + Storage + Metrics,
    T: StateStore<Batch: Send + Sync + 'static> + Borrow<QmdbStore<E>> + 'static,
{
    /// Keeps what others should not have signed.
    pub(super) fn keep_evidence(&self, conflicts: mpsc::Receiver<Bytes>) {
        let rng = self.context.child("weights");
        let (validators, store) = (self.parts.validators.clone(), self.parts.evidence.clone());
        let keep = evidence::keep(conflicts, validators, self.namespace, rng, store);
        self.context.child("evidence").spawn(|_| keep);
    }

    /// Finds out whether the node may vote, and helps others to find out the same.
    pub(super) fn agree_on_standing<S: Sender<PublicKey = PublicKey>>(
        &self,
        (sender, receiver): Guarded<S, impl Time>,
        votes: NewestVotes,
        standing: Standing,
        decision: watch::Sender<Option<Leave>>,
    ) {
        let registrar = Registrar {
            clock: self.context.child("standing_clock"),
            own: self.own.clone(),
            validators: self.parts.validators.clone(),
            namespace: self.namespace,
            newest: Newest::new(self.parts.replica.clone(), self.marshal.clone()),
            votes,
        };
        let decide = rights::decide(self.parts.book.clone(), decision);
        self.context.child("standing").spawn(|_| registrar.run(sender, receiver, standing, decide));
    }

    /// What peers can make long is on threads of its own, here and below: votes must not wait for it.
    pub(super) fn spread_transactions<S: Sender<PublicKey = PublicKey>>(
        &self,
        (sender, receiver): Guarded<S, impl Time>,
        clock: impl Time,
    ) {
        let gossip = Gossip::new(self.parts.admission.clone(), clock);
        self.context.child("gossip").dedicated().spawn(|_| gossip.run(sender, receiver));
    }

    /// Serves the state to nodes that copy it.
    pub(super) fn serve_state<S: Sender<PublicKey = PublicKey>>(
        &self,
        (sender, receiver): Guarded<S, impl Time>,
    ) {
        let server = Server {
            replica: self.parts.replica.clone(),
            marshal: self.marshal.clone(),
            keys: self.parts.keys.clone(),
            clock: self.context.child("server_clock"),
        };
        self.context.child("state_server").dedicated().spawn(|_| server.run(sender, receiver));
    }

    /// Commits final blocks. It executes those that were not executed before: on a thread of its own, as votes do.
    pub(super) fn finalize(
        self,
        inbox: mpsc::UnboundedReceiver<Delivery>,
        recent_blocks: NonZeroU64,
    ) -> Handle<Result<(), FinalizeError>> {
        let Self { context, parts, marshal, .. } = self;
        let pool = parts.admission.pool().clone();
        let finalizer = Finalizer { replica: parts.replica, pool, sinks: parts.sinks, recent_blocks };
        context.child("finalizer").dedicated().spawn(|clock| finalizer.run(clock, marshal, inbox))
    }
}
