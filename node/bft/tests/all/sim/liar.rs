//! A validator that means ill: it proposes blocks which are not what executing them gives, and votes for everything.

use crate::sim::{
    clock::SimClock,
    machine::Machine,
    market,
    marks::{Mark, Marks},
    network::Network,
    opened::Store,
};
use alloy_primitives::{B256, BlockHash};
use almanac_bft::{
    ConsensusBlock, RuntimeClock, Voter,
    block::{BlockContext, key_bytes},
};
use almanac_consensus::{Application as Chain, Deadline, Proposal};
use almanac_primitives::{Block, TimestampMs, block::receipts_root};
use commonware_consensus::{Application, marshal::ancestry::Ancestry, simplex::scheme::ed25519::Scheme};
use commonware_cryptography::{Digested, Signer as _, ed25519::PrivateKey};
use commonware_runtime::{Clock, Spawner};
use futures::StreamExt as _;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

/// What a validator does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
    /// The parent is said to be of another view; everything else is true.
    Views,
    /// The body has the first transaction twice, or none where there is none.
    Body,
    /// A due run is left out, and all roots are those of that.
    DropRun,
    /// A due run is done twice.
    RepeatRun,
    /// Due runs are done in another order.
    ReorderRuns,
    /// A market run is left out.
    DropMarket,
    /// Market runs are said to have run in another order.
    ReorderMarket,
    /// A market run is said to have paid another price.
    MispriceMarket,
    /// There is no proposal at all.
    Silence,
    /// The block is true, and some validators do not get it, nor when they ask for it.
    Withhold,
    /// The block is true, and some validators get it with another body under the same header.
    OtherBody,
    /// No application at all: it signs every vote that it hears of, and another for a block that does not exist.
    Votes,
    /// It is never there.
    Absent,
    /// Two true blocks in each of its views, each for a part of the others, and votes for both.
    Equivocate,
    /// Two honest validators with one key that are separated in ever new ways.
    Twins,
    /// The same, one for each of two honest validators.
    Sides,
}

impl Lie {
    /// What a proposer can lie about.
    pub const OF_PROPOSERS: [Self; 14] = [
        Self::StateRoot,
        Self::OpsRoot,
        Self::ReceiptsRoot,
        Self::Gas,
        Self::BaseFee,
        Self::FeeRecipient,
        Self::EqualTime,
        Self::EarlyTime,
        Self::Body,
        Self::DropRun,
        Self::RepeatRun,
        Self::ReorderRuns,
        Self::Silence,
        Self::Withhold,
    ];

    /// Whether it is about what is due.
    pub fn is_about_runs(self) -> bool {
        matches!(self, Self::DropRun | Self::RepeatRun | Self::ReorderRuns) || self.is_about_market()
    }

    /// Whether it is about scheduled transactions, which only some networks have.
    fn is_about_market(self) -> bool {
        matches!(self, Self::DropMarket | Self::ReorderMarket | Self::MispriceMarket)
    }

    /// Makes a lie of an honest block.
    fn tell(self, block: &Block, parent_time: TimestampMs) -> Option<Block> {
        let mut block = block.clone();
        let header = &mut block.header;
        match self {
            Self::None
            | Self::FeeRecipient
            | Self::DropRun
            | Self::RepeatRun
            | Self::ReorderRuns
            | Self::DropMarket
            | Self::ReorderMarket
            | Self::MispriceMarket
            | Self::Withhold
            | Self::OtherBody
            | Self::Equivocate
            | Self::Twins
            | Self::Sides => {}
            Self::StateRoot => header.commitment.state_root = B256::repeat_byte(1),
            Self::OpsRoot => header.commitment.ops_root = B256::repeat_byte(1),
            Self::ReceiptsRoot => header.receipts_root = B256::repeat_byte(1),
            Self::Gas => header.gas_used.0 += 1,
            Self::BaseFee => header.base_fee.0 += 1,
            Self::EqualTime => header.timestamp = parent_time,
            Self::EarlyTime => header.timestamp = TimestampMs(parent_time.0.saturating_sub(1)),
            Self::Views => header.consensus.parent_view ^= 1,
            Self::Body => match block.transactions.first().cloned() {
                Some(first) => block.transactions.push(first),
                None => header.transactions_root = B256::repeat_byte(1),
            },
            Self::Silence | Self::Votes | Self::Absent => return None,
        }
        Some(block)
    }
}

/// The blocks that each pair of twins has proposed in a view.
pub type Proposed = Arc<Mutex<BTreeMap<(usize, u64), BlockHash>>>;

type SimVoter = Voter<Store, SimClock<RuntimeClock<Machine>>>;

#[derive(Clone)]
pub struct Liar {
    pub network: Network,
    pub voter: SimVoter,
    /// The same with another clock, for its proposals.
    pub proposer: SimVoter,
    /// Executes blocks by another agenda than the calendar.
    pub tampered: Option<Arc<Chain<Store>>>,
    pub index: usize,
    pub lie: Lie,
    /// Whether its clock is wrong.
    pub is_skewed: bool,
    pub proposed: Proposed,
    pub marks: Marks,
}

impl<E: Spawner + Clock> Application<E> for Liar {
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
        if self.is_skewed {
            self.marks.add(Mark::Skew);
        }
        self.work(honest.inner().block()).await;
        let block = honest.inner().block();
        match self.lie {
            Lie::None | Lie::Withhold | Lie::OtherBody => return Some(honest),
            lie if lie.is_twin() => {
                self.note_equivocation(block);
                return Some(honest);
            }
            lie if lie.is_about_runs() => return Some(self.tamper(block).await.unwrap_or(honest)),
            _ => {}
        }
        self.marks.add(Mark::Told(self.lie));
        let lie = self.lie.tell(block, parent_time)?;
        Some(ConsensusBlock::new(Arc::new(lie)).unwrap().digested())
    }

    async fn verify(&mut self, context: (E, BlockContext), ancestry: impl Ancestry<ConsensusBlock>) -> bool {
        let is_honest = self.lie == Lie::None || self.lie.is_twin();
        if !is_honest {
            return true;
        }
        let Some(block) = ancestry.clone().next().await else { return std::future::pending().await };
        let block = block.inner().block();
        let transactions = u32::try_from(block.transactions.len()).unwrap();
        self.voter.clock.pass(self.network.transaction_time * transactions).await;
        let is_accepted = self.voter.verify(context, ancestry).await;
        if !is_accepted {
            self.note_refusal(block);
        }
        is_accepted
    }
}

impl Liar {
    /// Lets the time pass that the proposal took.
    async fn work(&self, proposed: &Block) {
        if self.network.transaction_time.is_zero() {
            return;
        }
        let offered = self.voter.pool.candidates().len();
        if offered > proposed.transactions.len() {
            self.marks.add(Mark::Overload);
        }
        self.proposer.clock.pass_choosing().await;
    }

    /// `honest_accepts_honest`: a refusal is a verdict for ever, and no honest block deserves one, whatever happens
    /// to the disks and clocks of proposer and voter.
    fn note_refusal(&self, block: &Block) {
        let header = &block.header;
        let is_leader = |key: &PrivateKey| key_bytes(&key.public_key()) == header.consensus.leader;
        let Some(leader) = self.network.keys.iter().position(is_leader) else { return };
        if self.network.lies[leader] == Lie::None {
            let (index, number) = (self.index, header.number);
            let text = format!("validator {index} refused block {number} of the honest validator {leader}");
            self.network.violated(text);
        }
    }

    fn note_equivocation(&self, block: &Block) {
        let place = (self.index, block.header.consensus.view);
        let before = self.proposed.lock().unwrap().insert(place, block.hash());
        if before.is_some_and(|before| before != block.hash()) {
            self.marks.add(Mark::Equivocation);
        }
    }

    /// The same block with other due runs, if the parent is final already and anything is due.
    async fn tamper(&self, honest: &Block) -> Option<Digested<ConsensusBlock>> {
        let parent = self.voter.replica.tip();
        let header = &honest.header;
        if parent.hash != header.parent_hash {
            return None;
        }
        let proposal = Proposal {
            timestamp: header.timestamp,
            fee_recipient: header.fee_recipient,
            consensus: header.consensus,
            candidates: self.voter.pool.candidates(),
            more: almanac_consensus::More::NONE,
            deadline: Deadline::NEVER,
        };
        let made = self.tampered.as_ref()?.propose(&parent, proposal).await.ok()?;
        let mut block = Block::clone(&made.block);
        if let Some(receipts) = market::falsified(self.lie, &made.output.receipts) {
            block.header.receipts_root = receipts_root(&receipts);
        }
        if block.header.receipts_root == header.receipts_root {
            return None;
        }
        self.marks.add(Mark::Told(self.lie));
        Some(ConsensusBlock::new(Arc::new(block)).unwrap().digested())
    }
}
