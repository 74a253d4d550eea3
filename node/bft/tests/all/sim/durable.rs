//! Looks on as blocks are acknowledged: each must be on disk by then.

use crate::sim::{machine::Machine, network::Network, opened::Store, twins::Half};
use almanac_bft::{ConsensusBlock, Replica, finalizer::Deliveries};
use almanac_state::BlockJournal;
use commonware_actor::Feedback;
use commonware_consensus::{Reporter, marshal::Update};
use commonware_runtime::{Spawner as _, Supervisor as _};
use commonware_utils::{Acknowledgement as _, acknowledgement::Exact};
use std::sync::{Arc, Weak};

/// Stands between marshal and the finalizer.
#[derive(Clone)]
pub struct Durable {
    context: Arc<Machine>,
    network: Network,
    replica: Weak<Replica<Store>>,
    archive: Weak<BlockJournal<Machine>>,
    place: (usize, Half),
    next: Deliveries,
}

impl Durable {
    pub fn new(
        context: &Machine,
        network: &Network,
        replica: &Arc<Replica<Store>>,
        archive: &Arc<BlockJournal<Machine>>,
        place: (usize, Half),
        next: Deliveries,
    ) -> Self {
        let (context, network) = (Arc::new(context.child("durable")), network.clone());
        let (replica, archive) = (Arc::downgrade(replica), Arc::downgrade(archive));
        Self { context, network, replica, archive, place, next }
    }
}

impl Reporter for Durable {
    type Activity = Update<ConsensusBlock>;

    fn report(&mut self, update: Self::Activity) -> Feedback {
        let Update::Block(block, acknowledgement) = update else { return self.next.report(update) };
        let (inner, acknowledged) = Exact::handle();
        let (number, place) = (block.inner().block().header.number, self.place);
        let (network, replica, archive) = (self.network.clone(), self.replica.clone(), self.archive.clone());
        self.context.child("acknowledgement").spawn(move |_| async move {
            if acknowledged.await.is_err() {
                return;
            }
            let (Some(replica), Some(archive)) = (replica.upgrade(), archive.upgrade()) else { return };
            if archive.height().await.unwrap() < number {
                network.violated(format!("block {number} is acknowledged and not in the archive"));
            }
            if replica.tip().header.number < number {
                network.violated(format!("block {number} is acknowledged and not in the state"));
            }
            network.acknowledged(place, number);
            acknowledgement.acknowledge();
        });
        self.next.report(Update::Block(block, inner))
    }
}
