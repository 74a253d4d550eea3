//! The index: stores final blocks and answers queries about them.

use crate::{
    block::{IndexedBlock, Location, Parties, Place},
    cache::BlockCache,
    config::IndexConfig,
    digest::digest,
    error::{ApplyError, Fault, LogsError, OpenError, RevertError, StoreError},
    history::HistoricalState,
    logs::{Bounds, LogEntry, LogFilter, Search, Stop},
    open::{self, Opened},
    participants::{self, ANYONE, Direction, SENDER, SIGNER, Sent},
    read, rows,
    schedules::{self, KnownSchedule, PastRun, ScheduleFilter, SchedulePage},
    store::{Batch, Store, View},
    write,
};
use alloy_primitives::{Address, B256, BlockHash, Bytes, TxHash};
use almanac_primitives::{Block, Header, Origin, Receipt, ScheduleId, StateDiff, StateKey};
use almanac_schedule::life::LifeEvent;
use arc_swap::ArcSwap;
use std::{
    fmt,
    ops::RangeInclusive,
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard,
        atomic::{AtomicU64, Ordering},
    },
};

/// Heights that one block may prune. More than one, so that a node with a newly reduced depth catches up; few,
/// so that no block is delayed.
pub(crate) const FORGET_PER_BLOCK: u64 = 4;

/// The index that RPC queries.
#[derive(Clone)]
pub struct Index(Arc<Shared>);

/// What the index shares with its historical states. Locks are taken in the order of the fields.
pub(crate) struct Shared {
    config: IndexConfig,
    /// Serializes adding and reverting blocks. Holds the lowest height whose state is kept.
    feeding: Mutex<u64>,
    /// The target height of every revert, oldest first. No revert happens while it is read-locked.
    reverts: RwLock<Vec<u64>>,
    /// Swapped without a lock: a reader thread that the system suspends must not delay a block.
    tip: ArcSwap<IndexedBlock>,
    /// Lowest height whose state may be read.
    oldest: AtomicU64,
    /// The block before the first stored one: 0, or the block whose state was copied.
    floor: u64,
    blocks: BlockCache,
    /// What lies below the state of a forked chain.
    pub(crate) origin: Option<Origin>,
    pub(crate) store: Store,
}

impl Index {
    /// Opens the index in a directory, or creates one for a chain at its genesis.
    ///
    /// Rejects an index of another chain, of another format, or a damaged one; the error says what to do.
    pub fn open(
        path: &Path,
        config: IndexConfig,
        genesis: Header,
        state: impl IntoIterator<Item = (StateKey, Bytes)>,
    ) -> Result<Self, OpenError> {
        Self::start(Store::open(path, &config)?, config, genesis, state)
    }

    /// An index in memory.
    pub fn in_memory(
        config: IndexConfig,
        genesis: Header,
        state: impl IntoIterator<Item = (StateKey, Bytes)>,
    ) -> Result<Self, OpenError> {
        Self::start(Store::in_memory(), config, genesis, state)
    }

    fn start(
        store: Store,
        config: IndexConfig,
        genesis: Header,
        state: impl IntoIterator<Item = (StateKey, Bytes)>,
    ) -> Result<Self, OpenError> {
        let Opened { tip, oldest, floor } = open::open(&store, genesis, state)?;
        let readable = oldest.max(tip.number().saturating_sub(config.history_depth));
        Ok(Self(Arc::new(Shared {
            config,
            feeding: Mutex::new(oldest),
            reverts: RwLock::default(),
            tip: ArcSwap::from_pointee(tip),
            oldest: AtomicU64::new(readable),
            floor,
            blocks: BlockCache::default(),
            origin: None,
            store,
        })))
    }

    /// The same index over the state of another chain: values that it does not hold are read from `origin`.
    ///
    /// # Panics
    /// If the index is in use already.
    #[must_use]
    pub fn over(self, origin: Origin) -> Self {
        let shared = Arc::into_inner(self.0).expect("a new index has no other readers");
        Self(Arc::new(Shared { origin: Some(origin), ..shared }))
    }

    /// Adds a final block. Does nothing if the index has it already.
    ///
    /// The write is atomic and survives the end of the process. After a power cut the last few blocks may be
    /// missing: feed again from [`Self::height`].
    pub fn apply(
        &self,
        block: &Arc<Block>,
        receipts: &[Receipt],
        parties: Vec<Parties>,
        events: &[LifeEvent],
        diff: &StateDiff,
    ) -> Result<(), ApplyError> {
        let mut forgotten_to = self.0.feed();
        let hash = block.hash();
        if self.has(block, hash)? {
            return Ok(());
        }
        let number = block.header.number;
        if receipts.len() != parties.len() {
            let (receipts, parties) = (receipts.len(), parties.len());
            return Err(ApplyError::Uneven { number, receipts, parties });
        }
        let receipts = receipts.to_vec();
        let indexed =
            Arc::new(IndexedBlock { block: block.clone(), hash, receipts, parties, events: events.to_vec() });
        let mut batch = Batch::default();
        let is_forked = self.0.origin.is_some();
        self.0.store.ask(|view| write::add(&mut batch, view, &indexed, diff, is_forked))?;
        let forget_to = self.0.forget_to(*forgotten_to, number);
        if forget_to > *forgotten_to {
            let heights = *forgotten_to + 1..=forget_to;
            self.0.store.ask(|view| write::forget(&mut batch, view, heights))?;
        }
        let nonces_to = number.saturating_sub(self.0.config.nonce_depth.max(1));
        self.0.store.ask(|view| write::forget_nonces(&mut batch, view, forget_to, nonces_to))?;
        // Heights are given up before their rows go: who reads at one checks that after reading.
        self.0.update_oldest(number, forget_to);
        self.0.store.commit(batch)?;
        *forgotten_to = forget_to;
        self.0.blocks.put(indexed.clone());
        self.0.tip.store(indexed);
        Ok(())
    }

    /// Whether the index has a block. An error if it neither has it nor the block follows the tip.
    fn has(&self, block: &Block, hash: BlockHash) -> Result<bool, ApplyError> {
        let (number, parent) = (block.header.number, block.header.parent_hash);
        let tip = self.tip();
        if number <= tip.number() {
            let known = self.0.store.ask(|view| Ok(read::header_at(view, number)?.hash()))?;
            return match known == hash {
                true => Ok(true),
                false => Err(ApplyError::OtherBlock { number, known, given: hash }),
            };
        }
        if number != tip.number() + 1 {
            return Err(ApplyError::Gap { tip: tip.number(), given: number });
        }
        if parent != tip.hash {
            return Err(ApplyError::OtherParent { number, parent, known: tip.hash });
        }
        Ok(false)
    }

    /// Reverts the blocks above `height`. Every table then equals its content at that height, except that
    /// pruned state stays pruned, and that a forked chain keeps what it learnt of its origin. States of reverted blocks fail when read.
    pub fn revert_to(&self, height: u64) -> Result<(), RevertError> {
        let forgotten_to = self.0.feed();
        let tip = self.height();
        if height > tip {
            return Err(RevertError::AboveTip { given: height, tip });
        }
        let oldest = self.0.store.ask(read::nonces_from)?.max(*forgotten_to);
        if height < oldest {
            return Err(RevertError::Pruned { given: height, oldest });
        }
        if height < tip {
            self.0.take_back(height, *forgotten_to)?;
        }
        Ok(())
    }

    /// Height of the last block.
    pub fn height(&self) -> u64 {
        self.0.tip.load().number()
    }

    /// The last block.
    pub fn tip(&self) -> Arc<IndexedBlock> {
        self.0.tip.load_full()
    }

    /// The block before the first stored one: 0, or the block whose state was copied. Of the latter only the
    /// header is known.
    pub fn floor(&self) -> u64 {
        self.0.floor
    }

    /// Up to `limit` encoded state keys at the tip, ascending, after the given one.
    pub fn names_after(&self, after: Option<&StateKey>, limit: usize) -> Result<Vec<Vec<u8>>, StoreError> {
        self.0.store.ask(|view| read::names_after(view, after, limit))
    }

    /// The encoded state keys that a block changed, ascending, or `None` if they are not kept.
    pub fn changed_in(&self, height: u64) -> Result<Option<Vec<Vec<u8>>>, StoreError> {
        self.0.store.ask(|view| read::changed_in(view, height))
    }

    /// The block at a height.
    pub fn block(&self, number: u64) -> Result<Option<Arc<IndexedBlock>>, StoreError> {
        let _reverts = self.0.reverts();
        self.0.block(number)
    }

    /// The header of the block at a height, including the one whose state was copied.
    pub fn header(&self, number: u64) -> Result<Option<Header>, StoreError> {
        let _reverts = self.0.reverts();
        self.0
            .store
            .ask(|view| read::hash_at(view, number)?.map(|_| read::header_at(view, number)).transpose())
    }

    /// The block with a hash.
    pub fn block_by_hash(&self, hash: BlockHash) -> Result<Option<Arc<IndexedBlock>>, StoreError> {
        let _reverts = self.0.reverts();
        let number = self.0.store.ask(|view| read::number_of(view, hash))?;
        number.map_or(Ok(None), |number| self.0.block(number))
    }

    /// Height of the block with a hash.
    pub fn number_of(&self, hash: BlockHash) -> Result<Option<u64>, StoreError> {
        self.0.store.ask(|view| read::number_of(view, hash))
    }

    /// Hash of the block at a height, without reading the block.
    pub fn hash(&self, number: u64) -> Result<Option<BlockHash>, StoreError> {
        self.0.store.ask(|view| read::hash_at(view, number))
    }

    /// Where a transaction ran, without reading the block.
    pub fn location(&self, hash: TxHash) -> Result<Option<Location>, StoreError> {
        self.0.store.ask(|view| read::location_of(view, hash))
    }

    /// What is known of a receipt's position, without reading the block.
    pub fn place(&self, location: Location) -> Result<Place, StoreError> {
        self.0.store.ask(|view| read::place_at(view, location))
    }

    /// Where a transaction ran, and in which block.
    pub fn transaction(&self, hash: TxHash) -> Result<Option<(Location, Arc<IndexedBlock>)>, StoreError> {
        let _reverts = self.0.reverts();
        let location = self.0.store.ask(|view| read::location_of(view, hash))?;
        let Some(location) = location else { return Ok(None) };
        Ok(self.0.block(location.number)?.map(|block| (location, block)))
    }

    /// The state after the block at a height, or `None` if it is unknown or no longer kept.
    pub fn state_at(&self, number: u64) -> Option<HistoricalState> {
        let reverts = self.0.reverts();
        let is_kept = number <= self.height() && number >= self.0.oldest();
        is_kept.then(|| HistoricalState::new(self.0.clone(), number, reverts.len()))
    }

    /// The state after the last block.
    pub fn tip_state(&self) -> HistoricalState {
        let reverts = self.0.reverts();
        HistoricalState::new(self.0.clone(), self.height(), reverts.len())
    }

    /// Every account and every slot after the last block, accounts first. Loads all of them into memory. Of a forked
    /// chain, those that its own blocks wrote.
    pub fn tip_accounts(&self) -> Result<Vec<(StateKey, Bytes)>, StoreError> {
        self.0.store.ask(|view| read::accounts_and_slots(view, self.0.origin.is_some()))
    }

    /// Lowest height whose state may be read.
    pub fn oldest_state(&self) -> u64 {
        self.0.oldest()
    }

    /// The logs that match a filter, in execution order, or an error if there are more than `max`.
    pub fn logs(&self, filter: &LogFilter, max: usize) -> Result<Vec<LogEntry>, LogsError> {
        let mut found = Vec::new();
        self.search_logs(filter, max, |entry| {
            found.push(entry);
            true
        })?;
        Ok(found)
    }

    /// Like [`Self::logs`], one by one: `take` returns false to end the search.
    pub fn search_logs(
        &self,
        filter: &LogFilter,
        max: usize,
        mut take: impl FnMut(LogEntry) -> bool,
    ) -> Result<(), LogsError> {
        if self.0.floor > 0 && filter.from <= self.0.floor {
            return Err(LogsError::NotKept { from: filter.from, first: self.0.floor + 1 });
        }
        let IndexConfig { search_rows_max: looked_at_max, search_bytes_max: bytes_max, .. } = self.0.config;
        let bounds = Bounds { found_max: max, looked_at_max, bytes_max };
        match Search::new(filter, bounds, &mut take).run(&self.0.store.view()) {
            Ok(()) => Ok(()),
            Err(Stop::Limit(limit)) => Err(limit),
            Err(Stop::Fault(fault)) => Err(self.0.store.error(&fault).into()),
        }
    }

    /// Up to `limit` transactions that `sender` sent in a range. To continue after a page, begin the range next
    /// to its last location.
    pub fn transactions_of(
        &self,
        sender: Address,
        range: &RangeInclusive<Location>,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<Sent>, StoreError> {
        self.0.store.ask(|view| participants::transactions_of(view, sender, SENDER, range, direction, limit))
    }

    /// Up to `limit` transactions in a range that `sender` signed: without its runs, which nobody signs.
    pub fn signed_by(
        &self,
        sender: Address,
        range: &RangeInclusive<Location>,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<Sent>, StoreError> {
        self.0.store.ask(|view| participants::transactions_of(view, sender, SIGNER, range, direction, limit))
    }

    /// Up to `limit` transactions in a range that `address` sent or received, or that created it as a contract.
    pub fn transactions_involving(
        &self,
        address: Address,
        range: &RangeInclusive<Location>,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<Sent>, StoreError> {
        self.0.store.ask(|view| participants::transactions_of(view, address, ANYONE, range, direction, limit))
    }

    /// Up to `limit` heights in a range at which the value of a key changed, as far as history is kept.
    pub fn changes_of(
        &self,
        key: &StateKey,
        heights: &RangeInclusive<u64>,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<u64>, StoreError> {
        self.0.store.ask(|view| read::changes_of(view, key, heights, direction, limit))
    }

    /// The transaction that created a contract, unless another contract did.
    pub fn creation_of(&self, contract: Address) -> Result<Option<Sent>, StoreError> {
        self.0.store.ask(|view| participants::creation_of(view, contract))
    }

    /// The transaction that `sender` signed with a nonce, if there is one.
    pub fn signed_with_nonce(&self, sender: Address, nonce: u64) -> Result<Option<Sent>, StoreError> {
        self.0.store.ask(|view| {
            let (tip, _) = read::meta(view, read::META_TIP, rows::read_tip)?;
            participants::signed_with_nonce(view, sender, nonce, tip)
        })
    }

    /// A schedule as of the last block, including ended ones.
    pub fn schedule(&self, id: ScheduleId) -> Result<Option<KnownSchedule>, StoreError> {
        self.0.store.ask(|view| schedules::known(view, id))
    }

    /// Up to `limit` schedules that match a filter, in its order, after the one with the id `after`. A page can
    /// be shorter although more match, because the rows read are bounded. Continue from its `next`.
    pub fn schedules(
        &self,
        filter: &ScheduleFilter,
        after: Option<ScheduleId>,
        limit: usize,
    ) -> Result<SchedulePage, StoreError> {
        let looked_at_max = self.0.config.search_rows_max;
        self.0.store.ask(|view| schedules::find(view, filter, after, limit, looked_at_max))
    }

    /// Up to `limit` runs of a schedule in a range.
    pub fn runs_of(
        &self,
        id: ScheduleId,
        range: &RangeInclusive<Location>,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<PastRun>, StoreError> {
        self.0.store.ask(|view| schedules::runs_of(view, id, range, direction, limit))
    }

    /// On return, every block so far is durable across a power cut.
    pub fn sync(&self) -> Result<(), StoreError> {
        self.0.store.sync()
    }

    /// One hash over every row of every table. Two indexes fed with the same blocks and the same depth have the
    /// same hash.
    pub fn digest(&self) -> Result<B256, StoreError> {
        self.0.store.ask(digest)
    }
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Index");
        out.field("path", &self.0.store.name()).field("height", &self.height()).finish_non_exhaustive()
    }
}

impl Shared {
    fn feed(&self) -> MutexGuard<'_, u64> {
        // Ignore poisoning: the value is set only after a commit, so it is correct even if a thread panicked
        // earlier.
        self.feeding.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn reverts(&self) -> RwLockReadGuard<'_, Vec<u64>> {
        self.reverts.read().expect("nobody panics while taking blocks back")
    }

    pub(crate) fn oldest(&self) -> u64 {
        self.oldest.load(Ordering::Acquire)
    }

    fn update_oldest(&self, tip: u64, forgotten_to: u64) {
        let oldest = tip.saturating_sub(self.config.history_depth).max(forgotten_to);
        self.oldest.store(oldest, Ordering::Release);
    }

    /// The lowest height to keep once the tip is `tip`; `forgotten_to` was the lowest so far. Always keeps
    /// enough to revert the last block.
    fn forget_to(&self, forgotten_to: u64, tip: u64) -> u64 {
        let wanted = tip.saturating_sub(self.config.history_depth.max(1));
        wanted.clamp(forgotten_to, forgotten_to.saturating_add(FORGET_PER_BLOCK))
    }

    /// Reverts block by block, so that a crash in between leaves a consistent index.
    fn take_back(&self, height: u64, forgotten_to: u64) -> Result<(), StoreError> {
        let mut reverts = self.reverts.write().expect("nobody panics while taking blocks back");
        reverts.push(height);
        loop {
            let last = self.tip.load_full();
            if last.number() == height {
                break;
            }
            let mut batch = Batch::default();
            let parent = self.store.ask(|view| {
                write::take_back(&mut batch, view, &last, self.origin.is_some())?;
                self.load(view, last.number() - 1, last.block.header.parent_hash)
            })?;
            self.store.commit(batch)?;
            self.tip.store(parent);
        }
        self.update_oldest(height, forgotten_to);
        Ok(())
    }

    fn block(&self, number: u64) -> Result<Option<Arc<IndexedBlock>>, StoreError> {
        if number > 0 && number <= self.floor {
            return Ok(None);
        }
        self.store.ask(|view| {
            let hash = read::hash_at(view, number)?;
            hash.map(|hash| self.load(view, number, hash)).transpose()
        })
    }

    /// Loads a stored block.
    fn load(&self, view: &View<'_>, number: u64, hash: BlockHash) -> Result<Arc<IndexedBlock>, Fault> {
        if let Some(block) = self.blocks.get(hash) {
            return Ok(block);
        }
        let block = Arc::new(read::block_at(view, number)?);
        self.blocks.put(block.clone());
        Ok(block)
    }
}
