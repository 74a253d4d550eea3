//! The pool: admits transactions, and keeps the indexes by sender, by price and by order consistent.

use crate::{
    best::Best,
    config::PoolConfig,
    debts::{Debts, debtors},
    error::PoolError,
    evict::{Eviction, Excess, Prices},
    fronts::Fronts,
    parked::Parked,
    sender::{Facts, Pending, Place, Queue, Readiness, Sender, SenderState, Slot},
};
use alloy_primitives::{Address, TxHash, U256};
use almanac_primitives::{DurationMs, GasPrice, RecoveredTransaction, TimestampMs, UserTransaction, Wei};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Most transactions that expire with one block, which bounds how long the pool is locked. The rest expire with
/// later blocks.
const EXPIRED_PER_BLOCK_MAX: usize = 4_096;

/// Most time that counts between two blocks. If the chain stopped or the node was away, transactions that could
/// not have been included do not expire.
pub const BLOCK_STEP_MAX: DurationMs = DurationMs(10_000);

/// Pending transactions, bounded and ordered.
#[derive(Clone, Debug)]
pub struct Pool {
    config: PoolConfig,
    // Strangers choose the keys, hence the standard library's seeded hasher.
    slots: HashMap<TxHash, Slot>,
    senders: HashMap<Queue, Sender>,
    /// What senders of orderless transactions and fee payers would owe.
    debts: Debts,
    /// Accounts whose debts have changed, or whose sequence has a new gap: their sequence numbers do not know yet.
    unsettled: BTreeSet<Address>,
    /// The ready ones.
    prices: Prices,
    /// The ready ones that are wide.
    wide: Prices,
    parked: Parked,
    fronts: Fronts,
    bytes: usize,
    arrival_next: u64,
    /// Time of the last block.
    block_time: TimestampMs,
    /// Time since the pool was created, in block time.
    now: TimestampMs,
}

/// The result of admitting a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Insertion {
    /// Whether it can go into the next block.
    pub readiness: Readiness,
    /// The transaction that it replaced.
    pub replaced: Option<TxHash>,
    /// Evicted transactions, in that order.
    pub evicted: Vec<TxHash>,
}

/// The changes that admit a transaction.
struct Plan {
    leaving: Option<Slot>,
    evicted: Vec<Slot>,
}

/// What happened to the transactions of a reverted block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reinjection {
    /// Those that were admitted again. A later one may have evicted an earlier one.
    pub returned: Vec<(TxHash, Insertion)>,
    /// Those that were rejected, and why.
    pub refused: Vec<(TxHash, PoolError)>,
}

impl Pool {
    /// An empty pool for the next block's base fee.
    pub fn new(config: PoolConfig, base_fee: GasPrice) -> Self {
        Self {
            config,
            slots: HashMap::new(),
            senders: HashMap::new(),
            debts: Debts::default(),
            unsettled: BTreeSet::new(),
            prices: Prices::default(),
            wide: Prices::default(),
            parked: Parked::default(),
            fronts: Fronts::new(base_fee.0),
            bytes: 0,
            arrival_next: 0,
            block_time: TimestampMs(0),
            now: TimestampMs(0),
        }
    }

    /// Admits a validated transaction, or returns why not. The given state of the sender's account applies from
    /// now on, whether the transaction is admitted or not.
    pub fn insert(&mut self, tx: RecoveredTransaction, sender: SenderState) -> Result<Insertion, PoolError> {
        self.insert_paid(tx, sender, SenderState::default())
    }

    /// Like [`insert`](Self::insert), for a transaction with a fee payer in this state.
    pub fn insert_paid(
        &mut self,
        tx: RecoveredTransaction,
        sender: SenderState,
        payer: SenderState,
    ) -> Result<Insertion, PoolError> {
        let facts = Facts::new(tx.transaction(), tx.sender(), self.arrival_next);
        let sender = self.update_account(facts.slot.queue, sender);
        let facts = self.with_voucher(facts);
        let plan = self.plan(&facts, sender, payer)?;

        let is_replacement = plan.leaving == Some(facts.slot);
        let leaving = plan.leaving.filter(|_| !is_replacement);
        let leaving = leaving.into_iter().chain(plan.evicted.iter().copied());
        let evicted = leaving.filter_map(|slot| self.take(slot)).map(|pending| pending.facts.hash);
        let mut evicted: Vec<_> = evicted.collect();
        let replaced = self.put(tx, facts, sender).map(|old| old.facts.hash);
        // What has become ready because another one left yields before the newcomer does, strangers' first.
        let mut settled = self.set_reserved();
        let is_own_settled = settled.remove(&facts.slot.queue.sender);
        evicted.extend(self.trim_all(settled));
        if is_own_settled {
            evicted.extend(self.trim(Queue::sequence(facts.slot.queue.sender)));
        }
        evicted.extend(self.trim(facts.slot.queue));
        if let Some(leaving) = plan.leaving {
            evicted.extend(self.trim(leaving.queue));
        }
        evicted.extend(self.settle());
        Ok(Insertion { readiness: self.readiness(facts.slot), replaced, evicted })
    }

    /// Whether [`insert_paid`](Self::insert_paid) would admit a transaction of which only the sender is known yet.
    pub fn check(
        &mut self,
        tx: &UserTransaction,
        sender: Address,
        state: SenderState,
        payer: SenderState,
    ) -> Result<(), PoolError> {
        let facts = Facts::new(tx, sender, self.arrival_next);
        let state = self.update_account(facts.slot.queue, state);
        self.plan(&self.with_voucher(facts), state, payer).map(drop)
    }

    /// Notes whether an account that stands for many stands for this one too.
    fn with_voucher(&self, facts: Facts) -> Facts {
        let replaced = self.senders.get(&facts.slot.queue).and_then(|held| held.get(facts.slot.nonce));
        let free = self.config.vouched_count_free;
        // A replacement takes over the place of what it replaces.
        let stands_for_many = |account: Address| match replaced {
            Some(old) if debtors(&old.facts).any(|debtor| debtor == account) => old.facts.is_vouched,
            _ => self.debts.count(account) >= free,
        };
        Facts { is_vouched: debtors(&facts).any(stands_for_many), ..facts }
    }

    /// Whether a pending transaction came when its orderless sender or fee payer stood for many others.
    pub fn is_vouched(&self, hash: TxHash) -> bool {
        let slot = self.slots.get(&hash);
        let pending = slot.and_then(|slot| self.senders.get(&slot.queue)?.get(slot.nonce));
        pending.is_some_and(|pending| pending.facts.is_vouched)
    }

    /// Ready transactions in the order for a block.
    pub fn best(&self) -> Best<'_> {
        Best::new(self, self.fronts.iter())
    }

    /// Follows the chain to another block: its time, the base fee of the next one, and the accounts that it
    /// changed. Removes transactions whose nonce is used up, which their sender can no longer pay for, or which
    /// have been parked too long. Accounts may also go back, after a block was reverted.
    pub fn on_block(
        &mut self,
        block_time: TimestampMs,
        base_fee: GasPrice,
        changed: impl IntoIterator<Item = (Address, SenderState)>,
    ) {
        let step = DurationMs(block_time.0.saturating_sub(self.block_time.0)).min(BLOCK_STEP_MAX);
        (self.block_time, self.now) = (block_time, TimestampMs(self.now.0.saturating_add(step.0)));
        for (sender, state) in changed {
            self.set_sender_state(sender, state);
        }
        self.fronts.set_base_fee(base_fee.0);
        for _ in 0..EXPIRED_PER_BLOCK_MAX {
            let Some(slot) = self.parked.expired(self.now, self.config.parked_time_max) else { break };
            self.take(slot);
        }
        for _ in 0..EXPIRED_PER_BLOCK_MAX {
            let Some(slot) = self.debts.expired(block_time.0) else { break };
            self.take(slot);
            // What stood behind it waits now, and there is a bound on that.
            self.unsettled.insert(slot.queue.sender);
        }
        self.settle();
    }

    /// Removes the pending transactions whose sender and nonce an orderless transaction of a block has used.
    pub fn use_nonces(&mut self, pairs: impl IntoIterator<Item = (Address, u64)>) {
        for (sender, nonce) in pairs {
            self.take(Slot::orderless(sender, nonce));
        }
        self.settle();
    }

    /// Removes everything that these accounts signed, as senders or as fee payers: their keys have changed.
    pub fn forget_signed(&mut self, accounts: impl IntoIterator<Item = Address>) {
        for account in accounts {
            let sequence = self.senders.get(&Queue::sequence(account)).into_iter().flat_map(Sender::iter);
            let mut signed: Vec<_> = sequence.map(|pending| pending.facts.slot).collect();
            signed.extend(self.debts.of(account));
            // From the last one on: none is parked on the way.
            for slot in signed.into_iter().rev() {
                self.take(slot);
            }
        }
        self.settle();
    }

    /// Admits the transactions of a reverted block again, in the block's order, each with its sender's account
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

    /// Removes a transaction. Later ones of its sender become parked.
    pub fn remove(&mut self, hash: TxHash) -> Option<RecoveredTransaction> {
        let slot = *self.slots.get(&hash)?;
        let pending = self.take(slot)?;
        let settled = self.set_reserved();
        self.trim(slot.queue);
        self.trim_all(settled);
        self.settle();
        Some(pending.transaction)
    }

    /// Removes all transactions.
    pub fn clear(&mut self) {
        let Self { block_time, now, .. } = *self;
        *self = Self { block_time, now, ..Self::new(self.config, self.base_fee()) };
    }

    /// The transaction with this hash.
    pub fn get(&self, hash: TxHash) -> Option<&RecoveredTransaction> {
        let slot = self.slots.get(&hash)?;
        self.senders.get(&slot.queue)?.get(slot.nonce).map(|pending| &pending.transaction)
    }

    /// Whether a transaction is pending.
    pub fn contains(&self, hash: TxHash) -> bool {
        self.slots.contains_key(&hash)
    }

    /// Whether a transaction is pending and ready: by nonce and balance, it can go into the next block.
    pub fn is_ready(&self, hash: TxHash) -> bool {
        self.slots.get(&hash).is_some_and(|slot| self.readiness(*slot) == Readiness::Ready)
    }

    /// All senders with pending transactions, in no particular order.
    pub fn senders(&self) -> impl Iterator<Item = Address> {
        let senders: HashSet<Address> = self.senders.keys().map(|queue| queue.sender).collect();
        senders.into_iter()
    }

    /// A sender's orderless transactions, in the order of arrival.
    pub fn orderless_of(&self, sender: Address) -> impl Iterator<Item = &RecoveredTransaction> {
        let slots = self.debts.of(sender).into_iter();
        let own = slots.filter(move |slot| slot.queue.orderless.is_some() && slot.queue.sender == sender);
        own.filter_map(|slot| self.ready(slot)).map(|pending| &pending.transaction)
    }

    /// A sender's sequence numbers, in order.
    pub fn pending_of(&self, sender: Address) -> impl Iterator<Item = (&RecoveredTransaction, Readiness)> {
        let sender = self.senders.get(&Queue::sequence(sender));
        let pending = sender.into_iter().flat_map(|s| s.iter().map(|p| (p, s.readiness(p.facts.slot.nonce))));
        pending.map(|(pending, readiness)| (&pending.transaction, readiness))
    }

    /// The first nonce from the account's on that no pending transaction uses.
    pub fn next_nonce(&self, sender: Address, account_nonce: u64) -> u64 {
        self.senders
            .get(&Queue::sequence(sender))
            .map_or(account_nonce, |sender| sender.next_nonce(account_nonce))
    }

    /// The base fee by which transactions are ordered.
    pub fn base_fee(&self) -> GasPrice {
        GasPrice(self.fronts.base_fee())
    }

    /// How many transactions are pending.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether none is pending.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Encoded bytes of all pending transactions.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Number of ready transactions.
    pub fn ready_count(&self) -> usize {
        self.prices.len()
    }

    /// Number of ready transactions that are not among these, which a block has included already.
    pub fn ready_count_except(&self, included: &[UserTransaction]) -> usize {
        let known = included.iter().filter(|transaction| self.is_ready(transaction.hash()));
        self.ready_count().saturating_sub(known.count())
    }

    /// Number of parked transactions.
    pub fn parked_count(&self) -> usize {
        self.parked.count()
    }

    /// Encoded bytes of the parked transactions.
    pub fn parked_bytes(&self) -> usize {
        self.parked.bytes()
    }

    pub(crate) fn ready(&self, slot: Slot) -> Option<&Pending> {
        self.senders.get(&slot.queue)?.ready(slot.nonce)
    }

    pub(crate) fn front(&self, sender: Queue) -> Option<&Pending> {
        self.senders.get(&sender)?.front()
    }

    fn readiness(&self, slot: Slot) -> Readiness {
        if self.ready(slot).is_some() { Readiness::Ready } else { Readiness::Parked }
    }

    /// What has to leave for a newcomer, or why it is rejected. Changes nothing.
    fn plan(&self, newcomer: &Facts, sender: SenderState, payer: SenderState) -> Result<Plan, PoolError> {
        self.check_new(newcomer, sender)?;
        let fresh = self.fresh(newcomer.slot.queue, sender);
        let held = self.senders.get(&newcomer.slot.queue).unwrap_or(&fresh);
        let replaced = self.replaced_by(newcomer, held)?;
        self.check_debts(newcomer, sender, payer, replaced)?;
        let readiness = held.placement(newcomer.slot.nonce, newcomer.cost).map_err(|needed| {
            PoolError::InsufficientFunds {
                sender: newcomer.slot.queue.sender,
                needed,
                balance: sender.balance,
            }
        })?;
        let leaving = match replaced {
            Some(replaced) => Some(replaced),
            None => self.crowded_out_by(newcomer, held, readiness)?,
        };
        let leaving = match readiness {
            Readiness::Ready => self.widest_room(newcomer, leaving)?,
            Readiness::Parked => leaving,
        };
        let evicted = match readiness {
            Readiness::Ready => self.evicted_by_ready(newcomer, leaving)?,
            Readiness::Parked => self.evicted_by_parked(newcomer, leaving, held)?,
        };
        Ok(Plan { leaving: leaving.map(|facts| facts.slot), evicted })
    }

    fn check_new(&self, newcomer: &Facts, state: SenderState) -> Result<(), PoolError> {
        let Facts { hash, slot: Slot { queue: Queue { sender, .. }, nonce: given }, bytes, cost, .. } =
            *newcomer;
        if self.contains(hash) {
            return Err(PoolError::AlreadyKnown { hash });
        }
        if given < state.nonce {
            return Err(PoolError::NonceTooLow { given, account: state.nonce });
        }
        // The maximum also stands for any cost that overflows.
        if cost > state.balance || cost == Wei(U256::MAX) {
            return Err(PoolError::InsufficientFunds { sender, needed: cost, balance: state.balance });
        }
        let max = self.config.bytes_max;
        if bytes > max {
            return Err(PoolError::TooLarge { given: bytes, max });
        }
        Ok(())
    }

    /// Whether sender and fee payer can pay for the newcomer beside what they owe already, and an orderless newcomer
    /// has a place among its sender's.
    fn check_debts(
        &self,
        newcomer: &Facts,
        sender: SenderState,
        payer: SenderState,
        replaced: Option<&Facts>,
    ) -> Result<(), PoolError> {
        let Queue { sender: address, orderless } = newcomer.slot.queue;
        if orderless.is_some() {
            let PoolConfig { orderless_sender_count_max, delegated_count_max, .. } = self.config;
            let max = if sender.is_delegated { delegated_count_max } else { orderless_sender_count_max };
            if replaced.is_none() && self.debts.orderless_of(address) >= max {
                return Err(PoolError::SenderFull { sender: address, max });
            }
            self.check_debt(address, newcomer.cost, sender.balance, replaced)?;
        }
        match newcomer.payer {
            Some((address, cost)) => {
                let is_freed =
                    replaced.is_some_and(|old| old.payer.is_some_and(|(payer, _)| payer == address));
                let max = self.config.delegated_count_max;
                if payer.is_delegated && !is_freed && self.debts.count(address) >= max {
                    return Err(PoolError::PayerFull { payer: address, max });
                }
                self.check_debt(address, cost, payer.balance, replaced)
            }
            None => Ok(()),
        }
    }

    fn check_debt(
        &self,
        account: Address,
        cost: Wei,
        balance: Wei,
        replaced: Option<&Facts>,
    ) -> Result<(), PoolError> {
        let debts = self.debts.sum_with(account, cost, replaced);
        let ready = self.senders.get(&Queue::sequence(account)).map_or(Wei::ZERO, Sender::ready_cost);
        let needed = Wei(debts.0.saturating_add(ready.0));
        if needed > balance {
            return Err(PoolError::InsufficientFunds { sender: account, needed, balance });
        }
        Ok(())
    }

    /// The transaction that the newcomer replaces, if it may.
    fn replaced_by<'a>(&self, newcomer: &Facts, held: &'a Sender) -> Result<Option<&'a Facts>, PoolError> {
        let Some(Pending { facts: old, .. }) = held.get(newcomer.slot.nonce) else {
            return Ok(None);
        };
        let bump_percent = self.config.replacement_bump_percent;
        if newcomer.offer.replaces(&old.offer, bump_percent) {
            return Ok(Some(old));
        }
        let (needed_cap, needed_tip) = old.offer.replacement_needed(bump_percent);
        Err(PoolError::ReplacementUnderpriced {
            old: old.hash,
            given_cap: GasPrice(newcomer.offer.fee_cap),
            needed_cap: GasPrice(needed_cap),
            given_tip: GasPrice(newcomer.offer.tip_cap),
            needed_tip: GasPrice(needed_tip),
        })
    }

    /// The last transaction of a sender whose share is full, if the newcomer comes before it: closing a gap
    /// takes precedence over the last nonce.
    fn crowded_out_by<'a>(
        &self,
        newcomer: &Facts,
        held: &'a Sender,
        readiness: Readiness,
    ) -> Result<Option<&'a Facts>, PoolError> {
        let Slot { queue: Queue { sender, .. }, nonce } = newcomer.slot;
        let (max, parked_max) = (self.share_max(held.state()), self.config.parked_sender_count_max);
        let is_full = held.len() >= max;
        let is_parked_full = readiness == Readiness::Parked && held.parked_len() >= parked_max;
        if !is_full && !is_parked_full {
            return Ok(None);
        }
        match held.last() {
            Some(last) if nonce < last.slot.nonce => Ok(Some(last)),
            _ if is_full => Err(PoolError::SenderFull { sender, max }),
            _ => Err(PoolError::SenderParkedFull { sender, max: parked_max, next: held.next_ready() }),
        }
    }

    /// Most transactions of a sender in this state.
    fn share_max(&self, state: SenderState) -> usize {
        let PoolConfig { sender_count_max, delegated_count_max, .. } = self.config;
        if state.is_delegated { sender_count_max.min(delegated_count_max) } else { sender_count_max }
    }

    /// The transaction that leaves for a ready, wide newcomer if the number of wide ones is at its limit.
    fn widest_room<'a>(
        &'a self,
        newcomer: &Facts,
        leaving: Option<&'a Facts>,
    ) -> Result<Option<&'a Facts>, PoolError> {
        let PoolConfig { wide_gas: gas, wide_count_max: max, .. } = self.config;
        let is_wide_freed = leaving.is_some_and(|facts| self.is_wide(facts) && self.is_ready(facts.hash));
        if !self.is_wide(newcomer) || is_wide_freed || self.wide.len() < max {
            return Ok(leaving);
        }
        if leaving.is_some() {
            return Err(PoolError::WideFull { max, gas });
        }
        let (prices, senders, base_fee) = (&self.wide, &self.senders, self.fronts.base_fee());
        let cheaper = Eviction { prices, base_fee, senders, newcomer, leaving: None }.cheaper()?;
        Ok(self.senders[&cheaper.queue].get(cheaper.nonce).map(|pending| &pending.facts))
    }

    /// Whether it competes for the places of those that may stay for long, or leave at once, and pay little.
    fn is_wide(&self, facts: &Facts) -> bool {
        facts.gas > self.config.wide_gas || facts.is_vouched
    }

    /// The transactions to evict for a ready newcomer, in addition to the one that leaves in any case: first
    /// parked ones, whatever they pay, then ready ones that pay less.
    fn evicted_by_ready(&self, newcomer: &Facts, leaving: Option<&Facts>) -> Result<Vec<Slot>, PoolError> {
        let excess = self.excess_with(newcomer, leaving);
        let leaving = leaving.map(|facts| facts.slot);
        let (mut evicted, excess) = self.parked.plan(&self.senders, excess, None, leaving);
        if excess.is_over() {
            let (prices, senders, base_fee) = (&self.prices, &self.senders, self.fronts.base_fee());
            evicted.extend(Eviction { prices, base_fee, senders, newcomer, leaving }.plan(excess)?);
        }
        Ok(evicted)
    }

    /// The same for a parked newcomer, which displaces only parked ones.
    fn evicted_by_parked(
        &self,
        newcomer: &Facts,
        leaving: Option<&Facts>,
        held: &Sender,
    ) -> Result<Vec<Slot>, PoolError> {
        let (count, bytes) = (self.parked.count(), self.parked.bytes());
        let count_with = count + 1 - usize::from(leaving.is_some());
        let bytes_with = bytes + newcomer.bytes - leaving.map_or(0, |facts| facts.bytes);
        let excess = Excess::of_parked(count_with, bytes_with, &self.config);
        let excess = excess.max(self.excess_with(newcomer, leaving));
        let own = (newcomer.slot.queue, self.parked.weight_with(newcomer, leaving));
        let leaving = leaving.map(|facts| facts.slot);
        let (evicted, excess) = self.parked.plan(&self.senders, excess, Some(own), leaving);
        if excess.is_over() {
            return Err(PoolError::ParkedFull { count, bytes, next: held.next_ready() });
        }
        Ok(evicted)
    }

    fn excess_with(&self, newcomer: &Facts, leaving: Option<&Facts>) -> Excess {
        let count = self.len() + 1 - usize::from(leaving.is_some());
        let bytes = self.bytes + newcomer.bytes - leaving.map_or(0, |facts| facts.bytes);
        Excess::of_pool(count, bytes, &self.config)
    }

    /// Takes note of the account behind a queue. Returns what the queue knows of it.
    fn update_account(&mut self, queue: Queue, account: SenderState) -> SenderState {
        self.set_sender_state(queue.sender, account);
        let state = queue.state(account);
        if queue.orderless.is_some() {
            self.set_queue_state(queue, state);
        }
        state
    }

    fn set_sender_state(&mut self, sender: Address, state: SenderState) {
        // The latest leave first, until the balance covers the rest. No orderless one is ever parked; sequence numbers
        // wait for what is left.
        let count_max = if state.is_delegated { self.config.delegated_count_max } else { usize::MAX };
        while let Some(slot) = self.debts.beyond(sender, state.balance, count_max)
            && self.take(slot).is_some()
        {}
        self.set_queue_state(Queue::sequence(sender), state);
        self.settle();
    }

    /// A sender without transactions, beside what its account owes elsewhere.
    fn fresh(&self, queue: Queue, state: SenderState) -> Sender {
        Sender::new(state).with_reserved(self.reserved_for(queue))
    }

    /// What the account of a queue owes beside it. Orderless ones are debts themselves.
    fn reserved_for(&self, queue: Queue) -> Wei {
        if queue.orderless.is_none() { self.debts.sum(queue.sender) } else { Wei::ZERO }
    }

    /// Tells the sequence numbers of accounts what else these owe by now. Returns the accounts.
    fn set_reserved(&mut self) -> BTreeSet<Address> {
        let unsettled = std::mem::take(&mut self.unsettled);
        for account in &unsettled {
            let (reserved, now) = (self.debts.sum(*account), self.now);
            self.change(Queue::sequence(*account), |held| held.set_reserved(reserved, now));
        }
        unsettled
    }

    fn trim_all(&mut self, accounts: BTreeSet<Address>) -> Vec<TxHash> {
        accounts.into_iter().flat_map(|account| self.trim(Queue::sequence(account))).collect()
    }

    /// Does both, until nothing changes: what leaves may free its fee payer's money. Each step removes a transaction, or
    /// is the last.
    fn settle(&mut self) -> Vec<TxHash> {
        let mut trimmed = Vec::new();
        while !self.unsettled.is_empty() {
            let settled = self.set_reserved();
            trimmed.extend(self.trim_all(settled));
        }
        trimmed
    }

    fn set_queue_state(&mut self, queue: Queue, state: SenderState) {
        let (now, reserved) = (self.now, self.reserved_for(queue));
        let leaving = self.change(queue, |held| held.set_state(state, reserved, now)).unwrap_or_default();
        for pending in leaving {
            self.unlink(&pending);
        }
        self.trim(queue);
    }

    /// Restores the limits after a change of a sender's transactions. Returns the transactions that were
    /// evicted.
    fn trim(&mut self, sender: Queue) -> Vec<TxHash> {
        let mut trimmed = Vec::new();
        while self.wide.len() > self.config.wide_count_max
            && let Some(last) =
                self.senders.get(&sender).and_then(|held| held.last_ready_that(|facts| self.is_wide(facts)))
        {
            let slot = last.slot;
            trimmed.extend(self.take(slot).map(|pending| pending.facts.hash));
        }
        while let Some(last) = self.beyond_share(sender) {
            trimmed.extend(self.take(last).map(|pending| pending.facts.hash));
        }
        let excess = Excess::of_parked(self.parked.count(), self.parked.bytes(), &self.config);
        let (victims, _) = self.parked.plan(&self.senders, excess, None, None);
        trimmed.extend(victims.into_iter().filter_map(|slot| self.take(slot)).map(|left| left.facts.hash));
        trimmed
    }

    /// The last transaction of a sender that exceeds its share.
    fn beyond_share(&self, sender: Queue) -> Option<Slot> {
        let held = self.senders.get(&sender)?;
        let is_over = held.len() > self.share_max(held.state())
            || held.parked_len() > self.config.parked_sender_count_max;
        held.last().filter(|_| is_over).map(|facts| facts.slot)
    }

    fn put(
        &mut self,
        transaction: RecoveredTransaction,
        facts: Facts,
        state: SenderState,
    ) -> Option<Pending> {
        let (slot, now) = (facts.slot, self.now);
        self.arrival_next += 1;
        self.bytes += facts.bytes;
        self.slots.insert(facts.hash, slot);
        self.debts.insert(&facts);
        self.unsettled.extend(debtors(&facts));
        let fresh = self.fresh(slot.queue, state);
        let place = self.senders.entry(slot.queue).or_insert(fresh).place_at(slot.nonce, now);
        self.list(&facts, place);
        let newcomer = Pending { transaction, facts, place };
        let replaced = self.change(slot.queue, |held| held.put(newcomer, now)).flatten();
        if let Some(old) = &replaced {
            self.unlink(old);
        }
        replaced
    }

    fn take(&mut self, slot: Slot) -> Option<Pending> {
        let now = self.now;
        let pending = self.change(slot.queue, |held| held.take(slot.nonce, now)).flatten()?;
        self.unlink(&pending);
        Some(pending)
    }

    /// Changes one sender, and updates the indexes that depend on its ready transactions.
    fn change<R>(&mut self, sender: Queue, change: impl FnOnce(&mut Sender) -> R) -> Option<R> {
        let held = self.senders.get_mut(&sender)?;
        let result = change(held);
        let (moves, last_parked) = (held.take_moves(), held.parked_from_last().next().copied());
        self.fronts.set(sender, held.front().map(|front| front.facts.offer));
        if held.len() == 0 {
            self.senders.remove(&sender);
        }
        for crossed in moves {
            self.unlist(&crossed.facts, crossed.from);
            self.list(&crossed.facts, crossed.to);
        }
        self.parked.set_last(sender, last_parked.as_ref());
        Some(result)
    }

    /// Removes a transaction from the indexes, after its sender no longer has it.
    fn unlink(&mut self, pending: &Pending) {
        self.bytes -= pending.facts.bytes;
        self.slots.remove(&pending.facts.hash);
        self.debts.remove(&pending.facts);
        self.unsettled.extend(debtors(&pending.facts));
        self.unlist(&pending.facts, pending.place);
    }

    fn list(&mut self, facts: &Facts, place: Place) {
        match place {
            Place::Ready => {
                self.prices.insert(&facts.offer, facts.slot);
                if self.is_wide(facts) {
                    self.wide.insert(&facts.offer, facts.slot);
                }
            }
            Place::Parked(at) => self.parked.insert(facts, at),
        }
    }

    fn unlist(&mut self, facts: &Facts, place: Place) {
        match place {
            Place::Ready => {
                self.prices.remove(&facts.offer);
                self.wide.remove(&facts.offer);
            }
            Place::Parked(at) => self.parked.remove(facts, at),
        }
    }
}
