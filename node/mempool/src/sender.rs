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
//! Ready transactions are a prefix: consecutive from the account's nonce, and together covered by its balance, beside
//! what the account owes for orderless ones and as a fee payer.
//! The prefix is stored as its length and its cost, so that it grows and shrinks at its end without being
//! recomputed.

use crate::offer::Offer;
use alloy_primitives::{Address, TxHash, U256};
use almanac_primitives::{RecoveredTransaction, TimestampMs, UserTransaction, Wei};
use std::collections::{BTreeMap, BTreeSet, btree_map};
use std::ops::Bound;

/// The state of a sender's account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderState {
    /// Nonce of its next transaction.
    pub nonce: u64,
    /// Its balance.
    pub balance: Wei,
    /// Whether it has an EIP-7702 delegation, by which others can spend its funds.
    pub is_delegated: bool,
}

/// Whether a transaction can go into the next block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// All earlier ones are here, and the account can pay for it and them.
    Ready,
    /// It waits for an earlier one, or for money.
    Parked,
}

/// Transactions that wait for each other: a sender's sequence numbers, or a single orderless one, which waits for
/// none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Queue {
    pub(crate) sender: Address,
    /// The nonce of an orderless transaction.
    pub(crate) orderless: Option<u64>,
}

impl Queue {
    /// A sender's sequence numbers.
    pub(crate) fn sequence(sender: Address) -> Self {
        Self { sender, orderless: None }
    }

    /// What a queue knows of its sender's account. An orderless one begins at 0, whatever the account's number is.
    pub(crate) fn state(&self, account: SenderState) -> SenderState {
        SenderState { nonce: if self.orderless.is_some() { 0 } else { account.nonce }, ..account }
    }
}

/// The position of a transaction: one queue has one transaction per nonce.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot {
    pub(crate) queue: Queue,
    pub(crate) nonce: u64,
}

impl Slot {
    /// Where an orderless transaction stands: alone.
    pub(crate) fn orderless(sender: Address, nonce: u64) -> Self {
        Self { queue: Queue { sender, orderless: Some(nonce) }, nonce: 0 }
    }
}

/// The properties of a transaction that decisions depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(crate) hash: TxHash,
    pub(crate) slot: Slot,
    pub(crate) offer: Offer,
    pub(crate) bytes: usize,
    /// The most it can cost its sender; the maximum value if it overflows.
    pub(crate) cost: Wei,
    /// Its gas limit.
    pub(crate) gas: u64,
    /// Who pays for the gas, if not the sender, and the most that this can be.
    pub(crate) payer: Option<(Address, Wei)>,
    /// The second from which on it is refused.
    pub(crate) expiration: Option<u64>,
    /// Whether its orderless sender or its fee payer stood for many others when it came.
    pub(crate) is_vouched: bool,
}

impl Facts {
    pub(crate) fn new(transaction: &UserTransaction, sender: Address, arrival: u64) -> Self {
        let gas_cost = U256::from(transaction.gas_limit()) * U256::from(transaction.fee_cap().0);
        let payer = transaction.fee_payer().map(|payer| (payer, Wei(gas_cost)));
        let own_gas_cost = if payer.is_some() { U256::ZERO } else { gas_cost };
        let slot = match transaction.is_orderless() {
            true => Slot::orderless(sender, transaction.nonce()),
            false => Slot { queue: Queue::sequence(sender), nonce: transaction.nonce() },
        };
        Self {
            hash: transaction.hash(),
            slot,
            payer,
            expiration: transaction.expiration(),
            offer: Offer::new(transaction, arrival),
            bytes: transaction.encoded().len(),
            gas: transaction.gas_limit(),
            cost: Wei(own_gas_cost.saturating_add(transaction.value())),
            is_vouched: false,
        }
    }
}

/// A transaction in the pool.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub(crate) transaction: RecoveredTransaction,
    pub(crate) facts: Facts,
    pub(crate) place: Place,
}

/// Whether a transaction is ready or parked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Ready,
    /// Parked since this time.
    Parked(TimestampMs),
}

/// A transaction that changed from ready to parked or back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Move {
    pub(crate) facts: Facts,
    pub(crate) from: Place,
    pub(crate) to: Place,
}

/// One sender's transactions.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    state: SenderState,
    /// What the account owes beside these: ready ones leave room for it in the balance.
    reserved: Wei,
    pending: BTreeMap<u64, Pending>,
    /// Costs with nonces: finds those that the balance no longer covers.
    costs: BTreeSet<(Wei, u64)>,
    ready_len: usize,
    ready_cost: Wei,
    /// Changes that were not collected yet.
    moves: Vec<Move>,
}

impl Sender {
    pub(crate) fn new(state: SenderState) -> Self {
        Self {
            state,
            reserved: Wei::ZERO,
            pending: BTreeMap::new(),
            costs: BTreeSet::new(),
            ready_len: 0,
            ready_cost: Wei::ZERO,
            moves: Vec::new(),
        }
    }

    /// The same beside what the account owes elsewhere.
    pub(crate) fn with_reserved(self, reserved: Wei) -> Self {
        Self { reserved, ..self }
    }

    /// Sets what the account owes elsewhere, and parks what the balance no longer covers beside it, or the reverse.
    pub(crate) fn set_reserved(&mut self, reserved: Wei, now: TimestampMs) {
        self.reserved = reserved;
        self.move_ready_end(now);
    }

    /// Updates the account's state, and returns the transactions that are no longer valid: their nonce is used
    /// up, or the balance does not cover them even alone.
    pub(crate) fn set_state(&mut self, state: SenderState, reserved: Wei, now: TimestampMs) -> Vec<Pending> {
        let mut leaving = self.take_below(state.nonce);
        if state.nonce < self.state.nonce {
            // The account's nonce went back: everything that was ready now waits behind a gap.
            while self.ready_len > 0 {
                self.demote_last(now);
            }
        }
        (self.state, self.reserved) = (state, reserved);
        while let Some((cost, nonce)) = self.costs.last().copied()
            && cost > state.balance
        {
            leaving.extend(self.take(nonce, now));
        }
        self.move_ready_end(now);
        leaving
    }

    /// Whether a transaction with this nonce would be ready or parked; an error with the needed balance if it
    /// would replace a ready one that the balance does not cover.
    pub(crate) fn placement(&self, nonce: u64, cost: Wei) -> Result<Readiness, Wei> {
        if self.is_ready(nonce) {
            return self.check_ready_replacement(nonce, cost).map(|()| Readiness::Ready);
        }
        let is_next = self.ready_end() == Some(nonce) && self.cost_with(cost).is_some();
        Ok(if is_next { Readiness::Ready } else { Readiness::Parked })
    }

    fn check_ready_replacement(&self, nonce: u64, cost: Wei) -> Result<(), Wei> {
        let is_covered = |sum: &Wei| *sum <= self.ready_max();
        let others = less(self.ready_cost, self.pending[&nonce].facts.cost);
        if others.checked_add(cost).as_ref().is_some_and(is_covered) {
            return Ok(());
        }
        // Later ones can be parked; earlier ones take precedence.
        let before = self.pending.range(self.state.nonce..nonce);
        let sum = before.fold(cost, |sum, (_, pending)| Wei(sum.0.saturating_add(pending.facts.cost.0)));
        if is_covered(&sum) { Ok(()) } else { Err(Wei(sum.0.saturating_add(self.reserved.0))) }
    }

    /// Where [`put`](Self::put) puts a transaction at first.
    pub(crate) fn place_at(&self, nonce: u64, now: TimestampMs) -> Place {
        if self.is_ready(nonce) { Place::Ready } else { Place::Parked(now) }
    }

    /// Adds a transaction, and returns the one that had its nonce.
    pub(crate) fn put(&mut self, newcomer: Pending, now: TimestampMs) -> Option<Pending> {
        let Facts { slot: Slot { nonce, .. }, cost, .. } = newcomer.facts;
        let is_ready = self.is_ready(nonce);
        self.costs.insert((cost, nonce));
        let old = self.pending.insert(nonce, newcomer);
        if let Some(old) = &old {
            if old.facts.cost != cost {
                self.costs.remove(&(old.facts.cost, nonce));
            }
            if is_ready {
                self.reprice(nonce, old.facts.cost, cost, now);
            }
        }
        self.move_ready_end(now);
        old
    }

    /// Removes one transaction and parks those after it, in time proportional to their number.
    pub(crate) fn take(&mut self, nonce: u64, now: TimestampMs) -> Option<Pending> {
        while self.is_ready(nonce) {
            self.demote_last(now);
        }
        let pending = self.pending.remove(&nonce)?;
        self.costs.remove(&(pending.facts.cost, nonce));
        Some(pending)
    }

    /// Takes the changes between ready and parked since the last call.
    pub(crate) fn take_moves(&mut self) -> Vec<Move> {
        std::mem::take(&mut self.moves)
    }

    pub(crate) fn get(&self, nonce: u64) -> Option<&Pending> {
        self.pending.get(&nonce)
    }

    /// The transaction with this nonce, if it is ready.
    pub(crate) fn ready(&self, nonce: u64) -> Option<&Pending> {
        self.pending.get(&nonce).filter(|_| self.is_ready(nonce))
    }

    /// The first transaction if it can run now.
    pub(crate) fn front(&self) -> Option<&Pending> {
        self.ready(self.state.nonce)
    }

    /// The last transaction.
    pub(crate) fn last(&self) -> Option<&Facts> {
        self.pending.last_key_value().map(|(_, pending)| &pending.facts)
    }

    /// The last ready transaction, or the last before a nonce.
    pub(crate) fn last_ready_below(&self, end: Option<u64>) -> Option<&Facts> {
        let last = self.last_ready()?;
        let last = match end {
            Some(end) => last.min(end.checked_sub(1)?),
            None => last,
        };
        self.ready(last).map(|pending| &pending.facts)
    }

    /// The last ready transaction with a gas limit above this.
    pub(crate) fn last_ready_that(&self, is_meant: impl Fn(&Facts) -> bool) -> Option<&Facts> {
        let ready = self.pending.range(..self.next_ready()).rev();
        ready.map(|(_, pending)| &pending.facts).find(|facts| is_meant(facts))
    }

    /// The parked transactions, the last first.
    pub(crate) fn parked_from_last(&self) -> impl Iterator<Item = &Facts> {
        let parked = self.pending.range((self.ready_bound(), Bound::Unbounded)).rev();
        parked.map(|(_, pending)| &pending.facts)
    }

    /// All of them in nonce order.
    pub(crate) fn iter(&self) -> btree_map::Values<'_, u64, Pending> {
        self.pending.values()
    }

    pub(crate) fn readiness(&self, nonce: u64) -> Readiness {
        if self.is_ready(nonce) { Readiness::Ready } else { Readiness::Parked }
    }

    /// What the ready ones can cost together.
    pub(crate) fn ready_cost(&self) -> Wei {
        self.ready_cost
    }

    pub(crate) fn state(&self) -> SenderState {
        self.state
    }

    pub(crate) fn len(&self) -> usize {
        self.pending.len()
    }

    pub(crate) fn parked_len(&self) -> usize {
        self.pending.len() - self.ready_len
    }

    /// The nonce after the ready ones.
    pub(crate) fn next_ready(&self) -> u64 {
        self.ready_end().unwrap_or(u64::MAX)
    }

    /// The first nonce from `account_nonce` on that no pending transaction uses.
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
            let Facts { slot, cost, .. } = pending.facts;
            self.costs.remove(&(cost, slot.nonce));
            if self.is_ready(slot.nonce) {
                self.ready_len -= 1;
                self.ready_cost = less(self.ready_cost, cost);
                // The prefix now begins one later; below `nonce` nothing else is held.
                self.state.nonce = slot.nonce.saturating_add(1);
            }
            stale.push(pending);
        }
        stale
    }

    /// Changes the cost of a ready transaction, and parks from the end what the balance no longer covers.
    fn reprice(&mut self, nonce: u64, old_cost: Wei, new_cost: Wei, now: TimestampMs) {
        self.ready_cost = less(self.ready_cost, old_cost);
        loop {
            if let Some(sum) = self.cost_with(new_cost) {
                self.ready_cost = sum;
                return;
            }
            assert!(self.last_ready() > Some(nonce), "a replacement that is not covered is refused before");
            self.demote_last(now);
        }
    }

    /// Moves the end of the ready prefix to where the balance and the next gap put it.
    fn move_ready_end(&mut self, now: TimestampMs) {
        while self.ready_cost > self.ready_max() {
            self.demote_last(now);
        }
        while let Some(nonce) = self.ready_end()
            && let Some(next) = self.pending.get(&nonce)
            && let Some(sum) = self.cost_with(next.facts.cost)
        {
            self.ready_cost = sum;
            self.ready_len += 1;
            self.cross(nonce, Place::Ready);
        }
    }

    fn demote_last(&mut self, now: TimestampMs) {
        let last = self.last_ready().expect("only a ready transaction is parked");
        let cost = self.cross(last, Place::Parked(now));
        self.ready_cost = less(self.ready_cost, cost);
        self.ready_len -= 1;
    }

    /// Marks a transaction as ready or parked. Returns its cost.
    fn cross(&mut self, nonce: u64, to: Place) -> Wei {
        let pending = self.pending.get_mut(&nonce).expect("every number of the ready prefix is held");
        let from = std::mem::replace(&mut pending.place, to);
        self.moves.push(Move { facts: pending.facts, from, to });
        pending.facts.cost
    }

    /// The cost of the ready prefix plus one more, if the balance covers it.
    fn cost_with(&self, cost: Wei) -> Option<Wei> {
        self.ready_cost.checked_add(cost).filter(|sum| *sum <= self.ready_max())
    }

    /// What ready ones may cost together.
    fn ready_max(&self) -> Wei {
        Wei(self.state.balance.0.saturating_sub(self.reserved.0))
    }

    /// Where the parked ones begin.
    fn ready_bound(&self) -> Bound<u64> {
        self.last_ready().map_or(Bound::Unbounded, Bound::Excluded)
    }

    fn is_ready(&self, nonce: u64) -> bool {
        nonce.checked_sub(self.state.nonce).is_some_and(|place| place < self.ready_len as u64)
    }

    /// One past the ready prefix; `None` if there is no such nonce.
    fn ready_end(&self) -> Option<u64> {
        self.state.nonce.checked_add(self.ready_len as u64)
    }

    fn last_ready(&self) -> Option<u64> {
        // Subtract first: the end itself may be past the last nonce.
        self.ready_len.checked_sub(1).map(|steps| self.state.nonce + steps as u64)
    }
}

fn less(sum: Wei, cost: Wei) -> Wei {
    sum.checked_sub(cost).expect("the cost of a ready transaction is part of the sum")
}
