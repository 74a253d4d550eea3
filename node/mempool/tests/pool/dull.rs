//! The same pool, dull: one list, scanned from end to end for everything.

use alloy_primitives::{Address, TxHash, U256};
use almanac_mempool::{Insertion, PoolConfig, PoolError, Readiness, SenderState};
use almanac_primitives::{GasPrice, RecoveredTransaction, TimestampMs, Wei};
use std::collections::{BTreeMap, BTreeSet};

/// One list of transactions in order of arrival, and what is known of accounts.
pub(crate) struct DullPool {
    pub(crate) config: PoolConfig,
    pub(crate) base_fee: u128,
    pub(crate) now: TimestampMs,
    pub(crate) held: Vec<RecoveredTransaction>,
    pub(crate) accounts: BTreeMap<Address, SenderState>,
    parked_at: BTreeMap<TxHash, TimestampMs>,
    /// Those that came when their orderless sender had many others.
    vouched: BTreeSet<TxHash>,
}

/// Transactions that wait for each other: a sender's sequence numbers, or one orderless transaction by its nonce.
type Queue = (Address, Option<u64>);

/// What a block would earn with a transaction; `None`, the least, where it takes none.
type Price = (Option<u128>, u128);

impl DullPool {
    pub(crate) fn new(config: PoolConfig, base_fee: u128) -> Self {
        let (held, accounts, parked_at) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        Self { config, base_fee, now: TimestampMs(0), held, accounts, parked_at, vouched: BTreeSet::new() }
    }

    pub(crate) fn insert(
        &mut self,
        tx: &RecoveredTransaction,
        account: SenderState,
    ) -> Result<Insertion, PoolError> {
        self.set_account(tx.sender(), account);
        let outcome = self.try_insert(tx, account);
        self.note_parked();
        outcome
    }

    fn try_insert(
        &mut self,
        tx: &RecoveredTransaction,
        account: SenderState,
    ) -> Result<Insertion, PoolError> {
        let (hash, sender, own_queue) = (tx.hash(), tx.sender(), queue(tx));
        let account = if is_orderless(tx) { SenderState { nonce: 0, ..account } } else { account };
        if self.held.contains(tx) {
            return Err(PoolError::AlreadyKnown { hash });
        }
        if nonce(tx) < account.nonce {
            return Err(PoolError::NonceTooLow { given: nonce(tx), account: account.nonce });
        }
        let unfunded =
            |needed| PoolError::InsufficientFunds { sender, needed: Wei(needed), balance: account.balance };
        if cost(tx) > account.balance.0 {
            return Err(unfunded(cost(tx)));
        }
        if bytes(tx) > self.config.bytes_max {
            return Err(PoolError::TooLarge { given: bytes(tx), max: self.config.bytes_max });
        }

        let mut after = self.held.clone();
        let mut replaced = None;
        let mut evicted = Vec::new();
        let same_slot = after.iter().position(|old| queue(old) == own_queue && nonce(old) == nonce(tx));
        let was_ready = self.ready_of(own_queue);
        let next = account.nonce + was_ready.len() as u64;
        if let Some(place) = same_slot {
            let old = after.remove(place);
            self.check_replacement(&old, tx)?;
            replaced = Some(old.hash());
        }
        if is_orderless(tx) {
            let owed = self.orderless_of(&after, sender);
            let is_vouched = match replaced {
                Some(old) => self.vouched.contains(&old),
                None => owed.len() >= self.config.vouched_count_free,
            };
            self.vouched.retain(|other| *other != hash);
            self.vouched.extend(is_vouched.then_some(hash));
            let max = self.orderless_max(account);
            if replaced.is_none() && owed.len() >= max {
                return Err(PoolError::SenderFull { sender, max });
            }
            let ready = self.ready_of((sender, None));
            let needed = owed.iter().chain(&ready).map(cost).sum::<U256>() + cost(tx);
            if needed > account.balance.0 {
                return Err(unfunded(needed));
            }
        } else if same_slot.is_some_and(|place| was_ready.contains(&self.held[place])) {
            let before = was_ready.iter().filter(|other| nonce(other) < nonce(tx)).map(cost).sum::<U256>();
            let owed = self.orderless_of(&after, sender).iter().map(cost).sum::<U256>();
            if before + cost(tx) + owed > account.balance.0 {
                return Err(unfunded(before + cost(tx) + owed));
            }
        }
        after.push(tx.clone());
        let is_ready = self.ready_among(&after, own_queue).contains(tx);
        let mut leaving = same_slot.map(|place| self.held[place].clone());
        if replaced.is_none() {
            let own = of_queue(&self.held, own_queue);
            let (max, parked_max) = (self.share_max(account), self.config.parked_sender_count_max);
            let is_full = own.len() >= max;
            if is_full || !is_ready && own.len() - was_ready.len() >= parked_max {
                match last_of(&self.held, own_queue) {
                    Some(last) if nonce(&self.held[last]) > nonce(tx) => {
                        leaving = Some(after[last].clone());
                        evicted.push(after.remove(last).hash());
                    }
                    _ if is_full => return Err(PoolError::SenderFull { sender, max }),
                    _ => return Err(PoolError::SenderParkedFull { sender, max: parked_max, next }),
                }
            }
        }

        let mut displaced_queue = None;
        if is_ready && self.is_wide(tx) {
            let wide = self.wide_ready();
            let is_freed = leaving.as_ref().is_some_and(|leaving| wide.contains(leaving));
            let max = self.config.wide_count_max;
            if !is_freed && wide.len() >= max {
                if leaving.is_some() {
                    return Err(PoolError::WideFull { max, gas: self.config.wide_gas });
                }
                let cheapest = wide.iter().rev().min_by_key(|other| self.price(other)).unwrap();
                if queue(cheapest) == own_queue {
                    let (nonce, fee_cap) = (nonce(cheapest), GasPrice(cap(cheapest)));
                    return Err(PoolError::BehindCheapest { nonce, fee_cap });
                }
                if self.price(tx) <= self.price(cheapest) {
                    return Err(self.too_cheap(tx, self.price(cheapest)));
                }
                displaced_queue = Some(queue(cheapest));
                evicted.push(cheapest.hash());
                after.retain(|other| other != cheapest);
            }
        }
        if is_ready {
            self.make_room(&mut after, tx, &mut evicted)?;
        } else {
            let own_weight = self.parked_of(&after, own_queue).iter().map(weight).sum::<usize>();
            for (weight, other) in self.shares(&self.held).into_iter().rev() {
                while weight >= own_weight
                    && other != own_queue
                    && (self.is_over(&after) || self.is_parked_over(&after))
                    && let Some(last) = self.parked_of(&after, other).pop()
                {
                    evicted.push(last.hash());
                    after.retain(|tx| *tx != last);
                }
            }
            if self.is_over(&after) || self.is_parked_over(&after) {
                let parked = self.parked(&self.held);
                let bytes = parked.iter().map(bytes).sum();
                return Err(PoolError::ParkedFull { count: parked.len(), bytes, next });
            }
        }

        let mut debtors = debtors(&self.held, &after);
        self.held = after;
        // What the newcomer makes ready has been ready, even if the bounds park it again at once.
        self.note_parked();
        let is_own_settled = debtors.remove(&sender);
        evicted.extend(debtors.into_iter().flat_map(|sender| self.trim((sender, None))));
        if is_own_settled {
            evicted.extend(self.trim((sender, None)));
        }
        evicted.extend(self.trim(own_queue));
        if let Some(other) = displaced_queue {
            evicted.extend(self.trim(other));
        }
        let is_ready = self.ready_of(own_queue).contains(tx);
        let readiness = if is_ready { Readiness::Ready } else { Readiness::Parked };
        Ok(Insertion { readiness, replaced, evicted })
    }

    /// Parked ones leave first, then the last ready one of whoever has the cheapest.
    fn make_room(
        &self,
        after: &mut Vec<RecoveredTransaction>,
        tx: &RecoveredTransaction,
        evicted: &mut Vec<TxHash>,
    ) -> Result<(), PoolError> {
        // What is ready with the newcomer in may have been parked before, and leaves as such.
        let was_parked = |other: &RecoveredTransaction| {
            other != tx && self.held.contains(other) && !self.ready_of(queue(other)).contains(other)
        };
        let shares = self.shares(&self.held);
        for (_, other) in shares.into_iter().rev() {
            for parked in of_queue(after, other).into_iter().rev().filter(was_parked) {
                if !self.is_over(after) {
                    return Ok(());
                }
                evicted.push(parked.hash());
                after.retain(|other| *other != parked);
            }
        }
        let mut displaced = None;
        while self.is_over(after) {
            // The first of equals is the latest arrival; the newcomer itself is judged at the end.
            let others = after.iter().rev().filter(|other| *other != tx);
            let Some(cheapest) = others.min_by_key(|other| self.price(other)) else {
                displaced = Some((Some(u128::MAX), 0));
                break;
            };
            displaced = displaced.max(Some(self.price(cheapest)));
            let last = last_of(after, queue(cheapest)).unwrap();
            if after[last] == *tx {
                let (nonce, fee_cap) = (nonce(cheapest), GasPrice(cap(cheapest)));
                return Err(PoolError::BehindCheapest { nonce, fee_cap });
            }
            evicted.push(after.remove(last).hash());
        }
        if let Some(displaced) = displaced
            && self.price(tx) <= displaced
        {
            return Err(self.too_cheap(tx, displaced));
        }
        Ok(())
    }

    fn too_cheap(&self, tx: &RecoveredTransaction, displaced: Price) -> PoolError {
        let (needed_cap, needed_tip) = match displaced.0 {
            Some(tip) => (self.base_fee.saturating_add(tip).saturating_add(1), tip.saturating_add(1)),
            None => (displaced.1 + 1, 0),
        };
        PoolError::PoolFull {
            given_cap: GasPrice(cap(tx)),
            needed_cap: GasPrice(needed_cap),
            given_tip: GasPrice(tip(tx)),
            needed_tip: GasPrice(needed_tip),
        }
    }

    fn is_wide(&self, tx: &RecoveredTransaction) -> bool {
        tx.transaction().gas_limit() > self.config.wide_gas || self.vouched.contains(&tx.hash())
    }

    /// In order of arrival.
    pub(crate) fn wide_ready(&self) -> Vec<RecoveredTransaction> {
        let is_ready = |tx: &&RecoveredTransaction| self.ready_of(queue(tx)).contains(tx);
        self.held.iter().filter(|tx| self.is_wide(tx)).filter(is_ready).cloned().collect()
    }

    pub(crate) fn set_account(&mut self, sender: Address, account: SenderState) {
        self.accounts.insert(sender, account);
        self.held.retain(|tx| {
            queue(tx) != (sender, None) || nonce(tx) >= account.nonce && cost(tx) <= account.balance.0
        });
        loop {
            let owed = self.orderless_of(&self.held, sender);
            match owed.last() {
                Some(last)
                    if owed.iter().map(cost).sum::<U256>() > account.balance.0
                        || account.is_delegated && owed.len() > self.config.delegated_count_max =>
                {
                    self.held.retain(|tx| tx != last);
                }
                _ => break,
            }
        }
        self.note_parked();
        self.trim((sender, None));
        self.note_parked();
    }

    pub(crate) fn remove(&mut self, hash: TxHash) -> Option<RecoveredTransaction> {
        let place = self.held.iter().position(|tx| tx.hash() == hash)?;
        let removed = self.held.remove(place);
        self.note_parked();
        self.trim(queue(&removed));
        self.trim((removed.sender(), None));
        self.note_parked();
        Some(removed)
    }

    /// An orderless transaction of a block has used this pair.
    pub(crate) fn use_nonce(&mut self, sender: Address, nonce: u64) {
        self.held.retain(|tx| queue(tx) != (sender, Some(nonce)));
        self.note_parked();
        self.trim((sender, None));
        self.note_parked();
    }

    /// What has been parked too long leaves, and what is refused from this second on.
    pub(crate) fn expire(&mut self) -> usize {
        let before = self.held.clone();
        let (now, max, parked_at) = (self.now.0, self.config.parked_time_max.0, &self.parked_at);
        self.held.retain(|tx| parked_at.get(&tx.hash()).is_none_or(|at| now.saturating_sub(at.0) < max));
        self.held.retain(|tx| tx.transaction().expiration().is_none_or(|second| second * 1_000 > now));
        self.note_parked();
        for sender in
            before.iter().filter(|tx| !self.held.contains(tx)).map(|tx| tx.sender()).collect::<BTreeSet<_>>()
        {
            self.trim((sender, None));
        }
        self.note_parked();
        before.len() - self.held.len()
    }

    /// A sender's share first, then that of all parked ones.
    fn trim(&mut self, queue: Queue) -> Vec<TxHash> {
        let mut trimmed = Vec::new();
        while self.wide_ready().len() > self.config.wide_count_max
            && let Some(last) = self.ready_of(queue).into_iter().rev().find(|tx| self.is_wide(tx))
        {
            trimmed.push(last.hash());
            self.held.retain(|tx| *tx != last);
        }
        loop {
            let own = of_queue(&self.held, queue);
            let parked = own.len() - self.ready_of(queue).len();
            if own.len() <= self.share_max(self.accounts[&queue.0])
                && parked <= self.config.parked_sender_count_max
            {
                break;
            }
            trimmed.push(self.held.remove(last_of(&self.held, queue).unwrap()).hash());
        }
        let shares = self.shares(&self.held);
        for (_, other) in shares.into_iter().rev() {
            while self.is_parked_over(&self.held)
                && let Some(last) = self.parked_of(&self.held, other).pop()
            {
                trimmed.push(last.hash());
                self.held.retain(|tx| *tx != last);
            }
        }
        trimmed
    }

    fn note_parked(&mut self) {
        let parked: BTreeSet<_> = self.parked(&self.held).iter().map(|tx| tx.hash()).collect();
        self.parked_at.retain(|hash, _| parked.contains(hash));
        for hash in parked {
            self.parked_at.entry(hash).or_insert(self.now);
        }
    }

    fn price(&self, tx: &RecoveredTransaction) -> Price {
        match cap(tx).checked_sub(self.base_fee) {
            Some(room) => (Some(room.min(tip(tx))), 0),
            None => (None, cap(tx)),
        }
    }

    fn share_max(&self, account: SenderState) -> usize {
        let PoolConfig { sender_count_max, delegated_count_max, .. } = self.config;
        if account.is_delegated { sender_count_max.min(delegated_count_max) } else { sender_count_max }
    }

    fn parked(&self, held: &[RecoveredTransaction]) -> Vec<RecoveredTransaction> {
        queues(held).into_iter().flat_map(|queue| self.parked_of(held, queue)).collect()
    }

    fn parked_of(&self, held: &[RecoveredTransaction], queue: Queue) -> Vec<RecoveredTransaction> {
        let ready = self.ready_among(held, queue).len();
        of_queue(held, queue).split_off(ready)
    }

    /// Who holds how much of the parked ones' room: the last gives way first.
    fn shares(&self, held: &[RecoveredTransaction]) -> Vec<(usize, Queue)> {
        let share = |queue: Queue| {
            let parked = self.parked_of(held, queue);
            let arrival = held.iter().position(|tx| Some(tx) == parked.last())?;
            Some((parked.iter().map(weight).sum::<usize>(), std::cmp::Reverse(arrival), queue))
        };
        let mut shares: Vec<_> = queues(held).into_iter().filter_map(share).collect();
        shares.sort();
        shares.into_iter().map(|(weight, _, queue)| (weight, queue)).collect()
    }

    fn is_parked_over(&self, held: &[RecoveredTransaction]) -> bool {
        let parked = self.parked(held);
        parked.len() > self.config.parked_count_max
            || parked.iter().map(bytes).sum::<usize>() > self.config.parked_bytes_max
    }

    /// Consecutive from the account's number, and together with the orderless ones within its balance. An orderless one
    /// is always ready.
    pub(crate) fn ready_of(&self, queue: Queue) -> Vec<RecoveredTransaction> {
        self.ready_among(&self.held, queue)
    }

    fn ready_among(&self, held: &[RecoveredTransaction], queue: Queue) -> Vec<RecoveredTransaction> {
        if queue.1.is_some() {
            return of_queue(held, queue);
        }
        let account = self.accounts[&queue.0];
        let owed = self.orderless_of(held, queue.0).iter().map(cost).sum::<U256>();
        let left = account.balance.0.saturating_sub(owed);
        let (mut next, mut left, mut ready) = (account.nonce, left, Vec::new());
        for tx in of_queue(held, queue) {
            match left.checked_sub(cost(&tx)) {
                Some(rest) if nonce(&tx) == next => left = rest,
                _ => break,
            }
            next = next.wrapping_add(1);
            ready.push(tx);
        }
        ready
    }

    pub(crate) fn ready(&self) -> BTreeSet<TxHash> {
        queues(&self.held).into_iter().flat_map(|queue| self.ready_of(queue)).map(|tx| tx.hash()).collect()
    }

    /// A sender's orderless ones in order of arrival.
    pub(crate) fn orderless_of(
        &self,
        held: &[RecoveredTransaction],
        sender: Address,
    ) -> Vec<RecoveredTransaction> {
        held.iter().filter(|tx| tx.sender() == sender && is_orderless(tx)).cloned().collect()
    }

    fn orderless_max(&self, account: SenderState) -> usize {
        let PoolConfig { orderless_sender_count_max, delegated_count_max, .. } = self.config;
        if account.is_delegated { delegated_count_max } else { orderless_sender_count_max }
    }

    pub(crate) fn next_nonce(&self, sender: Address, account_nonce: u64) -> u64 {
        let is_taken =
            |number: &u64| of_queue(&self.held, (sender, None)).iter().any(|tx| nonce(tx) == *number);
        (account_nonce..).find(|number| !is_taken(number)).unwrap()
    }

    /// The order of a block; `is_skipped` says after each transaction whether its sender is out.
    pub(crate) fn best(&self, mut is_skipped: impl FnMut(usize) -> bool) -> Vec<TxHash> {
        let mut queues: Vec<_> =
            queues(&self.held).into_iter().map(|queue| self.ready_of(queue).into_iter().peekable()).collect();
        let arrival = |tx: &RecoveredTransaction| self.held.iter().position(|held| held == tx).unwrap();
        let mut order = Vec::new();
        loop {
            let offers = queues.iter_mut().enumerate().filter_map(|(index, queue)| {
                let tx = queue.peek()?;
                let tip = tx.transaction().tip_at(GasPrice(self.base_fee))?;
                Some((tip, std::cmp::Reverse(arrival(tx)), index))
            });
            let Some((_, _, index)) = offers.max() else {
                return order;
            };
            order.push(queues[index].next().unwrap().hash());
            if is_skipped(order.len()) {
                drop(queues.remove(index));
            }
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.held.iter().map(bytes).sum()
    }

    fn is_over(&self, held: &[RecoveredTransaction]) -> bool {
        held.len() > self.config.count_max || held.iter().map(bytes).sum::<usize>() > self.config.bytes_max
    }

    fn check_replacement(
        &self,
        old: &RecoveredTransaction,
        new: &RecoveredTransaction,
    ) -> Result<(), PoolError> {
        let needed = |price: u128| {
            let percent = u128::from(self.config.replacement_bump_percent);
            (price + (price * percent).div_ceil(100)).max(price + 1)
        };
        let (needed_cap, needed_tip) = (needed(cap(old)), needed(tip(old)));
        if cap(new) >= needed_cap && tip(new) >= needed_tip {
            return Ok(());
        }
        Err(PoolError::ReplacementUnderpriced {
            old: old.hash(),
            given_cap: GasPrice(cap(new)),
            needed_cap: GasPrice(needed_cap),
            given_tip: GasPrice(tip(new)),
            needed_tip: GasPrice(needed_tip),
        })
    }
}

fn queues(held: &[RecoveredTransaction]) -> BTreeSet<Queue> {
    held.iter().map(queue).collect()
}

fn queue(tx: &RecoveredTransaction) -> Queue {
    (tx.sender(), is_orderless(tx).then(|| tx.transaction().nonce()))
}

fn is_orderless(tx: &RecoveredTransaction) -> bool {
    tx.transaction().is_orderless()
}

/// The senders whose orderless ones differ.
fn debtors(before: &[RecoveredTransaction], after: &[RecoveredTransaction]) -> BTreeSet<Address> {
    let left = before.iter().filter(|tx| !after.contains(tx));
    let came = after.iter().filter(|tx| !before.contains(tx));
    left.chain(came).filter(|tx| is_orderless(tx)).map(|tx| tx.sender()).collect()
}

fn of_queue(held: &[RecoveredTransaction], wanted: Queue) -> Vec<RecoveredTransaction> {
    let mut own: Vec<_> = held.iter().filter(|tx| queue(tx) == wanted).cloned().collect();
    own.sort_by_key(nonce);
    own
}

fn last_of(held: &[RecoveredTransaction], wanted: Queue) -> Option<usize> {
    let own = held.iter().enumerate().filter(|(_, tx)| queue(tx) == wanted);
    own.max_by_key(|(_, tx)| nonce(tx)).map(|(place, _)| place)
}

/// Its place in its queue.
fn nonce(tx: &RecoveredTransaction) -> u64 {
    if is_orderless(tx) { 0 } else { tx.transaction().nonce() }
}

fn cap(tx: &RecoveredTransaction) -> u128 {
    tx.transaction().fee_cap().0
}

fn tip(tx: &RecoveredTransaction) -> u128 {
    tx.transaction().tip_cap().map_or(cap(tx), |tip| tip.0.min(cap(tx)))
}

fn bytes(tx: &RecoveredTransaction) -> usize {
    tx.transaction().encoded().len()
}

pub(crate) fn cost(tx: &RecoveredTransaction) -> U256 {
    U256::from(tx.transaction().gas_limit()) * U256::from(cap(tx)) + tx.transaction().value()
}

/// What a parked one takes of its sender's share.
fn weight(tx: &RecoveredTransaction) -> usize {
    1 + bytes(tx) / 1_024
}
