//! Blocks that listeners have yet to be told of: how much memory they may take together.
//!
//! A client that reads slowly, but fast enough to stay subscribed, is told of a block long after it was made. So nobody
//! holds a block while a client reads: a listener looks at it for a moment, log by log, and the node lets go of the
//! oldest blocks when later ones need the room.

use crate::bounds::NEWS_BYTES_MAX;
use almanac_index::{IndexedBlock, LogEntry};
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, Weak},
};

/// The node has let go of a block: who has not been told of it is too late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gone;

/// A block that somebody may have to be told of.
#[derive(Debug)]
pub struct Recent(Mutex<Option<Arc<IndexedBlock>>>);

impl Recent {
    /// What `look` finds in the block.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&IndexedBlock) -> T) -> Result<T, Gone> {
        let block = self.lock().clone().ok_or(Gone)?;
        Ok(look(&block))
    }

    /// Goes through the logs of the block.
    pub(crate) fn logs(self: Arc<Self>) -> RecentLogs {
        RecentLogs { block: self, index: 0, nth: 0, before: 0 }
    }

    fn let_go(&self) {
        let block = self.lock().take();
        // Not under the lock: it may be large.
        drop(block);
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<IndexedBlock>>> {
        self.0.lock().expect("nobody panics while holding a recent block")
    }
}

/// The logs of a block one by one, without holding it in between.
#[derive(Debug)]
pub(crate) struct RecentLogs {
    block: Arc<Recent>,
    /// The receipt that is looked at, and the log in it.
    index: usize,
    nth: usize,
    /// Logs of earlier receipts.
    before: usize,
}

impl RecentLogs {
    /// What `look` finds in the next log, or `None` after the last.
    pub(crate) fn next<T>(
        &mut self,
        look: impl FnOnce(&IndexedBlock, LogEntry) -> T,
    ) -> Result<Option<T>, Gone> {
        let Self { index, nth, before, .. } = self;
        self.block.look(|block| {
            while *index < block.receipts.len() {
                if let Some(entry) = block.log_at(*index, *nth, *before) {
                    *nth += 1;
                    return Some(look(block, entry));
                }
                (*index, *before, *nth) = (*index + 1, *before + *nth, 0);
            }
            None
        })
    }
}

/// All blocks that somebody has yet to be told of, the oldest first, with what each takes.
#[derive(Debug, Default)]
pub(crate) struct Backlog(VecDeque<(Weak<Recent>, usize)>);

impl Backlog {
    /// Takes the newest block in, and lets go of the oldest ones where all of them are too large together. The newest
    /// one stays, whatever it takes.
    pub(crate) fn push(&mut self, block: Arc<IndexedBlock>) -> Arc<Recent> {
        let Self(blocks) = self;
        blocks.retain(|(recent, _)| recent.strong_count() > 0);
        let weight = block.weight();
        let recent = Arc::new(Recent(Mutex::new(Some(block))));
        let mut bytes = blocks.iter().fold(weight, |sum, (_, weight)| sum.saturating_add(*weight));
        while bytes > NEWS_BYTES_MAX
            && let Some((oldest, weight)) = blocks.pop_front()
        {
            bytes = bytes.saturating_sub(weight);
            if let Some(oldest) = oldest.upgrade() {
                oldest.let_go();
            }
        }
        blocks.push_back((Arc::downgrade(&recent), weight));
        recent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::{Address, B256, Log};
    use almanac_primitives::{Block, Gas, GasPrice, Header, Outcome, Receipt};

    /// A block whose logs have these sizes, a receipt for each list.
    fn block(logs: &[&[usize]]) -> Arc<IndexedBlock> {
        let log = |bytes: &usize| Log::new_unchecked(Address::ZERO, Vec::new(), vec![0; *bytes].into());
        let receipt = |sizes: &&[usize]| Receipt {
            transaction_type: 2,
            transaction_hash: B256::ZERO,
            outcome: Outcome::Success,
            gas_used: Gas(0),
            cumulative_gas_used: Gas(0),
            effective_gas_price: GasPrice(0),
            contract_address: None,
            failed_call: None,
            schedule_ref: None,
            logs: sizes.iter().map(log).collect(),
        };
        let receipts = logs.iter().map(receipt).collect();
        let block = Arc::new(Block { header: Header::default(), transactions: Vec::new() });
        Arc::new(IndexedBlock { receipts, ..IndexedBlock::alone(block) })
    }

    #[test]
    fn blocks_that_nobody_was_told_of_take_so_much_and_no_more() {
        const MIB: usize = 1 << 20;
        let mut backlog = Backlog::default();
        let (mut news, mut alive) = (Vec::new(), Vec::new());
        for _ in 0..200 {
            let block = block(&[&[MIB]]);
            alive.push(Arc::downgrade(&block));
            news.push(backlog.push(block));
        }
        let held = alive.iter().filter(|block| block.strong_count() > 0).count();
        let most = NEWS_BYTES_MAX / MIB;
        assert!((most - 1..=most).contains(&held), "{held} MiB are held, at most {most}");
        let is_held = |n: usize| news[n].look(|_| ()).is_ok();
        assert!(!(0..200 - held).any(is_held), "the oldest go first");
        assert!((200 - held..200).all(is_held), "and no others");
        // Who was told of a block makes room for others.
        news.drain(..150);
        for _ in 0..most - 50 - 1 {
            news.push(backlog.push(block(&[&[MIB]])));
        }
        assert!(news.iter().all(|recent| recent.look(|_| ()).is_ok()));
    }

    #[test]
    fn a_block_that_is_larger_than_all_may_be_is_told_of_alone() {
        let mut backlog = Backlog::default();
        let small = backlog.push(block(&[&[1]]));
        let large = backlog.push(block(&[&[NEWS_BYTES_MAX + 1]]));
        assert_eq!((small.look(|_| ()), large.look(|_| ())), (Err(Gone), Ok(())));
    }

    #[test]
    fn logs_come_in_order_until_their_block_is_gone() {
        let mut backlog = Backlog::default();
        let recent = backlog.push(block(&[&[], &[1, 2], &[], &[3], &[]]));
        let mut logs = recent.clone().logs();
        let place = |_: &IndexedBlock, entry: LogEntry| {
            (entry.location.index, entry.log_index, entry.log.data.data.len())
        };
        let told: Vec<_> = std::iter::from_fn(|| logs.next(place).unwrap()).collect();
        assert_eq!(told, [(1, 0, 1), (1, 1, 2), (3, 2, 3)]);
        let mut late = recent.clone().logs();
        assert_eq!(late.next(place), Ok(Some((1, 0, 1))));
        recent.let_go();
        assert_eq!(late.next(place), Err(Gone));
    }
}
