//! Fetches the operations of a state from any peer that proves them.

use super::{
    ask::{AskError, Asker},
    message::{Answer, Question},
    progress::{Phase, Progress},
};
use almanac_primitives::StateCommitment;
use almanac_state::qmdb::{
    Family,
    sync::{Digest, Operation, SyncRequest, SyncResponse, is_proven},
};
use commonware_codec::EncodeSize as _;
use commonware_cryptography::ed25519::PublicKey;
use commonware_p2p::{Blocker, Sender};
use commonware_runtime::Clock;
use commonware_storage::qmdb::sync::source;
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

/// Fetches the operations of a state from any peer that proves them.
pub(super) struct PeerSource<E, S, B> {
    asker: Arc<Asker<E, S, B>>,
    /// The header's commitment.
    commitment: StateCommitment,
    progress: Arc<Progress>,
    /// The first requested operation: earlier ones were on disk already.
    first: AtomicU64,
    is_begun: AtomicBool,
}

impl<E, S, B> PeerSource<E, S, B> {
    /// A source for the state that a block's header commits to.
    pub(super) fn new(
        asker: Arc<Asker<E, S, B>>,
        commitment: StateCommitment,
        progress: Arc<Progress>,
    ) -> Self {
        progress.begin(Phase::State, commitment.ops_end.saturating_sub(commitment.ops_start));
        let (first, is_begun) = (AtomicU64::new(commitment.ops_end), AtomicBool::new(false));
        Self { asker, commitment, progress, first, is_begun }
    }

    fn count(&self, response: &SyncResponse) {
        if !self.is_begun.swap(true, Ordering::Relaxed) {
            self.count_kept();
        }
        // Do not count the boundary operation: it is before the first requested one.
        let operations = match response {
            SyncResponse::Operations { operations, .. } => operations.len(),
            SyncResponse::Boundary { .. } => 0,
        };
        let size = |size: usize| u64::try_from(size).expect("a size fits 64 bits");
        if self.progress.add(size(operations), size(response.encode_size())) {
            // From here on the library works alone until the state is complete.
            self.progress.begin(Phase::Check, 0);
        }
    }

    /// Counts what an earlier attempt left on disk. Called with the first answer, when all first questions have
    /// been sent.
    fn count_kept(&self) {
        let kept = self.first.load(Ordering::Relaxed).saturating_sub(self.commitment.ops_start);
        self.progress.add(kept, 0);
        if kept > 1 {
            tracing::info!("using {kept} operations of an earlier attempt");
        }
    }
}

impl<E, S, B> source::Source for PeerSource<E, S, B>
where
    E: Clock,
    S: Sender<PublicKey = PublicKey>,
    B: Blocker<PublicKey = PublicKey> + Sync,
{
    type Family = Family;
    type Digest = Digest;
    type Op = Operation;
    type Error = AskError;

    async fn serve(&self, request: SyncRequest) -> source::Result<Self> {
        if let SyncRequest::Operations { start, .. } = request {
            self.first.fetch_min(*start, Ordering::Relaxed);
        }
        let root = self.commitment.ops_root;
        let check = |answer| match answer {
            Answer::Operations(response) if is_proven(&request, root, &response) => Ok(*response),
            Answer::Operations(_) => Err(format!("{request} with a proof that does not hold")),
            _ => Err("not operations".to_owned()),
        };
        let response = self.asker.ask_any(&Question::Operations(request), check).await?;
        self.count(&response);
        // Verified already: there is nothing to report back.
        Ok((response, None))
    }
}
