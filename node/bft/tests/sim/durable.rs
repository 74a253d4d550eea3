//! Looks on as blocks are acknowledged: each must be on disk by then.

use crate::node::Store;
use almanac_bft::{ConsensusBlock, Ledger, finalizer::Deliveries};
use almanac_state::BlockJournal;
use commonware_actor::Feedback;
use commonware_consensus::{Reporter, marshal::Update};
use commonware_runtime::{Spawner as _, Supervisor as _, deterministic::Context};
use commonware_utils::{Acknowledgement as _, acknowledgement::Exact};
use std::sync::{Arc, Weak};

/// Stands between marshal and the finalizer.
#[derive(Clone)]
pub struct Durable {
    context: Arc<Context>,
    ledger: Weak<Ledger<Store>>,
    archive: Weak<BlockJournal<Context>>,
    next: Deliveries,
}

impl Durable {
    pub fn new(
        context: &Context,
        ledger: &Arc<Ledger<Store>>,
        archive: &Arc<BlockJournal<Context>>,
        next: Deliveries,
    ) -> Self {
        let context = Arc::new(context.child("durable"));
        Self { context, ledger: Arc::downgrade(ledger), archive: Arc::downgrade(archive), next }
    }
}

impl Reporter for Durable {
    type Activity = Update<ConsensusBlock>;

    fn report(&mut self, update: Self::Activity) -> Feedback {
        let Update::Block(block, acknowledgement) = update else { return self.next.report(update) };
        let (inner, acknowledged) = Exact::handle();
        let number = block.inner().block().header.number;
        let (ledger, archive) = (self.ledger.clone(), self.archive.clone());
        self.context.child("acknowledgement").spawn(move |_| async move {
            if acknowledged.await.is_err() {
                return;
            }
            let (ledger, archive) = (ledger.upgrade().unwrap(), archive.upgrade().unwrap());
            assert!(archive.height().await.unwrap() >= number, "block {number} is not in the archive");
            assert!(ledger.tip().header.number >= number, "block {number} is not in the state");
            acknowledgement.acknowledge();
        });
        self.next.report(Update::Block(block, inner))
    }
}
