//! The accounts that a developer impersonates.

use alloy_consensus::{TxEip4844, TypedTransaction};
use alloy_primitives::Address;
use almanac_primitives::{UserTransaction, transaction::TransactionDecodeError};
use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard},
};

/// The impersonated accounts. Empty on a network node, whose chain would refuse what they send.
#[derive(Debug, Default)]
pub(crate) struct Impersonation(Mutex<Names>);

#[derive(Debug, Default)]
struct Names {
    accounts: BTreeSet<Address>,
    is_everyone: bool,
}

impl Impersonation {
    /// Lets everybody send in the name of `account`.
    pub(crate) fn start(&self, account: Address) {
        self.lock().accounts.insert(account);
    }

    /// Ends that.
    pub(crate) fn stop(&self, account: Address) {
        self.lock().accounts.remove(&account);
    }

    /// Whether anybody's name will do.
    pub(crate) fn set_everyone(&self, is_everyone: bool) {
        self.lock().is_everyone = is_everyone;
    }

    /// Ends all of it.
    pub(crate) fn clear(&self) {
        *self.lock() = Names::default();
    }

    /// Whether transactions may be made in the name of `account`.
    pub(crate) fn covers(&self, account: Address) -> bool {
        let names = self.lock();
        names.is_everyone || names.accounts.contains(&account)
    }

    /// The accounts that were named.
    pub(crate) fn accounts(&self) -> Vec<Address> {
        self.lock().accounts.iter().copied().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Names> {
        self.0.lock().expect("nobody panics while holding the names")
    }
}

/// A transaction in the name of `sender`, for whom nobody signs.
pub(crate) fn in_the_name_of(
    sender: Address,
    transaction: TypedTransaction,
) -> Result<UserTransaction, TransactionDecodeError> {
    UserTransaction::impersonate(sender, transaction.map_eip4844(TxEip4844::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_and_go() {
        let (alice, bob) = (Address::repeat_byte(1), Address::repeat_byte(2));
        let names = Impersonation::default();
        assert!(!names.covers(alice));
        names.start(alice);
        names.start(alice);
        assert!(names.covers(alice) && !names.covers(bob));
        assert_eq!(names.accounts(), [alice]);
        names.set_everyone(true);
        assert!(names.covers(bob));
        names.stop(alice);
        assert!(names.covers(alice), "still everyone");
        names.set_everyone(false);
        assert!(!names.covers(alice) && !names.covers(bob));
        names.start(alice);
        names.set_everyone(true);
        names.clear();
        assert!(!names.covers(alice) && !names.covers(bob));
    }
}
