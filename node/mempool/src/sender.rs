//! One sender's transactions: which can run now, and which wait.
//!
//! ```text
//!   account nonce
//!   |
//!   5    6    7    8         10   11       nonces held
//!   [  ready  ] | too dear | gap | parked
//!             ready_len = 3
//! ```
//!
//! Ready ones are a prefix: consecutive from the account's nonce, and together within its balance. The prefix
//! is kept by its length and its cost, so that it grows and shrinks at its end without being counted anew.

use crate::offer::Offer;
use alloy_consensus::Transaction as _;
use alloy_primitives::{Address, TxHash};
use almanac_primitives::{Gas, RecoveredTransaction, Wei};
use std::collections::{BTreeMap, btree_map};
use std::ops::Bound;

/// What the caller knows of a sender's account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderState {
    /// Sequence number of its next transaction.
    pub nonce: u64,
    /// What it can pay with.
    pub balance: Wei,
}

/// Whether a transaction can go into the next block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// All before it are here, and the account can pay for it and them.
    Ready,
    /// It waits for an earlier one, or for money.
    Parked,
}

/// Where a transaction stands: one sender has one transaction per sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot {
    pub(crate) sender: Address,
    pub(crate) nonce: u64,
}

/// A transaction in the pool, with what decisions need at hand.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub(crate) transaction: RecoveredTransaction,
    pub(crate) offer: Offer,
    /// The most it can take from its sender; `None` where that is more than any account can hold.
    cost: Option<Wei>,
}

impl Pending {
    pub(crate) fn new(transaction: RecoveredTransaction, arrival: u64) -> Self {
        let signed = transaction.transaction();
        let gas_cost = Gas(signed.envelope().gas_limit()).cost(signed.fee_cap());
        let cost = gas_cost.checked_add(Wei(signed.envelope().value()));
        let offer = Offer::new(signed, arrival);
        Self { transaction, offer, cost }
    }

    pub(crate) fn hash(&self) -> TxHash {
        self.transaction.hash()
    }

    pub(crate) fn nonce(&self) -> u64 {
        self.transaction.transaction().nonce()
    }

    pub(crate) fn slot(&self) -> Slot {
        Slot { sender: self.transaction.sender(), nonce: self.nonce() }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.transaction.transaction().encoded().len()
    }
}

/// One sender's transactions.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    state: SenderState,
    pending: BTreeMap<u64, Pending>,
    ready_len: usize,
    ready_cost: Wei,
}

impl Sender {
    pub(crate) fn new(state: SenderState) -> Self {
        Self { state, pending: BTreeMap::new(), ready_len: 0, ready_cost: Wei::ZERO }
    }

    /// Takes in what the account now is, and returns the transactions whose number is used up.
    pub(crate) fn set_state(&mut self, state: SenderState) -> Vec<Pending> {
        let stale = self.take_below(state.nonce);
        if state.nonce < self.state.nonce {
            // The account went back: whatever was ready now waits behind a gap.
            self.ready_len = 0;
            self.ready_cost = Wei::ZERO;
        }
        self.state = state;
        self.settle();
        stale
    }

    /// Adds a transaction, and returns the one that had its number.
    pub(crate) fn put(&mut self, newcomer: Pending) -> Option<Pending> {
        let nonce = newcomer.nonce();
        let cost = newcomer.cost;
        let old = self.pending.insert(nonce, newcomer);
        if let Some(old) = &old
            && self.is_ready(nonce)
        {
            self.reprice(nonce, ready_cost_of(old), cost);
        }
        self.settle();
        old
    }

    /// Takes one transaction out and parks those after it, at the price of a step for each of them.
    pub(crate) fn take(&mut self, nonce: u64) -> Option<Pending> {
        while self.is_ready(nonce) {
            self.demote_last();
        }
        self.pending.remove(&nonce)
    }

    pub(crate) fn get(&self, nonce: u64) -> Option<&Pending> {
        self.pending.get(&nonce)
    }

    /// The transaction at this number if it can run now.
    pub(crate) fn ready(&self, nonce: u64) -> Option<&Pending> {
        self.pending.get(&nonce).filter(|_| self.is_ready(nonce))
    }

    /// The first transaction if it can run now.
    pub(crate) fn head(&self) -> Option<&Pending> {
        self.ready(self.state.nonce)
    }

    /// The last transaction, or the last before a number.
    pub(crate) fn highest_below(&self, end: Option<u64>) -> Option<&Pending> {
        let end = end.map_or(Bound::Unbounded, Bound::Excluded);
        self.pending.range((Bound::Unbounded, end)).next_back().map(|(_, pending)| pending)
    }

    /// All of them in order of their numbers.
    pub(crate) fn iter(&self) -> btree_map::Values<'_, u64, Pending> {
        self.pending.values()
    }

    pub(crate) fn readiness(&self, nonce: u64) -> Readiness {
        if self.is_ready(nonce) { Readiness::Ready } else { Readiness::Parked }
    }

    pub(crate) fn len(&self) -> usize {
        self.pending.len()
    }

    pub(crate) fn ready_len(&self) -> usize {
        self.ready_len
    }

    /// The first number from `account_nonce` on that no pending transaction has taken.
    pub(crate) fn next_nonce(&self, account_nonce: u64) -> u64 {
        let mut next = account_nonce;
        if self.is_ready(account_nonce) {
            next = self.ready_end().unwrap_or(u64::MAX);
        }
        for (&nonce, _) in self.pending.range(next..) {
            if nonce != next {
                break;
            }
            next = next.saturating_add(1);
        }
        next
    }

    fn take_below(&mut self, nonce: u64) -> Vec<Pending> {
        let mut stale = Vec::new();
        while let Some(first) = self.pending.first_entry()
            && *first.key() < nonce
        {
            let pending = first.remove();
            if self.is_ready(pending.nonce()) {
                self.ready_len -= 1;
                self.ready_cost = less(self.ready_cost, ready_cost_of(&pending));
                // The prefix now begins one later; below `nonce` nothing else is held.
                self.state.nonce = pending.nonce().saturating_add(1);
            }
            stale.push(pending);
        }
        stale
    }

    /// Exchanges the cost of a ready transaction, parking from the end what the balance no longer covers.
    fn reprice(&mut self, nonce: u64, old_cost: Wei, new_cost: Option<Wei>) {
        self.ready_cost = less(self.ready_cost, old_cost);
        while let Some(last) = self.last_ready() {
            if let Some(sum) = self.cost_with(new_cost) {
                self.ready_cost = sum;
                return;
            }
            if last == nonce {
                // Its cost is already out of the sum.
                self.ready_len -= 1;
                return;
            }
            self.demote_last();
        }
    }

    /// Moves the end of the ready prefix to where the balance and the next gap put it.
    fn settle(&mut self) {
        while self.ready_cost > self.state.balance {
            self.demote_last();
        }
        while let Some(next) = self.ready_end().and_then(|nonce| self.pending.get(&nonce))
            && let Some(sum) = self.cost_with(next.cost)
        {
            self.ready_cost = sum;
            self.ready_len += 1;
        }
    }

    fn demote_last(&mut self) {
        let last = self.last_ready().and_then(|nonce| self.pending.get(&nonce));
        let cost = ready_cost_of(last.expect("every number of the ready prefix is held"));
        self.ready_cost = less(self.ready_cost, cost);
        self.ready_len -= 1;
    }

    /// The cost of the ready prefix and one more, where the balance covers it.
    fn cost_with(&self, cost: Option<Wei>) -> Option<Wei> {
        self.ready_cost.checked_add(cost?).filter(|sum| *sum <= self.state.balance)
    }

    fn is_ready(&self, nonce: u64) -> bool {
        nonce.checked_sub(self.state.nonce).is_some_and(|place| place < self.ready_len as u64)
    }

    /// One past the ready prefix; `None` where there is no such number.
    fn ready_end(&self) -> Option<u64> {
        self.state.nonce.checked_add(self.ready_len as u64)
    }

    fn last_ready(&self) -> Option<u64> {
        // In this order, because the end itself may be past the last number.
        self.ready_len.checked_sub(1).map(|steps| self.state.nonce + steps as u64)
    }
}

fn ready_cost_of(pending: &Pending) -> Wei {
    pending.cost.expect("what is ready was covered by a balance")
}

fn less(sum: Wei, cost: Wei) -> Wei {
    sum.checked_sub(cost).expect("the cost of a ready transaction is part of the sum")
}
