//! A validator that proposes blocks which are not what executing them gives, and votes for everything.

use alloy_primitives::B256;
use almanac_bft::{ConsensusBlock, Voter, block::BlockContext};
use almanac_consensus::Clock;
use almanac_primitives::{Block, TimestampMs};
use almanac_state::StateStore;
use commonware_consensus::{Application, marshal::ancestry::Ancestry, simplex::scheme::ed25519::Scheme};
use commonware_cryptography::Digested;
use commonware_runtime::Spawner;
use futures::StreamExt as _;
use std::sync::{Arc, Mutex};

/// What a proposer lies about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    None,
    StateRoot,
    OpsRoot,
    ReceiptsRoot,
    Gas,
    BaseFee,
    /// The tips go elsewhere; everything else is true.
    FeeRecipient,
    /// The time is the parent's.
    EqualTime,
    /// The time is before the parent's.
    EarlyTime,
    /// The body has the first transaction twice, or none where there is none.
    Body,
    /// There is no proposal at all.
    Silence,
    /// No application at all: it signs every vote that it hears of, and another for a block that does not exist.
    Votes,
}

impl Lie {
    /// Makes a lie of an honest block.
    fn tell(self, block: &Block, parent_time: TimestampMs) -> Option<Block> {
        let mut block = block.clone();
        let header = &mut block.header;
        match self {
            Self::None | Self::FeeRecipient => {}
            Self::StateRoot => header.commitment.state_root = B256::repeat_byte(1),
            Self::OpsRoot => header.commitment.ops_root = B256::repeat_byte(1),
            Self::ReceiptsRoot => header.receipts_root = B256::repeat_byte(1),
            Self::Gas => header.gas_used.0 += 1,
            Self::BaseFee => header.base_fee.0 += 1,
            Self::EqualTime => header.timestamp = parent_time,
            Self::EarlyTime => header.timestamp = TimestampMs(parent_time.0.saturating_sub(1)),
            Self::Body => match block.transactions.first().cloned() {
                Some(first) => block.transactions.push(first),
                None => header.transactions_root = B256::repeat_byte(1),
            },
            Self::Silence | Self::Votes => return None,
        }
        Some(block)
    }
}

pub struct Liar<S: StateStore, C> {
    pub voter: Voter<S, C>,
    /// The same with another clock, for its proposals.
    pub proposer: Voter<S, C>,
    pub lie: Lie,
    pub told: Arc<Mutex<u64>>,
}

impl<S: StateStore, C: Clone> Clone for Liar<S, C> {
    fn clone(&self) -> Self {
        let (voter, proposer) = (self.voter.clone(), self.proposer.clone());
        Self { voter, proposer, lie: self.lie, told: self.told.clone() }
    }
}

impl<E, S, C> Application<E> for Liar<S, C>
where
    E: Spawner,
    S: StateStore<Batch: Send + Sync + 'static> + 'static,
    C: Clock,
{
    type SigningScheme = Scheme;
    type Context = BlockContext;
    type Block = ConsensusBlock;
    type Input = ();

    async fn propose(
        &mut self,
        context: (E, BlockContext),
        ancestry: impl Ancestry<ConsensusBlock>,
        (): (),
    ) -> Option<Digested<ConsensusBlock>> {
        let parent_time = ancestry.clone().next().await?.inner().block().header.timestamp;
        let honest = self.proposer.propose(context, ancestry, ()).await?;
        if self.lie == Lie::None {
            return Some(honest);
        }
        *self.told.lock().unwrap() += 1;
        let lie = self.lie.tell(honest.inner().block(), parent_time)?;
        Some(ConsensusBlock::new(Arc::new(lie)).unwrap().digested())
    }

    async fn verify(&mut self, context: (E, BlockContext), ancestry: impl Ancestry<ConsensusBlock>) -> bool {
        self.lie != Lie::None || self.voter.verify(context, ancestry).await
    }
}
