//! What accounts would owe for transactions that no queue of theirs adds up: a sender's orderless ones, and the gas that
//! a fee payer has promised. Together with the account's ready sequence numbers they stay within its balance, or a sender
//! without money could fill the pool.

use crate::sender::{Facts, Slot};
use alloy_primitives::Address;
use almanac_primitives::Wei;
use std::collections::{BTreeMap, HashMap};

/// All debts, and when what they are for expires.
#[derive(Clone, Debug, Default)]
pub(crate) struct Debts {
    accounts: HashMap<Address, Debt>,
    by_expiration: BTreeMap<(u64, u64), Slot>,
}

/// The debts of one account.
#[derive(Clone, Debug, Default)]
struct Debt {
    sum: Wei,
    orderless: usize,
    /// By arrival: the latest yields first.
    items: BTreeMap<u64, Item>,
}

#[derive(Clone, Copy, Debug)]
struct Item {
    slot: Slot,
    cost: Wei,
    is_own: bool,
}

impl Debts {
    pub(crate) fn insert(&mut self, facts: &Facts) {
        for (account, item) in items(facts) {
            let debt = self.accounts.entry(account).or_default();
            debt.sum = Wei(debt.sum.0.saturating_add(item.cost.0));
            debt.orderless += usize::from(item.is_own);
            debt.items.insert(facts.offer.arrival, item);
        }
        if let Some(second) = facts.expiration {
            self.by_expiration.insert((second, facts.offer.arrival), facts.slot);
        }
    }

    pub(crate) fn remove(&mut self, facts: &Facts) {
        for (account, _) in items(facts) {
            let Some(debt) = self.accounts.get_mut(&account) else { continue };
            if let Some(item) = debt.items.remove(&facts.offer.arrival) {
                debt.sum = Wei(debt.sum.0.saturating_sub(item.cost.0));
                debt.orderless -= usize::from(item.is_own);
            }
            if debt.items.is_empty() {
                self.accounts.remove(&account);
            }
        }
        if let Some(second) = facts.expiration {
            self.by_expiration.remove(&(second, facts.offer.arrival));
        }
    }

    /// What an account would owe.
    pub(crate) fn sum(&self, account: Address) -> Wei {
        self.accounts.get(&account).map_or(Wei::ZERO, |debt| debt.sum)
    }

    /// What an account would owe with `cost` more, and without what leaves.
    pub(crate) fn sum_with(&self, account: Address, cost: Wei, leaving: Option<&Facts>) -> Wei {
        let held = self.sum(account);
        let freed: Wei = leaving
            .into_iter()
            .flat_map(items)
            .filter(|(owner, _)| *owner == account)
            .fold(Wei::ZERO, |sum, (_, item)| Wei(sum.0.saturating_add(item.cost.0)));
        Wei(held.0.saturating_sub(freed.0).saturating_add(cost.0))
    }

    /// How many orderless transactions a sender has.
    pub(crate) fn orderless_of(&self, sender: Address) -> usize {
        self.accounts.get(&sender).map_or(0, |debt| debt.orderless)
    }

    /// For how many transactions an account stands.
    pub(crate) fn count(&self, account: Address) -> usize {
        self.accounts.get(&account).map_or(0, |debt| debt.items.len())
    }

    /// The latest of what an account can no longer pay for, or of more than it may stand for.
    pub(crate) fn beyond(&self, account: Address, balance: Wei, count_max: usize) -> Option<Slot> {
        let debt = self.accounts.get(&account)?;
        if debt.sum <= balance && debt.items.len() <= count_max {
            return None;
        }
        debt.items.last_key_value().map(|(_, item)| item.slot)
    }

    /// All that an account owes for.
    pub(crate) fn of(&self, account: Address) -> Vec<Slot> {
        let items = self.accounts.get(&account).into_iter().flat_map(|debt| debt.items.values());
        items.map(|item| item.slot).collect()
    }

    /// One whose second has come.
    pub(crate) fn expired(&self, now_ms: u64) -> Option<Slot> {
        let (&(second, _), &slot) = self.by_expiration.first_key_value()?;
        (second.saturating_mul(1_000) <= now_ms).then_some(slot)
    }
}

/// Who owes for a transaction.
pub(crate) fn debtors(facts: &Facts) -> impl Iterator<Item = Address> {
    items(facts).map(|(account, _)| account)
}

/// Who owes what for a transaction.
fn items(facts: &Facts) -> impl Iterator<Item = (Address, Item)> {
    let (slot, cost) = (facts.slot, facts.cost);
    let own = slot.queue.orderless.map(|_| (slot.queue.sender, Item { slot, cost, is_own: true }));
    let paid = facts.payer.map(|(payer, cost)| (payer, Item { slot, cost, is_own: false }));
    own.into_iter().chain(paid)
}
