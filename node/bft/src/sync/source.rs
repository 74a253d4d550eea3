//! The operations of a state, from whichever peer proves them.

use super::{
    ask::{AskError, Asker},
    message::{Answer, Question},
    progress::{Phase, Progress},
};
use alloy_primitives::B256;
use almanac_state::qmdb::{
    Family,
    sync::{Digest, Operation, SyncRequest, SyncResponse, is_proven},
};
use commonware_codec::EncodeSize as _;
use commonware_cryptography::ed25519::PublicKey;
use commonware_p2p::{Blocker, Sender};
use commonware_runtime::Clock;
use commonware_storage::qmdb::sync::source;
use std::sync::Arc;

/// The operations of a state, from whichever peer proves them.
pub(super) struct PeerSource<E, S, B> {
    pub(super) asker: Arc<Asker<E, S, B>>,
    /// The root of the log in the block's header.
    pub(super) ops_root: B256,
    pub(super) progress: Arc<Progress>,
}

impl<E, S, B> PeerSource<E, S, B> {
    fn count(&self, response: &SyncResponse) {
        let operations = match response {
            SyncResponse::Operations { operations, .. } => operations.len(),
            SyncResponse::Boundary { .. } => 1,
        };
        let size = |size: usize| u64::try_from(size).expect("a size fits 64 bits");
        if self.progress.add(size(operations), size(response.encode_size())) {
            // From here on the library works alone, until the state is whole.
            self.progress.begin(Phase::Check, 0);
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
        let check = |answer| match answer {
            Answer::Operations(response) if is_proven(&request, self.ops_root, &response) => Ok(*response),
            Answer::Operations(_) => Err(format!("{request} with a proof that does not hold")),
            _ => Err("not operations".to_owned()),
        };
        let response = self.asker.ask_any(&Question::Operations(request), check).await?;
        self.count(&response);
        // Checked already: there is nothing to report back.
        Ok((response, None))
    }
}
