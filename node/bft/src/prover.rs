//! Makes proofs for whoever asks, on the validator's own runtime: its store may not be read from another.

use crate::ledger::Ledger;
use almanac_consensus::Proven;
use almanac_primitives::StateKey;
use almanac_state::{ProveError, StateStore};
use std::{future::Future, sync::Arc};
use tokio::sync::{mpsc, oneshot};

/// Requests that may wait. Whoever comes after them waits to be let in.
const WAITING_MAX: usize = 16;

/// Asks a validator for proofs. Cloning asks the same one.
#[derive(Clone, Debug)]
pub struct Prover(mpsc::Sender<Request>);

#[derive(Debug)]
struct Request {
    keys: Vec<StateKey>,
    reply: oneshot::Sender<Result<Proven, ProveError>>,
}

impl Prover {
    /// A way to ask, and what answers: the future has to be run where the ledger's store lives. One request at a time,
    /// so that commits find the store free in between.
    pub fn new<S: StateStore<Batch: Send + 'static>>(
        ledger: Arc<Ledger<S>>,
    ) -> (Self, impl Future<Output = ()> + Send) {
        let (requests, mut inbox) = mpsc::channel::<Request>(WAITING_MAX);
        let answering = async move {
            while let Some(Request { keys, mut reply }) = inbox.recv().await {
                tokio::select! {
                    proven = ledger.prove(&keys) => {
                        // Whoever asked may have gone since.
                        let _ = reply.send(proven);
                    }
                    () = reply.closed() => {}
                }
            }
        };
        (Self(requests), answering)
    }

    /// Proves values in the state after the last final block; `None` where the validator has ended.
    pub async fn prove(&self, keys: Vec<StateKey>) -> Option<Result<Proven, ProveError>> {
        let (reply, answer) = oneshot::channel();
        self.0.send(Request { keys, reply }).await.ok()?;
        answer.await.ok()
    }
}
