//! Whether the keys that signed are those of the account.

use super::gas;
use crate::{error::StateFault, state::BlockState, validate::TransactionError};
use alloy_primitives::{Address, Bytes};
use almanac_primitives::keys::{Leaf, StoredKey, Unproven, named_leaf};

/// Why an account's key was not satisfied.
pub(crate) enum AuthError {
    /// A rule is broken.
    Rule(TransactionError),
    /// The state failed.
    State(StateFault),
}

impl From<StateFault> for AuthError {
    fn from(fault: StateFault) -> Self {
        Self::State(fault)
    }
}

/// Checks that proven keys are those of `account`, neither too few nor too many. `pay` is asked for the price of a key
/// record before the tree is read. Returns that price.
pub(crate) fn authenticate(
    state: &mut BlockState<'_>,
    account: Address,
    proven: &[Leaf],
    pay: impl FnOnce(u64) -> Result<(), TransactionError>,
) -> Result<u64, AuthError> {
    let (result, gas) = match stored_key(state, account)? {
        Some(stored) => {
            let gas = gas::key_record(stored.leaves);
            pay(gas).map_err(AuthError::Rule)?;
            (state.stored_key(account, stored)?.check(proven), gas)
        }
        None => (own_key(account, proven), 0),
    };
    result.map(|()| gas).map_err(|unproven| refused(account, unproven))
}

/// Checks whether signatures could be those of `account`, by their number and kind and by the keys that they name. None
/// is recovered.
pub(crate) fn check_named(
    state: &mut BlockState<'_>,
    account: Address,
    signatures: &[Bytes],
) -> Result<(), AuthError> {
    let named: Vec<_> = signatures.iter().map(|signature| named_leaf(signature)).collect();
    let result = match stored_key(state, account)? {
        Some(stored) => state.stored_key(account, stored)?.check_named(&named),
        None if !named.iter().any(|leaf| leaf.is_none_or(|leaf| leaf.account() == account)) => {
            Err(Unproven::NotSatisfied)
        }
        // One key has the address.
        None if named.len() > 1 => Err(Unproven::Superfluous(1)),
        None => Ok(()),
    };
    result.map_err(|unproven| refused(account, unproven))
}

fn refused(account: Address, unproven: Unproven) -> AuthError {
    AuthError::Rule(match unproven {
        Unproven::NotSatisfied => TransactionError::KeyNotSatisfied { account },
        Unproven::Superfluous(index) => TransactionError::SignatureSuperfluous { account, index },
    })
}

/// What an account's record says of its key, if it has one. The tree itself is not read.
pub(crate) fn stored_key(
    state: &mut BlockState<'_>,
    account: Address,
) -> Result<Option<StoredKey>, StateFault> {
    if state.is_keyed(account)? { Ok(state.key_record(account)?.key) } else { Ok(None) }
}

/// Without a record, an account belongs to the key that its address derives from.
pub(crate) fn own_key(account: Address, proven: &[Leaf]) -> Result<(), Unproven> {
    if !proven.iter().any(|leaf| leaf.account() == account) {
        return Err(Unproven::NotSatisfied);
    }
    match proven.iter().position(|leaf| leaf.account() != account) {
        Some(stranger) => Err(Unproven::Superfluous(stranger)),
        None => Ok(()),
    }
}
