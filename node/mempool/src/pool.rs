//! The pool itself: admits, and keeps the sender's view, the price view and the order in step.

use crate::{
    best::Best,
    config::PoolConfig,
    error::PoolError,
    evict::{Eviction, Excess, Prices},
    order::Heads,
    sender::{Pending, Readiness, Sender, SenderState, Slot},
};
use alloy_primitives::{Address, TxHash};
use almanac_primitives::{GasPrice, RecoveredTransaction};
use std::collections::HashMap;

/// Pending transactions, bounded and ordered.
#[derive(Clone, Debug)]
pub struct Pool {
    config: PoolConfig,
    // Keyed by what strangers choose, hence the standard library's seeded hasher.
    slots: HashMap<TxHash, Slot>,
    senders: HashMap<Address, Sender>,
    prices: Prices,
    heads: Heads,
    bytes: usize,
    ready_count: usize,
    arrival_next: u64,
}

/// What became of an admitted transaction and of others on its account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Insertion {
    /// Whether it can go into the next block.
    pub readiness: Readiness,
    /// The transaction whose place it took.
    pub replaced: Option<TxHash>,
    /// Transactions that left to make room, in that order.
    pub evicted: Vec<TxHash>,
}

/// What became of the transactions of a dropped block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reinjection {
    /// Those that came back. A later one may have evicted an earlier one again.
    pub returned: Vec<(TxHash, Insertion)>,
    /// Those that did not, and why.
    pub refused: Vec<(TxHash, PoolError)>,
}

impl Pool {
    /// An empty pool for the next block's base fee.
    pub fn new(config: PoolConfig, base_fee: GasPrice) -> Self {
        Self {
            config,
            slots: HashMap::new(),
            senders: HashMap::new(),
            prices: Prices::default(),
            heads: Heads::new(base_fee.0),
            bytes: 0,
            ready_count: 0,
            arrival_next: 0,
        }
    }

    /// Takes in a transaction that was validated before, or says why not. What is said of the sender's
    /// account holds from here on, whether the transaction is admitted or not.
    pub fn insert(&mut self, tx: RecoveredTransaction, sender: SenderState) -> Result<Insertion, PoolError> {
        self.set_sender_state(tx.sender(), sender);
        let newcomer = Pending::new(tx, self.arrival_next);
        self.check_new(&newcomer, sender)?;
        let replaced = self.replaced_by(&newcomer)?;
        let crowded_out = if replaced.is_none() { self.crowded_out_by(&newcomer)? } else { None };
        let evicted = self.evicted_by(&newcomer, replaced.or(crowded_out))?;

        let evicted = crowded_out.into_iter().chain(evicted);
        let evicted = evicted.filter_map(|slot| self.take(slot)).map(|pending| pending.hash()).collect();
        let slot = newcomer.slot();
        let replaced = self.put(newcomer, sender).map(|old| old.hash());
        Ok(Insertion { readiness: self.readiness(slot), replaced, evicted })
    }

    /// Ready transactions in the order in which a block wants them.
    pub fn best(&self) -> Best<'_> {
        Best::new(self, self.heads.iter())
    }

    /// Follows the chain to another block: the base fee of the next one, and the accounts that this one
    /// changed. Transactions whose number is used up leave. Accounts may also go back, after a block was
    /// dropped.
    pub fn on_block(
        &mut self,
        base_fee: GasPrice,
        changed: impl IntoIterator<Item = (Address, SenderState)>,
    ) {
        for (sender, state) in changed {
            self.set_sender_state(sender, state);
        }
        self.heads.set_base_fee(base_fee.0);
    }

    /// Takes back the transactions of a dropped block, in the block's order, each with its sender's account
    /// as it is without that block. The rules are those of [`Pool::insert`].
    pub fn reinject(
        &mut self,
        txs: impl IntoIterator<Item = (RecoveredTransaction, SenderState)>,
    ) -> Reinjection {
        let mut outcome = Reinjection::default();
        for (tx, sender) in txs {
            let hash = tx.hash();
            match self.insert(tx, sender) {
                Ok(insertion) => outcome.returned.push((hash, insertion)),
                Err(error) => outcome.refused.push((hash, error)),
            }
        }
        outcome
    }

    /// Takes a transaction out, whatever the reason. Later ones of its sender are parked.
    pub fn remove(&mut self, hash: TxHash) -> Option<RecoveredTransaction> {
        let slot = *self.slots.get(&hash)?;
        self.take(slot).map(|pending| pending.transaction)
    }

    /// Takes all transactions out.
    pub fn clear(&mut self) {
        *self = Self::new(self.config, self.base_fee());
    }

    /// The transaction with this hash.
    pub fn get(&self, hash: TxHash) -> Option<&RecoveredTransaction> {
        let slot = self.slots.get(&hash)?;
        self.senders.get(&slot.sender)?.get(slot.nonce).map(|pending| &pending.transaction)
    }

    /// Whether a transaction is pending.
    pub fn contains(&self, hash: TxHash) -> bool {
        self.slots.contains_key(&hash)
    }

    /// Whether a transaction is here and can go into the next block, as far as numbers and money are concerned.
    pub fn is_ready(&self, hash: TxHash) -> bool {
        self.slots.get(&hash).is_some_and(|slot| self.readiness(*slot) == Readiness::Ready)
    }

    /// Everybody who has a transaction here, in no order.
    pub fn senders(&self) -> impl Iterator<Item = Address> {
        self.senders.keys().copied()
    }

    /// A sender's transactions in order of their numbers.
    pub fn pending_of(&self, sender: Address) -> impl Iterator<Item = (&RecoveredTransaction, Readiness)> {
        let sender = self.senders.get(&sender);
        let pending = sender.into_iter().flat_map(|s| s.iter().map(|p| (p, s.readiness(p.nonce()))));
        pending.map(|(pending, readiness)| (&pending.transaction, readiness))
    }

    /// The first sequence number from the account's on that no pending transaction has taken.
    pub fn next_nonce(&self, sender: Address, account_nonce: u64) -> u64 {
        self.senders.get(&sender).map_or(account_nonce, |sender| sender.next_nonce(account_nonce))
    }

    /// The base fee that transactions are ordered for.
    pub fn base_fee(&self) -> GasPrice {
        GasPrice(self.heads.base_fee())
    }

    /// How many transactions are pending.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether none is pending.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Bytes of all pending transactions, as encoded.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many can go into a block, as far as numbers and money are concerned.
    pub fn ready_count(&self) -> usize {
        self.ready_count
    }

    /// How many wait for an earlier one or for money.
    pub fn parked_count(&self) -> usize {
        self.len() - self.ready_count
    }

    pub(crate) fn ready(&self, slot: Slot) -> Option<&Pending> {
        self.senders.get(&slot.sender)?.ready(slot.nonce)
    }

    pub(crate) fn head(&self, sender: Address) -> Option<&Pending> {
        self.senders.get(&sender)?.head()
    }

    fn readiness(&self, slot: Slot) -> Readiness {
        if self.ready(slot).is_some() { Readiness::Ready } else { Readiness::Parked }
    }

    fn check_new(&self, newcomer: &Pending, sender: SenderState) -> Result<(), PoolError> {
        let hash = newcomer.hash();
        if self.contains(hash) {
            return Err(PoolError::AlreadyKnown { hash });
        }
        let given = newcomer.nonce();
        if given < sender.nonce {
            return Err(PoolError::NonceTooLow { given, account: sender.nonce });
        }
        let (given, max) = (newcomer.bytes(), self.config.bytes_max);
        if given > max {
            return Err(PoolError::TooLarge { given, max });
        }
        Ok(())
    }

    /// The slot that the newcomer takes from another, if it may.
    fn replaced_by(&self, newcomer: &Pending) -> Result<Option<Slot>, PoolError> {
        let slot = newcomer.slot();
        let Some(old) = self.senders.get(&slot.sender).and_then(|sender| sender.get(slot.nonce)) else {
            return Ok(None);
        };
        let bump_percent = self.config.replacement_bump_percent;
        if newcomer.offer.replaces(&old.offer, bump_percent) {
            return Ok(Some(slot));
        }
        let (needed_cap, needed_tip) = old.offer.replacement_needed(bump_percent);
        Err(PoolError::ReplacementUnderpriced {
            old: old.hash(),
            given_cap: GasPrice(newcomer.offer.fee_cap),
            needed_cap: GasPrice(needed_cap),
            given_tip: GasPrice(newcomer.offer.tip_cap),
            needed_tip: GasPrice(needed_tip),
        })
    }

    /// The last transaction of a sender that has its full share, if the newcomer comes before it: closing a
    /// gap is worth more than the far end.
    fn crowded_out_by(&self, newcomer: &Pending) -> Result<Option<Slot>, PoolError> {
        let Slot { sender, nonce } = newcomer.slot();
        let max = self.config.sender_count_max;
        let held = self.senders.get(&sender);
        if held.map_or(0, Sender::len) < max {
            return Ok(None);
        }
        match held.and_then(|held| held.highest_below(None)) {
            Some(last) if nonce < last.nonce() => Ok(Some(last.slot())),
            _ => Err(PoolError::SenderFull { sender, max }),
        }
    }

    /// The slots that must become free for the newcomer, beside the one that leaves in any case.
    fn evicted_by(&self, newcomer: &Pending, leaving: Option<Slot>) -> Result<Vec<Slot>, PoolError> {
        let left = leaving.and_then(|slot| self.senders.get(&slot.sender)?.get(slot.nonce));
        let count = self.len() + 1 - usize::from(left.is_some());
        let bytes = self.bytes + newcomer.bytes() - left.map_or(0, Pending::bytes);
        let (prices, senders) = (&self.prices, &self.senders);
        Eviction { prices, senders, newcomer, leaving }.plan(Excess::new(count, bytes, &self.config))
    }

    fn set_sender_state(&mut self, sender: Address, state: SenderState) {
        let stale = self.change(sender, |held| held.set_state(state)).unwrap_or_default();
        for pending in stale {
            self.unlink(&pending);
        }
    }

    fn put(&mut self, newcomer: Pending, state: SenderState) -> Option<Pending> {
        let slot = newcomer.slot();
        self.arrival_next += 1;
        self.bytes += newcomer.bytes();
        self.slots.insert(newcomer.hash(), slot);
        self.prices.insert(&newcomer.offer, slot);
        self.senders.entry(slot.sender).or_insert_with(|| Sender::new(state));
        let replaced = self.change(slot.sender, |held| held.put(newcomer)).flatten();
        if let Some(old) = &replaced {
            self.unlink(old);
        }
        replaced
    }

    fn take(&mut self, slot: Slot) -> Option<Pending> {
        let pending = self.change(slot.sender, |held| held.take(slot.nonce)).flatten()?;
        self.unlink(&pending);
        Some(pending)
    }

    /// Changes one sender, and whatever follows from its ready transactions.
    fn change<R>(&mut self, sender: Address, change: impl FnOnce(&mut Sender) -> R) -> Option<R> {
        let held = self.senders.get_mut(&sender)?;
        let ready_before = held.ready_len();
        let result = change(held);
        self.ready_count = self.ready_count - ready_before + held.ready_len();
        self.heads.set(sender, held.head().map(|head| head.offer));
        if held.len() == 0 {
            self.senders.remove(&sender);
        }
        Some(result)
    }

    /// Forgets a transaction that its sender no longer holds.
    fn unlink(&mut self, pending: &Pending) {
        self.bytes -= pending.bytes();
        self.slots.remove(&pending.hash());
        self.prices.remove(&pending.offer);
    }
}
