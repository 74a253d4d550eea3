//! The same pool, dull: one list, scanned from end to end for everything.

use alloy_consensus::Transaction as _;
use alloy_primitives::{Address, TxHash, U256};
use almanac_mempool::{Insertion, PoolConfig, PoolError, Readiness, SenderState};
use almanac_primitives::{GasPrice, RecoveredTransaction};
use std::collections::{BTreeMap, BTreeSet};

/// One list of transactions in order of arrival, and what is known of accounts.
pub(crate) struct DullPool {
    pub(crate) config: PoolConfig,
    pub(crate) base_fee: u128,
    pub(crate) held: Vec<RecoveredTransaction>,
    pub(crate) accounts: BTreeMap<Address, SenderState>,
}

impl DullPool {
    pub(crate) fn new(config: PoolConfig, base_fee: u128) -> Self {
        Self { config, base_fee, held: Vec::new(), accounts: BTreeMap::new() }
    }

    pub(crate) fn insert(
        &mut self,
        tx: &RecoveredTransaction,
        account: SenderState,
    ) -> Result<Insertion, PoolError> {
        self.set_account(tx.sender(), account);
        let hash = tx.hash();
        if self.held.contains(tx) {
            return Err(PoolError::AlreadyKnown { hash });
        }
        if nonce(tx) < account.nonce {
            return Err(PoolError::NonceTooLow { given: nonce(tx), account: account.nonce });
        }
        if bytes(tx) > self.config.bytes_max {
            return Err(PoolError::TooLarge { given: bytes(tx), max: self.config.bytes_max });
        }

        let mut after = self.held.clone();
        let mut replaced = None;
        let mut evicted = Vec::new();
        let same_slot = after.iter().position(|old| old.sender() == tx.sender() && nonce(old) == nonce(tx));
        if let Some(place) = same_slot {
            let old = after.remove(place);
            self.check_replacement(&old, tx)?;
            replaced = Some(old.hash());
        } else if of_sender(&after, tx.sender()).len() >= self.config.sender_count_max {
            match last_of(&after, tx.sender()) {
                Some(last) if nonce(&after[last]) > nonce(tx) => evicted.push(after.remove(last).hash()),
                _ => {
                    let max = self.config.sender_count_max;
                    return Err(PoolError::SenderFull { sender: tx.sender(), max });
                }
            }
        }

        after.push(tx.clone());
        let mut displaced = None;
        while self.is_over(&after) {
            // The first of equals is the latest arrival; the newcomer itself is judged at the end.
            let others = after.iter().rev().filter(|other| other.hash() != hash);
            let Some(cheapest) = others.min_by_key(|other| cap(other)) else {
                displaced = Some(u128::MAX);
                break;
            };
            displaced = Some(cap(cheapest));
            let last = last_of(&after, cheapest.sender()).unwrap();
            if after[last].hash() == hash {
                let (nonce, fee_cap) = (nonce(cheapest), GasPrice(cap(cheapest)));
                return Err(PoolError::BehindCheapest { nonce, fee_cap });
            }
            evicted.push(after.remove(last).hash());
        }
        if let Some(displaced) = displaced
            && cap(tx) <= displaced
        {
            let needed = GasPrice(displaced.saturating_add(1));
            return Err(PoolError::PoolFull { fee_cap: GasPrice(cap(tx)), needed });
        }

        self.held = after;
        let is_ready = self.ready_of(tx.sender()).contains(tx);
        let readiness = if is_ready { Readiness::Ready } else { Readiness::Parked };
        Ok(Insertion { readiness, replaced, evicted })
    }

    pub(crate) fn set_account(&mut self, sender: Address, account: SenderState) {
        self.accounts.insert(sender, account);
        self.held.retain(|tx| tx.sender() != sender || nonce(tx) >= account.nonce);
    }

    pub(crate) fn remove(&mut self, hash: TxHash) -> Option<RecoveredTransaction> {
        let place = self.held.iter().position(|tx| tx.hash() == hash)?;
        Some(self.held.remove(place))
    }

    /// Consecutive from the account's number, and together within its balance.
    pub(crate) fn ready_of(&self, sender: Address) -> Vec<RecoveredTransaction> {
        let account = self.accounts[&sender];
        let (mut next, mut left, mut ready) = (account.nonce, account.balance.0, Vec::new());
        for tx in of_sender(&self.held, sender) {
            let cost = U256::from(tx.transaction().envelope().gas_limit()) * U256::from(cap(&tx));
            let cost = cost.checked_add(tx.transaction().envelope().value());
            match cost.and_then(|cost| left.checked_sub(cost)) {
                Some(rest) if nonce(&tx) == next => left = rest,
                _ => break,
            }
            next = next.wrapping_add(1);
            ready.push(tx);
        }
        ready
    }

    pub(crate) fn ready(&self) -> BTreeSet<TxHash> {
        self.senders().into_iter().flat_map(|sender| self.ready_of(sender)).map(|tx| tx.hash()).collect()
    }

    pub(crate) fn next_nonce(&self, sender: Address, account_nonce: u64) -> u64 {
        let is_taken = |number: &u64| of_sender(&self.held, sender).iter().any(|tx| nonce(tx) == *number);
        (account_nonce..).find(|number| !is_taken(number)).unwrap()
    }

    /// The order of a block; `is_skipped` says after each transaction whether its sender is out.
    pub(crate) fn best(&self, mut is_skipped: impl FnMut(usize) -> bool) -> Vec<TxHash> {
        let mut queues: Vec<_> =
            self.senders().into_iter().map(|sender| self.ready_of(sender).into_iter().peekable()).collect();
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

    fn senders(&self) -> BTreeSet<Address> {
        self.held.iter().map(|tx| tx.sender()).collect()
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

fn of_sender(held: &[RecoveredTransaction], sender: Address) -> Vec<RecoveredTransaction> {
    let mut own: Vec<_> = held.iter().filter(|tx| tx.sender() == sender).cloned().collect();
    own.sort_by_key(nonce);
    own
}

fn last_of(held: &[RecoveredTransaction], sender: Address) -> Option<usize> {
    let own = held.iter().enumerate().filter(|(_, tx)| tx.sender() == sender);
    own.max_by_key(|(_, tx)| nonce(tx)).map(|(place, _)| place)
}

fn nonce(tx: &RecoveredTransaction) -> u64 {
    tx.transaction().nonce()
}

fn cap(tx: &RecoveredTransaction) -> u128 {
    tx.transaction().fee_cap().0
}

fn tip(tx: &RecoveredTransaction) -> u128 {
    let envelope = tx.transaction().envelope();
    envelope.max_priority_fee_per_gas().map_or(cap(tx), |tip| tip.min(cap(tx)))
}

fn bytes(tx: &RecoveredTransaction) -> usize {
    tx.transaction().encoded().len()
}
