//! Proposes, verifies and commits blocks, the same for every engine.

use crate::{
    admission::SharedPool,
    deadline::{Deadline, InTime, LeftOut, More},
    narrow::Narrow,
    spread::spread,
};
use alloy_primitives::{Address, B256, BlockHash, TxHash};
use almanac_exec::{
    BlockBody, BlockError, BlockInput, BlockOutput, Environment, Fault, HeaderMismatch, Rules, StateFault,
    TransactionError, check_header,
    environment::{base_fee_after, read_parameters},
    execute, prefetch, recover_unknown,
};
use almanac_primitives::{
    Block, Chain, ConsensusContext, Genesis, Header, RecoveredTransaction, StateKey, StateReadError,
    TimestampMs, genesis::GenesisError,
};
use almanac_schedule::{Agenda, calendar::CalendarError};
use almanac_state::{
    ArchiveError, BlockArchive, CommitError, ProveError, SealError, SealedBatch, StateProof, StateStore,
    with_reader,
};
use std::sync::Arc;

/// The chain's rules on top of a state store.
pub struct Application<S> {
    store: S,
    agenda: Arc<dyn Agenda>,
    chain: Chain,
    /// Block 0, if the chain started there.
    origin: Option<Header>,
    archive: Option<Arc<dyn BlockArchive>>,
    /// Provides senders that were recovered before.
    pool: Option<Arc<SharedPool>>,
    /// How many candidates a proposal takes while the cause of a block's fault is being searched.
    narrow: Narrow,
}

/// A block to build on: its header, and the state after it.
#[derive(Clone, Debug)]
pub struct Tip<B> {
    /// Its header.
    pub header: Header,
    /// Its hash.
    pub hash: BlockHash,
    /// The state after it.
    pub state: B,
    /// One for all copies of this tip.
    copies: Arc<()>,
}

impl<B> Tip<B> {
    /// The block with this header, and the state after it.
    pub fn new(header: Header, state: B) -> Self {
        Self { hash: header.hash(), header, state, copies: Arc::default() }
    }

    /// Whether somebody has a copy of it, to build on.
    pub fn is_copied(&self) -> bool {
        Arc::strong_count(&self.copies) > 1
    }
}

/// What a proposer decides.
#[derive(Clone, Debug)]
pub struct Proposal {
    /// The block's time. It must be after the parent's.
    pub timestamp: TimestampMs,
    /// Receives the tips.
    pub fee_recipient: Address,
    /// Its position in consensus.
    pub consensus: ConsensusContext,
    /// Transactions to choose from, best first. The proposer spreads them by sender and target.
    pub candidates: Vec<RecoveredTransaction>,
    /// Where to find further ones if many of these are void.
    pub more: More,
    /// When to stop choosing.
    pub deadline: Deadline,
}

/// An executed block, which can be committed or built on.
#[derive(Clone, Debug)]
pub struct MadeBlock<B> {
    /// The block.
    pub block: Arc<Block>,
    /// The result of executing it.
    pub output: Arc<BlockOutput>,
    /// The tip after it.
    pub tip: Tip<B>,
    /// Candidates that a proposer left out, and why. Empty for a verified block.
    pub refused: Vec<(TxHash, TransactionError)>,
    /// Candidates that caused an internal fault or a state failure when a proposer tried them. Empty for a
    /// verified block.
    pub faulted: Vec<(TxHash, BlockError)>,
}

/// Values of the state after a block, each with its proof.
#[derive(Clone, Debug)]
pub struct Proven {
    /// The block.
    pub header: Header,
    /// The proofs, in the order of the request.
    pub proofs: Vec<StateProof>,
}

/// Why a block cannot be built, verified or committed.
#[derive(Debug, thiserror::Error)]
pub enum ApplicationError {
    /// The block is invalid on its parent.
    #[error(transparent)]
    Block(#[from] BlockError),
    /// Its header does not match the result of executing it.
    #[error(transparent)]
    Header(#[from] HeaderMismatch),
    /// It has another parent.
    #[error("block {hash} names the parent {given}, but is offered on {parent}")]
    WrongParent {
        /// The block.
        hash: BlockHash,
        /// The parent in its header.
        given: BlockHash,
        /// The given parent.
        parent: BlockHash,
    },
    /// The state store rejected the changes.
    #[error("the state cannot be sealed: {0}")]
    Seal(#[from] SealError),
    /// The state store could not commit.
    #[error("the state cannot be committed: {0}")]
    Commit(#[from] CommitError),
    /// The block could not be archived.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The store's state differs from the one in the block's header.
    #[error(
        "the store holds the state {found}, block {number} has {expected}: restore a backup, or sync again"
    )]
    OtherState {
        /// The block.
        number: u64,
        /// The root in its header.
        expected: B256,
        /// The root of the store.
        found: B256,
    },
    /// The genesis is invalid.
    #[error(transparent)]
    Genesis(#[from] GenesisError),
}

impl ApplicationError {
    /// Whether a value could not be read and may be another time: nothing was changed, so a retry may succeed.
    pub fn is_unread(&self) -> bool {
        matches!(self, Self::Block(BlockError::State(StateFault::Read(error))) if !error.is_closed)
    }
}

impl From<StateReadError> for ApplicationError {
    fn from(error: StateReadError) -> Self {
        Self::Block(StateFault::Read(error).into())
    }
}

impl<S: StateStore<Batch: Send + 'static>> Application<S> {
    /// An application over a store with the genesis state, and the tip at genesis.
    pub fn new(
        genesis: &Genesis,
        store: S,
        agenda: Arc<dyn Agenda>,
    ) -> Result<(Self, Tip<S::Batch>), ApplicationError> {
        let header = genesis.header(store.tip().commitment())?;
        Self::resume(genesis, header.hash(), store, agenda, header)
    }

    /// An application over a store with the state after the block with this header. `origin` is the hash of block 0.
    pub fn resume(
        genesis: &Genesis,
        origin: BlockHash,
        store: S,
        agenda: Arc<dyn Agenda>,
        header: Header,
    ) -> Result<(Self, Tip<S::Batch>), ApplicationError> {
        let state = store.tip();
        let found = state.commitment();
        if found != header.commitment {
            return Err(ApplicationError::OtherState {
                number: header.number,
                expected: header.commitment.state_root,
                found: found.state_root,
            });
        }
        let chain = Chain { id: genesis.chain_id, genesis: origin };
        let origin = (header.number == 0).then(|| header.clone());
        let tip = Tip::new(header, state);
        let narrow = Narrow::default();
        Ok((Self { store, agenda, chain, origin, archive: None, pool: None, narrow }, tip))
    }

    /// Resets to block 0 and returns that tip, or `None` without any change if the store cannot reset.
    pub fn reset(&self) -> Option<Tip<S::Batch>> {
        let header = self.origin.clone().filter(|_| self.archive.is_none())?;
        let state = self.store.reset()?;
        Some(Tip::new(header, state))
    }

    /// The store below.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// Appends every block committed from now on to `archive`, before it is announced.
    pub fn keep_archive(&mut self, archive: Arc<dyn BlockArchive>) {
        self.archive = Some(archive);
    }

    /// Takes the senders of transactions in `pool` from there, instead of recovering them again in every block.
    pub fn know_senders(&mut self, pool: Arc<SharedPool>) {
        self.pool = Some(pool);
    }

    /// The chain that transactions must be signed for.
    pub fn chain(&self) -> Chain {
        self.chain
    }

    /// Builds a block on `parent` from the candidates that pass. Leaves out candidates that cause a fault. If a
    /// fault remains, the body is empty, and the next proposals take fewer candidates until the culprit is
    /// known.
    pub async fn propose(
        &self,
        parent: &Tip<S::Batch>,
        proposal: Proposal,
    ) -> Result<MadeBlock<S::Batch>, ApplicationError> {
        let Proposal { timestamp, fee_recipient, consensus, candidates, more, deadline } = proposal;
        let input = BlockInput {
            chain: self.chain,
            parent: parent.header.clone(),
            parent_hash: parent.hash,
            timestamp,
            fee_recipient,
            consensus,
        };
        // While a culprit is searched, the order of price stays: proposals that pass must bring it to the front.
        let (candidates, more) = match self.narrow.is_searching() {
            true => (candidates, More::NONE),
            false => (spread(&candidates), more),
        };
        let source = InTime::new(candidates, deadline.clone(), consensus.failed_views()).with_more(more);
        let Unmade { error, taken } = match self.make(parent, input.clone(), self.narrow.limit(source)).await
        {
            Ok(made) => {
                self.narrow.widen();
                return Ok(made);
            }
            Err(unmade) => unmade,
        };
        if taken.is_empty() || !is_fault(&error) {
            return Err(error);
        }
        tracing::error!(
            "proposing an empty body, because one of {} transactions causes a fault: {error}",
            taken.len()
        );
        let mut made = self.make(parent, input, InTime::new(Vec::new(), deadline, 0)).await?;
        // A failed read says nothing about the candidates, and an empty body that also fails clears them.
        if let Some(fault) = fault_of_candidates(error) {
            made.faulted.extend(self.narrow.after_fault(&taken).map(|culprit| (culprit, fault)));
        }
        Ok(made)
    }

    async fn make(
        &self,
        parent: &Tip<S::Batch>,
        input: BlockInput,
        mut source: InTime,
    ) -> Result<MadeBlock<S::Batch>, Unmade> {
        let keys = prefetch(parent.header.number.saturating_add(1), input.fee_recipient);
        let agenda = self.agenda.clone();
        let executed = with_reader(&parent.state, &keys, move |state| {
            let output = execute(state, &*agenda, &input, &mut source);
            (output, source)
        });
        let (output, source) = executed.await.map_err(ApplicationError::from)?;
        let unmade = |error: ApplicationError| Unmade { error, taken: source.taken().to_vec() };
        let output = output.map_err(|error| unmade(error.into()))?;
        let sealed = self.store.seal(&parent.state, &output.diff).await;
        let state = sealed.map_err(|error| unmade(error.into()))?;
        let block = output.block(state.commitment());
        let LeftOut { refused, faulted } = source.left_out();
        for (hash, error) in &faulted {
            tracing::error!("leaving transaction {hash} out of block {}: {error}", block.header.number);
        }
        Ok(MadeBlock { refused, faulted, ..made(block, output, state) })
    }

    /// Executes a block on `parent` and checks its whole header. The result is the same on every honest node,
    /// forever.
    pub async fn verify(
        &self,
        parent: &Tip<S::Batch>,
        block: Block,
    ) -> Result<MadeBlock<S::Batch>, ApplicationError> {
        if block.header.parent_hash != parent.hash {
            return Err(ApplicationError::WrongParent {
                hash: block.hash(),
                given: block.header.parent_hash,
                parent: parent.hash,
            });
        }
        let input = BlockInput::of_block(&block, parent.header.clone(), self.chain)?;
        let rules = self.rules(parent).await?;
        let known = self.pool.as_ref().map(|pool| pool.known(&block.transactions)).unwrap_or_default();
        let senders = recover_unknown(&block.transactions, &rules, &known)
            .map_err(|(index, error)| BlockError::InvalidTransaction { index, error })?;
        let keys = prefetch(block.header.number, block.header.fee_recipient);
        let agenda = self.agenda.clone();
        let output = with_reader(&parent.state, &keys, move |state| {
            execute(state, &*agenda, &input, &mut BlockBody::new(senders))
        })
        .await??;
        let state = self.store.seal(&parent.state, &output.diff).await?;
        check_header(&block.header, &output.header(state.commitment()))?;
        Ok(made(block, output, state))
    }

    /// Makes a block final: first in the archive, if there is one, then in the state. After a crash in between,
    /// the archive is ahead, and executing its last block again brings the state up to it.
    pub async fn commit(&self, made: &MadeBlock<S::Batch>) -> Result<(), ApplicationError> {
        self.commit_certified(made, None).await
    }

    /// The same, with the quorum's certificate.
    pub async fn commit_certified(
        &self,
        made: &MadeBlock<S::Batch>,
        certificate: Option<&[u8]>,
    ) -> Result<(), ApplicationError> {
        if let Some(archive) = &self.archive {
            archive.append(&made.block, &made.output.receipts, certificate).await?;
        }
        Ok(self.store.commit(&made.tip.state).await?)
    }

    /// Proves values in the state after `tip`, which must be committed.
    pub async fn prove(&self, tip: &Tip<S::Batch>, keys: &[StateKey]) -> Result<Proven, ProveError> {
        let mut proofs = Vec::with_capacity(keys.len());
        for key in keys {
            proofs.push(self.store.prove(&tip.header, *key).await?);
        }
        Ok(Proven { header: tip.header.clone(), proofs })
    }

    /// Rules for transactions of the next block on `tip`.
    pub async fn rules(&self, tip: &Tip<S::Batch>) -> Result<Rules, ApplicationError> {
        let chain = self.chain;
        let rules = with_reader(&tip.state, &[], move |state| Rules::read(chain, state)).await?;
        Ok(rules.map_err(BlockError::State)?)
    }

    /// The environment of the next block on `tip`, if it came a millisecond later.
    pub async fn next_environment(&self, tip: &Tip<S::Batch>) -> Result<Environment, ApplicationError> {
        let input = BlockInput {
            chain: self.chain,
            parent: tip.header.clone(),
            parent_hash: tip.hash,
            timestamp: TimestampMs(tip.header.timestamp.0.saturating_add(1)),
            fee_recipient: tip.header.fee_recipient,
            consensus: tip.header.consensus,
        };
        let derived = with_reader(&tip.state, &[], move |state| Environment::derive(&input, state)).await?;
        Ok(derived?)
    }

    /// The earliest time at which anything becomes due after `tip`.
    pub async fn next_due(&self, tip: &Tip<S::Batch>) -> Result<Option<TimestampMs>, ApplicationError> {
        let (agenda, parent) = (self.agenda.clone(), tip.header.clone());
        let next = with_reader(&tip.state, &[], move |state| {
            let parameters = read_parameters(state).map_err(BlockError::State)?;
            let base_fee = base_fee_after(&parent, &parameters, state).map_err(BlockError::State)?;
            match agenda.next_due(state, &parameters, base_fee) {
                Ok(next) => Ok(next),
                Err(CalendarError::Read(error)) => Err(StateFault::Read(error).into()),
                // Nothing to wait for: the next block hits the same error and pauses the lane.
                Err(_) => Ok(None),
            }
        });
        Ok(next.await?.map_err(|error: BlockError| error)?)
    }
}

fn made<B>(block: Block, output: BlockOutput, state: B) -> MadeBlock<B> {
    let tip = Tip::new(block.header.clone(), state);
    let (block, output) = (Arc::new(block), Arc::new(output));
    MadeBlock { block, output, tip, refused: Vec::new(), faulted: Vec::new() }
}

/// A block that could not be built.
struct Unmade {
    error: ApplicationError,
    /// The candidates it would have contained.
    taken: Vec<TxHash>,
}

impl From<ApplicationError> for Unmade {
    fn from(error: ApplicationError) -> Self {
        Self { error, taken: Vec::new() }
    }
}

impl From<Unmade> for ApplicationError {
    fn from(unmade: Unmade) -> Self {
        unmade.error
    }
}

/// The fault of a whole block, if a candidate may have caused it. A failed disk read is not one.
fn fault_of_candidates(error: ApplicationError) -> Option<BlockError> {
    match error {
        ApplicationError::Block(BlockError::State(StateFault::Read(_))) => None,
        ApplicationError::Block(error) => Some(error),
        error => Some(Fault::Unsealable { reason: error.to_string() }.into()),
    }
}

/// Whether an error is about this node or its state, not about its input.
fn is_fault(error: &ApplicationError) -> bool {
    matches!(
        error,
        ApplicationError::Block(BlockError::State(_) | BlockError::Fault(_))
            | ApplicationError::Seal(SealError::OldValueDiffers { .. } | SealError::ValueTooLarge { .. })
    )
}
