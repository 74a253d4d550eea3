//! The chain as requests see it: blocks by number, hash or tag, and the state after them.

use crate::error;
use alloy_eips::{BlockId, BlockNumberOrTag};
use alloy_primitives::{Address, U256};
use almanac_index::{HistoricalState, Index, IndexedBlock};
use almanac_primitives::{Account, Chain, StateKey, StateRead as _, TimestampMs, state::decode_slot};
use almanac_schedule::Agenda;
use jsonrpsee::core::RpcResult;
use std::sync::Arc;

/// What every method answers from.
#[derive(Clone)]
pub struct View {
    /// Chain id that transactions are signed for.
    pub chain: Chain,
    /// Blocks, receipts and state.
    pub index: Arc<Index>,
    /// What is due when; a block that is run again asks it as the first time.
    pub agenda: Arc<dyn Agenda>,
    /// The time that a block would have if it came now.
    pub next_time: Arc<dyn Fn() -> TimestampMs + Send + Sync>,
    /// How many transactions wait for the next block, where that block is known: on a developer's chain.
    pub waiting: Option<Arc<dyn Fn() -> usize + Send + Sync>>,
}

impl View {
    /// The block with this name. An error where there is none: for methods that need it.
    pub fn block(&self, id: Option<BlockId>) -> RpcResult<Arc<IndexedBlock>> {
        let id = id.unwrap_or_default();
        self.find(id)?.ok_or_else(|| error::unknown_block(id))
    }

    /// The block with this name, if there is one: for methods that answer null.
    pub fn find(&self, id: BlockId) -> RpcResult<Option<Arc<IndexedBlock>>> {
        let found = match id {
            BlockId::Hash(hash) => self.index.block_by_hash(hash.block_hash),
            BlockId::Number(BlockNumberOrTag::Number(number)) => self.index.block(number),
            BlockId::Number(BlockNumberOrTag::Earliest) => self.index.block(0),
            // A block is final the moment it exists, so the other tags all mean the last one.
            BlockId::Number(_) => Ok(Some(self.index.tip())),
        };
        found.map_err(error::internal)
    }

    /// The height of the block with this name, without reading the block.
    pub fn number(&self, id: Option<BlockId>) -> RpcResult<u64> {
        let (id, tip) = (id.unwrap_or_default(), self.index.height());
        let found = match id {
            BlockId::Hash(hash) => self.index.number_of(hash.block_hash).map_err(error::internal)?,
            BlockId::Number(BlockNumberOrTag::Number(number)) => Some(number),
            BlockId::Number(BlockNumberOrTag::Earliest) => Some(0),
            BlockId::Number(_) => Some(tip),
        };
        let is_there = |number: &u64| *number <= tip && (*number == 0 || *number > self.index.floor());
        found.filter(is_there).ok_or_else(|| error::unknown_block(id))
    }

    /// The state after a block, without reading the block.
    pub fn state_only(&self, id: Option<BlockId>) -> RpcResult<HistoricalState> {
        let number = self.number(id)?;
        self.index.state_at(number).ok_or_else(|| error::unknown_block(number))
    }

    /// A block and the state after it.
    pub fn state(&self, id: Option<BlockId>) -> RpcResult<(Arc<IndexedBlock>, HistoricalState)> {
        let block = self.block(id)?;
        let state = self.index.state_at(block.number());
        Ok((block.clone(), state.ok_or_else(|| error::unknown_block(block.number()))?))
    }

    /// An account after a block; an empty one where there is none.
    pub fn account(&self, address: Address, id: Option<BlockId>) -> RpcResult<Account> {
        account(&self.state_only(id)?, address)
    }
}

/// An account in a state; an empty one where there is none.
pub(crate) fn account(state: &HistoricalState, address: Address) -> RpcResult<Account> {
    let stored = state.read(StateKey::Account(address)).map_err(error::internal)?;
    stored.map_or_else(|| Ok(Account::default()), |bytes| Account::decode(&bytes)).map_err(error::internal)
}

/// A slot of an account in a state.
pub(crate) fn slot(state: &HistoricalState, address: Address, slot: U256) -> RpcResult<U256> {
    let stored = state.read(StateKey::Slot(address, slot)).map_err(error::internal)?;
    stored.map_or(Ok(U256::ZERO), |stored| decode_slot(&stored)).map_err(error::internal)
}
