//! Executes a block again on the state before it, under a tracer.

use crate::{
    error::TraceError,
    limits::{Limiter, Limits},
    tracer::{Seen, Tracer},
};
use alloy_rpc_types_eth::TransactionInfo;
use almanac_exec::{BlockBody, BlockInput, Finished, Observer, Rules, Watch, observe, recover_all};
use almanac_index::{HistoricalState, Index, IndexedBlock};
use almanac_primitives::{Chain, Header, RecoveredTransaction, StateRead};
use almanac_schedule::Agenda;

/// A block that can be executed again, with its parent and the parent's state.
pub struct Replay<'r> {
    block: &'r IndexedBlock,
    parent: Header,
    state: HistoricalState,
    agenda: &'r dyn Agenda,
    chain: Chain,
}

impl<'r> Replay<'r> {
    /// Prepares a block, or returns why it cannot. `None` for genesis, in which nothing ran.
    pub fn new(
        index: &Index,
        agenda: &'r dyn Agenda,
        chain: Chain,
        block: &'r IndexedBlock,
    ) -> Result<Option<Self>, TraceError> {
        let number = block.number();
        let Some(before) = number.checked_sub(1) else { return Ok(None) };
        let gone = || TraceError::StateGone { number, oldest: index.oldest_state().saturating_add(1) };
        let state = index.state_at(before).ok_or_else(gone)?;
        let parent = index.header(before)?.ok_or_else(gone)?;
        if parent.hash() != block.block.header.parent_hash {
            return Err(TraceError::TakenBack { number });
        }
        Ok(Some(Self { block, parent, state, agenda, chain }))
    }

    /// The trace of one transaction, by receipt index.
    pub fn one<T: Tracer>(&self, tracer: &T, index: usize, limits: Limits) -> Result<T::Trace, TraceError> {
        let (number, count) = (self.block.number(), self.block.receipts.len());
        let mut traces = self.run(tracer, Watch::Only(index), limits)?;
        traces.pop().ok_or(TraceError::NoSuchTransaction { number, index, count })
    }

    /// The traces of everything that ran in the block, in order, including hidden transactions.
    pub fn all<T: Tracer>(&self, tracer: &T, limits: Limits) -> Result<Vec<T::Trace>, TraceError> {
        self.run(tracer, Watch::Everything, limits)
    }

    fn run<T: Tracer>(&self, tracer: &T, watch: Watch, limits: Limits) -> Result<Vec<T::Trace>, TraceError> {
        let mut body = BlockBody::new(self.block_body()?);
        let input = BlockInput::of_block(&self.block.block, self.parent.clone(), self.chain)?;
        let mut traces = Vec::new();
        let mut finished = |finished: Finished<'_>, (limiter, inspector): &mut (Limiter, T::Inspector)| {
            limiter.look_at_clock();
            limiter.add(tracer.counted(inspector));
            let inspector = std::mem::replace(inspector, tracer.inspector());
            let seen = Seen { info: self.info(&finished), footprint: finished.footprint };
            traces.push(tracer.trace(inspector, &seen));
        };
        let inspector = (Limiter::new(limits, tracer.keeps()), tracer.inspector());
        let mut observer = Observer { inspector, watch, finished: &mut finished };
        let output = observe(&self.state as &dyn StateRead, self.agenda, &input, &mut body, &mut observer);
        let (limiter, inspector) = &mut observer.inspector;
        limiter.add(tracer.counted(inspector));
        if let Some(passed) = limiter.error() {
            return Err(passed);
        }
        self.compare(&output?.receipts)?;
        traces.into_iter().collect()
    }

    fn block_body(&self) -> Result<Vec<RecoveredTransaction>, TraceError> {
        let rules = Rules::read(self.chain, &self.state)?;
        let number = self.block.number();
        recover_all(&self.block.block.transactions, &rules).map_err(|(index, error)| TraceError::Invalid {
            number,
            index,
            error: Box::new(error),
        })
    }

    fn info(&self, finished: &Finished<'_>) -> TransactionInfo {
        let header = &self.block.block.header;
        TransactionInfo {
            hash: Some(finished.receipt.transaction_hash),
            index: u64::try_from(finished.index.saturating_sub(self.block.unseen())).ok(),
            block_hash: Some(self.block.hash),
            block_number: Some(header.number),
            base_fee: u64::try_from(header.base_fee.0).ok(),
            block_timestamp: Some(header.timestamp.seconds()),
        }
    }

    /// Fails unless the receipts equal the stored ones, so that a trace always shows what happened.
    fn compare(&self, receipts: &[almanac_primitives::Receipt]) -> Result<(), TraceError> {
        let stored = &self.block.receipts;
        if receipts == stored {
            return Ok(());
        }
        let index = receipts.iter().zip(stored).take_while(|(now, then)| now == then).count();
        Err(TraceError::Differs { number: self.block.number(), index })
    }
}
