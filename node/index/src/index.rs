//! Blocks, transactions and receipts by number and hash, beside the state's history.

use crate::history::{HistoricalState, History};
use alloy_primitives::{Address, BlockHash, Bytes, TxHash};
use almanac_primitives::{Block, Header, Receipt, StateDiff, StateKey};
use std::{
    collections::HashMap,
    sync::{Arc, RwLock},
};

/// What is remembered of one block.
#[derive(Clone, Debug)]
pub struct IndexedBlock {
    /// The block.
    pub block: Arc<Block>,
    /// Its hash.
    pub hash: BlockHash,
    /// The receipts of everything that ran in it.
    pub receipts: Vec<Receipt>,
    /// Who sent each of these, and to whom.
    pub parties: Vec<Parties>,
}

/// The two ends of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parties {
    /// The sender.
    pub from: Address,
    /// The recipient; `None` for a creation.
    pub to: Option<Address>,
}

/// Where a transaction ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// Height of the block.
    pub number: u64,
    /// Receipt index in it.
    pub index: usize,
}

/// A block that does not follow the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the index is at block {tip}, which block {given} ({hash}) does not follow: rebuild it from the blocks"
)]
pub struct IndexError {
    /// Height of the index.
    pub tip: u64,
    /// Height of the block.
    pub given: u64,
    /// Its hash.
    pub hash: BlockHash,
}

/// Everything that RPC asks for.
#[derive(Debug)]
pub struct Index {
    history: History,
    tables: RwLock<Tables>,
}

#[derive(Debug)]
struct Tables {
    blocks: Vec<Arc<IndexedBlock>>,
    numbers: HashMap<BlockHash, u64>,
    locations: HashMap<TxHash, Location>,
}

impl Index {
    /// The index of a chain that is at its genesis. State stays readable for the last `depth` blocks.
    pub fn new(genesis: Header, state: impl IntoIterator<Item = (StateKey, Bytes)>, depth: u64) -> Self {
        let hash = genesis.hash();
        let block = Arc::new(Block { header: genesis, transactions: Vec::new() });
        let tables = Tables {
            blocks: vec![Arc::new(IndexedBlock { block, hash, receipts: Vec::new(), parties: Vec::new() })],
            numbers: HashMap::from([(hash, 0)]),
            locations: HashMap::new(),
        };
        Self { history: History::new(state, depth), tables: RwLock::new(tables) }
    }

    /// Takes a final block. One that it has already changes nothing.
    pub fn apply(
        &self,
        block: &Arc<Block>,
        receipts: &[Receipt],
        parties: Vec<Parties>,
        diff: &StateDiff,
    ) -> Result<(), IndexError> {
        let number = block.header.number;
        let mut tables = self.tables.write().expect("nobody panics while holding the tables");
        let (tip, hash) = (tables.tip(), block.hash());
        if number <= tip && tables.numbers.get(&hash) == Some(&number) {
            return Ok(());
        }
        if number != tip + 1 || block.header.parent_hash != tables.tip_block().hash {
            return Err(IndexError { tip, given: number, hash });
        }
        // State first: whoever sees the new tip must find its state.
        self.history.apply(number, diff);
        for (index, receipt) in receipts.iter().enumerate() {
            tables.locations.insert(receipt.transaction_hash, Location { number, index });
        }
        tables.numbers.insert(hash, number);
        tables.blocks.push(Arc::new(IndexedBlock {
            block: block.clone(),
            hash,
            receipts: receipts.to_vec(),
            parties,
        }));
        Ok(())
    }

    /// Takes back the blocks above `height`.
    pub fn revert_to(&self, height: u64) {
        let mut tables = self.tables.write().expect("nobody panics while holding the tables");
        while tables.tip() > height {
            let taken = tables.blocks.pop().expect("the genesis is at height 0 and stays");
            tables.numbers.remove(&taken.hash);
            for receipt in &taken.receipts {
                tables.locations.remove(&receipt.transaction_hash);
            }
        }
        self.history.revert_to(height);
    }

    /// The last block.
    pub fn tip(&self) -> Arc<IndexedBlock> {
        let tables = self.tables.read().expect("nobody panics while holding the tables");
        tables.tip_block().clone()
    }

    /// The block at a height.
    pub fn block(&self, number: u64) -> Option<Arc<IndexedBlock>> {
        let tables = self.tables.read().expect("nobody panics while holding the tables");
        tables.blocks.get(usize::try_from(number).ok()?).cloned()
    }

    /// The block with a hash.
    pub fn block_by_hash(&self, hash: BlockHash) -> Option<Arc<IndexedBlock>> {
        let number = {
            let tables = self.tables.read().expect("nobody panics while holding the tables");
            *tables.numbers.get(&hash)?
        };
        self.block(number)
    }

    /// Where a transaction ran, and in which block.
    pub fn transaction(&self, hash: TxHash) -> Option<(Location, Arc<IndexedBlock>)> {
        let tables = self.tables.read().expect("nobody panics while holding the tables");
        let location = *tables.locations.get(&hash)?;
        let block = tables.blocks.get(usize::try_from(location.number).ok()?)?.clone();
        Some((location, block))
    }

    /// The state after the block at a height, or `None` where it is unknown or no longer kept.
    pub fn state_at(&self, number: u64) -> Option<HistoricalState> {
        let tip = self.tables.read().expect("nobody panics while holding the tables").tip();
        (number <= tip).then(|| self.history.at(number)).flatten()
    }
}

impl Tables {
    fn tip(&self) -> u64 {
        self.blocks.len() as u64 - 1
    }

    fn tip_block(&self) -> &Arc<IndexedBlock> {
        self.blocks.last().expect("there is always a genesis")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use almanac_primitives::StateRead;

    fn next(parent: &Block) -> Arc<Block> {
        let header =
            Header { number: parent.header.number + 1, parent_hash: parent.hash(), ..Header::default() };
        Arc::new(Block { header, transactions: Vec::new() })
    }

    #[test]
    fn takes_blocks_in_order_and_each_once() {
        let index = Index::new(Header::default(), [], u64::MAX);
        let genesis = index.tip();
        let first = next(&genesis.block);
        let second = next(&first);

        assert!(index.apply(&second, &[], vec![], &StateDiff::default()).is_err(), "a gap");
        assert_eq!(index.apply(&first, &[], vec![], &StateDiff::default()), Ok(()));
        assert_eq!(index.apply(&first, &[], vec![], &StateDiff::default()), Ok(()), "again");
        assert_eq!(index.apply(&second, &[], vec![], &StateDiff::default()), Ok(()));
        let mut other = (*first).clone();
        other.header.timestamp.0 += 1;
        assert!(
            index.apply(&Arc::new(other), &[], vec![], &StateDiff::default()).is_err(),
            "another block 1"
        );

        assert_eq!(index.tip().hash, second.hash());
        assert_eq!(index.block_by_hash(first.hash()).unwrap().block, first);
        assert!(index.block(3).is_none() && index.state_at(3).is_none());
        assert!(index.state_at(2).unwrap().read(StateKey::Calendar(0)).unwrap().is_none());
    }
}
