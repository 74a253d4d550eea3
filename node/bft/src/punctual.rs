//! Withholds the vote for a block that is too far ahead of this node's clock.
//!
//! Consensus notarizes a block before the application has verified it, and certifies it afterwards. Verification of a
//! block from the future waits for its time. If such a block were notarized, a network could stop: one of four validators
//! has a clock an hour ahead and proposes, and a Byzantine one certifies its block. These two enter the next view, the
//! other two wait for an hour, and neither pair is a quorum. So this node does not notarize a block that it could not
//! verify within the view, and the view times out.

use crate::{
    block::ConsensusBlock,
    engine::{Marshal, Timeouts},
};
use almanac_consensus::Clock as Time;
use almanac_primitives::{DurationMs, TimestampMs};
use commonware_consensus::{Automaton, CertifiableAutomaton, marshal::core::DigestFallback, types::Round};
use commonware_cryptography::Digestible;
use commonware_runtime::{Clock, Metrics, Spawner};
use commonware_utils::channel::oneshot;
use std::{fmt, future::Future, sync::Arc, time::Duration};

/// Longest sleep between two reads of the clock, which may be corrected in the meantime.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The timing rules of a vote.
#[derive(Clone)]
pub struct Punctuality {
    /// This node's clock.
    pub now: Arc<dyn Fn() -> TimestampMs + Send + Sync>,
    /// How far ahead of it a block may be.
    pub ahead_max: Duration,
}

impl fmt::Debug for Punctuality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Punctuality").field("ahead_max", &self.ahead_max).finish_non_exhaustive()
    }
}

impl Punctuality {
    /// Allows blocks ahead of the clock by the node's tolerance plus the time it has to judge one.
    pub fn new(clock: impl Time, tolerance: DurationMs, timeouts: &Timeouts) -> Self {
        let ahead_max = Duration::from_millis(tolerance.0) + timeouts.certification;
        Self { now: Arc::new(move || clock.now()), ahead_max }
    }

    /// How long the vote for a block must wait; `None` if it need not.
    fn wait_for(&self, block: TimestampMs) -> Option<Duration> {
        let ahead = Duration::from_millis(block.0.saturating_sub((self.now)().0));
        ahead.checked_sub(self.ahead_max).filter(|wait| !wait.is_zero())
    }
}

/// An automaton that delays votes for blocks that are too far ahead.
pub(crate) struct Punctual<E, A> {
    context: Arc<E>,
    inner: A,
    marshal: Marshal,
    punctuality: Punctuality,
}

impl<E, A: Clone> Clone for Punctual<E, A> {
    fn clone(&self) -> Self {
        let (context, punctuality) = (self.context.clone(), self.punctuality.clone());
        Self { context, inner: self.inner.clone(), marshal: self.marshal.clone(), punctuality }
    }
}

impl<E, A> Punctual<E, A> {
    pub(crate) fn new(context: E, inner: A, marshal: Marshal, punctuality: Punctuality) -> Self {
        Self { context: Arc::new(context), inner, marshal, punctuality }
    }
}

impl<E, A> Automaton for Punctual<E, A>
where
    E: Spawner + Clock + Metrics,
    A: Automaton<Digest = <ConsensusBlock as Digestible>::Digest, Context: Send>,
{
    type Context = A::Context;
    type Digest = A::Digest;

    fn propose(
        &mut self,
        context: Self::Context,
    ) -> impl Future<Output = oneshot::Receiver<Self::Digest>> + Send {
        self.inner.propose(context)
    }

    async fn verify(&mut self, context: Self::Context, payload: Self::Digest) -> oneshot::Receiver<bool> {
        let block = self.marshal.subscribe_by_digest(payload, DigestFallback::Wait);
        // Verification begins at once: only the answer waits.
        let answer = self.inner.verify(context, payload).await;
        let (mut sender, receiver) = oneshot::channel();
        let punctuality = self.punctuality.clone();
        self.context.child("punctual").spawn(move |context| async move {
            let voted = async {
                let (answer, block) = (answer.await.ok()?, block.await.ok()?);
                while let Some(wait) = punctuality.wait_for(block.inner().block().header.timestamp) {
                    context.sleep(wait.min(LOOK_AGAIN)).await;
                }
                Some(answer)
            };
            tokio::select! {
                biased;
                () = sender.closed() => {}
                voted = voted => if let Some(voted) = voted {
                    // Consensus may have moved on.
                    let _ = sender.send(voted);
                }
            }
        });
        receiver
    }
}

impl<E, A> CertifiableAutomaton for Punctual<E, A>
where
    E: Spawner + Clock + Metrics,
    A: CertifiableAutomaton<Digest = <ConsensusBlock as Digestible>::Digest, Context: Send>,
{
    fn prepare(
        &mut self,
        context: Self::Context,
    ) -> impl Future<Output = oneshot::Receiver<commonware_consensus::Handoff<Self::Digest>>> + Send {
        self.inner.prepare(context)
    }

    fn certify(
        &mut self,
        round: Round,
        payload: Self::Digest,
    ) -> impl Future<Output = oneshot::Receiver<bool>> + Send {
        self.inner.certify(round, payload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both sides of how far ahead a block may be.
    #[test]
    fn a_block_waits_for_as_long_as_it_is_too_far_ahead() {
        let now = Arc::new(|| TimestampMs(10_000));
        let punctuality = Punctuality { now, ahead_max: Duration::from_millis(2_200) };
        let wait = |block| punctuality.wait_for(TimestampMs(block));
        assert_eq!([0, 9_999, 10_000, 12_200].map(wait), [None; 4]);
        assert_eq!(wait(12_201), Some(Duration::from_millis(1)));
        assert_eq!(wait(10_000 + 3_600_000), Some(Duration::from_millis(3_597_800)));
        assert!(wait(u64::MAX).is_some());
    }
}
